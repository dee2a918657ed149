"""Nodes and elements; MSH 4.1 has them in blocks, one or more for each entity."""

from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import as_strided

from meshprep_runtime.types.maps import chunks

from ...kernels import Float64s, Int32s, Int64s, UInt8s, helper, kernel
from ...kernels.arrays import ZERO
from ...mesh.cells import node_count_problem
from ..text.tokens import (
    ASCII,
    SHORT,
    SINGLE,
    WIDE,
    Mode,
    skip_blank,
    skip_line,
    take_doubles,
    take_ints,
)
from .numbering import is_range
from .raw import RawCells, RawElements, RawNodes
from .sections import GmshCursor
from .types import DIMS, NAME_OF, NODES

# What a kernel reports besides a position.
FINE, NO_NUMBER, BAD_TYPE, BAD_COUNT, BAD_DIM, BAD_FLAG, BAD_TOTAL, BAD_ROW, BAD_TAGS = (
    range(9)
)
# Dimensions of the entities on which nodes have coordinates of their own, in MSH 2.
PARAMETRIC_DIMS = (1, 2)
# More than the numbers of any element.
SCRATCH = 4096
DOLLAR = ord("$")


def read_nodes(cursor: GmshCursor) -> RawNodes:
    """The body of $Nodes. O(bytes)."""
    if cursor.version == "2.2":
        numbers, points = cursor.rows(cursor.count_line("nodes"), 1, 3, what="nodes")
        return RawNodes(numbers[:, 0], points)
    # MSH 4.1 has a block of nodes for each entity: a head of four numbers, all numbers of
    # nodes, then all coordinates.
    n_blocks, n = read_header(cursor=cursor, what="nodes", text=8, binary=32)
    runs = np.empty((n_blocks, 4), dtype=np.int64)
    label = np.empty(n, dtype=np.int64)
    points = np.empty((n, 3))
    # pages that are never written cost nothing
    parametric = np.zeros((n, 3))
    code, pos, extra = _parse_nodes(
        data=cursor.data,
        pos=cursor.pos,
        mode=cursor.mode,
        runs=runs,
        label=label,
        points=points,
        parametric=parametric,
    )
    _raise_for_code(cursor=cursor, code=code, pos=pos, extra=extra, what="nodes")
    cursor.pos = int(pos)
    # Each node is on the entity of its block, which says also whether nodes have
    # coordinates on the entity.
    dim, tag, flag, count = runs.T
    entity = np.repeat(np.stack([dim, tag]).astype(np.int32), count, axis=1)
    held = (flag != 0) & (dim > 0)
    if not (held & (count > 0)).any():
        return RawNodes(label, points, entity)
    return RawNodes(
        label=label,
        points=points,
        entity=entity,
        parametric=parametric,
        has_parametric=np.repeat(held, count),
    )


def read_parametric_nodes(cursor: GmshCursor) -> RawNodes:
    """The body of $ParametricNodes of MSH 2: nodes, entities and parameters on these."""
    n = cursor.count_line("nodes")
    cursor.need(n, 12, 36, "nodes")
    label = np.empty(n, dtype=np.int64)
    points = np.empty((n, 3))
    entity = np.empty((2, n), dtype=np.int32)
    parametric = np.zeros((n, 3))
    for i in range(n):
        # A record is the node, x, y, z, dimension and number of its entity, and one
        # parameter on a curve, two on a surface.
        start = cursor.pos
        label[i] = cursor.whole("a node")
        points[i] = cursor.doubles(3, "coordinates")
        dim, tag = cursor.ints(2, what="the entity of a node").tolist()
        if not 0 <= dim <= 3 or abs(tag) >= 2**31:
            raise cursor.error(
                f"node {label[i]} is on entity {tag} of dimension {dim}: repair the file",
                start,
            )
        entity[:, i] = dim, tag
        if dim in PARAMETRIC_DIMS:
            parametric[i, :dim] = cursor.doubles(dim, "parametric coordinates")
    return RawNodes(
        label=label,
        points=points,
        entity=entity,
        parametric=parametric,
        has_parametric=np.isin(entity[0], PARAMETRIC_DIMS),
    )


