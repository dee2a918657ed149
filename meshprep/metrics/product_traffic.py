"""Bytes that assembly and products of a matrix move, by formula [R14 3.2.4, 4.5].

Caches are left out: every number is moved each time it is used. Only :func:`lines_of_x` counts what
a first-level cache would keep.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.matrix.cuda_text import CsrThreads
from meshprep_runtime.plan import LoopPlan
from meshprep_runtime.plan.matrices import MatrixPlan, plain_args, with_places
from meshprep_runtime.program.timings import useful_bytes
from meshprep_runtime.types.maps import distinct

INDEX_BYTES, LINE_BYTES = 4, 128


@dataclass(frozen=True)
class CsrBytes:
    """Bytes that a CSR product moves, by what caches do for x [R14 equations 4.4 to 4.6]."""

    effective: int  # every value of x each time it is used
    worst: int  # a line of 128 bytes for each value that a thread reads
    least: int  # every value of x once


def csr_bytes(rows: int, nonzeros: int, itemsize: int) -> CsrBytes:
    """The bytes of a product with a square matrix."""
    f, index = itemsize, INDEX_BYTES
    effective = nonzeros * (2 * f + index) + rows * (f + index)
    least = nonzeros * (f + index) + rows * (2 * f + index)
    return CsrBytes(effective, effective * (LINE_BYTES // f), least)


def lines_of_x(
    row_ptr: NDArray[np.integer],
    columns: NDArray[np.integer],
    threads: CsrThreads,
    itemsize: int,
) -> int:
    """Lines of 128 bytes of x that thread blocks read, a line that several read once for each.

    A first-level cache that keeps what a block has read would move these [R14 4.5]. ``itemsize``
    are the bytes of a value. O(nonzeros log nonzeros).
    """
    rows = row_ptr.size - 1
    each = threads.repeat * threads.block_size // threads.coop
    block = np.repeat(np.arange(rows, dtype=np.int64) // each, np.diff(row_ptr))
    line = columns.astype(np.int64) * itemsize // LINE_BYTES
    return distinct(block * (int(line.max(initial=0)) + 1) + line).size


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
        own = sum(call_bytes(p, _without(p, matrix)) for p in loops) or None
        for name, values, moved in (("local", entries, own), ("local, half", half, None)):
            size = values * itemsize + dofs
            # y is added to: read and written
            found.append(StoreBytes(name, size, size + vectors + rows * itemsize, moved))
    return found


def _without(plan: LoopPlan, matrix: MatrixPlan) -> dict[str, MatrixPlan]:
    return {name: other for name, other in plan.matrices.items() if name != matrix.name}
