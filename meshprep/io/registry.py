"""The table of file formats: which module reads and writes each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meshprep_runtime.errors import MeshprepError

from ..mesh import Mesh


@dataclass(frozen=True)
class Format:
    """A file format.

    Parameters
    ----------
    name : str
        What ``--format`` takes.
    extensions : tuple of str
        With the dot, lower case; the first is the usual one.
    read : callable
        ``read(path) -> Mesh``.
    write : callable or None
        ``write(mesh, path, **options)``; writes what it can, in the order of the mesh, and may
        assume that the caller asked ``losses`` first. None where the format is read only.
    losses : callable
        ``losses(mesh, **options) -> list of str``: what of this mesh the format cannot carry when
        written with these options, in a few words each, empty when nothing is lost.
    options : mapping of option name to default
        What ``write`` takes besides.
    reduce : callable or None
        ``reduce(mesh) -> Mesh``: what is left of the mesh when the losses are accepted, exactly as
        reading the written file gives it. None where nothing beyond the losses changes.
    digits : int
        Significant decimal digits that coordinates keep; 17 means exactly.
    """

    name: str
    extensions: tuple[str, ...]
    read: Callable[[Path], Mesh]
    write: Callable[..., None] | None
    losses: Callable[..., list[str]]
    options: Mapping[str, Any] = field(default_factory=dict)
    reduce: Callable[[Mesh], Mesh] | None = None
    digits: int = 17


def find(
    formats: Mapping[str, Format], path: Path, name: str | None, *, writing: bool = False
) -> Format:
    """The format of that name, or of the file's ending; the error lists what there is."""
    if name is not None:
        if name not in formats:
            raise MeshprepError(f"format '{name}' is unknown: use {', '.join(sorted(formats))}")
        return formats[name]
    lower = path.name.lower()
    able = [f for f in formats.values() if f.write is not None or not writing]
    endings = [(e, f) for f in able for e in f.extensions if lower.endswith(e)]
    if not endings:
        known = " ".join(sorted({e for f in able for e in f.extensions}))
        raise MeshprepError(
            f"{path}: cannot tell the format from the name: use one of {known}, or name the format"
        )
    return max(endings, key=lambda found: len(found[0]))[1]
