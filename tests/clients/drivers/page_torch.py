"""The page on JAX and torch, its part on torch."""

import numpy as np
import torch
from pages_of_use import run
from scipy.spatial import Delaunay

import meshprep

# What the part on JAX leaves, in arrays of NumPy.
points = np.random.default_rng(0).random((2000, 2))
sides = Delaunay(points).simplices[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
ordered = meshprep.order(np.unique(np.sort(sides), axis=0), points)
given = {
    "points": points,
    "ordered": ordered,
    "by_point": ordered.ordering["points"],
    "colour": meshprep.colour(ordered.cells),
}
names = run("jax.md", "py", given)
assert isinstance(names["v"], torch.Tensor)
torch.testing.assert_close(names["total"], names["at_once"], rtol=0, atol=1e-13)
assert names["at_once"].abs().max() > 0.01
