"""Lower-dimension cells that lie on no cell."""

import numpy as np

from meshprep.mesh.assemble import Block, assemble
from meshprep.topology import unattached


def found(blocks, n_nodes):
    blocks = [Block(t, np.array(rows, np.int32)) for t, rows in blocks.items()]
    mesh = assemble(np.zeros((n_nodes, 3)), blocks)[0]
    return {name: rows.tolist() for name, rows in unattached(mesh).items()}


def test_all_attached():
    assert found(
        {"triangle": [[0, 1, 2]], "line": [[1, 0], [0, 2]], "vertex": [[2]]}, 3
    ) == {"line": []}


def test_a_diagonal_is_no_edge():
    assert found({"quad": [[0, 1, 2, 3]], "line": [[0, 2], [0, 3], [1, 3], [2, 0]]}, 4) == {
        "line": [0, 2, 3]
    }


def test_faces_and_edges_of_volumes():
    blocks = {
        "tetra10": [[0, 1, 2, 3, 5, 6, 7, 8, 9, 10]],
        "triangle6": [[2, 1, 0, 6, 5, 7], [0, 1, 4, 5, 6, 7]],
        "quad": [[0, 1, 2, 3]],
        "line": [[3, 1], [1, 4]],
    }
    assert found(blocks, 11) == {"triangle6": [1], "quad": [0], "line": [1]}


def test_both_face_types():
    blocks = {
        "wedge": [[0, 1, 2, 3, 4, 5]],
        "pyramid": [[0, 1, 4, 3, 6]],
        "triangle": [[0, 1, 6], [0, 1, 3], [5, 4, 3]],
        "quad": [[0, 3, 4, 1], [0, 1, 2, 3]],
    }
    assert found(blocks, 7) == {"triangle": [1], "quad": [1]}


def test_repeated_rows_are_treated_alike():
    blocks = {"triangle": [[0, 1, 2], [2, 1, 3]], "line": [[0, 1], [1, 0], [0, 3], [3, 0]]}
    assert found(blocks, 4) == {"line": [2, 3]}


def test_lines_alone_have_nothing_to_check():
    assert found({"line": [[0, 1]], "vertex": [[0]]}, 2) == {}
