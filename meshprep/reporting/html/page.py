"""The report as one page that needs no other file: verdicts, pictures, figures."""

import json
from collections.abc import Iterator, Sequence
from itertools import chain

from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.matrices import MatrixPlan

from ..columns import Column, before_after, comparable
from ..compare import UNLIKE, Comparison
from ..draw import count_entries
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
    """All figures and tables, as :func:`html_report` shows them. O(elements + pixels)."""
    all_sections: list[Section] = []
    if len(comparison.plans) > 1:
        for columns in comparison.by_loop():
            all_sections += _sections_of_loop(comparison, columns)
    # Pictures cost most of the page: show those of the first variants.
    for number, shown in enumerate(_shown_variants(comparison)):
        table = before_after(shown.column)
        all_sections += details.sections(
            shown=shown,
            meshes=meshes,
            table=table,
            pictures=number < MOST_PICTURED,
        )
    all_sections += matrix_sections(comparison.names, comparison.plans)
    return distinct(all_sections)


def html_report(
    comparison: Comparison,
    meshes: Sequence[NamedMesh] = (),
    *,
    title: str = "",
) -> str:
    """The report as HTML that needs no other file and no network.

    ``meshes`` are those of the plans, as read or renumbered; a plan holds no coordinates.
    Where the mesh of a plan is not among them, the page says so in place of its pictures.
    Without ``title`` the page names the plans. O(elements + pixels) for each of the first
    three loops that have arrays; others get no pictures.
    """
    sections = sections_of(comparison, meshes)
    # All that is brief but the line on what is left out; of one loop its section has the
    # table.
    parts = comparison.brief()[:-1]
    if len(comparison.plans) == 1 and len(comparison.plans[0].loops) < 2:
        parts = parts[:1]
    # The first and the last day on which the plans were made.
    days = {str(plan.about.get("created", ""))[:10] for plan in comparison.plans}
    first_and_last = sorted(days - {""})
    if first_and_last:
        first_and_last = list(dict.fromkeys((first_and_last[0], first_and_last[-1])))
    # A title of at most three names.
    names = ", ".join(comparison.names[:3])
    n_further = len(comparison.names) - 3
    if n_further > 0:
        names += f" and {n_further} more"
    return render(
        "page.html",
        title=title or f"meshprep report: {names}",
        made=first_and_last,
        parts=parts,
        open=[section for section in sections if not section.folded],
        folded=[section for section in sections if section.folded],
        others=[
            *comparison.order_tables(),
            *comparison.occupancy_tables(),
            comparison.seconds_table(),
        ],
        about=_about_json(comparison),
    )


def _shown_variants(comparison: Comparison) -> list[ShownVariant]:
    """The columns whose plans have arrays, the plans in their order."""
    columns = comparison.columns()
    alone = len(comparison.plans) == 1
    shown = []
    named_plans = zip(comparison.names, comparison.plans, strict=True)
    for number, (name, plan) in enumerate(named_plans, start=1):
        for column in columns:
            if column.plan == name and column.variant in plan[column.loop].variants:
                variant = ShownVariant(plan, column, number=number, alone=alone)
                shown.append(variant)
    return shown


def _about_json(comparison: Comparison) -> str:
    """Origin and options of the plans, as text."""
    about = [
        {"plan": name, "about": dict(plan.about), "options": dict(plan.options)}
        for name, plan in zip(comparison.names, comparison.plans, strict=True)
    ]
    return json.dumps(about, indent=1, default=str)


# Height and width of the picture of a matrix, at most.
MATRIX_PIXELS = 300
# Matrices beyond the first ones get no pictures.
MOST_MATRICES = 3


def matrix_sections(names: Sequence[str], plans: Sequence[Plan]) -> list[Section]:
    """A section with tables of all matrices, and pictures of the first ones."""
    tables = matrix_tables(names, plans)
    if not tables:
        return []
    # Pictures take room: show those of the first matrices.
    figures: list[Figure] = []
    n_shown = 0
    for number, (name, plan) in enumerate(zip(names, plans, strict=True), start=1):
        for matrix in plan.matrices.values():
            n_shown += 1
            if n_shown <= MOST_MATRICES:
                # a single plan needs no name
                plan_name = name if len(plans) > 1 else ""
                figures += _matrix_figures(plan_name, number, plan, matrix)
    intro = (
        "Bytes are those of the arrays, and what a call and a product move where caches "
        "keep what elements share; local stores the matrix of each element, "
        "half of it where it is symmetric."
    )
    return [
        Section(
            id="matrices",
            title="Matrices",
            intro=intro,
            figures=figures,
            tables=tables,
            folded=True,
        )
    ]


