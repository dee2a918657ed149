"""A table as data, and how figures read in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Title, header and rows of text; every row is as long as the header."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def figure(value: float | int | str | None) -> str:
    """A figure for reading: thousands apart, three decimals at most, ``-`` where there is none."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.2f}"
