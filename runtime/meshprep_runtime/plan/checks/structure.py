"""Is a plan safe to run: do its arrays fit each other and does every index stay inside?

These checks are cheap (a few passes) and made on every load and save, so that compiled loops may
leave bounds checks out. Whether the plan is also free of races is :mod:`verify`'s question.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import MeshprepError, PlanError
from ...types.loops import Arg
from ...types.maps import SetMap, rows_of_entries
from ..file.tree import DTYPES, Tree, check_array, check_below, check_offset
from ..model import LoopPlan, PlanContent, Ranges, Staging, Variant

if TYPE_CHECKING:
    from ..matrices import MatrixPlan


def check_plan(plan: PlanContent) -> None:
    """Raise PlanError at the first thing that does not fit. O(bytes)."""
    check_shared(plan)
    for loop_plan in plan.loops.values():
        check_loop(loop_plan)
        for variant in loop_plan.variants.values():
            check_variant(loop_plan, variant)


def check_shared(plan: PlanContent) -> None:
    """:func:`check_plan` without what :func:`check_loop` and :func:`check_variant` look at."""
    for name, ordering in plan.ordering.items():
        n = size_of(plan.sizes, name, "the ordering")
        for label in ("new_to_old", "old_to_new"):
            values = getattr(ordering, label)
            where = f"ordering of '{name}', {label}"
            check_array(where, values, "i4", (n,))
            check_below(where, values, n)
    for m in plan.maps.values():
        if m.size != size_of(plan.sizes, m.from_set, f"map '{m.name}'"):
            raise PlanError(f"map '{m.name}' has not one row an element of '{m.from_set}'")
        _check_range(m, size_of(plan.sizes, m.to_set, f"map '{m.name}'"))
    for set_name, tags in plan.tags.items():
        n = size_of(plan.sizes, set_name, "a tag")
        for name, values in tags.items():
            check_array(f"tag '{name}' on '{set_name}'", values, "i8", (n,))
    for set_name, further in plan.further_groups.items():
        if not further.keys() <= plan.tags.get(set_name, {}).keys():
            raise PlanError(f"further groups on '{set_name}' belong to no tag of the plan")
        for name, rows in further.items():
            where = f"further groups '{name}' on '{set_name}'"
            check_array(where, rows, "i8", (len(rows), 2))
            check_below(where, rows[:, 0], plan.sizes[set_name])
            if (rows[1:, 0] < rows[:-1, 0]).any():
                raise PlanError(f"{where}: the elements do not ascend")
    for set_name, named in plan.group_names.items():
        if not named.keys() <= plan.tags.get(set_name, {}).keys():
            raise PlanError(f"names of groups on '{set_name}' belong to no tag of the plan")
        for names in named.values():
            if "\n" in "".join(names.values()):
                raise PlanError(f"a name of a group on '{set_name}' has a line break")
    for set_name, points in plan.coordinates.items():
        n = size_of(plan.sizes, set_name, "coordinates")
        columns = points.shape[1] if points.ndim == 2 and points.shape[1] in (2, 3) else 3
        check_array(f"coordinates of '{set_name}'", points, "f8", (n, columns))
    for name, extension in plan.extensions.items():
        _check_extension(f"extension '{name}'", extension)
    for name, loop_plan in plan.loops.items():
        _check_same_maps(plan, name, loop_plan)
    for name, matrix in plan.matrices.items():
        _check_matrix(plan, name, matrix)


def check_loop(loop_plan: LoopPlan) -> None:
    """Raise PlanError unless the loop's maps fit its sets and its arguments. O(map entries)."""
    loop, sizes = loop_plan.loop, loop_plan.sizes
    where = f"loop '{loop.name}'"
    n = size_of(sizes, loop.over, where)
    for name in loop.maps:
        m = loop_plan.maps.get(name)
        if m is None:
            raise PlanError(f"{where} uses map '{name}', which the plan does not have")
        if m.from_set != loop.over or m.size != n:
            raise PlanError(f"{where}: map '{name}' has not one row an element of '{loop.over}'")
        size_of(sizes, m.to_set, f"map '{name}'")
        _check_range(m, loop_plan.rows_of(m.to_set))
    for arg in loop.args:
        if arg.map is not None and max(arg.index) >= loop_plan.maps[arg.map].arity:
            raise PlanError(
                f"{where}: argument '{arg.name}' takes column {max(arg.index)} of map "
                f"'{arg.map}', which has {loop_plan.maps[arg.map].arity}"
            )
    for arg in loop.matrices:
        _check_places(loop_plan, arg)
    if loop_plan.variants and loop_plan.default not in loop_plan.variants:
        raise PlanError(f"{where}: its default variant '{loop_plan.default}' is missing")
    if loop_plan.ranges is not None:
        check_ranges(f"{where}, ranges", loop_plan.ranges, n)


