"""The matrices of plans on the page: their figures, and their nonzeros before and after."""

from collections.abc import Iterator, Sequence

from meshprep_runtime.plan import MatrixPlan, Plan

from ..draw import spy_matrix
from ..matrices import input_nonzeros, matrix_tables, nonzeros
from .charts import counted_in, dots_body
from .parts import Figure, Section, slug

PIXELS = 300
# Matrices beyond these get no pictures.
MOST_PICTURED = 3


def sections(names: Sequence[str], plans: Sequence[Plan]) -> list[Section]:
    """A section with tables of all matrices and pictures of the first; none without matrices."""
    tables = matrix_tables(names, plans)
    if not tables:
        return []
    every = [
        (name if len(plans) > 1 else "", number, plan, matrix)
        for number, (name, plan) in enumerate(zip(names, plans, strict=True), start=1)
        for matrix in plan.matrices.values()
    ]
    figures = [one for shown in every[:MOST_PICTURED] for one in _figures(*shown)]
    intro = (
        "Bytes are those of the arrays, and what a call and a product move where caches keep what "
        "elements share; local stores the matrix of each element, half of it where it is symmetric."
    )
    return [Section("matrices", "Matrices", intro, figures, tables)]


def _figures(name: str, number: int, plan: Plan, matrix: MatrixPlan) -> Iterator[Figure]:
    if not matrix.columns.size:
        return
    where = f" of {name}" if name else ""
    sides = (
        ("before", "in the input order", input_nonzeros(plan, matrix)),
        ("after", "in the plan", nonzeros(matrix)),
    )
    n_rows, n_columns = matrix.shape
    for side, words, (rows, columns) in sides:
        dots = spy_matrix(rows, columns, matrix.shape, PIXELS)
        title = f"Matrix {matrix.name}{where} {words}"
        caption = (
            f"Dots are the {matrix.columns.size:,} nonzeros: near the diagonal is good, where rows "
            f"are multiplied in their order. {counted_in(dots)}"
        )
        alt = f"{title}. {caption}"
        body = dots_body(dots, ("columns", n_columns), ("rows", n_rows), alt)
        at = slug(f"plan{number}", "matrix", matrix.name, side)
        yield Figure(at, title, caption, body, row="map")
