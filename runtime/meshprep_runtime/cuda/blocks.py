"""The body of a kernel whose thread blocks are blocks of the plan [S19, G10 section 10].

Stage, compute, add up in shared memory, commit.
"""

from __future__ import annotations

from .reductions import begin, fold
from .rows import (
    Lines,
    add_atomically,
    add_to_global,
    add_to_matrix,
    adding,
    call,
    declare,
    find_local,
    find_points,
    from_global,
    in_shared,
    indent,
    load,
    local_name,
    numbered,
    over_points,
    point_name,
    store_direct,
    to_global,
    unique,
    used_sets,
)
from .shape import LoopShape


def in_blocks(shape: LoopShape) -> Lines:
    """The whole body.

    Where an element's values lie is asked for before its block stages, so that both are under way
    at once; the values themselves would take too many registers.
    """
    writes = bool(shape.committed or shape.placed)
    takes_turns = shape.strategy.adds == "colours" and writes
    keep = {"colours": _by_colour, "atomics": _add_atomically, "gather": _leave}
    return [
        *_open(shape),
        "const bool active = MP_THREAD < count;",
        *_element(shape),
        *declare(shape),
        *begin(shape),
        *(f"int {local_name(r)} = 0;" for r in unique(shape, shape.uses_local)),
        *(f"Index {point_name(r)} = 0;" for r in unique(shape, shape.uses_map)),
        *(
            ["int colour = -1;", "const int colours = thread_colours[block];"]
            if takes_turns
            else []
        ),
        "if (active) {",
        *([f"  colour = thread_colour[{shape.place}];"] if takes_turns else []),
        *indent([*find_local(shape), *find_points(shape)]),
        "}",
        *_stage(shape),
        "if (active) {",
        *indent(_compute(shape)),
        "}",
        *(keep[shape.strategy.adds](shape) if writes else []),
        *_commit(shape),
        *fold(shape),
    ]


def _open(shape: LoopShape) -> Lines:
    """The block, its points and its shared memory."""
    return [
        "const int block = block_order[first + MP_BLOCK];",
        "const Index begin = block_offset[block];",
        "const int count = (int)(block_offset[block + 1] - begin);",
        "MP_EXPECT(count <= MP_THREADS);",
        *_open_sets(shape),
        *_open_shared(shape),
    ]


def _element(shape: LoopShape) -> Lines:
    if not shape.permutes:
        return ["const Index e = begin + MP_THREAD;"]
    return ["const Index place = begin + MP_THREAD;", "const Index e = active ? order[place] : 0;"]


def _compute(shape: LoopShape) -> Lines:
    """What an element does once its block has staged; elements that take turns wait for theirs."""
    waits = {f"s{i}" for i in shape.turned}
    first = load(shape, lambda row: row.array not in waits)
    return first if waits else [*first, *call(shape), *store_direct(shape)]


def _open_sets(shape: LoopShape) -> Lines:
    lines = []
    for s in used_sets(shape):
        lines += [
            f"const Index from{s} = point_offset{s}[block];",
            f"const int many{s} = (int)(point_offset{s}[block + 1] - from{s});",
        ]
    return lines


def _open_shared(shape: LoopShape) -> Lines:
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


def _stage(shape: LoopShape) -> Lines:
    """Values of the block's points, all sets in one loop: first their numbers, then loads."""
    sets = sorted({shape.set_of(i) for i in shape.staged})
    if not sets:
        return []
    most = f"many{sets[0]}"
    for s in sets[1:]:
        most = f"max(many{s}, {most})"
    stages = [[line for s in sets for line in part(shape, s)] for part in (_numbers, _load, _keep)]
    return [
        f"const int most = {most};",
        "for (int i = MP_THREAD; i < most; i += MP_THREADS) {",
        *indent([line for stage in stages for line in stage]),
        "}",
        "MP_BARRIER();",
    ]


def _mine(shape: LoopShape, s: int) -> list[int]:
    return [i for i in shape.staged if shape.set_of(i) == s]


def _has_role(shape: LoopShape, s: int) -> bool:
    return shape.roles and any(i in shape.committed for i in _mine(shape, s))


def _numbers(shape: LoopShape, s: int) -> Lines:
    """A set's point, and whether the block writes it."""
    lines = [f"Index q{s} = 0;", f"if (i < many{s}) q{s} = points{s}[from{s} + i];"]
    if _has_role(shape, s):
        lines += [f"int is{s} = 0;", f"if (i < many{s}) is{s} = role{s}[from{s} + i];"]
    return lines


def _load(shape: LoopShape, s: int) -> Lines:
    """Its values: of what is added to, too, where no other block has a share in it."""
    lines: Lines = []
    free: Lines = []
    own: Lines = []
    for i in _mine(shape, s):
        lines.append(f"{shape.c_type(i)} v{i}[{shape.slots[i].dim}] = {{}};")
        found = from_global(shape, shape.rows_to(i)[0], f"q{s}", f"v{i}")
        (own if i in shape.committed and shape.roles else free).extend(found)
    lines += [f"if (i < many{s}) {{", *indent(free), "}"] if free else []
    # What another block may be writing is left alone.
    lines += [f"if (is{s} == 1) {{", *indent(own), "}"] if own else []
    return lines


