"""The figures of one plan before and after, of several plans side by side, and of their orders."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from meshprep_runtime.errors import MeshprepError, check_choice
from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.metrics import OrderMetrics, TriedOrder
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
from .table import Table, figure
from .verdict import HERE, conclusion

LEGEND = "* the best of its row or column"
UNLIKE = "the plans are of different meshes, so that none is the best"

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

    def __post_init__(self) -> None:
        for name in self.names:
            if self.names.count(name) > 1:
                raise MeshprepError(f"{name} is named twice: name every plan once")

    def columns(self) -> list[Column]:
        """Every variant of every loop in every plan, loop by loop."""
        return columns_of(dict(zip(self.names, self.plans, strict=True)), self.times)

    def timed(self) -> "Comparison":
        """The same, with calls of the loops of plans that have arrays timed on this machine."""
        # imported here, since it brings the compiler
        from ..pipeline.measure import measure

        plans = zip(self.names, self.plans, strict=True)
        return replace(self, times={name: measure(plan) for name, plan in plans if plan.maps})

    def conclusion(self, name: str) -> str:
        """One sentence on a plan: what it gained, what it cost, whether it pays."""
        times = self.times.get(name, {})
        return conclusion(self.plans[self.names.index(name)], times, self.where)

    def best(self) -> Best | None:
        """The plan to take: that of :func:`~.best.best_plan`; None of one, and of unlike plans."""
        if len(self.plans) < 2 or not all(comparable(group) for group in self.by_loop()):
            return None
        return best_plan(dict(zip(self.names, self.plans, strict=True)))

    def verdicts(self) -> list[dict[str, str]]:
        """For each column, in words, whether the plan helped."""
        return [
            {"plan": c.plan, "loop": c.loop, "variant": c.variant, "verdict": c.verdict}
            for c in self.columns()
        ]

    def figures(self) -> list[dict[str, Any]]:
        """One record a figure and column, with ``best`` among the columns of its loop."""
        return [record for loop in self.by_loop() for record in _records(loop)]

    def to_dict(self) -> dict[str, Any]:
        """JSON values: one entry a plan, then figures and verdicts."""
        return {
            "plans": [
                {
                    "file": name,
                    "about": dict(plan.about),
                    "options": dict(plan.options),
                    "metrics": to_json(plan.metrics),
                    "matrices": [matrix_record(plan, m) for m in plan.matrices.values()],
                    "stores": [r for m in plan.matrices.values() for r in store_records(plan, m)],
                }
                for name, plan in zip(self.names, self.plans, strict=True)
            ],
            "figures": self.figures(),
            "verdict": {name: self.conclusion(name) for name in self.names},
            "verdicts": self.verdicts(),
            "best": best.name if (best := self.best()) else None,
        }

    def tables(self) -> list[Table]:
        """Every figure: a table a loop, before and after, or a column or line for each plan."""
        loops = [self.loop_table(group) for group in self.by_loop()]
        matrices = matrix_tables(self.names, self.plans)
        return [*self.order_tables(), *loops, *matrices, self.seconds_table()]

    def brief(self) -> list[str | Table]:
        """The verdict first, then one table, then what is left out; a dozen lines for one plan."""
        best, table = self.best(), brief_table(self.columns(), MOST_LOOPS)
        found: list[str | Table] = [f"Best: {best.name}, {best.reason}."] if best else []
        found += [self.conclusion(n) for n in self.names if best is None or n == best.name]
        if len(self.plans) > 1 and best is None:
            found.append(f"{UNLIKE[:1].upper()}{UNLIKE[1:]}.")
        left = {loop for plan in self.plans for loop in plan.loops}
        n_left = len(left) - len(table.rows) if len(self.plans) == 1 else 0
        more = f"{n_left} more loops, every figure" if n_left > 0 else "every figure"
        more += ", matrices" * any(plan.matrices for plan in self.plans)
        bands = [o for plan in self.plans for o in plan.metrics.orders if o.target == "cpu"]
        told = "".join(
            f"bandwidth of {o.set} {o.before.bandwidth:,} -> {(o.final or o.after).bandwidth:,}; "
            for o in bands[: len(self.plans) == 1]
        )
        star = " (* the best of its column)" * bool(best)
        return [*found, table, f"{told}--full shows {more}{star}"]

    def order_tables(self) -> list[Table]:
        """The figures of the order of points."""
        if len(self.plans) == 1:
            return [t for one in self.plans[0].metrics.orders for t in order_tables(one)]
        return order_comparison(self.names, self.plans)

    def loop_table(self, columns: Sequence[Column]) -> Table:
        """The figures of one loop, from the columns that :meth:`by_loop` gives."""
        if len(self.plans) == len(columns) == 1:
            return before_after(columns[0])
        if len(self.plans) == 1:
            # the plan's name would be the same everywhere
            columns = [replace(column, plan="") for column in columns]
        found = side_by_side(columns)
        return found.transposed() if len(columns) > MOST_COLUMNS else found

    def seconds_table(self) -> Table:
        return seconds_table(self.names, self.plans, len(self.plans) > MOST_COLUMNS)

    def lines(self) -> list[str]:
        """The verdicts of plans and loops, and what the star means where there is one."""
        starred = any(table.best for table in self.tables())
        found = [f"{name}: {self.conclusion(name)}".removeprefix(": ") for name in self.names]
        loops = (f"{c.plan}, loop {c.loop} {c.variant}: {c.verdict}" for c in self.columns())
        found += [line.removeprefix(", ") for line in loops]
        groups = list(self.by_loop())
        found += [f"loop {g[0].loop}: {UNLIKE}" for g in groups if not comparable(g)]
        return [*found, *[LEGEND] * starred]

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

    Returns
    -------
    Comparison
        Notebooks show it as tables; ``brief()``, ``figures()`` and ``best()``.

    Raises
    ------
    MeshprepError
        Where no plan is named, and for times that are not above 0, or of a loop that no plan has.
    PlanError
        For a file that is no plan, or a damaged one, or whose figures are not those of a plan.
    """
    files = [plans] if isinstance(plans, Plan | Path | str) else list(plans)
    if not files:
        raise MeshprepError("name at least one plan to report on")
    loaded = tuple(one if isinstance(one, Plan) else Plan.load(one) for one in files)
    names = [f"plan {i}" if isinstance(p, Plan) else str(p) for i, p in enumerate(files, 1)]
    for path, plan in zip(names, loaded, strict=True):
        check_printable(plan, path)
    short = [Path(name).name for name in names]
    names = short if len(set(short)) == len(short) else names
    loops = dict.fromkeys(loop for plan in loaded for loop in plan.loops)
    times = {}
    for name, pair in (given or {}).items():
        check_choice("loop", name := among(name, loops), loops)
        if not all(0 < t < float("inf") for t in pair):
            raise MeshprepError(f"loop '{name}': milliseconds of a call must be more than 0")
        times[name] = Measured.given(*pair)
    if times:
        return Comparison(tuple(names), loaded, dict.fromkeys(names, times), "as measured")
    found = Comparison(tuple(names), loaded)
    return found.timed() if measure else found


