"""Every format but Gmsh and SU2, through meshio: one entry in a table each, one code for all.

meshio itself is imported when a file is read or written, not before.
"""

from functools import partial
from pathlib import Path
from typing import Any

from meshprep_runtime.errors import MeshprepError

from ...mesh import Mesh
from ..reduce import reduce
from ..registry import Format
from .table import ENTRIES, Entry

__all__ = ["FORMATS"]


def _read(entry: Entry, path: Path) -> Mesh:
    from .checks import check_before
    from .harden import guarded, load
    from .incoming import convert

    with guarded(f"not a readable {entry.name} file") as warnings:
        unread = check_before(entry.name, path)
        load()
        from .readers import run_reader

        source = run_reader(entry, path)
        # Warnings of things left out, as findings; the others are errors
        for text in warnings:
            if not text.startswith(entry.tolerated or ("\0",)):
                raise MeshprepError(f"not a readable {entry.name} file: {text}")
        unread += list(warnings)
        return convert(source, unread)


def _reduced(entry: Entry, mesh: Mesh) -> Mesh:
    from .normal import normal

    assert entry.capabilities is not None
    return normal(entry.name, reduce(mesh, entry.capabilities)[0])


def _losses(entry: Entry, mesh: Mesh, **_options: object) -> list[str]:
    from .normal import own_losses

    if entry.capabilities is None:
        raise MeshprepError(f"format '{entry.name}' can only be read: {entry.why}")
    kept, lost = reduce(mesh, entry.capabilities)
    return lost + own_losses(entry.name, kept)


def _write(entry: Entry, mesh: Mesh, path: Path, **options: Any) -> None:
    from .harden import guarded, load
    from .outgoing import convert

    assert entry.capabilities is not None
    kept = _reduced(entry, mesh)
    with guarded(f"format '{entry.name}' could not be written"):
        meshio = load()
        from .readers import WRITERS

        made = convert(kept, entry.capabilities, meshio)
        if entry.name in WRITERS:
            WRITERS[entry.name](str(path), made, **options)
        else:
            meshio.write(str(path), made, file_format=entry.name, **options)


def _format(entry: Entry) -> Format:
    return Format(
        entry.name,
        entry.extensions,
        partial(_read, entry),
        None if entry.capabilities is None else partial(_write, entry),
        partial(_losses, entry),
        entry.options,
        None if entry.capabilities is None else partial(_reduced, entry),
        entry.digits,
        extras=() if entry.capabilities is None else entry.capabilities.extras,
    )


FORMATS: dict[str, Format] = {entry.name: _format(entry) for entry in ENTRIES}
