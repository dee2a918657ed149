"""The steps in their order: topology, locality, blocks, grouping, colours, plan; nothing else.

``prepare`` is the entrance for one plan; ``order`` and ``cut_and_colour`` are its two halves, for
those who make several plans of one order. ``draft`` and ``prove`` are those of the second, for
those who have something to do meanwhile. Every step is a function of arrays in a folder of its own;
only this module, :mod:`order`, :mod:`blocks` and :mod:`matrices` know them.
"""

import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

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
from meshprep_runtime.plan.records import from_json
from meshprep_runtime.types.loops import Loop
from meshprep_runtime.types.maps import SetMap
from meshprep_runtime.types.ordering import Ordering

from ..kernels import clock
from ..kernels.parallel import at_once, on_fewer_cores
from ..loops.options import Options as Options
from ..loops.requests import LoopRequest, Loops, LoopSpec, as_requests, resolve
from ..mesh import Mesh
from ..mesh.model import UPPER_TRIANGULAR
from ..metrics import measures
from ..reorder import FOLLOW, propagate
from ..topology import derive, steps_of
from .blocks import colour, cut, wants_lists
from .matrices import build_matrices, input_reach
from .numbering import Numbering
from .order import Lead, go_by_cells, locality_metrics, order_for_locality
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

    ``seconds`` are those of the stages so far, ``source_hash`` is that of the mesh; ``baselines``
    keeps the figures of input orders by loop and block size, filled as plans are made.
    """

    mesh: Mesh
    full: Mesh
    specs: tuple[LoopSpec, ...]
    numbering: Numbering
    leads: tuple[Lead, ...]
    seconds: Mapping[str, float]
    source_hash: str
    baselines: dict[tuple[str, int], VariantMetrics | None] = field(default_factory=dict)


def order(
    mesh: Mesh,
    loops: Loops,
    options: Options,
    *,
    keep_order: bool = False,
    progress: Progress = lambda done, total, name: None,
    derived: tuple[Mesh, list[LoopSpec]] | None = None,
    fixed: Mapping[str, Ordering] | None = None,
    planned: bool = True,
) -> Ordered:
    """The first half of :func:`prepare`: topology and locality.

    ``derived`` is what :func:`plan_request_maps` gave before for this mesh and these loops,
    ``fixed`` the orders of sets that the new mesh's file has in no other one. Where no plan is made
    then, the hash of the mesh and the figures of the input's order are not found.
    """
    stages = _Clock(progress)
    with stages.stage("topology"):
        (full, specs), source_hash = at_once(
            lambda: derived or plan_request_maps(mesh, loops), mesh.content_hash if planned else str
        )
    triangular = mesh.extras.get(UPPER_TRIANGULAR, {})
    runs = {full.map(name).to_set: sizes for name, sizes in triangular.items()}
    numbering = Numbering(full, mesh.sets if keep_order else (), runs)
    with stages.stage("locality"):
        chosen = [(spec.loop, options.for_loop(spec.options)) for spec in specs]
        # most of an order is found on one core, and the rest waits for it
        sizes = [own.block_elements for _, own in chosen]
        leads, before = at_once(
            lambda: order_for_locality(numbering, chosen),
            lambda: on_fewer_cores(lambda: input_baselines(full, specs, sizes)) if planned else {},
        )
        numbering.fix(fixed or {}, [spec.loop.over for spec in specs])
        for name in () if keep_order else triangular:
            full = go_by_cells(numbering, name)
        if keep_order and any(map(partial(wants_lists, numbering), specs, (o for _, o in chosen))):
            numbering.cut_frozen_in(_temporary(full, chosen))
    return Ordered(mesh, full, tuple(specs), numbering, leads, stages.seconds, source_hash, before)


def order_alone(
    ordered: Ordered, options: Options
) -> tuple[dict[str, Ordering], tuple[OrderMetrics, ...]]:
    """The order of every set without any blocks, and the figures of those of points."""
    numbering, mesh = ordered.numbering, ordered.full
    loops = [spec.loop for spec in ordered.specs]
    reached = {loop.over for loop in loops}
    reached |= {mesh.map(name).to_set for loop in loops for name in loop.maps}
    leaves = {leaf for name in reached for leaf in numbering.leaves(name)}
    known = {leaf: numbering.present_ordering(leaf) for leaf in leaves}
    follow = FOLLOW[options.for_loop(ordered.specs[0].options).target]
    numbering.finish(propagate(mesh, known, follow))
    return numbering.all(), Metrics(locality_metrics(numbering, ordered.leads)).orders


def _temporary(mesh: Mesh, loops: Sequence[tuple[Loop, Options]]) -> Numbering:
    """A locality order of a mesh that keeps its own, for partitioners alone."""
    numbering = Numbering(mesh)
    known = [(loop, replace(o, method="gps") if o.method == "none" else o) for loop, o in loops]
    order_for_locality(numbering, known)
    return numbering


def cut_and_colour(
    ordered: Ordered,
    options: Options,
    progress: Progress = lambda done, total, name: None,
) -> Plan:
    """The second half of :func:`prepare`: blocks, colours and figures, without the new mesh.

    ``ordered`` is left as it was. The plan has no hash of a renumbered mesh.

    ``ordered`` is left as it was. The plan has no hash of a renumbered mesh. Raises ProofError when
    the plan is wrong, which is a fault of meshprep.
    """
    made = draft(ordered, options, progress)
    progress(STAGES.index("proof"), len(STAGES), "proof")
    return prove(*made)


# A plan that is not proved yet, and the maps of the input that it is to be compared with, or None
# where no proof is asked for.
Draft = tuple[Plan, Mapping[str, SetMap] | None]


def draft(
    ordered: Ordered,
    options: Options,
    progress: Progress = lambda done, total, name: None,
) -> Draft:
    """All of :func:`cut_and_colour` but the proof, and the maps that :func:`prove` takes.

    Blocks of every loop come first, since they order the sets; what names elements by their new
    numbers comes after.
    """
    stages, numbering = _Clock(progress, ordered.seconds), ordered.numbering.copy()
    cuts, notes = {}, {}
    # a loop without maps does not decide the order of its set, and takes what the others leave
    turns = sorted(ordered.specs, key=lambda s: not s.loop.maps)
    for turn, spec in enumerate(turns):
        start = clock()
        share = partial(stages.within, turn, len(turns))
        with stages.stage("blocks and grouping"):
            found = cut(numbering, spec, options.for_loop(spec.options), share)
        seconds = round(clock() - start, 4)
        cuts[spec.loop.name] = found
        told = {**found.notes, "seconds": seconds}
        notes[spec.loop.name] = from_json(PartitionMetrics, told, "notes")
    chosen = [options.for_loop(spec.options) for spec in ordered.specs]
    follow = FOLLOW[chosen[0].target]
    with stages.stage("colours and staging"):
        # what loops reach is settled: the others follow meanwhile
        _, variants = at_once(
            lambda: numbering.finish(propagate(ordered.full, numbering.settled(), follow)),
            lambda: {
                spec.loop.name: colour(numbering, spec.loop, cuts[spec.loop.name], own)
                for spec, own in zip(ordered.specs, chosen, strict=True)
            },
        )
    with stages.stage("figures"):
        plan = _assemble(ordered, numbering, variants, options)
        locality, loops = at_once(
            lambda: locality_metrics(numbering, ordered.leads),
            lambda: _measure(ordered, plan, notes),
        )
    plan = replace(plan, metrics=Metrics(locality, loops, stages.seconds))
    return plan, ordered.full.maps if options.proof else None


def prove(plan: Plan, maps: Mapping[str, SetMap] | None) -> Plan:
    """The plan, proved, with the seconds that this took; raises ProofError when it is wrong."""
    start, metrics = clock(), plan.metrics
    if maps is not None:
        refuse_wrong(plan, maps)
    seconds = {**metrics.seconds, "proof": round(clock() - start, 4)}
    return replace(plan, metrics=replace(metrics, seconds=seconds))


class _Clock:
    """Tells the stages to the caller and adds up their seconds."""

    def __init__(self, progress: Progress, before: Mapping[str, float] | None = None) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0) | dict(before or {})
        self._progress = progress
        self._now = STAGES[0]

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self._now = name
        self._progress(STAGES.index(name), len(STAGES), name)
        start = clock()
        yield
        self.seconds[name] = round(self.seconds[name] + clock() - start, 4)

    def within(self, turn: int, turns: int, share: float) -> None:
        """Tell the share of one of several equal turns of this stage."""
        if share < 1.0:
            done = STAGES.index(self._now) + (turn + share) / turns
            self._progress(done, len(STAGES), self._now)


def plan_request_maps(mesh: Mesh, loops: Loops) -> tuple[Mesh, list[LoopSpec]]:
    """The mesh with every map the loops need, and the loops checked against it."""
    requests = as_requests(loops, mesh)
    names = dict.fromkeys(name for r in requests for name in r.maps)
    # A solver that loops over interior facets needs the boundary ones too, in the same numbering.
    for facets in ("faces", "edges"):
        own = f"{facets}->cells"
        if own not in mesh.maps and any(own in steps_of(name) for name in names):
            names[f"boundary_{facets}->cells"] = None
    try:
        full = derive(mesh, names)
    except MeshprepError as error:
        raise MeshprepError(f"{_asking(requests, str(error))}{error}") from error
    return full, resolve(requests, full)


def _asking(requests: Sequence[LoopRequest], message: str) -> str:
    """The first loop that asks for a map of the message, as the beginning of an error."""
    wanted = ((r.where, step) for r in requests for name in r.maps for step in steps_of(name))
    return next((f"{where}: " for where, step in wanted if f"map '{step}'" in message), "")


def _assemble(
    ordered: Ordered, numbering: Numbering, variants: Mapping[str, Variant], options: Options
) -> Plan:
    full, specs = numbering.mesh, ordered.specs
    wanted = dict.fromkeys(m for s in specs for m in s.loop.maps)
    wanted |= dict.fromkeys(m for m in full.maps if m.startswith("boundary_"))
    maps = {name: numbering.map(name) for name in wanted}
    matrices = build_matrices(numbering, specs)
    loops = {}
    for spec in specs:
        loop, variant = spec.loop, variants[spec.loop.name]
        own = {m: maps[m] for m in loop.maps}
        added = {a.name: matrices[a.name] for a in loop.matrices}
        blocks = {variant.name: variant}
        made = LoopPlan(loop, full.sizes, own, blocks, variant.name, matrices=added)
        loops[loop.name] = replace(made, ranges=ranges_for(made))
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
        **numbering.groups(ordered.mesh),
    )


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
    ordering = {name: ordering[name] for name in mesh.sets}
    moved = {name == "nodes" for name, order in ordering.items() if not order.is_identity}
    kept = tuple(d for d in mesh.dats if not d.is_numbering or (d.set == "nodes") not in moved)
    return replace(mesh, dats=kept).renumber(ordering)


PACKAGES = ("meshprep", "numpy", "scipy", "numba", "h5py", "meshio", "pymetis")


def about() -> dict[str, Any]:
    """Creator, time in UTC and versions, as JSON values."""
    versions = {"python": platform.python_version()}
    versions |= {name: _version(name) for name in PACKAGES}
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
