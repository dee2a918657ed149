"""The times of the loops of a program, as a table and as JSON [OP2's op_timing_output]."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ..plan.matrices import plain_args
from ..types.loops import Access, Loop
from ..types.maps import SetMap

# The columns of the table.
COLUMNS = (
    "loop",
    "calls",
    "seconds",
    "share",
    "wait s",
    "GB",
    "GB/s",
    "messages",
    "sent MB",
)


@dataclass
class LoopTimes:
    """The calls of one loop on one rank so far: their seconds, messages and bytes.

    ``core``, ``boundary`` and ``exec`` are seconds of computing, by class of elements. On
    one rank all is ``core``; in a call without messages core and boundary share the time by
    their elements. ``wait`` is for messages, after ``core``, and for reductions over ranks;
    ``other`` is packing and everything else. ``elements`` counts the elements of each class
    in one call.
    """

    calls: int = 0
    core: float = 0.0
    boundary: float = 0.0
    exec: float = 0.0
    wait: float = 0.0
    other: float = 0.0
    useful_bytes: int = 0
    dats_exchanged: int = 0
    messages: int = 0
    sent_bytes: int = 0
    elements: dict[str, int] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """All seconds."""
        return self.core + self.boundary + self.exec + self.wait + self.other


@dataclass(frozen=True)
class Timings:
    """The times of every loop on every rank.

    Parameters
    ----------
    loops : mapping of loop name to tuple of LoopTimes
        One for each rank.
    """

    loops: Mapping[str, tuple[LoopTimes, ...]]

    def to_json(self) -> dict[str, Any]:
        """JSON values.

        Returns
        -------
        dict
            ``{"loops": {loop: {rank: {"calls": ..., "core": ..., ...}}}}``, seconds and
            bytes.
        """
        loops = {}
        for name, times_of_ranks in self.loops.items():
            loops[name] = {
                str(rank): asdict(times) for rank, times in enumerate(times_of_ranks)
            }
        return {"loops": loops}

    def rows(self) -> list[tuple[str, ...]]:
        """The table's rows as text.

        Returns
        -------
        list of tuple of str
            One a loop, in the order of ``COLUMNS``. Seconds and waits are means over the
            ranks; GB are the useful bytes of all ranks, GB/s these by the seconds of the
            slowest rank; messages and bytes sent are sums over the ranks.
        """
        total = sum(_mean_of_ranks(ranks, "seconds") for ranks in self.loops.values())
        return [_table_row(name, ranks, total) for name, ranks in self.loops.items()]

    def __str__(self) -> str:
        table = [COLUMNS, *self.rows()]
        widths = [max(len(row[i]) for row in table) for i in range(len(COLUMNS))]
        lines = []
        for row in table:
            # Names to the left, numbers to the right.
            cells = [row[0].ljust(widths[0])]
            cells += map(str.rjust, row[1:], widths[1:])
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)


def _table_row(
    name: str, ranks: tuple[LoopTimes, ...], total_seconds: float
) -> tuple[str, ...]:
    # Seconds are means of the ranks.
    seconds = _mean_of_ranks(ranks, "seconds")
    share = "-"
    if total_seconds:
        share = f"{seconds / total_seconds:.0%}"
    # Bandwidth counts the bytes of all ranks over the time of the slowest.
    n_bytes = sum(times.useful_bytes * times.calls for times in ranks)
    seconds_of_slowest = max(times.seconds for times in ranks)
    bandwidth = "-"
    if seconds_of_slowest:
        bandwidth = f"{n_bytes / seconds_of_slowest / 1e9:.2f}"
    return (
        name,
        str(ranks[0].calls),
        f"{seconds:.3f}",
        share,
        f"{_mean_of_ranks(ranks, 'wait'):.3f}",
        f"{n_bytes / 1e9:.3f}",
        bandwidth,
        str(sum(times.messages for times in ranks)),
        f"{sum(times.sent_bytes for times in ranks) / 1e6:.3f}",
    )


def _mean_of_ranks(ranks: tuple[LoopTimes, ...], field_name: str) -> float:
    return float(sum(getattr(times, field_name) for times in ranks) / len(ranks))


def useful_bytes(loop: Loop, maps: Mapping[str, SetMap], sizes: Mapping[str, int]) -> int:
    """Bytes that every call must move: sum(w_d S_d), w = 2 for data read and written [S19].

    Of a dat accessed through maps only those points count that the loop reaches: a loop
    over a boundary leaves the others alone. Of a matrix those nonzeros count that it
    reaches; then ``maps`` needs the map to its nonzeros (see
    :func:`~meshprep_runtime.plan.matrices.with_places`). O(n x arity).
    """
    # Join the arguments that are the same dat on the same set.
    uses: dict[tuple[str, str], DatUse] = {}
    for arg in plain_args(loop, maps):
        if arg.is_global:
            continue
        set_name = loop.over
        if arg.map is not None:
            set_name = maps[arg.map].to_set
        use = uses.setdefault((arg.name, set_name), DatUse())
        use.nbytes = max(use.nbytes, arg.nbytes)
        use.is_read |= arg.access is not Access.WRITE
        use.is_written |= arg.access is not Access.READ
        use.maps.add(arg.map)

    # Count the points of each set of maps once, as several dats often share them.
    total = 0
    n_reached: dict[tuple[str, frozenset[str | None]], int] = {}
    for (_, set_name), use in uses.items():
        key = (set_name, frozenset(use.maps))
        if key not in n_reached:
            n_reached[key] = _count_reached(use.maps, maps, sizes[set_name])
        total += n_reached[key] * use.nbytes * (use.is_read + use.is_written)
    return total


@dataclass
class DatUse:
    """How a loop uses a dat; None among the maps stands for direct access.

    ``nbytes`` are the bytes of one element.
    """

    nbytes: int = 0
    is_read: bool = False
    is_written: bool = False
    maps: set[str | None] = field(default_factory=set)


def _count_reached(
    names: Collection[str | None], maps: Mapping[str, SetMap], n_points: int
) -> int:
    """The number of points that some maps reach; all points for direct access (None)."""
    if None in names:
        return n_points
    tables = [maps[str(name)].table for name in names]
    # The last entry is for entries of -1 in the tables.
    largest = max([int(table.max(initial=-1)) for table in tables], default=-1)
    is_reached = np.zeros(largest + 2, bool)
    for table in tables:
        is_reached[table] = True
    return int(np.count_nonzero(is_reached[:-1]))
