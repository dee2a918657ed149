"""The formats by name, ready to use: those of meshprep and those of other packages."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from meshprep_runtime.errors import MeshprepError, check_choice

from ..mesh import Mesh
from ..registry.entries import (
    LoadedEntries,
    RegistryEntry,
    import_from,
    in_one_line,
    named_errors,
)
from ..registry.formats import FORMATS as NAMES
from .format import Format
from .format.calls import check_call
from .guard import guarded

# What meshprep calls of a format, and the arguments that it gives.
_CALLS = {
    "read": ("path",),
    "write": ("mesh", "path"),
    "losses": ("mesh",),
    "reduce": ("mesh",),
}


def _format_of_entry(entry: RegistryEntry) -> Format:
    """The format of an entry of meshprep."""
    format: Format = import_from(entry.function)
    format = replace(
        format, name=entry.name, extensions=entry.endings, description=entry.help
    )
    if not format.guarded:
        return format
    if format.write is None:
        write = None
    else:
        write = partial(_write_guarded, format)
    return replace(format, read=partial(_read_guarded, format), write=write)


def _read_guarded(format: Format, path: Path, **options: Any) -> Mesh:
    with guarded(f"not a readable {format.name} file"):
        return format.read(path, **options)


def _write_guarded(format: Format, mesh: Mesh, path: Path, **options: Any) -> None:
    assert format.write is not None
    with guarded(f"format '{format.name}' could not be written"):
        format.write(mesh, path, **options)


def _format_of_package(format: Any, described: str) -> Format:
    """The format that another package adds, whose errors name the package."""
    if not isinstance(format, Format):
        raise MeshprepError(
            f"{described} is a {type(format).__name__}: its entry point must name a "
            "meshprep.io.format.Format"
        )
    for ending in format.extensions:
        if not ending.startswith(".") or ending != ending.lower():
            raise MeshprepError(
                f"{described}: the ending '{ending}' must begin with a dot and have no "
                "capital letters"
            )
    checked: dict[str, Any] = {}
    for task, arguments in _CALLS.items():
        function = getattr(format, task)
        if function is None and task in ("write", "reduce"):
            continue
        with named_errors(described):
            check_call(task, function, arguments)
        checked[task] = partial(_call_of_package, function, task, described)
    return replace(format, **checked)


# What a function of a format has to give, and that in words.
_RESULTS: dict[str, tuple[type, str]] = {
    "read": (Mesh, "a meshprep.Mesh"),
    "losses": (list, "a list of texts"),
    "reduce": (Mesh, "a meshprep.Mesh"),
}


def _call_of_package(
    function: Callable[..., Any], task: str, described: str, *arguments: Any, **options: Any
) -> Any:
    """Call a function of another package; its own errors become one line."""
    try:
        result = function(*arguments, **options)
    except (MeshprepError, OSError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        raise MeshprepError(
            f"{described}: {task} fails: {in_one_line(error)}: look into the file, or "
            "use another format"
        ) from error
    if task in _RESULTS:
        kind, words = _RESULTS[task]
        if not isinstance(result, kind):
            raise MeshprepError(
                f"{described}: {task} gave a {type(result).__name__}: it must give {words}"
            )
    return result


class LoadedFormats(LoadedEntries[Format]):
    """The formats, each with the name that it is registered under."""

    def __getitem__(self, name: str) -> Format:
        return replace(super().__getitem__(name), name=name)


FORMATS = LoadedFormats(
    registry=NAMES, from_entry=_format_of_entry, from_package=_format_of_package
)


def find(path: Path, name: str | None, *, writing: bool = False) -> Format:
    """The format of that name, or of the longest fitting ending; the error lists all."""
    if name is not None:
        if name not in FORMATS:
            check_choice("format", name, sorted(FORMATS))
        return FORMATS[name]
    format = find_by_ending(path)
    if format is not None:
        return format
    if writing:
        advice = "name the format"
    else:
        advice = "name the format by --format (in Python format=)"
    raise MeshprepError(
        f"{path}: cannot tell the format from the name: use one of "
        f"{' '.join(sorted(_all_endings()))}, {advice}, "
        "or leave others to  meshio convert"
    )


def find_by_ending(path: Path) -> Format | None:
    """The format of the longest ending that fits, None where there is none.

    Endings of meshprep's formats mean these, whatever is installed.

    Raises MeshprepError where only formats of other packages can have the ending, and one
    of them cannot be loaded, or several have it.
    """
    by_ending: dict[str, str] = {}
    for entry in NAMES.entries:
        by_ending |= dict.fromkeys(entry.endings, entry.name)
    ending = _longest_ending(path, by_ending)
    if ending is not None:
        return FORMATS[by_ending[ending]]
    return _find_added_by_ending(path)


def _longest_ending(path: Path, endings: Iterable[str]) -> str | None:
    fitting = [ending for ending in endings if path.name.lower().endswith(ending)]
    return max(fitting, key=len, default=None)


def _find_added_by_ending(path: Path) -> Format | None:
    """The format of another package with the longest ending that fits."""
    fitting: dict[str, list[Format]] = {}
    errors: list[MeshprepError] = []
    for name in NAMES.added:
        try:
            format = FORMATS[name]
        except MeshprepError as error:
            errors.append(error)
            continue
        ending = _longest_ending(path, format.extensions)
        if ending is not None:
            fitting.setdefault(ending, []).append(format)
    if fitting:
        chosen = fitting[max(fitting, key=len)]
        if len(chosen) > 1:
            names = " and ".join(f"'{format.name}'" for format in chosen)
            raise MeshprepError(
                f"{path}: the formats {names} of other packages have the same ending: name "
                "one by --format (in Python format=)"
            )
        return chosen[0]
    # The package that cannot be loaded may be the one with the ending.
    if errors:
        raise errors[0]
    NAMES.refuse_taken()
    return None


def _all_endings() -> Iterator[str]:
    for format in FORMATS.values():
        yield from format.extensions


def find_folder(path: Path, name: str | None) -> Format | None:
    """The format, of that name where one is given, whose mesh is a folder or lies in it."""
    candidates = [entry.name for entry in NAMES.entries if entry.in_folders]
    if path.is_dir():
        candidates += NAMES.added
    for candidate in candidates:
        if name in (None, candidate):
            format = FORMATS[candidate]
            if format.folder is not None and format.folder(path) is not None:
                return format
    return None
