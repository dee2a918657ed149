"""The lines of a deck with its included files in place, and its keywords."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from meshprep_runtime.errors import MeshprepError

from ..text.files import LinesOfFiles
from .keywords import OTHER_INPUT

_INPUT = re.compile(r'(?i),\s*INPUT\s*=\s*("[^"]*"|[^,\n]*)')


@dataclass(eq=False)
class Keyword:
    """A keyword with its options, its header as it stands, and the lines up to the next."""

    name: str
    options: dict[str, str]
    header: str
    where: str  # "line 12", in a file that is taken in with its name before
    lines: list[str] = field(default_factory=list)
    # Where lines begin that stand one below the other: which of them is the first, its
    # file, and its number there.
    starts: list[tuple[int, str, int]] = field(default_factory=list)

    def add(self, line: str, file: str, number: int) -> None:
        """Add a line of a file, which stands there as this number."""
        line_number = len(self.lines)
        if self.starts:
            first, last_file, first_number = self.starts[-1]
            follows = file == last_file and number - first_number == line_number - first
        if not self.starts or not follows:
            self.starts.append((line_number, file, number))
        self.lines.append(line)

    def data(self) -> Iterator[tuple[int, str]]:
        """The lines that are no comments, each with its place among the lines."""
        for i, line in enumerate(self.lines):
            text = line.strip()
            if text and not text.startswith("**"):
                yield i, text

    def place(self, i: int) -> str:
        """Where a line of this keyword stands, in words."""
        first, file, number = self.starts[bisect_right(self.starts, i, key=_first_line) - 1]
        return f"{file}line {number + i - first}"

    def comments(self) -> list[str]:
        """The lines that are comments."""
        return [line for line in self.lines if line.lstrip().startswith("**")]


def _first_line(start: tuple[int, str, int]) -> int:
    return start[0]


def keywords(path: Path) -> Iterator[Keyword]:
    """The keywords of a deck; the first has no name and holds the text before the others.

    ``*INCLUDE`` stands for the lines of its file wherever it is, so that data before it may
    go on there; ``INPUT=`` for lines at the beginning of the data. Neither is among the
    keywords.
    """
    source = LinesOfFiles(path)
    current = Keyword(name="", options={}, header="", where="line 1")
    while (line := source.next()) is not None:
        file, number = source.place
        if not _is_keyword(line):
            current.add(line, file, number)
            continue
        # A keyword begins with one asterisk and ends with a line that has no comma at its
        # end; two asterisks begin a comment.
        header = _whole_header(source, line.lstrip())
        keyword = _parsed(header, f"{file}line {number}")
        name = keyword.options.get("INPUT", "").strip('"')
        if keyword.name == "INCLUDE":
            source.take_in(name, f"*{keyword.name}", keyword.where)
            continue
        yield current
        current = keyword
        if "INPUT" in keyword.options and keyword.name not in OTHER_INPUT:
            keyword.header = _INPUT.sub("", header)
            source.take_in(name, f"*{keyword.name}", keyword.where)
    yield current


def _is_keyword(line: str) -> bool:
    text = line.lstrip()
    return text.startswith("*") and not text.startswith("**")


def _whole_header(source: LinesOfFiles, header: str) -> str:
    """The header with the lines that it goes on in after a comma at its end."""
    while header.rstrip().endswith(","):
        line = source.next()
        if line is None:
            break
        if _is_keyword(line):
            source.back()
            break
        header += "\n" + line
    return header


def _parsed(header: str, where: str) -> Keyword:
    lines = [line for line in header.split("\n") if not line.lstrip().startswith("**")]
    name, *words = [w.strip() for w in " ".join(lines)[1:].split(",")]
    if any(word.count('"') % 2 for word in words):
        raise MeshprepError(f"{where}: has a name with a comma: give it another name")
    # Keywords and options ignore case, and blanks but single ones between words.
    pairs = [w.partition("=") for w in words if w]
    options = {" ".join(k.upper().split()): value.strip() for k, _, value in pairs}
    return Keyword(
        name=" ".join(name.upper().split()), options=options, header=header, where=where
    )
