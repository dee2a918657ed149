"""The whole report as one page: verdict, pictures, figures; no address outside itself."""

import json
from collections.abc import Iterator, Sequence

from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.matrices import MatrixPlan

from ..columns import Column, before_after, comparable
from ..compare import UNLIKE, Comparison
from ..draw import spy
from ..matrices import input_nonzeros, matrix_tables, nonzeros
from ..meshes import NamedMesh
from ..render import render
from . import charts, details
from .charts import Series, counted_in, dots_body
from .details import ShownVariant
from .parts import Figure, Section, distinct, slug
from .svg import Frame, linear_axis, power_axis

# Loops of plans that get pictures.
MOST_PICTURED = 3


def sections_of(comparison: Comparison, meshes: Sequence[NamedMesh] = ()) -> list[Section]:
    """All figures and tables of loops, as :func:`html_report` shows them. O(elements + pixels)."""
    groups, alone = list(comparison.by_loop()), len(comparison.plans) == 1
    found = [] if alone else [s for g in groups for s in _compared(comparison, g)]
    for number, shown in enumerate(_shown_variants(comparison)):
        table = before_after(shown.column)
        found += details.sections(shown, meshes, table, pictures=number < MOST_PICTURED)
    return distinct([*found, *matrix_sections(comparison.names, comparison.plans)])


def html_report(
    comparison: Comparison,
    meshes: Sequence[NamedMesh] = (),
    *,
    title: str = "",
) -> str:
    """The report as HTML that needs no other file and no network.

    ``meshes`` are those of the plans, as read or renumbered; a plan holds no coordinates. Where the
    mesh of a plan is not among them, the page says so in place of its pictures. Without ``title``
    the page names the plans. O(elements + pixels) for each of the first three loops that have
    arrays; others get no pictures.
    """
    found = sections_of(comparison, meshes)
    parts = comparison.brief()[:-1]
    one_loop = len(comparison.plans) == 1 and len(comparison.plans[0].loops) < 2
    made = sorted({str(p.about.get("created", ""))[:10] for p in comparison.plans} - {""})
    more = len(comparison.names) - 3
    names = ", ".join(comparison.names[:3]) + (f" and {more} more" if more > 0 else "")
    return render(
        "page.html",
        title=title or f"meshprep report: {names}",
        made=list(dict.fromkeys((made[0], made[-1]))) if made else [],
        # of one loop its section says it all
        parts=parts[:1] if one_loop else parts,
        open=[s for s in found if not s.folded],
        folded=[s for s in found if s.folded],
        others=[*comparison.order_tables(), comparison.seconds_table()],
        about=_about(comparison),
    )


def _shown_variants(comparison: Comparison) -> list[ShownVariant]:
    """The columns whose plans have arrays, the plans in their order."""
    columns, alone = comparison.columns(), len(comparison.plans) == 1
    return [
        ShownVariant(plan, c, number, alone)
        for number, (name, plan) in enumerate(
            zip(comparison.names, comparison.plans, strict=True), start=1
        )
        for c in columns
        if c.plan == name and c.variant in plan[c.loop].variants
    ]


def _about(comparison: Comparison) -> str:
    about = [
        {"plan": name, "about": dict(plan.about), "options": dict(plan.options)}
        for name, plan in zip(comparison.names, comparison.plans, strict=True)
    ]
    return json.dumps(about, indent=1, default=str)


MATRIX_PIXELS = 300
# Matrices beyond these get no pictures.
MOST_MATRICES = 3


def matrix_sections(names: Sequence[str], plans: Sequence[Plan]) -> list[Section]:
    """A section with tables of all matrices and pictures of the first; none without matrices."""
    tables = matrix_tables(names, plans)
    if not tables:
        return []
    every = [
        (name if len(plans) > 1 else "", number, plan, matrix)
        for number, (name, plan) in enumerate(zip(names, plans, strict=True), start=1)
        for matrix in plan.matrices.values()
    ]
    figures = [one for shown in every[:MOST_MATRICES] for one in _matrix_figures(*shown)]
    intro = (
        "Bytes are those of the arrays, and what a call and a product move where caches keep what "
        "elements share; local stores the matrix of each element, half of it where it is symmetric."
    )
    return [Section("matrices", "Matrices", intro, figures, tables, folded=True)]


def _matrix_figures(name: str, number: int, plan: Plan, matrix: MatrixPlan) -> Iterator[Figure]:
    if not matrix.columns.size:
        return
    where = f" of {name}" if name else ""
    sides = (
        ("before", "in the input order", input_nonzeros(plan, matrix)),
        ("after", "in the plan", nonzeros(matrix)),
    )
    n_rows, n_columns = matrix.shape
    longest = max(matrix.shape)
    most = MATRIX_PIXELS * n_rows // longest, MATRIX_PIXELS * n_columns // longest
    for side, words, (rows, columns) in sides:
        dots = spy(rows, columns, matrix.shape, most)
        title = f"Matrix {matrix.name}{where} {words}"
        n = f"{matrix.columns.size:,} nonzeros; near the diagonal is good"
        caption = n if side == "before" else counted_in(dots)
        alt = f"{title}. {caption}"
        body = dots_body(dots, ("columns", n_columns), ("rows", n_rows), alt)
        at = slug(f"plan{number}", "matrix", matrix.name, side)
        yield Figure(at, title, caption, body)


INPUT = "input order"


def _compared(comparison: Comparison, columns: Sequence[Column]) -> list[Section]:
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
    body, legend = charts.curves(series, Frame(x, y), alt), [one.key() for one in series]
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
