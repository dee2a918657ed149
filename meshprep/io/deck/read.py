"""Reading decks of Abaqus and CalculiX: the mesh, and the text around it.

A number of a node or an element in a load, a condition or an option is an entry of an index
list, so that it follows when nodes and elements are renumbered.
"""

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh import Mesh
from ...mesh.cells import check_node_count, node_count
from .build import build
from .content import Content, Place
from .keywords import GENERATING
from .references import (
    Span,
    refuse_results,
    sets_in_step,
    spans_of_header,
    spans_of_lines,
)
from .source import Keyword, keywords
from .types import OTHER_NODES, TYPES

_EMPTY = re.compile(r"(?:^|,)\s*(?:,|$)")
_WHOLE = re.compile(r"\s*([+-]?[0-9]{1,18})\s*")
# Fortran's numbers: the letter of an exponent may be D, or be left out before its sign.
_EXPONENT = re.compile(r"(?<=[0-9.])[dDeE]?([+-])")


def read(path: Path) -> Mesh:
    """Read a deck; types of elements other than the usual ones are ``abaqus:type``.

    Raises MeshprepError that names the line for what would be another mesh, and for numbers
    of which it cannot tell what they are of.
    """
    content = Content()
    has_keyword = False
    for keyword in keywords(path):
        _take_keyword(content, keyword)
        has_keyword = has_keyword or bool(keyword.name)
    if not has_keyword:
        raise MeshprepError(
            "has no keywords, which begin with *: this is no deck of Abaqus or CalculiX "
            f"(files of AVS UCD: meshio convert --input-format avsucd {path.name} new.vtu)"
        )
    if not content.has_elements():
        raise MeshprepError("there are no elements: the deck needs *ELEMENT")
    if not content.blocks:
        types = ", ".join(content.others)
        raise MeshprepError(
            f"there are only elements of the types {types}: loops run over solids, shells "
            "and beams"
        )
    return build(content)


def _take_keyword(content: Content, k: Keyword) -> None:
    """Read a keyword of the mesh, or keep it."""
    if k.name in GENERATING:
        raise MeshprepError(
            f"{k.where}: makes or moves nodes or elements by *{k.name}: write them out"
        )
    refuse_results(k)
    if k.name == "NODE":
        _read_nodes(content, k)
    elif k.name == "ELEMENT":
        _read_elements(content, k)
    elif k.name in ("NSET", "ELSET"):
        _read_set(content, k)
    else:
        _read_other(content, k)
        return
    content.items += [line + "\n" for line in k.comments()]


def _whole_number(word: str, k: Keyword, i: int) -> int:
    match = _WHOLE.fullmatch(word)
    if match is None:
        raise MeshprepError(
            f"{k.place(i)}: *{k.name}: '{word.strip()[:40]}' is no number of a node or an "
            "element"
        )
    return int(match[1])


def _fortran_number(word: str, k: Keyword, i: int) -> float:
    """A number as Fortran reads it; nothing is 0."""
    text = word.strip()
    try:
        if "_" in text:
            raise ValueError
        plain = _EXPONENT.sub(r"e\1", text).lower().replace("d", "e")
        if plain:
            return float(plain)
        return 0.0
    except ValueError:
        raise MeshprepError(
            f"{k.place(i)}: *{k.name}: '{text[:40]}' is no number"
        ) from None


def _table_of_lines(lines: Sequence[str], dtype: type) -> NDArray[Any] | None:
    """Numbers of lines that have equally many, none left out; None for others."""
    commas = {line.count(",") for line in lines}
    text = ",".join(lines)
    if len(commas) != 1 or _EMPTY.search(text) or not text.isascii():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            values: NDArray[Any] = np.fromstring(text, dtype, sep=",")
        except (DeprecationWarning, ValueError):
            return None
    if values.size != len(lines) * (commas.pop() + 1):
        return None
    return values.reshape(len(lines), -1)


def _read_nodes(content: Content, k: Keyword) -> None:
    # SYSTEM is R for x, y, z, C for cylindrical and S for spherical coordinates.
    if k.options.get("SYSTEM", "R").upper() != "R":
        raise MeshprepError(
            f"{k.where}: its nodes are in the coordinates SYSTEM={k.options['SYSTEM']}: "
            "write x, y and z"
        )
    _refuse_options(k, {"SYSTEM", "NSET", "INPUT"})
    numbers, points = _node_lines(content, k)
    if not numbers:
        return
    for i, number in enumerate(numbers, len(content.nodes)):
        if content.nodes.setdefault(number, i) != i:
            raise MeshprepError(
                f"{k.where}: node {number} stands twice: give one another number"
            )
    if not content.points:
        content.items.append(Place("nodes"))
    content.points.append(points)
    _extend(content=content, k=k, kind="NSET", members=numbers)


