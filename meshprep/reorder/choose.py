"""Locality orders, measured, and applied only where they gain."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.ordering import Ordering

from ..kernels import clock
from ..kernels.parallel import at_once
from .figures import Figures, figures
from .methods import METHODS
from .problem import LocalityProblem

AUTO = "auto"
METHOD_NAMES = (AUTO, *METHODS)
# What ``auto`` tries for each target, the likeliest first, as time may run out.
TRIED_FIRST = {
    "cpu": ("rcm", "gps", "sloan", "hilbert", "rcb", "morton"),
    "gpu": ("hilbert", "rcb", "morton", "rcm", "gps", "sloan"),
}


@dataclass(frozen=True)
class OrderCandidate:
    """One method that was tried, its seconds and figures; ``note`` tells why there are none.

    The graph of the points is made by the first method that needs it, and is in its seconds.
    """

    method: str
    seconds: float = 0.0
    figures: Figures | None = None
    note: str = ""


@dataclass(frozen=True, eq=False)
class LocalityResult:
    """A locality order and what it does."""

    method: str  # the method whose order this is; the one that came nearest where none was applied
    ordering: Ordering  # of the points; the identity where no order was applied
    # Of the input's numbering and of the method's, applied or not.
    before: Figures
    after: Figures
    applied: bool
    reason: str  # one sentence with the figures
    candidates: tuple[OrderCandidate, ...] = ()  # every method that was looked at


def locality_order(
    problem: LocalityProblem, method: str, *, seconds: float = 10.0
) -> LocalityResult:
    """Order the points by a method, and keep the input's order where that is no worse.

    An order is better when the product of its bandwidth and its profile is smaller. For the GPU,
    the orders along curves, which narrow neither, and ``auto`` go by the lines that runs of
    ``block_size`` elements touch, and among equals by that product.

    Parameters
    ----------
    method : str
        A name in ``METHODS``, or ``"auto"``: every method that fits is tried, as long as time
        lasts, and the best one kept.
    seconds : float
        For ``auto``: none is begun later than this. What was not tried is told.

    Raises
    ------
    MeshprepError
        On an unknown method, and on one that needs coordinates where there are none.
    """
    if method not in METHOD_NAMES:
        raise MeshprepError(f"method '{method}' is unknown: use {', '.join(METHOD_NAMES)}")
    if method == "none":
        keep, before = Ordering.identity(problem.n_points), figures(problem)
        return LocalityResult(method, keep, before, before, False, "the order of the input is kept")
    if method == AUTO:
        before = figures(problem)
        found, candidates = _best_of(problem, seconds)
    else:
        before, (found, candidate) = at_once(
            lambda: figures(problem), lambda: _run(problem, method)
        )
        candidates = (candidate,)
    by_lines = problem.target == "gpu" and (method == AUTO or METHODS[method].needs_coordinates)
    return _judged(before, found, candidates, by_lines=by_lines)


def _run(problem: LocalityProblem, method: str) -> tuple[Ordering, OrderCandidate]:
    begun = clock()
    found = Ordering.from_new_to_old(METHODS[method].function(problem))
    took = round(clock() - begun, 4)
    return found, OrderCandidate(method, took, figures(problem, found.old_to_new))


def _best_of(
    problem: LocalityProblem, seconds: float
) -> tuple[Ordering, tuple[OrderCandidate, ...]]:
    """Try one method after the other; the best order, and all candidates with the best first."""
    worth = partial(_worth, by_lines=problem.target == "gpu")
    begun = clock()
    best: tuple[Ordering, OrderCandidate] | None = None
    others: list[OrderCandidate] = []
    for name in TRIED_FIRST[problem.target]:
        if reason := _unfit(problem, name):
            others.append(OrderCandidate(name, note=reason))
        elif best is None:
            best = _run(problem, name)
        elif clock() - begun > seconds:
            others.append(OrderCandidate(name, note=f"not tried: {seconds:g} seconds were up"))
        else:
            found = _run(problem, name)
            if worth(found[1].figures) < worth(best[1].figures):
                best, found = found, best
            others.append(found[1])
    assert best is not None, "methods without coordinates fit every problem"
    return best[0], (best[1], *others)


def _unfit(problem: LocalityProblem, method: str) -> str:
    """Why a method cannot run on this problem; empty where it can."""
    where = problem.coordinates
    if not METHODS[method].needs_coordinates:
        return ""
    if where is None:
        return "needs coordinates"
    if where.shape[1] > 3:
        return "needs coordinates of three dimensions at most"
    return "" if np.isfinite(where).all() else "needs finite coordinates"


def _worth(found: Figures | None, *, by_lines: bool) -> tuple[int, int]:
    """What is wanted small."""
    assert found is not None
    return (found.lines if by_lines else 0, found.cost)


def _judged(
    before: Figures, found: Ordering, candidates: tuple[OrderCandidate, ...], *, by_lines: bool
) -> LocalityResult:
    """The first candidate's order where it gains, the input's where not."""
    method, after = candidates[0].method, candidates[0].figures
    assert after is not None
    change = ", ".join(
        f"{name} {getattr(before, name):,} -> {getattr(after, name):,}"
        for name in ("bandwidth", "profile", "lines")
    )
    if _worth(after, by_lines=by_lines) < _worth(before, by_lines=by_lines):
        reason = f"{method} gains: {change}"
        return LocalityResult(method, found, before, after, True, reason, candidates)
    keep = Ordering.identity(found.size)
    reason = f"the order of the input is kept, {method} would not gain: {change}"
    return LocalityResult(method, keep, before, after, False, reason, candidates)