def by_number(nodes: RawNodes) -> RawNodes:
    """The nodes in the order of their numbers where these are 1, 2, ..., n in any order.

    MSH 4.1 stores them entity by entity, so that their order in the file means nothing.
    Others stay as they are. O(n).
    """
    n = nodes.label.size
    if is_range(nodes.label, 1) or not n:
        return nodes
    if nodes.label.min() != 1 or nodes.label.max() != n:
        return nodes
    row_of_number = np.full(n, -1, dtype=np.int64)
    row_of_number[nodes.label - 1] = np.arange(n)
    if row_of_number.min() < 0:
        # a number is there twice
        return nodes
    assert nodes.entity is not None
    parametric = nodes.parametric
    has_parametric = nodes.has_parametric
    return RawNodes(
        label=nodes.label[row_of_number],
        points=nodes.points[row_of_number],
        entity=nodes.entity[:, row_of_number],
        parametric=None if parametric is None else parametric[row_of_number],
        has_parametric=None if has_parametric is None else has_parametric[row_of_number],
    )


def read_header(cursor: GmshCursor, what: str, text: int, binary: int) -> tuple[int, int]:
    """Numbers of blocks and of nodes or elements; neither more than the file can hold."""
    # The section begins with blocks, items, lowest and highest number.
    n_blocks, n = (cursor.count(w) for w in (f"blocks of {what}", what))
    cursor.ints(2, size=True, what="the lowest and highest number")
    cursor.need(n_blocks, 8, 20, f"blocks of {what}")
    cursor.need(n, text, binary, what)
    return n_blocks, n


def _raise_for_code(cursor: GmshCursor, code: int, pos: int, extra: int, what: str) -> None:
    if code == FINE:
        return
    if code == NO_NUMBER:
        raise cursor.no_number(int(pos), f"a number of the {what}")
    if code == BAD_ROW:
        number, found = divmod(int(extra), SCRATCH)
        which = f"element {cursor.word(cursor.behind_blank(int(pos)))}"
        raise cursor.error(node_count_problem(which, NAME_OF[number], found), int(pos))
    texts = {
        BAD_TYPE: f"element type {extra} is not supported by meshprep",
        BAD_COUNT: f"a block declares {extra} {what}, which does not fit this file",
        BAD_DIM: (
            f"a block of {what} has dimension {extra}, which does not fit what it holds"
        ),
        BAD_FLAG: f"a block has the parametric flag {extra}, must be 0 or 1",
        BAD_TOTAL: f"the blocks hold {extra} {what}, fewer than the section declares",
        BAD_TAGS: f"an element declares {extra} tags, which does not fit this file",
    }
    raise cursor.error(f"{texts[code]}: repair the file or remesh", int(pos))


@helper
def _read_block_head(data: UInt8s, pos: int, mode: Mode, row: Int64s) -> int:
    """Read the four numbers at the head of a block."""
    for j in range(4):
        pos = take_ints(
            data=data,
            pos=pos,
            mode=mode,
            width=SHORT if j < 3 else WIDE,
            out=row,
            start=j,
            n=SINGLE,
        )
        if pos < 0:
            break
    return pos


@kernel
def _parse_nodes(
    data: UInt8s,
    pos: int,
    mode: Mode,
    runs: Int64s,
    label: Int64s,
    points: Float64s,
    parametric: Float64s,
) -> tuple[int, int, int]:
    """Fill everything; returns a code, a position and a number for the message."""
    # Typed, so that the kernels below are compiled once.
    done = ZERO
    flat = points.reshape(-1)
    beside = parametric.reshape(-1)
    for b in range(len(runs)):
        start = pos
        pos = _read_block_head(data=data, pos=pos, mode=mode, row=runs[b])
        if pos < 0:
            return NO_NUMBER, pos, 0
        # Refuse what would make the rows below run over the arrays.
        dim = runs[b, 0]
        flag = runs[b, 2]
        count = runs[b, 3]
        if dim < 0 or dim > 3:
            return BAD_DIM, start, dim
        if flag < 0 or flag > 1:
            return BAD_FLAG, start, flag
        if count < 0 or count > label.size - done:
            return BAD_COUNT, start, count
        pos = take_ints(
            data=data,
            pos=pos,
            mode=mode,
            width=WIDE,
            out=label,
            start=done,
            n=count,
        )
        if pos >= 0 and (flag == 0 or dim == 0):
            pos = take_doubles(
                data=data,
                pos=pos,
                mode=mode,
                out=flat,
                start=3 * done,
                stop=3 * (done + count),
            )
        elif pos >= 0:
            # as many coordinates on the entity behind those in space as it has dimensions
            for i in range(done, done + count):
                pos = take_doubles(
                    data=data,
                    pos=pos,
                    mode=mode,
                    out=flat,
                    start=3 * i,
                    stop=3 * (i + 1),
                )
                if pos >= 0:
                    pos = take_doubles(
                        data=data,
                        pos=pos,
                        mode=mode,
                        out=beside,
                        start=3 * i,
                        stop=3 * i + dim,
                    )
                if pos < 0:
                    break
        if pos < 0:
            return NO_NUMBER, pos, 0
        done += count
    if done < label.size:
        return BAD_TOTAL, pos, done
    return FINE, pos, 0


