"""The figures of one plan before and after, and of several plans side by side."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan import Plan

from ..options import check_choice
from .cost import Assumed, cost_of
from .figures import FIGURES, Figure, Values, best_of, device_figures
from .orders import localities, order_comparison, order_tables
from .table import Table, figure
from .verdict import against_metis, repayment, tuned, verdict

LEGEND, LEGEND_COLUMNS = "* the best of the row", "* the best of the column"


# Plans beside each other beyond which a table has a line a plan instead of a column.
MOST_COLUMNS = 6


def plan_table(plan: Plan, assumed: Assumed | None = None) -> list[Table]:
    """Before and after: the points' order, then every loop."""
    one = Comparison(("",), (plan,), assumed or Assumed())
    return [*one.order_tables(), *(t for group in one.by_loop() for t in one.loop_tables(group))]


@dataclass(frozen=True)
class Column:
    """One variant of one loop in one plan: what stands in one column of a comparison.

    ``way`` tells plans of one partitioner apart: by options or the order of points where these
    differ, else by the file. ``after`` also holds ``cost``: the seconds of preparation, the
    milliseconds that a call saves and the calls that repay. ``price`` is the same in words, and
    ``peer`` what METIS needs for the same, where a plan by METIS is compared too; ``tuned`` is what
    was tuned.
    """

    plan: str
    loop: str
    variant: str
    before: Values | None
    after: Values
    price: str = ""
    peer: str = ""
    way: str = ""
    tuned: str = ""

    @property
    def label(self) -> str:
        """Plan, partitioner and variant, none twice."""
        how = f"{self.after['partitioner']} {self.variant}"
        return self.plan if self.plan.endswith(how) else f"{self.plan} {how}".strip()

    @property
    def verdict(self) -> str:
        """Whether the plan helped, what it cost, what METIS would need, and what was tuned."""
        parts = (verdict(self.before, self.after), self.price, self.peer, self.tuned)
        return "; ".join(part for part in parts if part)


@dataclass(frozen=True)
class Comparison:
    """Several plans and their figures; notebooks show it as HTML."""

    names: tuple[str, ...]
    plans: tuple[Plan, ...]
    assumed: Assumed = field(default_factory=Assumed)

    @property
    def rows(self) -> tuple[Figure, ...]:
        """The figures of every column."""
        return (*FIGURES, *device_figures(self.assumed))

    def columns(self) -> list[Column]:
        """Every variant of every loop in every plan, loop by loop."""
        found = [
            column
            for name, plan in zip(self.names, self.plans, strict=True)
            for column in _columns(name, plan, self.assumed)
        ]
        loops = list(dict.fromkeys(column.loop for column in found))
        found.sort(key=lambda column: loops.index(column.loop))
        plans = dict(zip(self.names, self.plans, strict=True))
        ways = [
            way
            for loop in loops
            for way in _ways([column for column in found if column.loop == loop], plans)
        ]
        return [
            replace(column, peer=_peer(column, found, plans), way=way)
            for column, way in zip(found, ways, strict=True)
        ]

    def verdicts(self) -> list[dict[str, str]]:
        """For each column, in words, whether the plan helped."""
        return [
            {"plan": c.plan, "loop": c.loop, "variant": c.variant, "verdict": c.verdict}
            for c in self.columns()
        ]

    def figures(self) -> list[dict[str, Any]]:
        """One record a figure and column, with ``best`` among the columns of its loop."""
        return [record for loop in self.by_loop() for record in _records(loop, self.rows)]

    def to_dict(self) -> dict[str, Any]:
        """JSON values: one entry a plan, then figures and verdicts."""
        return {
            "plans": [
                {
                    "file": name,
                    "about": dict(plan.about),
                    "options": dict(plan.options),
                    "metrics": dict(plan.metrics),
                }
                for name, plan in zip(self.names, self.plans, strict=True)
            ],
            "assumed": asdict(self.assumed) | {"bandwidth": self.assumed.gigabytes},
            "figures": self.figures(),
            "verdicts": self.verdicts(),
        }

    def to_csv(self) -> str:
        """:meth:`figures` as comma-separated values, with a header."""
        out = io.StringIO()
        fields = ("loop", "plan", "variant", "figure", "before", "after", "best")
        writer = csv.DictWriter(out, fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.figures())
        return out.getvalue()

    def tables(self) -> list[Table]:
        """One plan: before and after. Several: a column or a line each, a table a loop."""
        loops = [table for group in self.by_loop() for table in self.loop_tables(group)]
        return [*self.order_tables(), *loops, self.seconds_table()]

    def order_tables(self) -> list[Table]:
        """The figures of the order of points."""
        if len(self.plans) == 1:
            return [t for one in localities(self.plans[0]) for t in order_tables(one)]
        found = order_comparison(self.names, self.plans)
        return [t.turned() for t in found] if len(self.plans) > MOST_COLUMNS else found

    def loop_tables(self, columns: Sequence[Column]) -> list[Table]:
        """The figures of one loop, from the columns that :meth:`by_loop` gives."""
        if len(self.plans) == 1:
            return [_before_after(self._heading(c), self.rows, c) for c in columns]
        if len(columns) > MOST_COLUMNS:
            return [_line_by_line(columns, self.rows)]
        return [_side_by_side(columns, self.rows)]

    def seconds_table(self) -> Table:
        """What preparing cost, stage by stage."""
        return _seconds(self.names, self.plans)

    def _heading(self, column: Column) -> str:
        plan = self.plans[self.names.index(column.plan)]
        n = plan.sizes[plan[column.loop].loop.over]
        size = column.after["block_size"]
        what = f"loop {column.loop}, variant {column.variant}"
        return f"{what}: {n:,} elements, blocks of {size} at most"

    def lines(self, only: str | None = None) -> list[str]:
        """The verdicts as lines of text, and what the star means where there is one.

        ``only`` names the plan to speak of; None for all.
        """
        starred = any(table.best for table in self.tables())
        found = [
            f"{c.plan}, loop {c.loop} {c.variant}: {c.verdict}"
            for c in self.columns()
            if only in (None, c.plan)
        ]
        many = any(len(group) > MOST_COLUMNS for group in self.by_loop())
        return [*found, *([LEGEND_COLUMNS if many else LEGEND] if starred else [])]

    def by_loop(self) -> Iterator[list[Column]]:
        """The columns of each loop."""
        columns = self.columns()
        for loop in dict.fromkeys(c.loop for c in columns):
            yield [c for c in columns if c.loop == loop]

    def _repr_html_(self) -> str:
        said = "".join(
            f"<p><b>{escape(f'{c.plan}, loop {c.loop} {c.variant}')}</b>: {escape(c.verdict)}</p>"
            for c in self.columns()
        )
        return said + "".join(table.html() for table in self.tables())


