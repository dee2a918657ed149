"""What the loops of a program took, as a table and as JSON [OP2's op_timing_output]."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ..plan.matrices import plain_args
from ..types.loops import Access, Loop
from ..types.maps import SetMap

COLUMNS = (
    *("loop", "calls", "seconds", "share", "wait s", "GB", "GB/s"),
    *("messages", "sent MB"),
)


@dataclass
class LoopTimes:
    """What the calls of one loop took on one rank, so far.

    Seconds of ``core``, ``boundary``, ``exec``: computing, by class of elements; on one rank all is
    ``core``, and where nothing was awaited the classes share by their elements. ``wait``: for
    messages, after ``core``, and for sums over ranks; ``other``: packing and all else. ``elements``
    counts those of each class in one call.
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
        """All of them."""
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
            ``{"loops": {loop: {rank: {"calls": ..., "core": ..., ...}}}}``, seconds and bytes.
        """
        return {
            "loops": {
                name: {str(rank): asdict(times) for rank, times in enumerate(ranks)}
                for name, ranks in self.loops.items()
            }
        }

    def rows(self) -> list[tuple[str, ...]]:
        """The table's rows as text.

        Returns
        -------
        list of tuple of str
            One a loop, in the order of ``COLUMNS``: calls, the mean of the ranks' seconds and
            waits, useful bytes of all ranks, by the slowest rank's seconds; messages and bytes sent
            of all ranks.
        """
        total = sum(_mean(ranks, "seconds") for ranks in self.loops.values())
        return [_row(name, ranks, total) for name, ranks in self.loops.items()]

    def __str__(self) -> str:
        table = [COLUMNS, *self.rows()]
        widths = [max(len(row[i]) for row in table) for i in range(len(COLUMNS))]
        return "\n".join(
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
            for row in table
        )


def _row(name: str, ranks: tuple[LoopTimes, ...], total: float) -> tuple[str, ...]:
    seconds, slowest = _mean(ranks, "seconds"), max(t.seconds for t in ranks)
    useful = sum(t.useful_bytes * t.calls for t in ranks)
    return (
        name,
        str(ranks[0].calls),
        f"{seconds:.3f}",
        f"{seconds / total:.0%}" if total else "-",
        f"{_mean(ranks, 'wait'):.3f}",
        f"{useful / 1e9:.3f}",
        f"{useful / slowest / 1e9:.2f}" if slowest else "-",
        str(sum(t.messages for t in ranks)),
        f"{sum(t.sent_bytes for t in ranks) / 1e6:.3f}",
    )


def _mean(ranks: tuple[LoopTimes, ...], name: str) -> float:
    return float(sum(getattr(t, name) for t in ranks) / len(ranks))


def useful_bytes(loop: Loop, maps: Mapping[str, SetMap], sizes: Mapping[str, int]) -> int:
    """Bytes that no call can do without: sum(w_d S_d), w = 2 for data read and written [S19].

    Of a dat reached through maps the points that the loop reaches count: a loop over a boundary
    leaves the others alone; of a matrix those nonzeros, where ``maps`` has its places (see
    :func:`~meshprep_runtime.plan.matrices.with_places`). O(n x arity).
    """
    found: dict[tuple[str, str], tuple[int, bool, bool]] = {}
    through: dict[tuple[str, str], frozenset[str | None]] = {}
    for arg in plain_args(loop, maps):
        if arg.is_global:
            continue
        key = (arg.name, loop.over if arg.map is None else maps[arg.map].to_set)
        nbytes, read, written = found.get(key, (0, False, False))
        read |= arg.access is not Access.WRITE
        written |= arg.access is not Access.READ
        found[key] = (max(nbytes, arg.nbytes), read, written)
        through[key] = through.get(key, frozenset()) | {arg.map}
    total, reached = 0, dict[tuple[str, frozenset[str | None]], int]()
    for key, (nbytes, read, written) in found.items():
        way = key[1], through[key]
        reached[way] = reached.get(way) or _reached(way[1], maps, sizes[way[0]])
        total += reached[way] * nbytes * (read + written)
    return total


def _reached(names: Collection[str | None], maps: Mapping[str, SetMap], n_points: int) -> int:
    """How many points some maps reach; all of them where one is reached without a map."""
    if None in names:
        return n_points
    tables = [maps[str(name)].table for name in names]
    # one more than there are, for places of -1
    seen = np.zeros(max([int(t.max(initial=-1)) for t in tables], default=-1) + 2, bool)
    for table in tables:
        seen[table] = True
    return int(np.count_nonzero(seen[:-1]))
