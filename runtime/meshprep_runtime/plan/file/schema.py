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
from ..tuned import Tuned
from .tree import Tree, checked_name

if TYPE_CHECKING:
    from ..matrices import MatrixPlan

DOCUMENTS = ("about", "metrics", "options")
TUNED, RANGES, ELEMENTS = "tuned", "ranges", "elements"
GROUP_NAMES, FURTHER = "/group_names", "/further_groups"
COORDINATES, EXTENSIONS, MATRICES = "coordinates", "/extensions", "/matrices"


def to_tree(plan: PlanContent) -> Tree:
    """The plan as groups and datasets; raises PlanError for names that a file cannot hold."""
    tree = Tree()
    _put_sets(tree, plan)
    tree.group("/maps")
    for i, m in enumerate(plan.maps.values()):
        path = tree.group(
            f"/maps/{checked_name(m.name)}", from_set=m.from_set, to_set=m.to_set, position=i
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
    for name in DOCUMENTS:
        tree.datasets[f"/{name}"] = _to_json(name, getattr(plan, name))
    return tree


def from_tree(tree: Tree) -> PlanContent:
    """The plan that a tree holds; raises PlanError when something is missing or misshapen."""
    sizes = {name: tree.number(f"/mesh/{name}", "size") for name in tree.children("/mesh")}
    maps = {name: _get_map(tree, name) for name in tree.children("/maps")}
    loops = {name: _get_loop(tree, name, sizes, maps) for name in tree.children("/loops")}
    matrices = {name: _get_matrix(tree, name) for name in tree.children(MATRICES)}
    if matrices:
        for name, p in loops.items():
            own = {a.name: matrices[a.name] for a in p.loop.matrices if a.name in matrices}
            loops[name] = replace(p, matrices=own)
    return PlanContent(
        sizes=sizes,
        ordering={n: _get_ordering(tree, n) for n in _by(sizes, tree, "/ordering")},
        maps=maps,
        loops=loops,
        source_hash=tree.text("/mesh", "source_hash"),
        mesh_hash=tree.text("/mesh", "mesh_hash"),
        tags={name: _get_tags(tree, name) for name in _by(sizes, tree, "/tags")},
        metrics=_get_metrics(tree, loops),
        options=_from_json(tree, "options"),
        about=_from_json(tree, "about"),
        group_names={name: _get_names(tree, name) for name in _by(sizes, tree, GROUP_NAMES)},
        further_groups={n: _get_tags(tree, n, FURTHER, 2) for n in _by(sizes, tree, FURTHER)},
        coordinates={
            name: tree.array(path, "<f8", ndim=2)
            for name in sizes
            if (path := f"/mesh/{name}/{COORDINATES}") in tree.datasets
        },
        extensions={n: tree.under(f"{EXTENSIONS}/{n}") for n in tree.children(EXTENSIONS)},
        matrices=matrices,
    )


def _put_sets(tree: Tree, plan: PlanContent) -> None:
    tree.group("/mesh", source_hash=plan.source_hash, mesh_hash=plan.mesh_hash)
    for i, (name, size) in enumerate(plan.sizes.items()):
        path = tree.group(f"/mesh/{checked_name(name)}", size=int(size), position=i)
        if name in plan.coordinates:
            tree.datasets[f"{path}/{COORDINATES}"] = plan.coordinates[name]
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
            lines = [f"{number} {own}" for number, own in names.items()]
            tree.datasets[f"{path}/{checked_name(tag)}"] = "\n".join(lines)


def _put_tags(tree: Tree, where: str, by_set: Mapping[str, Mapping[str, NDArray[Any]]]) -> None:
    for name, tags in by_set.items():
        tree.group(where)
        path = tree.group(f"{where}/{checked_name(name)}")
        for tag, values in tags.items():
            tree.datasets[f"{path}/{checked_name(tag)}"] = values


def _put_matrices(tree: Tree, plan: PlanContent) -> None:
    tree.group(MATRICES)
    for i, matrix in enumerate(plan.matrices.values()):
        path, sets = f"{MATRICES}/{checked_name(matrix.name)}", (matrix.row_set, matrix.column_set)
        tree.group(path, row_set=sets[0], column_set=sets[1], position=i)
        for name in [*MATRIX_ARRAYS] if sets[0] == sets[1] else [*MATRIX_ARRAYS, "column_of"]:
            tree.datasets[f"{path}/{name}"] = getattr(matrix, name)
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
    if loop_plan.tuned:
        tree.datasets[f"{path}/{TUNED}"] = json.dumps(to_json(loop_plan.tuned))
    if loop_plan.ranges is not None:
        tree.group(f"{path}/{RANGES}")
        for name in RANGE_ARRAYS:
            tree.datasets[f"{path}/{RANGES}/{name}"] = getattr(loop_plan.ranges, name)
    for i, variant in enumerate(loop_plan.variants.values()):
        if variant.name in (TUNED, RANGES):
            raise PlanError(f"{path}: '{variant.name}' is no name for a variant")
        _put_variant(tree, f"{path}/{checked_name(variant.name)}", loop_plan, variant, i)


RANGE_ARRAYS = {"offset": "<i8", "order": "<i4", "wait_offset": "<i8", "waits": "<i4"}
MATRIX_ARRAYS = {"row_of": "<i4", "row_ptr": "<i8", "columns": "<i4"}
BLOCK_ARRAYS = {
    "block_offset": ("<i8",),
    "block_colour_offset": ("<i8",),
    "block_order": ("<i4",),
    "thread_colour": ("|u1", "<u2"),
    "thread_colours": ("<i4",),
}


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
    for map_name in loop_plan.loop.maps:
        to_set = loop_plan.maps[map_name].to_set
        staging, place = variant.staging[to_set], f"{path}/staging/{checked_name(to_set)}"
        tree.group(place)
        tree.datasets |= {f"{place}/{k}": array for k, array in staging_arrays(staging).items()}
        tree.datasets[f"{path}/local/{checked_name(map_name)}"] = variant.local[map_name]


def staging_arrays(staging: Staging) -> dict[str, NDArray[Any]]:
    """The arrays of a staging list as a file has them."""
    exclusive = staging.exclusive.view(np.uint8)
    return {k: getattr(staging, k) for k in ("point_offset", "points")} | {"exclusive": exclusive}


def _get_ordering(tree: Tree, name: str) -> Ordering:
    path = f"/ordering/{name}"
    return Ordering(*(tree.array(f"{path}/{k}", "<i4") for k in ("new_to_old", "old_to_new")))


def _get_tags(tree: Tree, name: str, where: str = "/tags", ndim: int = 1) -> Mapping[str, Int64s]:
    path = f"{where}/{name}"
    return {tag: tree.array(f"{path}/{tag}", "<i8", ndim=ndim) for tag in tree.leaves(path)}


def _get_names(tree: Tree, name: str) -> Mapping[str, Mapping[int, str]]:
    path = f"{GROUP_NAMES}/{name}"
    return {tag: _names_of(tree.document(f"{path}/{tag}"), path) for tag in tree.leaves(path)}


def _names_of(text: str, path: str) -> Mapping[int, str]:
    """The names of groups, of a text that has a line for each: number, blank, name."""
    found = [re.fullmatch(r"(-?[0-9]{1,19}) (.*)", line, re.DOTALL) for line in text.split("\n")]
    names = {int(line[1]): line[2] for line in found if line}
    if None in found or any(not -(2**63) <= number < 2**63 for number in names):
        raise PlanError(f"{path} is not a line for each group: its number, a blank, its name")
    return names


def _get_map(tree: Tree, name: str) -> SetMap:
    path = f"/maps/{name}"
    table = tree.array(f"{path}/table", "<i4", ndim=2)
    return SetMap(name, tree.text(path, "from_set"), tree.text(path, "to_set"), table)


def _get_matrix(tree: Tree, name: str) -> "MatrixPlan":
    from ..matrices import MatrixPlan

    path = f"{MATRICES}/{name}"
    row_set, column_set = tree.text(path, "row_set"), tree.text(path, "column_set")
    row_of, row_ptr, columns = (tree.array(f"{path}/{k}", t) for k, t in MATRIX_ARRAYS.items())
    column_of = row_of
    if row_set != column_set:
        column_of = tree.array(f"{path}/column_of", "<i4")
    loops = tree.leaves(f"{path}/place")
    place = {loop: tree.array(f"{path}/place/{loop}", "<i4", ndim=2) for loop in loops}
    return MatrixPlan(name, row_set, column_set, row_of, column_of, row_ptr, columns, place)


def _get_loop(
    tree: Tree, name: str, sizes: Mapping[str, int], maps: Mapping[str, SetMap]
) -> LoopPlan:
    path = f"/loops/{name}"
    words = {"over": tree.text(path, "over"), "args": json.loads(tree.text(path, "arguments"))}
    loop = loop_from_dict(name, words, path)
    missing = [m for m in loop.maps if m not in maps]
    if missing:
        raise PlanError(f"{path} uses map '{missing[0]}', which the plan does not have")
    own = {m: maps[m] for m in loop.maps}
    names = [v for v in tree.children(path) if v != RANGES]
    variants = {v: _get_variant(tree, f"{path}/{v}", v, loop, own) for v in names}
    tuned = tree.records(f"{path}/{TUNED}", Tuned)
    ranges, at = None, f"{path}/{RANGES}"
    if at in tree.groups:
        ranges = Ranges(**{n: tree.array(f"{at}/{n}", kind) for n, kind in RANGE_ARRAYS.items()})
    default = tree.text(path, "default")
    return LoopPlan(loop, sizes, own, variants, default, tuned, ranges=ranges)


def _get_metrics(tree: Tree, loops: Mapping[str, LoopPlan]) -> Metrics:
    """The figures, of loops and variants that the plan has."""
    found = from_json(Metrics, _from_json(tree, "metrics"), "metrics")
    for name, loop in found.loops.items():
        known = loops[name].variants if name in loops else {}
        if not loop.variants or not loop.variants.keys() <= known.keys():
            raise wrong_figures(f"metrics/loops/{name} does not match the variants of a loop")
    return found


def _get_variant(
    tree: Tree, path: str, name: str, loop: Loop, maps: Mapping[str, SetMap]
) -> Variant:
    found: dict[str, Any] = {k: tree.array(f"{path}/{k}", *t) for k, t in BLOCK_ARRAYS.items()}
    if f"{path}/{ELEMENTS}" in tree.datasets:
        found[ELEMENTS] = tree.array(f"{path}/{ELEMENTS}", "<i4")
    to_sets = dict.fromkeys(m.to_set for m in maps.values())
    return Variant(
        name=name,
        block_size=tree.number(path, "block_size"),
        target=tree.text(path, "target"),
        partitioner=tree.text(path, "partitioner"),
        sorted_by_colour=bool(tree.number(path, "sorted_by_colour")),
        local={m: tree.array(f"{path}/local/{m}", "<u2", ndim=2) for m in loop.maps},
        staging={s: _get_staging(tree, f"{path}/staging/{s}") for s in to_sets},
        **found,
    )


def _get_staging(tree: Tree, path: str) -> Staging:
    exclusive = tree.array(f"{path}/exclusive", "|u1")
    if exclusive.size and exclusive.max() > 1:
        raise PlanError(f"{path}/exclusive holds something else than 0 and 1")
    offset, points = tree.array(f"{path}/point_offset", "<i8"), tree.array(f"{path}/points", "<i4")
    return Staging(offset, points, exclusive.view(np.bool_))


def _by(sizes: Mapping[str, int], tree: Tree, path: str) -> list[str]:
    """The groups under ``path`` in the order of the sets; sets that are not there come last."""
    order = {name: i for i, name in enumerate(sizes)}
    return sorted(tree.children(path), key=lambda name: order.get(name, len(order)))


def _to_json(what: str, values: Mapping[str, Any] | Metrics) -> str:
    try:
        return json.dumps(to_json(values), default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise PlanError(f"the plan's {what} cannot be stored as JSON: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _from_json(tree: Tree, name: str) -> Mapping[str, Any]:
    values = json.loads(tree.document(f"/{name}"))
    if not isinstance(values, dict):
        raise PlanError(f"/{name} is no JSON object")
    return values
