"""A table as data, and how figures read in it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BEST = "*"


@dataclass(frozen=True)
class Table:
    """Title, header and rows of text; every row is as long as the header.

    ``best`` and ``changed`` hold the (row, column) of the cells that are the best of
    several, and of those that differ from what was before.
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
        # Cells without a star get as much room, so that figures stand in line.
        star = f" {BEST}"
        no_star = " " * len(star)
        rows = []
        for i, row in enumerate(self.rows):
            label, *cells = row
            for j, text in enumerate(cells):
                if (i, 1 + j) in self.best:
                    cells[j] = text + star
                else:
                    cells[j] = text + no_star
            rows.append((label, *cells))
        return rows

    def transposed(self) -> "Table":
        """Rows as columns: for tables with more columns than a page is wide."""
        columns = list(zip(self.header, *self.rows, strict=True))
        return Table(
            title=self.title,
            header=columns[0],
            rows=columns[1:],
            best=_transposed_cells(self.best),
            changed=_transposed_cells(self.changed),
        )


def _transposed_cells(cells: frozenset[tuple[int, int]]) -> frozenset[tuple[int, int]]:
    """Cells (row, column) in the transposed table; the header is no row."""
    return frozenset((column - 1, row + 1) for row, column in cells)


def table_of(title: str, records: Sequence[Mapping[str, Any]]) -> Table:
    """Records with the same keys as a table; the keys are the header."""
    rows = [tuple(map(figure, record.values())) for record in records]
    return Table(title, tuple(records[0]), rows)


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
        power_of_ten = math.floor(math.log10(abs(value)))
        decimals = 1 - power_of_ten
        return f"{value:.{decimals}f}"
    if abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.2f}"


def two_digits(count: int | None) -> int | None:
    """A count to two digits: more would be claimed than known."""
    if count is None:
        return None
    n_digits = len(str(count))
    unit: int = 10 ** max(0, n_digits - 2)
    return round(count / unit) * unit