def compare(
    paths: Sequence[Path | str],
    assumed: Assumed | None = None,
) -> Comparison:
    """Load plans for comparison; names are cut to what tells them apart.

    Parameters
    ----------
    paths : sequence of Path or str
    assumed : Assumed, optional
        Device, registers, bandwidth, and times of calls that were measured.

    Raises
    ------
    MeshprepError
        Where no plan is named, and where times were measured of a loop that no plan has.
    PlanError
        For a file that is no plan, or a damaged one.
    """
    if not paths:
        raise MeshprepError("name at least one plan to report on")
    plans = tuple(Plan.load(path) for path in paths)
    short = [Path(path).name for path in paths]
    names = short if len(set(short)) == len(short) else [str(path) for path in paths]
    assumed = assumed or Assumed()
    loops = dict.fromkeys(loop for plan in plans for loop in plan.loops)
    for name in assumed.measured:
        check_choice("loop", name, loops)
    return Comparison(tuple(names), plans, assumed)


def _columns(name: str, plan: Plan, assumed: Assumed) -> Iterator[Column]:
    cost = cost_of(plan, assumed)
    known = {"seconds": cost.seconds, "saved_ms": cost.saved, "calls": cost.calls}
    for loop, variants in plan.metrics.get("loops", {}).items():
        old, new = assumed.measured.get(loop, (None, None))
        told = tuned(plan[loop])
        for variant, sides in variants.items():
            before = sides["before"] and {**sides["before"], "measured_ms": old}
            after = {**sides["after"], "measured_ms": new, "cost": known}
            # what reaches nothing through a map has no price of its own
            price = repayment(cost, assumed) if after["reuse"] is not None else ""
            yield Column(name, loop, variant, before, after, price, tuned=told)


def _method(plan: Plan) -> str:
    """The order that was applied, in a word."""
    first = plan.metrics.get("locality") or {}
    return str(first.get("method", "")) if first.get("applied") else "input"


def _lead(plan: Plan) -> str:
    """The partitioner of the first loop, which gives the others their order."""
    loops = plan.metrics.get("loops", {})
    sides = next((s for variants in loops.values() for s in variants.values()), None)
    return str(sides["after"]["partitioner"]) if sides else ""


def _told(plan: Plan) -> str:
    """The options of the partitioner, as a person would type them."""
    given = plan.options.get("partition_options") or {}
    return " ".join(f"{name}={value}" for name, value in given.items())


