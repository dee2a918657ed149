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

from .. import io
from ..io.op2.write import describe
from ..io.outputs import check_targets
from ..io.sliced import scan
from ..io.source import MeshSource
from ..kernels.parallel import at_once, give_back
from ..loops.options import Options
from ..loops.requests import LoopRequest, default_request
from ..pipeline.steps import plan_request_maps
from .assign.owners import FILE
from .check import proof_of_split
from .increments import batch_figures, split_figures
from .joined import joined_subject
from .order import with_kept_blocks
from .ranks import ALONE, Ranks, agreed, in_turn, of_root, own_parts
from .slices.read import subject_of_slices
from .slices.steps import check_cut, split_slices
from .steps import SplitOptions, split
from .subject import SplitSubject, subject_of_mesh, subject_of_plan

# Parts of fewer elements have mostly borders.
SMALL = 20


@dataclass(frozen=True)
class SplitJob:
    """Input, options and outputs of a split.

    ``source`` is a mesh, a plan, or a file of parts, to which further numbers of parts are added.
    ``declared`` says what the datasets of a file are that does not say it. With ``slices`` each
    rank reads and holds slices of the mesh. ``op2`` is a file to write the parts of the leading set
    to, as dats of OP2. With ``fields`` the mesh's values come along.
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

    @property
    def outputs(self) -> list[Path]:
        """Output paths, the file of parts first."""
        return [self.output] if self.op2 is None else [self.output, self.op2]

    def __post_init__(self) -> None:
        if not self.parts or min(self.parts) < 1:
            raise MeshprepError("give the numbers of parts from 1, such as --parts 4,8")
        if len(set(self.parts)) < len(self.parts):
            raise MeshprepError("a number of parts is named twice: name each once")
        if (self.how.cut or "").startswith(FILE) and len(self.parts) > 1:
            raise MeshprepError("a file of parts is for one number of parts: split one at a time")


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


def run(
    job: SplitJob, progress: Progress = lambda done, total, name: None, ranks: Ranks = ALONE
) -> SplitJobResult:
    """Read, split, write: the file appears whole or not at all.

    Raises MeshprepError on bad input, unknown names, outputs that exist, and numbers of parts that
    are there; on every rank the same. ``progress`` is told on rank 0. ``ranks`` are those of a
    communicator of mpi4py, which build the parts together; the file does not depend on their
    number. Without slices, rank 0 reads the mesh, and every rank holds its sets and maps.
    """
    if ranks.rank:
        progress = lambda done, total, name: None  # noqa: E731
    split_by, proof = 1 + 2 * len(job.parts), job.options.proof
    total = split_by + 1 + proof
    of_root(ranks, lambda: _check_job(job))
    with ExitStack() as files:
        staged, *more = of_root(ranks, lambda: files.enter_context(_new_outputs(job)))
        progress(0, total, "reading")
        subject = _subject(job, ranks)
        notes = agreed(ranks, partial(_notes_on_small_parts, job, subject))
        notes += job.how.notes_on(subject, slices=job.slices)
        sources = agreed(ranks, lambda: _kept_sources(job, ranks))
        figures = {}
        for i, parts in enumerate(job.parts):
            spill = agreed(ranks, partial(_spill, files, staged, parts, job, ranks))
            of_split = _SplitProgress(progress, 1 + 2 * i, total, parts)
            _split(subject, job, spill, of_split, ranks)
            figures[parts] = spill.table.description["figures"]
            sources.append(spill)
        progress(split_by, total, f"writing {job.output.name}")
        sources.sort(key=lambda one: one.table.parts)
        _write(staged, subject, sources, ranks)
        for path in more:
            of_root(ranks, partial(write_external, path, staged, job.parts, subject.leading_set))
        # the proof has its own maps of the same size
        del subject
        if proof:
            progress(split_by + 1, total, "proof")
            agreed(ranks, lambda: _prove(staged, job, ranks))
        agreed(ranks, files.pop_all().close)
    return SplitJobResult(job.outputs, figures, notes)


def _subject(job: SplitJob, ranks: Ranks) -> SplitSubject:
    """The whole subject, or the slices of this rank."""
    if kind_of(job.source) == "parts":
        source = ranks if job.slices else ALONE
        read = partial(joined_subject, job.source, source)
        found = read() if job.slices else of_root(ranks, read).shared()
        return with_kept_blocks(found, job.options)
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
            raise MeshprepError(f"{job.source} was replaced while it was split: split it again")


def _file_number(path: Path) -> tuple[int, ...] | None:
    """Device, inode, size and time of a file: they tell whether it was replaced; or None."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _spill(files: ExitStack, staged: Path, parts: int, job: SplitJob, ranks: Ranks) -> SpilledParts:
    path = staged.with_name(f"{parts}-{ranks.rank}.waiting")
    # the proof reads all parts again, and looks at them then
    check = not job.options.proof
    return SpilledParts(files.enter_context(spill_file(path)), parts, check=check)


def _write(
    staged: Path, subject: SplitSubject, sources: Sequence[PartsSource], ranks: Ranks
) -> None:
    """Rank 0 lays the file out, every rank writes its parts, rank 0 seals it."""
    about = {"source_hash": subject.source_hash, "cell_types": subject.cell_types}
    laid_out = of_root(ranks, lambda: begin_file(staged, about, sources))
    agreed(ranks, lambda: copy_slices(staged, laid_out, sources, at_once))
    of_root(ranks, lambda: seal_parts(staged, laid_out.begin, laid_out.end))


