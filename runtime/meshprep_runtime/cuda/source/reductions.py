"""Reductions of globals: each block has a value, and a last step joins the values [G12].

There are no atomics, whose order changes, so that results have the same bits in every run.
The last step is :func:`join` on the host, or a kernel with a block for each component on
the device.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernel.bind import Slot
from ...types.loops import Access
from .shape import LoopShape

# How a value ``other`` of another thread is joined. NaN stays, as in the text for a CPU.
JOINS = {
    Access.INC: "{g}[MP_THREAD] += other;",
    Access.MIN: "if (other < {g}[MP_THREAD]) {g}[MP_THREAD] = other; "
    "else if (!({g}[MP_THREAD] <= other)) {g}[MP_THREAD] += other;",
    Access.MAX: "if ({g}[MP_THREAD] < other) {g}[MP_THREAD] = other; "
    "else if (!(other <= {g}[MP_THREAD])) {g}[MP_THREAD] += other;",
}


def begin(shape: LoopShape) -> list[str]:
    """Start minima and maxima of every thread from the global.

    So threads without an element change nothing. Sums start from zero.
    """
    lines: list[str] = []
    for n, row in enumerate(shape.rows):
        if row.reduces and row.access is not Access.INC:
            lines += [f"r{n}[{k}] = {row.array}[{k}];" for k in range(row.dim)]
    return lines


def fold(shape: LoopShape) -> list[str]:
    """Join the values of a block's threads in shared memory, upper half to lower half."""
    lines = []
    for n, row in enumerate(shape.rows):
        if row.reduces:
            for k in range(row.dim):
                lines += _fold(shape=shape, i=int(row.array[1:]), value=f"r{n}[{k}]", k=k)
    return lines


def join(slot: Slot, value: NDArray[Any], partial: NDArray[Any]) -> None:
    """Join the values of all blocks into the global, component by component."""
    parts = partial.reshape(slot.dim, -1)
    if not parts.shape[1]:
        return
    if slot.access is Access.INC:
        value += parts.sum(axis=1, dtype=value.dtype)
    elif slot.access is Access.MIN:
        np.minimum(value, parts.min(axis=1), out=value)
    else:
        np.maximum(value, parts.max(axis=1), out=value)


JOIN_NAME = "meshprep_join"
JOIN_THREADS = 256
JOIN_TEXT = """\
// Brings the values of all blocks into a global: block k of a launch joins component k.
MP_KERNEL({threads}) {name}(
    MP_IN({c_type}) partial{i},
    MP_OUT({c_type}) s{i},
    const Index parts) {{
  MP_SHARED({c_type}, g, 0, MP_THREADS);
  {c_type} mine = {start};
  for (Index at = MP_THREAD; at < parts; at += MP_THREADS) {{
    const {c_type} other = partial{i}[MP_BLOCK * parts + at];
    {mine}
  }}
  g[MP_THREAD] = mine;
  for (int many = MP_THREADS; many > 1; many = (many + 1) / 2) {{
    MP_BARRIER();
    if (MP_THREAD < many / 2) {{
      const {c_type} other = g[MP_THREAD + (many + 1) / 2];
      {tree}
    }}
  }}
  if (MP_THREAD == 0) s{i}[MP_BLOCK] = {end};
  MP_RETURN;
}}
"""


def join_text(slot: Slot, i: int, c_type: str) -> str:
    """The kernel that joins the values of slot ``i`` on a device, as :func:`join` does.

    Sums start from zero, and the global is added at the end, as on the host; minima and
    maxima start from the global in every thread.
    """
    adds = slot.access is Access.INC
    form = JOINS[slot.access]
    return JOIN_TEXT.format(
        i=i,
        name=JOIN_NAME,
        threads=JOIN_THREADS,
        c_type=c_type,
        start="0" if adds else f"s{i}[MP_BLOCK]",
        mine=form.format(g="x").replace("x[MP_THREAD]", "mine"),
        tree=form.format(g="g"),
        end=f"s{i}[MP_BLOCK] + g[0]" if adds else "g[0]",
    )


def _fold(shape: LoopShape, i: int, value: str, k: int) -> list[str]:
    c_type = shape.c_type(i)
    g = f"g{i}"
    return [
        # Wait until no thread needs the shared memory for anything else.
        "MP_BARRIER();",
        "{",
        f"  MP_SHARED({c_type}, {g}, 0, MP_THREADS);",
        f"  {g}[MP_THREAD] = {value};",
        "  MP_LOOP for (int many = MP_THREADS; many > 1; many = (many + 1) / 2) {",
        "    MP_BARRIER();",
        "    if (MP_THREAD < many / 2) {",
        f"      const {c_type} other = {g}[MP_THREAD + (many + 1) / 2];",
        f"      {JOINS[shape.slots[i].access].format(g=g)}",
        "    }",
        "  }",
        f"  if (MP_THREAD == 0) partial{i}[{k} * parts + part + MP_BLOCK] = {g}[0];",
        "}",
    ]