def _refuse_options(k: Keyword, known: set[str]) -> None:
    other = sorted(k.options.keys() - known)
    if other:
        raise MeshprepError(
            f"{k.where}: *{k.name} has the option {other[0]}, which is not supported"
        )


def _node_lines(content: Content, k: Keyword) -> tuple[list[int], NDArray[np.float64]]:
    """Numbers and coordinates; normals go to the content."""
    # Most decks have equally many numbers in all lines, which are parsed at once.
    rows = _table_of_lines([line for _, line in k.data()], np.float64)
    if rows is not None and 3 <= rows.shape[1] <= 4:
        numbers = rows[:, 0]
        fitting = (numbers >= 1) & (numbers < 2.0**53) & (numbers == np.rint(numbers))
        if fitting.all():
            return numbers.astype(np.int64).tolist(), rows[:, 1:]
    return _nodes_one_by_one(content, k)


def _nodes_one_by_one(
    content: Content, k: Keyword
) -> tuple[list[int], NDArray[np.float64]]:
    numbers: list[int] = []
    points: list[list[float]] = []
    for i, line in k.data():
        # A line is the number of the node, up to three coordinates, which are 0 where
        # they are left out, and the direction of the normal.
        first, *words = line.rstrip(", ").split(",")
        number = _whole_number(first, k, i)
        values = [_fortran_number(word, k, i) for word in words]
        if number < 1 or not 1 <= len(values) <= 6:
            raise MeshprepError(
                f"{k.place(i)}: node {number} has {len(values)} coordinates: write a "
                "number from 1, 2 or 3 coordinates, and perhaps a normal"
            )
        if len(values) > 3:
            content.normals[number] = [*values[3:], 0.0, 0.0][:3]
        numbers.append(number)
        points.append(values[:3])
    width = max([2, *map(len, points)])
    full = [row + [0.0] * (width - len(row)) for row in points]
    return numbers, np.array(full).reshape(-1, width)


def _read_elements(content: Content, k: Keyword) -> None:
    name = k.options.get("TYPE", "").upper()
    _refuse_options(k, {"TYPE", "ELSET", "INPUT"})
    if not name:
        raise MeshprepError(f"{k.where}: *ELEMENT has no TYPE=: name the type")
    if not content.has_elements():
        content.items.append(Place("elements"))
    # Elements that are neither solids, shells nor beams, such as springs and masses, stay
    # rows of numbers.
    if name not in TYPES:
        rows = _rows_of_others(content, k, name)
        content.others.setdefault(name, []).extend(rows)
        _extend(content=content, k=k, kind="ELSET", members=[row[0] for row in rows])
        return
    wanted = node_count(TYPES[name]) + 1
    table = _table_of_lines([line for _, line in k.data()], np.int64)
    if table is None or table.shape[1] != wanted or _is_cut_off(table):
        table = _rows_of_cells(k, name, wanted)
    content.blocks.append((name, table))
    _extend(content=content, k=k, kind="ELSET", members=table[:, 0].tolist())


def _is_cut_off(table: NDArray[np.int64]) -> bool:
    """Whether NumPy may have taken the largest number for one beyond it."""
    return bool((table == np.iinfo(np.int64).max).any())


def _rows_of_cells(k: Keyword, name: str, wanted: int) -> NDArray[np.int64]:
    row = list[int]()
    rows = list[list[int]]()
    for i, line in k.data():
        row += [_whole_number(w, k, i) for w in line.split(",") if w.strip()]
        # an element goes on in the next line after a comma
        if line.endswith(",") and len(row) < wanted:
            continue
        check_node_count(f"element {row[0]} of type {name}", TYPES[name], len(row) - 1)
        rows.append(row)
        row = []
    if row:
        raise MeshprepError(
            f"{k.where}: element {row[0]} of type {name} ends in the middle"
        )
    return np.array(rows, np.int64).reshape(-1, wanted)


def _rows_of_others(content: Content, k: Keyword, name: str) -> list[list[int]]:
    """Number and nodes of elements that loops do not run over; what is left out is 0."""
    # Elements of these types have so many nodes, or as many as stand on their line.
    nodes = content.other_nodes.get(name, OTHER_NODES.get(name, 0))
    row = list[int]()
    rows = list[list[int]]()
    for i, line in k.data():
        words = line.removesuffix(",").split(",")
        row += [_whole_number(w, k, i) if w.strip() else 0 for w in words]
        if nodes == 0 and line.endswith(","):
            raise MeshprepError(
                f"{k.place(i)}: cannot tell whether element {row[0]} of type {name} goes "
                "on in the next line: leave out the comma at the end"
            )
        if nodes > 0 and len(row) - 1 < nodes and line.endswith(","):
            continue
        if nodes > 0 and len(row) - 1 != nodes:
            raise MeshprepError(
                f"{k.place(i)}: element {row[0]} of type {name} has {len(row) - 1} nodes, "
                f"must have {nodes}"
            )
        rows.append(row)
        row = []
    if row:
        raise MeshprepError(
            f"{k.where}: element {row[0]} of type {name} ends in the middle"
        )
    return rows