def _prove(staged: Path, job: SplitJob, ranks: Ranks) -> None:
    """Prove the new splits from what was written; each rank proves the parts that it made."""
    for parts in job.parts:
        if wrong := proof_of_split(staged, parts, ranks).findings:
            raise ProofError(f"the parts are wrong: {'; '.join(wrong[:3])}")


def kind_of(path: Path) -> str:
    """``"parts"``, ``"plan"`` or ``"mesh"``, by the first bytes of a file."""
    # what cannot be read counts as a mesh, whose reader says what is wrong
    return "parts" if is_parts(path) else "plan" if is_plan(path) else "mesh"


@dataclass(frozen=True)
class _SplitProgress:
    """Progress of the split into one number of parts."""

    progress: Progress
    done: int
    total: int
    parts: int

    def ordering(self, share: float) -> None:
        self.progress(self.done + min(share, 0.999), self.total, f"{self.parts} parts: ordering")

    def building(self, share: float) -> None:
        self.progress(self.done + 1 + share, self.total, f"{self.parts} parts: blocks and colours")


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
        one = result.builder.batch(parts)
        return one, batch_figures(one)

    def build() -> list[tuple[int, Any]]:
        figures_by_start = []
        batches = result.builder.batches(own_parts(ranks, progress.parts))
        for one, own in in_turn(build_batch, batches, progress.building):
            figures_by_start.append((one.parts.start, own))
            spill.add(one)
        return figures_by_start

    every = chain.from_iterable(ranks.allgather(agreed(ranks, build)))
    figures = split_figures([one for _, one in sorted(every, key=lambda pair: pair[0])])
    costs = {name: asdict(cost) for name, cost in result.costs.items()}
    cut = job.how.cut_of(subject, slices=job.slices)
    asked = {"cut": cut, "weights": list(job.how.weights)}
    options = job.options.effective()
    spill.finish({**figures, "increments": costs, **asked, "options": options}, ranks.allgather)


def _check_job(job: SplitJob) -> None:
    """Check the job before anything is read."""
    kind = kind_of(job.source)
    if kind == "mesh":
        MeshSource(job.source, job.input_format).find_format()
    if job.slices:
        check_cut(job.how.cut)
        if kind == "plan":
            raise MeshprepError(f"{job.source} is a plan, which is not read by slices")
    if job.fields and (job.slices or kind != "mesh"):
        raise MeshprepError(
            f"{job.source} is {'read by slices' if job.slices else 'no mesh'}, "
            "which gives no fields: leave --fields out, or split a mesh file without --slices"
        )
    same = kind == "parts" and job.output.resolve() == job.source.resolve()
    new = job.outputs[1:] if same else job.outputs
    check_targets(new, overwrite=job.overwrite, inputs=[job.source])
    if job.requests and kind != "mesh":
        raise MeshprepError(f"{job.source} has its loops: leave --loop and --loops out")
    for parts in job.parts:
        job.how.shares(parts)


def _notes_on_small_parts(job: SplitJob, subject: SplitSubject) -> list[str]:
    """Notes on very small parts; raises MeshprepError for more parts than elements."""
    name, most = subject.leading_set, subject.sizes[subject.leading_set]
    if max(job.parts) > most:
        raise MeshprepError(
            f"{job.source} has {most:,} {name}, too few for {max(job.parts):,} parts: "
            f"ask for {most:,} at most"
        )
    return [
        f"{parts:,} parts have {most / parts:.1f} {name} each on average, and about as many copies "
        "of others': fewer parts send less"
        for parts in job.parts
        if parts > 1 and most < SMALL * parts
    ]


def _kept_sources(job: SplitJob, ranks: Ranks) -> list[PartsSource]:
    """Splits of the source, if it is a file of parts, that stay."""
    if kind_of(job.source) != "parts":
        return []
    there = kept(job.source)
    again = next((parts for parts in there if parts in job.parts), None)
    if again is not None and not job.overwrite:
        raise MeshprepError(
            f"{job.source} is split into {again} parts already: "
            "name another number, or allow overwriting it by --force (in Python overwrite=True)"
        )
    left = [parts for parts in there if parts not in job.parts]
    return [KeptParts(job.source, parts, own_parts(ranks, parts)) for parts in left]


def _whole_subject(job: SplitJob) -> SplitSubject:
    if kind_of(job.source) == "plan":
        return subject_of_plan(Plan.load(job.source)).with_block_size(job.options.block_size)
    declared = job.declared or None
    mesh = io.read(job.source, format=job.input_format, dimension=job.dimension, sets=declared)
    full, specs = plan_request_maps(mesh, job.requests or (default_request(mesh),))
    subject = subject_of_mesh(mesh, full, specs, fields=job.fields)
    del mesh, full
    # what was read is as large as the subject
    give_back()
    return subject


def write_external(path: Path, source: Path, counts: Sequence[int], name: str) -> None:
    """Write the part of each element of a set as OP2's dats ``part_K``.

    ``path`` is made anew from the file of parts ``source``: HDF5 with one dataset (n, 1) of int32
    for each number of parts in ``counts``, in the order of the mesh that was read. ``name`` is the
    leading set. O(n) for each number of parts, and 4 bytes an element.
    """
    with new_hdf5(path, userblock=0) as file:
        for table in (parts_table(source, parts) for parts in counts):
            values = np.empty(int(table.description["sets"][name]), "<i4")
            for part in range(table.parts):
                values[read_part(source, table, part).sets[name].original] = part
            made = file.create_dataset(f"part_{table.parts}", data=values[:, None])
            describe(made, {"size": 4, "dim": 1}, "int")
