"""Locality orders, measured, and applied only where they gain."""

from functools import partial
from typing import NamedTuple

import numpy as np

from meshprep_runtime.errors import check_choice
from meshprep_runtime.types.ordering import Ordering

from ..kernels import Int32s, clock
from ..kernels.parallel import at_once
from ..mesh.incidence import renumber_table
from ..mesh.orderings import ordering_of
from .figures import Figures, LocalityProblem, figures
from .methods import METHODS

AUTO = "auto"
METHOD_NAMES = (AUTO, *METHODS)
# What ``auto`` tries for each target, the likeliest first, as time may run out.
TRIED_FIRST = {
    "cpu": ("rcm", "gps", "sloan", "hilbert"),
    "gpu": ("hilbert", "rcm", "gps", "sloan"),
}


class OrderCandidate(NamedTuple):
    """A method that was tried, its seconds and figures, or in ``note`` why there are none."""

    method: str
    seconds: float = 0.0
    figures: Figures | None = None
    note: str = ""


class LocalityResult(NamedTuple):
    """A locality order and what it does."""

    method: str  # the method whose order this is; the one that came nearest where none was applied
    ordering: Ordering  # of the points; the identity where no order was applied
    # Of the input's numbering and of the method's, applied or not.
    before: Figures
    after: Figures
    applied: bool
    reason: str  # one sentence with the figures
    candidates: tuple[OrderCandidate, ...] = ()  # every method that was looked at
    # Of the elements, in the order that follows: new_to_old; None where no order was applied.
    rows: Int32s | None = None


class _EvaluatedOrder(NamedTuple):
    """An order, the order of the elements that follows it, and its figures."""

    ordering: Ordering
    rows: Int32s
    candidate: OrderCandidate


def locality_order(
    problem: LocalityProblem, method: str, *, seconds: float = 10.0
) -> LocalityResult:
    """Order the points by a method, and keep the input's order where that is no worse.

    An order is better when the product of its bandwidth and its profile is smaller. For the GPU,
    the orders along curves, which narrow neither, and ``auto`` go by the lines that runs of
    ``block_size`` elements touch, and among equals by that product. With ``"auto"`` every method in
    ``METHODS`` that fits is tried, and the best one kept; none is begun after ``seconds``, and what
    was not tried is told. Raises MeshprepError on an unknown method, and on one that needs
    coordinates where there are none.
    """
    check_choice("method", method, METHOD_NAMES)
    if method == "none":
        keep, before = Ordering.identity(problem.n_points), figures(problem)
        return LocalityResult(method, keep, before, before, False, "the order of the input is kept")
    if method == AUTO:
        before = figures(problem)
        found, candidates = _best_of(problem, seconds)
    else:
        before, found = at_once(partial(figures, problem), partial(_run_method, problem, method))
        candidates = (found.candidate,)
    by_lines = problem.target == "gpu" and (method == AUTO or METHODS[method].needs_coordinates)
    method, after = candidates[0].method, candidates[0].figures
    assert after is not None
    change = ", ".join(
        f"{name} {getattr(before, name):,} -> {getattr(after, name):,}"
        for name in ("bandwidth", "profile", "lines")
    )
    if _cost(after, by_lines=by_lines) < _cost(before, by_lines=by_lines):
        reason = f"{method} gains: {change}"
        return LocalityResult(
            method, found.ordering, before, after, True, reason, candidates, found.rows
        )
    keep = Ordering.identity(problem.n_points)
    reason = f"the order of the input is kept, {method} would not gain: {change}"
    return LocalityResult(method, keep, before, after, False, reason, candidates)


def _run_method(problem: LocalityProblem, method: str) -> _EvaluatedOrder:
    begun = clock()
    found = ordering_of(METHODS[method].function(problem))
    took = round(clock() - begun, 4)
    rows = problem.follow(renumber_table(problem.table, None, found.old_to_new))
    after = figures(problem, found.old_to_new, rows)
    return _EvaluatedOrder(found, rows, OrderCandidate(method, took, after))


def _best_of(
    problem: LocalityProblem, seconds: float
) -> tuple[_EvaluatedOrder, tuple[OrderCandidate, ...]]:
    """Try one method after the other; the best order, and all candidates with the best first."""
    worth = partial(_cost, by_lines=problem.target == "gpu")
    begun = clock()
    best: _EvaluatedOrder | None = None
    others: list[OrderCandidate] = []
    for name in TRIED_FIRST[problem.target]:
        if reason := _why_unsuited(problem, name):
            others.append(OrderCandidate(name, note=reason))
        elif best is None:
            best = _run_method(problem, name)
        elif clock() - begun > seconds:
            others.append(OrderCandidate(name, note=f"not tried: {seconds:g} seconds were up"))
        else:
            found = _run_method(problem, name)
            if worth(found.candidate.figures) < worth(best.candidate.figures):
                best, found = found, best
            others.append(found.candidate)
    assert best is not None, "methods without coordinates fit every problem"
    return best, (best.candidate, *others)


def _why_unsuited(problem: LocalityProblem, method: str) -> str:
    """Reason why a method cannot run on this problem; empty if it can."""
    where = problem.coordinates
    if not METHODS[method].needs_coordinates:
        return ""
    if where is None:
        return "needs coordinates"
    if where.shape[1] > 3:
        return "needs coordinates of three dimensions at most"
    return "" if np.isfinite(where).all() else "needs finite coordinates"


def _cost(found: Figures | None, *, by_lines: bool) -> tuple[int, int]:
    """The figure by which orders are compared; smaller is better."""
    assert found is not None
    return (found.lines if by_lines else 0, found.cost)
