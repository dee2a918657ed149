"""One clock for several benchmarks: parts in the order of their worth, none of them lost.

A part has a share of the time; what it leaves goes to the parts after it. Its rows are saved one
by one, so that a run that is ended from outside has all but the last one.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
Tables = Mapping[str, Sequence[Row]]
# What a part's rows are made by, from the seconds that it has: tables by name, in order.
MakeTables = Callable[[float], Iterable[tuple[str, Iterable[Row]]]]


@dataclass(frozen=True)
class Part:
    """A benchmark: its name, its seconds of a whole run, and its tables."""

    name: str
    seconds: float
    tables: MakeTables


@dataclass
class Outcome:
    """What became of a part."""

    part: str
    # "complete"; "cut" where its time was up; "failed" where it raised; "left out" where no
    # time was left for it.
    state: str
    seconds: float = 0.0
    allotted: float = 0.0
    rows: int = 0
    note: str = ""


# What hears of a part: its tables so far and its state.
Tell = Callable[[Part, Tables, str], None]


class Clock:
    """Seconds that a run may take, counted from now."""

    def __init__(self, budget: float, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.end = now() + budget

    def left(self) -> float:
        """Seconds that are left; below 0 when the time is up."""
        return self.end - self.now()


def run_parts(parts: Sequence[Part], clock: Clock, save: Tell, show: Tell) -> list[Outcome]:
    """Run parts one after the other until the time is up.

    Parameters
    ----------
    parts : sequence of Part
        The most worthy first. Each gets its share of what is left, by the seconds of it and of the
        parts after it.
    clock : Clock
    save, show : function
        Called with the part, its tables so far and its state: ``save`` after every row and at the
        end of the part, ``show`` at its end.

    Returns
    -------
    list of Outcome
        One for each part. A part that raises is ``failed``; the others go on.
    """
    outcomes = []
    for number, part in enumerate(parts):
        left = clock.left()
        if left <= 0:
            outcomes.append(Outcome(part.name, "left out", note="no time was left"))
            continue
        to_come = sum(later.seconds for later in parts[number:])
        allotted = left * part.seconds / to_come
        outcome, tables = _run_part(part, allotted, clock, save)
        save(part, tables, outcome.state)
        show(part, tables, outcome.state)
        outcomes.append(outcome)
    return outcomes


def _run_part(
    part: Part, allotted: float, clock: Clock, save: Tell
) -> tuple[Outcome, Tables]:
    """Take the rows of a part while it has time."""
    start = clock.now()
    tables: dict[str, list[Row]] = {}
    outcome = Outcome(part.name, "complete", allotted=allotted)
    try:
        for name, rows in part.tables(allotted):
            tables[name] = []
            for row in rows_in_time(rows, start + allotted, clock):
                tables[name].append(row)
                save(part, tables, "cut")
    except TimeIsUp:
        outcome.state = "cut"
        outcome.note = f"its time was up in table '{[*tables][-1]}'"
    except Exception as error:  # A part must not take the others with it.
        outcome.state = "failed"
        outcome.note = f"{type(error).__name__}: {error}"
    outcome.seconds = clock.now() - start
    outcome.rows = sum(map(len, tables.values()))
    return outcome, tables


class TimeIsUp(Exception):
    """Rows were left when the time of their part was up."""


def rows_in_time(rows: Iterable[Row], until: float, clock: Clock) -> Iterator[Row]:
    """Rows that begin before ``until``, and may end before the clock's time is up.

    A row counts as long as the longest so far. Raises TimeIsUp where rows may be left.
    """
    longest = 0.0
    remaining = iter(rows)
    while True:
        start = clock.now()
        if start >= until or start + longest > clock.end:
            raise TimeIsUp
        try:
            row = next(remaining)
        except StopIteration:
            return
        longest = max(longest, clock.now() - start)
        yield row
