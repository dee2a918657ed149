"""The kernels of the products: plain functions, which numba compiles before the first run.

Indices are unsigned, so that they are not tested for being negative. Sums have four parts,
so that an addition does not wait for the one before; the result does not depend on the
threads.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..types.maps import Int32s, Int64s

U = np.uint64


def csr_rows(
    span: tuple[int, int],
    row_ptr: NDArray[Any],
    columns: NDArray[np.uint32],
    values: NDArray[Any],
    x: NDArray[Any],
    y: NDArray[Any],
) -> None:
    """``y = A x`` for some rows. O(nonzeros)."""
    j = U(row_ptr[span[0]])
    # The sum of ``_dot_of_row``, but without a loop for the last entries, whose branches
    # processors predict wrong where rows differ in length. It is not a helper: numba counts
    # references to the arrays of helpers with conditions, which is eight times as slow.
    for i in range(U(span[0]), U(span[1])):
        stop = U(row_ptr[i + U(1)])
        a = b = c = d = values.dtype.type(0)
        while j + U(4) <= stop:
            a += values[j] * x[columns[j]]
            b += values[j + U(1)] * x[columns[j + U(1)]]
            c += values[j + U(2)] * x[columns[j + U(2)]]
            d += values[j + U(3)] * x[columns[j + U(3)]]
            j += U(4)
        if j + U(2) <= stop:
            a += values[j] * x[columns[j]]
            b += values[j + U(1)] * x[columns[j + U(1)]]
            j += U(2)
        if j < stop:
            c += values[j] * x[columns[j]]
            j += U(1)
        y[i] = (a + b) + (c + d)


def ellpack_rows(
    span: tuple[int, int],
    columns: NDArray[np.int32],
    values: NDArray[Any],
    x: NDArray[Any],
    y: NDArray[Any],
) -> None:
    """``y = A x`` for some rows, entry by entry of all of them. O(rows x longest row)."""
    first = U(span[0])
    last = U(span[1])
    for i in range(first, last):
        y[i] = 0
    for k in range(columns.shape[0]):
        for i in range(first, last):
            column = columns[k, i]
            if column >= 0:
                y[i] += values[k, i] * x[U(column)]


def _dot_of_row(
    columns: NDArray[np.uint32], values: NDArray[Any], x: NDArray[Any], j: Any, end: Any
) -> Any:
    # Four sums side by side: additions do not wait for each other.
    a = b = c = d = values.dtype.type(0)
    while j + U(4) <= end:
        a += values[j] * x[columns[j]]
        b += values[j + U(1)] * x[columns[j + U(1)]]
        c += values[j + U(2)] * x[columns[j + U(2)]]
        d += values[j + U(3)] * x[columns[j + U(3)]]
        j += U(4)
    while j < end:
        a += values[j] * x[columns[j]]
        j += U(1)
    return (a + b) + (c + d)


def local_elements(
    span: tuple[int, int],
    places: Int32s,
    dofs: Int32s,
    values: NDArray[Any],
    x: NDArray[Any],
    y: NDArray[Any],
    room: NDArray[Any],
    n: int,
) -> None:
    """Add ``K x`` of some elements to y. O(n^2) for each element.

    ``room`` is memory for the ``n`` values of x of an element.
    """
    for place in range(U(span[0]), U(span[1])):
        e = U(places[place]) if places.size else place
        _gather_x(dofs=dofs, x=x, room=room, at=e * U(n), n=n)
        for i in range(U(n)):
            dof = dofs[e * U(n) + i]
            # Straight to y: with sums on the stack the compiler would take eight rows at a
            # time, which their strides make slow.
            if dof >= 0:
                y[U(dof)] += _dot_of_dense_row(
                    values=values, room=room, at=(e * U(n) + i) * U(n), n=n
                )


def _gather_x(dofs: Int32s, x: NDArray[Any], room: NDArray[Any], at: Any, n: int) -> None:
    for i in range(U(n)):
        dof = dofs[at + i]
        if dof >= 0:
            room[i] = x[U(dof)]
        else:
            room[i] = x.dtype.type(0)


def _dot_of_dense_row(values: NDArray[Any], room: NDArray[Any], at: Any, n: int) -> Any:
    # Four sums side by side, as above.
    a = b = c = d = values.dtype.type(0)
    whole = U(n // 4 * 4)
    for j in range(U(0), whole, U(4)):
        a += values[at + j] * room[j]
        b += values[at + j + U(1)] * room[j + U(1)]
        c += values[at + j + U(2)] * room[j + U(2)]
        d += values[at + j + U(3)] * room[j + U(3)]
    for j in range(whole, U(n)):
        a += values[at + j] * room[j]
    return (a + b) + (c + d)


def sweep_rows(
    span: tuple[int, int],
    rows: Int32s,
    inverse: NDArray[Any],
    row_ptr: NDArray[Any],
    columns: NDArray[np.uint32],
    values: NDArray[Any],
    x: NDArray[Any],
    y: NDArray[Any],
) -> None:
    """``y_i = x_i - inverse_i (A y)_i`` for some rows that are not coupled."""
    for place in range(span[0], span[1]):
        i = U(rows[place])
        y[i] = x[i] - inverse[i] * _dot_of_row(
            columns=columns, values=values, x=y, j=U(row_ptr[i]), end=U(row_ptr[i + U(1)])
        )


def sweep_local_rows(
    span: tuple[int, int],
    rows: Int32s,
    inverse: NDArray[Any],
    offset: Int64s,
    element: Int32s,
    local_row: Int32s,
    entry: NDArray[np.int32],
    dofs: NDArray[np.int32],
    values: NDArray[Any],
    x: NDArray[Any],
    y: NDArray[Any],
) -> None:
    """:func:`sweep_rows` for matrices of elements: a row sums over its elements.

    ``entry`` has the place of each local row and column among the values of an element.
    O(n) for each element of a row.
    """
    for place in range(span[0], span[1]):
        i = U(rows[place])
        total = values.dtype.type(0)
        for k in range(U(offset[i]), U(offset[i + U(1)])):
            e = U(element[k])
            r = U(local_row[k])
            for j in range(U(dofs.shape[1])):
                dof = dofs[e, j]
                if dof >= 0:
                    total += values[e, U(entry[r, j])] * y[U(dof)]
        y[i] = x[i] - inverse[i] * total


# Dofs of an element for which products are written out, at most.
MOST_DOFS = 16


@cache
def unrolled_symmetric(n: int) -> Callable[..., None]:
    """:func:`local_elements` from the upper triangles, without loops [R14 4.2.2].

    Compilers do not unroll a loop over a triangle. Without loops every value of x and y
    stays in a register, which takes two thirds of the time; for more than 16 dofs compiling
    takes too long.
    """
    scope: dict[str, Any] = {"U": U}
    exec(_text_of_symmetric(n), scope)
    kernel: Callable[..., None] = scope["elements"]
    return kernel


def _text_of_symmetric(n: int) -> str:
    lines = [
        "def elements(span, places, dofs, values, x, y):",
        "    zero = x.dtype.type(0)",
        "    for place in range(U(span[0]), U(span[1])):",
        "        e = U(places[place]) if places.size else place",
        f"        at = e * U({n * (n + 1) // 2})",
    ]
    # Load the part of x that the element touches; dofs that are left out count as 0.
    for i in range(n):
        lines += [
            f"        d{i} = dofs[e * U({n}) + U({i})]",
            f"        x{i} = x[U(d{i})] if d{i} >= 0 else zero",
            f"        y{i} = zero",
        ]
    # Each entry above the diagonal is used twice, once for its mirror image.
    entries = [(i, j) for i in range(n) for j in range(i, n)]
    for place, (i, j) in enumerate(entries):
        lines += [f"        k = values[at + U({place})]", f"        y{i} += k * x{j}"]
        if j > i:
            lines.append(f"        y{j} += k * x{i}")
    for i in range(n):
        lines += [f"        if d{i} >= 0:", f"            y[U(d{i})] += y{i}"]
    return "\n".join([*lines, ""])
