"""The body of a kernel whose thread blocks are blocks of the plan [S19, G10 section 10].

Stage, compute, add up in shared memory, commit.
"""

from ...kernel.rows import Row
from . import by_points, collapsed
from .reductions import begin, fold
from .rows import (
    Lines,
    add_to_global,
    add_to_matrix,
    adding,
    call,
    declare,
    find_local,
    find_points,
    from_shared,
    indent,
    load,
    local_name,
    numbered,
    place_in_shared,
    point_name,
    store_direct,
    to_global,
    to_shared,
)
from .shape import C_TYPES, LoopShape, unique


def in_blocks(shape: LoopShape) -> Lines:
    """The whole body."""
    moves = collapsed if shape.strategy.collapsed else by_points
    elements = _in_rounds if shape.several else _at_once
    return [
        *_open(shape),
        *elements(shape, moves.stage(shape)),
        # Those that add by colours meet after each colour.
        *(["MP_BARRIER();"] if shape.writes and not shape.takes_turns else []),
        *moves.commit(shape),
        *fold(shape),
    ]


def _at_once(shape: LoopShape, staging: Lines) -> Lines:
    """A thread an element.

    Where an element's values lie is asked for before its block stages, so that both are under way
    at once; the values themselves would take too many registers.
    """
    return [
        *_element(shape),
        *declare(shape),
        *begin(shape),
        *_find(shape),
        *staging,
        *_work(shape),
    ]


def _in_rounds(shape: LoopShape, staging: Lines) -> Lines:
    """Several elements a thread [G12]: in a round a thread has one, and adds what it is for.

    So only reductions stay in registers from one round to the next.
    """
    return [
        *declare(shape, lambda row: row.reduces),
        *begin(shape),
        *staging,
        f"MP_LOOP for (int done = 0; done < count; done += {shape.threads}) {{",
        "  const int own = done + MP_THREAD;",
        *indent(_element(shape)),
        *indent(declare(shape, lambda row: not row.reduces)),
        *indent(_find(shape)),
        *indent(_work(shape)),
        "}",
    ]


