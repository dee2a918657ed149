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
from ..io.format import Format
from ..io.front import grouped_orders, named
from ..io.original_ids import check_vector, with_original_ids, write_vector
from ..io.outputs import check_targets
from ..io.registry import find
from ..io.source import MeshSource
from ..kernels import Int32s
from ..kernels.parallel import at_once
from ..loops.request_maps import notes_of, plan_request_maps
from ..loops.requests import LoopRequest, LoopSpec, default_request, empty_loop
from ..loops.template import template
from ..mesh import Mesh
from ..mesh.model import UPPER_TRIANGULAR
from ..metrics.cost import Measured
from ..staging.blocks import check_partitioner
from .measure import measure
from .steps import STAGES, Options, Ordered, draft, order, order_alone, prove, renumbered


@dataclass(frozen=True)
class Job:
    """What to read, prepare and write.

    With neither ``output`` nor ``cell_map`` the mesh keeps its order. Without ``plan`` it
    is only ordered: no blocks, colours and proof.
    """

    source: MeshSource
    output: Path | None  # the mesh in its new order
    plan: Path | None
    requests: tuple[LoopRequest, ...] = ()  # the loops; none for the default loop
    options: Options = field(default_factory=Options)
    output_format: str | None = None
    drop: bool = False  # accept what the output's format loses
    overwrite: bool = False
    ids: bool = True  # write ``original_id`` into the mesh where the format can hold it
    # Files for the first loop, numbers from 0: the new number of each point that it orders
    # (each vertex of a graph), the old number of each in the new order, and the block of
    # each of its elements (each edge).
    old_to_new: Path | None = None
    new_to_old: Path | None = None
    blocks: Path | None = None
    # A file for OpenFOAM's ``renumberMesh``: the old number of each cell in the new order.
    cell_map: Path | None = None
    measure: bool = False  # time the loops in both orders (:func:`~.measure.measure`)
    planned: bool = False  # make the plan also where no file is named for it
    renumbers: bool = False  # find an order also where no file is named for the mesh

    @property
    def vectors(self) -> list[Path]:
        """The files of numbers that the job writes."""
        possible = (self.old_to_new, self.new_to_old, self.blocks)
        return [path for path in possible if path is not None]

    @property
    def keeps_order(self) -> bool:
        """Whether nothing is written or given back that has another order."""
        return self.output is None and self.cell_map is None and not self.renumbers

    @property
    def makes_plan(self) -> bool:
        """Whether there is a plan, in a file or given back."""
        return self.plan is not None or self.planned

    @property
    def outputs(self) -> list[Path]:
        """The files the job writes."""
        possible = (self.output, self.plan, self.cell_map, *self.vectors)
        return [path for path in possible if path is not None]


@dataclass(frozen=True, eq=False)
class JobResult:
    """The outcome of a job: files, the order of every set, figures, and the plan if any."""

    written: list[Path]
    notes: list[str]
    dropped: list[str]  # what ``drop`` made the mesh lose
    ordering: Mapping[str, Ordering]
    orders: tuple[OrderMetrics, ...]
    plan: Plan | None
    measured: Mapping[str, Measured]  # by loop
    mesh: Mesh | None = None  # in its new order

    def to_dict(self) -> dict[str, Any]:
        """JSON values: files, notes and every figure."""
        values: dict[str, Any] = {
            "written": [str(path) for path in self.written],
            "notes": [*self.notes, *self.dropped],
        }
        if self.plan is None:
            values["orders"] = [to_json(order) for order in self.orders]
        else:
            values["metrics"] = to_json(self.plan.metrics)
            values["measured"] = {k: asdict(times) for k, times in self.measured.items()}
        return values


@dataclass(frozen=True)
class Generated:
    """A mesh that was generated and written: the sizes of its sets, and its losses."""

    sizes: dict[str, int]
    notes: list[str]


