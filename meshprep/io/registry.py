"""The table of file formats: which module reads and writes each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meshprep_runtime.errors import MeshprepError, check_choice
from meshprep_runtime.types.ordering import Ordering

from ..mesh import Mesh

# By ending: formats of surfaces and of programs that have gone, which meshio converts.
GONE = {
    **{".ply": "ply", ".obj": "obj", ".off": "off", ".stl": "stl", ".tec": "tecplot"},
    **{".h5m": "h5m", ".hmf": "hmf", ".xml": "dolfin-xml", ".avs": "avsucd"},
    **{".post": "permas", ".dato": "permas", ".f3grid": "flac3d"},
}


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
    # ``order(mesh) -> {set name: Ordering}``: the order in which a file has the elements of some
    # sets, whatever that of the mesh. None where the order is that of the mesh.
    order: Callable[[Mesh], Mapping[str, Ordering]] | None = None
    # ``folder(path) -> Path``: the folder that holds the mesh where that is no file, else None.
    folder: Callable[[Path], Path | None] | None = None
    # ``breaks(mesh, sets) -> str``: which usual reader of this format cannot read the file once
    # these sets have values of whole numbers more, in words; empty where all can.
    breaks: Callable[[Mesh, Sequence[str]], str] | None = None


def find(
    formats: Mapping[str, Format], path: Path, name: str | None, *, writing: bool = False
) -> Format:
    """The format of that name, or of the longest ending that fits; the error lists what there is.

    Raises MeshprepError that says how to convert where it is one of :data:`GONE`.
    """
    if name is not None and name not in GONE.values():
        check_choice("format", name, sorted(formats))
        return formats[name]
    endings = {e: f for f in formats.values() for e in f.extensions}
    lower = path.name.lower()
    if name is not None or lower.endswith(tuple(GONE)):
        gone = name or GONE[next(e for e in GONE if lower.endswith(e))]
        before, after = ("a.vtu", path.name) if writing else (path.name, "a.vtu")
        raise MeshprepError(
            f"{path}: format '{gone}' is left to meshio: use a.vtu, and  "
            f"meshio convert {before} {after}"
        )
    found = [e for e in endings if lower.endswith(e)]
    if not found:
        how = "name the format" if writing else "name the format by --format (in Python format=)"
        known = sorted(e for e, f in endings.items() if f.write is not None or not writing)
        raise MeshprepError(
            f"{path}: cannot tell the format from the name: use one of {' '.join(known)}, or {how}"
        )
    return endings[max(found, key=len)]
