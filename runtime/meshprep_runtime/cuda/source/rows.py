"""The rows of a kernel in the text of a loop: their names, places, loads and stores."""

from collections.abc import Callable, Sequence

import numpy as np

from ...kernel.rows import Row
from .shape import C_TYPES, LOCAL_TYPE, MAP_TYPE, LoopShape, values_at_once

Lines = list[str]


def declare(shape: LoopShape, wanted: Callable[[Row], bool] = lambda row: True) -> Lines:
    """An array of registers for each row; reductions and temporary rows start from zero."""
    lines = []
    for n, r in numbered(shape):
        if wanted(r):
            start = " = {}" if r.cleared and not r.adds else ""
            lines.append(f"{shape.c_type(int(r.array[1:]))} r{n}[{r.dim}]{start};")
    return lines


def find_local(shape: LoopShape) -> Lines:
    """Load the numbers of an element's points among the points of its block."""
    return _load_numbers(
        shape=shape,
        pieces=shape.local_pieces,
        array="local",
        dtype=LOCAL_TYPE,
        name=local_name,
    )


def find_points(shape: LoopShape) -> Lines:
    """Load the numbers of an element's points among all points."""
    return _load_numbers(
        shape=shape, pieces=shape.map_pieces, array="map", dtype=MAP_TYPE, name=point_name
    )


def _load_numbers(
    shape: LoopShape,
    pieces: Sequence[Sequence[Row]],
    array: str,
    dtype: np.dtype,
    name: Callable[[Row], str],
) -> Lines:
    """Load the element's row of a map in pieces, each at once, and name its numbers."""
    lines = []
    for i, rows in enumerate(pieces):
        if len(rows) == 1:
            lines.append(f"{name(rows[0])} = {array}{i}[{shape.place}];")
            continue
        many = len(rows)
        near = f"near_{array}{i}"
        lines += [
            f"{C_TYPES[dtype.str[1:]]} {near}[{many}];",
            f"MP_LOAD({many}, {near}, {array}{i}, MP_AT({shape.place}, {many}));",
            *(f"{name(row)} = {near}[{k}];" for k, row in enumerate(rows)),
        ]
    return lines


def load(shape: LoopShape, wanted: Callable[[Row], bool]) -> Lines:
    """Load the values of the wanted rows from shared or global memory."""
    lines = []
    for n, row in numbered(shape):
        if row.cleared or not wanted(row):
            continue
        if not shape.uses_local(row):
            lines += from_global(shape=shape, row=row, point=point_name(row), into=f"r{n}")
            continue
        lines += from_shared(
            shape=shape, i=int(row.array[1:]), point=local_name(row), into=f"r{n}"
        )
    return lines


def call(shape: LoopShape) -> Lines:
    """Call the user's function on the rows; increments start from zero.

    Compilers leave out the zero and the addition to it.
    """
    lines = []
    for n, row in numbered(shape):
        start = zero_of_sums(shape, int(row.array[1:]))
        # Matrices of elements may be large: clear them in a loop.
        if row in shape.placed:
            lines.append(f"for (int k = 0; k < {row.dim}; ++k) r{n}[k] = {start};")
        elif row.adds:
            lines += [f"r{n}[{k}] = {start};" for k in range(row.dim)]
    arguments = ", ".join(f"r{n}" for n, _ in numbered(shape))
    return [*lines, f"::{shape.function}({arguments});"]


def zero_of_sums(shape: LoopShape, i: int) -> str:
    """The zero from which sums start: for floats -0.0, which leaves -0.0 as it is, too."""
    if shape.slots[i].dtype.kind == "f":
        return "-0.0"
    return "0"


def store_direct(shape: LoopShape) -> Lines:
    """Store the rows of the element itself."""
    lines: Lines = []
    for n, row in numbered(shape):
        if row.stored and row.table is None:
            lines += to_global(shape=shape, row=row, point="e", values=f"r{n}")
    return lines


def from_global(shape: LoopShape, row: Row, point: str, into: str) -> Lines:
    """Load the values of a point into an array of registers."""
    return _move_global(
        shape=shape,
        row=row,
        point=point,
        values=into,
        single="{values}[{k}] = {array}[{at}];",
        vector="MP_LOAD({width}, {values} + {k}, {array}, {at});",
    )


def to_global(shape: LoopShape, row: Row, point: str, values: str) -> Lines:
    """Store the values of an array of registers at a point."""
    return _move_global(
        shape=shape,
        row=row,
        point=point,
        values=values,
        single="{array}[{at}] = {values}[{k}];",
        vector="MP_STORE({width}, {array}, {at}, {values} + {k});",
    )


def _move_global(
    shape: LoopShape, row: Row, point: str, values: str, single: str, vector: str
) -> Lines:
    """A line for each value, or for each vector of values that are moved at once."""
    width = shape.width(int(row.array[1:]))
    form = single if width == 1 else vector
    return [
        form.format(
            array=row.array,
            at=in_global(shape=shape, row=row, point=point, k=k),
            values=values,
            k=k,
            width=width,
        )
        for k in range(0, row.dim, width)
    ]


