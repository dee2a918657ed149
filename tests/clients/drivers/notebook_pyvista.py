"""The notebook on PyVista: its cells run without a display, and leave what its text says."""

import warnings

import numpy as np
from pages_of_use import code_of_notebook

# In a script PyVista says that it takes no backend of notebooks.
warnings.filterwarnings("ignore", "Not within a jupyter", UserWarning)
names = {}
for source in code_of_notebook("pyvista"):
    exec(source, names)
grid = names["grid"]
assert np.bincount(grid["part"]).size == 8
assert np.bincount(grid["block"]).max() <= 256
assert names["loaded"]["blocks"] < 0.7 * names["loaded"]["runs of 256 cells"]
assert np.abs(names["back"] - names["same"]).max() < 1e-12


def mean_span(mesh):
    """How far apart the numbers of the cells at a point are, in the mean."""
    cells = mesh.cell_connectivity.reshape(-1, 4)
    number = np.repeat(np.arange(len(cells)), 4)
    first = np.full(mesh.n_points, len(cells))
    last = np.zeros(mesh.n_points, int)
    np.minimum.at(first, cells.ravel(), number)
    np.maximum.at(last, cells.ravel(), number)
    return (last - first).mean()


# Neighbours have near numbers in the new order.
assert mean_span(names["ordered"]) < 0.3 * mean_span(names["shuffled"])