def read_elements(cursor: GmshCursor) -> RawElements:
    """The body of $Elements. O(bytes)."""
    old = cursor.version == "2.2"
    if old:
        n_blocks = n = cursor.count_line("elements")
        cursor.need(n, 6, 8, "elements")
    else:
        n_blocks, n = read_header(cursor=cursor, what="elements", text=4, binary=16)
    # Read every number into one array, and where each element has its tags and nodes.
    columns = np.empty((5, n), dtype=np.int64)
    # Room for as many numbers as the file can hold; pages that are never written cost
    # nothing.
    most = cursor.left // (2 if cursor.mode == ASCII else 4)
    flat = np.empty(most + 1 + SCRATCH, dtype=np.int64)
    code, pos, extra = _parse_elements(
        data=cursor.data,
        pos=cursor.pos,
        mode=cursor.mode,
        old=old,
        n_blocks=n_blocks,
        columns=columns,
        flat=flat,
    )
    _raise_for_code(cursor=cursor, code=code, pos=pos, extra=extra, what="elements")
    # The number of an element stands right before its tags; in a line of MSH 2, type
    # and number of tags are in between.
    line_start, kind, entity, n_tags, first_node = columns
    in_line = old and cursor.mode == ASCII
    other_columns = [
        _numbers_from(flat, first_node - (3 if in_line else 1), 1)[:, 0],
        entity,
    ]
    if old:
        # The first tag of MSH 2 is the physical group, the second the elementary entity;
        # 0, or no such tag, is none.
        physical, other_columns[1], third = (
            np.where(n_tags > i, column, 0)
            for i, column in enumerate(_numbers_from(flat, first_node, 3).T)
        )
        # The third tag counts those that follow; as the last tag, it is the only partition.
        miscounted = np.flatnonzero((n_tags > 3) & (third != n_tags - 3))
        if miscounted.size:
            bad = miscounted[0]
            raise cursor.error(
                f"an element has {n_tags[bad]} tags, of which the third does not count the "
                "rest: repair the file",
                int(line_start[bad]),
            )
        other_columns += [physical, first_node + np.where(n_tags == 3, 2, 3)]
        other_columns.append(np.where(n_tags > 3, third, (n_tags == 3) & (third != 0)))
    cells = []
    # Take the elements apart by type, their nodes as positions.
    for t, rows, nodes in _by_type(
        cursor=cursor, kind=kind, flat=flat, at=first_node + n_tags, place=line_start
    ):
        of_type = [np.ascontiguousarray(column[rows]) for column in other_columns]
        cells.append(RawCells(t, nodes, *of_type))
    cursor.pos = int(pos)
    return RawElements(tuple(cells), flat if old else np.empty(0, np.int64))


def _by_type(
    cursor: GmshCursor, kind: Int64s, flat: Int64s, at: Int64s, place: Int64s
) -> Iterator[tuple[int, Int64s | slice, Int32s]]:
    """For each type, by first appearance: its elements and the positions of their nodes.

    ``at`` is where in ``flat`` the nodes of an element begin, ``place`` where in the file
    it does.
    """
    if cursor.nodes is None:
        raise cursor.error("the section stands before $Nodes: move it behind")
    types = np.flatnonzero(np.bincount(kind)).tolist()
    for t in sorted(types, key=lambda t: int(np.argmax(kind == t))):
        rows: slice | Int64s = slice(None)
        if len(types) > 1:
            rows = np.flatnonzero(kind == t)
        # Look the nodes of one type up at once, as they are equally many an element.
        begin = at[rows]
        nodes = np.empty((begin.size, NODES[t]), np.int32)
        for some in chunks(begin.size):
            nodes[some] = cursor.nodes.find(_numbers_from(flat, begin[some], NODES[t]))
        if nodes.min() < 0:
            row, column = np.argwhere(nodes < 0)[0]
            raise cursor.error(
                f"an element names node {flat[begin[row] + column]}, which is not in "
                "$Nodes: add or remove it",
                int(place[rows][row]),
            )
        yield t, rows, nodes


