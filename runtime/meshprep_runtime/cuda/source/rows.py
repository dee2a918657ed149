"""Rows of a kernel in the text of a loop: their names, where their values lie, their loads."""

from collections.abc import Callable, Sequence

import numpy as np

from ...kernel.rows import Row
from .shape import C_TYPES, LOCAL_TYPE, MAP_TYPE, LoopShape, values_at_once

Lines = list[str]


def declare(shape: LoopShape, wanted: Callable[[Row], bool] = lambda row: True) -> Lines:
    """An array of registers for each row; reductions and what is left start from zero."""
    return [
        f"{shape.c_type(int(r.array[1:]))} r{n}[{r.dim}]"
        f"{' = {}' if r.cleared and not r.adds else ''};"
        for n, r in numbered(shape)
        if wanted(r)
    ]


def find_local(shape: LoopShape) -> Lines:
    """Where an element's points lie in the block's shared memory."""
    return _find(shape, shape.local_pieces, "local", LOCAL_TYPE, local_name)


def find_points(shape: LoopShape) -> Lines:
    """Where an element's points lie among all points."""
    return _find(shape, shape.map_pieces, "map", MAP_TYPE, point_name)


def _find(
    shape: LoopShape,
    pieces: Sequence[Sequence[Row]],
    array: str,
    dtype: np.dtype,
    name: Callable[[Row], str],
) -> Lines:
    """Pieces of the element's row, each loaded at once."""
    lines = []
    for i, rows in enumerate(pieces):
        if len(rows) == 1:
            lines.append(f"{name(rows[0])} = {array}{i}[{shape.place}];")
            continue
        many, near = len(rows), f"near_{array}{i}"
        lines += [
            f"{C_TYPES[dtype.str[1:]]} {near}[{many}];",
            f"MP_LOAD({many}, {near}, {array}{i}, MP_AT({shape.place}, {many}));",
            *(f"{name(row)} = {near}[{k}];" for k, row in enumerate(rows)),
        ]
    return lines


def load(shape: LoopShape, wanted: Callable[[Row], bool]) -> Lines:
    """The wanted rows' values, from shared or global memory."""
    lines = []
    for n, row in numbered(shape):
        if row.cleared or not wanted(row):
            continue
        if not shape.uses_local(row):
            lines += from_global(shape, row, point_name(row), f"r{n}")
            continue
        lines += from_shared(shape, int(row.array[1:]), local_name(row), f"r{n}")
    return lines


def call(shape: LoopShape) -> Lines:
    """The user's function on the rows; what only takes sums starts from a zero compilers drop."""
    started = []
    for n, row in numbered(shape):
        none = zero(shape, int(row.array[1:]))
        if row in shape.placed:
            started.append(f"for (int k = 0; k < {row.dim}; ++k) r{n}[k] = {none};")
        elif row.adds:
            started += [f"r{n}[{k}] = {none};" for k in range(row.dim)]
    return [*started, f"::{shape.function}({', '.join(f'r{n}' for n, _ in numbered(shape))});"]


def zero(shape: LoopShape, i: int) -> str:
    """What leaves all that it is added to as it is, minus zero as well."""
    return "-0.0" if shape.slots[i].dtype.kind == "f" else "0"


def store_direct(shape: LoopShape) -> Lines:
    """Rows of the element itself go back."""
    return [
        line
        for n, row in numbered(shape)
        if row.stored and row.table is None
        for line in to_global(shape, row, "e", f"r{n}")
    ]


def from_global(shape: LoopShape, row: Row, point: str, into: str) -> Lines:
    """The values of a point into an array of registers."""
    one = "{values}[{k}] = {array}[{at}];"
    return _moved(shape, row, point, into, one, "MP_LOAD({width}, {values} + {k}, {array}, {at});")


def to_global(shape: LoopShape, row: Row, point: str, values: str) -> Lines:
    """The values of an array of registers to a point."""
    one = "{array}[{at}] = {values}[{k}];"
    many = "MP_STORE({width}, {array}, {at}, {values} + {k});"
    return _moved(shape, row, point, values, one, many)


def _moved(shape: LoopShape, row: Row, point: str, values: str, one: str, many: str) -> Lines:
    """A line a value, or a line for as many as are moved at once."""
    width = shape.width(int(row.array[1:]))
    form = one if width == 1 else many
    return [
        form.format(
            array=row.array, at=in_global(shape, row, point, k), values=values, k=k, width=width
        )
        for k in range(0, row.dim, width)
    ]


def add_to_global(shape: LoopShape, row: Row, point: str, values: Sequence[str]) -> Lines:
    """Values are added to a point, which no other thread has at the time."""
    i = int(row.array[1:])
    if shape.width(i) == 1:
        ats = [in_global(shape, row, point, k) for k in range(row.dim)]
        return [f"{row.array}[{at}] += {v};" for at, v in zip(ats, values, strict=True)]
    return [
        "{",
        *indent([f"{shape.c_type(i)} sum[{row.dim}];"]),
        *indent(from_global(shape, row, point, "sum")),
        *indent([f"sum[{k}] += {value};" for k, value in enumerate(values)]),
        *indent(to_global(shape, row, point, "sum")),
        "}",
    ]


