"""Bytes that assembly and products of a matrix move, by formula [R14 3.2.4, 4.5].

Caches are left out: every number is moved each time it is used.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isqrt
from typing import NamedTuple

import numpy as np

from meshprep_runtime.plan import LoopPlan
from meshprep_runtime.plan.matrices import MatrixPlan, plain_args, with_places
from meshprep_runtime.program.timings import useful_bytes
from meshprep_runtime.types.maps import offsets_of

# Bytes of a column, of where a row begins, and of a dof's number.
INDEX_BYTES = 4


@dataclass(frozen=True)
class StoreBytes:
    """The bytes of a matrix in one store."""

    store: (
        str  # ``"csr"``, ``"ellpack"``, ``"lazy-ellpack"``, ``"local"``, ``"local, half"``
    )
    stored: int  # bytes of its arrays
    product: int  # bytes that a product moves if caches keep the vectors
    # Bytes that the loops which add to it move if caches keep what elements share; None for
    # a store that none assembles.
    assembly: int | None = None


def call_bytes(plan: LoopPlan, matrices: Mapping[str, MatrixPlan] | None = None) -> int:
    """Bytes of a call with maps and places.

    ``matrices`` are those that the loop adds to, all unless given; values of the others are
    stored one after the other.
    """
    added = plan.matrices if matrices is None else matrices
    maps, sizes = with_places(
        loop=plan.loop,
        maps=plan.maps,
        sizes=plan.sizes,
        matrices=added,
    )
    maps_read = {arg.map for arg in plain_args(plan.loop, maps) if arg.map is not None}
    bytes_of_maps = sum(maps[name].table.nbytes for name in maps_read)
    return useful_bytes(plan.loop, maps, sizes) + bytes_of_maps


class LazyRows(NamedTuple):
    """The size of rows in which nothing is added up.

    Attributes
    ----------
    width : int
        Entries of the longest row.
    more : int
        Entries beyond the nonzeros, in all rows.
    """

    width: int
    more: int


def _lazy_rows(matrix: MatrixPlan) -> LazyRows:
    entries_of_row = np.zeros(matrix.shape[0], np.int64)
    added_up = 0
    for place in matrix.place.values():
        # How often the loop adds to each nonzero, and then to each row.
        times = np.bincount(place[place >= 0], minlength=matrix.columns.size)
        entries_of_row += np.diff(offsets_of(times)[matrix.row_ptr])
        added_up += int(times.sum()) - int(np.count_nonzero(times))
    return LazyRows(width=int(entries_of_row.max(initial=0)), more=added_up)


def store_bytes(
    matrix: MatrixPlan, itemsize: int = 8, loops: Iterable[LoopPlan] = ()
) -> list[StoreBytes]:
    """The bytes of a matrix of a plan in each store.

    ``itemsize`` are the bytes of a value, and ``loops`` those that add to the matrix.
    Matrices of elements are left out where they are not square. O(map entries).
    """
    loops = list(loops)
    rows = matrix.shape[0]
    vectors = sum(matrix.shape) * itemsize

    # Rows of nonzeros with their columns, and where each row begins; or all rows as long as
    # the longest.
    entry = itemsize + INDEX_BYTES
    width = int(np.diff(matrix.row_ptr).max(initial=0))
    sums = sum(map(call_bytes, loops))
    lazy = _lazy_rows(matrix)
    stores = []
    for name, stored, assembly in (
        ("csr", matrix.columns.size * entry + (rows + 1) * INDEX_BYTES, sums),
        ("ellpack", width * rows * entry, sums),
        # Nothing is added up: each entry of an element is read and written.
        ("lazy-ellpack", lazy.width * rows * entry, sums + 2 * itemsize * lazy.more),
    ):
        stores.append(
            StoreBytes(
                store=name,
                stored=stored,
                product=stored + vectors,
                assembly=assembly if loops else None,
            )
        )

    # The matrices of the elements, all of them or the half that symmetric ones need.
    shapes = []
    for place in matrix.place.values():
        n_elements, entries_of_element = place.shape
        shapes.append((n_elements, isqrt(entries_of_element)))
    entries = sum(place.size for place in matrix.place.values())
    entries_if_square = sum(n_elements * n * n for n_elements, n in shapes)
    if matrix.row_of is not matrix.column_of or entries != entries_if_square:
        return stores
    dof_numbers = sum(n_elements * n for n_elements, n in shapes) * INDEX_BYTES
    half = sum(n_elements * n * (n + 1) // 2 for n_elements, n in shapes)
    assembly = 0
    for loop_plan in loops:
        others = {k: m for k, m in loop_plan.matrices.items() if k != matrix.name}
        assembly += call_bytes(loop_plan, others)
    for name, values, moved in (
        ("local", entries, assembly or None),
        ("local, half", half, None),
    ):
        stored = values * itemsize + dof_numbers
        # The result of a product is added to: read and written.
        product = stored + vectors + rows * itemsize
        stores.append(
            StoreBytes(store=name, stored=stored, product=product, assembly=moved)
        )
    return stores
