"""The product of half of a symmetric element's matrix without loops [R14 4.2.2].

Compilers do not unroll a loop over a triangle. Written out, every value of x and y stays in a
register, which takes two thirds of the time of the loops; beyond 16 dofs compiling takes too long.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from .kernels import U

MOST_DOFS = 16


@cache
def symmetric_elements(n: int) -> Callable[..., None]:
    """:func:`kernels.symmetric_elements` for elements of ``n`` dofs."""
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
