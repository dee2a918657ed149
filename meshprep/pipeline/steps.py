"""The steps in their order: topology, locality, blocks, grouping, colours, figures, proof.

``prepare`` makes one plan. Its halves are ``order`` and ``cut_and_colour``, for several
plans of one order. ``draft`` and ``prove`` split ``cut_and_colour`` once more, so that the
proof can overlap with writing the files. Each step is a function of arrays in a room of its
own.
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
from meshprep_runtime.types.loops import Loop
from meshprep_runtime.types.maps import SetMap
from meshprep_runtime.types.ordering import Ordering

from ..io.front import file_groups
from ..kernels import clock
from ..kernels.parallel import at_once, on_fewer_cores
from ..loops.options import Options as Options
from ..loops.request_maps import plan_request_maps
from ..loops.requests import Loops, LoopSpec
from ..mesh import Mesh
from ..mesh.model import UPPER_TRIANGULAR
from ..metrics import measures
from ..ordering import FOLLOW, propagate
from ..registry.partitioners import is_given
from ..staging.blocks import colour_and_stage, cut, given_blocks, wants_lists
from ..staging.build_variant import baseline, input_baselines
from ..staging.matrices import build_matrices, input_reach
from ..staging.numbering import Groups, Numbering
from ..staging.order import (
    Lead,
    go_by_cells,
    locality_metrics,
    order_for_locality,
    reached_leaves,
)

STAGES = (
    "topology",
    "locality",
    "blocks and grouping",
    "colours and staging",
    "figures",
    "proof",
)


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
        ``{NAME: {"over": SET, "args": [...]}}`` is what loops.toml holds;
        ``"faces->cells"`` stands for one increment, none at all for the default loop. The
        first loop with maps over a set decides the order of that set and of the sets it
        reaches.
    options : Options
    keep_order : bool
        Leave the order of the sets that the mesh file holds, and plan on top of it.
    progress : callable
        ``progress(done, total, name)`` is called before each stage with the stages done,
        and during a long one with fractions.
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
    The method is that of [S19]: a locality order, blocks, points grouped by blocks,
    colours. Cells that the file of the mesh keeps together, as Gmsh's those of an entity,
    stay together. About linear in the entries of the maps; the first call on a machine
    compiles for about a minute.
    """
    if not isinstance(mesh, Mesh):
        wrong = type(mesh).__name__
        raise MeshprepError(
            f"mesh is a {wrong}: pass meshprep.read(FILE), from_meshio or the like"
        )
    if not isinstance(options, Options | None):
        raise MeshprepError(
            f"options are {options!r}: give Options(block_size=128) or the like"
        )
    # Order, cut into blocks, and renumber what the file holds.
    options = (options or Options()).for_names(chosen)
    ordered = order(
        mesh=mesh,
        loops=loops,
        options=options,
        keep_order=keep_order,
        progress=progress,
    )
    plan = cut_and_colour(ordered, options, progress)
    new = renumbered(mesh, plan.ordering)
    return Prepared(new, replace(plan, mesh_hash=new.content_hash()))


show_options(prepare, Options)


