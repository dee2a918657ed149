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
        self._begun, self._done, self._left = clock(), 0.0, 0.0

    def sweeps(self, todo: list[tuple[Level, Phase]], done: float) -> int:
        """Sweeps, at least 1, that the first level to do still gets; a share of them is done."""
        works = [phase.sweeps * _work(level) for level, phase in todo]
        works[0] *= 1.0 - done
        effort = self._effort
        if self._until < FOREVER:
            spent = clock() - self._begun
            rate = self._done / spent if self._done and spent > 0 else self.USUAL_RATE
            time_left = max(0.0, self._until - clock()) * (1 - self.KEPT)
            effort = time_left * rate / max(1.0, sum(works))
        self._left = effort * sum(works)
        return max(1, round(todo[0][1].sweeps * (1.0 - done) * effort))

    def spend(self, level: Level, sweeps: int) -> None:
        """Take note of what was done."""
        done = sweeps * _work(level)
        self._done, self._left = self._done + done, max(0.0, self._left - done)
        self._progress(self._done / max(1.0, self._done + self._left))


def _work(level: Level) -> float:
    return float(level.points.size + level.neighbours.size)
