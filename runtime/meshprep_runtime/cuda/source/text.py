"""The one template: CUDA C for any loop and strategy, with macros for what only a GPU has.

The text takes :file:`device.hpp` in front of it for CUDA and :file:`checked.hpp` for the CPU.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...types.maps import offsets_of
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
from .shape import C_TYPES, LoopShape, unique

SUM_NAME = "meshprep_sum"


def rows_left(shape: LoopShape, i: int) -> list[int]:
    """The rows that add to a slot, in the order of their parts of its temporary array."""
    return [n for n, row in enumerate(shape.rows) if row.array == f"s{i}" and row.adds]


def scratch(shape: LoopShape) -> dict[str, tuple[np.dtype, int]]:
    """Type and number of values of the temporary arrays, by name."""
    if shape.strategy.adds != "apart":
        return {}
    n = shape.plan.sizes[shape.loop.over]
    slots = shape.slots
    return {
        f"t{i}": (slots[i].dtype, n * slots[i].dim * len(rows_left(shape, i))) for i in shape.added
    }


def leave(shape: LoopShape, n: int) -> Lines:
    """An element's row into its part of the temporary array; laid out as the dat it is for."""
    row = shape.rows[n]
    i = int(row.array[1:])
    own = rows_left(shape, i)
    return [
        line
        for k in range(0, row.dim, shape.width(i))
        for line in _leave(shape, i, f"{own.index(n)} * size + e", len(own), f"r{n}", k)
    ]


def _leave(shape: LoopShape, i: int, place: str, many: int, values: str, k: int) -> Lines:
    at, width = _at(shape, i, f"({place})", many, k), shape.width(i)
    if width == 1:
        return [f"t{i}[{at}] = {values}[{k}];"]
    return [f"MP_STORE({width}, t{i}, {at}, {values} + {k});"]


def _at(shape: LoopShape, i: int, place: str, many: int, k: int) -> str:
    slot = shape.slots[i]
    if slot.dim == 1:
        return place
    return f"{k * many} * size + {place}" if slot.soa else f"{place} * {slot.dim} + {k}"


def sum_body(shape: LoopShape, i: int) -> Lines:
    """A thread a point: the rows left for it, in the order of the elements."""
    row = shape.rows[rows_left(shape, i)[0]]
    many, width = len(rows_left(shape, i)), shape.width(i)
    found = []
    for k in range(0, row.dim, width):
        at = _at(shape, i, "from", many, k)
        if width == 1:
            found.append(f"left[{k}] = t{i}[{at}];")
        else:
            found.append(f"MP_LOAD({width}, left + {k}, t{i}, {at});")
    total = [f"total[{k}]" for k in range(row.dim)]
    c_type = shape.c_type(i)
    inside = [
        f"{c_type} total[{row.dim}] = {{}};",
        "MP_LOOP for (Index g = point_offset[p]; g < point_offset[p + 1]; ++g) {",
        "  const Index from = place[g];",
        f"  {c_type} left[{row.dim}];",
        *indent(found),
        *indent([f"total[{k}] += left[{k}];" for k in range(row.dim)]),
        "}",
        *add_to_global(shape, row, "p", total),
    ]
    return [
        "const Index p = first + (Index)MP_BLOCK * MP_THREADS + MP_THREAD;",
        "if (p < last) {",
        *indent(inside),
        "}",
    ]


def sum_arrays(shape: LoopShape, i: int) -> dict[str, NDArray[Any]]:
    """Which rows of the temporary array each point sums. O(map entries x log)."""
    columns = []
    for n in rows_left(shape, i):
        row = shape.rows[n]
        name = shape.loop.maps[int(str(row.table)[1:])]
        columns.append(shape.plan.maps[name].table[:, row.column])
    points = np.concatenate(columns)
    n_points = shape.plan.sizes[str(shape.slots[i].rows)]
    count = np.bincount(points, minlength=n_points)
    # Half the bytes wherever they suffice.
    kind = np.int32 if points.size <= np.iinfo(np.int32).max else np.int64
    return {
        "point_offset": offsets_of(count).astype(kind),
        "place": np.argsort(points, kind="stable").astype(kind),
    }


def sum_parameters(
    shape: LoopShape, i: int, arrays: dict[str, NDArray[Any]]
) -> tuple[Parameter, ...]:
    """The parameters of the second kernel."""
    c_type = shape.c_type(i)
    fixed = [Parameter(n, "in", C_TYPES[a.dtype.str[1:]]) for n, a in arrays.items()]
    dats = [Parameter(f"t{i}", "in", c_type), Parameter(f"s{i}", "out", c_type)]
    sizes = ["size", *([f"n_s{i}"] if shape.slots[i].soa else []), "first", "last"]
    return (*fixed, *dats, *(Parameter(name, "size") for name in sizes))


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
