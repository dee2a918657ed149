"""A locality order, measured, and applied only where it gains."""

from __future__ import annotations

from dataclasses import dataclass

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.ordering import Ordering

from .envelope import Envelope, envelope
from .methods import METHODS
from .problem import LocalityProblem


@dataclass(frozen=True, eq=False)
class LocalityResult:
    """A locality order and what it does.

    Parameters
    ----------
    ordering : Ordering
        Of the points; the identity where the method's order was not applied.
    before, after : Envelope
        Of the input's numbering and of the method's, applied or not.
    applied : bool
    reason : str
        One sentence with the figures.
    """

    ordering: Ordering
    before: Envelope
    after: Envelope
    applied: bool
    reason: str


def locality_order(problem: LocalityProblem, method: str) -> LocalityResult:
    """Order the points by a method, and keep the input's order where that is no worse.

    An order is better when the product of its bandwidth and its profile is smaller.

    Parameters
    ----------
    problem : LocalityProblem
    method : str
        A name in ``METHODS``.

    Raises
    ------
    MeshprepError
        On an unknown method, and on one that needs coordinates where there are none.
    """
    if method not in METHODS:
        raise MeshprepError(f"method '{method}' is unknown: use {', '.join(METHODS)}")
    before = envelope(problem.table)
    keep = Ordering.identity(problem.n_points)
    if method == "none":
        return LocalityResult(keep, before, before, False, "the order of the input is kept")
    found = Ordering.from_new_to_old(METHODS[method].function(problem))
    after = envelope(problem.table, found.old_to_new)
    change = (
        f"bandwidth {before.bandwidth:,} -> {after.bandwidth:,}, "
        f"profile {before.profile:,} -> {after.profile:,}"
    )
    if after.cost < before.cost:
        return LocalityResult(found, before, after, True, f"{method} gains: {change}")
    reason = f"the order of the input is kept, {method} would not gain: {change}"
    return LocalityResult(keep, before, after, False, reason)
