"""Sections of values; tags that have no place of their own are written as values, too."""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import Float64s, Int32s, Int64s

from ...mesh import Dat, Tag
from ...mesh.assemble import GroupTable
from .emit import GmshWriter, real_text
from .layout import (
    INTEGERS,
    NAME,
    REALS,
    RESERVED,
    SECTION,
    STRINGS,
    FileLayout,
)
from .numbering import Lookup, make_lookup
from .raw import RawField

# How the string tag begins that says which dtype and shape values had.
MARK = "meshprep "
_MARK = re.compile(
    MARK + r"(dat|tag) (\d{1,4}) ([<|](?:[iu][1248]|f[248]|b1)) ((?:\d{1,9},)*,?)"
)
# The string tag of a section whose values are the groups of its elements.
GROUPS = "groups"
_TOGETHER = "write mesh and values together"


@dataclass(frozen=True, eq=False)
class FileCells:
    """The cells of one type, and where the elements of the file went."""

    name: str
    dim: int
    nodes: Int32s
    label: Int64s
    tags: dict[str, GroupTable]
    element_label: Int64s
    cell: Int64s | None  # of each element of the file; None where every one became a cell


@dataclass(frozen=True, eq=False)
class ElementLookup:
    """The cell of the element of each number, counted through all types."""

    lookup: Lookup
    ranges: dict[str, tuple[int, int]]  # of the cells, by set
    cell: Int32s

    @classmethod
    def of(cls, cells: list[FileCells], names: Mapping[str, str]) -> "ElementLookup":
        """Look at all cells; raises MeshprepError where a number stands for two of them."""
        # MSH 2 has several elements for a cell of several groups: values may name any of
        # them.
        label = np.concatenate([*(c.element_label for c in cells), np.empty(0, np.int64)])
        cell = np.arange(label.size, dtype=np.int32)
        start = 0
        ranges = {}
        for c in cells:
            stop = start + c.element_label.size
            if c.cell is not None:
                cell[start:stop] = start + c.cell
            ranges[names[c.name]] = start, stop
            start = stop
        lookup, twice = make_lookup(label)
        if twice >= 0:
            bad = cell[lookup.find(label)] != cell
            if bad.any():
                raise MeshprepError(
                    f"$Elements: element number {label[np.argmax(bad)]} occurs twice, so "
                    "that values of elements are ambiguous: renumber one"
                )
        return cls(lookup, ranges, cell)


@dataclass(frozen=True)
class SectionMark:
    """What the string tags of a section say, of those that meshprep wrote."""

    kind: str  # ``dat`` or ``tag``; empty where another program wrote the section
    own: int  # how many string tags are not meshprep's
    dtype: np.dtype[Any] | None
    shape: tuple[int, ...]  # of one row
    lines: tuple[str, ...]  # what follows


def _mark(f: RawField) -> SectionMark:
    """Read ``meshprep KIND OWN DTYPE SHAPE,`` among the string tags."""
    position = next((i for i, s in enumerate(f.strings) if s.startswith(MARK)), None)
    c = f.integers[1]
    if position is None:
        return SectionMark(
            kind="", own=len(f.strings), dtype=None, shape=() if c == 1 else (c,), lines=()
        )
    # The note must fit the section: as many strings before it, and components for its
    # shape.
    match = _MARK.fullmatch(f.strings[position])
    if match:
        shape = tuple(int(w) for w in match[4].split(",") if w)
    else:
        shape = (c + 1,)
    if not match or int(match[2]) > position or np.prod(shape, dtype=float) > c:
        raise MeshprepError(
            f"${f.section} '{f.strings[0]}': its note '{f.strings[position][:40]}' is "
            "damaged: delete that string"
        )
    return SectionMark(
        kind=match[1],
        own=int(match[2]),
        dtype=np.dtype(match[3]),
        shape=shape,
        lines=f.strings[position + 1 :],
    )


