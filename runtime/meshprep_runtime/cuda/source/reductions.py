"""Globals that elements add to, lower or raise: a value of each block, which a last step joins.

Neither atomics nor their order come in, so that results are the same bits in every run [G12]. The
last step is :func:`join` on the host, or a kernel of one block a component on the device.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernel.bind import Slot
from ...types.loops import Access
from .shape import LoopShape

# A NaN stays, as in the text for the CPU.
JOINS = {
    Access.INC: "{g}[MP_THREAD] += other;",
    Access.MIN: "if (other < {g}[MP_THREAD]) {g}[MP_THREAD] = other; "
    "else if (!({g}[MP_THREAD] <= other)) {g}[MP_THREAD] += other;",
    Access.MAX: "if ({g}[MP_THREAD] < other) {g}[MP_THREAD] = other; "
    "else if (!(other <= {g}[MP_THREAD])) {g}[MP_THREAD] += other;",
}


def begin(shape: LoopShape) -> list[str]:
    """Every thread starts from the value given, so that idle ones change nothing; sums from 0."""
    return [
        f"r{n}[{k}] = {row.array}[{k}];"
        for n, row in enumerate(shape.rows)
        if row.reduces and row.access is not Access.INC
        for k in range(row.dim)
    ]


def fold(shape: LoopShape) -> list[str]:
    """The threads of a block join their values in shared memory, the upper half with the lower."""
    lines = []
    for n, row in enumerate(shape.rows):
        if row.reduces:
            for k in range(row.dim):
                lines += _fold(shape, int(row.array[1:]), f"r{n}[{k}]", k)
    return lines


def join(slot: Slot, value: NDArray[Any], partial: NDArray[Any]) -> None:
    """Bring the values of all blocks, component by component, into the global."""
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
    """The kernel that does on a device what :func:`join` does on the host, for slot ``i``.

    Sums start from zero and take the global in at the end, as there; least and largest start from
    it in every thread.
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
    c_type, g = shape.c_type(i), f"g{i}"
    return [
        # What lay in shared memory before is no longer needed by any thread.
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
