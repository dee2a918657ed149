"""Reading decks of Abaqus and CalculiX: the mesh, and all else as it stands and where it stands.

A number of a node or an element in a load, a condition or an option is an entry of an index list,
so that it follows when nodes and elements are renumbered.
"""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.file.atomic import check_input
from meshprep_runtime.types.maps import as_indices

from ...mesh import IndexList, Mesh
from ...mesh.assemble import Block, assemble
from ...mesh.cells import check_node_count, node_count
from ..reduce import with_used_names
from .keywords import (
    CONDITIONS,
    FIRST,
    GENERATING,
    MIDDLE,
    NUMBER,
    OF_NODE,
    PLAIN,
    TYPES,
    USUAL,
)

TYPE, DECK, REFERENCES = "abaqus:type", "abaqus:deck", "deck"
_DEEPEST = 16
_EMPTY = re.compile(r"(?:^|,)\s*(?:,|$)")
# A number of a node or an element, perhaps of an instance.
_NUMBER = re.compile(r"(\s*(?:[A-Za-z_][\w-]*\.)?)(\d+)(\s*)")
_OPTION = re.compile(r"(?i)((?:,\s*)(?:REF ?NODE|ROT ?NODE|NODE)\s*=\s*)(\d+)(?=\s*(?:,|$))")


@dataclass(frozen=True)
class Place:
    """Where something of the mesh stands in a deck.

    ``what`` is ``nodes``, ``elements``, ``node`` or ``element`` (the number at this place of the
    index lists), or ``set`` (of this key, under this header).
    """

    what: str
    number: int = 0
    key: str = ""
    header: str = ""


@dataclass(eq=False)
class _Keyword:
    """A keyword with its options, its line as it stands, and the lines up to the next."""

    name: str
    options: dict[str, str]
    header: str
    where: str  # "line 12", in a file that is taken in with its name before
    lines: list[str] = field(default_factory=list)
    at: int = 0  # which of the lines is read, from 1

    def data(self) -> Iterator[tuple[int, str]]:
        """The lines that are no comments, each with its distance from the header."""
        for i, line in enumerate(self.lines):
            if line.strip() and not line.startswith("**"):
                self.at = i + 1
                yield i, line.strip()


@dataclass(eq=False)
class _Reader:
    """What was read so far: numbers of the file as keys, places as values."""

    items: list[str | Place] = field(default_factory=list)
    nodes: dict[int, int] = field(default_factory=dict)
    points: list[NDArray[np.float64]] = field(default_factory=list)
    blocks: list[tuple[str, NDArray[np.int64]]] = field(default_factory=list)  # number and nodes
    sets: dict[str, list[Any]] = field(default_factory=dict)  # by key: numbers and names
    names: dict[str, str] = field(default_factory=dict)  # by key: as first written
    references: dict[str, list[int]] = field(default_factory=lambda: {"node": [], "element": []})
    checks: list[tuple[str, str]] = field(default_factory=list)
    instances: dict[str, list[str]] = field(default_factory=lambda: {"PART": [], "INSTANCE": []})
    scope: str = ""

    def numbers(self, kind: str) -> NDArray[np.int64]:
        """The numbers of the nodes, or of the elements, in the order of the deck."""
        if kind == "NSET":
            return np.fromiter(self.nodes, np.int64, len(self.nodes))
        return np.concatenate([rows[:, 0] for _, rows in self.blocks])


def read(path: Path) -> Mesh:
    """Read a deck; types of elements other than the usual ones are ``abaqus:type``.

    Raises MeshprepError that names the line for what would be another mesh, and for numbers of
    which it cannot tell what they are of.
    """
    reader = _Reader()
    for keyword in _keywords(path, ()):
        try:
            _take(reader, keyword)
        except ValueError as error:
            place = f"{keyword.where}: line {keyword.at} of *{keyword.name}"
            raise MeshprepError(f"{place}: {error}: write numbers there") from None
    if not reader.blocks:
        raise MeshprepError("there are no elements: the deck needs *ELEMENT")
    return _mesh(reader)