def check_ranges(where: str, ranges: Ranges, n: int) -> None:
    """Raise PlanError unless ranges hold each place once and wait for earlier turns. O(waits)."""
    count = ranges.order.size
    check_offset(f"{where}, offset", ranges.offset, n)
    check_array(f"{where}, order", ranges.order, "i4", (ranges.offset.size - 1,))
    check_below(f"{where}, order", ranges.order, count)
    if (np.bincount(ranges.order, minlength=count) != 1).any():
        raise PlanError(f"{where}, order does not name each range once")
    check_offset(f"{where}, wait_offset", ranges.wait_offset, ranges.waits.size)
    check_array(f"{where}, wait_offset", ranges.wait_offset, "i8", (count + 1,))
    check_array(f"{where}, waits", ranges.waits, "i4", (ranges.waits.size,))
    turn = rows_of_entries(ranges.wait_offset)
    late = (ranges.waits < 0) | (ranges.waits >= turn)
    if late.any():
        at = int(np.argmax(late))
        raise PlanError(f"{where}: turn {turn[at]} waits for turn {ranges.waits[at]}")


def check_variant(loop_plan: LoopPlan, variant: Variant) -> None:
    """Raise PlanError unless a variant's arrays fit each other and the loop. O(map entries)."""
    where = f"loop '{loop_plan.loop.name}', variant '{variant.name}'"
    n = loop_plan.sizes[loop_plan.loop.over]
    check_offset(f"{where}, block_offset", variant.block_offset, n)
    check_offset(f"{where}, block_colour_offset", variant.block_colour_offset, variant.n_blocks)
    check_array(f"{where}, block_order", variant.block_order, "i4", (variant.n_blocks,))
    check_below(f"{where}, block_order", variant.block_order, variant.n_blocks)
    if variant.elements is not None:
        check_array(f"{where}, elements", variant.elements, "i4", (n,))
        check_below(f"{where}, elements", variant.elements, n)
    if variant.thread_colour.dtype.str not in ("|u1", "<u2"):
        raise PlanError(
            f"{where}: thread_colour is {variant.thread_colour.dtype}, must be u1 or u2"
        )
    check_array(
        f"{where}, thread_colour", variant.thread_colour, variant.thread_colour.dtype.str, (n,)
    )
    check_array(f"{where}, thread_colours", variant.thread_colours, "i4", (variant.n_blocks,))
    for name in loop_plan.loop.maps:
        m = loop_plan.maps[name]
        staging, local = variant.staging.get(m.to_set), variant.local.get(name)
        if staging is None or local is None:
            raise PlanError(f"{where} stages nothing for map '{name}'")
        lists = f"{where}, set '{m.to_set}'"
        if staging.point_offset.shape != variant.block_offset.shape:
            raise PlanError(f"{lists}: point_offset has not one entry a block and one more")
        check_offset(f"{lists}, point_offset", staging.point_offset, staging.points.size)
        check_array(f"{lists}, points", staging.points, "i4", (staging.points.size,))
        check_below(f"{lists}, points", staging.points, loop_plan.rows_of(m.to_set))
        check_array(f"{lists}, exclusive", staging.exclusive, "?", (staging.points.size,))
        check_array(f"{where}, local map '{name}'", local, "u2", (m.arity, n))
        _check_local(f"{where}, local map '{name}'", variant, staging, local)


def _check_same_maps(plan: PlanContent, name: str, loop_plan: LoopPlan) -> None:
    if loop_plan.loop.name != name:
        raise PlanError(f"loop '{name}' calls itself '{loop_plan.loop.name}'")
    for label in loop_plan.loop.maps:
        own, common = loop_plan.maps.get(label), plan.maps.get(label)
        if own is None or common is None:
            raise PlanError(f"loop '{name}' uses map '{label}', which the plan does not have")
        if own is not common and not (
            own.to_set == common.to_set and np.array_equal(own.table, common.table)
        ):
            raise PlanError(f"loop '{name}' has a map '{label}' that differs from the plan's")
    for arg in loop_plan.loop.matrices:
        if arg.name not in plan.matrices or loop_plan.matrices.get(arg.name) is None:
            raise PlanError(f"loop '{name}' adds to matrix '{arg.name}', which the plan has not")
        if loop_plan.matrices[arg.name] is not plan.matrices[arg.name]:
            raise PlanError(f"loop '{name}' has a matrix '{arg.name}' that differs from the plan's")
    for label, size in loop_plan.sizes.items():
        if plan.sizes.get(label) != size:
            raise PlanError(f"loop '{name}': set '{label}' has not the plan's size")


