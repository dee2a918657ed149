"""Mappings by name that say which names they have."""

from collections.abc import Mapping
from typing import TypeVar

from ..errors import PlanError

T = TypeVar("T")


class UnknownNameError(PlanError, KeyError):
    """A name that there is not; the message lists those there are."""

    __str__ = PlanError.__str__


class Named(dict[str, T]):
    """A dict that raises UnknownNameError for a key that it has not; ``what`` is what it holds."""

    def __init__(self, what: str, entries: Mapping[str, T]) -> None:
        super().__init__(entries)
        self.what = what

    def __missing__(self, name: str) -> T:
        known = f"choose {', '.join(self)}" if self else "there is none"
        raise UnknownNameError(f"there is no {self.what} '{name}': {known}")


def name_entries(owner: object, **what: str) -> None:
    """Make these fields of a frozen dataclass :class:`Named`: ``name_entries(self, maps="map")``.

    O(entries of each).
    """
    for field, word in what.items():
        object.__setattr__(owner, field, Named(word, getattr(owner, field)))
