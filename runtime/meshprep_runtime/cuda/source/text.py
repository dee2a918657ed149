"""The text of a loop's kernels, with macros for all that only a GPU has.

:file:`device.hpp` before the text makes it CUDA C, and :file:`checked.hpp` C++ that runs on
the CPU.
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

NAME = "meshprep_loop"
# The second kernel of strategy "two-step".
SUM_NAME = "meshprep_sum"


def rows_left(shape: LoopShape, i: int) -> list[int]:
    """The rows that add to a slot, in the order of their parts of the temporary array."""
    return [n for n, row in enumerate(shape.rows) if row.array == f"s{i}" and row.adds]


def scratch(shape: LoopShape) -> dict[str, tuple[np.dtype, int]]:
    """Type and number of values of the temporary arrays, by name."""
    if shape.strategy.adds != "apart":
        return {}
    n = shape.plan.sizes[shape.loop.over]
    slots = shape.slots
    return {
        f"t{i}": (slots[i].dtype, n * slots[i].dim * len(rows_left(shape, i)))
        for i in shape.added
    }


def leave(shape: LoopShape, n: int) -> Lines:
    """Store the row of an element in its part of the temporary array.

    The temporary array has the layout of the dat.
    """
    # Arguments that add to one array leave their rows beside each other.
    row = shape.rows[n]
    i = int(row.array[1:])
    parts = rows_left(shape, i)
    width = shape.width(i)
    lines = []
    # Store as many components at once as their alignment allows.
    for k in range(0, row.dim, width):
        address = _place_in_temporary(
            shape=shape,
            i=i,
            row_number=f"({parts.index(n)} * size + e)",
            n_parts=len(parts),
            k=k,
        )
        if width == 1:
            lines.append(f"t{i}[{address}] = r{n}[{k}];")
        else:
            lines.append(f"MP_STORE({width}, t{i}, {address}, r{n} + {k});")
    return lines


def _place_in_temporary(
    shape: LoopShape, i: int, row_number: str, n_parts: int, k: int
) -> str:
    """The place of component ``k`` of a row of the temporary array of slot ``i``."""
    slot = shape.slots[i]
    if slot.dim == 1:
        return row_number
    if slot.soa:
        return f"{k * n_parts} * size + {row_number}"
    return f"{row_number} * {slot.dim} + {k}"


def sum_body(shape: LoopShape, i: int) -> Lines:
    """A thread for each point sums the rows left for it, in the order of the elements."""
    parts = rows_left(shape, i)
    row = shape.rows[parts[0]]
    width = shape.width(i)
    loads = []
    for k in range(0, row.dim, width):
        address = _place_in_temporary(
            shape=shape, i=i, row_number="from", n_parts=len(parts), k=k
        )
        if width == 1:
            loads.append(f"left[{k}] = t{i}[{address}];")
        else:
            loads.append(f"MP_LOAD({width}, left + {k}, t{i}, {address});")
    # Add in the order of the elements, so that the bits of the sum are always the same.
    total = [f"total[{k}]" for k in range(row.dim)]
    c_type = shape.c_type(i)
    inside = [
        f"{c_type} total[{row.dim}] = {{}};",
        "MP_LOOP for (Index g = point_offset[p]; g < point_offset[p + 1]; ++g) {",
        "  const Index from = place[g];",
        f"  {c_type} left[{row.dim}];",
        *indent(loads),
        *indent([f"total[{k}] += left[{k}];" for k in range(row.dim)]),
        "}",
        *add_to_global(shape=shape, row=row, point="p", values=total),
    ]
    return [
        "const Index p = first + (Index)MP_BLOCK * MP_THREADS + MP_THREAD;",
        "if (p < last) {",
        *indent(inside),
        "}",
    ]


def sum_arrays(shape: LoopShape, i: int) -> dict[str, NDArray[Any]]:
    """The rows of the temporary array that each point sums. O(map entries x log)."""
    columns = []
    for n in rows_left(shape, i):
        row = shape.rows[n]
        name = shape.loop.maps[int(str(row.table)[1:])]
        columns.append(shape.plan.maps[name].table[:, row.column])
    points = np.concatenate(columns)
    n_points = shape.plan.sizes[str(shape.slots[i].rows)]
    count = np.bincount(points, minlength=n_points)
    # 32 bits wherever they suffice.
    kind: type[np.integer[Any]] = np.int64
    if points.size <= np.iinfo(np.int32).max:
        kind = np.int32
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


def text(shape: LoopShape, parameters: Sequence[Parameter]) -> str:
    """The kernel of a loop, which follows the macros and the function of the user."""
    if shape.strategy.blocks:
        body = in_blocks(shape)
    else:
        body = _without_blocks(shape)
    return kernel_text(name=NAME, shape=shape, parameters=parameters, body=body)


def kernel_text(
    name: str, shape: LoopShape, parameters: Sequence[Parameter], body: Lines
) -> str:
    """A kernel with this body, below the legend of its names."""
    listed = ",\n    ".join(p.text for p in parameters)
    lines = [*_legend(shape), f"MP_KERNEL({shape.threads}) {name}(\n    {listed}) {{"]
    return "\n".join([*lines, *indent(body), "  MP_RETURN;", "}", ""])


def _legend(shape: LoopShape) -> Lines:
    """Comments that say what the names in the text mean.

    Characters that might end a comment are replaced.
    """
    names = {f"s{i}": s.name for i, s in enumerate(shape.slots)}
    for word, pieces in (("map", shape.map_pieces), ("local", shape.local_pieces)):
        for i, rows in enumerate(pieces):
            names[f"{word}{i}"] = ", ".join(
                f"{shape.loop.maps[int(number_of(r))]} {r.column}" for r in rows
            )
    names |= {str(r.table): f"places in {names[r.array]}" for r in shape.placed}
    names |= {f"points{i}": name for i, name in enumerate(shape.sets)}
    return [f"// {k}: {re.sub(r'[^A-Za-z0-9_>, -]', '_', v)}" for k, v in names.items()]


def _without_blocks(shape: LoopShape) -> Lines:
    """The body of a kernel without blocks: a thread for each element."""
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
    """Store, add or leave the rows that elements write through maps."""
    lines: Lines = []
    for n, row in numbered(shape):
        if row.table is None or row.placed or not row.stored:
            continue
        point = point_name(row)
        values = [f"r{n}[{k}]" for k in range(row.dim)]
        # How rows are added depends on what else may write the point at the time.
        if not row.adds:
            lines += to_global(shape=shape, row=row, point=point, values=f"r{n}")
        elif shape.strategy.adds == "plain":
            lines += add_to_global(shape=shape, row=row, point=point, values=values)
        elif shape.strategy.adds == "apart":
            lines += leave(shape, n)
        else:
            lines += add_atomically(shape=shape, row=row, point=point, values=f"r{n}")
    return lines + add_to_matrix(shape, atomically=shape.strategy.adds == "atomics")
