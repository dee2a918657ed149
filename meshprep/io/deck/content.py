"""What is read of a deck: numbers as in the file, and where everything stands."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The group of cells by the type of their elements, the deck among the extras, and the kinds
# of index lists that are no sets: numbers in the deck, and nodes of elements that loops do
# not run over.
TYPE, DECK, REFERENCES, OTHERS = "abaqus:type", "abaqus:deck", "deck", "deck:elements"
# Values on nodes: the normal that a line of *NODE has behind the coordinates.
NORMAL = "abaqus:normal"


@dataclass(frozen=True)
class Place:
    """Where something of the mesh stands in a deck.

    ``what`` is ``nodes``, ``elements``, ``set`` (of this key, under this header), ``node``
    or ``element`` (the number at this place of the index lists), or ``other`` (the element
    that loops do not run over, by its number in the file).
    """

    what: str
    number: int = 0
    key: str = ""
    header: str = ""
    others: tuple[int, ...] = ()  # of a set: its elements that loops do not run over


@dataclass(eq=False)
class Content:
    """What was read so far."""

    items: list[str | Place] = field(default_factory=list)
    nodes: dict[int, int] = field(default_factory=dict)  # places by number
    points: list[NDArray[np.float64]] = field(default_factory=list)
    normals: dict[int, list[float]] = field(default_factory=dict)  # by number
    # The type of elements, and rows of number and nodes.
    blocks: list[tuple[str, NDArray[np.int64]]] = field(default_factory=list)
    # Elements that loops do not run over: by type, number and nodes; 0 is no node.
    others: dict[str, list[list[int]]] = field(default_factory=dict)
    other_nodes: dict[str, int] = field(default_factory=dict)  # how many, by type
    sets: dict[str, list[Any]] = field(default_factory=dict)  # by key: numbers and names
    names: dict[str, str] = field(default_factory=dict)  # by key: as first written
    unsorted: set[str] = field(
        default_factory=set
    )  # keys of sets with an order of their own
    references: dict[str, list[int]] = field(
        default_factory=lambda: {"node": [], "element": []}
    )
    # Options that name a set by what may be a number: the key, and where.
    checks: list[tuple[str, str]] = field(default_factory=list)
    # Sets that a keyword goes through in step: where, the keyword and the names.
    in_step: list[tuple[str, str, list[str]]] = field(default_factory=list)
    instances: dict[str, list[str]] = field(
        default_factory=lambda: {"PART": [], "INSTANCE": []}
    )
    scope: str = ""

    def has_elements(self) -> bool:
        """Whether there was any element, whatever its type."""
        return bool(self.blocks or self.others)


def other_numbers(content: Content) -> list[int]:
    """Numbers of the elements that loops do not run over, in the order of their types."""
    numbers: list[int] = []
    for rows in content.others.values():
        numbers += [row[0] for row in rows]
    return numbers


class Numbers:
    """Numbers of a file, and where each stands among them."""

    def __init__(self, numbers: Sequence[int] | NDArray[np.int64]) -> None:
        self.numbers = np.asarray(numbers, dtype=np.int64)
        self._order = np.argsort(self.numbers, kind="stable")
        self._sorted = self.numbers[self._order]

    def places(self, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where these numbers stand, -1 for those that are not there. O(n log n)."""
        if not self.numbers.size:
            return np.full(wanted.shape, -1)
        at = np.searchsorted(self._sorted, wanted).clip(max=self.numbers.size - 1)
        return np.where(self._sorted[at] == wanted, self._order[at], -1)

    def twice(self) -> int | None:
        """The lowest number that stands there more than once."""
        again = self._sorted[1:][self._sorted[1:] == self._sorted[:-1]]
        if again.size:
            return int(again[0])
        return None

    def between(self, numbers: range) -> list[int]:
        """Those of the numbers of a range that are there, from the lowest on."""
        begin, end = np.searchsorted(self._sorted, [numbers.start, numbers.stop])
        inside = self._sorted[begin:end]
        chosen = inside[(inside - numbers.start) % numbers.step == 0]
        return [int(number) for number in chosen]