def field_values(
    fields: Sequence[RawField],
    nodes: Lookup,
    cells: list[FileCells],
    names: Mapping[str, str],
    taken: AbstractSet[str],
) -> tuple[list[Dat], list[Tag]]:
    """Dats and tags of all sections, in their order.

    ``names`` are those of the sets, by cell type; ``taken`` those of dats that the nodes
    have.
    """
    dats: list[Dat] = []
    tags: list[Tag] = []
    sizes = {"nodes": nodes.size} | {names[c.name]: len(c.nodes) for c in cells}
    if any(f.section != "NodeData" for f in fields):
        where = ElementLookup.of(cells, names)
    else:
        where = None
    for f in fields:
        mark = _mark(f)
        for dat in _dats_by_set(f=f, mark=mark, nodes=nodes, sizes=sizes, where=where):
            if mark.kind == "tag":
                tags.append(_tag_of_values(dat, mark, sizes[dat.set]))
            else:
                dats.append(_named(dat, taken))
    return dats, tags


def _dats_by_set(
    f: RawField,
    mark: SectionMark,
    nodes: Lookup,
    sizes: Mapping[str, int],
    where: ElementLookup | None,
) -> Iterator[Dat]:
    """The section cut by sets."""
    name = f.strings[0] if f.strings and mark.own else ""
    integers = (f.integers[0], *f.integers[3:])
    attrs = {SECTION: f.section, STRINGS: f.strings[1 : mark.own], REALS: f.reals}
    attrs |= {INTEGERS: integers}
    title = f"${f.section} '{name}'"
    ranges = {"nodes": (0, nodes.size)}
    if f.section == "NodeData":
        # A row begins with the number of a node or element, as the mesh numbers them.
        rows = nodes.find_all(f.label, title, "node", _TOGETHER)
    else:
        assert where is not None
        rows = where.cell[where.lookup.find_all(f.label, title, "element", _TOGETHER)]
        ranges = where.ranges
    # Cut a section of elements by their types: each is a set here.
    for set_name, (begin, end) in ranges.items():
        mine = np.flatnonzero((rows >= begin) & (rows < end))
        # values of no element belong to the last type
        if mine.size or (not rows.size and set_name == [*ranges][-1]):
            values = _restore_shape(f.values[mine], mark, name)
            row = rows[mine] - np.int32(begin)
            yield _dat_of_set(
                name=name,
                set_name=set_name,
                n=sizes[set_name],
                row=row,
                values=values,
                attrs=attrs,
            )