@dataclass(frozen=True, eq=False)
class Ordered:
    """A mesh in its locality order, from which plans of several block sizes can be made."""

    mesh: Mesh  # as it was read
    specs: tuple[LoopSpec, ...]
    numbering: Numbering  # of the mesh with the maps of the loops
    leads: tuple[Lead, ...]
    seconds: Mapping[str, float]  # of the stages so far
    source_hash: str  # empty where no plan is made
    fixed: Mapping[str, Ordering]  # orders that the new file has sets in, whatever is found
    # A locality order of a mesh that keeps its own: blocks that list their elements are cut
    # in it. None where there are no lists.
    temporary: Numbering | None
    # Figures of the input's order by loop and block size, completed as plans are made.
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
    groups: Groups | None = None,
    planned: bool = True,
) -> Ordered:
    """The first half of :func:`prepare`: topology and locality.

    ``groups`` are the cells that stay together in the file to be written, None: those of
    the file that was read (:func:`meshprep.io.front.file_groups`). ``fixed`` are orders
    that the new file has sets in. ``derived`` is what :func:`plan_request_maps` gave before
    for this mesh and these loops. Without ``planned`` the hash of the mesh and the figures
    of its order are left out, which only a plan needs.
    """
    seconds = dict.fromkeys(STAGES, 0.0)

    # Derive the maps of the loops; the hash of the input is found meanwhile.
    with _stage("topology", seconds, progress):
        (full, specs), source_hash = at_once(
            lambda: derived or plan_request_maps(mesh, loops),
            lambda: mesh.content_hash() if planned else "",
        )

    # Number the sets as they stand; cells of a group, and of a run of an OpenFOAM case,
    # stay together.
    run_sizes = mesh.extras.get(UPPER_TRIANGULAR, {})
    together = dict(file_groups(mesh) if groups is None else groups)
    for map_name, sizes in run_sizes.items():
        run_of_cell = np.repeat(np.arange(len(sizes)), sizes)
        together[full.map(map_name).to_set] = run_of_cell
    frozen = mesh.sets if keep_order else ()
    start = Numbering.of(full, frozen, together)

    temporary = None
    with _stage("locality", seconds, progress):
        # Find the order; most of it takes one core, and the input's figures the others.
        chosen = [(spec.loop, options.for_names(spec.options)) for spec in specs]
        _refuse_blocks_that_do_not_fit(full, chosen)
        block_sizes = [of_loop.block_elements for _, of_loop in chosen]

        def figures_of_input() -> dict[tuple[str, int], VariantMetrics | None]:
            if not planned:
                return {}
            return on_fewer_cores(input_baselines, full, specs, block_sizes)

        (numbering, leads), baselines = at_once(
            lambda: order_for_locality(start, chosen), figures_of_input
        )

        # Settle the sets whose order the new file decides.
        for spec in specs:
            over = spec.loop.over
            if over in fixed:
                numbering = numbering.following({over: fixed[over]}).settled(over)
        if not keep_order:
            for map_name in run_sizes:
                numbering = go_by_cells(numbering, map_name)

        # A mesh that keeps its order is cut into lists in an order that is good for them.
        if keep_order and _some_want_lists(numbering, specs, chosen):
            temporary = _order_for_lists(full, chosen)
    return Ordered(
        mesh=mesh,
        specs=tuple(specs),
        numbering=numbering,
        leads=leads,
        seconds=seconds,
        source_hash=source_hash,
        fixed=fixed,
        temporary=temporary,
        baselines=baselines,
    )


def _refuse_blocks_that_do_not_fit(
    full: Mesh, chosen: Sequence[tuple[Loop, Options]]
) -> None:
    """Raise MeshprepError for blocks from outside that are not those of their loop."""
    for loop, options in chosen:
        if is_given(options.partitioner):
            given_blocks(options, loop, full.size(loop.over))


def _some_want_lists(
    numbering: Numbering,
    specs: Sequence[LoopSpec],
    chosen: Sequence[tuple[Loop, Options]],
) -> bool:
    """Whether some loop gets blocks that list their elements."""
    for spec, (_, options) in zip(specs, chosen, strict=True):
        if wants_lists(numbering, spec, options):
            return True
    return False


def _order_for_lists(full: Mesh, chosen: Sequence[tuple[Loop, Options]]) -> Numbering:
    """A locality order of all sets, by gps for loops that ask for no order."""
    ordered = []
    for loop, options in chosen:
        if options.method == "none":
            options = replace(options, method="gps")
        ordered.append((loop, options))
    numbering, _ = order_for_locality(Numbering.of(full), ordered)
    return numbering


def order_alone(
    ordered: Ordered, options: Options
) -> tuple[Mapping[str, Ordering], tuple[OrderMetrics, ...]]:
    """The order of every set without blocks, and the figures of the orders of points."""
    # Sets that no loop reaches follow those that some loop reaches.
    numbering = ordered.numbering
    reached = reached_leaves(numbering, [spec.loop for spec in ordered.specs])
    first_target = options.for_names(ordered.specs[0].options).target
    follow = FOLLOW[first_target]
    orders_reached = {name: numbering.orders[name] for name in reached}
    others = propagate(
        mesh=numbering.mesh,
        known=orders_reached,
        follow=follow,
        keep=numbering.kept,
    )
    numbering = numbering.following({**others, **ordered.fixed})
    return numbering.all(), tuple(lead.metrics for lead in ordered.leads)


def cut_and_colour(
    ordered: Ordered,
    options: Options,
    progress: Progress = lambda done, total, name: None,
) -> Plan:
    """The second half of :func:`prepare`: blocks, colours, figures, without the new mesh.

    The plan has no hash of a renumbered mesh. Raises ProofError when the plan is wrong,
    which is a fault of meshprep.
    """
    drafted = draft(ordered, options, progress)
    progress(STAGES.index("proof"), len(STAGES), "proof")
    return prove(drafted, ordered, options)


