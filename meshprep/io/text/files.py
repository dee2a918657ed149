"""The lines of a text and of the files that it takes in, each at its place."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.file.atomic import check_input

# How often a text takes in one file: files that take in one another may make a text of any
# length.
_MOST_TIMES = 100


@dataclass(eq=False)
class _OpenFile:
    """A file that is being read: its name for errors, and the position reached."""

    path: Path
    name: str
    lines: list[str]
    at: int = 0


class LinesOfFiles:
    """Lines one after the other; files are taken in where the last line stood."""

    def __init__(self, path: Path) -> None:
        self._folder = path.parent
        self._open = [_OpenFile(path, "", _lines_of(path))]
        self._times: Counter[Path] = Counter()

    def next(self) -> str | None:
        """The next line, None behind the last one."""
        while self._open and self._open[-1].at == len(self._open[-1].lines):
            self._open.pop()
        if not self._open:
            return None
        file = self._open[-1]
        file.at += 1
        return file.lines[file.at - 1]

    def back(self) -> None:
        """Give the last line once more."""
        self._open[-1].at -= 1

    @property
    def place(self) -> tuple[str, int]:
        """The file of the last line, as errors begin with it, and its number there."""
        return self._open[-1].name, self._open[-1].at

    def take_in(self, name: str, how: str, where: str) -> None:
        """Continue with the lines of another file, looked up from the first one's folder.

        Solvers look for it from where they run, which is there. Files outside are refused,
        so that no file carries what it was not given with into what is written. ``how`` and
        ``where`` are the statement and its line, in words.
        """
        path = self._folder / name
        try:
            if not name:
                raise MeshprepError("names no file: name one")
            check_input(path)
            lines = _lines_of(path)
        except MeshprepError as error:
            if name:
                what = f"{name} {error}"
            else:
                what = str(error)
            raise MeshprepError(f"{where}: {how}: {what}") from None
        whole = path.resolve()
        if not whole.is_relative_to(self._folder.resolve()):
            raise MeshprepError(
                f"{where}: {how} takes in {name}, which is not in the folder of the deck: "
                "copy it there, and name it without the folders above"
            )
        if any(file.path.resolve() == whole for file in self._open):
            raise MeshprepError(f"{where}: {how} of {name} takes itself in: take it out")
        self._times[whole] += 1
        if self._times[whole] > _MOST_TIMES:
            raise MeshprepError(
                f"{where}: takes in {name} more than {_MOST_TIMES} times: write it out"
            )
        self._open.append(_OpenFile(path, f"{name} ", lines))


def _lines_of(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    if "\0" in text:
        raise MeshprepError("is no text: it has zero bytes")
    lines = text.split("\n")
    if lines[-1]:
        return lines
    return lines[:-1]
