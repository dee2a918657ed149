"""Tiles only where they are faster: a sequence runs in each way some times, then in the fastest."""

import time
from collections.abc import Callable, Mapping

from .records import Record

LOOPS = "loops"
# What tiles must take at most of the time of the loops alone, beyond what times vary by.
GAIN = 0.97
Run = Callable[[list[Record]], None]
# Runs of each way that are timed, after one that may compile.
TIMED = 3


class MeasuredRun:
    """Every call is a run of the sequence, whatever way it takes.

    Each of ``ways`` makes a run, when its turn comes; ``"loops"`` is there. ``chosen`` is the way
    that is taken from now on, None while they are timed; ``seconds`` is the least time of each so
    far.
    """

    def __init__(self, ways: Mapping[str, Callable[[], Run]]) -> None:
        self.chosen: str | None = None
        self.seconds: dict[str, float] = {}
        self._left = [name for name in ways for _ in range(1 + TIMED)]
        self._ways = dict(ways)
        self._under_way: tuple[str, Run] | None = None

    def __call__(self, records: list[Record]) -> None:
        """Run the sequence; what is raised ends nothing."""
        if self.chosen is not None:
            self._run_of(self.chosen)(records)
            return
        name = self._left[0]
        first = name not in self.seconds
        run = self._run_of(name)
        begin = time.perf_counter()
        run(records)
        took = time.perf_counter() - begin
        self._left.pop(0)
        self.seconds[name] = float("inf") if first else min(self.seconds[name], took)
        if not self._left:
            self._choose()

    def _run_of(self, name: str) -> Run:
        """One run is kept at a time: schedules and second copies take memory."""
        if self._under_way is None or self._under_way[0] != name:
            self._under_way = (name, self._ways[name]())
        return self._under_way[1]

    def _choose(self) -> None:
        best = min(self.seconds, key=lambda name: self.seconds[name])
        faster = self.seconds[best] < GAIN * self.seconds[LOOPS]
        self.chosen = best if faster else LOOPS