def _numbers_from(flat: Int64s, at: Int64s, k: int) -> Int64s:
    """The ``k`` numbers from each of these positions on; a view where equidistant."""
    step = int(at[1] - at[0]) if at.size > 1 else k
    if at.size and (at[1:] == at[:-1] + step).all():
        return as_strided(flat[at[0] :], (at.size, k), (8 * step, 8), writeable=False)
    return flat.take(at[:, None] + np.arange(k))


@kernel
def _parse_elements(
    data: UInt8s,
    pos: int,
    mode: Mode,
    old: bool,
    n_blocks: int,
    columns: Int64s,
    flat: Int64s,
) -> tuple[int, int, int]:
    """Read all numbers into ``flat``; returns code, position and a number for the message.

    ``columns`` are, for each element: its place in the file, type, entity, number of tags,
    and where its tags begin in ``flat``, its nodes behind them. In MSH 4.1 a block has a
    head (dimension, entity, type, elements). In MSH 2 every line of text is a block and
    holds its head (label, type, tags); in binary the head is (type, elements, tags).
    """
    i = 0
    end = ZERO
    b = 0
    n = columns.shape[1]
    while b < n_blocks and not (old and i == n):
        start = pos
        count = 1
        entity = 0
        n_tags = 0
        words = 0
        # Read the head of the block: in MSH 2 as text, it is the whole line.
        if not old:
            pos = _read_block_head(data=data, pos=pos, mode=mode, row=flat[end : end + 4])
            entity = flat[end + 1]
            kind = flat[end + 2]
            count = flat[end + 3]
        elif mode == ASCII:
            pos, words = _take_line(
                data=data, pos=pos, out=flat, at=end, least=int(np.int64(3))
            )
            kind = flat[end + 1]
            n_tags = flat[end + 2]
        else:
            pos = take_ints(
                data=data,
                pos=pos,
                mode=mode,
                width=SHORT,
                out=flat,
                start=end,
                n=int(np.int64(3)),
            )
            kind = flat[end]
            count = flat[end + 1]
            n_tags = flat[end + 2]
        # Refuse what would make the rows below run over the arrays.
        if pos < 0:
            return NO_NUMBER, pos, 0
        if kind < 0 or kind >= NODES.size or NODES[kind] == 0:
            return BAD_TYPE, start, kind
        if not old and flat[end] != DIMS[kind]:
            return BAD_DIM, start, flat[end]
        if count < old or count > n - i:
            return BAD_COUNT, start, count
        if n_tags < 0 or n_tags > SCRATCH // 2:
            return BAD_TAGS, start, n_tags
        # Take the numbers of a binary block at once, those of text line by line.
        row = 1 + n_tags + NODES[kind]
        width = SHORT if old else WIDE
        first = 1
        if mode != ASCII:
            start = pos
            words = row
            pos = take_ints(
                data=data,
                pos=pos,
                mode=mode,
                width=width,
                out=flat,
                start=end,
                n=count * row,
            )
        for j in range(i, i + count):
            columns[0, j] = start + (j - i) * row * width
            if mode == ASCII and old:
                first = 3
                row = row + 2
                if words < row and skip_blank(data, pos) == data.size:
                    return NO_NUMBER, -1 - data.size, 0
            elif mode == ASCII:
                columns[0, j] = pos
                pos, words = _take_line(data=data, pos=pos, out=flat, at=end, least=row)
            if words >= 0 and words != row:
                found = min(max(words - row + NODES[kind], 0), SCRATCH - 1)
                return BAD_ROW, skip_blank(data, columns[0, j]), kind * SCRATCH + found
            if pos < 0:
                return NO_NUMBER, pos, 0
            columns[1, j] = kind
            columns[2, j] = entity
            columns[3, j] = n_tags
            columns[4, j] = end + first
            end += row
        i = i + count
        b = b + 1
    if i < n:
        return BAD_TOTAL, pos, i
    return FINE, pos, 0


@helper
def _take_line(data: UInt8s, pos: int, out: Int64s, at: int, least: int) -> tuple[int, int]:
    """Take the numbers of one line of text, or ``least`` where it has fewer.

    An element is a line, or its nodes could be taken from those of another. Returns the
    position behind, and the words of the line, -1 where the file or the section ends in it.
    """
    # Count the words of the line, and take so many numbers, or as many as the head needs.
    line = skip_blank(data, pos)
    stop, words = skip_line(data, line)
    last = stop == data.size or data[np.uint64(line)] == DOLLAR
    pos = take_ints(
        data=data,
        pos=line,
        mode=ASCII,
        width=SHORT,
        out=out,
        start=at,
        n=max(words, least),
    )
    return pos, -1 if last and words < least else words
