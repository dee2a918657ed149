"""The steps in their order: topology, locality, blocks, grouping, colours, plan; nothing else.

``prepare`` is the one entrance. Every step is a function of arrays in a folder of its own; only
this module knows them all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.loops import Loop
from meshprep_runtime.maps import SetMap
from meshprep_runtime.plan import LoopPlan, Plan, Variant

from . import metrics
from .colour import sort_by_colour
from .geometry import centroids
from .incidence import stack
from .loops import LoopRequest, LoopSpec, default_request, resolve, simple_request
from .mesh import Mesh
from .numbering import Numbering
from .partition import PARTITIONERS, BlockProblem, Blocks, partition
from .provenance import about
from .reorder import METHODS, LocalityProblem, group_points, keep_parts, locality_order, propagate
from .staging import StagingError, build_variant
from .topology import derive

STAGES = ("topology", "locality", "blocks and grouping", "colours and staging", "renumbering")
TARGETS = ("gpu", "cpu")
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Options:
    """What can be chosen; the defaults suit a GPU.

    Parameters
    ----------
    method : str
        Locality order: a name in ``reorder.METHODS``.
    partition : str or None
        A name in ``partition.PARTITIONERS``; None takes the default, or ``contiguous`` where the
        loop's set has its order already.
    partition_options : mapping
        Options of the partitioner.
    block_size : int
        The largest number of elements in a block; a loop's own wins.
    target : str
        ``"gpu"`` or ``"cpu"``, recorded in the plan.
    sort_by_colour : bool
        Sort the elements of each block by thread colour (leading loops only).
    seed : int
    """

    method: str = "gps"
    partition: str | None = None
    partition_options: Mapping[str, Any] = field(default_factory=dict)
    block_size: int = 256
    target: str = "gpu"
    sort_by_colour: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("method", self.method, METHODS)
        check_choice("target", self.target, TARGETS)
        if self.partition is not None:
            check_choice("partitioner", self.partition, PARTITIONERS)
        if self.block_size < 1:
            raise MeshprepError(f"block size {self.block_size} must be at least 1")


DEFAULT_PARTITION = "metis"


@dataclass(frozen=True, eq=False)
class Prepared:
    """What comes out: the renumbered mesh as a file holds it, and the plan."""

    mesh: Mesh
    plan: Plan


def prepare(
    mesh: Mesh,
    loops: Sequence[LoopRequest | str] = (),
    options: Options | None = None,
    *,
    keep_order: bool = False,
    progress: Progress = lambda done, total, name: None,
) -> Prepared:
    """Find a numbering and a plan for these loops.

    Parameters
    ----------
    mesh : Mesh
    loops : sequence of LoopRequest or str
        ``"faces->cells"`` stands for one increment; none at all for the default loop. The first
        loop over a set decides the order of that set and of the sets it reaches.
    options : Options
    keep_order : bool
        Leave the order of the sets that the mesh file holds, and plan on top of it.
    progress : callable
        ``progress(done, total, name)`` is called before each stage.

    Raises
    ------
    MeshprepError
        On unknown names and on loops that do not fit the mesh.
    """
    options = options or Options()
    clock = _Clock(progress)
    with clock.stage("topology"):
        requests = [simple_request(r) if isinstance(r, str) else r for r in loops]
        full, specs = plan_request_maps(mesh, requests or [default_request(mesh)])
    numbering = Numbering(full, mesh.sets if keep_order else ())
    with clock.stage("locality"):
        locality = _order_for_locality(numbering, specs[0].loop, options)
    variants: dict[str, Variant] = {}
    for spec in specs:
        own = replace(options, **spec.options)
        with clock.stage("blocks and grouping"):
            cut = _cut(numbering, spec.loop, own)
        with clock.stage("colours and staging"):
            variants[spec.loop.name] = _colour(numbering, spec.loop, cut, own)
    with clock.stage("renumbering"):
        numbering.follow(propagate(full, numbering.settled()))
        plan = _assemble(mesh, numbering, specs, variants, options)
        measured = _measure(full, plan, locality) | {"seconds": clock.seconds}
    return Prepared(*_finish(mesh, plan, measured))


@dataclass(frozen=True, eq=False)
class _Cut:
    """The blocks of one loop in the settled order of its from-set."""

    block_offset: NDArray[np.int64]
    partitioner: str
    leads: bool
    notes: Mapping[str, Any]


def check_choice(what: str, value: str, known: Collection[str]) -> None:
    """Raise MeshprepError, listing the choices, unless the value is one of them."""
    if value not in known:
        raise MeshprepError(f"{what} '{value}' is unknown: use {', '.join(known)}")


class _Clock:
    """Tells the stages to the caller and adds up their seconds."""

    def __init__(self, progress: Progress) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self._progress = progress

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self._progress(STAGES.index(name), len(STAGES), name)
        start = time.perf_counter()
        yield
        self.seconds[name] = round(self.seconds[name] + time.perf_counter() - start, 4)


def plan_request_maps(mesh: Mesh, requests: Sequence[LoopRequest]) -> tuple[Mesh, list[LoopSpec]]:
    """The mesh with every map the loops need, and the loops checked against it."""
    names = dict.fromkeys(name for r in requests for name in r.maps)
    # A solver that loops over interior facets needs the boundary ones too, in the same numbering.
    for facets in ("faces", "edges"):
        if f"{facets}->cells" in names and f"{facets}->cells" not in mesh.maps:
            names[f"boundary_{facets}->cells"] = None
    full = derive(mesh, names)
    return full, resolve(requests, full)


def _order_for_locality(
    numbering: Numbering, loop: Loop, options: Options
) -> dict[str, Any] | None:
    """Order the points of the leading map, and let every other set follow."""
    if loop.leading_map is None:
        return None
    leading = numbering.map(loop.leading_map)
    points, size = leading.to_set, numbering.mesh.size(leading.to_set)
    if numbering.is_settled(points):
        numbering.follow(propagate(numbering.mesh, numbering.settled()))
        return None
    problem = LocalityProblem(leading.table, size, centroids(numbering.mesh, points))
    found = locality_order(problem, options.method)
    parts = [numbering.mesh.size(p) for p in numbering.leaves(points)]
    numbering.move(points, keep_parts(found.ordering.new_to_old, parts), settle=False)
    known = {leaf: numbering.ordering(leaf) for leaf in numbering.leaves(points)}
    numbering.follow(propagate(numbering.mesh, known | numbering.settled()))
    return {
        "set": points,
        "method": options.method,
        "applied": found.applied,
        "reason": found.reason,
        "before": asdict(found.before),
        "after": asdict(found.after),
    }


def _cut(numbering: Numbering, loop: Loop, options: Options) -> _Cut:
    """Cut a loop into blocks; the first loop over a set orders that set and what it reaches."""
    asked = options.partition
    leads = not numbering.is_settled(loop.over)
    if not leads and asked not in (None, "contiguous"):
        raise MeshprepError(
            f"loop '{loop.name}': set '{loop.over}' has its order already, so its blocks can only "
            f"be contiguous, not '{asked}': leave the partitioner out, or name this loop first"
        )
    name = asked or (DEFAULT_PARTITION if leads and loop.maps else "contiguous")
    blocks = _partition(numbering, loop, name, options)
    if leads:
        numbering.move(loop.over, blocks.new_to_old, settle=True)
    _group(numbering, loop, blocks.block_offset)
    return _Cut(blocks.block_offset, name, leads, blocks.notes)


def _partition(numbering: Numbering, loop: Loop, name: str, options: Options) -> Blocks:
    """Blocks of each part of the from-set on its own, so that no block mixes cell types."""
    mesh = numbering.mesh
    maps = [numbering.map(m) for m in loop.maps]
    n = mesh.size(loop.over)
    table, n_points = np.empty((n, 0), np.int32), 0
    if maps:
        table, n_points = stack([m.table for m in maps], [mesh.size(m.to_set) for m in maps])
    where = centroids(mesh, loop.over)
    where = None if where is None else numbering.ordering(loop.over).apply(where)
    base, orders, offsets = 0, [], [np.zeros(1, np.int64)]
    notes: dict[str, Any] = {}
    for leaf in numbering.leaves(loop.over):
        rows = slice(base, base + mesh.size(leaf))
        problem = BlockProblem(
            table=table[rows],
            n_points=n_points,
            block_size=options.block_size,
            coordinates=None if where is None else where[rows],
            seed=options.seed,
        )
        blocks = partition(problem, name, options.partition_options)
        orders.append(blocks.new_to_old + np.int32(base))
        offsets.append(blocks.block_offset[1:] + base)
        notes |= blocks.notes
        base = rows.stop
    return Blocks(np.concatenate(orders), np.concatenate(offsets), notes)


def _group(numbering: Numbering, loop: Loop, block_offset: NDArray[np.int64]) -> None:
    """Order every set that the loop reaches by the blocks that use it [S19 2.3.2]."""
    mesh = numbering.mesh
    for points in dict.fromkeys(mesh.map(m).to_set for m in loop.maps):
        if numbering.is_settled(points):
            continue
        tables = [numbering.map(m).table for m in loop.maps if mesh.map(m).to_set == points]
        order = group_points(np.hstack(tables), mesh.size(points), block_offset)
        parts = [mesh.size(p) for p in numbering.leaves(points)]
        numbering.move(points, keep_parts(order, parts), settle=True)


def _colour(numbering: Numbering, loop: Loop, cut: _Cut, options: Options) -> Variant:
    mesh = numbering.mesh
    variant = build_variant(
        loop,
        {m: numbering.map(m) for m in loop.maps},
        {name: s.size for name, s in mesh.sets.items()},
        mesh.size(loop.over),
        cut.block_offset,
        block_size=options.block_size,
        target=options.target,
        partitioner=cut.partitioner,
    )
    if not (options.sort_by_colour and cut.leads):
        return variant
    order = sort_by_colour(variant.thread_colour, variant.block_offset)
    numbering.move(loop.over, order, settle=True)
    return replace(
        variant,
        sorted_by_colour=True,
        thread_colour=variant.thread_colour[order],
        local={name: np.ascontiguousarray(t[:, order]) for name, t in variant.local.items()},
    )


def _assemble(
    mesh: Mesh,
    numbering: Numbering,
    specs: Sequence[LoopSpec],
    variants: Mapping[str, Variant],
    options: Options,
) -> Plan:
    full = numbering.mesh
    wanted = dict.fromkeys(m for s in specs for m in s.loop.maps)
    wanted |= dict.fromkeys(m for m in full.maps if m.startswith("boundary_"))
    maps = {name: numbering.map(name) for name in wanted}
    sizes = {name: s.size for name, s in full.sets.items()}
    loops = {}
    for spec in specs:
        loop, variant = spec.loop, variants[spec.loop.name]
        own = {m: maps[m] for m in loop.maps}
        loops[loop.name] = LoopPlan(loop, sizes, own, {variant.name: variant}, variant.name)
    ordering = numbering.all()
    return Plan(
        sizes=sizes,
        ordering=ordering,
        maps=maps,
        loops=loops,
        source_hash=mesh.content_hash(),
        mesh_hash="",
        options=asdict(options),
        about=about(),
        tags=_derived_tags(mesh, full, ordering),
    )


def _derived_tags(
    mesh: Mesh, full: Mesh, ordering: Mapping[str, Any]
) -> dict[str, dict[str, NDArray]]:
    """Groups of the boundary facets, and the numbers the file gave its elements, in new order."""
    tags: dict[str, dict[str, NDArray]] = {}
    for tag in full.tags:
        if tag.set not in mesh.sets:
            values = ordering[tag.set].apply(tag.first_ids())
            tags.setdefault(tag.set, {})[tag.name] = values
    for dat in mesh.dats:
        if dat.name == "label":
            tags.setdefault(dat.set, {})["label"] = ordering[dat.set].apply(dat.values)
    return tags


def _measure(full: Mesh, plan: Plan, locality: dict[str, Any] | None) -> dict[str, Any]:
    """Figures of every loop: its input order cut into chunks, and the plan."""
    loops = {}
    for name, loop_plan in plan.loops.items():
        variant = loop_plan.variant()
        maps = {m: full.map(m) for m in loop_plan.loop.maps}
        before = _baseline(loop_plan.loop, maps, plan.sizes, variant.block_size)
        after = metrics.measure(loop_plan, variant)
        loops[name] = {variant.name: {"before": before, "after": after}}
    return {"locality": locality, "loops": loops}


def _baseline(
    loop: Loop, maps: Mapping[str, SetMap], sizes: Mapping[str, int], block_size: int
) -> dict[str, Any] | None:
    """The figures of the input order; None where its blocks are too scattered to be staged."""
    try:
        return metrics.baseline(loop, maps, sizes, block_size)
    except StagingError:
        return None


def _finish(mesh: Mesh, plan: Plan, measured: Mapping[str, Any]) -> tuple[Mesh, Plan]:
    """Renumber what the file holds; its elements are then numbered 1..n in the new order."""
    ordering = {name: plan.ordering[name] for name in mesh.sets}
    moved = {name for name, order in ordering.items() if not order.is_identity}
    kept = [d for d in mesh.dats if d.name != "label" or d.set not in moved]
    bare = Mesh(mesh.sets.values(), mesh.maps.values(), kept, mesh.tags, mesh.lists, mesh.extras)
    new = bare.renumber(ordering)
    return new, replace(plan, mesh_hash=new.content_hash(), metrics=measured)
