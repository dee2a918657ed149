"""Check that a plan is safe to run: arrays fit each other, indices are in range.

These checks are cheap, a few passes over the arrays, and made at every load and save; so
compiled loops need no bounds checks. :mod:`.verify` proves that the plan is also free of
races.
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
from .proof import and_more

if TYPE_CHECKING:
    from ..matrices import MatrixPlan


def check_plan(plan: PlanContent) -> None:
    """Raise PlanError at the first fault. O(bytes)."""
    check_shared(plan)
    for loop_plan in plan.loops.values():
        check_loop(loop_plan)
        for variant in loop_plan.variants.values():
            check_variant(loop_plan, variant)
        check_whole_blocks(loop_plan)


def check_shared(plan: PlanContent) -> None:
    """The checks of :func:`check_plan` without those of single loops and variants."""
    _check_orderings(plan)
    for m in plan.maps.values():
        if m.size != size_of(plan.sizes, m.from_set, f"map '{m.name}'"):
            raise PlanError(f"map '{m.name}' has not one row an element of '{m.from_set}'")
        _check_range(m, size_of(plan.sizes, m.to_set, f"map '{m.name}'"))
    _check_groups(plan)
    _check_coordinates(plan)
    for name, extension in plan.extensions.items():
        _check_extension(f"extension '{name}'", extension)
    for name, loop_plan in plan.loops.items():
        _check_same_maps(plan, name, loop_plan)
    for name, matrix in plan.matrices.items():
        _check_matrix(plan, name, matrix)


def _check_orderings(plan: PlanContent) -> None:
    """Both directions of each ordering have the size of the set, and numbers in range."""
    for name, ordering in plan.ordering.items():
        n = size_of(plan.sizes, name, "the ordering")
        for label in ("new_to_old", "old_to_new"):
            values = getattr(ordering, label)
            where = f"ordering of '{name}', {label}"
            check_array(where=where, values=values, dtype="i4", shape=(n,))
            check_below(where, values, n)


def _check_groups(plan: PlanContent) -> None:
    """Tags have a number for each element; further groups and names belong to a tag."""
    for set_name, tags in plan.tags.items():
        n = size_of(plan.sizes, set_name, "a tag")
        for name, values in tags.items():
            check_array(
                where=f"tag '{name}' on '{set_name}'", values=values, dtype="i8", shape=(n,)
            )
    # An element of several groups has further rows (element, group), in ascending order.
    for set_name, further in plan.further_groups.items():
        if not further.keys() <= plan.tags.get(set_name, {}).keys():
            raise PlanError(f"further groups on '{set_name}' belong to no tag of the plan")
        for name, rows in further.items():
            where = f"further groups '{name}' on '{set_name}'"
            check_array(where=where, values=rows, dtype="i8", shape=(len(rows), 2))
            check_below(where, rows[:, 0], plan.sizes[set_name])
            if (rows[1:, 0] < rows[:-1, 0]).any():
                raise PlanError(f"{where}: the elements do not ascend")
    # Names are stored in lines, so they have none themselves.
    for set_name, named in plan.group_names.items():
        if not named.keys() <= plan.tags.get(set_name, {}).keys():
            raise PlanError(f"names of groups on '{set_name}' belong to no tag of the plan")
        for names in named.values():
            if "\n" in "".join(names.values()):
                raise PlanError(f"a name of a group on '{set_name}' has a line break")


def _check_coordinates(plan: PlanContent) -> None:
    """Coordinates are finite, with two or three for each element."""
    for set_name, points in plan.coordinates.items():
        n = size_of(plan.sizes, set_name, "coordinates")
        n_columns = 3
        if points.ndim == 2 and points.shape[1] in (2, 3):
            n_columns = points.shape[1]
        check_array(
            where=f"coordinates of '{set_name}'",
            values=points,
            dtype="f8",
            shape=(n, n_columns),
        )
        finite = np.isfinite(points)
        if not finite.all():
            e = int(np.argmin(finite.all(axis=1)))
            raise PlanError(
                f"coordinates of '{set_name}': those of element {e} are not finite"
            )


def check_loop(loop_plan: LoopPlan) -> None:
    """Raise PlanError unless maps fit the sets and arguments of a loop. O(map entries)."""
    loop = loop_plan.loop
    sizes = loop_plan.sizes
    where = f"loop '{loop.name}'"
    n = size_of(sizes, loop.over, where)
    # Check the maps: a row for each element, and points that exist. Compiled code does not
    # look.
    for name in loop.maps:
        m = loop_plan.maps.get(name)
        if m is None:
            raise PlanError(f"{where} uses map '{name}', which the plan does not have")
        if m.from_set != loop.over or m.size != n:
            raise PlanError(
                f"{where}: map '{name}' has not one row an element of '{loop.over}'"
            )
        size_of(sizes, m.to_set, f"map '{name}'")
        _check_range(m, loop_plan.rows_of(m.to_set))
    # Check what takes columns of them.
    for arg in loop.args:
        if arg.map is not None and max(arg.index) >= loop_plan.maps[arg.map].arity:
            raise PlanError(
                f"{where}: argument '{arg.name}' takes column {max(arg.index)} of map "
                f"'{arg.map}', which has {loop_plan.maps[arg.map].arity}"
            )
    for arg in loop.matrices:
        _check_places(loop_plan, arg)
    # Check the blocks that run by default, and the ranges of a CPU.
    if loop_plan.variants and loop_plan.default not in loop_plan.variants:
        raise PlanError(f"{where}: its default variant '{loop_plan.default}' is missing")
    if loop_plan.ranges is not None:
        check_ranges(f"{where}, ranges", loop_plan.ranges, n)


def check_ranges(where: str, ranges: Ranges, n: int) -> None:
    """Raise PlanError unless ranges hold each place once, and wait for earlier turns.

    ``n`` is the number of places. O(waits).
    """
    # Each place stands in one range, and each range has one turn.
    count = ranges.order.size
    check_offset(f"{where}, offset", ranges.offset, n)
    check_array(
        where=f"{where}, order",
        values=ranges.order,
        dtype="i4",
        shape=(ranges.offset.size - 1,),
    )
    check_below(f"{where}, order", ranges.order, count)
    if (np.bincount(ranges.order, minlength=count) != 1).any():
        raise PlanError(f"{where}, order does not name each range once")
    # Each turn waits for earlier ones only: no two turns can wait for each other.
    check_offset(f"{where}, wait_offset", ranges.wait_offset, ranges.waits.size)
    check_array(
        where=f"{where}, wait_offset",
        values=ranges.wait_offset,
        dtype="i8",
        shape=(count + 1,),
    )
    check_array(
        where=f"{where}, waits", values=ranges.waits, dtype="i4", shape=(ranges.waits.size,)
    )
    turn = rows_of_entries(ranges.wait_offset)
    wrong = (ranges.waits < 0) | (ranges.waits >= turn)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise PlanError(f"{where}: turn {turn[i]} waits for turn {ranges.waits[i]}")


def check_whole_blocks(loop_plan: LoopPlan) -> None:
    """Raise PlanError unless each range begins where a block of the default variant does.

    For plans in files; the ranges of a loop on a part also begin where its classes do.
    ``loop_plan`` has passed the other checks. O(ranges log blocks).
    """
    default = loop_plan.variants.get(loop_plan.default)
    if default is None or loop_plan.ranges is None:
        return
    block_offset = default.block_offset
    offset = loop_plan.ranges.offset
    block = np.minimum(np.searchsorted(block_offset, offset), block_offset.size - 1)
    begins_inside = block_offset[block] != offset
    if begins_inside.any():
        r = int(np.argmax(begins_inside))
        raise PlanError(
            f"loop '{loop_plan.loop.name}', ranges: range {r} begins at place {offset[r]}, "
            "inside of a block"
        )


def check_variant(loop_plan: LoopPlan, variant: Variant) -> None:
    """Raise PlanError unless a variant's arrays fit. O(map entries)."""
    where = f"loop '{loop_plan.loop.name}', variant '{variant.name}'"
    n = loop_plan.sizes[loop_plan.loop.over]
    # Check the blocks, their order and their colours.
    check_offset(f"{where}, block_offset", variant.block_offset, n)
    check_offset(
        f"{where}, block_colour_offset", variant.block_colour_offset, variant.n_blocks
    )
    check_array(
        where=f"{where}, block_order",
        values=variant.block_order,
        dtype="i4",
        shape=(variant.n_blocks,),
    )
    check_below(f"{where}, block_order", variant.block_order, variant.n_blocks)
    if variant.elements is not None:
        check_array(
            where=f"{where}, elements", values=variant.elements, dtype="i4", shape=(n,)
        )
        check_below(f"{where}, elements", variant.elements, n)
    # Few colours take a byte for each element, more take two.
    if variant.thread_colour.dtype.str not in ("|u1", "<u2"):
        raise PlanError(
            f"{where}: thread_colour is {variant.thread_colour.dtype}, must be u1 or u2"
        )
    check_array(
        where=f"{where}, thread_colour",
        values=variant.thread_colour,
        dtype=variant.thread_colour.dtype.str,
        shape=(n,),
    )
    check_array(
        where=f"{where}, thread_colours",
        values=variant.thread_colours,
        dtype="i4",
        shape=(variant.n_blocks,),
    )
    _check_blocks(where, variant)

    # Check the staging list and the local map of each map.
    for name in loop_plan.loop.maps:
        m = loop_plan.maps[name]
        staging = variant.staging.get(m.to_set)
        local = variant.local.get(name)
        if staging is None or local is None:
            raise PlanError(f"{where} stages nothing for map '{name}'")
        where_of_set = f"{where}, set '{m.to_set}'"
        if staging.point_offset.shape != variant.block_offset.shape:
            raise PlanError(
                f"{where_of_set}: point_offset has not one entry a block and one more"
            )
        n_points = staging.points.size
        check_offset(f"{where_of_set}, point_offset", staging.point_offset, n_points)
        check_array(
            where=f"{where_of_set}, points",
            values=staging.points,
            dtype="i4",
            shape=(n_points,),
        )
        check_below(f"{where_of_set}, points", staging.points, loop_plan.rows_of(m.to_set))
        check_array(
            where=f"{where_of_set}, exclusive",
            values=staging.exclusive,
            dtype="?",
            shape=(n_points,),
        )
        check_array(
            where=f"{where}, local map '{name}'",
            values=local,
            dtype="u2",
            shape=(m.arity, n),
        )
        _check_local(
            where=f"{where}, local map '{name}'",
            variant=variant,
            staging=staging,
            local=local,
        )


