"""Staging and commit with points and components in one loop [S19 Alg. 1].

Neighbouring threads move neighbouring pieces of a row, so that a warp asks for whole sectors. Dats
in SoA have that anyway: there a thread moves all components of its point.
"""

from .rows import Lines, by_role, from_global, indent, place_in_shared, to_global, to_shared
from .rows import add_atomically as add_row_atomically
from .rows import from_shared as row_from_shared
from .shape import LoopShape


def stage(shape: LoopShape) -> Lines:
    """Values of the block's points, dat by dat."""
    lines = [
        line
        for s, row in shape.shared_rows.items()
        for i in row.offset
        for line in _over(shape, s, i, _stage_one(shape, s, i))
    ]
    return [*lines, "MP_BARRIER();"] if lines else []


def commit(shape: LoopShape) -> Lines:
    """What the block has for its points, to global memory."""
    return [
        line
        for s, mine in shape.commits.items()
        for i in mine
        for line in _over(shape, s, i, _commit_one(shape, s, i))
    ]


def _pieces(shape: LoopShape, i: int) -> int:
    """Into how many pieces a row is dealt out."""
    slot = shape.slots[i]
    return 1 if slot.soa else slot.dim // shape.width(i)


def _over(shape: LoopShape, s: int, i: int, inside: Lines) -> Lines:
    """A loop over the pieces of all points of a set."""
    pieces = _pieces(shape, i)
    opened = [f"MP_LOOP for (int n = MP_THREAD; n < {pieces} * many{s}; n += {shape.threads}) {{"]
    if pieces > 1:
        opened.append(f"  const int i = n / {pieces}, k = n % {pieces} * {shape.width(i)};")
    else:
        opened.append("  const int i = n;")
    return [*opened, *indent(inside), "}"]


def _stage_one(shape: LoopShape, s: int, i: int) -> Lines:
    guarded = shape.roles and i in shape.committed
    many = shape.slots[i].dim // _pieces(shape, i)
    found = _from_global(shape, i)
    if guarded:
        # What another block may be writing is left alone.
        found = [f"if (role{s}[from{s} + i] == 1) {{", *indent(found), "}"]
    return [
        f"const Index p = points{s}[from{s} + i];",
        f"{shape.c_type(i)} v[{many}]{' = {}' if guarded else ''};",
        *found,
        *_to_shared(shape, i),
    ]


def _commit_one(shape: LoopShape, s: int, i: int) -> Lines:
    many = shape.slots[i].dim // _pieces(shape, i)
    return [
        f"const Index p = points{s}[from{s} + i];",
        f"{shape.c_type(i)} v[{many}];",
        *_from_shared(shape, i),
        *by_role(shape, s, _to_global(shape, i), _add_atomically(shape, i)),
    ]


def _at(shape: LoopShape, i: int) -> str:
    return f"MP_AT(p, {shape.slots[i].dim}) + k"


def _from_global(shape: LoopShape, i: int) -> Lines:
    if _pieces(shape, i) == 1:
        return from_global(shape, shape.rows_to(i)[0], "p", "v")
    return _load(shape.width(i), f"s{i}", _at(shape, i))


def _to_global(shape: LoopShape, i: int) -> Lines:
    if _pieces(shape, i) == 1:
        return to_global(shape, shape.rows_to(i)[0], "p", "v")
    return _store(shape.width(i), f"s{i}", _at(shape, i))


def _from_shared(shape: LoopShape, i: int) -> Lines:
    if _pieces(shape, i) == 1:
        return row_from_shared(shape, i, "i", "v")
    return _load(shape.width(i), f"h{i}", f"{place_in_shared(shape, i, 0, 'i')} + k")


def _to_shared(shape: LoopShape, i: int) -> Lines:
    if _pieces(shape, i) == 1:
        return to_shared(shape, i, "i", "v")
    return _store(shape.width(i), f"h{i}", f"{place_in_shared(shape, i, 0, 'i')} + k")


def _add_atomically(shape: LoopShape, i: int) -> Lines:
    if _pieces(shape, i) == 1:
        return add_row_atomically(shape, shape.rows_to(i)[0], "p", "v")
    many, at = shape.width(i), _at(shape, i)
    if many > 1 and shape.c_type(i) == "float":
        return [f"MP_ADD_ALL({many}, s{i}, {at}, v);"]
    return [f"MP_ADD(s{i}, {at} + {k}, v[{k}]);" for k in range(many)]


def _load(many: int, array: str, at: str) -> Lines:
    return [f"v[0] = {array}[{at}];" if many == 1 else f"MP_LOAD({many}, v, {array}, {at});"]


def _store(many: int, array: str, at: str) -> Lines:
    return [f"{array}[{at}] = v[0];" if many == 1 else f"MP_STORE({many}, {array}, {at}, v);"]
