"""The maps and matrices of a plan in the numbering of the input mesh, which it is compared with."""

from meshprep_runtime.plan import LoopPlan
from meshprep_runtime.plan.matrices import MatrixPlan, with_places
from meshprep_runtime.plan.model import PlanContent
from meshprep_runtime.types.maps import SetMap

from .matrices import numbered, pattern_and_places


def input_maps(plan: PlanContent, loop_plan: LoopPlan) -> dict[str, SetMap]:
    """The maps of a loop in the numbering of the input mesh."""
    found = {}
    for name in loop_plan.loop.maps:
        m = loop_plan.maps[name]
        rows, points = plan.ordering[m.from_set], plan.ordering[m.to_set]
        table = points.new_to_old[m.table[rows.old_to_new]]
        found[name] = SetMap(name, m.from_set, m.to_set, table)
    return found


def input_reach(plan: PlanContent, loop_plan: LoopPlan) -> tuple[dict[str, SetMap], dict[str, int]]:
    """The maps of a loop and the sizes of sets, with its places in matrices, in that numbering."""
    matrices = {name: _in_input(plan, m) for name, m in loop_plan.matrices.items()}
    maps = input_maps(plan, loop_plan)
    return with_places(loop_plan.loop, maps, loop_plan.sizes, matrices)


def _in_input(plan: PlanContent, matrix: MatrixPlan) -> MatrixPlan:
    """The matrix as it would be without the order of the plan. Linear in the entries."""
    maps = {}
    for loop in matrix.place:
        own = input_maps(plan, plan[loop])
        (arg,) = (a for a in plan[loop].loop.matrices if a.name == matrix.name)
        maps[loop] = own[str(arg.map)], own[str(arg.columns)]
    row_of = numbered(plan.ordering[matrix.row_set].restore(matrix.row_of >= 0))
    column_of = row_of
    if matrix.column_of is not matrix.row_of:
        column_of = numbered(plan.ordering[matrix.column_set].restore(matrix.column_of >= 0))
    sets = matrix.row_set, matrix.column_set
    return pattern_and_places(matrix.name, sets, maps, row_of, column_of)
