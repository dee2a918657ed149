"""Rows of a kernel in the text of a loop: their names, where their values lie, their loads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..kernel.rows import Row
from .shape import LoopShape

Lines = list[str]


def declare(shape: LoopShape) -> Lines:
    """An array of registers for each row; what only takes sums starts from zero."""
    return [
        f"{shape.c_type(int(r.array[1:]))} r{n}[{r.dim}]{' = {}' if r.cleared else ''};"
        for n, r in numbered(shape)
    ]


def find_local(shape: LoopShape) -> Lines:
    """Where an element's points lie in the block's shared memory."""
    return [
        f"{local_name(r)} = local{number_of(r)}[{r.column} * size + {shape.place}];"
        for r in unique(shape, shape.uses_local)
    ]


def find_points(shape: LoopShape) -> Lines:
    """Where an element's points lie among all points."""
    return [
        f"{point_name(r)} = {r.table}[{r.column} * size + {shape.place}];"
        for r in unique(shape, shape.uses_map)
    ]


def load(shape: LoopShape, wanted: Callable[[Row], bool]) -> Lines:
    """The wanted rows' values, from shared or global memory."""
    lines = []
    for n, row in numbered(shape):
        if row.cleared or not wanted(row):
            continue
        if not shape.uses_local(row):
            lines += from_global(shape, row, point_name(row), f"r{n}")
            continue
        for k in range(row.dim):
            value = in_shared(shape, int(row.array[1:]), k, local_name(row))
            lines.append(f"r{n}[{k}] = {value};")
    return lines


def call(shape: LoopShape) -> Lines:
    """The user's function on the rows."""
    return [f"::{shape.function}({', '.join(f'r{n}' for n, _ in numbered(shape))});"]


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
    return f"{k} * {row.stride} + {point}" if row.soa else f"{point} * {row.dim} + {k}"


def in_shared(shape: LoopShape, i: int, k: int, point: str) -> str:
    """A value in shared memory, where components come first, so that threads meet few banks."""
    return f"h{i}[{k} * many{shape.set_of(i)} + {point}]"


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


def used_sets(shape: LoopShape) -> list[int]:
    """The to-sets whose staging lists the text goes through."""
    return sorted({shape.set_of(i) for i in (*shape.staged, *shape.gathered)})


def over_points(s: int) -> Lines:
    """Opens a loop in which threads share the staged points of a set."""
    return [f"for (int i = MP_THREAD; i < many{s}; i += MP_THREADS) {{"]


def numbered(shape: LoopShape) -> list[tuple[int, Row]]:
    """The rows with the numbers of their registers."""
    return list(enumerate(shape.rows))


def unique(shape: LoopShape, wanted: Callable[[Row], bool]) -> list[Row]:
    """One row for each column of a map that is needed."""
    found: dict[tuple[str | None, int], Row] = {}
    for row in shape.rows:
        if wanted(row):
            found.setdefault((row.table, row.column), row)
    return list(found.values())


def indent(lines: Sequence[str]) -> Lines:
    """The lines, one step further in."""
    return [f"  {line}" for line in lines]
