"""The page on PyVista: the arrays that ``grid.meshprep`` adds, the new grid and the pictures."""

from pathlib import Path

import numpy as np
from pages_of_use import run

import meshprep

names = run("pyvista.md")
grid = names["grid"]
ordered = names["ordered"]
assert np.bincount(grid["part"]).size == 8
assert np.bincount(grid["block"]).max() <= 256
meshprep.check_colours(grid, grid["colour"])
assert meshprep.check_partition(grid, grid["part"], 8).imbalance < 1.05
# The options of the text.
volumes = abs(grid.compute_cell_sizes()["Volume"])
owner = grid.meshprep.partition(8, weights=volumes)
meshprep.check_partition(grid, owner, 8, weights=volumes)
meshlets = grid.meshprep.blocks(128, staged_points=64)
cells = grid.cell_connectivity.reshape(-1, 4)
most = max(np.unique(cells[meshlets == b]).size for b in range(meshlets.max() + 1))
assert most <= 64
for picture in ("part.png", "block.png", "colour.png", "order.png"):
    assert Path(picture).stat().st_size > 5000, picture
old = ordered.cell_data["original_id"]
assert np.array_equal(ordered["part"], names["back"]["part"][old])
middles = grid.cell_centers().points
np.testing.assert_allclose(ordered.cell_centers().points, middles[old], atol=1e-6)
quality = grid.cell_quality("scaled_jacobian")["scaled_jacobian"]
np.testing.assert_allclose(names["back"]["quality"], quality, atol=1e-6)
