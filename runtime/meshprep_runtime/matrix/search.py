"""The search for the threads of a CSR product while a solver runs: a call is a trial [R14 4.5.2].

The search is a state machine without a clock: it proposes parameters, and is told what the call
took. So it can be replayed against tables of times.
"""

from collections.abc import Callable, Generator, Hashable
from dataclasses import dataclass, replace
from functools import partial

from ..cuda.strategies import WARP
from ..errors import MeshprepError
from .cuda_text import MOST_BLOCK, CsrThreads, fixed_rule

# A change of this share decides that ``repeat`` matters more than ``coop``.
MATTERS = 0.05
SECOND_BLOCK = 192
# Fewest threads of a block, by the bytes of a value.
LEAST_BLOCK = {4: 96, 8: 64}

Search = Generator[CsrThreads, float, None]
Move = Callable[[CsrThreads], CsrThreads | None]


@dataclass(frozen=True)
class TimedThreads:
    """Parameters and what a call with them took."""

    threads: CsrThreads
    seconds: float


class ProductTuner:
    """Finds the threads of a CSR product, one call a trial.

    Parameters
    ----------
    itemsize : int
        Bytes of a value: 4 or 8.

    Raises
    ------
    MeshprepError
        For values of another size.

    Notes
    -----
    Ask :meth:`threads` before a call and :meth:`tell` after it what it took. A matrix of another
    key, such as the addresses of its arrays, or of other rows and nonzeros starts anew. When the
    search has ended, every call gets the fastest.

    Examples
    --------
    >>> from meshprep_runtime.matrix import ProductTuner
    >>> tuner = ProductTuner()
    >>> tuner.threads("K", rows=62451, nonzeros=4007383)      # first the rule of [R14 4.5.1]
    CsrThreads(block_size=128, coop=16, repeat=5)
    >>> tuner.tell(210e-6)
    >>> tuner.threads("K", rows=62451, nonzeros=4007383)
    CsrThreads(block_size=128, coop=16, repeat=2)
    """

    def __init__(self, itemsize: int = 8) -> None:
        if itemsize not in LEAST_BLOCK:
            raise MeshprepError(f"itemsize is {itemsize}: values have 4 or 8 bytes")
        self._least = LEAST_BLOCK[itemsize]
        self._subject: tuple[Hashable, int, int] | None = None
        self.trials: list[TimedThreads] = []
        self._search: Search | None = None
        self._proposed: CsrThreads | None = None

    @property
    def settled(self) -> bool:
        """True when the search has ended."""
        return self._search is None and self._subject is not None

    @property
    def best(self) -> TimedThreads:
        """The fastest trial so far."""
        return min(self.trials, key=lambda trial: trial.seconds)

    def threads(self, key: Hashable, rows: int, nonzeros: int) -> CsrThreads:
        """The parameters of the next call.

        Parameters
        ----------
        key : hashable
            Equal for calls with the same matrix.
        rows, nonzeros : int

        Returns
        -------
        CsrThreads
        """
        subject = (key, rows, nonzeros)
        if subject != self._subject:
            self._subject, self.trials = subject, []
            self._search = _search(fixed_rule(rows, nonzeros), self._least)
            self._proposed = next(self._search)
        return self.best.threads if self._proposed is None else self._proposed

    def tell(self, seconds: float) -> None:
        """What the call took; calls after the search are not counted.

        Parameters
        ----------
        seconds : float

        Raises
        ------
        MeshprepError
            For a time that is no positive number.
        """
        if not seconds > 0:
            raise MeshprepError(f"a call took {seconds} seconds: give a positive time")
        if self._search is None or self._proposed is None:
            return
        self.trials.append(TimedThreads(self._proposed, seconds))
        try:
            self._proposed = self._search.send(seconds)
        except StopIteration:
            self._search = self._proposed = None


class _Climb:
    """The fastest so far, and steps from it that are no trial twice."""

    def __init__(self, start: CsrThreads) -> None:
        self.best = start
        self.seconds: dict[CsrThreads, float] = {}

    def to(self, threads: CsrThreads) -> Generator[CsrThreads, float, bool]:
        """Try once; True where it is the fastest so far."""
        if threads in self.seconds:
            return False
        before = self.seconds.get(self.best)
        self.seconds[threads] = yield threads
        if before is not None and self.seconds[threads] >= before:
            return False
        self.best = threads
        return True

    def along(self, move: Move) -> Generator[CsrThreads, float, bool]:
        """Repeat a move from the fastest while it gains; True where it has gained."""
        gained = False
        while (there := move(self.best)) is not None and (yield from self.to(there)):
            gained = True
        return gained

    def either(self, one: Move, other: Move) -> Generator[CsrThreads, float, bool]:
        """One move while it gains, else the other."""
        return (yield from self.along(one)) or (yield from self.along(other))


def _search(rule: CsrThreads, least: int) -> Search:
    """The steps of [R14 4.5.2], then every parameter in turn until none gains."""
    climb = _Climb(rule)
    yield from climb.to(rule)
    half = _halved(rule)
    if half is not None:
        yield from climb.to(half)
    change = abs(climb.seconds[half or rule] / climb.seconds[rule] - 1)
    if change > MATTERS:
        yield from climb.either(_halved, _doubled)
    else:
        wider = _coop_doubled(rule)
        better = wider is not None and (
            yield from climb.to(replace(wider, block_size=SECOND_BLOCK))
        )
        yield from climb.along(_coop_doubled if better else _coop_halved)
    larger, smaller = partial(_block, WARP, least), partial(_block, -WARP, least)
    gained = True
    while gained:
        gained = yield from climb.either(larger, smaller)
        gained |= yield from climb.either(_coop_doubled, _coop_halved)
        gained |= yield from climb.either(_halved, _doubled)


def _halved(t: CsrThreads) -> CsrThreads | None:
    return replace(t, repeat=t.repeat // 2) if t.repeat > 1 else None


def _doubled(t: CsrThreads) -> CsrThreads:
    return replace(t, repeat=t.repeat * 2)


def _coop_doubled(t: CsrThreads) -> CsrThreads | None:
    return replace(t, coop=t.coop * 2) if t.coop < WARP else None


def _coop_halved(t: CsrThreads) -> CsrThreads | None:
    return replace(t, coop=t.coop // 2) if t.coop > 1 else None


def _block(step: int, least: int, t: CsrThreads) -> CsrThreads | None:
    size = t.block_size + step
    return replace(t, block_size=size) if least <= size <= MOST_BLOCK else None
