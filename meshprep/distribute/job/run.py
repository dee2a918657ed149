"""From file to file: what ``meshprep split`` does, for scripts that want the same."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from meshprep_runtime.errors import MeshprepError, Progress, ProofError
from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.file.atomic import together
from meshprep_runtime.plan.file.hdf5 import new_hdf5
from meshprep_runtime.plan.file.seal import is_parts, is_plan, seal_parts
from meshprep_runtime.plan.parts import kept, parts_table, read_part
from meshprep_runtime.plan.parts.batch import PartBatch
from meshprep_runtime.plan.parts.write import (
    KeptParts,
    PartsSource,
    SpilledParts,
    begin_file,
    copy_slices,
    spill_file,
)

from ... import io
from ...io.op2.write import describe
from ...io.outputs import check_targets
from ...io.sliced import scan
from ...io.source import MeshSource
from ...kernels.parallel import at_once, give_back
from ...loops.options import Options
from ...loops.request_maps import notes_of, plan_request_maps
from ...loops.requests import LoopRequest
from ...mesh import Mesh
from ...registry.partitioners import FILE
from ..build.figures import batch_figures, split_figures
from ..build.order import with_kept_blocks
from ..ranks import ALONE, Ranks, agreed, in_turn, of_root, own_parts
from ..slices.read import subject_of_slices
from ..subject import SplitSubject, subject_of_mesh, subject_of_plan
from .check import proof_of_split
from .joined import joined_subject
from .split import SplitOptions, split
from .split_slices import check_cut_of_slices, split_slices

# Elements a part below which parts consist of borders, mostly.
SMALL = 20


@dataclass(frozen=True)
class SplitJob:
    """Input, options and outputs of a split.

    ``source`` is a mesh, a plan, or a file of parts, to which further numbers of parts are
    added. ``declared`` says what the datasets of a file are where the file does not. With
    ``slices`` each rank reads and holds slices of the mesh. ``op2`` is a file to write the
    parts of the leading set to, as dats of OP2. With ``fields`` the mesh's values come
    along.
    """

    source: Path
    output: Path
    parts: tuple[int, ...]
    requests: tuple[LoopRequest, ...] = ()
    how: SplitOptions = field(default_factory=SplitOptions)
    options: Options = field(default_factory=Options)
    input_format: str | None = None
    dimension: int | None = None
    overwrite: bool = False
    declared: Mapping[str, str] = field(default_factory=dict)
    slices: bool = False
    op2: Path | None = None
    fields: bool = False
    # A mesh that is there already: ``source`` is then its name alone.
    mesh: Mesh | None = None

    @property
    def outputs(self) -> list[Path]:
        """Output paths, the file of parts first."""
        if self.op2 is None:
            return [self.output]
        return [self.output, self.op2]

    def __post_init__(self) -> None:
        if not self.parts or min(self.parts) < 1:
            raise MeshprepError("give the numbers of parts from 1, such as --parts 4,8")
        if len(set(self.parts)) < len(self.parts):
            raise MeshprepError("a number of parts is named twice: name each once")
        if (self.how.cut or "").startswith(FILE) and len(self.parts) > 1:
            raise MeshprepError(
                "a file of parts is for one number of parts: split one at a time"
            )


@dataclass(frozen=True, eq=False)
class SplitJobResult:
    """Outputs of a job, figures by number of parts, and notes for the user."""

    written: list[Path]
    figures: dict[int, dict[str, Any]]
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        return {
            "written": [str(path) for path in self.written],
            "notes": self.notes,
            "splits": [self.figures[parts] for parts in sorted(self.figures)],
        }


def _no_progress(done: float, total: float, name: str) -> None:
    """Tell nobody: rank 0 reports for all ranks."""


def run(
    job: SplitJob, progress: Progress = lambda done, total, name: None, ranks: Ranks = ALONE
) -> SplitJobResult:
    """Read, split, write: the file appears whole or not at all.

    Raises MeshprepError on bad input, unknown names, outputs that exist, and numbers of
    parts that are there; on every rank the same. ``progress`` is told on rank 0. ``ranks``
    are those of a communicator of mpi4py, which build the parts together; the file does not
    depend on their number. Without slices, rank 0 reads the mesh, and every rank holds its
    sets and maps.
    """
    if ranks.rank:
        progress = _no_progress
    split_by = 1 + 2 * len(job.parts)
    proof = job.options.proof
    total = split_by + 1 + proof
    # Check before anything is read, and make room for the outputs.
    of_root(ranks, lambda: _check_job(job))
    with ExitStack() as files:
        staged, *further_outputs = of_root(
            ranks, lambda: files.enter_context(_new_outputs(job))
        )
        progress(0, total, "reading")
        subject = _subject(job, ranks)
        notes = agreed(ranks, partial(_notes_on_small_parts, job, subject))
        notes += job.how.notes_on(subject, slices=job.slices)
        notes += notes_of(subject.specs)
        sources = agreed(ranks, lambda: _kept_sources(job, ranks))
        # Split into each number of parts; the parts wait in files of each rank.
        figures = {}
        for i, parts in enumerate(job.parts):
            spill = agreed(ranks, partial(_spill, files, staged, parts, job, ranks))
            of_split = _SplitProgress(
                progress=progress,
                done=1 + 2 * i,
                total=total,
                parts=parts,
            )
            _split(
                subject=subject,
                job=job,
                spill=spill,
                progress=of_split,
                ranks=ranks,
            )
            figures[parts] = spill.table.description["figures"]
            sources.append(spill)
        # Write all splits into one file, the smallest number of parts first.
        progress(split_by, total, f"writing {job.output.name}")
        sources.sort(key=lambda source: source.table.parts)
        _write(staged=staged, subject=subject, sources=sources, ranks=ranks)
        for path in further_outputs:
            write = partial(write_external, path, staged, job.parts, subject.leading_set)
            of_root(ranks, write)
        # Prove what was written. The proof has maps of the size of the subject.
        del subject
        if proof:
            progress(split_by + 1, total, "proof")
            agreed(ranks, lambda: _prove(staged, job, ranks))
        agreed(ranks, files.pop_all().close)
    return SplitJobResult(job.outputs, figures, notes)


def _subject(job: SplitJob, ranks: Ranks) -> SplitSubject:
    """The whole subject, or the slices of this rank."""
    if kind_of(job.source) == "parts":
        if job.slices:
            subject = joined_subject(job.source, ranks)
        else:
            subject = of_root(ranks, partial(joined_subject, job.source, ALONE)).shared()
        return with_kept_blocks(subject, job.options)
    if not job.slices:
        return of_root(ranks, lambda: _whole_subject(job)).shared()
    sets = job.declared or None
    mesh = of_root(ranks, lambda: scan(job.source, job.input_format, sets))
    return subject_of_slices(mesh, job.requests, ranks)


@contextmanager
def _new_outputs(job: SplitJob) -> Iterator[list[Path]]:
    """The outputs; a source that is opened several times must have been one file."""
    before = _file_number(job.source)
    adding = kind_of(job.source) == "parts"
    with together(job.outputs, overwrite=job.overwrite or adding) as staged:
        yield staged
        if _file_number(job.source) != before:
            raise MeshprepError(
                f"{job.source} was replaced while it was split: split it again"
            )


def _file_number(path: Path) -> tuple[int, ...] | None:
    """Device, inode, size and time of a file, which tell a file that was replaced."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _spill(
    files: ExitStack,
    staged: Path,
    parts: int,
    job: SplitJob,
    ranks: Ranks,
) -> SpilledParts:
    """The file in which the parts of this rank wait until all are made."""
    path = staged.with_name(f"{parts}-{ranks.rank}.waiting")
    # The proof reads all parts again, and checks them then.
    check = not job.options.proof
    return SpilledParts(files.enter_context(spill_file(path)), parts, check=check)