class _Announced:
    """The progress of a job: reading, the stages of a plan, then a turn for each file."""

    def __init__(self, job: Job, progress: Progress) -> None:
        self._job = job
        self._progress = progress
        self.proves = job.options.proof and job.makes_plan
        self.n_stages = 2
        if job.makes_plan:
            self.n_stages = len(STAGES) if self.proves else len(STAGES) - 1

    def stage(self, done: float, _: int, name: str) -> None:
        """Announce a stage, as the steps of a plan do."""
        total = 1 + self.n_stages + len(self._job.outputs)
        self._progress(1 + done, total, name)

    def reading(self, name: str) -> None:
        """Announce what comes before the stages."""
        self.stage(-1, 0, name)

    def writing(self, path: Path, more: str = "") -> None:
        """Announce an output."""
        turn = self._job.outputs.index(path)
        self.stage(self.n_stages + turn, 0, f"writing {path.name}{more}")


def run(job: Job, progress: Progress = lambda done, total, name: None) -> JobResult:
    """Read, prepare, write: the mesh and the plan appear together or not at all.

    Raises MeshprepError on bad input, unknown names, outputs that exist, and losses without
    ``drop``.
    """
    announced = _Announced(job, progress)
    _refuse_job(job)
    mesh = _read_for_job(job, announced.reading)

    # Order the sets, and draft the plan: all but its proof.
    fixed: Mapping[str, Ordering] = {}
    groups = None
    if job.output is not None:
        target = _target_format(job)
        fixed = _orders_of_format(mesh, target)
        groups = io.file_groups(mesh, target)
    ordered = order(
        mesh=mesh,
        loops=job.requests,
        options=job.options,
        keep_order=job.keeps_order,
        progress=announced.stage,
        fixed=fixed,
        groups=groups,
        planned=job.makes_plan,
    )
    check_default(job.requests, ordered.specs, ordered.numbering.mesh.sizes)
    drafted: Plan | None = None
    if not job.makes_plan:
        ordering, orders = order_alone(ordered, job.options)
    else:
        drafted = draft(ordered, job.options, announced.stage)
        ordering = drafted.ordering
        orders = drafted.metrics.orders

    # Write all files beside their places, and put them there together. The plan is proved
    # while the mesh is written.
    with together(job.outputs, overwrite=job.overwrite) as temporary:
        staged = dict(zip(job.outputs, temporary, strict=True))
        if announced.proves:
            announced.stage(announced.n_stages - 1, 0, STAGES[-1])
        if job.output is not None:
            announced.writing(job.output, " and reading it back")
        new = renumbered(mesh, ordering)

        def save_plan() -> Plan | None:
            if drafted is None:
                return None
            return _prove_and_save(
                drafted=drafted,
                ordered=ordered,
                new=new,
                job=job,
                staged=staged,
                writing=announced.writing,
            )

        def write_mesh() -> tuple[list[str], list[str]]:
            return _write_mesh(new=new, ordering=ordering, job=job, staged=staged)

        plan, (left_out, dropped) = at_once(save_plan, write_mesh)
        _write_orders(
            ordered=ordered,
            ordering=ordering,
            job=job,
            staged=staged,
            writing=announced.writing,
        )
        if job.blocks is not None and plan is not None:
            announced.writing(job.blocks)
            write_vector(staged[job.blocks], _blocks_of_first_loop(plan))

    # Time the loops, and say what a user should know.
    measured: Mapping[str, Measured] = {}
    if job.measure and plan is not None:
        measured = measure(plan)
    notes = [
        *_notes_on_inferred_sets(mesh),
        *_notes_on_orders(orders),
        *left_out,
        *notes_of(ordered.specs),
    ]
    if plan is not None:
        notes += _notes_on_empty_loops(plan.loops.values(), plan.sizes)
        notes += _notes_on_runs(job, plan)
    return JobResult(
        written=job.outputs,
        notes=notes,
        dropped=dropped,
        ordering=ordering,
        orders=orders,
        plan=plan,
        measured=measured,
        mesh=new,
    )


