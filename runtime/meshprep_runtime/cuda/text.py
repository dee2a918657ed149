"""The one template: CUDA C for any loop and strategy, with macros for what only a GPU has.

The text takes :file:`device.hpp` in front of it for CUDA and :file:`checked.hpp` for the CPU.
"""

import re
from collections.abc import Sequence

from .blocks import in_blocks
from .parameters import Parameter
from .reductions import begin, fold
from .rows import (
    Lines,
    add_atomically,
    add_to_global,
    add_to_matrix,
    call,
    declare,
    find_points,
    indent,
    load,
    number_of,
    numbered,
    point_name,
    store_direct,
    to_global,
)
from .second_step import leave
from .shape import LoopShape, unique

NAME = "meshprep_loop"


def text(shape: LoopShape, parameters: Sequence[Parameter]) -> str:
    """The kernel of a loop: everything after the macros and the function of the user."""
    body = in_blocks(shape) if shape.strategy.blocks else _elements(shape)
    return kernel_text(NAME, shape, parameters, body)


def kernel_text(name: str, shape: LoopShape, parameters: Sequence[Parameter], body: Lines) -> str:
    """A kernel with this body, and which name in it stands for what."""
    listed = ",\n    ".join(p.text for p in parameters)
    lines = [*_legend(shape), f"MP_KERNEL({shape.threads}) {name}(\n    {listed}) {{"]
    return "\n".join([*lines, *indent(body), "  MP_RETURN;", "}", ""])


def _legend(shape: LoopShape) -> Lines:
    """Which name stands for what; other names may hold what would end a comment."""
    names = {f"s{i}": s.name for i, s in enumerate(shape.slots)}
    for word, pieces in (("map", shape.map_pieces), ("local", shape.local_pieces)):
        for i, rows in enumerate(pieces):
            names[f"{word}{i}"] = ", ".join(
                f"{shape.loop.maps[int(number_of(r))]} {r.column}" for r in rows
            )
    names |= {str(r.table): f"places in {names[r.array]}" for r in shape.placed}
    names |= {f"points{i}": name for i, name in enumerate(shape.sets)}
    return [f"// {k}: {re.sub(r'[^A-Za-z0-9_>, -]', '_', v)}" for k, v in names.items()]


def _elements(shape: LoopShape) -> Lines:
    """Without blocks: a thread an element."""
    coloured = shape.strategy.adds == "plain"
    return [
        "const Index place = first + (Index)MP_BLOCK * MP_THREADS + MP_THREAD;",
        *declare(shape),
        *begin(shape),
        "if (place < last) {",
        f"  const Index e = {'order[place]' if coloured else 'place'};",
        *(f"  Index {point_name(r)};" for r in unique(shape.rows, shape.uses_map)),
        *indent(find_points(shape)),
        *indent(load(shape, lambda row: True)),
        *indent(call(shape)),
        *indent(store_direct(shape)),
        *indent(_store_mapped(shape)),
        "}",
        *fold(shape),
    ]


def _store_mapped(shape: LoopShape) -> Lines:
    lines = []
    for n, row in numbered(shape):
        if row.table is None or row.placed or not row.stored:
            continue
        point, values = point_name(row), [f"r{n}[{k}]" for k in range(row.dim)]
        if not row.adds:
            lines += to_global(shape, row, point, f"r{n}")
        elif shape.strategy.adds == "plain":
            lines += add_to_global(shape, row, point, values)
        elif shape.strategy.adds == "apart":
            lines += leave(shape, n)
        else:
            lines += add_atomically(shape, row, point, f"r{n}")
    return lines + add_to_matrix(shape, atomically=shape.strategy.adds == "atomics")
