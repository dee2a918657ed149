"""Staging and commit with points and components in one loop [S19 Alg. 1].

Neighbouring threads move neighbouring pieces of a row, so that a warp loads whole sectors.
For SoA dats a thread moves all components of its point, with the same effect.
"""

from .rows import Lines, by_role, from_global, indent, place_in_shared, to_global, to_shared
from .rows import add_atomically as add_row_atomically
from .rows import from_shared as row_from_shared
from .shape import LoopShape


def stage_pieces(shape: LoopShape) -> Lines:
    """Stage values of the block's points, dat by dat."""
    lines: Lines = []
    for s, row in shape.shared_rows.items():
        for i in row.offset:
            inside = _stage_piece(shape, s, i)
            lines += _over_pieces(shape=shape, s=s, i=i, inside=inside)
    if lines:
        return [*lines, "MP_BARRIER();"]
    return []


def commit_pieces(shape: LoopShape) -> Lines:
    """Bring the values that a block has for its points to global memory, dat by dat."""
    lines: Lines = []
    for s, committed in shape.commits.items():
        for i in committed:
            inside = _commit_piece(shape, s, i)
            lines += _over_pieces(shape=shape, s=s, i=i, inside=inside)
    return lines


def _pieces_of_row(shape: LoopShape, i: int) -> int:
    """The number of pieces in which a row of a dat is moved."""
    slot = shape.slots[i]
    return 1 if slot.soa else slot.dim // shape.width(i)


def _over_pieces(shape: LoopShape, s: int, i: int, inside: Lines) -> Lines:
    """A loop over the pieces of all points of a set."""
    pieces = _pieces_of_row(shape, i)
    loop = f"for (int n = MP_THREAD; n < {pieces} * many{s}; n += {shape.threads})"
    if pieces > 1:
        place = f"const int i = n / {pieces}, k = n % {pieces} * {shape.width(i)};"
    else:
        place = "const int i = n;"
    return [f"MP_LOOP {loop} {{", *indent([place, *inside]), "}"]


def _stage_piece(shape: LoopShape, s: int, i: int) -> Lines:
    """Load a piece, and store it in shared memory."""
    values = f"{shape.c_type(i)} v[{shape.slots[i].dim // _pieces_of_row(shape, i)}]"
    loads = _from_global(shape, i)
    if shape.roles and i in shape.committed:
        # Values that another block may be writing are not loaded.
        values += " = {}"
        loads = [f"if (role{s}[from{s} + i] == 1) {{", *indent(loads), "}"]
    return [
        f"const Index p = points{s}[from{s} + i];",
        f"{values};",
        *loads,
        *_to_shared(shape, i),
    ]


def _commit_piece(shape: LoopShape, s: int, i: int) -> Lines:
    """Load a piece from shared memory, and store or add it in global memory."""
    n_values = shape.slots[i].dim // _pieces_of_row(shape, i)
    plain = _to_global(shape, i)
    shared = _add_piece_atomically(shape, i)
    return [
        f"const Index p = points{s}[from{s} + i];",
        f"{shape.c_type(i)} v[{n_values}];",
        *_from_shared(shape, i),
        *by_role(shape=shape, s=s, plain=plain, shared=shared),
    ]


def _place_of_piece(shape: LoopShape, i: int) -> str:
    """The place of a piece in global memory, in values."""
    return f"MP_AT(p, {shape.slots[i].dim}) + k"


def _from_global(shape: LoopShape, i: int) -> Lines:
    if _pieces_of_row(shape, i) == 1:
        return from_global(shape=shape, row=shape.rows_to(i)[0], point="p", into="v")
    return _load_piece(shape.width(i), f"s{i}", _place_of_piece(shape, i))


def _to_global(shape: LoopShape, i: int) -> Lines:
    if _pieces_of_row(shape, i) == 1:
        return to_global(shape=shape, row=shape.rows_to(i)[0], point="p", values="v")
    return _store_piece(shape.width(i), f"s{i}", _place_of_piece(shape, i))


def _from_shared(shape: LoopShape, i: int) -> Lines:
    if _pieces_of_row(shape, i) == 1:
        return row_from_shared(shape=shape, i=i, point="i", into="v")
    return _load_piece(
        shape.width(i), f"h{i}", f"{place_in_shared(shape=shape, i=i, k=0, point='i')} + k"
    )


def _to_shared(shape: LoopShape, i: int) -> Lines:
    if _pieces_of_row(shape, i) == 1:
        return to_shared(shape=shape, i=i, point="i", values="v")
    return _store_piece(
        shape.width(i), f"h{i}", f"{place_in_shared(shape=shape, i=i, k=0, point='i')} + k"
    )


def _add_piece_atomically(shape: LoopShape, i: int) -> Lines:
    if _pieces_of_row(shape, i) == 1:
        return add_row_atomically(
            shape=shape, row=shape.rows_to(i)[0], point="p", values="v"
        )
    width = shape.width(i)
    place = _place_of_piece(shape, i)
    if width > 1 and shape.c_type(i) == "float":
        return [f"MP_ADD_ALL({width}, s{i}, {place}, v);"]
    return [f"MP_ADD(s{i}, {place} + {k}, v[{k}]);" for k in range(width)]


def _load_piece(width: int, array: str, place: str) -> Lines:
    if width == 1:
        return [f"v[0] = {array}[{place}];"]
    return [f"MP_LOAD({width}, v, {array}, {place});"]


def _store_piece(width: int, array: str, place: str) -> Lines:
    if width == 1:
        return [f"{array}[{place}] = v[0];"]
    return [f"MP_STORE({width}, {array}, {place}, v);"]