def _blocks_of_first_loop(plan: Plan) -> Int32s:
    """The block of each element of the first loop, in the order of the input."""
    first = next(iter(plan.loops.values()))
    order = plan.ordering[first.loop.over]
    blocks: Int32s = order.restore(first.variant().block_of_element())
    return blocks


def _notes_on_inferred_sets(mesh: Mesh) -> list[str]:
    """What was found out about a file that does not say which sets its datasets are on."""
    notes = []
    for name, entries in mesh.extras.items():
        if name.endswith(":inferred"):
            text = " ".join(entries)
            notes.append(
                f"found by sizes and ranges, to be declared with --sets if wrong: {text}"
            )
    return notes


def _notes_on_orders(orders: Iterable[OrderMetrics]) -> list[str]:
    """The orders that were not applied, and why."""
    return [
        f"order {order.method} of {order.set} was not applied: {order.reason}"
        for order in orders
        if not order.applied
    ]


def _prove_and_save(
    drafted: Plan,
    ordered: Ordered,
    new: Mesh,
    job: Job,
    staged: Mapping[Path, Path],
    writing: Callable[[Path], None],
) -> Plan:
    """Prove and write the plan of a mesh that is ``new`` in its order."""
    proved, mesh_hash = at_once(
        lambda: prove(drafted, ordered, job.options), new.content_hash
    )
    plan: Plan = replace(proved, mesh_hash=mesh_hash)
    # Note how the input is to be read again, where it does not say so by itself.
    how_to_read = job.source.find_format().again
    if how_to_read is not None:
        plan = replace(plan, options={**plan.options, **how_to_read(ordered.mesh)})
    if job.plan is not None:
        writing(job.plan)
        plan.save(staged[job.plan])
    return plan


def _write_mesh(
    new: Mesh,
    ordering: Mapping[str, Ordering],
    job: Job,
    staged: Mapping[Path, Path],
) -> tuple[list[str], list[str]]:
    """Write the mesh in its new order where it is asked for.

    Gives lines for what was left out of the file, and for what ``drop`` made it lose.
    """
    output = job.output
    if output is None:
        return [], []
    # The original numbers come along where the format can hold them.
    target = _target_format(job)
    left_out = list[str]()
    if job.ids:
        new, left_out = with_original_ids(new, ordering, target)
    missing = io.write(mesh=new, path=staged[output], format=target.name, drop=job.drop)

    # Tell losses, which need ``drop``, from what no format of this kind keeps.
    lost = []
    if missing:
        lost = io.losses(new, target)
    notes = "; ".join(text for text in missing if text not in lost)
    if notes:
        left_out += _dropped([notes], output)
    return left_out, _dropped(lost, output)


def describe(
    job: Job, progress: Progress = lambda done, total, name: None
) -> dict[str, Any]:
    """Read, check, derive the maps and find the order; say what :func:`run` would do."""
    # Read the mesh and derive the maps, as a run would.
    _refuse_job(job)
    mesh = _read_for_job(job, lambda name: progress(0, 3, name))
    progress(1, 3, "topology")
    full, specs = plan_request_maps(mesh, job.requests)
    sizes = full.sizes
    check_default(job.requests, specs, sizes)
    loops = []
    for spec in specs:
        options = job.options.for_names(spec.options)
        loops.append(
            {
                "name": spec.loop.name,
                "elements": sizes[spec.loop.over],
                "block_size": options.block_elements,
            }
        )

    # Say what it would do: order, cut, write.
    sets = ", ".join(f"{name} {size:,}" for name, size in mesh.sizes.items())
    text = [f"read {job.source.path}: {sets}"]
    if job.keeps_order:
        text.append("would keep the order of the mesh")
    else:
        text.append(f"would order the mesh by {job.options.method}")
        progress(2, 3, "locality")
        ordered = order(
            mesh, job.requests, job.options, derived=(full, specs), planned=False
        )
        text += [f"{lead.metrics.set}: {lead.metrics.reason}" for lead in ordered.leads]
    if job.plan is not None:
        text += [
            f"would cut loop {loop['name']} ({loop['elements']:,} elements) "
            f"into blocks of {loop['block_size']}"
            for loop in loops
        ]
    text += notes_of(specs)
    text += _notes_on_empty_loops(specs, sizes)
    text += [f"would write {path}" for path in job.outputs]
    return {"text": text, "loops": loops, "outputs": [str(p) for p in job.outputs]}


