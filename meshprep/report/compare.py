"""The figures of one plan before and after, and of several plans side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan import Plan

from .orders import localities, order_comparison, order_tables
from .table import Table, figure

Values = Mapping[str, Any]

# Label and how to find the figure in what metrics.variant_metrics gives.
ROWS: tuple[tuple[str, Callable[[Values], Any]], ...] = (
    ("reuse factor", lambda m: m["reuse"]),
    ("accesses", lambda m: m["accesses"]),
    ("loads", lambda m: m["loads"]),
    ("exclusive share of loads", lambda m: m["exclusive_share"]),
    ("blocks", lambda m: m["blocks"]),
    ("blocks in several pieces", lambda m: m.get("partition", {}).get("scattered")),
    ("elements a block, largest", lambda m: m["block_elements"]["max"]),
    ("staged bytes a block, largest", lambda m: m["staged_bytes"]["max"]),
    ("128-byte lines a block (AoS)", lambda m: m["aos"]["lines"]["mean"]),
    ("thread colours, mean", lambda m: m["thread_colours"]["mean"]),
    ("thread colours, bound", lambda m: m["thread_colours"]["bound_mean"]),
    ("thread colours, largest", lambda m: m["thread_colours"]["max"]),
    ("block colours", lambda m: m["block_colours"]),
    ("blocks in the smallest colour", lambda m: m["block_colour_blocks"]["min"]),
)


def plan_table(plan: Plan) -> list[Table]:
    """Before and after: the points' order, then every loop."""
    tables = [table for one in localities(plan) for table in order_tables(one)]
    for name, variants in plan.metrics.get("loops", {}).items():
        for variant, sides in variants.items():
            size = sides["after"]["block_size"]
            how = sides["after"]["partitioner"]
            n = plan.sizes[plan[name].loop.over]
            title = f"loop {name}, variant {variant}: {n:,} elements, blocks of {size} at most"
            header = ("", "before: input order", f"after: {how}")
            tables.append(Table(title, header, _rows(sides.values())))
    return tables


@dataclass(frozen=True)
class Comparison:
    """Several plans and their figures."""

    names: tuple[str, ...]
    plans: tuple[Plan, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON values: one entry a plan."""
        return {
            "plans": [
                {
                    "file": name,
                    "about": dict(plan.about),
                    "options": dict(plan.options),
                    "metrics": dict(plan.metrics),
                }
                for name, plan in zip(self.names, self.plans, strict=True)
            ]
        }

    def tables(self) -> list[Table]:
        """One plan: before and after. Several: a column each, a table a loop."""
        if len(self.plans) == 1:
            return [*plan_table(self.plans[0]), _seconds(self.names, self.plans)]
        loops = dict.fromkeys(name for p in self.plans for name in p.metrics.get("loops", {}))
        orders = order_comparison(self.names, self.plans)
        return [*orders, *(self._loop(name) for name in loops), _seconds(self.names, self.plans)]

    def _loop(self, loop: str) -> Table:
        header, columns = [], []
        for name, plan in zip(self.names, self.plans, strict=True):
            for variant, sides in plan.metrics.get("loops", {}).get(loop, {}).items():
                after = sides["after"]
                header.append(f"{name} {after['partitioner']} {variant}")
                columns.append(after)
        return Table(f"loop {loop}", ("", *header), _rows(columns))


def compare(paths: Sequence[Path]) -> Comparison:
    """Load plans for comparison; names are cut to what tells them apart.

    Raises
    ------
    PlanError
        For a file that is no plan, or a damaged one.
    """
    if not paths:
        raise MeshprepError("name at least one plan to report on")
    plans = tuple(Plan.load(path) for path in paths)
    short = [path.name for path in paths]
    names = short if len(set(short)) == len(short) else [str(path) for path in paths]
    return Comparison(tuple(names), plans)


def _rows(columns: Any) -> list[tuple[str, ...]]:
    columns = list(columns)
    return [
        (label, *("-" if c is None else figure(find(c)) for c in columns)) for label, find in ROWS
    ]


def _seconds(names: Sequence[str], plans: Sequence[Plan]) -> Table:
    """What preparing cost."""
    stages = dict.fromkeys(s for p in plans for s in p.metrics.get("seconds", {}))
    rows = [
        (stage, *(figure(p.metrics.get("seconds", {}).get(stage)) for p in plans))
        for stage in stages
    ]
    return Table("seconds of preparation", ("", *names), rows)