def _keywords(path: Path, above: Sequence[Path]) -> Iterator[_Keyword]:
    """The keywords of a deck, those of included files at their place."""
    if path in above or len(above) > _DEEPEST:
        raise MeshprepError(f"*INCLUDE of {path.name} takes itself in: take it out")
    lines = path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    file = f"{path.name} " if above else ""
    current, i = _Keyword("", {}, "", f"{file}line 1"), 0
    while i < len(lines):
        line = lines[i]
        i += 1
        if not line.startswith("*") or line.startswith("**"):
            if line.lstrip().startswith("*") and not line.lstrip().startswith("**"):
                line = line.lstrip()
            else:
                current.lines.append(line)
                continue
        yield current
        where, header = f"{file}line {i}", line
        # a keyword goes on in the next line after a comma at its end
        while header.rstrip().endswith(",") and i < len(lines):
            header += "\n" + lines[i]
            i += 1
        current = _parsed(header, where)
        if "INPUT" in current.options and current.name in ("INCLUDE", "NODE", "ELEMENT"):
            other = path.parent / current.options["INPUT"].strip('"')
            try:
                check_input(other)
            except MeshprepError as error:
                raise MeshprepError(f"{where}: *{current.name}: {other.name} {error}") from None
            if current.name == "INCLUDE":
                yield from _keywords(other, (*above, path))
                current = _Keyword("", {}, "", where)
            else:
                text = other.read_text(encoding="utf-8", errors="surrogateescape")
                current.lines = text.splitlines()
    yield current


def _parsed(header: str, where: str) -> _Keyword:
    name, *words = [w.strip() for w in header[1:].replace("\n", " ").split(",")]
    if any(word.count('"') % 2 for word in words):
        raise MeshprepError(f"{where}: has a name with a comma: give it another name")
    pairs = [w.partition("=") for w in words if w]
    options = {" ".join(k.upper().split()): value.strip() for k, _, value in pairs}
    return _Keyword(" ".join(name.upper().split()), options, header, where)


def _take(reader: _Reader, k: _Keyword) -> None:
    """Read a keyword of the mesh, or keep it."""
    comments = [line for line in k.lines if line.startswith("**")]
    if k.name in GENERATING:
        raise MeshprepError(
            f"{k.where}: makes or moves nodes or elements by *{k.name}: write them out"
        )
    if k.name == "NODE":
        _read_nodes(reader, k)
    elif k.name == "ELEMENT":
        _read_elements(reader, k)
    elif k.name in ("NSET", "ELSET"):
        _read_set(reader, k)
    else:
        _read_other(reader, k)
        return
    reader.items += [line + "\n" for line in comments]


def _read_nodes(reader: _Reader, k: _Keyword) -> None:
    if k.options.get("SYSTEM", "R").upper() != "R":
        raise MeshprepError(
            f"{k.where}: its nodes are in the coordinates SYSTEM={k.options['SYSTEM']}: "
            "write x, y and z"
        )
    rows = _table([line for _, line in k.data()], np.float64)
    if rows is None or not 3 <= rows.shape[1] <= 4:
        rows = _node_rows(k)
    if not rows.size:
        return
    numbers = rows[:, 0].astype(np.int64).tolist()
    for i, number in enumerate(numbers, len(reader.nodes)):
        if reader.nodes.setdefault(number, i) != i:
            raise MeshprepError(f"{k.where}: node {number} stands twice: give one another number")
    if not reader.points:
        reader.items.append(Place("nodes"))
    reader.points.append(rows[:, 1:])
    _extend(reader, k, "NSET", numbers)


def _table(lines: Sequence[str], dtype: type) -> NDArray[Any] | None:
    """Numbers of lines that have equally many, none left out; None for others."""
    commas, text = {line.count(",") for line in lines}, ",".join(lines)
    if len(commas) != 1 or _EMPTY.search(text):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            values: NDArray[Any] = np.fromstring(text, dtype, sep=",")
        except (DeprecationWarning, ValueError):
            return None
    count = len(lines) * (commas.pop() + 1)
    return values.reshape(len(lines), -1) if values.size == count else None


def _node_rows(k: _Keyword) -> NDArray[np.float64]:
    rows: list[list[float]] = []
    for _, line in k.data():
        number, *place = line.rstrip(", ").split(",")
        if not 1 <= len(place) <= 3:
            raise MeshprepError(
                f"{k.where}: node {number.strip()} has {len(place)} coordinates: give 2 or 3"
            )
        row = [float(int(number)), *(float(x) if x.strip() else 0.0 for x in place)]
        rows.append(row)
    width = max([3, *map(len, rows)])
    return np.array([row + [0.0] * (width - len(row)) for row in rows])