def _restore_shape(values: Float64s, mark: SectionMark, name: str) -> NDArray:
    """Values of the shape and type that they had before they were written."""
    if mark.dtype is None:
        return values.reshape(len(values), *mark.shape)
    n = int(np.prod(mark.shape, dtype=np.int64))
    out = np.ascontiguousarray(values[:, :n]).reshape(len(values), *mark.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        cast = out.astype(mark.dtype)
    if mark.dtype.kind != "f" and not np.array_equal(cast, out):
        raise MeshprepError(
            f"values '{name}' do not fit {mark.dtype}: delete the note on them"
        )
    return cast


def _dat_of_set(
    name: str, set_name: str, n: int, row: NDArray[np.integer], values: NDArray, attrs: Any
) -> Dat:
    """Sorted by element; an element may be named again only with equal values."""
    if row.size > 1 and (np.diff(row) <= 0).any():
        # Find elements that stand there twice: equal values, or both NaN, are one.
        order = np.argsort(row, kind="stable")
        row = row[order]
        values = values[order]
        again = np.flatnonzero(np.diff(row) == 0)
        a = values[again]
        b = values[again + 1]
        if not ((a == b) | ((a != a) & (b != b))).all():
            raise MeshprepError(
                f"${attrs[SECTION]} '{name}' gives an element of set '{set_name}' two "
                "values: remove one"
            )
        keep = np.concatenate([[True], np.diff(row) > 0])
        row = row[keep]
        values = values[keep]
    if row.size == n:
        index = None
    else:
        index = row.astype(np.int32)
    return Dat(name=name, set=set_name, values=values, index=index, attrs=attrs)


def _named(dat: Dat, taken: AbstractSet[str]) -> Dat:
    """The dat with a name that means nothing else."""
    if dat.name not in ("", *RESERVED) and (dat.set != "nodes" or dat.name not in taken):
        return dat
    attrs = {**dat.attrs, NAME: dat.name}
    return replace(dat, name=f"gmsh:{dat.name or 'unnamed'}", attrs=attrs)


def _tag_of_values(dat: Dat, mark: SectionMark, n: int) -> Tag:
    """The tag whose groups the values are; string tags hold their names."""
    try:
        first, *lines = mark.lines
        names = {}
        for line in lines:
            _, number, name = line.split(" ", 2)
            names[int(number)] = name
        if first != GROUPS or dat.index is not None or dat.values.shape != (n,):
            raise ValueError
        return Tag.from_ids(name=dat.name, set=dat.set, ids=dat.values, names=names)
    except ValueError:
        raise MeshprepError(
            f"the groups '{dat.name}' on '{dat.set}' are damaged: delete this section"
        ) from None


# Gmsh knows scalars, vectors and tensors; what lies between is filled up with zeros.
COMPONENTS = (1, 3, 9)


def write_fields(
    sink: GmshWriter, layout: FileLayout, labels: Mapping[str, Int64s]
) -> None:
    """Write all values, one section for those of one name and header; then the tags."""
    sections: dict[Any, list[Dat]] = {}
    for d in layout.dats:
        sections.setdefault(
            (_section_header(d), d.values.dtype.str, d.values.shape[1:]), []
        ).append(d)
    for group in sections.values():
        _write_dats(sink, group, labels)
    for tag in layout.tags:
        _write_tag(sink, tag, labels[tag.set])


def _section_header(d: Dat) -> tuple[Any, ...]:
    """Section, name and tags, as they were read or as Gmsh expects them."""
    return (
        "NodeData" if d.set == "nodes" else "ElementData",
        (str(d.attrs.get(NAME, d.name)), *d.attrs.get(STRINGS, ())),
        tuple(d.attrs.get(REALS, (0.0,))),
        tuple(d.attrs.get(INTEGERS, (0,))),
    )


def _write_dats(
    sink: GmshWriter, group: Sequence[Dat], labels: Mapping[str, Int64s]
) -> None:
    section, strings, reals, integers = _section_header(group[0])
    shape = group[0].values.shape[1:]
    dtype = group[0].values.dtype
    n = int(np.prod(shape, dtype=np.int64))
    filled = next((c for c in COMPONENTS if n <= c), n)
    width = max(filled, 1)
    plain = dtype == np.float64 and shape == (() if width == 1 else (width,))
    n_strings = len(strings)
    if not plain:
        # Gmsh reads two string tags; values that are no plain doubles say in a third what
        # they were.
        little_endian = dtype.newbyteorder("<").str
        lengths = ",".join(map(str, shape))
        marked = f"{MARK}dat {n_strings} {little_endian} {lengths},"
        strings = (*strings, *[""] * (2 - n_strings), marked)
    # The integer tags are time step, components and entries, in this order; further ones,
    # such as the partition, follow.
    entries = sum(len(dat.values) for dat in group)
    _write_header(
        sink=sink,
        section=section,
        strings=strings,
        reals=reals,
        integers=(integers[0], width, entries, *integers[1:]),
    )
    for dat in group:
        # A row is the number of an element and its values, filled up to 1, 3 or 9
        # components.
        if dat.index is None:
            label = labels[dat.set]
        else:
            label = labels[dat.set][dat.index]
        flat = dat.values.reshape(len(dat.values), n)
        more = ((0, 0), (0, width - n))
        sink.rows(label.reshape(-1, 1), flat if n == width else np.pad(flat, more))
    sink.end(section)


def _write_header(
    sink: GmshWriter,
    section: str,
    strings: Sequence[str],
    reals: Sequence[float],
    integers: Sequence[int],
) -> None:
    sink.begin(section)
    sink.text(f"{len(strings)}\n" + "".join(f'"{s}"\n' for s in strings))
    sink.text(f"{len(reals)}\n" + "".join(f"{real_text(x)}\n" for x in reals))
    sink.text(f"{len(integers)}\n" + "".join(f"{int(i)}\n" for i in integers))


def _write_tag(sink: GmshWriter, tag: Tag, label: Int64s) -> None:
    """A tag as values, the groups themselves, with their names as strings."""
    lines = [f"name {number} {name}" for number, name in tag.names.items()]
    strings = (tag.name, "", f"{MARK}tag 1 <i8 ,", GROUPS, *lines)
    if tag.set == "nodes":
        section = "NodeData"
    else:
        section = "ElementData"
    _write_header(
        sink=sink,
        section=section,
        strings=strings,
        reals=(0.0,),
        integers=(0, 1, label.size),
    )
    sink.rows(label.reshape(-1, 1), tag.first_ids().reshape(-1, 1))
    sink.end(section)
