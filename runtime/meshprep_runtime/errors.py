"""The exceptions that meshprep raises: one base, so that a caller catches one name."""

from collections.abc import Callable, Collection, Iterable, Mapping
from importlib import import_module
from numbers import Integral, Real
from typing import Any, TypeVar

T = TypeVar("T")
Progress = Callable[[float, int, str], None]


class MeshprepError(Exception):
    """Something a user can mend: the message says what is wrong, where, and what to do.

    The base of every exception that meshprep raises. Messages are one line, without a trailing full
    stop, and name the file, line, set or element, as :func:`printable` shows it.
    """

    def __str__(self) -> str:
        # not that of a KeyError, which quotes
        return printable(Exception.__str__(self))


class PlanError(MeshprepError):
    """A plan that is damaged, of an unknown version, or made for another mesh."""


class UnknownNameError(PlanError, KeyError):
    """A name that there is not; the message lists those there are."""

    __str__ = PlanError.__str__


class DistributedError(MeshprepError):
    """Something that several ranks do together has failed.

    ``ranks`` is how many raise it together, with the same message; 0 where one rank does alone.
    """

    ranks = 0


class MissingPackageError(MeshprepError):
    """An optional package is needed; the message names the command that installs it."""


class ProofError(RuntimeError):
    """A plan that meshprep made does not pass its proof: a fault of meshprep, not of the input."""


class MeshprepWarning(UserWarning):
    """Something that works, but not as it should: one line that says what would mend it."""


class UntestedVersionWarning(MeshprepWarning):
    """A version of numba or NumPy that came after those that meshprep was tested with."""


def import_package(module: str, message: str) -> Any:
    """An optional package, or a module of it; raises MissingPackageError where it is not there."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingPackageError(message) from error


def printable(text: str) -> str:
    r"""Text that does nothing to a terminal: control characters are shown as ``\u001b``.

    Names of groups and files are any text, and come from others. Line breaks stay.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else _escaped(c) for c in text)


def _escaped(letter: str) -> str:
    number = ord(letter)
    return f"\\u{number:04x}" if number < 1 << 16 else f"\\U{number:08x}"


def listed(items: Iterable[object]) -> str:
    """Names in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    names = [str(item) for item in items]
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def check_choice(what: str, value: str, known: Collection[str]) -> None:
    """Raise MeshprepError, listing the choices, unless the value is one of them."""
    if value not in known:
        choice = f"use {', '.join(known)}" if known else "there is none"
        raise MeshprepError(f"{what} '{value}' is unknown: {choice}")


def check_integer(what: str, value: object, least: int = 1, most: int = 2**31 - 1) -> None:
    """Raise MeshprepError unless the value is a whole number within ``least..most``."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not least <= value <= most:  # type: ignore[operator]
        large, any_int = whole and value > least, most == 2**31 - 1  # type: ignore[operator]
        limits = f"from {least}" if any_int and not large else f"within {least}..{most}"
        raise MeshprepError(f"{what} is {value!r}, must be a whole number {limits}")


def check_number(what: str, value: object, least: float = 0) -> None:
    """Raise MeshprepError unless the value is a number from ``least``; infinity is one."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not value >= least:  # type: ignore[operator]
        raise MeshprepError(f"{what} is {value!r}, must be a number from {least}")


class Named(dict[str, T]):
    """A dict that raises UnknownNameError for a key that it has not; ``what`` is what it holds."""

    def __init__(self, what: str, entries: Mapping[str, T]) -> None:
        super().__init__(entries)
        self.what = what

    def __missing__(self, name: str) -> T:
        known = f"choose {', '.join(self)}" if self else "there is none"
        raise UnknownNameError(f"there is no {self.what} '{name}': {known}")


def name_entries(**what: str) -> Callable[[type[T]], type[T]]:
    """A decorator below ``@dataclass``: these fields become :class:`Named`.

    As in ``@name_entries(maps="map")``. O(entries of each).
    """

    def name_them(owner: object) -> None:
        for field, word in what.items():
            object.__setattr__(owner, field, Named(word, getattr(owner, field)))

    def decorate(kind: Any) -> Any:
        kind.__post_init__ = name_them
        return kind

    return decorate