def draft(
    ordered: Ordered,
    options: Options,
    progress: Progress = lambda done, total, name: None,
) -> Plan:
    """All of :func:`cut_and_colour` but the proof.

    Blocks of every loop come first, since they order the sets; what names elements by their
    new numbers comes after.
    """
    # Sets that no loop reaches follow as the first loop's target has it.
    numbering = ordered.numbering
    specs = ordered.specs
    seconds = dict(ordered.seconds)
    options_of = {spec.loop.name: options.for_names(spec.options) for spec in specs}
    first_target = options_of[specs[0].loop.name].target
    follow = FOLLOW[first_target]

    # Cut loop after loop. One without maps comes last: it decides no order of its set.
    cuts = {}
    notes = {}
    for turn, spec in enumerate(sorted(specs, key=lambda s: not s.loop.maps)):
        name = spec.loop.name
        start = clock()
        with _stage("blocks and grouping", seconds, progress):
            numbering, blocks = cut(
                numbering=numbering,
                spec=spec,
                options=options_of[name],
                progress=partial(_progress_of_cutting, progress, turn, len(specs)),
                temporary=ordered.temporary,
            )
        cuts[name] = blocks
        partitioner_notes = dict(blocks.notes)
        scattered = partitioner_notes.pop("scattered", None)
        elapsed = round(clock() - start, 4)
        notes[name] = PartitionMetrics(scattered, elapsed, other=partitioner_notes)

    # Colour and stage; what loops reach is settled, and the other sets follow meanwhile.
    with _stage("colours and staging", seconds, progress):

        def followers_of_settled() -> dict[str, Ordering]:
            return propagate(
                mesh=numbering.mesh,
                known=numbering.known(),
                follow=follow,
                keep=numbering.kept,
            )

        def variants_of_loops() -> list[Variant]:
            variants = []
            for spec in specs:
                name = spec.loop.name
                variant = colour_and_stage(
                    numbering=numbering,
                    loop=spec.loop,
                    cut=cuts[name],
                    options=options_of[name],
                )
                variants.append(variant)
            return variants

        others, variants = at_once(followers_of_settled, variants_of_loops)
        numbering = numbering.following({**others, **ordered.fixed})

    # Put the plan together and measure it.
    with _stage("figures", seconds, progress):
        plan = _assemble_plan(
            ordered=ordered,
            numbering=numbering,
            variants=variants,
            options=options,
        )
        locality, loops = at_once(
            lambda: locality_metrics(numbering, ordered.leads),
            lambda: _measure_loops(ordered, plan, notes),
        )
    return replace(plan, metrics=Metrics(locality, loops, seconds))


def prove(plan: Plan, ordered: Ordered, options: Options) -> Plan:
    """The plan with the seconds of its proof; raises ProofError when it is wrong."""
    start = clock()
    metrics = plan.metrics
    if options.proof:
        refuse_wrong(plan, ordered.numbering.mesh.maps)
    seconds = {**metrics.seconds, "proof": round(clock() - start, 4)}
    return replace(plan, metrics=replace(metrics, seconds=seconds))


@contextmanager
def _stage(name: str, seconds: dict[str, float], progress: Progress) -> Iterator[None]:
    """Announce a stage, and add up its seconds."""
    progress(STAGES.index(name), len(STAGES), name)
    start = clock()
    yield
    seconds[name] = round(seconds[name] + clock() - start, 4)


def _progress_of_cutting(
    progress: Progress,
    turn: int,
    turns: int,
    share: float,
) -> None:
    """Announce the share that is done of one of several equal turns of cutting blocks."""
    if share < 1.0:
        name = "blocks and grouping"
        progress(STAGES.index(name) + (turn + share) / turns, len(STAGES), name)


def _assemble_plan(
    ordered: Ordered,
    numbering: Numbering,
    variants: Sequence[Variant],
    options: Options,
) -> Plan:
    """The plan of all loops in the final numbering, without figures and mesh hash."""
    full = numbering.mesh
    specs = ordered.specs
    matrices = build_matrices(numbering, specs)

    # Each loop with its maps, its variant, its matrices and the ranges of the threads.
    maps = dict[str, SetMap]()
    loops = {}
    for spec, variant in zip(specs, variants, strict=True):
        loop = spec.loop
        maps_of_loop = numbering.maps(loop.maps)
        loop_plan = LoopPlan(
            loop=loop,
            sizes=full.sizes,
            maps=maps_of_loop,
            variants={variant.name: variant},
            default=variant.name,
            matrices={arg.name: matrices[arg.name] for arg in loop.matrices},
        )
        loops[loop.name] = replace(loop_plan, ranges=ranges_for(loop_plan))
        maps |= maps_of_loop

    # What solvers need besides: boundary facets, coordinates, groups.
    maps |= numbering.maps([m for m in full.maps if m.startswith("boundary_")])
    coordinates = {}
    if options.coordinates and full.coordinates is not None:
        nodes = numbering.ordering("nodes")
        coordinates["nodes"] = nodes.apply(full.coordinates.astype("f8"))
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
        coordinates=coordinates,
        **_groups_of_plan(numbering, ordered.mesh),
    )