def _read_elements(reader: _Reader, k: _Keyword) -> None:
    name = k.options.get("TYPE", "").upper()
    other = sorted(k.options.keys() - {"TYPE", "ELSET", "INPUT"})
    if other:
        raise MeshprepError(
            f"{k.where}: *ELEMENT has the option {other[0]}, which is not supported"
        )
    if name not in TYPES:
        raise MeshprepError(
            f"{k.where}: holds elements of type {name or 'none'}, which is not supported: "
            "take them out"
        )
    wanted = node_count(TYPES[name]) + 1
    rows = _table([line for _, line in k.data()], np.int64)
    if rows is None or rows.shape[1] != wanted:
        rows = _element_rows(k, name, wanted)
    if not reader.blocks:
        reader.items.append(Place("elements"))
    reader.blocks.append((name, rows))
    _extend(reader, k, "ELSET", rows[:, 0].tolist())


def _element_rows(k: _Keyword, name: str, wanted: int) -> NDArray[np.int64]:
    row, rows = list[int](), list[list[int]]()
    for _, line in k.data():
        row += [int(w) for w in line.split(",") if w.strip()]
        # an element goes on in the next line after a comma
        if line.endswith(",") and len(row) < wanted:
            continue
        check_node_count(f"element {row[0]} of type {name}", TYPES[name], len(row) - 1)
        rows.append(row)
        row = []
    if row:
        raise MeshprepError(f"{k.where}: element {row[0]} of type {name} ends in the middle")
    return np.array(rows, np.int64).reshape(-1, wanted)


def _extend(reader: _Reader, k: _Keyword, kind: str, members: Sequence[Any]) -> None:
    """Add to a set, which gets its place where it comes first; letters may be small or capital."""
    name = k.options.get(kind, "").strip('"')
    if not name:
        return
    key = f"{kind} {reader.scope}{name.upper()}"
    if key not in reader.sets:
        header = f"*{kind}, {kind}={name}"
        if k.name == kind:
            header = re.sub(r"(?i)\s*,\s*GENERATE\s*(?=,|$)", "", k.header)
        reader.items.append(Place("set", key=key, header=header))
    reader.sets.setdefault(key, []).extend(members)
    reader.names.setdefault(key, name)


def _read_set(reader: _Reader, k: _Keyword) -> None:
    name = k.options.get(k.name, "")
    if k.name == "NSET" and "ELSET" in k.options:
        raise MeshprepError(
            f"{k.where}: *NSET {name} is the nodes of the elements {k.options['ELSET']}: "
            "name the nodes"
        )
    members: list[Any] = []
    for _, line in k.data():
        words = [w.strip() for w in line.split(",") if w.strip()]
        if "GENERATE" not in k.options:
            members += [int(w) if w.isdecimal() else w for w in words]
            continue
        first, last, step, *more = [*map(int, words), 1][: max(len(words), 3)]
        if more or step < 1:
            raise MeshprepError(
                f"{k.where}: *{k.name} {name} generates '{line}': write FIRST, LAST and a step "
                "from 1"
            )
        members.append(range(first, last + 1, step))
    _extend(reader, k, k.name, members)


def _read_other(reader: _Reader, k: _Keyword) -> None:
    """Keep a keyword and its lines; numbers of nodes and elements become references."""
    if k.name in reader.instances:
        names = reader.instances[k.name]
        names.append(k.options.get("NAME", ""))
        if len(names) > 1:
            raise MeshprepError(
                f"{k.where}: has the {k.name.lower()}s {' and '.join(names)}: several are not "
                "supported, write one deck a part, or a flat deck without parts"
            )
    if k.name in ("ASSEMBLY", "END ASSEMBLY"):
        reader.scope = "" if k.name.startswith("END") else "assembly "
    if k.header:
        found = [(*m.span(2), "node") for m in _OPTION.finditer(k.header)]
        _keep(reader, found, k.header + "\n")
    reader.checks += [
        (f"{kind} {value.upper()}", k.where)
        for kind in ("NSET", "ELSET")
        if (value := k.options.get(kind, "")).isdecimal()
    ]
    for line, wanted in zip(k.lines, _columns(k), strict=True):
        at, spans = 0, []
        for number, word in enumerate(line.split(",") if wanted else ()):
            match = _NUMBER.fullmatch(word)
            if match and number in wanted:
                spans.append((at + match.start(2), at + match.end(2), wanted[number]))
            at += len(word) + 1
        _keep(reader, spans, line + "\n")


