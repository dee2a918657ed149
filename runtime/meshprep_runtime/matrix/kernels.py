"""Compiled parts of the products: plain functions, which numba compiles when one first runs.

Indices come unsigned, which spares the test for negative ones. Sums have four parts, so that an
addition need not wait for the one before; the result does not depend on the threads.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..types.maps import Int32s

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
    # as _dot, but the rest without loops, which are guessed wrong where rows differ in length; a
    # helper with conditions counts references to its arrays, eight times as slow
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


def _dot(
    columns: NDArray[np.uint32], values: NDArray[Any], x: NDArray[Any], j: Any, end: Any
) -> Any:
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
    """Add ``K x`` of some elements to y; ``room`` holds ``n`` values. O(n^2) each."""
    for place in range(U(span[0]), U(span[1])):
        e = U(places[place]) if places.size else place
        _gather(dofs, x, room, e * U(n), n)
        for i in range(U(n)):
            dof = dofs[e * U(n) + i]
            # not into room: rows would be taken eight at a time, which their strides make slow
            if dof >= 0:
                y[U(dof)] += _dense(values, room, (e * U(n) + i) * U(n), n)


def _gather(dofs: Int32s, x: NDArray[Any], room: NDArray[Any], at: Any, n: int) -> None:
    for i in range(U(n)):
        dof = dofs[at + i]
        room[i] = x[U(dof)] if dof >= 0 else x.dtype.type(0)


def _dense(values: NDArray[Any], room: NDArray[Any], at: Any, n: int) -> Any:
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
    """``y_i = x_i - inverse_i (A y)_i`` for some rows, which do not see each other."""
    for place in range(span[0], span[1]):
        i = U(rows[place])
        y[i] = x[i] - inverse[i] * _dot(columns, values, y, U(row_ptr[i]), U(row_ptr[i + U(1)]))


MOST_DOFS = 16


@cache
def unrolled_symmetric(n: int) -> Callable[..., None]:
    """:func:`local_elements` from the entries on and above the diagonal, written out [R14 4.2.2].

    Compilers do not unroll a loop over a triangle. Without loops every value of x and y stays in a
    register, which takes two thirds of the time; beyond 16 dofs compiling takes too long.
    """
    scope: dict[str, Any] = {"U": U}
    exec(_text(n), scope)
    made: Callable[..., None] = scope["elements"]
    return made


def _text(n: int) -> str:
    lines = [
        "def elements(span, places, dofs, values, x, y):",
        "    zero = x.dtype.type(0)",
        "    for place in range(U(span[0]), U(span[1])):",
        "        e = U(places[place]) if places.size else place",
        f"        at = e * U({n * (n + 1) // 2})",
    ]
    for i in range(n):
        lines += [
            f"        d{i} = dofs[e * U({n}) + U({i})]",
            f"        x{i} = x[U(d{i})] if d{i} >= 0 else zero",
            f"        y{i} = zero",
        ]
    entries = [(i, j) for i in range(n) for j in range(i, n)]
    for place, (i, j) in enumerate(entries):
        lines += [f"        k = values[at + U({place})]", f"        y{i} += k * x{j}"]
        lines += [f"        y{j} += k * x{i}"] if j > i else []
    for i in range(n):
        lines += [f"        if d{i} >= 0:", f"            y[U(d{i})] += y{i}"]
    return "\n".join([*lines, ""])
