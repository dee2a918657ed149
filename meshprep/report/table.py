"""A table as data, and how figures read in it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BEST = "*"


@dataclass(frozen=True)
class Table:
    """Title, header and rows of text; every row is as long as the header.

    ``best`` and ``changed`` hold the (row, column) of the cells that are the best of several, and
    of those that differ from what was before.
    """

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    best: frozenset[tuple[int, int]] = frozenset()
    changed: frozenset[tuple[int, int]] = frozenset()

    def marked(self) -> Sequence[tuple[str, ...]]:
        """The rows with a star after the best cells, and room for it after the others."""
        if not self.best:
            return self.rows
        mark = {True: f" {BEST}", False: " " * (1 + len(BEST))}
        return [
            (row[0], *(text + mark[(i, j) in self.best] for j, text in enumerate(row[1:], start=1)))
            for i, row in enumerate(self.rows)
        ]

    def transposed(self) -> "Table":
        """Rows as columns: for tables with more columns than a page is wide."""
        columns = list(zip(self.header, *self.rows, strict=True))
        best, changed = (
            frozenset((column - 1, row + 1) for row, column in cells)
            for cells in (self.best, self.changed)
        )
        return Table(self.title, columns[0], columns[1:], best, changed)


def table_of(title: str, records: Sequence[Mapping[str, Any]]) -> Table:
    """Records with the same keys as a table; the keys are the header."""
    return Table(title, tuple(records[0]), [tuple(map(figure, r.values())) for r in records])


def figure(value: float | int | str | None) -> str:
    """A figure for reading: thousands apart, few digits, ``-`` where there is none."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    if 0 < abs(value) < 0.1:
        # two digits, never with an exponent
        return f"{value:.{1 - math.floor(math.log10(abs(value)))}f}"
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.2f}"


def two_digits(count: int | None) -> int | None:
    """A count to two digits: more would be claimed than known."""
    if count is None:
        return None
    unit: int = 10 ** max(0, len(str(count)) - 2)
    return round(count / unit) * unit
