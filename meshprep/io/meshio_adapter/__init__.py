"""Formats with blocks of cells: one entry in a table each, one way from and to our mesh for all."""

from functools import partial
from importlib import import_module
from pathlib import Path

from ...mesh import Mesh
from ..reduce import reduce
from ..registry import Format
from .table import ENTRIES, Entry

__all__ = ["FORMATS"]


def _read(entry: Entry, path: Path) -> Mesh:
    from .harden import guarded
    from .incoming import convert

    with guarded(f"not a readable {entry.name} file"):
        return convert(import_module(f".{entry.name}", __package__).read(path))


def _reduced(entry: Entry, mesh: Mesh) -> Mesh:
    from .normal import normal

    return normal(entry.name, reduce(mesh, entry.capabilities)[0])


def _losses(entry: Entry, mesh: Mesh, **_options: object) -> list[str]:
    from .normal import own_losses

    kept, lost = reduce(mesh, entry.capabilities)
    return lost + own_losses(entry.name, kept)


def _write(entry: Entry, mesh: Mesh, path: Path) -> None:
    from .harden import guarded
    from .outgoing import convert

    with guarded(f"format '{entry.name}' could not be written"):
        made = convert(_reduced(entry, mesh), entry.capabilities)
        import_module(f".{entry.name}", __package__).write(path, made)


def _format(entry: Entry) -> Format:
    return Format(
        entry.name,
        entry.extensions,
        partial(_read, entry),
        partial(_write, entry),
        partial(_losses, entry),
        reduce=partial(_reduced, entry),
        digits=entry.digits,
        extras=entry.capabilities.extras,
    )


FORMATS: dict[str, Format] = {entry.name: _format(entry) for entry in ENTRIES}
