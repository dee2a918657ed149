"""The steps in their order: topology, locality, blocks, grouping, colours, plan; nothing else.

``prepare`` is the entrance for one plan; ``order`` and ``cut_and_colour`` are its two halves, for
those who make several plans of one order. ``draft`` and ``prove`` are those of the second, for
those who have something to do meanwhile. Every step is a function of arrays in a folder of its own;
only this module, :mod:`order`, :mod:`blocks` and :mod:`matrices` know them.
"""

import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any

import numpy as np

from meshprep_runtime.errors import MeshprepError, Progress
from meshprep_runtime.loop import show_options
from meshprep_runtime.plan import LoopPlan, Plan, Variant
from meshprep_runtime.plan.checks.verify import refuse_wrong
from meshprep_runtime.plan.metrics import (
    BeforeAfter,
    LoopMetrics,
    Metrics,
    OrderMetrics,
    PartitionMetrics,
    VariantMetrics,
)
from meshprep_runtime.plan.ranges import ranges_for
from meshprep_runtime.types.maps import SetMap
from meshprep_runtime.types.ordering import Ordering

from ..kernels import clock
from ..kernels.parallel import at_once, on_fewer_cores
from ..loops.options import Options as Options
from ..loops.requests import Loops, LoopSpec, as_requests, resolve
from ..mesh import Mesh
from ..mesh.model import UPPER_TRIANGULAR
from ..metrics import measures
from ..reorder import FOLLOW, propagate
from ..topology import derive, steps_of
from .blocks import colour, cut, wants_lists
from .matrices import build_matrices, input_reach
from .numbering import Numbering
from .order import Lead, go_by_cells, locality_metrics, order_for_locality, reached_leaves
from .variants import baseline, input_baselines

STAGES = ("topology", "locality", "blocks and grouping", "colours and staging", "figures", "proof")


@dataclass(frozen=True, eq=False)
class Prepared:
    """The result of :func:`prepare`: the renumbered mesh as a file holds it, and the plan.

    Parameters
    ----------
    mesh : Mesh
        Without the sets that were derived for the loops.
    plan : Plan
        With these, and with the figures before and after under ``metrics``.
    """

    mesh: Mesh
    plan: Plan

    def _repr_html_(self) -> str:
        return f"{self.plan._repr_html_()}{self.mesh._repr_html_()}"


def prepare(
    mesh: Mesh,
    loops: Loops = (),
    options: Options | None = None,
    *,
    keep_order: bool = False,
    progress: Progress = lambda done, total, name: None,
    **chosen: Any,
) -> Prepared:
    """Find a numbering and a plan for these loops.

    Parameters
    ----------
    mesh : Mesh
        It is not changed.
    loops : sequence of LoopRequest or str, or mapping
        ``{NAME: {"over": SET, "args": [...]}}`` is what loops.toml holds; ``"faces->cells"`` stands
        for one increment, none at all for the default loop. The first loop with maps over a set
        decides the order of that set and of the sets it reaches.
    options : Options
    keep_order : bool
        Leave the order of the sets that the mesh file holds, and plan on top of it.
    progress : callable
        ``progress(done, total, name)`` is called before each stage with the stages done, and during
        a long one with fractions.
    **chosen
        Options by name, such as ``target="cpu"``; they go before those of ``options``.

    Returns
    -------
    Prepared
        The renumbered mesh and the plan.

    Raises
    ------
    MeshprepError
        On unknown names and on loops that do not fit the mesh.
    ProofError
        When the plan is wrong, which is a fault of meshprep.

    Notes
    -----
    The method is that of [S19]: a locality order, blocks, points grouped by blocks, colours. About
    linear in the entries of the maps; the first call on a machine compiles for about a minute.
    """
    if not isinstance(mesh, Mesh):
        wrong = type(mesh).__name__
        raise MeshprepError(f"mesh is a {wrong}: pass meshprep.read(FILE), from_meshio or the like")
    if not isinstance(options, Options | None):
        raise MeshprepError(f"options are {options!r}: give Options(block_size=128) or the like")
    options = (options or Options()).for_names(chosen)
    ordered = order(mesh, loops, options, keep_order=keep_order, progress=progress)
    plan = cut_and_colour(ordered, options, progress)
    new = renumbered(mesh, plan.ordering)
    return Prepared(new, replace(plan, mesh_hash=new.content_hash()))