def _keep(shape: LoopShape, s: int) -> Lines:
    kept = [
        f"{in_shared(shape, i, k, 'i')} = v{i}[{k}];"
        for i in _mine(shape, s)
        for k in range(shape.slots[i].dim)
    ]
    return [f"if (i < many{s}) {{", *indent(kept), "}"]


def _by_colour(shape: LoopShape) -> Lines:
    return [
        "MP_EXPECT(colour < colours);",
        "for (int c = 0; c < colours; ++c) {",
        "  if (colour == c) {",
        *indent(indent(_in_turn(shape))),
        *indent(indent(_add(shape, "{at} += {value};"))),
        *indent(indent(add_to_matrix(shape, atomically=shape.commit == "atomics"))),
        "  }",
        "  MP_BARRIER();",
        "}",
    ]


def _in_turn(shape: LoopShape) -> Lines:
    """An element that must see what those before it wrote."""
    if not shape.turned:
        return []
    waits = {f"s{i}" for i in shape.turned}
    stored = [
        f"{in_shared(shape, int(row.array[1:]), k, local_name(row))} = r{n}[{k}];"
        for n, row in numbered(shape)
        if row.array in waits
        for k in range(row.dim)
    ]
    first = load(shape, lambda row: row.array in waits)
    return [*first, *call(shape), *store_direct(shape), *stored]


def _add_atomically(shape: LoopShape) -> Lines:
    added = _add(shape, "MP_ADD({array}, {index}, {value});")
    added += add_to_matrix(shape, atomically=True)
    return ["if (active) {", *indent(added), "}", "MP_BARRIER();"]


def _add(shape: LoopShape, form: str) -> Lines:
    lines = []
    for n, row in numbered(shape):
        if row.adds and not row.placed:
            i = int(row.array[1:])
            for k in range(row.dim):
                at = in_shared(shape, i, k, local_name(row))
                index = at[at.index("[") + 1 : -1]
                lines.append(form.format(at=at, array=f"h{i}", index=index, value=f"r{n}[{k}]"))
    return lines


def _leave(shape: LoopShape) -> Lines:
    """Each thread leaves what it adds at a place of its own [G10 section 10]."""
    inside = []
    for i in shape.gathered:
        mine = [n for n, r in numbered(shape) if r.array == f"s{i}" and r.adds]
        for j, n in enumerate(mine):
            for k in range(shape.slots[i].dim):
                at = f"{k * len(mine) + j} * count + MP_THREAD"
                inside.append(f"h{i}[{at}] = r{n}[{k}];")
    return ["if (active) {", *indent(inside), "}", "MP_BARRIER();"]


def _commit(shape: LoopShape) -> Lines:
    lines = []
    for s in sorted({shape.set_of(i) for i in shape.committed}):
        mine = [i for i in shape.committed if shape.set_of(i) == s]
        inside = [f"const Index p = points{s}[from{s} + i];"]
        inside += [line for i in mine if i in shape.gathered for line in _sum(shape, i, s)]
        plain = [line for i in mine for line in _commit_plainly(shape, i)]
        if shape.commit == "atomics":
            shared = [line for i in mine for line in _commit_atomically(shape, i)]
            inside += [f"const int role = role{s}[from{s} + i];", "if (role == 1) {"]
            inside += [*indent(plain), "} else if (role == 2) {", *indent(shared), "}"]
        elif shape.roles:
            inside += [f"if (role{s}[from{s} + i]) {{", *indent(plain), "}"]
        else:
            inside += plain
        lines += [*over_points(s), *indent(inside), "}"]
    return lines


def _sum(shape: LoopShape, i: int, s: int) -> Lines:
    """What the threads of the block left for one point."""
    dim, many = shape.slots[i].dim, adding(shape, i)
    # Offsets count from the block's first place, and each block has one more of them than points.
    return [
        f"{shape.c_type(i)} t{i}[{dim}] = {{}};",
        f"const Index at{i} = from{s} + block + i;",
        f"const int end{i} = gather_offset{i}[at{i} + 1];",
        f"for (int g = gather_offset{i}[at{i}]; g < end{i}; ++g) {{",
        f"  const int left = gather{i}[begin * {many} + g];",
        *(f"  t{i}[{k}] += h{i}[{k * many} * count + left];" for k in range(dim)),
        "}",
    ]


def _commit_plainly(shape: LoopShape, i: int) -> Lines:
    """What was staged holds the sum already; what was gathered has to be added."""
    row, values = shape.rows_to(i)[0], _values(shape, i)
    if i in shape.gathered:
        return add_to_global(shape, row, "p", values)
    return [*_listed(shape, i), *to_global(shape, row, "p", f"v{i}")]


def _commit_atomically(shape: LoopShape, i: int) -> Lines:
    return [*_listed(shape, i), *add_atomically(shape, shape.rows_to(i)[0], "p", f"v{i}")]


def _listed(shape: LoopShape, i: int) -> Lines:
    values = _values(shape, i)
    return [f"const {shape.c_type(i)} v{i}[{len(values)}] = {{{', '.join(values)}}};"]


def _values(shape: LoopShape, i: int) -> list[str]:
    """What a block has for its point ``i``."""
    dim = shape.slots[i].dim
    if i in shape.gathered:
        return [f"t{i}[{k}]" for k in range(dim)]
    return [in_shared(shape, i, k, "i") for k in range(dim)]
