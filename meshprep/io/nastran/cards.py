"""The cards of the bulk data, whatever form their fields have."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from meshprep_runtime.errors import MeshprepError

from ..text.files import LinesOfFiles

# Characters of a field; the first field of a line is a small one.
SMALL, LARGE = 8, 16
# Where the fields of a line end, and the mark of the line that goes on with it begins.
_FIELDS_END, _MARK_END = 72, 80
_BEGIN = re.compile(r"(?i)\s*BEGIN\b\s*(.*)")
_END = re.compile(r"(?i)\s*ENDDATA\b")
_INCLUDE = re.compile(r"(?i)\s*INCLUDE\b\s*(.*)")
_CONTROL = re.compile(r"(?i)\s*(CEND|SOL\s+\w+)\s*$")
# Executive control that says nothing of its own.
_PLAIN_HEAD = ("SOL 101", "CEND")


class _Line(NamedTuple):
    text: str
    where: str


@dataclass(eq=False)
class Card:
    """A card: its name in capital letters, and the fields behind it as they stand."""

    name: str
    fields: list[str]
    where: str
    end: int  # how many fields its lines have room for
    mark: str  # of the line that goes on with it, if it has one


@dataclass(frozen=True, eq=False)
class Bulk:
    """The cards of a deck, and whether executive or case control stand before them."""

    cards: list[Card]
    has_head: bool


def read_bulk(path: Path) -> Bulk:
    """The cards of a deck and of the files that it takes in.

    Raises MeshprepError where a deck seems to be cut off, and for several models in one.
    """
    lines = list(_lines_of_bulk(path))
    begins = [i for i, line in enumerate(lines) if _BEGIN.match(line.text)]
    ended = bool(lines) and _END.match(lines[-1].text) is not None
    if not ended:
        _refuse_cut_off(path, lines, begun=bool(begins))
    for i in begins:
        match = _BEGIN.match(lines[i].text)
        if len(begins) > 1 or (match and match[1].strip().upper() not in ("", "BULK")):
            raise MeshprepError(
                f"{lines[begins[-1]].where}: '{lines[begins[-1]].text.strip()[:40]}': "
                "several models in a deck are not supported"
            )
    # Executive and case control stand before BEGIN BULK; a file of bulk data alone has
    # neither.
    bulk = lines[begins[0] + 1 :] if begins else lines
    if begins:
        head = lines[: begins[0]]
    else:
        head = []
    words = [" ".join(line.text.upper().split()) for line in head]
    return Bulk(
        cards=list(_cards(bulk[:-1] if ended else bulk)),
        has_head=any(text not in _PLAIN_HEAD for text in words),
    )


def _refuse_cut_off(path: Path, lines: Sequence[_Line], *, begun: bool) -> None:
    """Refuse a deck without ENDDATA, which only bulk data alone may leave out."""
    if begun:
        raise MeshprepError(
            "there is no ENDDATA: the file is cut off, or write ENDDATA at its end"
        )
    for line in lines:
        if _CONTROL.match(line.text):
            raise MeshprepError(
                f"{line.where}: '{line.text.strip()}' without BEGIN BULK: the file is cut "
                "off"
            )
    if not path.read_bytes().endswith(b"\n"):
        raise MeshprepError(
            "it ends in the middle of a line, without ENDDATA: the file is cut off, or "
            "write ENDDATA at its end"
        )


def _lines_of_bulk(path: Path) -> Iterator[_Line]:
    """Lines up to ENDDATA without comments and blank ones, with included files in place."""
    source = LinesOfFiles(path)
    while (line := source.next()) is not None:
        file, number = source.place
        where = f"{file}line {number}"
        # most lines are told by their first letter alone
        letter = line.lstrip()[:1].upper()
        match = _INCLUDE.match(line) if letter == "I" else None
        if match:
            source.take_in(_file_name(source, match[1].strip()), "INCLUDE", where)
            continue
        text = line.partition("$")[0].rstrip()
        if not text or text.startswith(("//", "#")):
            continue
        yield _Line(text, where)
        if letter == "E" and _END.match(text):
            return


def _file_name(source: LinesOfFiles, text: str) -> str:
    """The name of a file, which may go on in the next lines where it stands in quotes."""
    quote = text[:1]
    if quote not in ("'", '"'):
        return text.partition("$")[0].strip()
    while text.count(quote) < 2:
        line = source.next()
        if line is None:
            break
        text += line.strip()
    return text.split(quote)[1].strip()


def _cards(lines: Sequence[_Line]) -> Iterator[Card]:
    """Each card with the lines that go on with it."""
    card = None
    for line in lines:
        first, fields, mark, room = _split_fields(line)
        if first[:1] not in ("", "+", "*"):
            if card is not None:
                yield card
            # An asterisk behind the name says that the fields are large ones.
            name = first.rstrip("*").strip().upper()
            if name.startswith("="):
                raise MeshprepError(
                    f"{line.where}: '{first}' repeats the card before it: write it out"
                )
            card = Card(name=name, fields=fields, where=line.where, end=room, mark=mark)
            continue
        own_mark = first[1:].strip()
        if card is None or (own_mark and card.mark and own_mark != card.mark):
            raise MeshprepError(
                f"{line.where}: '{first}' goes on with no line above: put it below its card"
            )
        # fields that are left out at the end of a line count
        card.fields += [""] * (card.end - len(card.fields)) + fields
        card.end += room
        card.mark = mark
    if card is not None:
        yield card


def _split_fields(line: _Line) -> tuple[str, list[str], str, int]:
    """The first field, those behind it, the mark at the end, and how many have room."""
    if "," in line.text:
        # Fields are as wide as their text where commas part them.
        words = [word.strip() for word in line.text.split(",")]
        room = 4 if "*" in words[0] else 8
        if any(words[room + 2 :]):
            raise MeshprepError(
                f"{line.where}: has more than {room + 2} fields: write the others in a "
                "line of its own that begins with a comma"
            )
        mark = "".join(words[room + 1 : room + 2])
        return words[0], words[1 : room + 1], mark.lstrip("+*").strip(), room
    # Else a line has eight columns for the name, 64 for eight small or four large fields,
    # and eight for the mark of the line that goes on.
    text = line.text.expandtabs(SMALL)
    body = text[:_FIELDS_END]
    width = LARGE if "*" in text[:SMALL] else SMALL
    fields = [body[i : i + width].strip() for i in range(SMALL, len(body), width)]
    mark = text[_FIELDS_END:_MARK_END].strip().lstrip("+*").strip()
    return text[:SMALL].strip(), fields, mark, (_FIELDS_END - SMALL) // width