def add_atomically(shape: LoopShape, row: Row, point: str, values: str) -> Lines:
    """An array of registers is added to a point that other threads add to, too."""
    i = int(row.array[1:])
    # CUDA adds several f4 at once, and one of anything else.
    width = shape.width(i) if shape.c_type(i) == "float" else 1
    ats = [(k, in_global(shape, row, point, k)) for k in range(0, row.dim, width)]
    if width == 1:
        return [f"MP_ADD({row.array}, {at}, {values}[{k}]);" for k, at in ats]
    return [f"MP_ADD_ALL({width}, {row.array}, {at}, {values} + {k});" for k, at in ats]


def add_to_matrix(shape: LoopShape, *, atomically: bool) -> Lines:
    """The matrices of elements, each value where its place is; a loop, as they may be large."""
    lines = []
    for n, row in numbered(shape):
        if row in shape.placed:
            add = f"{row.array}[at] += r{n}[k];"
            lines += [
                f"for (int k = 0; k < {row.dim}; ++k) {{",
                f"  const Index at = {row.table}[k * size + {shape.place}];",
                f"  if (at >= 0) {f'MP_ADD({row.array}, at, r{n}[k]);' if atomically else add}",
                "}",
            ]
    return lines


def in_global(shape: LoopShape, row: Row, point: str, k: int) -> str:
    """Where component ``k`` of a point lies in global memory."""
    if row.is_global:
        return str(k)
    if row.dim == 1:
        return point
    return f"{k} * {row.stride} + {point}" if row.soa else f"MP_AT({point}, {row.dim}) + {k}"


def from_shared(shape: LoopShape, i: int, point: str, into: str) -> Lines:
    """The values that a block keeps for one of its points, into an array of registers."""
    return _shared(shape, i, point, into, "{v} = {h};", "MP_LOAD({w}, {into} + {k}, {a}, {at});")


def to_shared(shape: LoopShape, i: int, point: str, values: str) -> Lines:
    """The values of an array of registers to where a block keeps those of a point."""
    return _shared(shape, i, point, values, "{h} = {v};", "MP_STORE({w}, {a}, {at}, {into} + {k});")


def _shared(shape: LoopShape, i: int, point: str, values: str, one: str, many: str) -> Lines:
    slot = shape.slots[i]
    w = values_at_once(slot.dim, slot.dtype.itemsize)
    form = one if w == 1 else many
    return [
        form.format(
            v=f"{values}[{k}]",
            h=in_shared(shape, i, k, point),
            w=w,
            into=values,
            k=k,
            a=f"h{i}",
            at=place_in_shared(shape, i, k, point),
        )
        for k in range(0, slot.dim, w)
    ]


def in_shared(shape: LoopShape, i: int, k: int, point: str) -> str:
    """A value in shared memory."""
    return f"h{i}[{place_in_shared(shape, i, k, point)}]"


def place_in_shared(shape: LoopShape, i: int, k: int, point: str) -> str:
    """Where it lies, in values of its type."""
    row, itemsize = shape.shared_rows[shape.set_of(i)], shape.slots[i].dtype.itemsize
    return f"MP_AT({point}, {row.stride // itemsize}) + {row.offset[i] // itemsize + k}"


def point_name(row: Row) -> str:
    """The variable with a row's point among all; the element itself for direct rows."""
    return "e" if row.table is None else f"p{number_of(row)}_{row.column}"


def local_name(row: Row) -> str:
    """The variable with a row's point among those that its block stages."""
    return f"l{number_of(row)}_{row.column}"


def number_of(row: Row) -> str:
    """The number of a row's map."""
    return str(row.table)[1:]


def adding(shape: LoopShape, i: int) -> int:
    """How many rows add to a dat."""
    return sum(r.adds for r in shape.rows_to(i))


def over_points(shape: LoopShape, many: str) -> Lines:
    """Opens a loop in which the threads of a block share so many points."""
    return [f"MP_LOOP for (int i = MP_THREAD; i < {many}; i += {shape.threads}) {{"]


def by_role(shape: LoopShape, s: int, plain: Lines, shared: Lines) -> Lines:
    """A point of a set is committed plainly, or atomically where other blocks may add to it."""
    if shape.commit == "atomics":
        return [
            f"const int role = role{s}[from{s} + i];",
            "if (role == 1) {",
            *indent(plain),
            "} else if (role == 2) {",
            *indent(shared),
            "}",
        ]
    return [f"if (role{s}[from{s} + i]) {{", *indent(plain), "}"] if shape.roles else plain


def numbered(shape: LoopShape) -> list[tuple[int, Row]]:
    """The rows with the numbers of their registers."""
    return list(enumerate(shape.rows))


def indent(lines: Sequence[str]) -> Lines:
    return [f"  {line}" for line in lines]
