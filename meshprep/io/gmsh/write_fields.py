"""Sections of values on their way out; tags without a place of their own go the same way."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...mesh import Dat, Tag
from .emit import GmshWriter
from .info import GROUPS, INTEGERS, MARK, NAME, REALS, STRINGS
from .layout import TEXT_LIMIT, FileLayout

# The largest whole number that doubles hold as all below.
EXACT = 2**53
# Gmsh knows scalars, vectors and tensors; what lies between is filled up with zeros.
COMPONENTS = (1, 3, 9)


def write_fields(
    sink: GmshWriter, layout: FileLayout, labels: Mapping[str, NDArray[np.int64]]
) -> None:
    """Write all values, one section for those of one name and header; then the tags."""
    sections: dict[Any, list[Dat]] = {}
    for d in layout.dats:
        key = (_header(d), d.values.dtype.str, d.values.shape[1:])
        group = sections.setdefault(key, [])
        # A second dat of one name on a set is a section of its own.
        if any(x.set == d.set for x in group):
            sections[(*key, len(sections))] = [d]
        else:
            group.append(d)
    for group in sections.values():
        _write_dats(sink, group, labels)
    for tag in layout.tags:
        _write_tag(sink, tag, labels[tag.set])


def _header(d: Dat) -> tuple[Any, ...]:
    """Section, name and tags, as they were read or as Gmsh expects them."""
    return (
        "NodeData" if d.set == "nodes" else "ElementData",
        (str(d.attrs.get(NAME, d.name)), *d.attrs.get(STRINGS, ())),
        tuple(d.attrs.get(REALS, (0.0,))),
        tuple(d.attrs.get(INTEGERS, (0,))),
    )


def _write_dats(
    sink: GmshWriter,
    group: Sequence[Dat],
    labels: Mapping[str, NDArray[np.int64]],
) -> None:
    section, strings, reals, integers = _header(group[0])
    shape, dtype = group[0].values.shape[1:], group[0].values.dtype
    n = int(np.prod(shape, dtype=np.int64))
    filled = next((c for c in COMPONENTS if n <= c), n)
    width = max(filled, 1)
    plain = dtype == np.float64 and shape == (() if width == 1 else (width,))
    own = len(strings)
    if not plain:
        marked = f"{MARK}dat {own} {dtype.newbyteorder('<').str} {','.join(map(str, shape))},"
        strings = (*strings, *[""] * (2 - own), marked)
    entries = sum(len(d.values) for d in group)
    _write_header(sink, section, strings, reals, (integers[0], width, entries, *integers[1:]))
    for d in group:
        label = labels[d.set] if d.index is None else labels[d.set][d.index]
        sink.rows(label.reshape(-1, 1), _padded(d.values, n, width))
    sink.end(section)


def _padded(values: NDArray, n: int, width: int) -> NDArray:
    flat = values.reshape(len(values), n)
    return flat if n == width else np.pad(flat, ((0, 0), (0, width - n)))


def _write_header(
    sink: GmshWriter,
    section: str,
    strings: Sequence[str],
    reals: Sequence[float],
    integers: Sequence[int],
) -> None:
    sink.begin(section)
    sink.text(f"{len(strings)}\n" + "".join(f'"{s}"\n' for s in strings))
    sink.text(f"{len(reals)}\n" + "".join(f"{float(x)!r}\n" for x in reals))
    sink.text(f"{len(integers)}\n" + "".join(f"{int(i)}\n" for i in integers))


def _write_tag(sink: GmshWriter, tag: Tag, label: NDArray[np.int64]) -> None:
    """A tag as values: its groups, or where elements are in several, rows that strings explain."""
    values, lines = _tag_values(tag)
    lines += [f"name {number} {name}" for number, name in tag.names.items()]
    strings = (tag.name, "", f"{MARK}tag 1 {values.dtype.newbyteorder('<').str} ,", *lines)
    section = "NodeData" if tag.set == "nodes" else "ElementData"
    _write_header(sink, section, strings, (0.0,), (0, 1, values.size))
    sink.rows(label.reshape(-1, 1), values.reshape(-1, 1))
    sink.end(section)


def _tag_values(tag: Tag) -> tuple[NDArray[np.integer], list[str]]:
    """What stands in the section of a tag, and the lines that say what it means."""
    alone = np.diff(tag.group_offset).max(initial=0) <= 1
    if alone and tag.group_id.all() and (np.abs(tag.group_id) <= EXACT).all():
        return tag.first_ids(), [GROUPS]
    lines = []
    for row in range(tag.group_offset.size - 1):
        lines += _row_lines(row, tag.groups(row))
    return tag.values, lines


def _row_lines(row: int, groups: Sequence[int]) -> list[str]:
    """Lines that say which groups a row stands for; several where they get long."""
    lines, line = [], f"row {row}"
    for i in groups:
        if len(line) > TEXT_LIMIT - 24:
            lines.append(line)
            line = f"row {row}"
        line += f" {i}"
    return [*lines, line]
