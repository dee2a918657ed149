import numpy as np
import pytest

from meshprep.io.generate import generate
from meshprep.mesh.geometry import centroids
from meshprep.topology import derive


def slow_means(xyz, table):
    """The mean of the points of every row, one after the other."""
    return np.array([sum(xyz[t] for t in row) / len(row) for row in table])


@pytest.mark.parametrize("name", ["cells", "edges", "boundary_edges"])
def test_centroids_are_the_means_of_corners(name):
    mesh = derive(generate("delaunay2d", cells=300, seed=3), ["edges->nodes", "edges->cells"])
    if f"{name}->nodes" not in mesh.maps:
        mesh = derive(mesh, [f"{name}->nodes"])
    expected = slow_means(mesh.coordinates, mesh.map(f"{name}->nodes").table)
    assert np.array_equal(centroids(mesh, name), expected)


def test_faces_without_nodes_lie_between_their_cells():
    mesh = derive(generate("box", nx=4, ny=3, nz=3), ["faces->cells"])
    cells = centroids(mesh, "cells")
    expected = slow_means(cells, mesh.map("faces->cells").table)
    assert np.allclose(centroids(mesh, "faces"), expected, rtol=1e-15, atol=1e-15)
