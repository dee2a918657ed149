"""The one template: CUDA C for any loop and strategy, with macros for what only a GPU has.

The text takes :file:`device.hpp` in front of it for CUDA and :file:`checked.hpp` for the CPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ..cpu.rows import Row
from .parameters import Parameter
from .shape import Shape

NAME = "meshprep_loop"
Lines = list[str]


def text(shape: Shape, parameters: Sequence[Parameter]) -> str:
    """The kernel of a loop: everything after the macros and the function of the user."""
    listed = ",\n    ".join(p.text for p in parameters)
    body = _blocks(shape) if shape.strategy.blocks else _elements(shape)
    lines = [*_legend(shape), f"MP_KERNEL({shape.threads}) {NAME}(\n    {listed}) {{"]
    return "\n".join([*lines, *_indent(body), "  MP_RETURN;", "}", ""])


def _legend(shape: Shape) -> Lines:
    """Which name stands for what; other names may hold what would end a comment."""
    names = {f"s{i}": s.name for i, s in enumerate(shape.slots)}
    names |= {f"m{i}": name for i, name in enumerate(shape.loop.maps)}
    names |= {f"points{i}": name for i, name in enumerate(shape.sets)}
    return [f"// {k}: {re.sub(r'[^A-Za-z0-9_> -]', '_', v)}" for k, v in names.items()]


# --- Without blocks: a thread an element ---


def _elements(shape: Shape) -> Lines:
    plain = shape.strategy.adds == "plain"
    return [
        "const Index place = first + (Index)MP_BLOCK * MP_THREADS + MP_THREAD;",
        "if (place < last) {",
        f"  const Index e = {'order[place]' if plain else 'place'};",
        *_indent(_declare(shape)),
        *_indent(_find_points(shape)),
        *_indent(_load(shape)),
        *_indent(_call(shape)),
        *_indent(_store_direct(shape)),
        *_indent(_store_mapped(shape, plain)),
        "}",
    ]


def _store_mapped(shape: Shape, plain: bool) -> Lines:
    lines = []
    for n, row in _numbered(shape):
        if row.table is None or not row.stored:
            continue
        for k in range(row.dim):
            at = f"{_index(shape, row, _point(row), k)}"
            if row.adds and not plain:
                lines.append(f"MP_ADD({row.array}, {at}, r{n}[{k}]);")
            else:
                lines.append(f"{row.array}[{at}] {'+=' if row.adds else '='} r{n}[{k}];")
    return lines


# --- In blocks: stage, compute, add up in shared memory, commit ---


def _blocks(shape: Shape) -> Lines:
    adds = {"colours": _add_by_colour, "atomics": _add_atomically, "gather": _leave}
    coloured = shape.strategy.adds == "colours" and bool(shape.added)
    return [
        "const int block = block_order[first + MP_BLOCK];",
        "const Index begin = block_offset[block];",
        "const int count = (int)(block_offset[block + 1] - begin);",
        "MP_EXPECT(count <= MP_THREADS);",
        *_open_sets(shape),
        *_open_shared(shape),
        *_stage(shape),
        "const bool active = MP_THREAD < count;",
        "const Index e = begin + MP_THREAD;",
        *_declare(shape),
        *(f"int {_local(r)} = 0;" for r in _unique(shape, shape.uses_local)),
        *(["int colour = -1;"] if coloured else []),
        "if (active) {",
        *(["  colour = thread_colour[e];"] if coloured else []),
        *_indent(_find_points(shape)),
        *_indent(_load(shape)),
        *_indent(_call(shape)),
        *_indent(_store_direct(shape)),
        "}",
        *(adds[shape.strategy.adds](shape) if shape.added else []),
        *_commit(shape),
    ]


def _open_sets(shape: Shape) -> Lines:
    lines = []
    for s in _used_sets(shape):
        lines += [
            f"const Index from{s} = point_offset{s}[block];",
            f"const int many{s} = (int)(point_offset{s}[block + 1] - from{s});",
        ]
    return lines


def _open_shared(shape: Shape) -> Lines:
    """The arrays in shared memory, one behind the other; wide types first keeps them aligned."""
    lines, begin = [], "0"
    for i in (*shape.staged, *shape.gathered):
        dim, c_type = shape.slots[i].dim, shape.c_type(i)
        size = f"{dim} * many{shape.set_of(i)}"
        if i in shape.gathered:
            size = f"{dim * _adding(shape, i)} * count"
        lines += [
            f"const int begin{i} = {begin};",
            f"MP_SHARED({c_type}, h{i}, begin{i}, {size});",
        ]
        begin = f"begin{i} + (int)sizeof({c_type}) * {size}"
    return lines


def _stage(shape: Shape) -> Lines:
    lines = []
    for s in sorted({shape.set_of(i) for i in shape.staged}):
        inside = []
        for i in (i for i in shape.staged if shape.set_of(i) == s):
            for k in range(shape.slots[i].dim):
                value = f"{shape.c_type(i)}(0)"
                if i not in shape.added:
                    value = f"s{i}[{_index(shape, shape.rows_to(i)[0], 'p', k)}]"
                inside.append(f"{_shared(shape, i, k, 'i')} = {value};")
        zeros_only = all(i in shape.added for i in shape.staged if shape.set_of(i) == s)
        point = [] if zeros_only else [f"const Index p = points{s}[from{s} + i];"]
        lines += [*_over_points(s), *_indent([*point, *inside]), "}"]
    return [*lines, "MP_BARRIER();"] if lines else []


def _add_by_colour(shape: Shape) -> Lines:
    return [
        "const int colours = thread_colours[block];",
        "MP_EXPECT(colour < colours);",
        "for (int c = 0; c < colours; ++c) {",
        "  if (colour == c) {",
        *_indent(_indent(_add(shape, "{at} += {value};"))),
        "  }",
        "  MP_BARRIER();",
        "}",
    ]


def _add_atomically(shape: Shape) -> Lines:
    added = _add(shape, "MP_ADD({array}, {index}, {value});")
    return ["if (active) {", *_indent(added), "}", "MP_BARRIER();"]


def _add(shape: Shape, form: str) -> Lines:
    lines = []
    for n, row in _numbered(shape):
        if row.adds:
            i = int(row.array[1:])
            for k in range(row.dim):
                at = _shared(shape, i, k, _local(row))
                index = at[at.index("[") + 1 : -1]
                lines.append(form.format(at=at, array=f"h{i}", index=index, value=f"r{n}[{k}]"))
    return lines


def _leave(shape: Shape) -> Lines:
    """Each thread leaves what it adds at a place of its own [G10 section 10]."""
    inside = []
    for i in shape.gathered:
        mine = [n for n, r in _numbered(shape) if r.array == f"s{i}" and r.adds]
        for j, n in enumerate(mine):
            for k in range(shape.slots[i].dim):
                at = f"{k * len(mine) + j} * count + MP_THREAD"
                inside.append(f"h{i}[{at}] = r{n}[{k}];")
    return ["if (active) {", *_indent(inside), "}", "MP_BARRIER();"]


def _commit(shape: Shape) -> Lines:
    lines = []
    for s in sorted({shape.set_of(i) for i in shape.added}):
        mine = [i for i in shape.added if shape.set_of(i) == s]
        inside = [f"const Index p = points{s}[from{s} + i];"]
        inside += [line for i in mine if i in shape.gathered for line in _sum(shape, i, s)]
        plain = [line for i in mine for line in _commit_slot(shape, i, "s{i}[{at}] += {value};")]
        if shape.commit == "atomics":
            form = "MP_ADD(s{i}, {at}, {value});"
            shared = [line for i in mine for line in _commit_slot(shape, i, form)]
            inside += [f"const int role = role{s}[from{s} + i];", "if (role == 1) {"]
            inside += [*_indent(plain), "} else if (role == 2) {", *_indent(shared), "}"]
        elif shape.roles:
            inside += [f"if (role{s}[from{s} + i]) {{", *_indent(plain), "}"]
        else:
            inside += plain
        lines += [*_over_points(s), *_indent(inside), "}"]
    return lines


def _sum(shape: Shape, i: int, s: int) -> Lines:
    """What the threads of the block left for one point."""
    dim, many = shape.slots[i].dim, _adding(shape, i)
    start = f"gather_offset{i}[from{s} + i]"
    return [
        f"{shape.c_type(i)} t{i}[{dim}] = {{}};",
        f"for (Index g = {start}; g < gather_offset{i}[from{s} + i + 1]; ++g) {{",
        f"  const int left = gather{i}[g];",
        *(f"  t{i}[{k}] += h{i}[{k * many} * count + left];" for k in range(dim)),
        "}",
    ]


def _commit_slot(shape: Shape, i: int, form: str) -> Lines:
    row = next(r for r in shape.rows_to(i) if r.adds)
    lines = []
    for k in range(row.dim):
        value = f"t{i}[{k}]" if i in shape.gathered else _shared(shape, i, k, "i")
        lines.append(form.format(i=i, at=_index(shape, row, "p", k), value=value))
    return lines


# --- Rows ---


def _declare(shape: Shape) -> Lines:
    return [
        f"{shape.c_type(int(r.array[1:]))} r{n}[{r.dim}]{' = {}' if r.adds else ''};"
        for n, r in _numbered(shape)
    ]


def _find_points(shape: Shape) -> Lines:
    local = [
        f"{_local(r)} = local{_number(r)}[{r.column} * size + e];"
        for r in _unique(shape, shape.uses_local)
    ]
    mapped = [
        f"const Index {_point(r)} = {r.table}[{r.column} * size + e];"
        for r in _unique(shape, shape.uses_map)
    ]
    return local + mapped


def _load(shape: Shape) -> Lines:
    lines = []
    for n, row in _numbered(shape):
        if row.adds:
            continue
        for k in range(row.dim):
            if shape.uses_local(row):
                value = _shared(shape, int(row.array[1:]), k, _local(row))
            else:
                value = f"{row.array}[{_index(shape, row, _point(row), k)}]"
            lines.append(f"r{n}[{k}] = {value};")
    return lines


def _call(shape: Shape) -> Lines:
    return [f"::{shape.function}({', '.join(f'r{n}' for n, _ in _numbered(shape))});"]


def _store_direct(shape: Shape) -> Lines:
    return [
        f"{row.array}[{_index(shape, row, 'e', k)}] = r{n}[{k}];"
        for n, row in _numbered(shape)
        if row.stored and row.table is None
        for k in range(row.dim)
    ]


# --- Names and places ---


def _index(shape: Shape, row: Row, point: str, k: int) -> str:
    """Where component ``k`` of a point lies in global memory."""
    if row.is_global:
        return str(k)
    if row.dim == 1:
        return point
    return f"{k} * {row.stride} + {point}" if row.soa else f"{point} * {row.dim} + {k}"


def _shared(shape: Shape, i: int, k: int, point: str) -> str:
    """A value in shared memory, where components come first, so that threads meet few banks."""
    return f"h{i}[{k} * many{shape.set_of(i)} + {point}]"


def _point(row: Row) -> str:
    return "e" if row.table is None else f"p{_number(row)}_{row.column}"


def _local(row: Row) -> str:
    return f"l{_number(row)}_{row.column}"


def _number(row: Row) -> str:
    return str(row.table)[1:]


def _adding(shape: Shape, i: int) -> int:
    return sum(r.adds for r in shape.rows_to(i))


def _used_sets(shape: Shape) -> list[int]:
    return sorted({shape.set_of(i) for i in (*shape.staged, *shape.gathered)})


def _over_points(s: int) -> Lines:
    return [f"for (int i = MP_THREAD; i < many{s}; i += MP_THREADS) {{"]


def _numbered(shape: Shape) -> list[tuple[int, Row]]:
    return list(enumerate(shape.rows))


def _unique(shape: Shape, wanted: Callable[[Row], bool]) -> list[Row]:
    """One row for each column of a map that is needed."""
    found: dict[tuple[str | None, int], Row] = {}
    for row in shape.rows:
        if wanted(row):
            found.setdefault((row.table, row.column), row)
    return list(found.values())


def _indent(lines: Sequence[str]) -> Lines:
    return [f"  {line}" for line in lines]
