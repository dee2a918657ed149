"""How many sweeps a search may make, and what its progress is."""

from collections.abc import Callable

from ...kernels import clock
from .levels import Level
from .phases import Phase

FOREVER = 1e9


class Budget:
    """How many sweeps there are: by effort, or as many as fit into the time that is left."""

    # Looks at clusters and their points in a second, until it is measured; of the time left, what
    # is kept for the end.
    USUAL_RATE, KEPT = 3e7, 0.1

    def __init__(self, effort: float, until: float, progress: Callable[[float], None]) -> None:
        self._effort, self._until, self._progress = effort, until, progress
        self._since, self._rate = FOREVER, self.USUAL_RATE
        self._done, self._left = 0.0, 0.0

    def sweeps(self, todo: list[tuple[Level, Phase]], done: float) -> int:
        """Sweeps, at least 1, that the first level to do still gets; a share of them is done."""
        works = [phase.sweeps * _work(level) for level, phase in todo]
        works[0] *= 1.0 - done
        effort = self._effort
        if self._until < FOREVER:
            self._since = clock()
            time_left = max(0.0, self._until - self._since) * (1 - self.KEPT)
            effort = time_left * self._rate / max(1.0, sum(works))
        self._left = effort * sum(works)
        return max(1, round(todo[0][1].sweeps * (1.0 - done) * effort))

    def spend(self, level: Level, sweeps: int) -> None:
        """Take note of what was done."""
        done = sweeps * _work(level)
        if clock() > self._since:
            # the latest rate: elements take another time than clusters, and less when few move
            self._rate = done / (clock() - self._since)
        self._done, self._left = self._done + done, max(0.0, self._left - done)
        self._progress(self._done / max(1.0, self._done + self._left))


def _work(level: Level) -> float:
    return float(level.points.size + level.neighbours.size)