def _check_blocks(where: str, variant: Variant) -> None:
    """No block has more elements, or higher colours, than the variant says."""
    offset = variant.block_offset
    block_size = variant.block_size
    if not 1 <= block_size < 2**31 - 1:
        raise PlanError(f"{where}: block_size is {block_size}, must be from 1")
    # Threads, and shared memory of a GPU, are laid out for blocks of at most this size.
    lengths = np.diff(offset)
    too_large = lengths > block_size
    if too_large.any():
        b = int(np.argmax(too_large))
        raise PlanError(
            f"{where}: block {b} has {lengths[b]} elements, more than {block_size}"
            f"{and_more(too_large)}"
        )
    # A block runs its colours one after the other: a higher colour would never run.
    check_below(f"{where}, thread_colours", variant.thread_colours, block_size + 1)
    filled = np.flatnonzero(lengths)
    if not filled.size:
        return
    largest = np.maximum.reduceat(variant.thread_colour, offset[filled])
    wrong = largest >= variant.thread_colours[filled]
    if wrong.any():
        b = int(filled[np.argmax(wrong)])
        raise PlanError(
            f"{where}: block {b} has a thread colour {largest[np.argmax(wrong)]}, but "
            f"thread_colours says {variant.thread_colours[b]}{and_more(wrong)}"
        )