def _write(
    staged: Path,
    subject: SplitSubject,
    sources: Sequence[PartsSource],
    ranks: Ranks,
) -> None:
    """Rank 0 lays the file out, every rank writes its parts, rank 0 seals it."""
    about = {"source_hash": subject.source_hash, "cell_types": subject.cell_types}
    laid_out = of_root(ranks, lambda: begin_file(staged, about, sources))
    agreed(
        ranks,
        lambda: copy_slices(
            path=staged,
            laid_out=laid_out,
            sources=sources,
            together=at_once,
        ),
    )
    of_root(ranks, lambda: seal_parts(staged, laid_out.begin, laid_out.end))


def _prove(staged: Path, job: SplitJob, ranks: Ranks) -> None:
    """Prove the new splits as they were written; each rank proves the parts it made."""
    for parts in job.parts:
        findings = proof_of_split(staged, parts, ranks).findings
        if findings:
            first_findings = "; ".join(findings[:3])
            raise ProofError(f"the parts are wrong: {first_findings}")


def kind_of(path: Path) -> str:
    """``"parts"``, ``"plan"`` or ``"mesh"``, by the first bytes of a file."""
    # A file that cannot be read counts as a mesh, whose reader says what is wrong.
    if is_parts(path):
        return "parts"
    if is_plan(path):
        return "plan"
    return "mesh"


@dataclass(frozen=True)
class _SplitProgress:
    """Progress of the split into one number of parts."""

    progress: Progress
    done: int
    total: int
    parts: int

    def ordering(self, share: float) -> None:
        self.progress(
            self.done + min(share, 0.999), self.total, f"{self.parts} parts: ordering"
        )

    def building(self, share: float) -> None:
        self.progress(
            self.done + 1 + share, self.total, f"{self.parts} parts: blocks and colours"
        )


