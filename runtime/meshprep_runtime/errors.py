"""The exceptions that meshprep raises: one base, so that a caller catches one name."""

from collections.abc import Callable, Collection, Iterable, Mapping
from importlib import import_module
from numbers import Integral, Real
from typing import Any, TypeVar

T = TypeVar("T")
Progress = Callable[[float, int, str], None]


class MeshprepError(Exception):
    """Something a user can mend: the message says what is wrong, where, and what to do.

    The base of every exception that meshprep raises. Messages are one line, without a
    trailing full stop, and name the file, line, set or element, as :func:`printable` shows
    it.
    """

    def __str__(self) -> str:
        # KeyError has a __str__ of its own, which puts the message into quotes.
        return printable(Exception.__str__(self))


class PlanError(MeshprepError):
    """A plan that is damaged, of an unknown version, or made for another mesh."""


class UnknownNameError(PlanError, KeyError):
    """A name that does not exist; the message lists the names that do."""

    __str__ = PlanError.__str__


class DistributedError(MeshprepError):
    """Something that several ranks do together has failed.

    ``ranks`` is the number of ranks that raise it together, with the same message; 0 where
    one rank raises it alone.
    """

    ranks = 0


class MissingPackageError(MeshprepError):
    """An optional package is needed; the message names the command that installs it."""


class ProofError(RuntimeError):
    """A plan that meshprep made fails its proof: an error in meshprep, not in the input."""


class MeshprepWarning(UserWarning):
    """Something works, but not as well as it could; one line says what would mend it."""


class UntestedVersionWarning(MeshprepWarning):
    """A version of numba or NumPy newer than the newest that meshprep was tested with."""


def import_package(module: str, message: str) -> Any:
    """Import an optional package, or a module of it.

    Raises MissingPackageError with the message where it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingPackageError(message) from error


def printable(text: str) -> str:
    r"""Text with its control characters shown as ``\u001b``; line breaks stay.

    Names of groups and files come from others and may be any text, also text that a
    terminal would obey.
    """
    if text.isprintable():
        return text
    return "".join(_escape_character(letter) for letter in text)


def _escape_character(letter: str) -> str:
    if letter.isprintable() or letter == "\n":
        return letter
    number = ord(letter)
    if number < 1 << 16:
        return f"\\u{number:04x}"
    return f"\\U{number:08x}"


def listed(items: Iterable[object]) -> str:
    """Names in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    names = [str(item) for item in items]
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def check_choice(what: str, value: str, known: Collection[str]) -> None:
    """Raise MeshprepError, listing the choices, unless the value is one of them."""
    if value not in known:
        choice = "there is none"
        if known:
            choice = f"use {', '.join(known)}"
        raise MeshprepError(f"{what} '{value}' is unknown: {choice}")


def check_integer(what: str, value: object, least: int = 1, most: int = 2**31 - 1) -> None:
    """Raise MeshprepError unless the value is a whole number within ``least..most``."""
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if is_integer and least <= value <= most:  # type: ignore[operator]
        return
    # Leave out an upper limit that is only that of an int32, unless the value is above it.
    too_large = is_integer and value > least  # type: ignore[operator]
    limits = f"within {least}..{most}"
    if most == 2**31 - 1 and not too_large:
        limits = f"from {least}"
    raise MeshprepError(f"{what} is {value!r}, must be a whole number {limits}")


def check_number(what: str, value: object, least: float = 0) -> None:
    """Raise MeshprepError unless the value is a number from ``least``; infinity is one."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    # NaN compares false, and is refused.
    if not is_number or not value >= least:  # type: ignore[operator]
        raise MeshprepError(f"{what} is {value!r}, must be a number from {least}")


class Named(dict[str, T]):
    """A dict that raises UnknownNameError for a missing key.

    ``what`` names the kind of its entries in the message.
    """

    def __init__(self, what: str, entries: Mapping[str, T]) -> None:
        super().__init__(entries)
        self.what = what

    def __missing__(self, name: str) -> T:
        choice = "there is none"
        if self:
            choice = f"choose {', '.join(self)}"
        raise UnknownNameError(f"there is no {self.what} '{name}': {choice}")


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
