"""Starting the process that reads a file, and taking what it sends."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from meshprep_runtime.errors import MeshprepError, MissingPackageError

from . import dump
from .contents import Item

# The program gets the path of modules that this process has, and nothing from where it is
# run.
_PROGRAM = (
    "import runpy, sys; sys.path[:] = sys.argv[5:]; "
    "runpy.run_path(sys.argv.pop(1), run_name='__main__')"
)
_LINK = "put what is there into this file"


class UnreadableFileError(Exception):
    """What a library said of a file that it could not read."""


def load(path: Path, kind: str, *, advice: str = _LINK) -> Item:
    """Everything in a file of this kind, ``"hdf5"`` or ``"netcdf"``.

    A program of its own reads it, so that a crash of a library in C is an error here. Only
    where Python is part of another program, and cannot be started, this process reads it.

    Parameters
    ----------
    path : Path
    kind : str
    advice : str
        What to do where the file has links.

    Returns
    -------
    Item
        The root. O(size of the file), once more than reading alone, through a pipe.

    Raises
    ------
    MeshprepError
        For links, values in other files, sizes that cannot be, and crashes.
    MissingPackageError
        Where the package that reads such a file is not installed.
    UnreadableFileError
        With the words of the library that could not read it.
    """
    if not sys.executable or getattr(sys, "frozen", False):
        return _tree_here(path, kind, advice)
    command = [sys.executable, "-P", "-W", "ignore", "-c", _PROGRAM, dump.__file__]
    command += [str(path), kind, advice, *sys.path]
    tree = _Tree()
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            for about, values in dump.received(process.stdout):  # type: ignore[arg-type]
                tree.take(about, values)
        except BaseException:
            process.kill()
            raise
    if tree.ended:
        return tree.root
    raise MeshprepError(_how_it_ended(process.returncode))


class _Tree:
    """The tree that grows from what is sent."""

    def __init__(self) -> None:
        self.root = Item("", {})
        self.ended = False

    def take(self, about: dict[str, Any], values: Any) -> None:
        """A group or dataset, the end, or an error."""
        if "refused" in about:
            raise MeshprepError(about["refused"])
        if "missing" in about:
            name = about["missing"].partition(".")[0]
            raise MissingPackageError(
                f"package {name} is needed: install it with  pip install {name}"
            )
        if "memory" in about:
            raise MemoryError
        if "failed" in about:
            raise UnreadableFileError(about["failed"])
        if "end" in about:
            self.ended = True
            return
        attributes = dump.decoded(about["attributes"])
        self.put(
            path=about["path"],
            attributes=attributes,
            values=values,
            is_group=about["is_group"],
            sizes=about["sizes"],
        )

    def put(
        self,
        path: str,
        attributes: dict[str, Any],
        values: Any,
        is_group: bool,
        sizes: dict[str, int],
    ) -> None:
        """Hang an item into the tree."""
        item = Item(
            path=path, attributes=attributes, values=values, is_group=is_group, sizes=sizes
        )
        if not path:
            self.root = item
            return
        above, _, name = path.rpartition("/")
        if above:
            parent = self.root[above]
        else:
            parent = self.root
        parent.children[name] = item


def _tree_here(path: Path, kind: str, advice: str) -> Item:
    made = _Tree()
    for piece in dump.pieces(path, kind, advice):
        made.put(piece.path, piece.attributes, piece.values, piece.is_group, piece.sizes)
    return made.root


def _how_it_ended(code: int) -> str:
    """In words, why a process has sent no end."""
    if code == -getattr(signal, "SIGKILL", 9):
        return "the system ended the process that reads it: there may be too little memory"
    if code < 0:
        how = f"crashed ({signal.Signals(-code).name})"
    else:
        how = f"ended (exit code {code})"
    return f"the library that reads it {how}: the file is damaged, write it again"