def _split(
    subject: SplitSubject,
    job: SplitJob,
    spill: SpilledParts,
    progress: _SplitProgress,
    ranks: Ranks,
) -> None:
    """Split into one number of parts, and write each part to the spill file."""
    progress.ordering(0)
    how = split_slices if job.slices else split
    result = how(subject, progress.parts, job.how, job.options, progress.ordering, ranks)

    def build_batch(parts: range) -> tuple[PartBatch, Any]:
        batch = result.builder.batch(parts)
        return batch, batch_figures(batch)

    def build() -> list[tuple[int, Any]]:
        figures_by_start = []
        batches = result.builder.batches(own_parts(ranks, progress.parts))
        for batch, figures in in_turn(build_batch, batches, progress.building):
            figures_by_start.append((batch.parts.start, figures))
            spill.add(batch)
        return figures_by_start

    # Add up the figures of all ranks in the order of the parts.
    batches_of_ranks = chain.from_iterable(ranks.allgather(agreed(ranks, build)))
    in_order = sorted(batches_of_ranks, key=lambda start_and_figures: start_and_figures[0])
    record = split_figures([figures for _, figures in in_order])
    # Record how the split was made.
    record["increments"] = {name: asdict(cost) for name, cost in result.costs.items()}
    record["cut"] = job.how.cut_of(subject, slices=job.slices)
    record["weights"] = list(job.how.weights)
    record["options"] = job.options.effective()
    spill.finish(record, ranks.allgather)


def _check_job(job: SplitJob) -> None:
    """Check the job before anything is read."""
    # Find a reader of the source, and refuse what slices cannot give.
    kind = kind_of(job.source)
    if kind == "mesh" and job.mesh is None:
        MeshSource(job.source, job.input_format).find_format()
    if job.slices:
        check_cut_of_slices(job.how.cut)
        if kind == "plan":
            raise MeshprepError(f"{job.source} is a plan, which is not read by slices")
    if job.fields and (job.slices or kind != "mesh"):
        kind_of_source = "read by slices" if job.slices else "no mesh"
        raise MeshprepError(
            f"{job.source} is {kind_of_source}, which gives no fields: "
            "leave --fields out, or split a mesh file without --slices"
        )
    # A file of parts may be its own output: further numbers of parts are added.
    new_files = job.outputs
    if kind == "parts" and job.output.resolve() == job.source.resolve():
        new_files = job.outputs[1:]
    check_targets(new_files, overwrite=job.overwrite, inputs=[job.source])
    # Loops and weights that fit the source and the parts.
    if job.requests and kind != "mesh":
        raise MeshprepError(f"{job.source} has its loops: leave --loop and --loops out")
    for parts in job.parts:
        job.how.shares(parts)


def _notes_on_small_parts(job: SplitJob, subject: SplitSubject) -> list[str]:
    """Notes on very small parts; raises MeshprepError for more parts than elements."""
    name = subject.leading_set
    most = subject.sizes[subject.leading_set]
    if max(job.parts) > most:
        raise MeshprepError(
            f"{job.source} has {most:,} {name}, too few for {max(job.parts):,} parts: "
            f"ask for {most:,} at most"
        )
    return [
        f"{parts:,} parts have {most / parts:.1f} {name} each on average, "
        "and about as many copies of others': fewer parts send less"
        for parts in job.parts
        if parts > 1 and most < SMALL * parts
    ]


def _kept_sources(job: SplitJob, ranks: Ranks) -> list[PartsSource]:
    """Splits of the source, if it is a file of parts, that stay."""
    if kind_of(job.source) != "parts":
        return []
    parts_in_source = kept(job.source)
    again = next((parts for parts in parts_in_source if parts in job.parts), None)
    if again is not None and not job.overwrite:
        raise MeshprepError(
            f"{job.source} is split into {again} parts already: name another number, "
            "or allow overwriting it by --force (in Python overwrite=True)"
        )
    unchanged = [parts for parts in parts_in_source if parts not in job.parts]
    return [KeptParts(job.source, parts, own_parts(ranks, parts)) for parts in unchanged]


def _whole_subject(job: SplitJob) -> SplitSubject:
    """The subject of a mesh or a plan, read as a whole."""
    if kind_of(job.source) == "plan":
        return subject_of_plan(Plan.load(job.source)).with_block_size(
            job.options.block_size
        )
    mesh = job.mesh
    if mesh is None:
        declared = job.declared or None
        mesh = io.read(
            job.source, format=job.input_format, dimension=job.dimension, sets=declared
        )
    full, specs = plan_request_maps(mesh, job.requests)
    subject = subject_of_mesh(mesh=mesh, full=full, specs=specs, fields=job.fields)
    del mesh, full
    # What was read is as large as the subject.
    give_back()
    return subject


def write_external(
    path: Path,
    source: Path,
    counts: Sequence[int],
    name: str,
) -> None:
    """Write the part of each element of a set as OP2's dats ``part_K``.

    ``path`` is a new HDF5 file, made from the file of parts ``source``. It has one dataset
    (n, 1) of int32 for each number of parts in ``counts``, in the order of the mesh that
    was read. ``name`` is the leading set. O(n) for each number of parts, and 4 bytes an
    element.
    """
    with new_hdf5(path, userblock=0) as file:
        for table in (parts_table(source, parts) for parts in counts):
            size = int(table.description["sets"][name])
            part_of_element = np.empty(size, "<i4")
            for part in range(table.parts):
                owned = read_part(source, table, part).sets[name].original
                part_of_element[owned] = part
            column = part_of_element[:, None]
            dataset = file.create_dataset(f"part_{table.parts}", data=column)
            describe(dataset, {"size": 4, "dim": 1}, "int")
