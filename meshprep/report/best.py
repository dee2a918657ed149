"""Which of several plans of one mesh to take."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from meshprep_runtime.plan import Plan

from ..loops.options import TARGETS, Options
from .verdict import sectors

# What a plan must gain on reorder's own choice: about the error of predicted transactions.
GAIN = 0.15


@dataclass(frozen=True)
class Best:
    """The plan to take, and why."""

    name: str
    criterion: str  # the figure that decides
    reason: str


def best_plan(plans: Mapping[str, Plan]) -> Best | None:
    """The plan to take, by figures that tell plans of one block size apart.

    For a GPU the one that moves the fewest sectors, for a CPU the one whose points have the
    smallest bandwidth times profile, else the one with the fewest loads. Larger blocks always load
    less, and only a run tells what they cost: so those are compared whose size is the nearest to
    what ``reorder`` takes, whose own choice stands unless another gains 15 % on it. None where
    targets differ.
    """
    targets = {v.after.target for plan in plans.values() for v in plan.metrics.sides()}
    if len(targets) != 1:
        return None
    (target,) = targets
    size = min(
        map(_size, plans.values()), key=lambda s: max(s / TARGETS[target], TARGETS[target] / s)
    )
    alike = {name: plan for name, plan in plans.items() if _size(plan) == size}
    found = {one: {n: one.of(p) for n, p in alike.items()} for one in _CRITERIA[target]}
    chosen, figures = next((one, f) for one, f in found.items() if None not in f.values())
    rank = {name: (float(value or 0), _loads(alike[name])) for name, value in figures.items()}
    best = min(rank, key=lambda name: rank[name])
    own = next((name for name, plan in alike.items() if _is_own(plan, target)), None)
    if own is not None and (1 - GAIN) * rank[own][0] <= rank[best][0]:
        none = f"no other with blocks of {size:,} {chosen.less.format(round(100 * GAIN))}"
        best, why = own, f"as reorder chooses itself: {none}"
    else:
        share = 100 * (1 - rank[best][0] / rank[own][0]) if own else 0
        gain = f", {share:.0f} % beside {own}" if own else ""
        why = f"which {chosen.least} of those with blocks of {size:,}{gain}"
    if len(alike) < len(plans):
        why += "; only 'meshprep tune' tells sizes apart"
    return Best(best, chosen.name, why)


def _size(plan: Plan) -> int:
    """The block size of the first loop."""
    return next((sides.after.block_size for sides in plan.metrics.sides()), 1)


def _sectors(plan: Plan) -> int | None:
    found = [sectors(sides.after) for sides in plan.metrics.sides()]
    return None if None in found else sum(filter(None, found))


def _spread(plan: Plan) -> int | None:
    """Bandwidth times profile of the points in the plan; None where they kept their order."""
    found = [order.final for order in plan.metrics.orders]
    return sum(one.cost for one in found if one) if found and all(found) else None


def _loads(plan: Plan) -> int:
    return sum(sides.after.loads for sides in plan.metrics.sides())


class _Criterion(NamedTuple):
    name: str  # of the figure
    least: str  # what the best does
    less: str  # what no other does
    of: Callable[[Plan], int | None]


_BY_LOADS = _Criterion("loads", "loads the least", "loads {} % less", _loads)
# By target, what decides first.
_CRITERIA = {
    "gpu": (
        _Criterion(
            "sectors moved", "moves the fewest sectors", "moves {} % fewer sectors", _sectors
        ),
        _BY_LOADS,
    ),
    "cpu": (
        _Criterion(
            "bandwidth times profile", "has the least band", "has a {} % narrower band", _spread
        ),
        _BY_LOADS,
    ),
}


def _is_own(plan: Plan, target: str) -> bool:
    """Whether it is cut and ordered as ``reorder`` does without being told."""
    given, own = plan.options, Options(target=target)
    how = given.get("method"), given.get("partition") or own.partitioner
    return how == (own.method, own.partitioner) and not given.get("partition_options")
