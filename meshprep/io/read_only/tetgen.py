"""Meshes of TetGen: nodes in one file, tetrahedra in another."""

from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..cell_blocks import Cells, FileMesh, read_only_format


def read(path: Path) -> FileMesh:
    """A ``.node`` file and the ``.ele`` file beside it."""
    other = path.with_suffix(".ele" if path.suffix == ".node" else ".node")
    if not other.is_file():
        raise MeshprepError(f"needs {other.name} beside it, which does not exist")
    nodes, dim, attributes = _tetgen_table(path.with_suffix(".node"), 3)
    if dim != 3:
        raise MeshprepError(f"its nodes have {dim} coordinates: give 3")
    # Files count from 0 or from 1: the number of the first node tells.
    first = nodes[:1, 0]
    if (nodes[:, 0] != first + np.arange(len(nodes))).any():
        raise MeshprepError("its nodes are not numbered one after the other: number them")
    elements, width, _ = _tetgen_table(path.with_suffix(".ele"), 4)
    if width != 4:
        raise MeshprepError(f"its tetrahedra have {width} nodes: give 4")
    tets = elements[:, 1:5].astype(np.int64)
    if (tets != elements[:, 1:5]).any():
        raise MeshprepError("a number of a node is no whole number")
    mesh = FileMesh(nodes[:, 1:4], [Cells("tetra", tets - first.astype(np.int64))])
    # Attributes stand behind the coordinates, then the marks of the border.
    for k, values in enumerate(nodes[:, 4:].T):
        mark = k - attributes
        if mark < 0:
            name = f"attr{k + 1}"
        else:
            name = _tetgen_name(mark)
        mesh.point_data[f"tetgen:{name}"] = values
    for k, values in enumerate(elements[:, 5:].T):
        whole = np.rint(values).astype(np.int64)
        kept = whole if (whole == values).all() else values
        mesh.cell_data[f"tetgen:{_tetgen_name(k)}"] = [kept]
    return mesh


def _tetgen_name(number: int) -> str:
    """``ref``, ``ref2``, ``ref3``, ... as meshio names the marks of TetGen."""
    if number:
        return f"ref{number + 1}"
    return "ref"


def _tetgen_table(path: Path, usual: int) -> tuple[NDArray[np.float64], int, int]:
    """The rows of a TetGen file, and from its head the numbers of columns and attributes.

    The head is the number of rows, and what may be left out: how many coordinates or nodes
    a row has (``usual``), how many attributes, and of nodes how many marks.
    """
    lines = [line.partition(b"#")[0].split() for line in path.read_bytes().splitlines()]
    filled = [line for line in lines if line]
    if not filled:
        raise MeshprepError(f"{path.name} ends before the number of its rows")
    try:
        head = [int(word) for word in filled[0]]
        numbers = np.array([*chain.from_iterable(filled[1:])], np.float64)
    except ValueError as error:
        raise MeshprepError(f"{path.name} holds what is no number ({error})") from None
    # What the head leaves out has its usual number: attributes and marks none.
    rows, width, attributes, marks, *_ = [*head, *[usual, 0, 0][len(head) - 1 :], 0]
    columns = 1 + width + attributes + marks
    if min(rows, width, attributes, marks) < 0:
        raise MeshprepError(f"the first line of {path.name} holds a negative number")
    if rows * columns > numbers.size:
        raise MeshprepError(
            f"{path.name} declares {rows} rows of {columns} numbers, but holds "
            f"{numbers.size} numbers"
        )
    return numbers[: rows * columns].reshape(rows, columns), width, attributes


FORMAT = read_only_format(read)
