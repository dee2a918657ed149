"""The numbers in a keyword that refer to nodes and elements, and so are renumbered."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from meshprep_runtime.errors import MeshprepError

from .keywords import (
    CONDITIONS,
    FIELDS,
    FIRST,
    LOCATIONS,
    LONG,
    OF_NODE,
    OF_RESULTS,
    OTHER_INPUT,
    PLAIN,
    SURFACES,
    TERMS,
    TOGETHER,
)
from .source import Keyword

# A number of a node or an element, perhaps of an instance.
_NUMBER = re.compile(r"(\s*(?:[A-Za-z_][\w-]*\.)?)([0-9]{1,18})(\s*)")
# No node and no element has the number 0.
_ZERO = re.compile(r"\s*0+\s*")
_OPTION = re.compile(
    r"(?i)((?:,\s*)(REF ?NODE|ROT ?NODE|NODE|ELEMENT)\s*=\s*)([0-9]{1,18})(?=\s*(?:,|$))"
)
# The first line with this many fields may go on in the next one.
_FULL = 8


@dataclass(frozen=True)
class Span:
    """A number from ``start`` to ``stop``; ``what`` is ``node`` or ``element``."""

    start: int
    stop: int
    what: str


def refuse_results(k: Keyword) -> None:
    """Raise MeshprepError for a keyword that reads results with the old numbers."""
    reads = k.name in ("RESTART", "VIEWFACTOR") and "READ" in k.options
    takes = "FILE" in k.options and k.name not in OTHER_INPUT
    if reads or takes or k.name in OF_RESULTS:
        file = k.options.get("FILE", "")
        of = f" of {file}" if file else ""
        raise MeshprepError(
            f"{k.where}: *{k.name} takes in results{of} of a job with the old numbers: "
            "take it out, and run that job with the new numbers, too"
        )


def spans_of_header(header: str) -> list[Span]:
    """The numbers in options such as ``REF NODE=7``."""
    spans = []
    for match in _OPTION.finditer(header):
        if match[2].upper() == "ELEMENT":
            what = "element"
        else:
            what = "node"
        spans.append(Span(match.start(3), match.end(3), what))
    return spans


def spans_of_lines(k: Keyword) -> list[list[Span]]:
    """The numbers in each line of a keyword; zeros are none.

    Raises MeshprepError where a number may be one, and the keyword is not known.
    """
    out = []
    for line, fields in zip(k.lines, _fields_by_line(k), strict=True):
        spans = []
        term = 0
        for i, word in enumerate(line.split(",") if fields else ()):
            match = _NUMBER.fullmatch(word)
            if match and i in fields and int(match[2]):
                spans.append(Span(term + match.start(2), term + match.end(2), fields[i]))
            term += len(word) + 1
        out.append(spans)
    return out


def _fields_by_line(k: Keyword) -> list[Mapping[int, str]]:
    """For each line of a keyword the fields that may be numbers, and what these are of."""
    # Which fields are numbers depends on the keyword, and for some on its options.
    lines = dict(k.data())
    out: list[Mapping[int, str]] = [{} for _ in k.lines]
    if k.name in TERMS and "REMOVE" not in k.options:
        return _fields_of_terms(k, lines)
    if k.name == "ORIENTATION" and _option_of(k, "DEFINITION") == "NODES":
        # the second line is an axis and an angle
        for i in list(lines)[:1]:
            out[i] = dict.fromkeys(range(3), "node")
        return out
    if k.name == "STATIC" and "RIKS" in k.options:
        for i in lines:
            out[i] = {5: "node"}
        return out
    if k.name in FIELDS:
        for i in lines:
            out[i] = FIELDS[k.name]
        return out
    first = _first_field(k)
    if first is None:
        _refuse_numbers(k, lines)
    elif first:
        _refuse_long_lines(k, lines)
        for i, line in lines.items():
            label = "".join(line.split(",")[1:2])
            to_node = first == "element" and re.fullmatch(OF_NODE, label)
            if to_node:
                out[i] = {0: first, 2: "node"}
            else:
                out[i] = {0: first}
    return out


def _option_of(k: Keyword, name: str) -> str:
    return " ".join(k.options.get(name, "").upper().split())


def _first_field(k: Keyword) -> str | None:
    """The kind of number that the lines of a keyword begin with.

    It is "" for no number, and None where the keyword is not known.
    """
    if k.name == "INITIAL CONDITIONS":
        return CONDITIONS.get(_option_of(k, "TYPE"))
    if k.name == "SURFACE":
        return SURFACES.get(_option_of(k, "TYPE") or "ELEMENT")
    if k.name == "DISTRIBUTION":
        return LOCATIONS.get(_option_of(k, "LOCATION") or "ELEMENT")
    if k.name in TERMS:
        return TERMS[k.name][1]
    if k.name in PLAIN or k.name in ("", "ORIENTATION", "STATIC", "RESTART"):
        return ""
    return FIRST.get(k.name)


def _refuse_numbers(k: Keyword, lines: Mapping[int, str]) -> None:
    for i, line in lines.items():
        for word in line.split(","):
            if _NUMBER.fullmatch(word) and not _ZERO.fullmatch(word):
                _cannot_tell(k, i, word)


def _refuse_long_lines(k: Keyword, lines: Mapping[int, str]) -> None:
    """Refuse a number at the start of a line that may continue the values before it."""
    name = k.name
    if name == "INITIAL CONDITIONS":
        name += f" {_option_of(k, 'TYPE')}"
    if name not in LONG:
        return
    full = False
    for i, line in lines.items():
        words = line.split(",")
        if full and _NUMBER.fullmatch(words[0]):
            _cannot_tell(k, i, words[0])
        full = len(words) >= _FULL


def _cannot_tell(k: Keyword, i: int, word: str) -> None:
    raise MeshprepError(
        f"{k.place(i)}: cannot tell whether '{word.strip()}' of *{k.name} is a node or an "
        "element: name a set there, or take the keyword out"
    )


def _fields_of_terms(k: Keyword, lines: Mapping[int, str]) -> list[Mapping[int, str]]:
    """The fields of equations that are nodes or elements: the first of each term."""
    width, kinds = TERMS[k.name]
    out: list[Mapping[int, str]] = [{} for _ in k.lines]
    for equation in _equations(k, lines):
        # The terms of an equation go on through its lines: count fields from its first
        # line on.
        done = 0
        for i, words in equation:
            places = range(len(words))
            out[i] = {j: kinds for j in places if (done + j) % width == 0}
            done += len(words)
    return out


# The lines of an equation, each with its place and its words.
_Equation = list[tuple[int, list[str]]]


def _equations(k: Keyword, lines: Mapping[int, str]) -> list[_Equation]:
    """The equations of a keyword: a line with the count of terms, then the terms."""
    width, _ = TERMS[k.name]
    out: list[_Equation] = []
    left = 0
    for i, line in lines.items():
        words = line.rstrip(", ").split(",")
        if left > 0:
            out[-1].append((i, words))
            left -= len(words)
            continue
        if not re.fullmatch(r"[0-9]{1,9}", words[0].strip()):
            raise MeshprepError(
                f"{k.place(i)}: *{k.name}: '{words[0].strip()}' is no number of terms"
            )
        # So many fields belong to the equation, on however many lines.
        left = width * int(words[0])
        out.append([])
    return out


def sets_in_step(k: Keyword) -> list[tuple[str, list[str]]]:
    """Where a keyword goes through several sets of nodes together, and their names.

    An equation, or an MPC, of sets is one for the first nodes of all of them, one for the
    second ones, and so on.
    """
    lines = dict(k.data())
    groups: list[tuple[int, list[str]]] = []
    if k.name == "EQUATION" and "REMOVE" not in k.options:
        # A term begins with its node or set; degree of freedom and factor follow.
        width, _ = TERMS[k.name]
        for equation in _equations(k, lines):
            words = []
            for _, words_of_line in equation:
                words += words_of_line
            if equation:
                groups.append((equation[0][0], words[::width]))
    elif k.name == "MPC":
        for i, line in lines.items():
            kind, *words = line.split(",")
            if kind.strip().upper() not in TOGETHER:
                groups.append((i, words))
    out = []
    for i, words in groups:
        names = [w.strip() for w in words if w.strip() and not _NUMBER.fullmatch(w)]
        if len(names) > 1:
            out.append((k.place(i), names))
    return out