def _extend(content: Content, k: Keyword, kind: str, members: Sequence[Any]) -> None:
    """Add numbers to a set, which is created at its first use; names ignore case."""
    # A set of the assembly is another one than that of its part by the same name.
    name = k.options.get(kind, "").strip('"')
    if not name:
        return
    key = f"{kind} {content.scope}{name.upper()}"
    if key not in content.sets:
        header = f"*{kind}, {kind}={name}"
        if k.name == kind:
            header = re.sub(r"(?i)\s*,\s*GENERATE\s*(?=,|$)", "", k.header)
        content.items.append(Place("set", key=key, header=header))
    if "UNSORTED" in k.options:
        content.unsorted.add(key)
    content.sets.setdefault(key, []).extend(members)
    content.names.setdefault(key, name)


def _read_set(content: Content, k: Keyword) -> None:
    name = k.options.get(k.name, "")
    if not name:
        raise MeshprepError(f"{k.where}: *{k.name} has no name: write {k.name}=NAME")
    if k.name == "NSET" and "ELSET" in k.options:
        raise MeshprepError(
            f"{k.where}: *NSET {name} is the nodes of the elements {k.options['ELSET']}: "
            "name the nodes"
        )
    members: list[Any] = []
    for i, line in k.data():
        # A line of a set is numbers and names of other sets, with GENERATE first, last
        # and step.
        words = [w.strip() for w in line.split(",") if w.strip()]
        if "GENERATE" in k.options:
            members.append(_generated(k, i, words))
            continue
        members += [_number_or_name(word, k, i) for word in words]
    _extend(content=content, k=k, kind=k.name, members=members)


def _number_or_name(word: str, k: Keyword, i: int) -> int | str:
    if re.fullmatch("[0-9]+", word):
        return _whole_number(word, k, i)
    return word


def _generated(k: Keyword, i: int, words: Sequence[str]) -> range:
    numbers = [_whole_number(word, k, i) for word in words]
    if len(numbers) == 2:
        numbers.append(1)
    if len(numbers) != 3 or numbers[2] < 1:
        raise MeshprepError(
            f"{k.place(i)}: *{k.name} {k.options[k.name]} generates '{', '.join(words)}': "
            "write FIRST, LAST and a step from 1"
        )
    return range(numbers[0], numbers[1] + 1, numbers[2])


def _read_other(content: Content, k: Keyword) -> None:
    """Keep a keyword and its lines; numbers of nodes and elements become references."""
    if k.name in content.instances:
        # Instances of a part would repeat its nodes and elements elsewhere: one of each
        # stands for the mesh.
        names = content.instances[k.name]
        names.append(k.options.get("NAME", ""))
        if len(names) > 1:
            raise MeshprepError(
                f"{k.where}: has the {k.name.lower()}s {' and '.join(names)}: several are "
                "not supported, write one deck a part, or a flat deck without parts"
            )
    if k.name in ("ASSEMBLY", "END ASSEMBLY"):
        if k.name.startswith("END"):
            content.scope = ""
        else:
            content.scope = "assembly "
    if k.name == "USER ELEMENT" and _WHOLE.fullmatch(k.options.get("NODES", "")):
        # A user element has as many nodes as its definition says.
        name = k.options.get("TYPE", "").upper()
        content.other_nodes[name] = int(k.options["NODES"])
    for kind in ("NSET", "ELSET"):
        # A name that is a number may be a set, or a single node or element.
        value = k.options.get(kind, "")
        if re.fullmatch("[0-9]+", value):
            content.checks.append((f"{kind} {value}", k.where))
    content.in_step += [(where, k.name, names) for where, names in sets_in_step(k)]
    if k.header:
        _keep_text(content, spans_of_header(k.header), k.header + "\n")
    for line, spans in zip(k.lines, spans_of_lines(k), strict=True):
        _keep_text(content, spans, line + "\n")


def _keep_text(content: Content, spans: Sequence[Span], text: str) -> None:
    """Keep a text whose numbers at these places are of nodes or elements."""
    end = 0
    for span in spans:
        numbers = content.references[span.what]
        content.items += [text[end : span.start], Place(span.what, len(numbers))]
        numbers.append(int(text[span.start : span.stop]))
        end = span.stop
    content.items.append(text[end:])