show_options(prepare, Options)


@dataclass(frozen=True, eq=False)
class Ordered:
    """A mesh in its locality order, from which plans of several block sizes can be made.

    ``fixed`` are orders of sets that the new mesh's file has in no other one. ``temporary`` is what
    sets of a mesh that keeps its order are cut in. ``seconds`` are those of the stages so far;
    ``baselines`` keeps the figures of input orders by loop and block size, filled as plans are
    made.
    """

    mesh: Mesh
    specs: tuple[LoopSpec, ...]
    numbering: Numbering
    leads: tuple[Lead, ...]
    seconds: Mapping[str, float]
    source_hash: str
    fixed: Mapping[str, Ordering]
    temporary: Numbering | None
    baselines: dict[tuple[str, int], VariantMetrics | None]


def order(
    mesh: Mesh,
    loops: Loops,
    options: Options,
    *,
    keep_order: bool = False,
    progress: Progress = lambda done, total, name: None,
    derived: tuple[Mesh, list[LoopSpec]] | None = None,
    fixed: Mapping[str, Ordering] = MappingProxyType({}),
    planned: bool = True,
) -> Ordered:
    """The first half of :func:`prepare`: topology and locality.

    ``derived`` is what :func:`plan_request_maps` gave before for this mesh and these loops. Where
    no plan is made then, the hash of the mesh and the figures of its order are not found.
    """
    seconds = dict.fromkeys(STAGES, 0.0)
    with _stage("topology", seconds, progress):
        (full, specs), source_hash = at_once(
            lambda: derived or plan_request_maps(mesh, loops), mesh.content_hash if planned else str
        )
    triangular = mesh.extras.get(UPPER_TRIANGULAR, {})
    runs = {full.map(name).to_set: sizes for name, sizes in triangular.items()}
    start, temporary = Numbering.of(full, mesh.sets if keep_order else (), runs), None
    with _stage("locality", seconds, progress):
        chosen = [(spec.loop, options.for_names(spec.options)) for spec in specs]
        # most of an order is found on one core, and the rest waits for it
        sizes = [own.block_elements for _, own in chosen]
        (numbering, leads), before = at_once(
            lambda: order_for_locality(start, chosen),
            lambda: on_fewer_cores(input_baselines, full, specs, sizes) if planned else {},
        )
        for spec in specs:
            if (name := spec.loop.over) in fixed:
                numbering = numbering.following({name: fixed[name]}).settled(name)
        for name in () if keep_order else triangular:
            numbering = go_by_cells(numbering, name)
        if keep_order and any(map(partial(wants_lists, numbering), specs, (o for _, o in chosen))):
            named = [
                (loop, replace(own, method="gps") if own.method == "none" else own)
                for loop, own in chosen
            ]
            temporary, _ = order_for_locality(Numbering.of(full), named)
    rest = source_hash, fixed, temporary, before
    return Ordered(mesh, tuple(specs), numbering, leads, seconds, *rest)


def order_alone(
    ordered: Ordered, options: Options
) -> tuple[Mapping[str, Ordering], tuple[OrderMetrics, ...]]:
    """The order of every set without any blocks, and what was found for those of points."""
    numbering = ordered.numbering
    reached = reached_leaves(numbering, [spec.loop for spec in ordered.specs])
    follow = FOLLOW[options.for_names(ordered.specs[0].options).target]
    others = propagate(numbering.mesh, {n: numbering.orders[n] for n in reached}, follow)
    numbering = numbering.following({**others, **ordered.fixed})
    return numbering.all(), tuple(lead.metrics for lead in ordered.leads)


def cut_and_colour(
    ordered: Ordered,
    options: Options,
    progress: Progress = lambda done, total, name: None,
) -> Plan:
    """The second half of :func:`prepare`: blocks, colours and figures, without the new mesh.

    The plan has no hash of a renumbered mesh. Raises ProofError when the plan is wrong, which is a
    fault of meshprep.
    """
    made = draft(ordered, options, progress)
    progress(STAGES.index("proof"), len(STAGES), "proof")
    return prove(made, ordered, options)


