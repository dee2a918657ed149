"""Tables of names: entries of meshprep, and entry points of other packages.

The tables hold text alone. A function is imported when it is about to run, and the metadata
of other packages is read when a name is unknown or all names are listed, so that help and
completion cost nothing.
"""

import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from meshprep_runtime.errors import MeshprepError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# What a Registry's names stand for once they are loaded.
T = TypeVar("T")

# Names are words of commands, of loops.toml and of plan files.
VALID_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
# The letters of another package's error that a message repeats.
LONGEST_REASON = 200


@dataclass(frozen=True)
class RegistryEntry:
    """An order, a partitioner or a format of meshprep.

    Parameters
    ----------
    name : str
        How it is chosen.
    function : str
        Where the function is, as ``"package.module:function"``. Of formats: where the
        ``Format`` is.
    help : str
        One line.
    paper : str
        Where the method is from; empty for what needs no source.
    needs_coordinates : bool
        Whether it needs coordinates of the points. Of orders.
    auto_turn : mapping of str to int
        By target, when ``auto`` tries it: the lowest turn first. Of orders; ``auto`` never
        tries one without.
    options : str
        Where the table of its options is. Of partitioners; empty for none.
    endings : tuple of str
        The endings of its files' names, with the dot; the first is the usual one. Of
        formats.
    in_folders : bool
        Whether a folder may be such a mesh. Of formats.
    read_only : bool
        Whether no file is written. Of formats.
    """

    name: str
    function: str
    help: str
    paper: str = ""
    needs_coordinates: bool = False
    auto_turn: Mapping[str, int] = field(default_factory=dict)
    options: str = ""
    endings: tuple[str, ...] = ()
    in_folders: bool = False
    read_only: bool = False


@dataclass(frozen=True)
class Registry(Collection[str]):
    """The names that can be chosen, in the order in which they are listed.

    Parameters
    ----------
    kind : str
        What a name stands for, in words.
    group : str
        The group of entry points by which other packages add theirs. A name of meshprep
        means what it means, whatever is installed.
    entries : tuple of RegistryEntry
        Those of meshprep.
    also : tuple of str
        Names that can be chosen, but that no entry stands for.
    """

    kind: str
    group: str
    entries: tuple[RegistryEntry, ...]
    also: tuple[str, ...] = ()

    @property
    def built_in(self) -> tuple[str, ...]:
        """The names of meshprep's own entries."""
        return tuple(entry.name for entry in self.entries)

    @property
    def added(self) -> tuple[str, ...]:
        """The names that other packages add."""
        own = {*self.also, *self.built_in}
        return tuple(name for name in installed_entry_points(self.group) if name not in own)

    def __contains__(self, name: object) -> bool:
        return name in self.also or name in self.built_in or name in self.added

    def refuse_taken(self) -> None:
        """Raise MeshprepError where another package adds a name of meshprep's own."""
        points = installed_entry_points(self.group)
        for name in (*self.also, *self.built_in):
            if name in points:
                packages = " and ".join(sorted(map(_package_of, points[name])))
                raise MeshprepError(
                    f"{self.kind} '{name}' of {packages}: the name is taken by meshprep: "
                    "give it another one"
                )

    def __iter__(self) -> Iterator[str]:
        yield from self.also
        yield from self.built_in
        yield from self.added

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def entry(self, name: str) -> RegistryEntry | None:
        """The entry of meshprep of this name; None where there is none."""
        for entry in self.entries:
            if entry.name == name:
                return entry
        return None

    def load_added(self, name: str) -> tuple[Any, str]:
        """Load what another package adds under a name.

        Returns
        -------
        object, str
            What the entry point names, and how messages speak of it.

        Raises
        ------
        MeshprepError
            Where two packages add the name, where it is no word, and where importing fails.
        KeyError
            Where nothing has this name.
        """
        points = installed_entry_points(self.group)[name]
        packages = " and ".join(sorted(map(_package_of, points)))
        described = f"{self.kind} '{name}' of {packages}"
        if not VALID_NAME.fullmatch(name):
            raise MeshprepError(
                f"{described}: the name must be of letters, digits, '-' and '_'"
            )
        if len(points) > 1:
            raise MeshprepError(f"{described}: two packages add it: uninstall one of them")
        try:
            return points[0].load(), described
        except (Exception, SystemExit) as error:
            raise MeshprepError(
                f"{described} cannot be loaded from {points[0].value}: "
                f"{in_one_line(error)}: mend or uninstall the package"
            ) from error


class LoadedEntries(Mapping[str, T], Generic[T]):
    """What the names of a registry stand for, each imported when it is asked for.

    Parameters
    ----------
    registry : Registry
    from_entry : callable
        Makes the order or partitioner of an entry of meshprep.
    from_package : callable
        Makes the order or partitioner of the object that another package adds; it is given
        how messages speak of it, and raises MeshprepError for an object of another kind.
    """

    def __init__(
        self,
        registry: Registry,
        from_entry: Callable[[RegistryEntry], T],
        from_package: Callable[[Any, str], T],
    ) -> None:
        self._registry = registry
        self._from_entry = from_entry
        self._from_package = from_package

    def __getitem__(self, name: str) -> T:
        entry = self._registry.entry(name)
        if entry is not None:
            return self._from_entry(entry)
        if name in self._registry.also or name not in self._registry.added:
            raise KeyError(name)
        return self._from_package(*self._registry.load_added(name))

    def __contains__(self, name: object) -> bool:
        return name not in self._registry.also and name in self._registry

    def __iter__(self) -> Iterator[str]:
        yield from self._registry.built_in
        yield from self._registry.added

    def __len__(self) -> int:
        return sum(1 for _ in self)


def import_from(place: str) -> Any:
    """The object that ``"package.module:name"`` names."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def installed_entry_points(group: str) -> Mapping[str, tuple["EntryPoint", ...]]:
    """The entry points of a group by their names, in the order of these."""
    return _entry_points_on(group, tuple(sys.path))


@cache
def _entry_points_on(
    group: str, path: tuple[str, ...]
) -> Mapping[str, tuple["EntryPoint", ...]]:
    """The entry points of a group that are found on a path, which is Python's own now."""
    from importlib.metadata import entry_points

    by_name: dict[str, tuple[EntryPoint, ...]] = {}
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        by_name[point.name] = (*by_name.get(point.name, ()), point)
    return MappingProxyType(by_name)


def _package_of(point: "EntryPoint") -> str:
    """The distribution that an entry point is of."""
    if point.dist is None:
        return "an unnamed package"
    return f"package {point.dist.name}"


@contextmanager
def named_errors(described: str) -> Iterator[None]:
    """Begin errors with what another package adds and is to blame."""
    try:
        yield
    except MeshprepError as error:
        raise MeshprepError(f"{described}: {error}") from None


def in_one_line(error: BaseException) -> str:
    """The kind and the text of an error of another package, shortened to one line."""
    text = " ".join(str(error).split())
    if len(text) > LONGEST_REASON:
        text = f"{text[:LONGEST_REASON]}..."
    return f"{type(error).__name__}: {text}".rstrip(": ")
