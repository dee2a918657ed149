"""Volna: nonlinear shallow water by finite volumes; what the edges' fluxes do to the cells [S19].

A cell's rate of change is (h, hu, hv, bottom); the bottom does not move.
"""


def space_discretization(rate1, rate2, flux, source, normal, volume1, volume2):
    """Hand the flux through an edge from cell 1 to cell 2, and the slope of the bottom to both.

    ``flux`` is (h, hu, hv) through the edge, ``source`` the push of the bottom on either side.
    """
    rate1[0] -= flux[0] / volume1[0]
    rate1[1] -= (flux[1] + source[0] * normal[0]) / volume1[0]
    rate1[2] -= (flux[2] + source[0] * normal[1]) / volume1[0]
    rate2[0] += flux[0] / volume2[0]
    rate2[1] += (flux[1] + source[1] * normal[0]) / volume2[0]
    rate2[2] += (flux[2] + source[1] * normal[1]) / volume2[0]
