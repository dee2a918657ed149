"""Blocks of nodes and of elements in Gmsh's binary MSH 4.1 and 2.2."""

from collections.abc import Callable

from meshprep_runtime.errors import MeshprepError

from ..gmsh.types import DIMS
from .gmsh_scan import GmshScan, Run


def _nodes(scan: GmshScan) -> None:
    n_blocks, n, _, _ = scan.ints(4)
    for _ in range(n_blocks):
        _, _, parametric = scan.ints(3, "<i4")
        (count,) = scan.ints(1)
        if parametric:
            raise MeshprepError("parametric nodes are not read by slices: save without them")
        scan.labels.append(Run(scan.over(count * 8), count, 8))
        scan.points.append(Run(scan.over(count * 24), count, 24))
    if sum(run.rows for run in scan.points) != n:
        raise scan.damaged("the blocks do not hold all nodes")


def _elements(scan: GmshScan) -> None:
    n_blocks, n, _, _ = scan.ints(4)
    for _ in range(n_blocks):
        dim, _, kind = scan.ints(3, "<i4")
        (count,) = scan.ints(1)
        row = 8 * (1 + scan.nodes_of(kind))
        if dim != DIMS[kind]:
            raise MeshprepError(f"elements of type {kind} are not read by slices")
        at = scan.over(count * row)
        if count:
            scan.cells.setdefault(kind, []).append(Run(at, count, row, 8))
    if sum(run.rows for runs in scan.cells.values() for run in runs) != n:
        raise scan.damaged("the blocks do not hold all elements")


def _nodes2(scan: GmshScan) -> None:
    """A row is a number of 4 bytes, and three coordinates."""
    count, row = scan.number(), 28
    at = scan.over(count * row)
    scan.labels.append(Run(at, count, row))
    scan.points.append(Run(at, count, row, 4))


def _elements2(scan: GmshScan) -> None:
    """A row is the element's number, its tags and its nodes, all of 4 bytes."""
    n, read = scan.number(), 0
    while read < n:
        kind, count, n_tags = scan.ints(3, "<i4")
        if n_tags < 2:
            raise MeshprepError("elements without group and entity are not read by slices")
        row = 4 * (1 + n_tags + scan.nodes_of(kind))
        at = scan.over(count * row)
        if not 0 < count <= n - read:
            raise scan.damaged("a block holds no elements, or more than there are")
        scan.tags.setdefault(kind, []).append(Run(at, count, row, 4))
        scan.cells.setdefault(kind, []).append(Run(at, count, row, 4 * (1 + n_tags)))
        read += count


Reader = Callable[[GmshScan], None]
# By version: of the sections $Nodes and $Elements, and the type of their numbers.
READERS: dict[str, tuple[Reader, Reader, str]] = {
    "4.1": (_nodes, _elements, "<i8"),
    "2.2": (_nodes2, _elements2, "<i4"),
}