# A plan file holds a line for each name; what is no Unicode becomes a question mark.
_ONE_LINE = str.maketrans("\n\0", "  ")


def _groups_of_plan(numbering: Numbering, file: Mesh) -> dict[str, Any]:
    """``tags``, ``further_groups`` and ``group_names`` of a plan, as its arguments.

    They are the groups of sets that the file of the mesh does not have, and the numbers
    that it gave its elements. Names are on one line.
    """
    tags: dict[str, dict[str, Any]] = {}
    further: dict[str, dict[str, Any]] = {}
    names: dict[str, dict[str, Any]] = {}
    for tag in numbering.mesh.tags:
        if tag.set in file.sets:
            continue
        order = numbering.ordering(tag.set)
        tags.setdefault(tag.set, {})[tag.name] = order.apply(tag.first_ids())

        # The further groups of elements that are in several, in the new order.
        rows = tag.further_ids()
        if rows.size:
            rows[:, 0] = order.old_to_new[rows[:, 0]]
            rows = rows[np.argsort(rows[:, 0], kind="stable")]
            further.setdefault(tag.set, {})[tag.name] = rows
        if tag.names:
            names.setdefault(tag.set, {})[tag.name] = {
                number: _name_in_one_line(tag.names[number]) for number in sorted(tag.names)
            }

    # The numbers that the file gave elements.
    for dat in file.dats:
        if dat.is_numbering:
            numbers = numbering.ordering(dat.set).apply(dat.values.astype(np.int64))
            tags.setdefault(dat.set, {})[dat.name] = numbers
    return {"tags": tags, "further_groups": further, "group_names": names}


def _name_in_one_line(name: str) -> str:
    """A name of a group as a plan file can hold it."""
    return name.translate(_ONE_LINE).encode(errors="replace").decode()


def _measure_loops(
    ordered: Ordered, plan: Plan, notes: Mapping[str, PartitionMetrics]
) -> dict[str, LoopMetrics]:
    """Figures of every loop: its input order cut into chunks, and the plan."""
    loops = {}
    for name, loop_plan in plan.loops.items():
        variant = loop_plan.variant()
        key = (name, variant.block_size)
        if key not in ordered.baselines:
            maps, sizes = input_reach(plan, loop_plan)
            ordered.baselines[key] = baseline(
                loop=loop_plan.loop,
                maps=maps,
                sizes=sizes,
                block_size=variant.block_size,
            )
        after = replace(measures.measure(loop_plan, variant), partition=notes[name])
        before_after = BeforeAfter(ordered.baselines[key], after)
        loops[name] = LoopMetrics({variant.name: before_after})
    return loops


def renumbered(mesh: Mesh, ordering: Mapping[str, Ordering]) -> Mesh:
    """The content of a file in a new order; its elements are then numbered 1..n in it.

    All cells lose their numbers where those of one type move: most formats number cells
    through all types.
    """
    moved = {name: ordering[name] for name in mesh.sets if not ordering[name].is_identity}
    nodes_move = "nodes" in moved
    others_move = any(name != "nodes" for name in moved)
    dats = []
    for dat in mesh.dats:
        loses_numbers = nodes_move if dat.set == "nodes" else others_move
        if not (dat.is_numbering and loses_numbers):
            dats.append(dat)
    if len(dats) < len(mesh.dats):
        mesh = replace(mesh, dats=tuple(dats))
    return mesh.renumber(moved)


# The packages whose versions a plan names.
PACKAGES = ("meshprep", "numpy", "scipy", "numba", "h5py", "meshio", "pymetis")


def about() -> dict[str, Any]:
    """Creator, time in UTC and versions, as JSON values."""
    versions = {"python": platform.python_version()}
    versions |= {package: _version(package) for package in PACKAGES}
    return {
        "creator": f"meshprep {versions['meshprep']}",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions,
    }


@cache
def _version(name: str) -> str:
    """The version of a package that is installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
