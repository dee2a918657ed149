from dataclasses import replace

import numpy as np
import pytest

from meshprep.io.generate import generate
from meshprep.mesh.geometry import Means, centroids, map_of_means
from meshprep.topology import derive


def slow_means(xyz, table):
    """The mean of the points of every row, one after the other."""
    return np.array([sum(xyz[t] for t in row) / len(row) for row in table])


@pytest.mark.parametrize("name", ["cells", "edges", "boundary_edges"])
def test_centroids_are_the_means_of_corners(name):
    mesh = derive(
        generate("delaunay2d", cells=300, seed=3), ["edges->nodes", "edges->cells"]
    )
    if f"{name}->nodes" not in mesh.maps:
        mesh = derive(mesh, [f"{name}->nodes"])
    expected = slow_means(mesh.coordinates, mesh.map(f"{name}->nodes").table)
    assert np.array_equal(centroids(mesh, name), expected)


@pytest.mark.parametrize("kind", ["box", "mixed3d"])
def test_means_of_some_elements_are_those_of_all(kind):
    wanted = ["faces->cells", "boundary_faces->cells"]
    mesh = derive(generate(kind, nx=4, ny=4, nz=4), wanted)
    names = ("nodes", "cells", "faces", "boundary_faces")
    known = [map_of_means(mesh, name) for name in names]
    cells = "cells->nodes" if kind == "box" else None
    assert known == [None, cells, "faces->cells", "boundary_faces->cells"]
    means, some = Means(mesh.map("faces->cells").table, centroids(mesh, "cells")), [7, 0, 4]
    assert np.array_equal(means[some], centroids(mesh, "faces")[some])


def test_faces_with_nodes_lie_between_these():
    mesh = derive(generate("box", nx=2, ny=2, nz=2), ["faces->nodes", "faces->cells"])
    assert map_of_means(mesh, "faces") == "faces->nodes"
    curved = replace(mesh.sets["cells"], cell_type="tetra10")
    assert map_of_means(replace(mesh, sets={**mesh.sets, "cells": curved}), "cells") is None


def test_faces_without_nodes_lie_between_their_cells():
    mesh = derive(generate("box", nx=4, ny=3, nz=3), ["faces->cells"])
    cells = centroids(mesh, "cells")
    expected = slow_means(cells, mesh.map("faces->cells").table)
    assert np.allclose(centroids(mesh, "faces"), expected, rtol=1e-15, atol=1e-15)
