"""Which of several plans of one mesh to take."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from meshprep_runtime.plan import Plan

from ..loops.options import TARGETS, Options
from .verdict import sectors

# What a plan must gain on reorder's own choice: about the error of predicted transactions.
GAIN = 0.15


@dataclass(frozen=True)
class Best:
    """The plan to take, and why."""

    name: str
    reason: str


def best_plan(plans: Mapping[str, Plan]) -> Best | None:
    """The plan to take, by figures that tell plans of one block size apart.

    For a GPU the one that moves the fewest sectors, for a CPU the one whose points have the
    smallest bandwidth times profile, else the one with the fewest loads. Larger blocks
    always load less, and only a run tells what they cost: so those are compared whose size
    is the nearest to what ``reorder`` takes, whose own choice stands unless another gains
    15 % on it. None where targets differ.
    """
    # Plans of one target have figures that can be compared.
    targets = set[str]()
    for plan in plans.values():
        targets.update(sides.after.target for sides in plan.metrics.sides())
    if len(targets) != 1:
        return None
    (target,) = targets

    # Compare plans of one block size: the nearest to the usual one, as a ratio.
    usual = TARGETS[target]

    def distance_from_usual(size: int) -> float:
        return max(size / usual, usual / size)

    size = min(map(_block_size, plans.values()), key=distance_from_usual)
    alike = {name: plan for name, plan in plans.items() if _block_size(plan) == size}

    # Rank them by the first criterion that all of them have a figure for, then by loads.
    criterion, figures = _first_criterion(alike, target)
    rank = {}
    for name, value in figures.items():
        rank[name] = float(value or 0), _loads(alike[name])
    best = min(rank, key=lambda name: rank[name])

    # Keep the plan that reorder makes by itself unless the best gains enough on it.
    default = next((name for name, plan in alike.items() if _is_own(plan, target)), None)
    least, _ = rank[best]
    if default is not None and (1 - GAIN) * rank[default][0] <= least:
        percent = round(100 * GAIN)
        gains_enough = criterion.less.format(percent)
        best = default
        why = f"as reorder chooses itself: no other with blocks of {size:,} {gains_enough}"
    else:
        gain = ""
        if default is not None:
            of_default, _ = rank[default]
            percent_less = 100 * (1 - least / of_default)
            gain = f", {percent_less:.0f} % beside {default}"
        why = f"which {criterion.least} of those with blocks of {size:,}{gain}"
    if len(alike) < len(plans):
        why += "; only 'meshprep tune' tells sizes apart"
    return Best(best, why)


def _first_criterion(
    plans: Mapping[str, Plan], target: str
) -> tuple["_Criterion", dict[str, int | None]]:
    """The first criterion of a target that all plans have a figure for; the figures."""
    for criterion in _CRITERIA[target]:
        figures = {name: criterion.figure(plan) for name, plan in plans.items()}
        if None not in figures.values():
            break
    # every plan has loads, the last criterion
    return criterion, figures


def _block_size(plan: Plan) -> int:
    """The block size of the first loop."""
    return next((sides.after.block_size for sides in plan.metrics.sides()), 1)


def _sectors(plan: Plan) -> int | None:
    """Sectors that calls of all loops move; None where one of them has no such figure."""
    sectors_of_loops = [sectors(sides.after) for sides in plan.metrics.sides()]
    if None in sectors_of_loops:
        return None
    return sum(filter(None, sectors_of_loops))


def _spread(plan: Plan) -> int | None:
    """Bandwidth times profile of the points; None where they kept their order."""
    orders = [order.final for order in plan.metrics.orders]
    if orders and all(orders):
        return sum(order.cost for order in orders if order)
    return None


def _loads(plan: Plan) -> int:
    """Points that the blocks of all loops load."""
    return sum(sides.after.loads for sides in plan.metrics.sides())


@dataclass(frozen=True)
class _Criterion:
    """A figure by which plans are ranked, the least first."""

    least: str  # what the best plan does, in words
    less: str  # what no other does enough, in words with a place for a share in percent
    figure: Callable[[Plan], int | None]


_BY_SECTORS = _Criterion("moves the fewest sectors", "moves {} % fewer sectors", _sectors)
_BY_SPREAD = _Criterion("has the narrowest band", "has a {} % narrower band", _spread)
_BY_LOADS = _Criterion("loads the least", "loads {} % less", _loads)
# By target: the criteria, the first one decides if all plans have its figure.
_CRITERIA: dict[str, tuple[_Criterion, ...]] = {
    "gpu": (_BY_SECTORS, _BY_LOADS),
    "cpu": (_BY_SPREAD, _BY_LOADS),
}


def _is_own(plan: Plan, target: str) -> bool:
    """Whether it is cut and ordered as ``reorder`` does without being told."""
    given = plan.options
    own = Options(target=target)
    how = given.get("method"), given.get("partition") or own.partitioner
    return how == (own.method, own.partitioner) and not given.get("partition_options")
