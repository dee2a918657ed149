"""A plan as a tree of groups and datasets, and back: docs/plan-format.md in code."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import PlanError
from ...types.loops import Loop, loop_from_dict
from ...types.maps import Int64s, SetMap
from ...types.ordering import Ordering
from ..metrics import Metrics
from ..model import LoopPlan, PlanContent, Ranges, Staging, Variant
from ..records import from_json, to_json, wrong_figures
from ..tuned import ProductThreads, Tuned
from .tree import Tree, checked_name

if TYPE_CHECKING:
    from ..matrices import MatrixPlan

# Datasets that are JSON, each an attribute of the plan.
DOCUMENTS = ("about", "metrics", "options")
# Names of datasets and groups that only some plans have: in the group of a loop, the first
# in that of a matrix, too,
TUNED = "tuned"
RANGES = "ranges"
# of a variant,
ELEMENTS = "elements"
# of a set,
COORDINATES = "coordinates"
# and in the root.
GROUP_NAMES = "/group_names"
FURTHER = "/further_groups"
EXTENSIONS = "/extensions"
MATRICES = "/matrices"
# The dtypes of the arrays of ranges, of matrices and of variants.
RANGE_ARRAYS = {
    "offset": "<i8",
    "order": "<i4",
    "wait_offset": "<i8",
    "waits": "<i4",
}
MATRIX_ARRAYS = {
    "row_of": "<i4",
    "row_ptr": "<i8",
    "columns": "<i4",
}
BLOCK_ARRAYS = {
    "block_offset": ("<i8",),
    "block_colour_offset": ("<i8",),
    "block_order": ("<i4",),
    "thread_colour": ("|u1", "<u2"),
    "thread_colours": ("<i4",),
}


def to_tree(plan: PlanContent) -> Tree:
    """The plan as a tree; raises PlanError for names that a file cannot hold."""
    tree = Tree()
    # Positions keep the sequence of maps and loops, since groups are sorted by name.
    _put_sets(tree, plan)
    tree.group("/maps")
    for i, m in enumerate(plan.maps.values()):
        path = tree.group(
            f"/maps/{checked_name(m.name)}",
            from_set=m.from_set,
            to_set=m.to_set,
            position=i,
        )
        tree.datasets[f"{path}/table"] = m.table
    if plan.matrices:
        _put_matrices(tree, plan)
    tree.group("/loops")
    for i, loop_plan in enumerate(plan.loops.values()):
        _put_loop(tree, loop_plan, i)
    for name, inner in plan.extensions.items():
        tree.group(EXTENSIONS)
        tree.graft(f"{EXTENSIONS}/{checked_name(name)}", inner)
    # Figures and options are documents of JSON, which readers may skip.
    for name in DOCUMENTS:
        tree.datasets[f"/{name}"] = _json_text(name, getattr(plan, name))
    return tree


def from_tree(tree: Tree) -> PlanContent:
    """The plan in a tree; raises PlanError when something is missing or misshapen."""
    # Read sets and maps first: loops and matrices are read by them.
    sizes = {name: tree.number(f"/mesh/{name}", "size") for name in tree.children("/mesh")}
    maps = {name: _get_map(tree, name) for name in tree.children("/maps")}
    loops = {}
    for name in tree.children("/loops"):
        loops[name] = _get_loop(tree=tree, name=name, sizes=sizes, maps=maps)
    matrices = {name: _get_matrix(tree, name) for name in tree.children(MATRICES)}
    if matrices:
        for name, loop_plan in loops.items():
            loops[name] = _with_matrices(loop_plan, matrices)

    # Read what belongs to sets, in the order of the sets.
    ordering = {}
    for name in _groups_of_sets(tree, "/ordering", sizes):
        ordering[name] = _get_ordering(tree, name)
    tags = {}
    for name in _groups_of_sets(tree, "/tags", sizes):
        tags[name] = _get_tags(tree, f"/tags/{name}", ndim=1)
    further_groups = {}
    for name in _groups_of_sets(tree, FURTHER, sizes):
        further_groups[name] = _get_tags(tree, f"{FURTHER}/{name}", ndim=2)
    group_names = {}
    for name in _groups_of_sets(tree, GROUP_NAMES, sizes):
        group_names[name] = _get_group_names(tree, name)
    coordinates = {}
    for name in sizes:
        path = f"/mesh/{name}/{COORDINATES}"
        if path in tree.datasets:
            coordinates[name] = tree.array(path, "<f8", ndim=2)

    extensions = {}
    for name in tree.children(EXTENSIONS):
        extensions[name] = tree.under(f"{EXTENSIONS}/{name}")
    return PlanContent(
        sizes=sizes,
        ordering=ordering,
        maps=maps,
        loops=loops,
        source_hash=tree.text("/mesh", "source_hash"),
        mesh_hash=tree.text("/mesh", "mesh_hash"),
        tags=tags,
        metrics=_get_metrics(tree, loops),
        options=_json_object(tree, "options"),
        about=_json_object(tree, "about"),
        group_names=group_names,
        further_groups=further_groups,
        coordinates=coordinates,
        extensions=extensions,
        matrices=matrices,
    )


def _with_matrices(loop_plan: LoopPlan, matrices: Mapping[str, "MatrixPlan"]) -> LoopPlan:
    """The plan of a loop with the matrices that it adds to."""
    matrices_of_loop = {}
    for arg in loop_plan.loop.matrices:
        if arg.name in matrices:
            matrices_of_loop[arg.name] = matrices[arg.name]
    return replace(loop_plan, matrices=matrices_of_loop)


def _put_sets(tree: Tree, plan: PlanContent) -> None:
    tree.group("/mesh", source_hash=plan.source_hash, mesh_hash=plan.mesh_hash)
    for i, (name, size) in enumerate(plan.sizes.items()):
        path = tree.group(f"/mesh/{checked_name(name)}", size=int(size), position=i)
        if name in plan.coordinates:
            tree.datasets[f"{path}/{COORDINATES}"] = plan.coordinates[name]
    # Store both directions of an order, so that readers need not invert it.
    tree.group("/ordering")
    for name, ordering in plan.ordering.items():
        path = tree.group(f"/ordering/{checked_name(name)}")
        tree.datasets[f"{path}/new_to_old"] = ordering.new_to_old
        tree.datasets[f"{path}/old_to_new"] = ordering.old_to_new
    tree.group("/tags")
    _put_tags(tree, "/tags", plan.tags)
    _put_tags(tree, FURTHER, plan.further_groups)
    for name, named in plan.group_names.items():
        tree.group(GROUP_NAMES)
        path = tree.group(f"{GROUP_NAMES}/{checked_name(name)}")
        for tag, names in named.items():
            lines = [f"{number} {group_name}" for number, group_name in names.items()]
            tree.datasets[f"{path}/{checked_name(tag)}"] = "\n".join(lines)


def _put_tags(
    tree: Tree, where: str, by_set: Mapping[str, Mapping[str, NDArray[Any]]]
) -> None:
    for name, tags in by_set.items():
        tree.group(where)
        path = tree.group(f"{where}/{checked_name(name)}")
        for tag, values in tags.items():
            tree.datasets[f"{path}/{checked_name(tag)}"] = values


def _put_matrices(tree: Tree, plan: PlanContent) -> None:
    tree.group(MATRICES)
    for i, matrix in enumerate(plan.matrices.values()):
        path = f"{MATRICES}/{checked_name(matrix.name)}"
        tree.group(path, row_set=matrix.row_set, column_set=matrix.column_set, position=i)
        for name in MATRIX_ARRAYS:
            tree.datasets[f"{path}/{name}"] = getattr(matrix, name)
        # Of a square matrix, rows and columns have the same numbers.
        if matrix.row_set != matrix.column_set:
            tree.datasets[f"{path}/column_of"] = matrix.column_of
        if matrix.tuned:
            tree.datasets[f"{path}/{TUNED}"] = json.dumps(to_json(matrix.tuned))
        tree.group(f"{path}/place")
        for loop, place in matrix.place.items():
            tree.datasets[f"{path}/place/{checked_name(loop)}"] = place


def _put_loop(tree: Tree, loop_plan: LoopPlan, position: int) -> None:
    loop = loop_plan.loop
    path = tree.group(
        f"/loops/{checked_name(loop.name)}",
        over=loop.over,
        arguments=json.dumps(loop.to_dict()["args"]),
        default=loop_plan.default,
        position=position,
    )
    # Store what was measured, and the ranges for threads, where there are any.
    if loop_plan.tuned:
        tree.datasets[f"{path}/{TUNED}"] = json.dumps(to_json(loop_plan.tuned))
    if loop_plan.ranges is not None:
        tree.group(f"{path}/{RANGES}")
        for name in RANGE_ARRAYS:
            tree.datasets[f"{path}/{RANGES}/{name}"] = getattr(loop_plan.ranges, name)
    # Variants are groups beside the tuned entries and the ranges.
    for i, variant in enumerate(loop_plan.variants.values()):
        if variant.name in (TUNED, RANGES):
            raise PlanError(f"{path}: '{variant.name}' is no name for a variant")
        _put_variant(
            tree=tree,
            path=f"{path}/{checked_name(variant.name)}",
            loop_plan=loop_plan,
            variant=variant,
            position=i,
        )


def _put_variant(
    tree: Tree, path: str, loop_plan: LoopPlan, variant: Variant, position: int
) -> None:
    tree.group(
        path,
        block_size=int(variant.block_size),
        target=variant.target,
        partitioner=variant.partitioner,
        sorted_by_colour=int(variant.sorted_by_colour),
        position=position,
    )
    for name in BLOCK_ARRAYS:
        tree.datasets[f"{path}/{name}"] = getattr(variant, name)
    if variant.elements is not None:
        tree.datasets[f"{path}/{ELEMENTS}"] = variant.elements
    tree.group(f"{path}/staging")
    tree.group(f"{path}/local")
    # Maps into one set share its staging list.
    for map_name in loop_plan.loop.maps:
        to_set = loop_plan.maps[map_name].to_set
        staging_path = f"{path}/staging/{checked_name(to_set)}"
        tree.group(staging_path)
        for name, values in staging_arrays(variant.staging[to_set]).items():
            tree.datasets[f"{staging_path}/{name}"] = values
        tree.datasets[f"{path}/local/{checked_name(map_name)}"] = variant.local[map_name]


def staging_arrays(staging: Staging) -> dict[str, NDArray[Any]]:
    """The arrays of a staging list as a file has them."""
    return {
        "point_offset": staging.point_offset,
        "points": staging.points,
        "exclusive": staging.exclusive.view(np.uint8),
    }


def _get_ordering(tree: Tree, name: str) -> Ordering:
    path = f"/ordering/{name}"
    return Ordering(
        new_to_old=tree.array(f"{path}/new_to_old", "<i4"),
        old_to_new=tree.array(f"{path}/old_to_new", "<i4"),
    )


def _get_tags(tree: Tree, path: str, ndim: int) -> Mapping[str, Int64s]:
    return {tag: tree.array(f"{path}/{tag}", "<i8", ndim=ndim) for tag in tree.leaves(path)}


def _get_group_names(tree: Tree, set_name: str) -> Mapping[str, Mapping[int, str]]:
    path = f"{GROUP_NAMES}/{set_name}"
    names = {}
    for tag in tree.leaves(path):
        names[tag] = _parse_group_names(tree.document(f"{path}/{tag}"), path)
    return names


def _parse_group_names(text: str, path: str) -> Mapping[int, str]:
    """The names of groups by number, from a line for each: number, blank, name."""
    names = {}
    for line in text.split("\n"):
        match = re.fullmatch(r"(-?[0-9]{1,19}) (.*)", line, re.DOTALL)
        # Numbers of groups are stored as int64.
        if match is None or not -(2**63) <= int(match[1]) < 2**63:
            raise PlanError(
                f"{path} is not a line for each group: its number, a blank, its name"
            )
        names[int(match[1])] = match[2]
    return names


def _get_map(tree: Tree, name: str) -> SetMap:
    path = f"/maps/{name}"
    table = tree.array(f"{path}/table", "<i4", ndim=2)
    return SetMap(
        name=name,
        from_set=tree.text(path, "from_set"),
        to_set=tree.text(path, "to_set"),
        table=table,
    )


def _get_matrix(tree: Tree, name: str) -> "MatrixPlan":
    from ..matrices import MatrixPlan

    path = f"{MATRICES}/{name}"
    row_set = tree.text(path, "row_set")
    column_set = tree.text(path, "column_set")
    arrays = {}
    for array_name, dtype in MATRIX_ARRAYS.items():
        arrays[array_name] = tree.array(f"{path}/{array_name}", dtype)
    # Of a square matrix, rows and columns have the same numbers.
    column_of = arrays["row_of"]
    if row_set != column_set:
        column_of = tree.array(f"{path}/column_of", "<i4")
    # Each loop that adds to the matrix has the places of its entries.
    entries_of_loop = {}
    for loop in tree.leaves(f"{path}/place"):
        entries_of_loop[loop] = tree.array(f"{path}/place/{loop}", "<i4", ndim=2)
    return MatrixPlan(
        name=name,
        row_set=row_set,
        column_set=column_set,
        row_of=arrays["row_of"],
        column_of=column_of,
        row_ptr=arrays["row_ptr"],
        columns=arrays["columns"],
        place=entries_of_loop,
        tuned=list(tree.records(f"{path}/{TUNED}", ProductThreads)),
    )


def _get_loop(
    tree: Tree, name: str, sizes: Mapping[str, int], maps: Mapping[str, SetMap]
) -> LoopPlan:
    path = f"/loops/{name}"
    words = {
        "over": tree.text(path, "over"),
        "args": json.loads(tree.text(path, "arguments")),
    }
    loop = loop_from_dict(name, words, path)
    # A loop names its maps; their tables stand once in the file.
    missing = [m for m in loop.maps if m not in maps]
    if missing:
        raise PlanError(f"{path} uses map '{missing[0]}', which the plan does not have")
    maps_of_loop = {m: maps[m] for m in loop.maps}
    # Variants stand beside the ranges.
    variants = {}
    for variant_name in tree.children(path):
        if variant_name != RANGES:
            variants[variant_name] = _get_variant(
                tree=tree,
                path=f"{path}/{variant_name}",
                name=variant_name,
                loop=loop,
                maps=maps_of_loop,
            )
    return LoopPlan(
        loop=loop,
        sizes=sizes,
        maps=maps_of_loop,
        variants=variants,
        tuned=tree.records(f"{path}/{TUNED}", Tuned),
        ranges=_get_ranges(tree, f"{path}/{RANGES}"),
        default=tree.text(path, "default"),
    )


def _get_ranges(tree: Tree, path: str) -> Ranges | None:
    """The ranges of a loop; None in a file of an older version."""
    if path not in tree.groups:
        return None
    arrays = {}
    for name, dtype in RANGE_ARRAYS.items():
        arrays[name] = tree.array(f"{path}/{name}", dtype)
    return Ranges(**arrays)


def _get_metrics(tree: Tree, loops: Mapping[str, LoopPlan]) -> Metrics:
    """The figures; raises PlanError for those of loops and variants that are not there."""
    metrics = from_json(Metrics, _json_object(tree, "metrics"), "metrics")
    for name, loop_metrics in metrics.loops.items():
        variants: Mapping[str, Variant] = {}
        if name in loops:
            variants = loops[name].variants
        names = loop_metrics.variants.keys()
        if not names or not names <= variants.keys():
            raise wrong_figures(
                f"metrics/loops/{name} does not match the variants of a loop"
            )
    return metrics


def _get_variant(
    tree: Tree, path: str, name: str, loop: Loop, maps: Mapping[str, SetMap]
) -> Variant:
    arrays: dict[str, Any] = {}
    for array_name, dtypes in BLOCK_ARRAYS.items():
        arrays[array_name] = tree.array(f"{path}/{array_name}", *dtypes)
    if f"{path}/{ELEMENTS}" in tree.datasets:
        arrays[ELEMENTS] = tree.array(f"{path}/{ELEMENTS}", "<i4")
    # Maps into one set share a staging list: read it once.
    to_sets = dict.fromkeys(m.to_set for m in maps.values())
    return Variant(
        name=name,
        block_size=tree.number(path, "block_size"),
        target=tree.text(path, "target"),
        partitioner=tree.text(path, "partitioner"),
        sorted_by_colour=bool(tree.number(path, "sorted_by_colour")),
        local={m: tree.array(f"{path}/local/{m}", "<u2", ndim=2) for m in loop.maps},
        staging={s: _get_staging(tree, f"{path}/staging/{s}") for s in to_sets},
        **arrays,
    )


def _get_staging(tree: Tree, path: str) -> Staging:
    exclusive = tree.array(f"{path}/exclusive", "|u1")
    if exclusive.size and exclusive.max() > 1:
        raise PlanError(f"{path}/exclusive holds something else than 0 and 1")
    offset = tree.array(f"{path}/point_offset", "<i8")
    points = tree.array(f"{path}/points", "<i4")
    return Staging(offset, points, exclusive.view(np.bool_))


def _groups_of_sets(tree: Tree, path: str, sizes: Mapping[str, int]) -> list[str]:
    """The groups under ``path`` in the order of the sets; names of no set come last."""
    order = {name: i for i, name in enumerate(sizes)}
    return sorted(tree.children(path), key=lambda name: order.get(name, len(order)))


def _json_text(name: str, values: Mapping[str, Any] | Metrics) -> str:
    try:
        return json.dumps(to_json(values), default=_from_numpy)
    except (TypeError, ValueError, RecursionError) as error:
        raise PlanError(f"the plan's {name} cannot be stored as JSON: {error}") from None


def _from_numpy(value: Any) -> Any:
    """Values of NumPy as those of Python."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _json_object(tree: Tree, name: str) -> Mapping[str, Any]:
    values = json.loads(tree.document(f"/{name}"))
    if not isinstance(values, dict):
        raise PlanError(f"/{name} is no JSON object")
    return values
