"""The body of a kernel whose thread blocks are blocks of the plan [S19, G10 section 10].

A block stages values of its points in shared memory, computes its elements, adds up in
shared memory, and commits the sums to global memory.
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
    if shape.strategy.collapsed:
        staging = collapsed.stage_pieces(shape)
        commit = collapsed.commit_pieces(shape)
    else:
        staging = by_points.stage_points(shape)
        commit = by_points.commit_points(shape)
    if shape.several:
        elements = _elements_in_rounds(shape, staging)
    else:
        elements = _elements_at_once(shape, staging)
    # Threads that add by colours have met after the last colour.
    barrier = ["MP_BARRIER();"] if shape.writes and not shape.takes_turns else []
    return [*_open(shape), *elements, *barrier, *commit, *fold(shape)]


def _elements_at_once(shape: LoopShape, staging: Lines) -> Lines:
    """One element for each thread.

    The points of an element are loaded before its block stages, so that both loads are
    under way at once; the values themselves would take too many registers.
    """
    return [
        *_element_of_thread(shape),
        *declare(shape),
        *begin(shape),
        *_find_colour_and_points(shape),
        *staging,
        *_compute_and_add(shape),
    ]


def _elements_in_rounds(shape: LoopShape, staging: Lines) -> Lines:
    """Several elements for each thread, one in each round [G12].

    A thread adds the increments of its element at the end of the round, so that only
    reductions stay in registers from one round to the next.
    """
    return [
        *declare(shape, lambda row: row.reduces),
        *begin(shape),
        *staging,
        f"MP_LOOP for (int done = 0; done < count; done += {shape.threads}) {{",
        "  const int own = done + MP_THREAD;",
        *indent(_element_of_thread(shape)),
        *indent(declare(shape, lambda row: not row.reduces)),
        *indent(_find_colour_and_points(shape)),
        *indent(_compute_and_add(shape)),
        "}",
    ]


def _open(shape: LoopShape) -> Lines:
    """The numbers of the block, and its shared memory."""
    names = shape.head
    piece = shape.head_piece
    width = -(-len(names) // piece) * piece
    row = f"MP_AT(first + MP_BLOCK, {width})"
    lines = [f"{C_TYPES[shape.index_type.str[1:]]} head[{width}];"]
    pieces = range(0, width, piece)
    lines += [f"MP_LOAD({piece}, head + {k}, blocks, {row} + {k});" for k in pieces]
    lines += [_number_of_block(name, k) for k, name in enumerate(names)]
    if not shape.several:
        lines.append("MP_EXPECT(count <= MP_THREADS);")
    return [*lines, *_open_shared(shape)]


def _number_of_block(name: str, k: int) -> str:
    """The variable of a number in the head of the block."""
    if name.startswith(("begin", "from")):
        return f"const Index {name} = head[{k}];"
    return f"const int {name} = (int)head[{k}];"


def _element_of_thread(shape: LoopShape) -> Lines:
    """The element of a thread, where one is left for it."""
    active = f"const bool active = {shape.own} < count;"
    if not shape.permutes:
        return [active, f"const Index e = begin + {shape.own};"]
    return [
        active,
        f"const Index place = begin + {shape.own};",
        "const Index e = active ? order[place] : 0;",
    ]


def _find_colour_and_points(shape: LoopShape) -> Lines:
    """The colour of the element, and its points."""
    lines = [f"int {local_name(r)};" for r in unique(shape.rows, shape.uses_local)]
    lines += [f"Index {point_name(r)};" for r in unique(shape.rows, shape.uses_map)]
    inside = [*find_local(shape), *find_points(shape)]
    if shape.takes_turns:
        lines.append("int colour = -1;")
        inside = [f"colour = thread_colour[{shape.place}];", *inside]
    return [*lines, "if (active) {", *indent(inside), "}"]


def _compute_and_add(shape: LoopShape) -> Lines:
    """Call the user's function on an element, and add its increments in shared memory."""
    add_by = {
        "colours": _add_by_colour,
        "atomics": _add_atomically_in_shared,
        "gather": _leave_in_shared,
    }
    add = add_by[shape.strategy.adds](shape) if shape.writes else []
    return ["if (active) {", *indent(_compute(shape)), "}", *add]


def _compute(shape: LoopShape) -> Lines:
    """Call the user's function once the block has staged.

    Where elements wait for their turn, only load the rows that do not wait.
    """
    waits = {f"s{i}" for i in shape.turned}
    first = load(shape, lambda row: row.array not in waits)
    if waits:
        return first
    return [*first, *call(shape), *store_direct(shape)]


