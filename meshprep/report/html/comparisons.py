"""The figures of one loop over all plans: reuse, colours and occupancy against block size."""

from collections.abc import Callable, Iterator, Sequence

from meshprep_runtime.cuda.strategies import MOST_THREADS, WARP
from meshprep_runtime.plan.metrics import VariantMetrics

from ...metrics.cost import occupancy_share
from ..columns import comparable
from ..compare import UNLIKE, Column, Comparison
from ..table import Table
from . import charts
from .charts import Series
from .parts import Figure, Section, slug
from .svg import Axis, linear_axis, power_axis

INPUT = "input order"
# Curves of occupancy beyond these hide each other.
MOST_CURVES = 6


def section(comparison: Comparison, columns: Sequence[Column], tables: Sequence[Table]) -> Section:
    """What sets the plans of one loop apart."""
    loop = columns[0].loop
    known = [c for c in columns if c.after.reuse is not None]
    figures = [*_reuse(loop, known), _occupancy(comparison, loop, columns)]
    intro = "Before and after; a star marks the better of the two, what changed is bold."
    if len(columns) > 1:
        marked = "a star marks the best of each figure" if comparable(columns) else UNLIKE
        intro = f"{len(columns)} plans or variants; {marked}."
    adjacent = len(comparison.plans) == 1 and len(columns) == 1
    return Section(slug("loop", loop), f"Loop {loop}", intro, figures, tables, adjacent)


def _reuse(loop: str, columns: Sequence[Column]) -> Iterator[Figure]:
    # the table beside says as much of one plan
    if len(columns) < 2:
        return
    sizes = _series(columns, lambda v: v.block_size)
    colours = _series(columns, lambda v: v.thread_colours.mean or 0.0)
    y = linear_axis("reuse factor", [p[1] for s in sizes for p in s.points], least=0.5)
    x = power_axis("block size (elements)", [p[0] for s in sizes for p in s.points])
    text = "Accesses over loads of the whole loop. Larger blocks share more points."
    yield _reuse_against("block size", loop, text, sizes, sizes, x, y)
    rounds = [p[0] for s in colours for p in s.points]
    x = linear_axis("thread colours of a block, mean", rounds, least=1.0)
    text = "Compact blocks have much reuse, and more elements on each point: up and left is good."
    yield _reuse_against("thread colours", loop, text, (), colours, x, y)


def _reuse_against(
    what: str,
    loop: str,
    caption: str,
    lines: Sequence[Series],
    marks: Sequence[Series],
    x: Axis,
    y: Axis,
) -> Figure:
    title = f"Reuse against {what}"
    body = charts.curves(lines, marks, x, y, f"{title}: {_ends(marks)}")
    legend = [one.key() for one in marks]
    return Figure(slug("loop", loop, "reuse", what), title, caption, body, legend)


def _occupancy(comparison: Comparison, loop: str, columns: Sequence[Column]) -> Figure:
    assumptions = comparison.assumptions
    shown = _distinct(columns)[:MOST_CURVES]
    threads = range(WARP, MOST_THREADS + 1, WARP)
    lines, marks = [], []
    for style, column in enumerate(shown):
        shares = [(t, occupancy_share(column.after, assumptions, t)) for t in threads]
        known = [(float(t), 100 * s) for t, s in shares if s is not None]
        own = occupancy_share(column.after, assumptions)
        if known:
            lines.append(Series(_name(column), known, style))
        if own is not None:
            place = [(float(column.after.block_size), 100 * own)]
            marks.append(Series(_name(column), place, style))
    device = assumptions.device
    title = f"Occupancy of {'an' if device[0] in 'AH' else 'a'} {device}"
    missing = "Blocks with more elements than a block of threads may have, or for a CPU, have none."
    left = len(_distinct(columns)) - len(shown)
    caption = (
        f"Warps that a multiprocessor holds, at {assumptions.registers} registers a thread and an "
        "element a thread, when a block stages everything. A mark is a plan's own block size (of "
        "several, the one with the most reuse); its line scales what a block stages to others."
        + (f" {left} more plans are not drawn." if left else "")
    )
    body = None
    if lines:
        places = range(0, MOST_THREADS + 1, MOST_THREADS // 4)
        ticks = [(float(t), f"{t:,}") for t in places]
        x = Axis("block size (threads)", 0.0, float(MOST_THREADS), ticks)
        y = linear_axis("occupancy (%)", [0.0, 100.0])
        body = charts.curves(lines, marks, x, y, f"{title}: {_ends(marks)}")
    return Figure(
        slug("loop", loop, "occupancy"), title, caption, body, [one.key() for one in lines], missing
    )


def _distinct(columns: Sequence[Column]) -> list[Column]:
    """One column for every way to cut: of several block sizes the one with most reuse."""
    best: dict[str, Column] = {}
    for column in columns:
        known = best.get(_name(column))
        if known is None or (column.after.reuse or 0) > (known.after.reuse or 0):
            best[_name(column)] = column
    return list(best.values())


def _series(columns: Sequence[Column], x: Callable[[VariantMetrics], float]) -> list[Series]:
    """The input order, then a series for every way to cut, by block size."""
    before = [c.before for c in columns if c.before is not None]
    plain = sorted({(x(b), b.reuse or 0.0) for b in before})
    found = [Series(INPUT, plain, None)] if plain else []
    names = list(dict.fromkeys(map(_name, columns)))
    for style, name in enumerate(names):
        own = sorted((c.after for c in columns if _name(c) == name), key=lambda v: v.block_size)
        found.append(Series(name, [(x(v), v.reuse or 0.0) for v in own], style))
    return found


def _name(column: Column) -> str:
    """How the blocks were made, and in which file where that tells plans apart."""
    return f"{column.after.partitioner}{f' ({column.way})' if column.way else ''}"


def _ends(series: Sequence[Series]) -> str:
    """The last point of each series, for those who hear the figure."""
    told = (f"{s.name} {s.points[-1][1]:.2f} at {s.points[-1][0]:.4g}" for s in series if s.points)
    return ", ".join(told)
