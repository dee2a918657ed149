"""The figures of one loop over all plans: reuse against block size, and, folded, the table."""

from collections.abc import Sequence

from ..columns import comparable
from ..compare import UNLIKE, Column, Comparison
from . import charts
from .charts import Series
from .parts import Figure, Section, slug
from .svg import linear_axis, power_axis

INPUT = "input order"


def sections(comparison: Comparison, columns: Sequence[Column]) -> list[Section]:
    """What sets the plans of one loop apart; folded, the table of all."""
    loop, table = columns[0].loop, comparison.loop_table(columns)
    marked = "A star marks the best of each figure" if comparable(columns) else UNLIKE
    name, title = slug("loop", loop), f"All plans of loop {loop}"
    figures = [_reuse(loop, known)] if (known := [c for c in columns if c.after.reuse]) else []
    return [
        *([Section(name, f"Loop {loop}", "", figures)] if figures else []),
        Section(f"{name}-all", title, f"{marked}.", (), [table], folded=True),
    ]


def _reuse(loop: str, columns: Sequence[Column]) -> Figure:
    series = _series(columns)
    sizes, reuse = zip(*(point for one in series for point in one.points), strict=True)
    x, y = power_axis("block size (elements)", sizes), linear_axis("reuse factor", reuse, least=0.5)
    title, last = "Reuse against block size", [(s.name, *s.points[-1]) for s in series]
    alt = f"{title}: {', '.join(f'{name} {y:.2f} at {x:.4g}' for name, x, y in last)}"
    body, legend = charts.curves(series, series, x, y, alt), [one.key() for one in series]
    text = "Accesses over loads of the whole loop: larger blocks share more points"
    return Figure(slug("loop", loop, "reuse"), title, text, body, legend)


def _series(columns: Sequence[Column]) -> list[Series]:
    """The input order, then a series for every way to cut, by block size."""
    before = [c.before for c in columns if c.before is not None]
    plain = sorted({(float(b.block_size), b.reuse or 0.0) for b in before})
    found = [Series(INPUT, plain, None)] if plain else []
    for style, name in enumerate(dict.fromkeys(map(_name, columns))):
        own = [c.after for c in columns if _name(c) == name]
        points = sorted((float(v.block_size), v.reuse or 0.0) for v in own)
        found.append(Series(name, points, style))
    return found


def _name(column: Column) -> str:
    """How the blocks were made, and in which file where that tells plans apart."""
    return f"{column.after.partitioner}{f' ({column.way})' if column.way else ''}"
