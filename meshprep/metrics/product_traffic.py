"""Bytes that assembly and products of a matrix move, by formula [R14 3.2.4, 4.5].

Caches are left out: every number is moved each time it is used.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isqrt

from meshprep_runtime.plan import LoopPlan
from meshprep_runtime.plan.matrices import MatrixPlan, plain_args, with_places
from meshprep_runtime.program.timings import useful_bytes

INDEX_BYTES = 4


@dataclass(frozen=True)
class StoreBytes:
    """What a matrix takes in one store."""

    store: str  # ``"csr"``, ``"local"``, ``"local, half"``
    stored: int  # bytes of its arrays
    product: int  # bytes that a product moves if caches keep the vectors
    # Bytes that the loops which add to it move if caches keep what elements share; None for a store
    # that none assembles.
    assembly: int | None = None


def call_bytes(plan: LoopPlan, matrices: Mapping[str, MatrixPlan] | None = None) -> int:
    """Bytes of a call with maps and places; ``matrices`` that are not added up are stored."""
    added = plan.matrices if matrices is None else matrices
    maps, sizes = with_places(plan.loop, plan.maps, plan.sizes, added)
    read = {arg.map for arg in plain_args(plan.loop, maps) if arg.map is not None}
    return useful_bytes(plan.loop, maps, sizes) + sum(maps[name].table.nbytes for name in read)


def store_bytes(
    matrix: MatrixPlan, itemsize: int = 8, loops: Iterable[LoopPlan] = ()
) -> list[StoreBytes]:
    """The bytes of a matrix of a plan in each store.

    ``itemsize`` are the bytes of a value, and ``loops`` those that add to the matrix. Matrices of
    elements are left out where they are not square. O(map entries).
    """
    rows, vectors = matrix.shape[0], sum(matrix.shape) * itemsize
    stored = matrix.columns.size * (itemsize + INDEX_BYTES) + (rows + 1) * INDEX_BYTES
    loops = [*loops]
    added = sum(map(call_bytes, loops)) or None
    found = [StoreBytes("csr", stored, stored + vectors, added)]
    shapes = [(len(place), isqrt(place.shape[1])) for place in matrix.place.values()]
    entries = sum(place.size for place in matrix.place.values())
    if matrix.row_of is matrix.column_of and entries == sum(e * n * n for e, n in shapes):
        dofs = sum(e * n for e, n in shapes) * INDEX_BYTES
        half = sum(e * n * (n + 1) // 2 for e, n in shapes)
        without = [{n: m for n, m in p.matrices.items() if n != matrix.name} for p in loops]
        own = sum(map(call_bytes, loops, without)) or None
        for name, values, moved in (("local", entries, own), ("local, half", half, None)):
            size = values * itemsize + dofs
            # y is added to: read and written
            found.append(StoreBytes(name, size, size + vectors + rows * itemsize, moved))
    return found
