"""Weights of ranks for the shortest run: from times alone, from one measured run, by both."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from .timings import RankTimes, read_timings

# Weights that differ by less are not worth another partition.
WORTH = 0.03
# Ranks whose rates differ by less are of one kind. The sets of so many kinds are tried; of more
# kinds, neighbours change together.
ALIKE, MOST_KINDS = 1.15, 8
# The search tries weights up and down by so much at first, and ends at steps of so little.
FIRST_STEP, LAST_STEP = 1.3, 1.0005


@dataclass(frozen=True, eq=False)
class Balance:
    """Weights that were found."""

    weights: NDArray[np.float64]  # (ranks,): relative to the slowest kind
    seconds: float  # of the run that was measured with them
    runs: int  # how many were measured


def weights_alone(seconds: Sequence[float]) -> NDArray[np.float64]:
    """Weights from the time that each kind takes for everything alone: T_slowest / T.

    ``seconds`` has one a kind. Raises MeshprepError for times that are not above 0.
    """
    times = np.asarray(seconds, np.float64)
    if not (np.isfinite(times) & (times > 0)).all() or not times.size:
        raise MeshprepError(f"seconds of kinds alone are {list(seconds)}, must be above 0")
    return np.asarray(times.max() / times)


def kinds_of(times: RankTimes) -> NDArray[np.int64]:
    """The kind of each rank: ranks of nearly the same rate are of one kind, the slowest first."""
    order = np.argsort(-times.rates, kind="stable")
    rates = times.rates[order]
    kind, first, found = 0, rates[0], np.empty(times.ranks, np.int64)
    for rank, rate in zip(order, rates, strict=True):
        if first > ALIKE * rate:
            kind, first = kind + 1, rate
        found[rank] = kind
    return found


def best_weights(times: RankTimes, kinds: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
    """Weights of ranks for which the model of a measured run is fastest.

    From weights that let all compute as long, every set of kinds is made heavier or lighter, in
    steps that shrink, as long as that gains: the model is a maximum of sums, which single kinds
    alone do not bring down where two are equally late. Ranks of one kind get one weight; by their
    rates where ``kinds`` are left out. The smallest weight is 1.
    """
    kind = kinds_of(times) if kinds is None else np.unique(kinds, return_inverse=True)[1]
    of_kind = np.bincount(kind)
    weights = of_kind / np.bincount(kind, times.rates)
    groups = _sets_of_kinds(of_kind.size)
    least, step = _predicted(times, weights[kind]), FIRST_STEP
    while step > LAST_STEP:
        tried = [_scaled(weights, g, factor) for g in groups for factor in (step, 1 / step)]
        seconds = [_predicted(times, one[kind]) for one in tried]
        best = int(np.argmin(seconds)) if tried else -1
        if best >= 0 and seconds[best] < least:
            weights, least = tried[best], seconds[best]
        else:
            step = math.sqrt(step)
    return np.asarray(weights[kind] / weights.min())


def auto_balance(
    run: Callable[[NDArray[np.float64]], tuple[RankTimes, float]],
    kinds: NDArray[np.int64],
    seconds_alone: Sequence[float],
) -> Balance:
    """Weights from the times of each kind alone and at most two runs.

    ``run(weights) -> (times, seconds)`` partitions with these weights, one a rank, and runs.
    ``kinds`` are those of the ranks, 0, 1, ..., and ``seconds_alone`` what one rank of each takes
    for everything alone. The balance is that of the faster run. There is a second one where the
    model of the first asks for a weight that differs by more than 3 %.
    """
    first = weights_alone(seconds_alone)[kinds]
    times, seconds = run(first)
    second = best_weights(times, kinds)
    change = np.abs(second / second.sum() / (first / first.sum()) - 1)
    if change.max() <= WORTH:
        return Balance(first, seconds, 1)
    _, again = run(second)
    return Balance(second, again, 2) if again < seconds else Balance(first, seconds, 2)


def weights_from(path: Path, parts: int) -> NDArray[np.float64]:
    """Weights of parts from the timings of a run on as many ranks.

    Raises MeshprepError when the file cannot be used, or was written on another number of ranks.
    """
    times = read_timings(path)
    if times.ranks != parts:
        raise MeshprepError(
            f"{path} has the times of {times.ranks} ranks, but there are {parts} parts: give the "
            "timings of a run on as many ranks"
        )
    return best_weights(times)


def _sets_of_kinds(count: int) -> list[NDArray[np.intp]]:
    """Every set of kinds but none and all; of many kinds, neighbours are in the same sets."""
    several = min(count, MOST_KINDS)
    near = np.arange(count) * several // count
    sets = (g for size in range(1, several) for g in combinations(range(several), size))
    return [np.flatnonzero(np.isin(near, g)) for g in sets]


def _scaled(
    weights: NDArray[np.float64], group: NDArray[np.intp], factor: float
) -> NDArray[np.float64]:
    found = weights.copy()
    found[group] *= factor
    return found


def _predicted(times: RankTimes, weights: NDArray[np.float64]) -> float:
    return times.seconds(weights / weights.sum())
