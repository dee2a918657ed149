"""The page on ANUGA: a reordered domain evolves as the domain in its own order does."""

import numpy as np
from pages_of_use import blocks

reorder, evolve = blocks("use/anuga.md", "python")
names = {}
exec(reorder, names)
domain = names["domain"]
old = names["triangles"].new_to_old
assert not names["triangles"].is_identity
same = names["anuga"].rectangular_cross_domain(30, 30)
np.testing.assert_array_equal(domain.centroid_coordinates, same.centroid_coordinates[old])
assert domain.boundary == {
    (int(names["triangles"].old_to_new[t]), side): tag
    for (t, side), tag in same.boundary.items()
}
assert np.array_equal(domain.neighbours >= 0, same.neighbours[old] >= 0)
exec(evolve, names)
# The same without an order.
lines = reorder.splitlines()
plain = {}
exec("\n".join(line for line in lines if "domain.reorder" not in line), plain)
exec(evolve, plain)
stage = plain["domain"].quantities["stage"].centroid_values
np.testing.assert_allclose(names["stage"], stage, rtol=1e-10)
assert np.ptp(stage) > 0.01

# A domain of arrays that were ordered before, with its boundary.
ordered = names["ordered"]
new = names["triangles"].old_to_new
keys = {(int(new[t]), side): tag for (t, side), tag in same.boundary.items()}
made = names["anuga"].Domain(
    coordinates=ordered.points, vertices=ordered.cells, boundary=keys
)
np.testing.assert_allclose(
    made.centroid_coordinates, same.centroid_coordinates[old], rtol=0, atol=1e-14
)
assert made.boundary == keys