def _keep(reader: _Reader, spans: Sequence[tuple[int, int, str]], text: str) -> None:
    """Keep a text whose numbers at these places are of nodes or elements."""
    end = 0
    for a, b, what in spans:
        reader.items += [text[end:a], Place(what, len(reader.references[what]))]
        reader.references[what].append(int(text[a:b]))
        end = b
    reader.items.append(text[end:])


def _columns(k: _Keyword) -> list[dict[int, str]]:
    """For each line of a keyword the fields that are numbers, and what these are of.

    Raises MeshprepError where a number may be one, and the keyword is not known.
    """
    lines = dict(k.data())
    first = FIRST.get(k.name, "")
    if k.name == "INITIAL CONDITIONS":
        first = CONDITIONS.get(k.options.get("TYPE", "").upper(), "")
    elif k.name == "SURFACE":
        kind = k.options.get("TYPE", "ELEMENT").upper()
        first = {"ELEMENT": "element", "NODE": "node"}.get(kind, "")
    elif k.name == "EQUATION" and "REMOVE" in k.options:
        first = "node"
    out: list[dict[int, str]] = [{} for _ in k.lines]
    if first:
        for i, line in lines.items():
            out[i] = {0: first}
            if first == "element" and re.fullmatch(OF_NODE, ("".join(line.split(",")[1:2]))):
                out[i][2] = "node"
    elif k.name in ("MPC", "MODEL CHANGE"):
        what = "node" if k.name == "MPC" else "element"
        out = [dict.fromkeys(range(64), what) if i in lines else {} for i in range(len(out))]
    elif k.name == "EQUATION":
        out = [dict.fromkeys(found, "node") for found in _terms(k, lines)]
    elif k.name and (k.name not in PLAIN or k.options.get("DEFINITION", "").upper() == "NODES"):
        for word in (word for line in lines.values() for word in line.split(",")):
            if _NUMBER.fullmatch(word):
                raise MeshprepError(
                    f"{k.where}: cannot tell whether '{word.strip()}' of *{k.name} is a node or an "
                    "element: name a set there, or take the keyword out"
                )
    return out


def _terms(k: _Keyword, lines: Mapping[int, str]) -> list[list[int]]:
    """The fields of equations that are nodes: a count, then node, direction and factor of each."""
    out: list[list[int]] = []
    left = done = 0
    for i in range(len(k.lines)):
        k.at = i + 1
        words = [w for w in lines.get(i, "").split(",") if w.strip()]
        if words and not left:
            left, done, words = 3 * int(words[0]), 0, []
        out.append([j for j in range(len(words)) if (done + j) % 3 == 0])
        done += len(words)
        left = 0 if done >= left else left
    return out


def _mesh(reader: _Reader) -> Mesh:
    # coordinates that are left out at the end are 0
    dim = max((p.shape[1] for p in reader.points), default=3)
    points = np.concatenate(
        [np.pad(p, ((0, 0), (0, dim - p.shape[1]))) for p in reader.points] or [np.zeros((0, 3))]
    )
    node_numbers = reader.numbers("NSET")
    plane = points.shape[1] < 3
    blocks, kinds = [], {NUMBER[name]: name for name, _ in reader.blocks}
    numbers = [rows[:, 0] for _, rows in reader.blocks]
    counts = _counts(reader)
    for name, rows in reader.blocks:
        cell_type = TYPES[name]
        nodes = _places(node_numbers, rows[:, 1:], "node", f"an element of type {name}")
        nodes = nodes[:, MIDDLE] if cell_type == "line3" else nodes
        kind = 0 if USUAL[cell_type][0 if plane else 1] == name else NUMBER[name]
        tags = {TYPE: np.full(len(rows), kind)}
        blocks.append(Block(cell_type, nodes, None if counts else rows[:, 0], tags))
    names = {(TYPE, dim): kinds for dim in range(4)}
    extras = {DECK: tuple(_joined(reader.items))}
    label = node_numbers
    mesh, ranges = assemble(points, blocks, node_label=label, tag_names=names, extras=extras)
    every = reader.numbers("ELSET")
    twice = np.sort(every)
    for number in twice[1:][twice[1:] == twice[:-1]][:1]:
        raise MeshprepError(f"element {number} stands twice: give one another number")
    of = np.repeat(np.arange(len(ranges)), [len(n) for n in numbers])
    row = np.concatenate([np.arange(r.start, r.stop) for r in ranges])
    lists = list(_lists(reader, mesh, node_numbers, every, [r.set for r in ranges], of, row))
    kept = tuple(with_used_names(t) for t in mesh.tags if t.group_id.size)
    return replace(mesh, tags=kept, lists=tuple(lists))


