"""The table of file formats: which module reads and writes each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meshprep_runtime.errors import MeshprepError, check_choice
from meshprep_runtime.ordering import Ordering

from ..mesh import Mesh


@dataclass(frozen=True)
class Format:
    """A file format."""

    name: str  # what ``--format`` takes
    extensions: tuple[str, ...]  # with the dot, lower case; the first is the usual one
    read: Callable[[Path], Mesh]  # ``read(path) -> Mesh``
    # ``write(mesh, path, **options)``; writes what it can, in the order of the mesh, and may assume
    # that the caller asked ``losses`` first. None where the format is read only.
    write: Callable[..., None] | None
    # ``losses(mesh, **options) -> list of str``: what of this mesh the format cannot carry when
    # written with these options, in a few words each, empty when nothing is lost.
    losses: Callable[..., list[str]]
    # By option name: what ``write`` takes besides.
    options: Mapping[str, Any] = field(default_factory=dict)
    # ``reduce(mesh) -> Mesh``: what is left of the mesh when the losses are accepted, exactly as
    # reading the written file gives it. None where nothing beyond the losses changes.
    reduce: Callable[[Mesh], Mesh] | None = None
    digits: int = 17  # significant decimal digits that coordinates keep; 17 means exactly
    # The file holds cells of known types; False where it holds sets and maps of any kind.
    cells: bool = True
    # Keys of :attr:`meshprep.mesh.Mesh.extras` that hold content and are written.
    extras: tuple[str, ...] = ()
    # By option name: what ``read`` takes besides.
    read_options: Mapping[str, Any] = field(default_factory=dict)
    # ``again(mesh) -> dict``: the options of ``read`` that give back this mesh once written.
    again: Callable[[Mesh], dict[str, Any]] | None = None
    # ``sniff(start) -> bool``: whether a file that begins with these bytes is of this format; for
    # formats that share an ending with another.
    sniff: Callable[[bytes], bool] | None = None
    # ``order(mesh) -> {set name: Ordering}``: the order in which a file has the elements of some
    # sets, whatever that of the mesh. None where the order is that of the mesh.
    order: Callable[[Mesh], Mapping[str, Ordering]] | None = None
    # ``breaks(mesh, sets) -> str``: which usual reader of this format cannot read the file once
    # these sets have values of whole numbers more, in words; empty where all can.
    breaks: Callable[[Mesh, Sequence[str]], str] | None = None


def find(
    formats: Mapping[str, Format],
    path: Path,
    name: str | None,
    *,
    writing: bool = False,
    of: Mesh | None = None,
) -> Format:
    """The format of that name, or of the file's ending; the error lists what there is.

    Where formats share the ending, the beginning of the file tells on reading; on writing it is
    the format that the mesh ``of`` came from.
    """
    if name is not None:
        check_choice("format", name, sorted(formats))
        return formats[name]
    lower = path.name.lower()
    able = [f for f in formats.values() if f.write is not None or not writing]
    endings = [(e, f) for f in able for e in f.extensions if lower.endswith(e)]
    if not endings:
        known = " ".join(sorted({e for f in able for e in f.extensions}))
        how = "name the format" if writing else "name the format by --format (in Python format=)"
        raise MeshprepError(
            f"{path}: cannot tell the format from the name: use one of {known}, or {how}"
        )
    longest = max(len(e) for e, _ in endings)
    found = [f for e, f in endings if len(e) == longest]
    own = [f for f in found if _is_own(f, path, of)] if len(found) > 1 else []
    return (own or found)[0]


def _is_own(f: Format, path: Path, of: Mesh | None) -> bool:
    if of is not None:
        return any(k.partition(":")[0] == f.name for k in of.extras)
    if f.sniff is None or not path.is_file():
        return False
    try:
        with open(path, "rb") as file:
            return f.sniff(file.read(4096))
    except OSError:
        return False
