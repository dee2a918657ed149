"""BookLeaf: staggered Lagrangian hydrodynamics; nodes gather mass, area and force [S19].

A node sums (area, mass, force in x, force in y) over the corners that meet in it.
"""


def getacc_scatter(density, corner_mass, corner_area, force_x, force_y, n1, n2, n3, n4):
    """Add what the four corners of a cell hold to its four nodes."""
    give(n1, 0, density, corner_mass, corner_area, force_x, force_y)
    give(n2, 1, density, corner_mass, corner_area, force_x, force_y)
    give(n3, 2, density, corner_mass, corner_area, force_x, force_y)
    give(n4, 3, density, corner_mass, corner_area, force_x, force_y)


def give(node, i, density, corner_mass, corner_area, force_x, force_y):
    """One corner to its node; a corner without a mass of its own has that of its area."""
    mass = corner_mass[i] if corner_mass[i] > 0.0 else density[0] * corner_area[i]
    node[0] += corner_area[i]
    node[1] += mass
    node[2] += force_x[i]
    node[3] += force_y[i]