def _open(shape: LoopShape) -> Lines:
    """The block, its points and its shared memory."""
    names, piece = shape.head, shape.head_piece
    width = -(-len(names) // piece) * piece
    at = f"MP_AT(first + MP_BLOCK, {width})"
    return [
        f"{C_TYPES[shape.index_type.str[1:]]} head[{width}];",
        *(f"MP_LOAD({piece}, head + {k}, blocks, {at} + {k});" for k in range(0, width, piece)),
        *(_told(name, k) for k, name in enumerate(names)),
        *([] if shape.several else ["MP_EXPECT(count <= MP_THREADS);"]),
        *_open_shared(shape),
    ]


def _told(name: str, k: int) -> str:
    if name.startswith(("begin", "from")):
        return f"const Index {name} = head[{k}];"
    return f"const int {name} = (int)head[{k}];"


def _element(shape: LoopShape) -> Lines:
    """A thread's element, where there is one left for it."""
    active = f"const bool active = {shape.own} < count;"
    if not shape.permutes:
        return [active, f"const Index e = begin + {shape.own};"]
    return [
        active,
        f"const Index place = begin + {shape.own};",
        "const Index e = active ? order[place] : 0;",
    ]


def _find(shape: LoopShape) -> Lines:
    """Its colour, and where its values lie."""
    return [
        *(f"int {local_name(r)};" for r in unique(shape.rows, shape.uses_local)),
        *(f"Index {point_name(r)};" for r in unique(shape.rows, shape.uses_map)),
        *(["int colour = -1;"] if shape.takes_turns else []),
        "if (active) {",
        *([f"  colour = thread_colour[{shape.place}];"] if shape.takes_turns else []),
        *indent([*find_local(shape), *find_points(shape)]),
        "}",
    ]


def _work(shape: LoopShape) -> Lines:
    """The user's function on an element, and what it adds to where its block keeps it."""
    keep = {"colours": _by_colour, "atomics": _add_atomically, "gather": _leave}
    return [
        "if (active) {",
        *indent(_compute(shape)),
        "}",
        *(keep[shape.strategy.adds](shape) if shape.writes else []),
    ]


def _compute(shape: LoopShape) -> Lines:
    """What an element does once its block has staged; elements that take turns wait for theirs."""
    waits = {f"s{i}" for i in shape.turned}
    first = load(shape, lambda row: row.array not in waits)
    return first if waits else [*first, *call(shape), *store_direct(shape)]


def _open_shared(shape: LoopShape) -> Lines:
    """The arrays in shared memory: those of a set lie in one another, row by row."""
    lines, begin = [], "0"
    for s, row in shape.shared_rows.items():
        lines.append(f"const int shared{s} = {begin};")
        for i in row.offset:
            size = f"{row.stride // shape.slots[i].dtype.itemsize} * many{s}"
            lines.append(f"MP_SHARED({shape.c_type(i)}, h{i}, shared{s}, {size});")
        begin = f"shared{s} + {row.stride} * many{s}"
    for i in shape.gathered:
        size = f"{shape.slots[i].dim * adding(shape, i)} * count"
        lines += [
            f"const int left{i} = {begin};",
            f"MP_SHARED({shape.c_type(i)}, h{i}, left{i}, {size});",
        ]
        begin = f"left{i} + (int)sizeof({shape.c_type(i)}) * {size}"
    return lines


def _by_colour(shape: LoopShape) -> Lines:
    return [
        "MP_EXPECT(colour < colours);",
        *_colours(shape),
        "  if (colour == c) {",
        *indent(indent(_in_turn(shape))),
        *indent(indent(_add(shape))),
        *indent(indent(add_to_matrix(shape, atomically=shape.commit == "atomics"))),
        "  }",
        "  MP_BARRIER();",
        "}",
    ]


def _colours(shape: LoopShape) -> Lines:
    """Opens the loop over thread colours; a round of sorted elements has but a few of them."""
    if not (shape.several and shape.strategy.permutes):
        return ["MP_LOOP for (int c = 0; c < colours; ++c) {"]
    return [
        f"const int last = thread_colour[begin + min(done + {shape.threads}, count) - 1];",
        "MP_LOOP for (int c = thread_colour[begin + done]; c <= last; ++c) {",
    ]


def _in_turn(shape: LoopShape) -> Lines:
    """An element that must see what those before it wrote."""
    if not shape.turned:
        return []
    waits = {f"s{i}" for i in shape.turned}
    stored = [
        line
        for n, row in numbered(shape)
        if row.array in waits
        for line in _put(shape, row, f"r{n}")
    ]
    first = load(shape, lambda row: row.array in waits)
    return [*first, *call(shape), *store_direct(shape), *stored]


def _put(shape: LoopShape, row: Row, values: str) -> Lines:
    """A row of an element whose turn it is, to where the next one finds it."""
    if shape.uses_local(row):
        return to_shared(shape, int(row.array[1:]), local_name(row), values)
    return to_global(shape, row, point_name(row), values)


def _add_atomically(shape: LoopShape) -> Lines:
    added = [
        f"MP_ADD(h{i}, {place_in_shared(shape, i, k, local_name(row))}, r{n}[{k}]);"
        for n, row in numbered(shape)
        if row.adds and not row.placed
        for i in (int(row.array[1:]),)
        for k in range(row.dim)
    ]
    added += add_to_matrix(shape, atomically=True)
    return ["if (active) {", *indent(added), "}"]


def _add(shape: LoopShape) -> Lines:
    """What an element adds to its points, which no other thread has at the time."""
    lines = []
    for n, row in numbered(shape):
        if row.placed:
            continue
        if row.adds and not shape.uses_local(row):
            values = [f"r{n}[{k}]" for k in range(row.dim)]
            lines += add_to_global(shape, row, point_name(row), values)
        elif row.adds:
            i, point = int(row.array[1:]), local_name(row)
            lines += [
                "{",
                f"  {shape.c_type(i)} sum[{row.dim}];",
                *indent(from_shared(shape, i, point, "sum")),
                *(f"  sum[{k}] += r{n}[{k}];" for k in range(row.dim)),
                *indent(to_shared(shape, i, point, "sum")),
                "}",
            ]
    return lines


def _leave(shape: LoopShape) -> Lines:
    """Each thread leaves what it adds at a place of its own [G10 section 10]."""
    inside = []
    for i in shape.gathered:
        mine = [n for n, r in numbered(shape) if r.array == f"s{i}" and r.adds]
        for j, n in enumerate(mine):
            for k in range(shape.slots[i].dim):
                at = f"{k * len(mine) + j} * count + {shape.own}"
                inside.append(f"h{i}[{at}] = r{n}[{k}];")
    return ["if (active) {", *indent(inside), "}"]