def add_to_global(shape: LoopShape, row: Row, point: str, values: Sequence[str]) -> Lines:
    """Add values to a point that no other thread has at the time."""
    i = int(row.array[1:])
    # Components that are loaded together are added together.
    if shape.width(i) == 1:
        lines = []
        for k, value in enumerate(values):
            place = in_global(shape=shape, row=row, point=point, k=k)
            lines.append(f"{row.array}[{place}] += {value};")
        return lines
    return [
        "{",
        *indent([f"{shape.c_type(i)} sum[{row.dim}];"]),
        *indent(from_global(shape=shape, row=row, point=point, into="sum")),
        *indent([f"sum[{k}] += {value};" for k, value in enumerate(values)]),
        *indent(to_global(shape=shape, row=row, point=point, values="sum")),
        "}",
    ]


def add_atomically(shape: LoopShape, row: Row, point: str, values: str) -> Lines:
    """Add an array of registers to a point that other threads add to, too."""
    i = int(row.array[1:])
    # CUDA adds several values of f4 at once, and single values of other types.
    width = shape.width(i) if shape.c_type(i) == "float" else 1
    lines = []
    for k in range(0, row.dim, width):
        place = in_global(shape=shape, row=row, point=point, k=k)
        if width == 1:
            lines.append(f"MP_ADD({row.array}, {place}, {values}[{k}]);")
        else:
            lines.append(f"MP_ADD_ALL({width}, {row.array}, {place}, {values} + {k});")
    return lines


def add_to_matrix(shape: LoopShape, *, atomically: bool) -> Lines:
    """Add the matrices of elements in a loop, since they may be large."""
    lines: Lines = []
    for n, row in numbered(shape):
        if row not in shape.placed:
            continue
        if atomically:
            add = f"MP_ADD({row.array}, at, r{n}[k]);"
        else:
            add = f"{row.array}[at] += r{n}[k];"
        lines += [
            f"for (int k = 0; k < {row.dim}; ++k) {{",
            f"  const Index at = {row.table}[k * size + {shape.place}];",
            f"  if (at >= 0) {add}",
            "}",
        ]
    return lines


def in_global(shape: LoopShape, row: Row, point: str, k: int) -> str:
    """The place of component ``k`` of a point in its dat."""
    if row.is_global:
        return str(k)
    if row.dim == 1:
        return point
    if row.soa:
        return f"{k} * {row.stride} + {point}"
    return f"MP_AT({point}, {row.dim}) + {k}"


def from_shared(shape: LoopShape, i: int, point: str, into: str) -> Lines:
    """Load the values that a block has for a point into an array of registers."""
    return _move_shared(
        shape=shape,
        i=i,
        point=point,
        values=into,
        single="{values}[{k}] = {array}[{at}];",
        vector="MP_LOAD({width}, {values} + {k}, {array}, {at});",
    )


def to_shared(shape: LoopShape, i: int, point: str, values: str) -> Lines:
    """Store an array of registers where a block has the values of a point."""
    return _move_shared(
        shape=shape,
        i=i,
        point=point,
        values=values,
        single="{array}[{at}] = {values}[{k}];",
        vector="MP_STORE({width}, {array}, {at}, {values} + {k});",
    )


def _move_shared(
    shape: LoopShape, i: int, point: str, values: str, single: str, vector: str
) -> Lines:
    """A line for each value, or for each vector of values that are moved at once."""
    slot = shape.slots[i]
    width = values_at_once(slot.dim, slot.dtype.itemsize)
    form = single if width == 1 else vector
    return [
        form.format(
            array=f"h{i}",
            at=place_in_shared(shape=shape, i=i, k=k, point=point),
            values=values,
            k=k,
            width=width,
        )
        for k in range(0, slot.dim, width)
    ]


def place_in_shared(shape: LoopShape, i: int, k: int, point: str) -> str:
    """The place of component ``k`` of a point in shared memory, in values of its type."""
    row = shape.shared_rows[shape.set_of(i)]
    itemsize = shape.slots[i].dtype.itemsize
    return f"MP_AT({point}, {row.stride // itemsize}) + {row.offset[i] // itemsize + k}"


def point_name(row: Row) -> str:
    """The variable with the point of a row among all points; ``e`` for direct rows."""
    if row.table is None:
        return "e"
    return f"p{number_of(row)}_{row.column}"


def local_name(row: Row) -> str:
    """The variable with the point of a row among the points of its block."""
    return f"l{number_of(row)}_{row.column}"


def number_of(row: Row) -> str:
    """The number of a row's map."""
    return str(row.table)[1:]


def adding(shape: LoopShape, i: int) -> int:
    """The number of rows that add to a dat."""
    return sum(r.adds for r in shape.rows_to(i))


def over_points(shape: LoopShape, many: str) -> Lines:
    """The head of a loop in which the threads of a block share ``many`` points."""
    return [f"MP_LOOP for (int i = MP_THREAD; i < {many}; i += {shape.threads}) {{"]


def by_role(shape: LoopShape, s: int, plain: Lines, shared: Lines) -> Lines:
    """Commit a point plainly, or by atomics where other blocks may add to it."""
    if shape.commit == "atomics":
        return [
            f"const int role = role{s}[from{s} + i];",
            "if (role == 1) {",
            *indent(plain),
            "} else if (role == 2) {",
            *indent(shared),
            "}",
        ]
    if shape.roles:
        return [f"if (role{s}[from{s} + i]) {{", *indent(plain), "}"]
    return plain


def numbered(shape: LoopShape) -> list[tuple[int, Row]]:
    """The rows with the numbers of their registers."""
    return list(enumerate(shape.rows))


def indent(lines: Sequence[str]) -> Lines:
    return [f"  {line}" for line in lines]
