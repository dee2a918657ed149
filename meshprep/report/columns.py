"""The columns of a comparison, each a variant of a loop with its figures, and tables of these."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meshprep_runtime.plan import LoopPlan, Plan
from meshprep_runtime.plan.metrics import VariantMetrics

from ..metrics.cost import Measured
from .table import Table, figure
from .verdict import sectors, tuned, verdict


@dataclass(frozen=True, kw_only=True)
class ShownMetrics(VariantMetrics):
    """The figures of one side of a variant, and what a call takes."""

    measured_ms: float | None = None  # of a call, where it was measured


@dataclass(frozen=True)
class ReportRow:
    """A row of a report."""

    label: str
    # Finds the figure; None where there is none, as in plans of older versions.
    find: Callable[[ShownMetrics], float | int | None]
    better: int = 0  # {1, 0, -1}: whether large is good, nothing is, or small is


def _traffic(layout: str, what: str) -> Callable[[ShownMetrics], int | None]:
    """Sectors of a call in one layout: ``read``, ``written`` or ``total``."""
    return lambda v: getattr(v.traffic[layout], what) if layout in v.traffic else None


def _useful(of: VariantMetrics, milliseconds: float | None) -> float | None:
    """sum(w_d S_d) / T [S19]."""
    if not milliseconds or of.useful_bytes is None:
        return None
    return of.useful_bytes / milliseconds / 1e6


FIGURES = (
    ReportRow("reuse factor", lambda v: v.reuse, +1),
    ReportRow("accesses", lambda v: v.accesses),
    ReportRow("loads", lambda v: v.loads, -1),
    ReportRow("exclusive share of loads", lambda v: v.exclusive_share, +1),
    ReportRow("blocks", lambda v: v.blocks),
    ReportRow("blocks in several pieces", lambda v: v.partition.scattered if v.partition else None),
    ReportRow("elements a block, largest", lambda v: v.block_elements.max),
    ReportRow("staged bytes a block, mean", lambda v: v.staged_bytes.mean),
    ReportRow("staged bytes a block, largest", lambda v: v.staged_bytes.max, -1),
    ReportRow("128-byte lines a block (AoS)", lambda v: v.aos.lines.mean),
    ReportRow("128-byte lines a block (SoA)", lambda v: v.soa.lines.mean),
    ReportRow("32-byte sectors a block (AoS)", lambda v: v.aos.sectors.mean),
    ReportRow("32-byte sectors a block (SoA)", lambda v: v.soa.sectors.mean),
    ReportRow("sectors moved a call (AoS)", _traffic("aos", "total"), -1),
    ReportRow("sectors read a call (AoS)", _traffic("aos", "read"), -1),
    ReportRow("sectors written a call (AoS)", _traffic("aos", "written"), -1),
    ReportRow("sectors read a call (SoA)", _traffic("soa", "read"), -1),
    ReportRow("sectors written a call (SoA)", _traffic("soa", "written"), -1),
    ReportRow("thread colours, mean", lambda v: v.thread_colours.mean, -1),
    ReportRow("thread colours, bound", lambda v: v.thread_colours.bound_mean),
    ReportRow("thread colours, largest", lambda v: v.thread_colours.max, -1),
    ReportRow("block colours", lambda v: v.block_colours, -1),
    ReportRow("blocks in the smallest colour", lambda v: v.block_colour_blocks.min, +1),
    ReportRow("blocks in the largest colour", lambda v: v.block_colour_blocks.max),
    ReportRow("warp efficiency, computing", lambda v: v.warp_efficiency.computing, +1),
    ReportRow("warp efficiency, increments", lambda v: v.warp_efficiency.increments, +1),
    ReportRow("useful MB a call", lambda v: _useful(v, 1.0)),
    ReportRow(
        "seconds to cut the blocks", lambda v: v.partition.seconds if v.partition else None, -1
    ),
    ReportRow("measured ms a call", lambda v: v.measured_ms, -1),
    ReportRow("measured useful GB/s", lambda v: _useful(v, v.measured_ms), +1),
)


def best_of(values: Sequence[float | int | None], better: int) -> list[int]:
    """Places of the best of several figures; none where all are alike or nothing is good."""
    known = [v for v in values if v is not None]
    if not better or len(set(known)) < 2:
        return []
    best = max(known) if better > 0 else min(known)
    return [i for i, v in enumerate(values) if v == best]


@dataclass(frozen=True)
class Column:
    """One variant of one loop in one plan: what stands in one column of a comparison."""

    plan: str
    loop: str
    variant: str
    # The figures; ``before`` is None where the input order cannot be staged.
    before: ShownMetrics | None
    after: ShownMetrics
    # The reuse factor if every point were loaded once; None where nobody knows the points.
    bound: float | None = None
    way: str = ""  # order of points and options of the partitioner, where plans differ in these
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
        """Whether the plan helped, and what was tuned."""
        return "; ".join(filter(None, (verdict(self.before, self.after), self.tuned)))


def columns_of(
    plans: Mapping[str, Plan], times: Mapping[str, Mapping[str, Measured]]
) -> list[Column]:
    """Every variant of every loop in every plan, loop by loop; ``times`` are by plan and loop."""
    ways = {
        name: f"{_method(plan)} {options_text(plan.options.get('partition_options'))}".strip()
        for name, plan in plans.items()
    }
    if len({*ways.values()}) < 2:
        ways = dict.fromkeys(plans, "")
    found = [c for n, plan in plans.items() for c in _columns(n, plan, times.get(n, {}), ways[n])]
    loops = list(dict.fromkeys(column.loop for column in found))
    found.sort(key=lambda column: loops.index(column.loop))
    bounds = {_subject(c): c.bound for c in found if c.bound is not None}
    return [replace(c, bound=bounds.get(_subject(c))) for c in found]


def _subject(column: Column) -> tuple[str, int, int]:
    """What plans of one loop over one mesh have in common."""
    return column.loop, column.elements, column.after.accesses


def _columns(name: str, plan: Plan, times: Mapping[str, Measured], way: str) -> Iterator[Column]:
    for loop, found in plan.metrics.loops.items():
        timed = times.get(loop)
        old, new = timed.milliseconds if timed else (None, None)
        default = plan[loop].default
        default = default if default in found.variants else next(iter(found.variants), default)
        for variant, sides in found.variants.items():
            before = ShownMetrics(**vars(sides.before), measured_ms=old) if sides.before else None
            after = ShownMetrics(**vars(sides.after), measured_ms=new)
            yield Column(
                name,
                loop,
                variant,
                before,
                after,
                bound=_bound(plan[loop]),
                way=way,
                tuned=tuned(plan[loop]),
                elements=plan.sizes[plan[loop].loop.over],
                chosen=variant == default,
            )


def _bound(loop_plan: LoopPlan) -> float | None:
    """Accesses over the distinct points that a loop reaches; None of a plan without arrays."""
    for variant in loop_plan.variants.values():
        points = sum(np.count_nonzero(np.bincount(s.points)) for s in variant.staging.values())
        arity = sum(loop_plan.maps[name].arity for name in loop_plan.loop.maps)
        if points:
            return arity * loop_plan.sizes[loop_plan.loop.over] / points
    return None


def _method(plan: Plan) -> str:
    """The order that was applied, in a word."""
    first = plan.metrics.locality
    return first.method if first and first.applied else "input"


def options_text(options: Mapping[str, Any] | None) -> str:
    """Options of a partitioner, as a person would type them."""
    return " ".join(f"{name}={value}" for name, value in (options or {}).items())


@dataclass(frozen=True)
class _Sum:
    """A figure of several loops together, as a column of the brief table."""

    head: str
    of: Callable[[Sequence[ShownMetrics]], float | int | None]
    better: int = -1


def _total(find: Callable[[ShownMetrics], float | None]) -> Callable[..., float | int | None]:
    """The sum over all loops; None where one of them has no such figure, or all have nothing."""

    def total(sides: Sequence[ShownMetrics]) -> float | int | None:
        found = [find(v) for v in sides]
        return None if None in found else sum(filter(None, found)) or None

    return total


def _reuse(sides: Sequence[ShownMetrics]) -> float | None:
    loads = sum(v.loads for v in sides)
    return sum(v.accesses for v in sides) / loads if loads else None


REUSE = _Sum("reuse", _reuse, +1)
# What a user acts on: of a plan for each loop, of several plans for all loops together.
SUMS = (
    # noise has no best
    _Sum("ms a call", _total(lambda v: v.measured_ms), 0),
    REUSE,
    _Sum("sectors moved", _total(lambda v: sectors(v) if v.target == "gpu" else None)),
    _Sum("loads", _total(lambda v: v.loads if v.target == "cpu" else None)),
    _Sum("block colours", _total(lambda v: v.block_colours)),
)
STAGED = _Sum("staged bytes", lambda sides: max(v.staged_bytes.max or 0 for v in sides) or None)
TO_CUT = _Sum("s to cut", _total(lambda v: v.partition.seconds if v.partition else None))
COLOURS = _Sum("thread colours", lambda sides: sides[0].thread_colours.mean)


def facts(column: Column) -> Table:
    """What a user acts on of one loop: half a dozen figures, before and after."""
    rows = []
    for one in (*SUMS, STAGED, COLOURS):
        before, after = (one.of([side]) if side else None for side in (column.before, column.after))
        most = f", at most {column.bound:.2f}" if one is REUSE and column.bound else ""
        if after is not None:
            rows.append((f"{one.head}{most}", figure(before), figure(after)))
    changed = frozenset((i, 2) for i, row in enumerate(rows) if "-" != row[1] != row[2])
    return Table("", ("", "before", "after"), rows, frozenset(), changed)


def brief_table(columns: Sequence[Column], most: int) -> Table:
    """A line a loop of one plan, before and after, or a line a plan; of loops at most ``most``."""
    columns = [c for c in columns if c.chosen]
    alone = len({c.plan for c in columns}) < 2
    lines: dict[str, list[Column]] = {}
    for column in columns:
        lines.setdefault(column.loop if alone else column.plan, []).append(column)
    named = list(lines.items())[: most if alone else None]
    heads, cells, best = ["loop" if alone else "plan"], [[name] for name, _ in named], set()
    alike = not alone and len({tuple(map(_subject, line)) for line in lines.values()}) < 2
    for one in (*SUMS, *(() if alone else (STAGED, TO_CUT))):
        after = [one.of([c.after for c in line]) for _, line in named]
        if (all if alone else any)(value is None for value in after):
            continue
        sides = [[c.before for c in line if c.before] if alone else [] for _, line in named]
        before = [one.of(old) if old else None for old in sides]
        best |= {(i, len(heads)) for i in best_of(after, one.better) if alike}
        heads.append(one.head)
        for row, *pair in zip(cells, before, after, strict=True):
            row.append(_arrow(*pair))
        if one is REUSE and alone and any(c.bound for c in columns):
            heads.append("at most")
            for row, (_, line) in zip(cells, named, strict=True):
                row.append(figure(bound_of(line)))
    bound = bound_of(named[0][1]) if alike else None
    title = f"after; all loops together, reuse {bound:.2f} at most" if bound else ""
    return Table(title, tuple(heads), [tuple(row) for row in cells], frozenset(best))


def bound_of(columns: Sequence[Column]) -> float | None:
    """The reuse factor of several loops together if each loaded every point once."""
    known = [(c.after.accesses, c.bound) for c in columns if c.bound]
    points = sum(accesses / bound for accesses, bound in known)
    return sum(accesses for accesses, _ in known) / points if known else None


ARROW = " -> "


def before_after(column: Column) -> Table:
    """A column before and a column after."""
    what = f"{column.elements:,} elements, blocks of {column.after.block_size} at most"
    if column.after.listed:
        what += ", which list them"
    if not column.elements:
        what = "no elements, so that there is nothing to prepare"
    title = f"loop {column.loop}, variant {column.variant}: {what}"
    header = ("", "before: input order", f"after: {column.after.partitioner}")
    rows, best = [], set()
    for i, row in enumerate(_telling([column])):
        sides = (column.before, column.after)
        values = [None if side is None else row.find(side) for side in sides]
        rows.append((row.label, *map(figure, values)))
        best |= {(i, 1 + j) for j in best_of(values, row.better)}
    changed = frozenset((i, 2) for i, row in enumerate(rows) if "-" != row[1] != row[2])
    return Table(title, header, rows, frozenset(best), changed)


def side_by_side(columns: Sequence[Column]) -> Table:
    """A column a plan with ``before -> after``; the best is the best after."""
    header = [c.label for c in columns]
    rows, best = [], set()
    alike = comparable(columns)
    for i, row in enumerate(_telling(columns)):
        after = [row.find(c.after) for c in columns]
        old = [None if c.before is None else row.find(c.before) for c in columns]
        rows.append((row.label, *(_arrow(*pair) for pair in zip(old, after, strict=True))))
        best |= {(i, 1 + j) for j in best_of(after, row.better) if alike}
    title = f"loop {columns[0].loop}: before{ARROW}after"
    changed = frozenset(
        (i, j) for i, row in enumerate(rows) for j, text in enumerate(row) if ARROW in text
    )
    return Table(title, ("", *header), rows, frozenset(best), changed)


def comparable(columns: Sequence[Column]) -> bool:
    """Whether the columns are of one loop over one mesh, so that one of them can be the best."""
    return len({(c.after.accesses, c.elements) for c in columns}) < 2


def _telling(columns: Sequence[Column]) -> list[ReportRow]:
    """The rows that say something: neither without any figure, nor zeros of a loop without maps."""
    values = [side for c in columns for side in (c.before, c.after) if side is not None]
    direct = all(c.after.reuse is None for c in columns)
    return [
        row
        for row in FIGURES
        if not {row.find(v) for v in values} <= ({None, 0} if direct else {None})
    ]


def _arrow(before: float | int | None, after: float | int | None) -> str:
    old, new = figure(before), figure(after)
    return new if before is None or old == new else f"{old}{ARROW}{new}"


def seconds_table(names: Sequence[str], plans: Sequence[Plan], transposed: bool) -> Table:
    """What preparing cost; the best is the least in all, of plans of meshes of one size.

    ``transposed`` gives a line a plan.
    """
    seconds = [p.metrics.seconds for p in plans]
    stages = list(dict.fromkeys(stage for one in seconds for stage in one))
    rows = [(stage, *(figure(one.get(stage)) for one in seconds)) for stage in stages]
    totals = [sum(one.values()) for one in seconds]
    rows.append(("all", *map(figure, totals)))
    alike = all(plan.sizes == plans[0].sizes for plan in plans)
    best = frozenset((len(rows) - 1, 1 + j) for j in best_of(totals, -1) if alike)
    table = Table("seconds of preparation", ("", *names), rows, best)
    return table.transposed() if transposed else table
