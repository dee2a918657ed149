"""Whether a written file, read back, is the mesh that was written."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..mesh import Dat, IndexList, Mesh, Tag


def difference(
    expected: Mesh, found: Mesh, *, digits: int = 17, partial: bool = False
) -> str | None:
    """The first difference in words, or None where the meshes are equal.

    Sets of cells, tables and their order, coordinates, dats, tags with their names, and
    lists. Integer and floating types may differ in width, not in kind or value; a missing
    value equals NaN, a missing tag equals one without groups.

    Coordinates and floating data keep ``digits`` significant digits; 17 means exactly. With
    ``partial`` losses were accepted: what ``found`` lacks is no difference, the cells of
    the highest dimension and the coordinates excepted.
    """
    checks = (
        _compare_sets,
        _compare_tables,
        _compare_coordinates,
        _compare_dats,
        _compare_tags,
        _compare_lists,
    )
    found_differences = (c(expected, found, digits, partial) for c in checks)
    return next(itertools.chain.from_iterable(found_differences), None)


def _compare_sets(a: Mesh, b: Mesh, digits: int, partial: bool) -> Iterator[str]:
    if not a.cell_sets and not b.cell_sets:
        yield from _untyped_sets(a, b)
        return
    if a.size("nodes") != b.size("nodes"):
        yield f"{a.size('nodes')} nodes became {b.size('nodes')}"
    types = {s.name: s.cell_type for s in a.cell_sets}
    names = list(types) + [s.name for s in b.cell_sets if s.name not in types]
    for name in names:
        top = name == "cells" or ("cells" in a.sets and name in a.sets["cells"].parts)
        if partial and name not in b.sets and not top:
            continue
        if name not in b.sets or name not in a.sets:
            yield f"set '{name}' is {'missing' if name in a.sets else 'new'}"
        elif b.sets[name].cell_type != types[name]:
            yield f"the cells of set '{name}' changed type"
    if "cells" in a.sets and a.sets["cells"].parts != b.sets["cells"].parts:
        parts = " and ".join(b.sets["cells"].parts)
        yield f"the cell types stand in another order ({parts})"


def _untyped_sets(a: Mesh, b: Mesh) -> Iterator[str]:
    """Meshes of sets and maps alone: all of them count."""
    for what, one, other in (("set", a.sets, b.sets), ("map", a.maps, b.maps)):
        for name in dict.fromkeys([*one, *other]):
            if name not in one or name not in other:
                yield f"{what} '{name}' is {'missing' if name in one else 'new'}"
    for name, s in a.sets.items():
        if name in b.sets and b.size(name) != s.size:
            yield f"set '{name}' of {s.size} elements has {b.size(name)} now"


def _compare_tables(a: Mesh, b: Mesh, digits: int, partial: bool) -> Iterator[str]:
    for s in b.cell_sets:
        first = a.cell_map(s.name).table
        other = b.cell_map(s.name).table
        if first.shape != other.shape:
            yield f"set '{s.name}' of {first.shape} nodes became {other.shape}"
        elif not np.array_equal(first, other):
            row = int(np.flatnonzero((first != other).any(axis=1))[0])
            yield f"cell {row + 1} of set '{s.name}' changed its nodes"
    if b.cell_sets:
        return
    for name, m in b.maps.items():
        same = (m.from_set, m.to_set) == (a.map(name).from_set, a.map(name).to_set)
        if not same or not np.array_equal(a.map(name).table, m.table):
            yield f"map '{name}' changed"


def _compare_coordinates(a: Mesh, b: Mesh, digits: int, partial: bool) -> Iterator[str]:
    first = a.coordinates
    other = b.coordinates
    if first is None or other is None:
        if first is not other:
            yield "the coordinates are missing"
        return
    width = max(first.shape[1], other.shape[1])
    row = _first_unequal(
        _padded_to_space(first, width), _padded_to_space(other, width), digits
    )
    if row is not None:
        yield f"node {row + 1} moved"


def _padded_to_space(points: NDArray, width: int) -> NDArray:
    """Coordinates padded with zeros: a plane mesh equals the same mesh in 3-D."""
    if points.shape[1] == width:
        return points
    return np.pad(points, ((0, 0), (0, width - points.shape[1])))


def _first_unequal(one: NDArray, other: NDArray, digits: int) -> int | None:
    # records of the same bytes are equal, NaN among them
    records = one.dtype == other.dtype and one.dtype.kind == "V" and not one.dtype.hasobject
    if np.array_equal(one, other) or (records and one.tobytes() == other.tobytes()):
        return None
    equal = one == other
    if one.dtype.kind in "fc" and other.dtype.kind in "fc":
        equal |= np.isnan(one) & np.isnan(other)
        if digits < 17:
            equal |= np.abs(one - other) <= 10.0 ** (1 - digits) * np.abs(one)
    bad = np.flatnonzero(~equal.reshape(len(one), -1).all(axis=1))
    if bad.size:
        return int(bad[0])
    return None


def _compare_dats(a: Mesh, b: Mesh, digits: int, partial: bool) -> Iterator[str]:
    first = _by_key(_comparable_dats(a))
    other = _by_key(_comparable_dats(b))
    for key in dict.fromkeys([*first, *other]):
        text = f"values '{key[1]}' on '{key[0]}'"
        if key not in other:
            if not partial and not _says_nothing(first[key]):
                yield f"{text} are missing"
        elif key not in first:
            if not _says_nothing(other[key]):
                yield f"{text} are new"
        else:
            yield from _one_dat(
                text=text, a=first[key], b=other[key], n=a.size(key[0]), digits=digits
            )


def _comparable_dats(mesh: Mesh) -> Iterator[Dat]:
    stored = _stored(mesh)
    return (
        d
        for d in mesh.dats
        if d.set in stored and (d.name, d.set) != ("coordinates", "nodes")
    )


def _by_key(items: Iterable[Any]) -> dict[tuple[str, str, int], Any]:
    """Dats or lists by set and name; those that repeat are counted."""
    out: dict[tuple[str, str, int], Any] = {}
    for i in items:
        same = sum(k[:2] == (i.set, i.name) for k in out)
        out[i.set, i.name, same] = i
    return out


def _stored(mesh: Mesh) -> set[str]:
    if mesh.cell_sets:
        return {"nodes", *(s.name for s in mesh.cell_sets)}
    return set(mesh.sets)


def _says_nothing(d: Dat) -> bool:
    """Whether these values say nothing: none, all missing, or the numbers 1..n."""
    if d.name == "label":
        return np.array_equal(d.values, np.arange(1, d.values.size + 1))
    return d.values.size == 0 or bool(
        d.values.dtype.kind == "f" and np.isnan(d.values).all()
    )


def _one_dat(text: str, a: Dat, b: Dat, n: int, digits: int) -> Iterator[str]:
    kinds = [v.dtype.kind.replace("u", "i") for v in (a.values, b.values)]
    if kinds[0] != kinds[1]:
        yield f"{text} changed from {a.values.dtype} to {b.values.dtype}"
        return
    first = _dense(a, n)
    other = _dense(b, n)
    if first.shape != other.shape:
        yield f"{text} changed shape from {a.values.shape} to {b.values.shape}"
        return
    row = _first_unequal(first, other, digits)
    if row is not None:
        yield f"{text} changed at element {row + 1}"


def _dense(d: Dat, n: int) -> NDArray:
    """Values of every element, NaN (0 for integers) if missing; scalars as one column."""
    if d.values.ndim == 1:
        values = d.values[:, None]
    else:
        values = d.values
    if d.index is None:
        return values
    out = np.full(
        (n, *values.shape[1:]), np.nan if values.dtype.kind == "f" else 0, values.dtype
    )
    out[d.index] = values
    return out


def _compare_tags(a: Mesh, b: Mesh, digits: int, partial: bool) -> Iterator[str]:
    first = _tags_in_file(a)
    other = _tags_in_file(b)
    for key in dict.fromkeys([*first, *other]):
        text = f"groups '{key[1]}' on '{key[0]}'"
        if key not in other or key not in first:
            if key in first:
                lone = first[key]
            else:
                lone = other[key]
            if lone.first_ids().any() and not (partial and key in first):
                yield f"{text} are {'missing' if key in first else 'new'}"
        else:
            yield from _one_tag(text=text, a=first[key], b=other[key], partial=partial)


def _tags_in_file(mesh: Mesh) -> dict[tuple[str, str], Tag]:
    """The tags by set and name, of the sets that files hold."""
    stored = _stored(mesh)
    return {(tag.set, tag.name): tag for tag in mesh.tags if tag.set in stored}


def _one_tag(text: str, a: Tag, b: Tag, partial: bool) -> Iterator[str]:
    unequal = np.flatnonzero(_group_rows(a) != _group_rows(b, a))
    if unequal.size:
        yield f"{text} changed at element {unequal[0] + 1}"
    if not (b.names.items() <= a.names.items() if partial else a.names == b.names):
        yield f"{text} changed their names"


def _group_rows(tag: Tag, like: Tag | None = None) -> NDArray[np.int64]:
    """One number for each list of groups, equal for equal lists of ``tag`` and ``like``."""
    number: dict[tuple[int, ...], int] = {}
    for source in (like or tag, tag):
        for row in range(source.group_offset.size - 1):
            number.setdefault(source.groups(row), len(number))
    rows = [number[tag.groups(r)] for r in range(tag.group_offset.size - 1)]
    return np.asarray(rows, dtype=np.int64)[tag.values]


def _compare_lists(a: Mesh, b: Mesh, digits: int, partial: bool) -> Iterator[str]:
    first = _by_key(a.lists)
    other = _by_key(b.lists)
    for key in dict.fromkeys([*first, *other]):
        text = f"index list '{key[1]}' on '{key[0]}'"
        if key not in other:
            if not partial:
                yield f"{text} is missing"
        elif key not in first:
            yield f"{text} is new"
        elif not np.array_equal(first[key].index, other[key].index):
            yield f"{text} changed"
        else:
            changed = _changed_attribute(first[key], other[key])
            if changed is not None:
                yield f"{text} changed its {changed}"


def _changed_attribute(a: IndexList, b: IndexList) -> str | None:
    """What both say of each entry, such as the side of a cell, and is not the same."""
    for name in sorted(a.attrs.keys() & b.attrs.keys()):
        if not _same_beside(a.attrs[name], b.attrs[name]):
            return name
    return None


def _same_beside(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(
            _same_beside(one[key], other[key]) for key in one
        )
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return True
