"""What stands in one column of a comparison: a variant of a loop, its figures and its verdict."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from meshprep_runtime.plan import Plan

from ..metrics.cost import Assumptions, cost_of
from .figures import ShownMetrics
from .verdict import against_metis, repayment, tuned, verdict


@dataclass(frozen=True)
class Column:
    """One variant of one loop in one plan: what stands in one column of a comparison."""

    plan: str
    loop: str
    variant: str
    # The figures; ``before`` is None where the input order cannot be staged.
    before: ShownMetrics | None
    after: ShownMetrics
    price: str = ""  # what the plan cost, and when that is repaid
    peer: str = ""  # what METIS needs for the same, where a plan by METIS is compared, too
    # Tells plans of one partitioner apart: by options or the order of points where these differ,
    # else by the file.
    way: str = ""
    tuned: str = ""  # what was tuned
    elements: int = 0  # of the loop
    chosen: bool = True  # whether the variant is the default one of the plan's loop

    @property
    def label(self) -> str:
        """Plan, partitioner and variant, none twice."""
        how = f"{self.after.partitioner} {self.variant}"
        return self.plan if self.plan.endswith(how) else f"{self.plan} {how}".strip()

    @property
    def verdict(self) -> str:
        """Whether the plan helped, what it cost, what METIS would need, and what was tuned."""
        cost = self.after.cost
        repaid = cost is not None and cost.calls is not None
        helped = verdict(self.before, self.after, repaid=repaid)
        parts = (helped, self.price, self.peer, self.tuned)
        return "; ".join(part for part in parts if part)


def columns_of(plans: Mapping[str, Plan], assumptions: Assumptions) -> list[Column]:
    """Every variant of every loop in every plan, loop by loop."""
    found = [c for name, plan in plans.items() for c in _columns(name, plan, assumptions)]
    loops = list(dict.fromkeys(column.loop for column in found))
    found.sort(key=lambda column: loops.index(column.loop))
    ways = [
        way
        for loop in loops
        for way in _ways([column for column in found if column.loop == loop], plans)
    ]
    return [
        replace(column, peer=_peer(column, found, plans), way=way)
        for column, way in zip(found, ways, strict=True)
    ]


def _columns(name: str, plan: Plan, assumptions: Assumptions) -> Iterator[Column]:
    cost = cost_of(plan, assumptions)
    for loop, found in plan.metrics.loops.items():
        old, new = assumptions.measured.get(loop, (None, None))
        default = plan[loop].default
        default = default if default in found.variants else next(iter(found.variants), default)
        for variant, sides in found.variants.items():
            # a CPU has no occupancy, for the input order neither
            known = sides.before and replace(sides.before, target=sides.after.target)
            before = ShownMetrics(**vars(known), measured_ms=old) if known else None
            after = ShownMetrics(**vars(sides.after), measured_ms=new, cost=cost)
            yield Column(
                name,
                loop,
                variant,
                before,
                after,
                # what reaches nothing through a map has no price of its own
                price="" if after.reuse is None else repayment(cost),
                tuned=tuned(plan[loop]),
                elements=plan.sizes[plan[loop].loop.over],
                chosen=variant == default,
            )


def _method(plan: Plan) -> str:
    """The order that was applied, in a word."""
    first = plan.metrics.locality
    return first.method if first and first.applied else "input"


def _lead(plan: Plan) -> str:
    """The partitioner of the first loop, which gives the others their order."""
    return next((sides.after.partitioner for sides in plan.metrics.sides()), "")


def _told(plan: Plan) -> str:
    """The options of the partitioner, as a person would type them."""
    given = plan.options.get("partition_options") or {}
    return " ".join(f"{name}={value}" for name, value in given.items())


def _ways(columns: Sequence[Column], plans: Mapping[str, Plan]) -> list[str]:
    """What sets the columns of one loop apart that have one partitioner and block size.

    The least of: nothing, options, order, partitioner of the first loop, these together, the file.
    """
    parts = [(_told(p), _method(p), _lead(p)) for p in (plans[column.plan] for column in columns)]
    for these in (some for n in range(4) for some in combinations(range(3), n)):
        ways = [" ".join(filter(None, (part[i] for i in these))) for part in parts]
        keys = [
            (way, c.after.partitioner, c.after.block_size)
            for way, c in zip(ways, columns, strict=True)
        ]
        if len(set(keys)) == len(keys):
            return ways
    return [column.plan for column in columns]


def _peer(column: Column, among: Sequence[Column], plans: Mapping[str, Plan]) -> str:
    """What METIS needs for the same loop and block size, of the same order if there is one.

    Nothing where no plan by it is there.
    """
    if column.after.partitioner == "metis" or column.after.reuse is None:
        return ""
    alike = (column.loop, "metis", column.after.block_size, column.after.accesses)
    others = [
        other
        for other in among
        if alike
        == (other.loop, other.after.partitioner, other.after.block_size, other.after.accesses)
    ]
    method = _method(plans[column.plan])
    others.sort(key=lambda other: _method(plans[other.plan]) != method)
    return against_metis(column.after, others[0].after) if others else ""
