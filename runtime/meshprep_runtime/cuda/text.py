"""The one template: CUDA C for any loop and strategy, with macros for what only a GPU has.

The text takes :file:`device.hpp` in front of it for CUDA and :file:`checked.hpp` for the CPU.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .parameters import Parameter
from .reductions import begin, fold
from .rows import (
    Lines,
    adding,
    call,
    declare,
    find_points,
    in_global,
    in_shared,
    indent,
    load,
    local_name,
    numbered,
    over_points,
    point_name,
    store_direct,
    unique,
    used_sets,
)
from .shape import Shape

NAME = "meshprep_loop"


def text(shape: Shape, parameters: Sequence[Parameter]) -> str:
    """The kernel of a loop: everything after the macros and the function of the user."""
    listed = ",\n    ".join(p.text for p in parameters)
    body = _blocks(shape) if shape.strategy.blocks else _elements(shape)
    lines = [*_legend(shape), f"MP_KERNEL({shape.threads}) {NAME}(\n    {listed}) {{"]
    return "\n".join([*lines, *indent(body), "  MP_RETURN;", "}", ""])


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
        *declare(shape),
        *begin(shape),
        "if (place < last) {",
        f"  const Index e = {'order[place]' if plain else 'place'};",
        *indent(find_points(shape)),
        *indent(load(shape)),
        *indent(call(shape)),
        *indent(store_direct(shape)),
        *indent(_store_mapped(shape, plain)),
        "}",
        *fold(shape),
    ]


def _store_mapped(shape: Shape, plain: bool) -> Lines:
    lines = []
    for n, row in numbered(shape):
        if row.table is None or not row.stored:
            continue
        for k in range(row.dim):
            at = f"{in_global(shape, row, point_name(row), k)}"
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
        *declare(shape),
        *begin(shape),
        *(f"int {local_name(r)} = 0;" for r in unique(shape, shape.uses_local)),
        *(["int colour = -1;"] if coloured else []),
        "if (active) {",
        *(["  colour = thread_colour[e];"] if coloured else []),
        *indent(find_points(shape)),
        *indent(load(shape)),
        *indent(call(shape)),
        *indent(store_direct(shape)),
        "}",
        *(adds[shape.strategy.adds](shape) if shape.added else []),
        *_commit(shape),
        *fold(shape),
    ]


def _open_sets(shape: Shape) -> Lines:
    lines = []
    for s in used_sets(shape):
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
            size = f"{dim * adding(shape, i)} * count"
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
                    value = f"s{i}[{in_global(shape, shape.rows_to(i)[0], 'p', k)}]"
                inside.append(f"{in_shared(shape, i, k, 'i')} = {value};")
        zeros_only = all(i in shape.added for i in shape.staged if shape.set_of(i) == s)
        point = [] if zeros_only else [f"const Index p = points{s}[from{s} + i];"]
        lines += [*over_points(s), *indent([*point, *inside]), "}"]
    return [*lines, "MP_BARRIER();"] if lines else []


def _add_by_colour(shape: Shape) -> Lines:
    return [
        "const int colours = thread_colours[block];",
        "MP_EXPECT(colour < colours);",
        "for (int c = 0; c < colours; ++c) {",
        "  if (colour == c) {",
        *indent(indent(_add(shape, "{at} += {value};"))),
        "  }",
        "  MP_BARRIER();",
        "}",
    ]


def _add_atomically(shape: Shape) -> Lines:
    added = _add(shape, "MP_ADD({array}, {index}, {value});")
    return ["if (active) {", *indent(added), "}", "MP_BARRIER();"]


def _add(shape: Shape, form: str) -> Lines:
    lines = []
    for n, row in numbered(shape):
        if row.adds:
            i = int(row.array[1:])
            for k in range(row.dim):
                at = in_shared(shape, i, k, local_name(row))
                index = at[at.index("[") + 1 : -1]
                lines.append(form.format(at=at, array=f"h{i}", index=index, value=f"r{n}[{k}]"))
    return lines


def _leave(shape: Shape) -> Lines:
    """Each thread leaves what it adds at a place of its own [G10 section 10]."""
    inside = []
    for i in shape.gathered:
        mine = [n for n, r in numbered(shape) if r.array == f"s{i}" and r.adds]
        for j, n in enumerate(mine):
            for k in range(shape.slots[i].dim):
                at = f"{k * len(mine) + j} * count + MP_THREAD"
                inside.append(f"h{i}[{at}] = r{n}[{k}];")
    return ["if (active) {", *indent(inside), "}", "MP_BARRIER();"]


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
            inside += [*indent(plain), "} else if (role == 2) {", *indent(shared), "}"]
        elif shape.roles:
            inside += [f"if (role{s}[from{s} + i]) {{", *indent(plain), "}"]
        else:
            inside += plain
        lines += [*over_points(s), *indent(inside), "}"]
    return lines


def _sum(shape: Shape, i: int, s: int) -> Lines:
    """What the threads of the block left for one point."""
    dim, many = shape.slots[i].dim, adding(shape, i)
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
        value = f"t{i}[{k}]" if i in shape.gathered else in_shared(shape, i, k, "i")
        lines.append(form.format(i=i, at=in_global(shape, row, "p", k), value=value))
    return lines