def orders_of(mesh: Mesh) -> tuple[OrderMetrics, ...]:
    """What a better order of a mesh would gain for its default loop."""
    found = order(mesh, [default_request(mesh)], Options(), planned=False)
    return tuple(lead.metrics for lead in found.leads)


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
    """Write a generated mesh; ``values`` are its options, such as ``cells`` and ``seed``.

    A format for which the kind has a form of its own (OP2's, of its airfoil) goes before
    others with the same ending.

    Raises MeshprepError for unknown kinds, options and formats, outputs that exist, and
    losses without ``drop``.
    """
    from ..io.generate import GENERATORS
    from ..io.generate import generate as make

    forms: Mapping[str, Callable[[Mesh], Mesh]] = {}
    if kind in GENERATORS:
        forms = GENERATORS[kind].forms

    # The format that is named, else one that has a form for this kind, else by the ending.
    if format is None:
        for name in forms:
            if target.name.lower().endswith(io.FORMATS[name].extensions):
                format = name
                break
    written_as = find(target, format, writing=True)
    check_targets([target], overwrite=overwrite)
    progress(0, 2, f"generating {kind}")
    options = {"seed": 0} | dict(values or {})
    mesh = make(kind, **options)
    progress(1, 2, f"writing {target.name} and reading it back")
    if written_as.name in forms:
        mesh = forms[written_as.name](mesh)
    lost = io.write(
        mesh=mesh,
        path=target,
        format=written_as.name,
        drop=drop,
        overwrite=overwrite,
    )
    return Generated(mesh.sizes, _dropped(lost, target))


def template_of(
    source: MeshSource, output: Path | None = None, *, overwrite: bool = False
) -> str:
    """The template for a mesh file; written to ``output`` where there is one."""
    if output is not None:
        check_targets([output], overwrite=overwrite, inputs=[source.path])
    text = template(source.read(), source.path.name)
    if output is not None:
        with together([output], overwrite=overwrite) as (staged,):
            staged.write_text(text, encoding="utf-8")
    return text


def kinds() -> list[tuple[str, str, str]]:
    """The kinds of mesh that :func:`generate` knows.

    Returns
    -------
    list of (str, str, str)
        Name, description, and options with their defaults.
    """
    from ..io.generate import GENERATORS

    rows = []
    for name, generator in GENERATORS.items():
        options = " ".join(f"{k}={v}" for k, v in generator.options.items())
        rows.append((name, generator.description, options))
    return rows


def _refuse_job(job: Job) -> None:
    """Refuse what can be refused before reading."""
    source = job.source.find_format()
    if job.cell_map and source.folder is None:
        raise MeshprepError(
            f"{job.source.path}: a cell map is for OpenFOAM: give it one of its cases"
        )
    check_partitioner(job.options)
    # No output may stand on the input, which may be a folder.
    input_file = job.source.path
    if source.folder is not None:
        input_file = source.folder(job.source.path) or job.source.path
    folder = None
    if job.output is not None:
        folder = _target_format(job).folder
    check_targets(job.outputs, overwrite=job.overwrite, inputs=[input_file], folder=folder)
    for path in job.vectors:
        check_vector(path)