def _ways(columns: Sequence[Column], plans: Mapping[str, Plan]) -> list[str]:
    """What sets the columns of one loop apart that have one partitioner and block size.

    The least of: nothing, options, order, partitioner of the first loop, these together, the file.
    """
    parts = [(_told(p), _method(p), _lead(p)) for p in (plans[column.plan] for column in columns)]
    chosen: tuple[tuple[int, ...], ...] = ((), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))
    for these in chosen:
        ways = [" ".join(filter(None, (part[i] for i in these))) for part in parts]
        keys = [
            (way, c.after["partitioner"], c.after["block_size"])
            for way, c in zip(ways, columns, strict=True)
        ]
        if len(set(keys)) == len(keys):
            return ways
    return [column.plan for column in columns]


def _peer(column: Column, among: Sequence[Column], plans: Mapping[str, Plan]) -> str:
    """What METIS needs for the same loop and block size, of the same order if there is one.

    Nothing where no plan by it is there.
    """
    if column.after["partitioner"] == "metis" or column.after["reuse"] is None:
        return ""
    others = [
        other
        for other in among
        if other.loop == column.loop
        and other.after["partitioner"] == "metis"
        and all(other.after[key] == column.after[key] for key in ("block_size", "accesses"))
    ]
    method = _method(plans[column.plan])
    others.sort(key=lambda other: _method(plans[other.plan]) != method)
    return against_metis(column.after, others[0].after) if others else ""


def _before_after(title: str, figures: Sequence[Figure], column: Column) -> Table:
    header = ("", "before: input order", f"after: {column.after['partitioner']}")
    rows, best = [], set()
    for i, row in enumerate(figures):
        sides = (column.before, column.after)
        values = [None if side is None else row.find(side) for side in sides]
        rows.append((row.label, *map(figure, values)))
        best |= {(i, 1 + j) for j in best_of(values, row.better)}
    return Table(title, header, rows, frozenset(best))


def _side_by_side(columns: Sequence[Column], figures: Sequence[Figure]) -> Table:
    """A column a plan with ``before -> after``; the best is the best after."""
    header = [c.label for c in columns]
    rows, best = [], set()
    for i, row in enumerate(figures):
        after = [row.find(c.after) for c in columns]
        old = [None if c.before is None else row.find(c.before) for c in columns]
        rows.append((row.label, *(_arrow(*pair) for pair in zip(old, after, strict=True))))
        best |= {(i, 1 + j) for j in best_of(after, row.better)}
    title = f"loop {columns[0].loop}: before -> after"
    return Table(title, ("", *header), rows, frozenset(best))


def _line_by_line(columns: Sequence[Column], figures: Sequence[Figure]) -> Table:
    """A line a plan with what sets plans apart, after; the best of each column."""
    chosen = [row for row in figures if row.short]
    values = [[row.find(c.after) for row in chosen] for c in columns]
    best = {
        (i, 1 + j)
        for j, row in enumerate(chosen)
        for i in best_of([line[j] for line in values], row.better)
    }
    rows = [(c.label, *map(figure, line)) for c, line in zip(columns, values, strict=True)]
    for before in _inputs(columns):
        name = f"input order s{before['block_size']}"
        rows.append((name, *(figure(row.find(before)) for row in chosen)))
    header = ("after", *(row.short for row in chosen))
    return Table(f"loop {columns[0].loop}", header, rows, frozenset(best))


def _inputs(columns: Sequence[Column]) -> list[Values]:
    """The input order cut into every block size, ascending."""
    found = {c.before["block_size"]: c.before for c in columns if c.before is not None}
    return [found[size] for size in sorted(found)]


def _arrow(before: float | int | None, after: float | int | None) -> str:
    old, new = figure(before), figure(after)
    return new if before is None or old == new else f"{old} -> {new}"


def _records(columns: Sequence[Column], figures: Sequence[Figure]) -> Iterator[dict[str, Any]]:
    for row in figures:
        after = [row.find(c.after) for c in columns]
        best = best_of(after, row.better)
        for j, (column, value) in enumerate(zip(columns, after, strict=True)):
            before = None if column.before is None else row.find(column.before)
            yield {
                "loop": column.loop,
                "plan": column.plan,
                "variant": column.variant,
                "figure": row.label,
                "before": before,
                "after": value,
                "best": j in best,
            }


def _seconds(names: Sequence[str], plans: Sequence[Plan]) -> Table:
    """What preparing cost; the best is the least in all."""
    seconds = [p.metrics.get("seconds", {}) for p in plans]
    stages = list(dict.fromkeys(stage for one in seconds for stage in one))
    rows = [(stage, *(figure(one.get(stage)) for one in seconds)) for stage in stages]
    totals = [sum(one.values()) for one in seconds]
    rows.append(("all", *map(figure, totals)))
    best = frozenset((len(rows) - 1, 1 + j) for j in best_of(totals, -1))
    table = Table("seconds of preparation", ("", *names), rows, best)
    return table.turned() if len(plans) > MOST_COLUMNS else table
