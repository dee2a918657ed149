"""Tables of columns: before and after, plans side by side, or a line a plan."""

from collections.abc import Sequence

from meshprep_runtime.plan import Plan

from .columns import Column
from .figures import ReportRow, ShownMetrics, best_of
from .table import Table, figure

ARROW = " -> "


def before_after(column: Column, figures: Sequence[ReportRow]) -> Table:
    """A column before and a column after."""
    what = f"{column.elements:,} elements, blocks of {column.after.block_size} at most"
    if column.after.listed:
        what += ", which list them"
    if not column.elements:
        what = "no elements, so that there is nothing to prepare"
    title = f"loop {column.loop}, variant {column.variant}: {what}"
    header = ("", "before: input order", f"after: {column.after.partitioner}")
    rows, best = [], set()
    for i, row in enumerate(_telling(figures, [column])):
        sides = (column.before, column.after)
        values = [None if side is None else row.find(side) for side in sides]
        rows.append((row.label, *map(figure, values)))
        best |= {(i, 1 + j) for j in best_of(values, row.better)}
    changed = frozenset((i, 2) for i, row in enumerate(rows) if "-" != row[1] != row[2])
    return Table(title, header, rows, frozenset(best), changed)


def side_by_side(columns: Sequence[Column], figures: Sequence[ReportRow]) -> Table:
    """A column a plan with ``before -> after``; the best is the best after."""
    header = [c.label for c in columns]
    rows, best = [], set()
    alike = comparable(columns)
    for i, row in enumerate(_telling(figures, columns)):
        after = [row.find(c.after) for c in columns]
        old = [None if c.before is None else row.find(c.before) for c in columns]
        rows.append((row.label, *(_arrow(*pair) for pair in zip(old, after, strict=True))))
        best |= {(i, 1 + j) for j in best_of(after, row.better) if alike}
    title = f"loop {columns[0].loop}: before{ARROW}after"
    changed = frozenset(
        (i, j) for i, row in enumerate(rows) for j, text in enumerate(row) if ARROW in text
    )
    return Table(title, ("", *header), rows, frozenset(best), changed)


def line_by_line(columns: Sequence[Column], figures: Sequence[ReportRow]) -> Table:
    """A line a plan with what sets plans apart, after; the best of each column."""
    alike, inputs = comparable(columns), _inputs(columns)
    names = [*(c.label for c in columns), *(f"input order s{v.block_size}" for v in inputs)]
    rows, best = [], set()
    for i, row in enumerate(row for row in _telling(figures, columns) if row.short):
        after = [row.find(c.after) for c in columns]
        rows.append((row.short, *map(figure, [*after, *map(row.find, inputs)])))
        best |= {(i, 1 + j) for j in best_of(after, row.better) if alike}
    title = f"loop {columns[0].loop}"
    return Table(title, ("after", *names), rows, frozenset(best)).transposed()


def comparable(columns: Sequence[Column]) -> bool:
    """Whether the columns are of one loop over one mesh, so that one of them can be the best."""
    return len({(c.after.accesses, c.elements) for c in columns}) < 2


def _telling(figures: Sequence[ReportRow], columns: Sequence[Column]) -> list[ReportRow]:
    """The rows that say something: neither without any figure, nor zeros of a loop without maps."""
    values = [side for c in columns for side in (c.before, c.after) if side is not None]
    direct = all(c.after.reuse is None for c in columns)
    return [
        row
        for row in figures
        if not {row.find(v) for v in values} <= ({None, 0} if direct else {None})
    ]


def _inputs(columns: Sequence[Column]) -> list[ShownMetrics]:
    """The input order cut into every block size, ascending."""
    found = {c.before.block_size: c.before for c in columns if c.before is not None}
    return [found[size] for size in sorted(found)]


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
