"""When the time for a checkpoint has come; rank 0 says it for all, and is asked seldom."""

import time
from typing import Any


class Clock:
    """Is asked before every call of a loop, by all ranks before the same ones.

    On several ranks, rank 0 looks at its clock and sends what it saw. The next look is after half
    of the calls that the time left allows at the pace so far, but not after more calls than there
    were already: about ``log2(calls)`` messages from one checkpoint to the next.

    ``every`` is in seconds.
    """

    def __init__(self, every: float, comm: Any) -> None:
        self._every, self._comm = every, comm
        self.restart()

    def restart(self) -> None:
        """Count from here."""
        self._since, self._calls, self._look_at = time.monotonic(), 0, 1

    def is_due(self) -> bool:
        """True from the call on at which the time had passed."""
        self._calls += 1
        if self._calls < self._look_at:
            return False
        passed = time.monotonic() - self._since
        if self._comm.size > 1:
            passed = self._comm.bcast(passed, 0)
            self._look_at = self._calls + calls_to_skip(self._calls, passed, self._every)
        return passed >= self._every


def calls_to_skip(calls: int, passed: float, every: float) -> int:
    """How many calls need no look at the clock, after so many that took so many seconds."""
    left = max(every - passed, 0.0)
    return calls if left >= 2 * passed else int(calls * left / passed / 2)