def draft(
    ordered: Ordered,
    options: Options,
    progress: Progress = lambda done, total, name: None,
) -> Plan:
    """All of :func:`cut_and_colour` but the proof.

    Blocks of every loop come first, since they order the sets; what names elements by their new
    numbers comes after.
    """
    numbering, specs, seconds = ordered.numbering, ordered.specs, dict(ordered.seconds)
    chosen = {spec.loop.name: options.for_names(spec.options) for spec in specs}
    follow = FOLLOW[chosen[specs[0].loop.name].target]
    cuts, notes = {}, {}
    # a loop without maps does not decide the order of its set, and takes what the others leave
    for turn, spec in enumerate(sorted(specs, key=lambda s: not s.loop.maps)):
        name, start = spec.loop.name, clock()
        share = partial(_within, progress, turn, len(specs))
        with _stage("blocks and grouping", seconds, progress):
            numbering, found = cut(numbering, spec, chosen[name], share, ordered.temporary)
        cuts[name] = found
        told = dict(found.notes)
        scattered, seconds_of = told.pop("scattered", None), round(clock() - start, 4)
        notes[name] = PartitionMetrics(scattered, seconds_of, other=told)
    with _stage("colours and staging", seconds, progress):
        # what loops reach is settled: the others follow meanwhile
        others, variants = at_once(
            lambda: propagate(numbering.mesh, numbering.known(), follow),
            lambda: [
                colour(numbering, s.loop, cuts[s.loop.name], chosen[s.loop.name]) for s in specs
            ],
        )
        numbering = numbering.following({**others, **ordered.fixed})
    with _stage("figures", seconds, progress):
        plan = _assemble(ordered, numbering, variants, options)
        locality, loops = at_once(
            lambda: locality_metrics(numbering, ordered.leads),
            lambda: _measure(ordered, plan, notes),
        )
    return replace(plan, metrics=Metrics(locality, loops, seconds))


def prove(plan: Plan, ordered: Ordered, options: Options) -> Plan:
    """The plan, proved, with the seconds that this took; raises ProofError when it is wrong."""
    start, metrics = clock(), plan.metrics
    if options.proof:
        refuse_wrong(plan, ordered.numbering.mesh.maps)
    seconds = {**metrics.seconds, "proof": round(clock() - start, 4)}
    return replace(plan, metrics=replace(metrics, seconds=seconds))


@contextmanager
def _stage(name: str, seconds: dict[str, float], progress: Progress) -> Iterator[None]:
    """Tell a stage, and add up its seconds."""
    progress(STAGES.index(name), len(STAGES), name)
    start = clock()
    yield
    seconds[name] = round(seconds[name] + clock() - start, 4)


def _within(progress: Progress, turn: int, turns: int, share: float) -> None:
    """Tell the share of one of several equal turns of cutting blocks."""
    if share < 1.0:
        name = "blocks and grouping"
        progress(STAGES.index(name) + (turn + share) / turns, len(STAGES), name)


def plan_request_maps(mesh: Mesh, loops: Loops) -> tuple[Mesh, list[LoopSpec]]:
    """The mesh with every map the loops need, and the loops checked against it."""
    requests = as_requests(loops, mesh)
    names: dict[str, None] = {}
    for request in requests:
        names |= dict.fromkeys(request.maps)
    steps = set[str]().union(*map(steps_of, names))
    # A solver that loops over interior facets needs the boundary ones too, in the same numbering.
    for facets in ("faces", "edges"):
        if f"{facets}->cells" in steps - mesh.maps.keys():
            names[f"boundary_{facets}->cells"] = None
    try:
        full = derive(mesh, names)
    except MeshprepError as error:
        # the first loop that asks for a map of the message begins it
        wanted = ((r.where, step) for r in requests for name in r.maps for step in steps_of(name))
        asking = (f"{where}: " for where, step in wanted if f"map '{step}'" in str(error))
        raise MeshprepError(f"{next(asking, '')}{error}") from error
    return full, resolve(requests, full)