def _counts(reader: _Reader) -> bool:
    """Whether the numbers of elements only count, type by type."""
    types = list(dict.fromkeys(TYPES[name] for name, _ in reader.blocks))
    found = sorted(reader.blocks, key=lambda block: types.index(TYPES[block[0]]))
    numbers = np.concatenate([rows[:, 0] for _, rows in found])
    return bool(np.array_equal(numbers, np.arange(1, numbers.size + 1)))


def _joined(items: Sequence[str | Place]) -> Iterator[str | Place]:
    """Texts one after the other as one."""
    text = ""
    for item in items:
        if isinstance(item, str):
            text += item
            continue
        yield from [text] if text else []
        text = ""
        yield item
    yield from [text] if text else []


def _places(
    known: NDArray[np.int64], numbers: NDArray[np.int64], what: str, who: str
) -> NDArray[np.int64]:
    """Where these numbers stand among those of the file; ``who`` names them."""
    order = np.argsort(known, kind="stable")
    at = np.searchsorted(known[order], numbers).clip(max=max(known.size - 1, 0))
    bad = numbers if not known.size else numbers[known[order][at] != numbers]
    for number in bad.ravel()[:1]:
        raise MeshprepError(f"{who} names {what} {number}, which is not there: add or remove it")
    return order[at]


def _lists(
    reader: _Reader,
    mesh: Mesh,
    nodes: NDArray[np.int64],
    elements: NDArray[np.int64],
    sets: Sequence[str],
    of: NDArray[np.int64],
    row: NDArray[np.int64],
) -> Iterator[IndexList]:
    """Sets of nodes and elements, and the numbers elsewhere in the deck."""
    for place, where in reader.checks:
        if place not in reader.sets:
            kind, _, number = place.partition(" ")
            raise MeshprepError(
                f"{where}: cannot tell what {kind}={number} is, as there is no such set: name one"
            )
    wanted = [(k, list(dict.fromkeys(_members(reader, k, ())))) for k in reader.sets]
    wanted += [(what, found) for what, found in reader.references.items() if found]
    for key, members in wanted:
        of_nodes, known = key.startswith(("NSET", "node")), key in reader.sets
        kind = ("point_set" if of_nodes else "cell_set") if known else REFERENCES
        attrs: dict[str, Any] = {"kind": kind, "place": key}
        name = reader.names.get(key, f"numbers of {key}s in the deck")
        numbers = np.array(members, np.int64)
        who = f"the set '{name}'" if known else "a load, condition or option"
        what = "node" if of_nodes else "element"
        index = _places(nodes if of_nodes else elements, numbers, what, who)
        for set_name in ["nodes"] if of_nodes else dict.fromkeys(sets):
            chosen = np.arange(index.size)
            if not of_nodes:
                blocks = [i for i, s in enumerate(sets) if s == set_name]
                chosen = np.flatnonzero(np.isin(of[index], blocks))
            if chosen.size:
                at = index if of_nodes else row[index[chosen]]
                more = {} if known else {"at": chosen}
                yield IndexList(name, set_name, as_indices(at, name), attrs | more)


def _members(reader: _Reader, key: str, above: Sequence[str]) -> list[int]:
    """The numbers of a set, those of sets that it names included."""
    out: list[int] = []
    kind, _, name = key.partition(" ")
    for member in reader.sets[key]:
        if isinstance(member, int):
            out.append(member)
        elif isinstance(member, range):
            known = reader.numbers(kind)
            inside = (known >= member.start) & (known < member.stop)
            chosen = known[inside & ((known - member.start) % member.step == 0)]
            out += np.sort(chosen).tolist()
        else:
            scoped = "assembly " if name.startswith("assembly ") else ""
            plain = member.strip('"').upper().rpartition(".")[2]
            tries = [f"{kind} {scoped}{member.upper()}", f"{kind} {plain}"]
            found = next((t for t in tries if t in reader.sets and t not in (*above, key)), None)
            if found is None:
                raise MeshprepError(
                    f"*{kind} {reader.names[key]} takes in the set '{member}', which is not there: "
                    "name one that is"
                )
            out += _members(reader, found, (*above, key))
    return out