def _open_shared(shape: LoopShape) -> Lines:
    """The arrays in shared memory; a row of a set has the values of all its dats."""
    lines = []
    begin = "0"
    for s, row in shape.shared_rows.items():
        lines.append(f"const int shared{s} = {begin};")
        for i in row.offset:
            size = f"{row.stride // shape.slots[i].dtype.itemsize} * many{s}"
            lines.append(f"MP_SHARED({shape.c_type(i)}, h{i}, shared{s}, {size});")
        begin = f"shared{s} + {row.stride} * many{s}"
    # Behind the points lie the rows that elements leave to be gathered.
    for i in shape.gathered:
        size = f"{shape.slots[i].dim * adding(shape, i)} * count"
        lines += [
            f"const int left{i} = {begin};",
            f"MP_SHARED({shape.c_type(i)}, h{i}, left{i}, {size});",
        ]
        begin = f"left{i} + (int)sizeof({shape.c_type(i)}) * {size}"
    return lines


def _add_by_colour(shape: LoopShape) -> Lines:
    """Elements add, or take their turn, one thread colour after the other."""
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
    """The head of the loop over thread colours; a round of sorted elements has few."""
    if not (shape.several and shape.strategy.permutes):
        return ["MP_LOOP for (int c = 0; c < colours; ++c) {"]
    return [
        f"const int last = thread_colour[begin + min(done + {shape.threads}, count) - 1];",
        "MP_LOOP for (int c = thread_colour[begin + done]; c <= last; ++c) {",
    ]


def _in_turn(shape: LoopShape) -> Lines:
    """Call the user's function on an element that reads what elements before it wrote."""
    if not shape.turned:
        return []
    waits = {f"s{i}" for i in shape.turned}
    stored: Lines = []
    for n, row in numbered(shape):
        if row.array in waits:
            stored += _store_in_turn(shape, row, f"r{n}")
    first = load(shape, lambda row: row.array in waits)
    return [*first, *call(shape), *store_direct(shape), *stored]


def _store_in_turn(shape: LoopShape, row: Row, values: str) -> Lines:
    """Store a row where the next element reads it."""
    if shape.uses_local(row):
        return to_shared(
            shape=shape, i=int(row.array[1:]), point=local_name(row), values=values
        )
    return to_global(shape=shape, row=row, point=point_name(row), values=values)


def _add_atomically_in_shared(shape: LoopShape) -> Lines:
    """Elements add to shared memory and matrices by atomics."""
    added: Lines = []
    for n, row in numbered(shape):
        if row.placed or not row.adds:
            continue
        i = int(row.array[1:])
        for k in range(row.dim):
            place = place_in_shared(shape=shape, i=i, k=k, point=local_name(row))
            added.append(f"MP_ADD(h{i}, {place}, r{n}[{k}]);")
    added += add_to_matrix(shape, atomically=True)
    return ["if (active) {", *indent(added), "}"]


def _add(shape: LoopShape) -> Lines:
    """Add the increments of an element to points that no other thread has at the time."""
    lines = []
    for n, row in numbered(shape):
        if row.placed:
            continue
        if row.adds and not shape.uses_local(row):
            values = [f"r{n}[{k}]" for k in range(row.dim)]
            lines += add_to_global(
                shape=shape, row=row, point=point_name(row), values=values
            )
        # Load the sum from shared memory, add, and store it: no other thread has the point
        # now.
        elif row.adds:
            i = int(row.array[1:])
            point = local_name(row)
            lines += [
                "{",
                f"  {shape.c_type(i)} sum[{row.dim}];",
                *indent(from_shared(shape=shape, i=i, point=point, into="sum")),
                *(f"  sum[{k}] += r{n}[{k}];" for k in range(row.dim)),
                *indent(to_shared(shape=shape, i=i, point=point, values="sum")),
                "}",
            ]
    return lines


def _leave_in_shared(shape: LoopShape) -> Lines:
    """Each thread leaves its increments in places of its own [G10 section 10]."""
    inside = []
    for i in shape.gathered:
        added = [n for n, r in numbered(shape) if r.array == f"s{i}" and r.adds]
        for j, n in enumerate(added):
            for k in range(shape.slots[i].dim):
                place = f"{k * len(added) + j} * count + {shape.own}"
                inside.append(f"h{i}[{place}] = r{n}[{k}];")
    return ["if (active) {", *indent(inside), "}"]