def _read_for_job(job: Job, announce: Callable[[str], None]) -> Mesh:
    """Read; refuse what the format of the output would lose."""
    announce("reading")
    mesh = job.source.read()
    runs_of_cells = mesh.extras.get(UPPER_TRIANGULAR, {}).values()
    if job.cell_map and any(len(sizes) > 1 for sizes in runs_of_cells):
        raise MeshprepError(
            f"{job.source.path}: a cell map is for one mesh: "
            "name one of the processor folders"
        )
    if job.output is not None:
        # The numbers of the file give way to new ones, and stay in the plan.
        bare = replace(mesh, dats=tuple(d for d in mesh.dats if not d.is_numbering))
        target = _target_format(job)
        with named(job.output):
            by_groups = grouped_orders(bare, target)
        placed = {**by_groups, **_orders_of_format(bare, target, job.output)}
        if placed:
            bare = bare.renumber(placed)
        io.refuse_losses(
            mesh=bare,
            path=job.output,
            target=target,
            drop=job.drop,
        )
    return mesh


def _orders_of_format(
    mesh: Mesh, target: Format, path: Path = Path()
) -> Mapping[str, Ordering]:
    """The orders that a format prescribes for sets, whatever is asked for."""
    with named(path):
        if target.order is None:
            return {}
        return target.order(mesh)


def _target_format(job: Job) -> Format:
    """The format to write: as asked for, or that of the output's name.

    Where the output has the ending of the input, it has the format of the input, too: that
    may be another than the ending says, or none, as a folder has.
    """
    assert job.output is not None
    if job.output_format is None and job.output.suffix in (job.source.path.suffix, ""):
        same = job.source.find_format()
        if same.write is not None:
            return same
    return find(job.output, job.output_format, writing=True)


def _write_orders(
    ordered: Ordered,
    ordering: Mapping[str, Ordering],
    job: Job,
    staged: Mapping[Path, Path],
    writing: Callable[[Path], None],
) -> None:
    """Write the files of the job with the order of cells and of points."""
    if job.cell_map is not None:
        writing(job.cell_map)
        write_cell_map(ordering["cells"].new_to_old, staged[job.cell_map])
    for path, direction in (
        (job.old_to_new, "old_to_new"),
        (job.new_to_old, "new_to_old"),
    ):
        if path is None:
            continue
        loop = ordered.specs[0].loop
        if loop.leading_map is None:
            raise MeshprepError(
                f"{path}: loop '{loop.name}' reaches no points through a map: "
                "name another loop first"
            )
        writing(path)
        points = ordered.numbering.mesh.map(loop.leading_map).to_set
        write_vector(staged[path], getattr(ordering[points], direction))


def _dropped(lost: list[str], output: Path) -> list[str]:
    """A line for each loss of an output."""
    return [f"dropped, {output.name} is written without it: {what}" for what in lost]


def _notes_on_runs(job: Job, plan: Plan) -> list[str]:
    """Loops that get runs of the mesh's order as blocks although nobody asked for runs."""
    asked = job.options.partition or job.options.own_blocks or job.options.target == "cpu"
    for request in job.requests:
        if {"partition", "own_blocks", "target"} & request.values.keys():
            asked = True
    if asked or not job.keeps_order:
        return []
    return [
        f"the blocks of {p.loop.name} are runs of the mesh's order: --own-blocks makes "
        "blocks that list their elements, where these load less"
        for p in plan.loops.values()
        if p.loop.maps and p.variant().partitioner == "contiguous"
    ]


def _notes_on_empty_loops(
    loops: Iterable[LoopSpec | LoopPlan], sizes: Mapping[str, int]
) -> list[str]:
    """The loops that have no elements."""
    return [
        f"{empty_loop(one.loop)}: the plan does nothing for it"
        for one in loops
        if sizes[one.loop.over] == 0
    ]


def check_default(
    asked: Sequence[LoopRequest],
    loops: Iterable[LoopSpec | LoopPlan],
    sizes: Mapping[str, int],
) -> None:
    """Raise MeshprepError where nobody named a loop and the default one has no elements."""
    for one in loops:
        if not asked and sizes[one.loop.over] == 0:
            raise MeshprepError(
                f"the default {empty_loop(one.loop)}: name another loop, one that "
                "'meshprep loops MESH' lists"
            )