def _check_same_maps(plan: PlanContent, name: str, loop_plan: LoopPlan) -> None:
    """A loop has the name, maps, matrices and sizes that the plan has."""
    if loop_plan.loop.name != name:
        raise PlanError(f"loop '{name}' calls itself '{loop_plan.loop.name}'")
    # Loops share the maps of the plan, whose points the orderings number.
    for label in loop_plan.loop.maps:
        map_of_loop = loop_plan.maps.get(label)
        map_of_plan = plan.maps.get(label)
        if map_of_loop is None or map_of_plan is None:
            raise PlanError(
                f"loop '{name}' uses map '{label}', which the plan does not have"
            )
        if not _are_same_map(map_of_loop, map_of_plan):
            raise PlanError(
                f"loop '{name}' has a map '{label}' that differs from the plan's"
            )
    # Loops that add to one matrix share its pattern.
    for arg in loop_plan.loop.matrices:
        if arg.name not in plan.matrices or loop_plan.matrices.get(arg.name) is None:
            raise PlanError(
                f"loop '{name}' adds to matrix '{arg.name}', which the plan has not"
            )
        if loop_plan.matrices[arg.name] is not plan.matrices[arg.name]:
            raise PlanError(
                f"loop '{name}' has a matrix '{arg.name}' that differs from the plan's"
            )
    for label, size in loop_plan.sizes.items():
        if plan.sizes.get(label) != size:
            raise PlanError(f"loop '{name}': set '{label}' has not the plan's size")


def _are_same_map(a: SetMap, b: SetMap) -> bool:
    if a is b:
        return True
    return a.to_set == b.to_set and np.array_equal(a.table, b.table)


