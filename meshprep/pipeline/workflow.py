"""From file to file: what the commands do, for scripts that want the same.

Reading, preparing and writing in one call each, all or nothing on disk.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from meshprep_runtime.errors import MeshprepError, Progress
from meshprep_runtime.plan import LoopPlan, Plan
from meshprep_runtime.plan.file.atomic import together
from meshprep_runtime.plan.metrics import OrderMetrics
from meshprep_runtime.plan.records import to_json
from meshprep_runtime.types.ordering import Ordering

from .. import io
from ..io.foam import write_cell_map
from ..io.front import named
from ..io.original_ids import check_vector, with_original_ids, write_vector
from ..io.outputs import check_targets
from ..io.registry import Format, find
from ..io.source import MeshSource
from ..kernels.parallel import at_once
from ..loops.requests import LoopRequest, LoopSpec, empty_loop
from ..mesh import Mesh
from ..mesh.model import UPPER_TRIANGULAR
from ..metrics.cost import Measured
from .blocks import check_partitioner
from .measure import measure
from .steps import (
    STAGES,
    Options,
    Ordered,
    draft,
    order,
    order_alone,
    plan_request_maps,
    prove,
    renumbered,
)


@dataclass(frozen=True)
class Job:
    """What to read, prepare and write; with neither ``output`` nor ``cell_map`` the order is kept.

    Without ``plan`` the mesh is ordered alone: no blocks, colours and proof.
    ``ids`` writes ``original_id`` into the mesh where it can be.
    ``old_to_new``, ``new_to_old`` and ``blocks`` are files for the first loop: the new number of
    each point that it orders (each vertex of a graph), the old number of each in the new order, and
    the block of each of its elements (of each edge); all from 0. ``cell_map`` is a file for
    OpenFOAM's ``renumberMesh``: the old number of each cell in the new order.
    ``measure`` times the loops in both orders (:func:`~.measure.measure`).
    """

    source: MeshSource
    output: Path | None
    plan: Path | None
    requests: tuple[LoopRequest, ...] = ()
    options: Options = field(default_factory=Options)
    output_format: str | None = None
    drop: bool = False
    overwrite: bool = False
    ids: bool = True
    old_to_new: Path | None = None
    new_to_old: Path | None = None
    blocks: Path | None = None
    cell_map: Path | None = None
    measure: bool = False

    @property
    def vectors(self) -> list[Path]:
        """The files of numbers that the job writes."""
        return [p for p in (self.old_to_new, self.new_to_old, self.blocks) if p is not None]

    @property
    def keeps_order(self) -> bool:
        """Whether nothing is written that has another order."""
        return self.output is None and self.cell_map is None

    @property
    def outputs(self) -> list[Path]:
        """The files the job writes."""
        return [p for p in (self.output, self.plan, self.cell_map, *self.vectors) if p is not None]


@dataclass(frozen=True, eq=False)
class JobResult:
    """What a job made: files, the order of every set, figures, and the plan if there is one."""

    written: list[Path]
    notes: list[str]
    dropped: list[str]  # what ``drop`` made the mesh lose
    ordering: Mapping[str, Ordering]
    orders: tuple[OrderMetrics, ...]
    plan: Plan | None
    measured: Mapping[str, Measured]  # by loop

    def to_dict(self) -> dict[str, Any]:
        """JSON values: files, notes and every figure."""
        written = [str(p) for p in self.written]
        values: dict[str, Any] = {"written": written, "notes": [*self.notes, *self.dropped]}
        if self.plan is None:
            return values | {"orders": [to_json(one) for one in self.orders]}
        measured = {name: asdict(one) for name, one in self.measured.items()}
        return values | {"metrics": to_json(self.plan.metrics), "measured": measured}


@dataclass(frozen=True)
class Generated:
    """A mesh that was generated and written: the sizes of its sets, and what was dropped."""

    sizes: dict[str, int]
    notes: list[str]


def run(job: Job, progress: Progress = lambda done, total, name: None) -> JobResult:
    """Read, prepare, write: the mesh and the plan appear together or not at all.

    Raises MeshprepError on bad input, unknown names, outputs that exist, and losses without
    ``drop``.
    """
    outputs, proof = job.outputs, job.options.proof and job.plan is not None
    stages = 2 if job.plan is None else len(STAGES) - (not proof)

    def told(done: float, _: int, name: str) -> None:
        progress(1 + done, 1 + stages + len(outputs), name)

    def writing(path: Path, more: str = "") -> None:
        told(stages + outputs.index(path), 0, f"writing {path.name}{more}")

    _refuse(job)
    mesh = _read(job, lambda name: told(-1, 0, name))
    ordered = order(
        mesh,
        job.requests,
        job.options,
        keep_order=job.keeps_order,
        progress=told,
        fixed={} if job.output is None else _fixed(mesh, _target(job)),
        planned=job.plan is not None,
    )
    check_default(job.requests, ordered.specs, ordered.numbering.mesh.sizes)
    drafted = None if job.plan is None else draft(ordered, job.options, told)
    if drafted is None:
        ordering, orders = order_alone(ordered, job.options)
    else:
        ordering, orders = drafted.ordering, drafted.metrics.orders
    with together(outputs, overwrite=job.overwrite) as temporary:
        staged = dict(zip(outputs, temporary, strict=True))
        if proof:
            told(stages - 1, 0, STAGES[-1])
        if job.output is not None:
            writing(job.output, " and reading it back")
        new = renumbered(mesh, ordering)
        plan, (left_out, dropped) = at_once(
            lambda: drafted and _save(drafted, ordered, new, job, staged, writing),
            lambda: _write_mesh(new, ordering, job, mesh, staged),
        )
        _write_orders(ordered, ordering, job, staged, writing)
        if job.blocks is not None and plan is not None:
            first = next(iter(plan.loops.values()))
            block = ordering[first.loop.over].restore(first.variant().block_of_element())
            writing(job.blocks)
            write_vector(staged[job.blocks], block)
    # what had to be found out about a file that does not say it
    found = [" ".join(v) for k, v in mesh.extras.items() if k.endswith(":inferred")]
    notes = [f"found by sizes and ranges, to be declared with --sets if wrong: {t}" for t in found]
    refused = "order {0.method} of {0.set} was not applied: {0.reason}"
    notes += [*(refused.format(one) for one in orders if not one.applied), *left_out]
    if plan is not None:
        notes += [*_empty(plan.loops.values(), plan.sizes), *_runs(job, plan)]
    measured = measure(plan) if job.measure and plan is not None else {}
    return JobResult(outputs, notes, dropped, ordering, orders, plan, measured)


def _save(
    made: Plan,
    ordered: Ordered,
    new: Mesh,
    job: Job,
    staged: Mapping[Path, Path],
    writing: Callable[[Path], None],
) -> Plan:
    """Prove and write the plan of a mesh that is ``new`` in its order."""
    assert job.plan is not None
    proved, digest = at_once(lambda: prove(made, ordered, job.options), new.content_hash)
    plan: Plan = replace(proved, mesh_hash=digest)
    writing(job.plan)
    again = job.source.find_format().again
    if again is not None:
        # what the input does not say by itself
        plan = replace(plan, options={**plan.options, **again(ordered.mesh)})
    plan.save(staged[job.plan])
    return plan


def _write_mesh(
    new: Mesh, ordering: Mapping[str, Ordering], job: Job, mesh: Mesh, staged: Mapping[Path, Path]
) -> tuple[list[str], list[str]]:
    """Write the mesh in its new order where it is asked for; what was left out, and dropped."""
    output = job.output
    if output is None:
        return [], []
    target, left_out = _target(job), list[str]()
    if job.ids:
        new, left_out = with_original_ids(new, ordering, target)
    missing = io.write(new, staged[output], format=target.name, drop=job.drop)
    lost = io.losses(new, target) if missing else []
    noted = "; ".join(text for text in missing if text not in lost)
    return [*left_out, *_dropped([noted] if noted else [], output)], _dropped(lost, output)


def describe(job: Job, progress: Progress = lambda done, total, name: None) -> dict[str, Any]:
    """What :func:`run` would do, found without doing the work: reads, checks, derives the maps."""
    _refuse(job)
    mesh = _read(job, lambda name: progress(0, 2, name))
    progress(1, 2, "topology")
    full, specs = plan_request_maps(mesh, job.requests)
    sizes = full.sizes
    check_default(job.requests, specs, sizes)
    loops = []
    for spec in specs:
        size = job.options.for_names(spec.options).block_elements
        n = sizes[spec.loop.over]
        loops.append({"name": spec.loop.name, "elements": n, "block_size": size})
    by = f"order the mesh by {job.options.method}"
    held = ", ".join(f"{name} {size:,}" for name, size in mesh.sizes.items())
    text = [f"read {job.source.path}: {held}"]
    text.append(f"would {'keep the order of the mesh' if job.keeps_order else by}")
    text += [
        f"would cut loop {i['name']} ({i['elements']:,} elements) into blocks of {i['block_size']}"
        for i in loops
        if job.plan is not None
    ]
    text += _empty(specs, sizes)
    text += [f"would write {path}" for path in job.outputs]
    return {"text": text, "loops": loops, "outputs": [str(p) for p in job.outputs]}


def generate(
    kind: str,
    target: Path,
    *,
    values: Mapping[str, Any] | None = None,
    format: str | None = None,
    drop: bool = False,
    overwrite: bool = False,
    progress: Progress = lambda done, total, name: None,
) -> Generated:
    """Write a generated mesh; ``values`` are its options, ``cells`` and ``seed`` among them.

    A format for which the kind has a form of its own (OP2's, of its airfoil) goes before others
    with the same ending.

    Raises MeshprepError for unknown kinds, options and formats, outputs that exist, and losses
    without ``drop``.
    """
    from ..io.generate import GENERATORS
    from ..io.generate import generate as make

    forms = GENERATORS[kind].forms if kind in GENERATORS else {}
    endings = {name: io.FORMATS[name].extensions for name in forms}
    own = (name for name, ends in endings.items() if target.name.lower().endswith(ends))
    written_as = find(io.FORMATS, target, format or next(own, None), writing=True)
    check_targets([target], overwrite=overwrite)
    progress(0, 2, f"generating {kind}")
    mesh = make(kind, **{"seed": 0} | dict(values or {}))
    progress(1, 2, f"writing {target.name} and reading it back")
    if written_as.name in forms:
        mesh = forms[written_as.name](mesh)
    lost = io.write(mesh, target, format=written_as.name, drop=drop, overwrite=overwrite)
    return Generated(mesh.sizes, _dropped(lost, target))


def kinds() -> list[tuple[str, str, str]]:
    """The kinds of mesh that :func:`generate` knows: name, description, options and defaults."""
    from ..io.generate import GENERATORS

    return [
        (name, g.description, " ".join(f"{k}={v}" for k, v in g.options.items()))
        for name, g in GENERATORS.items()
    ]


def _refuse(job: Job) -> None:
    """Refuse what can be refused before reading."""
    source = job.source.find_format()
    if job.cell_map and source.folder is None:
        raise MeshprepError(
            f"{job.source.path}: a cell map is for OpenFOAM: give it one of its cases"
        )
    check_partitioner(job.options)
    inputs = [(source.folder and source.folder(job.source.path)) or job.source.path]
    folder = _target(job).folder if job.output else None
    check_targets(job.outputs, overwrite=job.overwrite, inputs=inputs, folder=folder)
    for path in job.vectors:
        check_vector(path)


def _read(job: Job, told: Callable[[str], None]) -> Mesh:
    """Read; refuse what the format of the output would lose."""
    told("reading")
    mesh = job.source.read()
    if job.cell_map and any(len(r) > 1 for r in mesh.extras.get(UPPER_TRIANGULAR, {}).values()):
        raise MeshprepError(
            f"{job.source.path}: a cell map is for one mesh: name one of the processor folders"
        )
    if job.output is not None:
        # The numbers of the file give way to new ones, and stay in the plan.
        bare = replace(mesh, dats=tuple(d for d in mesh.dats if not d.is_numbering))
        target = _target(job)
        fixed = _fixed(bare, target, job.output)
        io.refuse_losses(bare.renumber(fixed) if fixed else bare, job.output, target, drop=job.drop)
    return mesh


def _fixed(mesh: Mesh, target: Format, path: Path = Path()) -> Mapping[str, Ordering]:
    """The orders that the file has sets in, whatever is asked for."""
    with named(path):
        return {} if target.order is None else target.order(mesh)


def _target(job: Job) -> Format:
    """The format to write: asked for, or that of the name, or of the input where it has that name.

    The input may have another format than its ending says, or none as the folder that it is.
    """
    assert job.output is not None
    if job.output_format is None and job.output.suffix in (job.source.path.suffix, ""):
        same = job.source.find_format()
        if same.write is not None:
            return same
    return find(io.FORMATS, job.output, job.output_format, writing=True)


def _write_orders(
    ordered: Ordered,
    ordering: Mapping[str, Ordering],
    job: Job,
    staged: Mapping[Path, Path],
    writing: Callable[[Path], None],
) -> None:
    """Write the order of cells, and both directions of that of the points, where asked for."""
    if job.cell_map is not None:
        writing(job.cell_map)
        write_cell_map(ordering["cells"].new_to_old, staged[job.cell_map])
    ways = {job.old_to_new: "old_to_new", job.new_to_old: "new_to_old"}
    for path, way in ((path, way) for path, way in ways.items() if path is not None):
        loop = ordered.specs[0].loop
        if loop.leading_map is None:
            raise MeshprepError(
                f"{path}: loop '{loop.name}' reaches no points through a map: "
                "name another loop first"
            )
        writing(path)
        points = ordered.numbering.mesh.map(loop.leading_map).to_set
        write_vector(staged[path], getattr(ordering[points], way))


def _dropped(lost: list[str], output: Path) -> list[str]:
    return [f"dropped, as {output.name} cannot carry it: {what}" for what in lost]


def _runs(job: Job, plan: Plan) -> list[str]:
    """Loops that get runs of the mesh's order as blocks, where nobody asked for these."""
    asked = job.options.partition or job.options.own_blocks or job.options.target == "cpu"
    asked = asked or any(
        {"partition", "own_blocks", "target"} & r.values.keys() for r in job.requests
    )
    return [
        f"the blocks of {p.loop.name} are runs of the mesh's order: --own-blocks makes blocks that "
        "list their elements, where these load less"
        for p in plan.loops.values()
        if job.keeps_order and not asked and p.loop.maps and p.variant().partitioner == "contiguous"
    ]


def _empty(loops: Iterable[LoopSpec | LoopPlan], sizes: Mapping[str, int]) -> list[str]:
    return [
        f"{empty_loop(one.loop)}: the plan does nothing for it"
        for one in loops
        if sizes[one.loop.over] == 0
    ]


def check_default(
    asked: Sequence[LoopRequest], loops: Iterable[LoopSpec | LoopPlan], sizes: Mapping[str, int]
) -> None:
    """Raise MeshprepError where nobody named a loop and the default one has no elements."""
    for one in loops:
        if not asked and sizes[one.loop.over] == 0:
            raise MeshprepError(
                f"the default {empty_loop(one.loop)}: name another loop, such as "
                "--loop 'cells->nodes', or one that 'meshprep loops MESH' lists"
            )
