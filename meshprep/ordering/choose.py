"""The choice of a locality order: methods are measured and applied where they gain."""

from functools import partial
from typing import NamedTuple

import numpy as np

from meshprep_runtime.errors import check_choice
from meshprep_runtime.types.ordering import Ordering

from ..kernels import Int32s, clock
from ..kernels.parallel import at_once
from ..mesh.incidence import renumber_table
from ..mesh.orderings import ordering_of
from ..registry.orders import AUTO, ORDERS, tried_by_auto
from .figures import Figures, LocalityProblem, figures
from .registry import METHODS

# What can be chosen, ``auto`` among it.
METHOD_NAMES = ORDERS


class OrderCandidate(NamedTuple):
    """A method with its seconds and figures, or a note why it has none."""

    method: str
    seconds: float = 0.0
    figures: Figures | None = None
    note: str = ""


class LocalityResult(NamedTuple):
    """A locality order and its figures."""

    # The method of the order, or the best one tried where no order was applied.
    method: str
    # The order of the points; the identity where no order was applied.
    ordering: Ordering
    # Figures of the input's numbering, and of the method's, applied or not.
    before: Figures
    after: Figures
    applied: bool
    # One sentence with the figures.
    reason: str
    # Every method that was considered.
    candidates: tuple[OrderCandidate, ...] = ()
    # The order of the elements that follows that of the points, new_to_old; None where no
    # order was applied.
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

    An order is better when the product of its bandwidth and its profile is smaller. For the
    GPU, orders along curves, which narrow neither, and ``auto`` are compared by the lines
    that runs of ``block_size`` elements touch, and then by that product. On a CPU bands run
    faster than orders of fewer lines, and a clock would give other plans on other machines,
    so the product decides there, under ``"auto"`` too. With ``"auto"`` every method of
    meshprep that fits is tried, and the best one is kept. No method is begun after
    ``seconds``; candidates tell which were not tried. Raises MeshprepError on an unknown
    method, and on one that needs coordinates where there are none.
    """
    check_choice("method", method, METHOD_NAMES)
    if method == "none":
        keep = Ordering.identity(problem.n_points)
        before = figures(problem)
        return LocalityResult(
            method=method,
            ordering=keep,
            before=before,
            after=before,
            applied=False,
            reason="the order of the input is kept",
        )
    # Measure the input's numbering and the order of the method, or of all methods.
    if method == AUTO:
        before = figures(problem)
        best, candidates = _best_of(problem, seconds)
    else:
        before, best = at_once(
            partial(figures, problem), partial(_run_method, problem, method)
        )
        candidates = (best.candidate,)
    # Apply the order if it gains.
    by_lines = problem.target == "gpu" and (
        method == AUTO or METHODS[method].needs_coordinates
    )
    method = candidates[0].method
    after = candidates[0].figures
    assert after is not None
    changes = [
        f"{name} {getattr(before, name):,} -> {getattr(after, name):,}"
        for name in ("bandwidth", "profile", "lines")
    ]
    change = ", ".join(changes)
    if _cost(after, by_lines=by_lines) < _cost(before, by_lines=by_lines):
        reason = f"{method} gains: {change}"
        return LocalityResult(
            method=method,
            ordering=best.ordering,
            before=before,
            after=after,
            applied=True,
            reason=reason,
            candidates=candidates,
            rows=best.rows,
        )
    keep = Ordering.identity(problem.n_points)
    reason = f"the order of the input is kept, {method} would not gain: {change}"
    return LocalityResult(
        method=method,
        ordering=keep,
        before=before,
        after=after,
        applied=False,
        reason=reason,
        candidates=candidates,
    )


def _run_method(problem: LocalityProblem, method: str) -> _EvaluatedOrder:
    """The order of a method and its figures.

    Where groups of points stay together, their sequence may suit the reverse order better:
    the better one of both is taken.
    """
    # Order the points, and let the elements follow.
    begun = clock()
    forward = METHODS[method].function(problem)
    if problem.group is None:
        directions = [forward]
    else:
        directions = [forward, forward[::-1]]
    ordered = []
    for new_to_old in directions:
        ordering = ordering_of(problem.with_groups(new_to_old))
        rows = problem.follow(renumber_table(problem.table, None, ordering.old_to_new))
        ordered.append((ordering, rows))
    # Measure the figures, which is not part of the method's time.
    elapsed = round(clock() - begun, 4)
    tried = []
    for ordering, rows in ordered:
        after = figures(problem, ordering.old_to_new, rows)
        candidate = OrderCandidate(method, elapsed, after)
        tried.append(_EvaluatedOrder(ordering, rows, candidate))
    by_lines = problem.target == "gpu" and METHODS[method].needs_coordinates
    return min(tried, key=lambda one: _cost(one.candidate.figures, by_lines=by_lines))


def _best_of(
    problem: LocalityProblem, seconds: float
) -> tuple[_EvaluatedOrder, tuple[OrderCandidate, ...]]:
    """Try one method after the other; the best order, and the candidates, best first."""
    cost = partial(_cost, by_lines=problem.target == "gpu")
    begun = clock()
    best: _EvaluatedOrder | None = None
    others: list[OrderCandidate] = []
    for name in tried_by_auto(problem.target):
        if reason := _why_unsuited(problem, name):
            others.append(OrderCandidate(name, note=reason))
        elif best is None:
            best = _run_method(problem, name)
        elif clock() - begun > seconds:
            others.append(
                OrderCandidate(name, note=f"not tried: {seconds:g} seconds were up")
            )
        else:
            other = _run_method(problem, name)
            if cost(other.candidate.figures) < cost(best.candidate.figures):
                best, other = other, best
            others.append(other.candidate)
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
    if np.isfinite(where).all():
        return ""
    return "needs finite coordinates"


def _cost(measured: Figures | None, *, by_lines: bool) -> tuple[int, int]:
    """The figures by which orders are compared; smaller is better.

    Lines of memory first where they count, then bandwidth times profile.
    """
    assert measured is not None
    lines = measured.lines if by_lines else 0
    return lines, measured.cost
