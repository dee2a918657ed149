"""Plans side by side, or one plan before and after: figures, verdicts, orders."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from meshprep_runtime.cuda.occupancy import USUAL_ARCH
from meshprep_runtime.errors import MeshprepError, check_choice
from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.metrics import OrderFigures, OrderMetrics, TriedOrder
from meshprep_runtime.plan.records import to_json
from meshprep_runtime.types.loops import among

from ..metrics.cost import Measured
from .best import Best, best_plan
from .columns import (
    FIGURES,
    Column,
    before_after,
    best_of,
    brief_table,
    columns_of,
    comparable,
    seconds_table,
    side_by_side,
)
from .describe import check_printable
from .matrices import matrix_record, matrix_tables, store_records
from .occupancy import CARDS, Kernel, kernels_by_loop, occupancy_records, occupancy_tables
from .table import Table, figure
from .verdict import HERE, conclusion

LEGEND = "* the best of its row or column"
UNLIKE = "the plans are of different meshes or loops, so that none is the best"

# Plans beside each other beyond which a table has a line a plan instead of a column.
MOST_COLUMNS = 6
# Loops of one plan that a short report has a line for.
MOST_LOOPS = 7


@dataclass(frozen=True)
class Comparison:
    """Several plans and their figures; notebooks show it as HTML."""

    names: tuple[str, ...]
    plans: tuple[Plan, ...]
    # By plan and loop: calls that were timed, and where.
    times: Mapping[str, Mapping[str, Measured]] = field(default_factory=dict)
    where: str = HERE
    # The machine that the calls were timed on, in words; empty where none were timed here.
    machine: str = ""
    # The kernels of loops, by their names: their registers limit the occupancy.
    kernels: Mapping[str, Kernel] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.names:
            if self.names.count(name) > 1:
                raise MeshprepError(f"{name} is named twice: name every plan once")

    def columns(self) -> list[Column]:
        """Every variant of every loop in every plan, loop by loop."""
        return columns_of(dict(zip(self.names, self.plans, strict=True)), self.times)

    def timed(self) -> "Comparison":
        """The same with calls timed on this machine, of plans that have arrays."""
        # Imported here, since it loads the compiler.
        from ..pipeline.measure import measure

        plans = zip(self.names, self.plans, strict=True)
        times = {name: measure(plan) for name, plan in plans if plan.maps}
        return replace(self, times=times, machine=this_machine())

    def conclusion(self, name: str) -> str:
        """One sentence on a plan: what it gained, what it cost, whether it pays."""
        times = self.times.get(name, {})
        return conclusion(self.plans[self.names.index(name)], times, self.where)

    def best(self) -> Best | None:
        """The plan of :func:`~.best.best_plan`; None for one plan, and for unlike plans."""
        if len(self.plans) < 2 or not all(comparable(group) for group in self.by_loop()):
            return None
        return best_plan(dict(zip(self.names, self.plans, strict=True)))

    def why_none_is_best(self) -> str:
        """In words, why there is no :meth:`best` of several plans."""
        if not all(comparable(group) for group in self.by_loop()):
            return UNLIKE
        # Figures of a CPU and of a GPU measure different things.
        targets = set[str]()
        for plan in self.plans:
            targets.update(side.after.target for side in plan.metrics.sides())
        return (
            f"the plans are for different targets ({', '.join(sorted(targets))}), "
            "so that none is the best: each serves its own"
        )

    def verdicts(self) -> list[dict[str, str]]:
        """For each column, in words, whether the plan helped."""
        return [
            {"plan": c.plan, "loop": c.loop, "variant": c.variant, "verdict": c.verdict}
            for c in self.columns()
        ]

    def figures(self) -> list[dict[str, Any]]:
        """One record a figure and column, with ``best`` among the columns of its loop."""
        return list(chain.from_iterable(map(_figure_records, self.by_loop())))

    @cached_property
    def occupancy(self) -> dict[str, list[dict[str, Any]]]:
        """By plan: the blocks of loops that a GPU's multiprocessor holds, as JSON values.

        Of one plan on several cards; of several plans on one, so that they can be compared.
        """
        archs = tuple(CARDS) if len(self.plans) == 1 else (USUAL_ARCH,)
        return {
            name: occupancy_records(plan, self.kernels, archs)
            for name, plan in zip(self.names, self.plans, strict=True)
        }

    def occupancy_tables(self) -> list[Table]:
        """The occupancy of all loops as a table; none where no loop has blocks for GPUs."""
        return occupancy_tables(self.occupancy)

    def to_dict(self) -> dict[str, Any]:
        """JSON values: one entry a plan, then figures and verdicts."""
        best = self.best()
        return {
            "plans": list(map(_plan_record, self.names, self.plans)),
            "figures": self.figures(),
            "occupancy": [
                {"plan": name, **record}
                for name, records in self.occupancy.items()
                for record in records
            ],
            "verdict": {name: self.conclusion(name) for name in self.names},
            "timed_on": self.machine,
            "verdicts": self.verdicts(),
            "best": best.name if best else None,
        }

    def tables(self) -> list[Table]:
        """Every figure: for each loop a table, with a column or line for each plan."""
        loops = [self.loop_table(group) for group in self.by_loop()]
        matrices = matrix_tables(self.names, self.plans)
        occupancy = self.occupancy_tables()
        return [*self.order_tables(), *loops, *occupancy, *matrices, self.seconds_table()]

    def brief(self) -> list[str | Table]:
        """Verdicts, one table, and what is left out; a dozen lines for one plan."""
        best = self.best()
        table = brief_table(self.columns(), MOST_LOOPS)
        return [*self._brief_verdicts(best), table, self._left_out(table, best)]

    def _brief_verdicts(self, best: Best | None) -> list[str]:
        """What to take and what it gains; without a best plan, what each gains."""
        if best is not None:
            return [f"Best: {best.name}, {best.reason}.", self.conclusion(best.name)]
        if len(self.plans) == 1:
            return [self.conclusion(self.names[0])]
        verdicts = [f"{name}: {self.conclusion(name)}" for name in self.names]
        why = self.why_none_is_best()
        return [*verdicts, f"{why[:1].upper()}{why[1:]}."]

    def _left_out(self, table: Table, best: Best | None) -> str:
        """A line on what ``--full`` shows beside a brief table."""
        # Only of a single plan are loops left out.
        bandwidth = ""
        further = "every figure"
        if len(self.plans) == 1:
            bandwidth = _bandwidth(self.plans[0])
            n_left = len(self.plans[0].loops) - len(table.rows)
            if n_left > 0:
                further = f"{n_left} more loops, every figure"
        if any(plan.matrices for plan in self.plans):
            further += ", matrices"
        if best is not None:
            further += " (* the best of its column)"
        timed_on = ""
        if self.machine:
            timed_on = f"timed on {self.machine}; "
        return f"{bandwidth}{timed_on}--full shows {further}"

    def order_tables(self) -> list[Table]:
        """The figures of the order of points."""
        if len(self.plans) == 1:
            orders = self.plans[0].metrics.orders
            return list(chain.from_iterable(map(order_tables, orders)))
        return order_comparison(self.names, self.plans)

    def loop_table(self, columns: Sequence[Column]) -> Table:
        """The figures of one loop, from the columns that :meth:`by_loop` gives."""
        if len(self.plans) == len(columns) == 1:
            return before_after(columns[0])
        if len(self.plans) == 1:
            # the plan's name would be the same everywhere
            columns = [replace(column, plan="") for column in columns]
        table = side_by_side(columns)
        if len(columns) > MOST_COLUMNS:
            return table.transposed()
        return table

    def seconds_table(self) -> Table:
        """Seconds of preparation, stage by stage."""
        return seconds_table(self.names, self.plans, len(self.plans) > MOST_COLUMNS)

    def lines(self) -> list[str]:
        """The verdicts of plans and loops, and what the star means where there is one."""
        # a plan or a loop without a name has none before its colon or comma
        lines = [
            f"{name}: {self.conclusion(name)}".removeprefix(": ") for name in self.names
        ]
        for c in self.columns():
            line = f"{c.plan}, loop {c.loop} {c.variant}: {c.verdict}"
            lines.append(line.removeprefix(", "))
        unlike = [group for group in self.by_loop() if not comparable(group)]
        lines += [f"loop {group[0].loop}: {UNLIKE}" for group in unlike]
        if any(table.best for table in self.tables()):
            lines.append(LEGEND)
        return lines

    def by_loop(self) -> Iterator[list[Column]]:
        """The columns of each loop."""
        columns = self.columns()
        for loop in dict.fromkeys(c.loop for c in columns):
            yield [c for c in columns if c.loop == loop]

    def _repr_html_(self) -> str:
        from .render import render

        return render("notebook.html", parts=self.brief()[:-1])


def compare(
    plans: Plan | Path | str | Sequence[Plan | Path | str],
    given: Mapping[str, tuple[float, float]] | None = None,
    *,
    measure: bool = False,
    kernels: Sequence[Kernel] = (),
) -> Comparison:
    """Plans side by side, with the one to take.

    Parameters
    ----------
    plans : Plan, path, or a sequence of these
        Files are named by what tells them apart, plans in memory by numbers.
    given : mapping, optional
        By loop: milliseconds of a call, before and after, that were measured elsewhere.
    measure : bool
        Take these times here instead: 0.3 s a plan.
    kernels : sequence of Python functions or DeviceFunction
        Kernels of loops, named as these: compiled for GPUs, they tell the registers that
        limit the occupancy, a second each and card.

    Returns
    -------
    Comparison
        Notebooks show it as tables; ``brief()``, ``figures()`` and ``best()``.

    Raises
    ------
    MeshprepError
        Where no plan is named, for times that are not above 0, or of a loop that no plan
        has, and for kernels of no loop.
    PlanError
        For a file that is no plan, or a damaged one, or whose figures are not those of a
        plan.
    """
    if isinstance(plans, Plan | Path | str):
        files = [plans]
    else:
        files = list(plans)
    if not files:
        raise MeshprepError("name at least one plan to report on")
    # Load the plans; name them by their files, or by numbers where they are in memory.
    loaded: list[Plan] = []
    names: list[str] = []
    for number, plan_or_path in enumerate(files, start=1):
        if isinstance(plan_or_path, Plan):
            loaded.append(plan_or_path)
            names.append(f"plan {number}")
        else:
            loaded.append(Plan.load(plan_or_path))
            names.append(str(plan_or_path))
    for name, plan in zip(names, loaded, strict=True):
        check_printable(plan, name)
    # Folders are named where file names alone are not different.
    short = [Path(name).name for name in names]
    if len(set(short)) == len(short):
        names = short
    # Take the times that were given, or measure them here.
    times = _given_times(given or {}, loaded)
    of_loops = kernels_by_loop(kernels, loaded)
    if times:
        return Comparison(
            names=tuple(names),
            plans=tuple(loaded),
            times=dict.fromkeys(names, times),
            where="as measured",
            kernels=of_loops,
        )
    comparison = Comparison(tuple(names), tuple(loaded), kernels=of_loops)
    if measure:
        return comparison.timed()
    return comparison


def this_machine() -> str:
    """The processor, how many of its cores may be used, and how many other programs run."""
    # Imported here, since it loads the compiler.
    from meshprep_runtime.cpu.pool import core_count
    from meshprep_runtime.tuning.lookup import processor_name

    n_cores = core_count()
    cores = "1 core" if n_cores == 1 else f"{n_cores} cores"
    # Windows has no such figure.
    if not hasattr(os, "getloadavg"):
        return f"{processor_name()}, {cores}"
    load = os.getloadavg()[0]
    return f"{processor_name()}, {cores}, load {load:.1f}"


def _given_times(
    given: Mapping[str, tuple[float, float]], plans: Sequence[Plan]
) -> dict[str, Measured]:
    """Times that a user measured, by loop; raises MeshprepError where they do not fit."""
    loops = dict.fromkeys(chain.from_iterable(plan.loops for plan in plans))
    times = {}
    for text, milliseconds in given.items():
        # A loop may be named in any form that the shell takes.
        name = among(text, loops)
        check_choice("loop", name, loops)
        if not all(0 < time < float("inf") for time in milliseconds):
            raise MeshprepError(
                f"loop '{name}': milliseconds of a call must be more than 0"
            )
        times[name] = Measured.given(*milliseconds)
    return times


def _plan_record(name: str, plan: Plan) -> dict[str, Any]:
    """A plan as JSON values."""
    matrices = plan.matrices.values()
    return {
        "file": name,
        "about": dict(plan.about),
        "options": dict(plan.options),
        "metrics": to_json(plan.metrics),
        "matrices": [matrix_record(plan, matrix) for matrix in matrices],
        "stores": list(chain.from_iterable(store_records(plan, m) for m in matrices)),
    }


def _bandwidth(plan: Plan) -> str:
    """The bandwidth of the first order for a CPU, before and after; empty without one."""
    for order in plan.metrics.orders:
        if order.target == "cpu":
            after = order.final or order.after
            before = order.before
            return f"bandwidth of {order.set} {before.bandwidth:,} -> {after.bandwidth:,}; "
    return ""


def _figure_records(columns: Sequence[Column]) -> Iterator[dict[str, Any]]:
    """The figures of the columns of one loop, as JSON values."""
    # Of plans of different meshes none is the best.
    alike = comparable(columns)
    for row in FIGURES:
        after = [row.find(c.after) for c in columns]
        best = best_of(after, row.better) if alike else []
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


# Label, the target whose loops want it small, and the name of the figure.
ORDER_FIGURES = (
    ("bandwidth", "cpu", "bandwidth"),
    ("profile", "cpu", "profile"),
    ("rms wavefront", "cpu", "rms_wavefront"),
    ("128-byte lines a loop", "gpu", "lines"),
)


def order_tables(order: OrderMetrics) -> list[Table]:
    """The order of the leading points before and after, and the methods that were tried.

    The final figures (missing in plans of older versions) are those after points were
    grouped by blocks, where they were: compact blocks raise the figures that a CPU's
    streaming loops want small, and lower those of a GPU's blocks.
    """
    applied = "" if order.applied else " (not applied)"
    method = f"{order.method}{applied}, target {order.target}"
    # The order that was found may move once more, with blocks: show both.
    sides = (order.before, order.after, order.final)
    rows = []
    for label, target, name in ORDER_FIGURES:
        figures = [figure(getattr(side, name, None)) for side in sides]
        rows.append((f"{label} ({target})", *figures))
    header = ("", "before: input order", f"after: {order.method}", "final: in the plan")
    tables = [Table(f"order of {order.set}: {method}", header, rows)]
    if order.asked == "auto":
        tables.append(_candidates(order.candidates))
    return tables


def order_comparison(names: Sequence[str], plans: Sequence[Plan]) -> list[Table]:
    """The order of the leading points in the input and in each plan that has figures."""

    def order_row(name: str, method: str, figures: OrderFigures) -> tuple[str, ...]:
        cells = [figure(getattr(figures, field)) for _, _, field in ORDER_FIGURES]
        return name, method, *cells

    # The input order is the same for all: its row comes first, once.
    rows: list[tuple[str, ...]] = []
    for name, plan in zip(names, plans, strict=True):
        order = plan.metrics.locality
        if order is None or order.final is None:
            continue
        if not rows:
            rows.append(order_row("input order", "", order.before))
        applied = "" if order.applied else " (not applied)"
        rows.append(order_row(name, f"{order.method}{applied}", order.final))
    if not rows:
        return []
    labels = [f"{label} ({target})" for label, target, _ in ORDER_FIGURES]
    return [Table("order of the leading points", ("", "method", *labels), rows)]


def _candidates(candidates: Sequence[TriedOrder]) -> Table:
    """The figures of the methods that were tried; those that gave no order have a note."""
    header = ("method", "seconds", *(label for label, _, _ in ORDER_FIGURES), "")
    rows = []
    for i, tried in enumerate(candidates):
        # A method that gave no order has no time worth comparing.
        seconds = None if tried.bandwidth is None else tried.seconds
        figures = [figure(getattr(tried, name)) for _, _, name in ORDER_FIGURES]
        note = tried.note or ""
        if i == 0 and not note:
            note = "the best"
        rows.append((tried.method, figure(seconds), *figures, note))
    return Table("methods tried, the best first", header, rows)