def _check_extension(where: str, extension: Tree) -> None:
    """That a file can hold it, and says of which version it is."""
    version = extension.groups.get("/", {}).get("version")
    if not isinstance(version, int) or version < 1:
        raise PlanError(f"{where} has no attribute 'version' that is a whole number from 1")
    for path, values in extension.datasets.items():
        if not isinstance(values, str) and values.dtype.str not in DTYPES:
            raise PlanError(f"{where}: {path} has the type {values.dtype}, which no plan has")


def _check_places(loop_plan: LoopPlan, arg: Arg) -> None:
    where = f"loop '{loop_plan.loop.name}', matrix '{arg.name}'"
    rows, columns = loop_plan.maps[str(arg.map)], loop_plan.maps[str(arg.columns)]
    if arg.index != tuple(range(rows.arity)) or arg.dim != columns.arity:
        raise PlanError(
            f"{where} has {len(arg.index)} x {arg.dim} values an element, but its maps have "
            f"{rows.arity} and {columns.arity} columns"
        )
    matrix = loop_plan.matrices.get(arg.name)
    if matrix is None:
        return
    if (matrix.row_set, matrix.column_set) != (rows.to_set, columns.to_set):
        raise PlanError(f"{where}: its maps do not lead to its rows and columns")
    place = matrix.place.get(loop_plan.loop.name)
    if place is None:
        raise PlanError(f"{where} has no places for this loop")
    check_array(f"{where}, place", place, "i4", (rows.size, rows.arity * columns.arity))
    if place.size and (place.min() < -1 or place.max() >= matrix.columns.size):
        raise PlanError(f"{where}: a place is outside -1..{matrix.columns.size - 1}")


def _check_matrix(plan: PlanContent, name: str, matrix: "MatrixPlan") -> None:
    """The pattern of one matrix; its places are looked at with the loops."""
    where = f"matrix '{name}'"
    unknown = [loop for loop in matrix.place if loop not in plan.loops]
    if matrix.name != name or unknown:
        raise PlanError(f"{where} has another name, or places of loops that the plan has not")
    for label, set_name in (("row_of", matrix.row_set), ("column_of", matrix.column_set)):
        n, values = size_of(plan.sizes, set_name, where), getattr(matrix, label)
        check_array(f"{where}, {label}", values, "i4", (n,))
        numbered = values[values >= 0]
        if not np.array_equal(numbered, np.arange(numbered.size)) or values.min(initial=0) < -1:
            raise PlanError(f"{where}, {label} does not count up from 0, with -1 for the others")
    rows = int(np.count_nonzero(matrix.row_of >= 0))
    check_offset(f"{where}, row_ptr", matrix.row_ptr, matrix.columns.size)
    check_array(f"{where}, row_ptr", matrix.row_ptr, "i8", (rows + 1,))
    check_array(f"{where}, columns", matrix.columns, "i4", (matrix.columns.size,))
    check_below(f"{where}, columns", matrix.columns, matrix.shape[1])


def _check_local(where: str, variant: Variant, staging: Staging, local: NDArray[Any]) -> None:
    offset, staged = variant.block_offset, np.diff(staging.point_offset)
    filled = np.flatnonzero(np.diff(offset))
    for column, places in enumerate(local):
        highest = np.maximum.reduceat(places, offset[filled]) if filled.size else places
        over = filled[highest >= staged[filled]]
        if over.size:
            b = int(over[0])
            at = int(offset[b] + np.argmax(places[offset[b] : offset[b + 1]] >= staged[b]))
            element = at if variant.elements is None else variant.elements[at]
            raise PlanError(
                f"{where}: element {element}, column {column} is {places[at]}, but its "
                f"block stages {staged[b]} points"
            )


def _check_range(m: SetMap, n_to: int) -> None:
    try:
        m.check_range(n_to)
    except MeshprepError as error:
        raise PlanError(str(error)) from None


def size_of(sizes: Mapping[str, int], name: str, what: str) -> int:
    """The size of a set; raises PlanError where the plan has none of the name."""
    if name not in sizes:
        raise PlanError(f"{what} names set '{name}', which the plan does not have")
    return sizes[name]
