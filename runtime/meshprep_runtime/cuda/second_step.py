"""The second kernel of the two-step strategy: points sum what elements left for them.

Elements leave what they add in a temporary array, a row for each element of each argument and
index that adds: neither colours nor atomics, for the traffic of that array. The original of LULESH
and miniAero [S19 section 3.1].
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..maps import offsets_of
from .parameters import Parameter
from .rows import Lines, add_to_global, indent
from .shape import C_TYPES, LoopShape

NAME = "meshprep_sum"


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