def _check_extension(where: str, extension: Tree) -> None:
    """An extension has a version, and only types that a file can hold."""
    version = extension.groups.get("/", {}).get("version")
    if not isinstance(version, int) or version < 1:
        raise PlanError(f"{where} has no attribute 'version' that is a whole number from 1")
    for path, values in extension.datasets.items():
        if not isinstance(values, str) and values.dtype.str not in DTYPES:
            raise PlanError(
                f"{where}: {path} has the type {values.dtype}, which no plan has"
            )


def _check_places(loop_plan: LoopPlan, arg: Arg) -> None:
    """The nonzeros that a loop adds to fit its maps and the matrix."""
    where = f"loop '{loop_plan.loop.name}', matrix '{arg.name}'"
    rows = loop_plan.maps[str(arg.map)]
    columns = loop_plan.maps[str(arg.columns)]
    # An element adds a dense matrix: a row for each point of one map, a column for each of
    # the other.
    if arg.index != tuple(range(rows.arity)) or arg.dim != columns.arity:
        raise PlanError(
            f"{where} has {len(arg.index)} x {arg.dim} values an element, "
            f"but its maps have {rows.arity} and {columns.arity} columns"
        )
    matrix = loop_plan.matrices.get(arg.name)
    if matrix is None:
        return
    # The pattern is of the sets that the maps lead to, with a nonzero for each entry.
    if (matrix.row_set, matrix.column_set) != (rows.to_set, columns.to_set):
        raise PlanError(f"{where}: its maps do not lead to its rows and columns")
    entries = matrix.place.get(loop_plan.loop.name)
    if entries is None:
        raise PlanError(f"{where} has no places for this loop")
    check_array(
        where=f"{where}, place",
        values=entries,
        dtype="i4",
        shape=(rows.size, rows.arity * columns.arity),
    )
    if entries.size and (entries.min() < -1 or entries.max() >= matrix.columns.size):
        raise PlanError(f"{where}: a place is outside -1..{matrix.columns.size - 1}")


def _check_matrix(plan: PlanContent, name: str, matrix: "MatrixPlan") -> None:
    """The arrays of the pattern of one matrix; its places are checked with the loops."""
    where = f"matrix '{name}'"
    unknown = [loop for loop in matrix.place if loop not in plan.loops]
    if matrix.name != name or unknown:
        raise PlanError(
            f"{where} has another name, or places of loops that the plan has not"
        )
    # Free rows and columns are numbered in the order of the set; constrained ones have
    # none.
    for label, set_name in (("row_of", matrix.row_set), ("column_of", matrix.column_set)):
        n = size_of(plan.sizes, set_name, where)
        values = getattr(matrix, label)
        check_array(where=f"{where}, {label}", values=values, dtype="i4", shape=(n,))
        numbers = values[values >= 0]
        counts_up = np.array_equal(numbers, np.arange(numbers.size))
        if not counts_up or values.min(initial=0) < -1:
            raise PlanError(
                f"{where}, {label} does not count up from 0, with -1 for the others"
            )
    # The nonzeros are in compressed rows.
    rows = int(np.count_nonzero(matrix.row_of >= 0))
    check_offset(f"{where}, row_ptr", matrix.row_ptr, matrix.columns.size)
    check_array(
        where=f"{where}, row_ptr", values=matrix.row_ptr, dtype="i8", shape=(rows + 1,)
    )
    check_array(
        where=f"{where}, columns",
        values=matrix.columns,
        dtype="i4",
        shape=(matrix.columns.size,),
    )
    check_below(f"{where}, columns", matrix.columns, matrix.shape[1])


def _check_local(
    where: str, variant: Variant, staging: Staging, local: NDArray[Any]
) -> None:
    """Every local index leads into the staging list of its block."""
    # Compare the highest local index of each block with the points it stages.
    offset = variant.block_offset
    n_staged = np.diff(staging.point_offset)
    filled = np.flatnonzero(np.diff(offset))
    if not filled.size:
        return
    for column, indices in enumerate(local):
        highest = np.maximum.reduceat(indices, offset[filled])
        wrong_blocks = filled[highest >= n_staged[filled]]
        if not wrong_blocks.size:
            continue
        # Name the first element of the first wrong block.
        b = int(wrong_blocks[0])
        is_wrong = indices[offset[b] : offset[b + 1]] >= n_staged[b]
        first_wrong = int(offset[b] + np.argmax(is_wrong))
        element = first_wrong
        if variant.elements is not None:
            element = variant.elements[first_wrong]
        raise PlanError(
            f"{where}: element {element}, column {column} is {indices[first_wrong]}, but "
            f"its block stages {n_staged[b]} points"
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