def _records(columns: Sequence[Column]) -> Iterator[dict[str, Any]]:
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
    """The order of the leading points before and after; with several methods, each of them.

    The final figures (missing in plans of older versions) are those after points were grouped by
    blocks, where they were: compact blocks raise the figures that a CPU's streaming loops want
    small, and lower those of a GPU's blocks.
    """
    applied = "" if order.applied else " (not applied)"
    how = f"{order.method}{applied}, target {order.target}"
    sides = (order.before, order.after, order.final)
    rows = [
        (f"{label} ({target})", *(figure(getattr(side, name, None)) for side in sides))
        for label, target, name in ORDER_FIGURES
    ]
    header = ("", "before: input order", f"after: {order.method}", "final: in the plan")
    tables = [Table(f"order of {order.set}: {how}", header, rows)]
    return [*tables, _candidates(order.candidates)] if order.asked == "auto" else tables


def order_comparison(names: Sequence[str], plans: Sequence[Plan]) -> list[Table]:
    """The final figures of several plans, a line each, after the input's; none without any."""
    orders = {n: p.metrics.locality for n, p in zip(names, plans, strict=True)}
    known = {name: order for name, order in orders.items() if order and order.final}
    if not known:
        return []
    kept = {True: "", False: " (not applied)"}
    sides = [("input order", "", next(iter(known.values())).before)]
    sides += [(n, f"{o.method}{kept[o.applied]}", o.final) for n, o in known.items() if o.final]
    rows = [(*w, *(figure(getattr(f, n)) for *_, n in ORDER_FIGURES)) for *w, f in sides]
    header = ("", "method", *(f"{label} ({target})" for label, target, _ in ORDER_FIGURES))
    return [Table("order of the leading points", header, rows)]


def _candidates(candidates: Sequence[TriedOrder]) -> Table:
    header = ("method", "seconds", *(label for label, _, _ in ORDER_FIGURES), "")
    rows = [
        (
            c.method,
            figure(None if c.bandwidth is None else c.seconds),
            *(figure(getattr(c, name)) for _, _, name in ORDER_FIGURES),
            c.note or ("the best" if i == 0 else ""),
        )
        for i, c in enumerate(candidates)
    ]
    return Table("methods tried, the best first", header, rows)