def _assemble(
    ordered: Ordered, numbering: Numbering, variants: Sequence[Variant], options: Options
) -> Plan:
    full, specs = numbering.mesh, ordered.specs
    matrices = build_matrices(numbering, specs)
    maps, loops = dict[str, SetMap](), {}
    for spec, variant in zip(specs, variants, strict=True):
        loop, blocks, own = spec.loop, {variant.name: variant}, numbering.maps(spec.loop.maps)
        added = {a.name: matrices[a.name] for a in loop.matrices}
        made = LoopPlan(loop, full.sizes, own, blocks, variant.name, matrices=added)
        loops[loop.name] = replace(made, ranges=ranges_for(made))
        maps |= own
    maps |= numbering.maps([m for m in full.maps if m.startswith("boundary_")])
    where = full.coordinates if options.coordinates else None
    where = None if where is None else numbering.ordering("nodes").apply(where.astype("f8"))
    return Plan(
        sizes=full.sizes,
        ordering=numbering.all(),
        maps=maps,
        loops=loops,
        source_hash=ordered.source_hash,
        mesh_hash="",
        options=options.effective(),
        about=about(),
        matrices=matrices,
        coordinates={} if where is None else {"nodes": where},
        **_groups(numbering, ordered.mesh),
    )


# A plan file holds a line for each name; what is no Unicode becomes a question mark.
_ONE_LINE = str.maketrans("\n\0", "  ")


def _groups(numbering: Numbering, file: Mesh) -> dict[str, Any]:
    """``tags``, ``further_groups`` and ``group_names`` of a plan.

    Those of sets that a file does not have, and the numbers that it gave its elements. Names are on
    one line.
    """
    tags: dict[str, dict[str, Any]] = {}
    further: dict[str, dict[str, Any]] = {}
    names: dict[str, dict[str, Any]] = {}
    for t in numbering.mesh.tags:
        if t.set in file.sets:
            continue
        order, rows = numbering.ordering(t.set), t.further_ids()
        tags.setdefault(t.set, {})[t.name] = order.apply(t.first_ids())
        if rows.size:
            rows[:, 0] = order.old_to_new[rows[:, 0]]
            further.setdefault(t.set, {})[t.name] = rows[np.argsort(rows[:, 0], kind="stable")]
        if t.names:
            lines = names.setdefault(t.set, {})[t.name] = {}
            for k in sorted(t.names):
                lines[k] = t.names[k].translate(_ONE_LINE).encode(errors="replace").decode()
    for d in file.dats:
        if d.is_numbering:
            values = numbering.ordering(d.set).apply(d.values.astype(np.int64))
            tags.setdefault(d.set, {})[d.name] = values
    return {"tags": tags, "further_groups": further, "group_names": names}


def _measure(
    ordered: Ordered, plan: Plan, notes: Mapping[str, PartitionMetrics]
) -> dict[str, LoopMetrics]:
    """Figures of every loop: its input order cut into chunks, and the plan."""
    loops = {}
    for name, loop_plan in plan.loops.items():
        variant = loop_plan.variant()
        key = (name, variant.block_size)
        if key not in ordered.baselines:
            reached = input_reach(plan, loop_plan)
            ordered.baselines[key] = baseline(loop_plan.loop, *reached, key[1])
        after = replace(measures.measure(loop_plan, variant), partition=notes[name])
        loops[name] = LoopMetrics({variant.name: BeforeAfter(ordered.baselines[key], after)})
    return loops


def renumbered(mesh: Mesh, ordering: Mapping[str, Ordering]) -> Mesh:
    """What a file holds in a new order; its elements are then numbered 1..n in it.

    So are all cells where those of one type move: most formats number them through all types.
    """
    own = {name: ordering[name] for name in mesh.sets if not ordering[name].is_identity}
    nodes, others = own.keys() & {"nodes"}, own.keys() - {"nodes"}
    kept = tuple(
        d for d in mesh.dats if not (d.is_numbering and (nodes if d.set == "nodes" else others))
    )
    mesh = mesh if len(kept) == len(mesh.dats) else replace(mesh, dats=kept)
    return mesh.renumber(own)


PACKAGES = ("meshprep", "numpy", "scipy", "numba", "h5py", "meshio", "pymetis")


def about() -> dict[str, Any]:
    """Creator, time in UTC and versions, as JSON values."""
    versions = {"python": platform.python_version()}
    versions |= dict(zip(PACKAGES, map(_version, PACKAGES), strict=True))
    return {
        "creator": f"meshprep {versions['meshprep']}",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions,
    }


@cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