def _matrix_figures(
    name: str,
    number: int,
    plan: Plan,
    matrix: MatrixPlan,
) -> Iterator[Figure]:
    """The nonzeros of a matrix in the input order, and in the plan."""
    if not matrix.columns.size:
        return
    whose = f" of {name}" if name else ""
    sides = (
        ("before", "in the input order", input_nonzeros(plan, matrix)),
        ("after", "in the plan", nonzeros(matrix)),
    )
    # The picture has the shape of the matrix.
    n_rows, n_columns = matrix.shape
    longest = max(matrix.shape)
    most = MATRIX_PIXELS * n_rows // longest, MATRIX_PIXELS * n_columns // longest
    for side, words, (rows, columns) in sides:
        dots = count_entries(rows=rows, columns=columns, shape=matrix.shape, most=most)
        title = f"Matrix {matrix.name}{whose} {words}"
        if side == "before":
            caption = f"{matrix.columns.size:,} nonzeros; near the diagonal is good"
        else:
            caption = counted_in(dots)
        alt = f"{title}. {caption}"
        body = dots_body(
            dots=dots,
            across=("columns", n_columns),
            down=("rows", n_rows),
            alt=alt,
        )
        figure_id = slug(f"plan{number}", "matrix", matrix.name, side)
        yield Figure(id=figure_id, title=title, caption=caption, body=body)


# Name of the series of the input order.
INPUT = "input order"


def _sections_of_loop(comparison: Comparison, columns: Sequence[Column]) -> list[Section]:
    """The reuse of several plans of a loop; then, folded, a table of their figures."""
    # The curve of the reuse factor is open.
    loop = columns[0].loop
    section_id = slug("loop", loop)
    sections = []
    with_reuse = [column for column in columns if column.after.reuse]
    if with_reuse:
        figures = [_reuse_figure(loop, with_reuse)]
        sections.append(
            Section(id=section_id, title=f"Loop {loop}", intro="", figures=figures)
        )
    # The table of all figures is folded.
    intro = UNLIKE
    if comparable(columns):
        intro = "A star marks the best of each figure"
    sections.append(
        Section(
            id=f"{section_id}-all",
            title=f"All plans of loop {loop}",
            intro=f"{intro}.",
            figures=(),
            tables=[comparison.loop_table(columns)],
            folded=True,
        )
    )
    return sections


def _reuse_figure(loop: str, columns: Sequence[Column]) -> Figure:
    """The reuse factor against the block size, a curve for every way to cut."""
    # Axes that hold the points of all curves.
    series = _series(columns)
    points = chain.from_iterable(of_name.points for of_name in series)
    sizes, reuse = zip(*points, strict=True)
    x = power_axis("block size (elements)", sizes)
    y = linear_axis("reuse factor", reuse, least=0.5)

    # Where each curve ends, for those who do not see it.
    title = "Reuse against block size"
    last_points = []
    for of_name in series:
        size, factor = of_name.points[-1]
        last_points.append(f"{of_name.name} {factor:.2f} at {size:.4g}")
    alt = f"{title}: {', '.join(last_points)}"
    body = charts.curves(series, Frame(x, y), alt)
    legend = [of_name.key() for of_name in series]
    text = "Accesses over loads of the whole loop: larger blocks share more points"
    return Figure(
        id=slug("loop", loop, "reuse"),
        title=title,
        caption=text,
        body=body,
        legend=legend,
    )


def _series(columns: Sequence[Column]) -> list[Series]:
    """The input order, then a series for every way to cut, by block size."""
    series = []
    before = [c.before for c in columns if c.before is not None]
    points_before = sorted({(float(b.block_size), b.reuse or 0.0) for b in before})
    if points_before:
        series.append(Series(INPUT, points_before, None))
    for style, name in enumerate(dict.fromkeys(map(_series_name, columns))):
        after = [c.after for c in columns if _series_name(c) == name]
        points = sorted((float(v.block_size), v.reuse or 0.0) for v in after)
        series.append(Series(name, points, style))
    return series


def _series_name(column: Column) -> str:
    """The partitioner, with order and options where plans differ in these."""
    if column.way:
        return f"{column.after.partitioner} ({column.way})"
    return column.after.partitioner
