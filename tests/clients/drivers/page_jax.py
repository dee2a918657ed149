"""The page on JAX: sums over ordered edges, and over rounds of colours, are those of NumPy."""

import jax
import numpy as np
from pages_of_use import run

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")
names = run("jax.md")
sides = names["sides"]
edges = np.unique(np.sort(sides), axis=0)
u = names["points"][:, 0]
expected = np.zeros(2000)
flux = u[edges[:, 1]] - u[edges[:, 0]]
np.add.at(expected, edges[:, 0], flux)
np.add.at(expected, edges[:, 1], -flux)
assert isinstance(names["change"], jax.Array)
np.testing.assert_allclose(names["change"], expected, atol=1e-13)
total = names["by_point"].restore(np.asarray(names["total"]))
np.testing.assert_allclose(total, expected, atol=1e-13)
# What JAX was promised.
low = np.asarray(names["edges"])[:, 0]
assert (np.diff(low) >= 0).all()
for r in names["rounds"]:
    ends = np.asarray(names["edges"])[np.asarray(r)]
    assert np.unique(ends).size == ends.size
