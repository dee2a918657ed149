"""The columns of a comparison, a variant of a loop each, and tables of their figures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from meshprep_runtime.cuda.occupancy import USUAL_ARCH, occupancy
from meshprep_runtime.cuda.strategies import MOST_THREADS
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
    better: int = 0  # 1 where large is good, -1 where small is, 0 where neither is


def _traffic(layout: str, what: str) -> Callable[[ShownMetrics], int | None]:
    """Sectors of a call in one layout: ``read``, ``written`` or ``total``."""

    def find(v: ShownMetrics) -> int | None:
        if layout not in v.traffic:
            return None
        count: int = getattr(v.traffic[layout], what)
        return count

    return find


def _scattered(v: ShownMetrics) -> int | None:
    """Blocks in several pieces; None where nobody counted."""
    return None if v.partition is None else v.partition.scattered


def _cut_seconds(v: ShownMetrics) -> float | None:
    """Seconds to cut the blocks; None where nobody measured."""
    return None if v.partition is None else v.partition.seconds


def _useful(of: VariantMetrics, milliseconds: float | None) -> float | None:
    """GB/s of useful bytes in a call of this time: sum(w_d S_d) / T [S19]."""
    if not milliseconds or of.useful_bytes is None:
        return None
    return of.useful_bytes / milliseconds / 1e6


def _occupancy(v: ShownMetrics) -> float | None:
    """By the staged bytes of the largest block; None for blocks that no GPU runs."""
    if v.target != "gpu" or v.staged_bytes.max is None or v.block_size > MOST_THREADS:
        return None
    staged = occupancy(USUAL_ARCH, v.block_size, int(v.staged_bytes.max))
    return staged.share


FIGURES = (
    ReportRow("reuse factor", lambda v: v.reuse, +1),
    ReportRow("accesses", lambda v: v.accesses),
    ReportRow("loads", lambda v: v.loads, -1),
    ReportRow("exclusive share of loads", lambda v: v.exclusive_share, +1),
    ReportRow("blocks", lambda v: v.blocks),
    ReportRow("blocks in several pieces", _scattered),
    ReportRow("elements a block, largest", lambda v: v.block_elements.max),
    ReportRow("staged bytes a block, mean", lambda v: v.staged_bytes.mean),
    ReportRow("staged bytes a block, largest", lambda v: v.staged_bytes.max, -1),
    ReportRow("occupancy by staged bytes (sm_90)", _occupancy, +1),
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
    ReportRow("seconds to cut the blocks", _cut_seconds, -1),
    ReportRow("measured ms a call", lambda v: v.measured_ms, -1),
    ReportRow("measured useful GB/s", lambda v: _useful(v, v.measured_ms), +1),
)


def best_of(values: Sequence[float | int | None], better: int) -> list[int]:
    """Places of the best of several figures; none where all are alike or none is better."""
    numbers = [v for v in values if v is not None]
    if not better or len(set(numbers)) < 2:
        return []
    best = max(numbers) if better > 0 else min(numbers)
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
    # Order of points and options of the partitioner, where plans differ in these.
    way: str = ""
    tuned: str = ""  # the result of tuning, in words
    elements: int = 0  # of the loop
    chosen: bool = True  # whether the variant is the default one of the plan's loop

    @property
    def label(self) -> str:
        """Plan, partitioner and variant, none twice."""
        how = f"{self.after.partitioner} {self.variant}"
        if self.plan.endswith(how):
            return self.plan
        return f"{self.plan} {how}".strip()

    @property
    def verdict(self) -> str:
        """Whether the plan helped, and what was tuned."""
        return "; ".join(filter(None, (verdict(self.before, self.after), self.tuned)))


def columns_of(
    plans: Mapping[str, Plan], times: Mapping[str, Mapping[str, Measured]]
) -> list[Column]:
    """Every variant of every loop in every plan, loop by loop.

    ``times`` are by plan and loop.
    """
    # The ways of plans are shown where they differ.
    ways = {}
    for name, plan in plans.items():
        options = options_text(plan.options.get("partition_options"))
        ways[name] = f"{_method(plan)} {options}".strip()
    if len(set(ways.values())) < 2:
        ways = dict.fromkeys(plans, "")
    # The variants of each plan.
    columns: list[Column] = []
    for name, plan in plans.items():
        columns += _columns_of_plan(
            name=name,
            plan=plan,
            times=times.get(name, {}),
            way=ways[name],
        )
    # Sort by loop, in the order in which plans name them.
    loops = list(dict.fromkeys(column.loop for column in columns))
    columns.sort(key=lambda column: loops.index(column.loop))
    # Plans without arrays share the bounds of those that have them.
    bounds = {_subject(c): c.bound for c in columns if c.bound is not None}
    return [replace(c, bound=bounds.get(_subject(c))) for c in columns]


def _subject(column: Column) -> tuple[str, int, int]:
    """What plans of one loop over one mesh have in common."""
    return column.loop, column.elements, column.after.accesses


def _columns_of_plan(
    name: str,
    plan: Plan,
    times: Mapping[str, Measured],
    way: str,
) -> Iterator[Column]:
    """Every variant of every loop of a plan."""
    for loop, metrics in plan.metrics.loops.items():
        # Milliseconds of a call, where they were measured.
        ms_before = None
        ms_after = None
        timed = times.get(loop)
        if timed:
            ms_before, ms_after = timed.milliseconds
        # The default variant may have no figures, which were then not measured.
        default = plan[loop].default
        if default not in metrics.variants:
            default = next(iter(metrics.variants), default)
        # A column for each variant that has figures.
        for variant, sides in metrics.variants.items():
            before = None
            if sides.before:
                before = ShownMetrics(**vars(sides.before), measured_ms=ms_before)
            after = ShownMetrics(**vars(sides.after), measured_ms=ms_after)
            yield Column(
                plan=name,
                loop=loop,
                variant=variant,
                before=before,
                after=after,
                bound=_bound(plan[loop]),
                way=way,
                tuned=tuned(plan[loop]),
                elements=plan.sizes[plan[loop].loop.over],
                chosen=variant == default,
            )


def _bound(loop_plan: LoopPlan) -> float | None:
    """Accesses over the distinct points that a loop reaches; None without arrays."""
    for variant in loop_plan.variants.values():
        n_points = 0
        for staging in variant.staging.values():
            n_lists_of_point = np.bincount(staging.points)
            n_points += int(np.count_nonzero(n_lists_of_point))
        # Maps are there where the arrays of a variant are.
        if n_points:
            arity = sum(loop_plan.maps[name].arity for name in loop_plan.loop.maps)
            accesses = arity * loop_plan.sizes[loop_plan.loop.over]
            return accesses / n_points
    return None


def _method(plan: Plan) -> str:
    """The order that was applied, in a word."""
    first = plan.metrics.locality
    if first and first.applied:
        return first.method
    return "input"


def options_text(options: Mapping[str, Any] | None) -> str:
    """Options of a partitioner, as a person would type them."""
    return " ".join(f"{name}={value}" for name, value in (options or {}).items())


@dataclass(frozen=True)
class _Sum:
    """A figure of several loops together, as a column of the brief table."""

    head: str
    of: Callable[[Sequence[ShownMetrics]], float | int | None]
    better: int = -1


def _total(
    find: Callable[[ShownMetrics], float | None],
) -> Callable[..., float | int | None]:
    """The sum over all loops; None where one of them has no such figure, or it is 0."""

    def total(sides: Sequence[ShownMetrics]) -> float | int | None:
        figures = [find(v) for v in sides]
        if None in figures:
            return None
        return sum(filter(None, figures)) or None

    return total


def _reuse_of_loops(sides: Sequence[ShownMetrics]) -> float | None:
    """The reuse factor of all loops together; None where nothing is loaded."""
    loads = sum(v.loads for v in sides)
    if loads:
        return sum(v.accesses for v in sides) / loads
    return None


def _sectors_moved(v: ShownMetrics) -> int | None:
    """Sectors of loops for a GPU; None for a CPU, whose figure is its loads."""
    if v.target == "gpu":
        return sectors(v)
    return None


def _loads_on_cpu(v: ShownMetrics) -> int | None:
    """Loads of loops for a CPU; None for a GPU, whose figure is its sectors."""
    if v.target == "cpu":
        return v.loads
    return None


def _most_staged_bytes(sides: Sequence[ShownMetrics]) -> int | None:
    """The most bytes that a block of any loop stages; None where none does."""
    return max(v.staged_bytes.max or 0 for v in sides) or None


REUSE = _Sum("reuse", _reuse_of_loops, +1)
# What a user acts on: of a plan for each loop, of several plans for all loops together.
SUMS = (
    # measured times are noisy: none is marked as the best
    _Sum("ms a call", _total(lambda v: v.measured_ms), 0),
    REUSE,
    _Sum("sectors moved", _total(_sectors_moved)),
    _Sum("loads", _total(_loads_on_cpu)),
    _Sum("block colours", _total(lambda v: v.block_colours)),
)
STAGED = _Sum("staged bytes", _most_staged_bytes)
TO_CUT = _Sum("s to cut", _total(_cut_seconds))
COLOURS = _Sum("thread colours", lambda sides: sides[0].thread_colours.mean)


def facts(column: Column) -> Table:
    """What a user acts on of one loop: half a dozen figures, before and after."""
    rows = []
    for summed in (*SUMS, STAGED, COLOURS):
        before = None
        if column.before is not None:
            before = summed.of([column.before])
        after = summed.of([column.after])
        if after is None:
            continue
        # The bound tells how much reuse any order could reach at most.
        head = summed.head
        if summed is REUSE and column.bound:
            head += f", at most {column.bound:.2f}"
        rows.append((head, figure(before), figure(after)))
    return Table(
        title="",
        header=("", "before", "after"),
        rows=rows,
        best=frozenset(),
        changed=_changed_after(rows),
    )


def _changed_after(rows: Sequence[tuple[str, ...]]) -> frozenset[tuple[int, int]]:
    """The cells after that differ from those before, in rows of label, before and after."""
    cells = set()
    for i, (_, before, after) in enumerate(rows):
        if before not in ("-", after):
            cells.add((i, 2))
    return frozenset(cells)


def brief_table(columns: Sequence[Column], most: int) -> Table:
    """The main figures: of one plan a line for each loop, of several a line for each plan.

    One plan shows at most ``most`` loops, before and after.
    """
    chosen = [c for c in columns if c.chosen]
    if len({c.plan for c in chosen}) < 2:
        return _brief_table_of_loops(chosen, most)
    return _brief_table_of_plans(chosen)


def _brief_table_of_loops(columns: Sequence[Column], most: int) -> Table:
    """A line for each loop of one plan, ``before -> after``."""
    shown = list(columns)[:most]
    heads = ["loop"]
    rows = [[column.loop] for column in shown]
    for summed in SUMS:
        # Leave out figures that no loop has.
        after = [summed.of([column.after]) for column in shown]
        if all(value is None for value in after):
            continue
        heads.append(summed.head)
        for row, column, value in zip(rows, shown, after, strict=True):
            before = summed.of([column.before]) if column.before else None
            row.append(_arrow(before, value))
        # The bound stands beside the reuse that it bounds.
        if summed is REUSE and any(column.bound for column in columns):
            heads.append("at most")
            for row, column in zip(rows, shown, strict=True):
                row.append(figure(bound_of([column])))
    return Table(title="", header=tuple(heads), rows=[tuple(row) for row in rows])


def _brief_table_of_plans(columns: Sequence[Column]) -> Table:
    """A line for each plan, all loops together, after."""
    # The loops of each plan, and their figures.
    by_plan: dict[str, list[Column]] = {}
    sides: dict[str, list[ShownMetrics]] = {}
    for column in columns:
        by_plan.setdefault(column.plan, []).append(column)
        sides.setdefault(column.plan, []).append(column.after)
    heads = ["plan"]
    rows = [[name] for name in by_plan]
    # Only plans of the same loops over one mesh have a best.
    subjects = {tuple(map(_subject, columns)) for columns in by_plan.values()}
    alike = len(subjects) < 2
    best = set()
    # A column for each figure that all plans have.
    for summed in (*SUMS, STAGED, TO_CUT):
        after = [summed.of(sides_of_plan) for sides_of_plan in sides.values()]
        if any(value is None for value in after):
            continue
        if alike:
            best |= {(i, len(heads)) for i in best_of(after, summed.better)}
        heads.append(summed.head)
        for row, value in zip(rows, after, strict=True):
            row.append(figure(value))
    title = ""
    bound = bound_of(next(iter(by_plan.values()))) if alike else None
    if bound:
        title = f"after; all loops together, reuse {bound:.2f} at most"
    return Table(
        title=title,
        header=tuple(heads),
        rows=[tuple(row) for row in rows],
        best=frozenset(best),
    )


def bound_of(columns: Sequence[Column]) -> float | None:
    """The reuse factor of several loops together if each loaded every point once."""
    accesses = 0
    points = 0.0
    for column in columns:
        if column.bound:
            # The bound tells how many points are loaded if each is loaded once.
            accesses += column.after.accesses
            points += column.after.accesses / column.bound
    if not points:
        return None
    return accesses / points


ARROW = " -> "


def before_after(column: Column) -> Table:
    """A column before and a column after."""
    # The title says what is cut and how.
    elements = f"{column.elements:,} elements, blocks of {column.after.block_size} at most"
    if column.after.listed:
        elements += ", which list them"
    if not column.elements:
        elements = "no elements, so that there is nothing to prepare"
    title = f"loop {column.loop}, variant {column.variant}: {elements}"
    header = ("", "before: input order", f"after: {column.after.partitioner}")

    # A row for each figure, the better side marked.
    rows = []
    best = set()
    for i, row in enumerate(_rows_with_figures([column])):
        sides = (column.before, column.after)
        values = [None if side is None else row.find(side) for side in sides]
        rows.append((row.label, *map(figure, values)))
        best |= {(i, 1 + j) for j in best_of(values, row.better)}
    return Table(
        title=title,
        header=header,
        rows=rows,
        best=frozenset(best),
        changed=_changed_after(rows),
    )


def side_by_side(columns: Sequence[Column]) -> Table:
    """A column a plan with ``before -> after``; the best is the best after."""
    header = [c.label for c in columns]
    rows = []
    best = set()
    alike = comparable(columns)
    changed = set()
    # A row for each figure: the cell of each plan, and which are the best after.
    for i, row in enumerate(_rows_with_figures(columns)):
        after = [row.find(column.after) for column in columns]
        texts = [row.label]
        for j, (column, value) in enumerate(zip(columns, after, strict=True), start=1):
            # Each plan has its own figure before, since block sizes differ.
            before = None if column.before is None else row.find(column.before)
            text = _arrow(before, value)
            texts.append(text)
            if ARROW in text:
                changed.add((i, j))
        rows.append(tuple(texts))
        if alike:
            best |= {(i, 1 + j) for j in best_of(after, row.better)}
    return Table(
        title=f"loop {columns[0].loop}: before{ARROW}after",
        header=("", *header),
        rows=rows,
        best=frozenset(best),
        changed=frozenset(changed),
    )


def comparable(columns: Sequence[Column]) -> bool:
    """Whether all columns are of one loop over one mesh: one of them can be the best."""
    return len({(c.after.accesses, c.elements) for c in columns}) < 2


def _rows_with_figures(columns: Sequence[Column]) -> list[ReportRow]:
    """The rows in which some column has a figure, above 0 for loops without maps."""
    sides = []
    for column in columns:
        sides.append(column.after)
        if column.before is not None:
            sides.append(column.before)
    # Loops without maps reach nothing: their zeros say nothing.
    not_shown: set[float | int | None] = {None}
    if all(column.after.reuse is None for column in columns):
        not_shown.add(0)
    rows = []
    for row in FIGURES:
        figures = {row.find(side) for side in sides}
        if not figures <= not_shown:
            rows.append(row)
    return rows


def _arrow(before: float | int | None, after: float | int | None) -> str:
    """``before -> after``; one figure where both read alike or there is none before."""
    old = figure(before)
    new = figure(after)
    if before is None or old == new:
        return new
    return f"{old}{ARROW}{new}"


def seconds_table(names: Sequence[str], plans: Sequence[Plan], transposed: bool) -> Table:
    """Seconds of preparation by stage; the least is the best for meshes of one size.

    ``transposed`` gives a line for each plan.
    """
    # A row for each stage that some plan has, and one for all stages.
    seconds_of_plans = [plan.metrics.seconds for plan in plans]
    stages = dict.fromkeys(chain.from_iterable(seconds_of_plans))
    rows = []
    for stage in stages:
        cells = [figure(seconds.get(stage)) for seconds in seconds_of_plans]
        rows.append((stage, *cells))
    totals = [sum(seconds.values()) for seconds in seconds_of_plans]
    rows.append(("all", *map(figure, totals)))
    # Seconds compare only for meshes of one size.
    best = frozenset[tuple[int, int]]()
    if all(plan.sizes == plans[0].sizes for plan in plans):
        best = frozenset((len(rows) - 1, 1 + j) for j in best_of(totals, -1))
    table = Table(title="seconds of preparation", header=("", *names), rows=rows, best=best)
    if transposed:
        return table.transposed()
    return table
