"""From file to file: what ``meshprep split`` does, for scripts that want the same."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from meshprep_runtime.errors import MeshprepError, Progress, ProofError
from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.atomic import together
from meshprep_runtime.plan.parts.proof import PartsProof
from meshprep_runtime.plan.parts.write import (
    PartsSource,
    SpilledParts,
    kept_parts,
    spill_file,
    write_parts,
)
from meshprep_runtime.plan.seal import FORMAT, is_parts

from .. import io
from ..io.outputs import check_targets
from ..io.registry import find
from ..loops import LoopRequest, default_request
from ..loops.options import Options
from ..pipeline.steps import plan_request_maps
from ..pipeline.warm_up import job_tasks, warm_up
from .figures import part_figures, split_figures
from .joined import joined_subject
from .steps import SplitOptions, split
from .subject import SplitSubject, subject_of_mesh, subject_of_plan


@dataclass(frozen=True)
class SplitJob:
    """What to read, split and write.

    ``source`` is a mesh, a plan, or a file of parts, to which further numbers of parts are added.
    ``declared`` says what the datasets of a file are that does not say it.
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

    def __post_init__(self) -> None:
        if not self.parts or min(self.parts) < 1:
            raise MeshprepError("give the numbers of parts from 1, such as --parts 4,8")
        if len(set(self.parts)) < len(self.parts):
            raise MeshprepError("a number of parts is named twice: name each once")
        if self.how.cut.startswith("file:") and len(self.parts) > 1:
            raise MeshprepError("a file of parts is for one number of parts: split one at a time")


@dataclass(frozen=True, eq=False)
class SplitJobResult:
    """What a job made: figures by number of parts, and what a person should know."""

    written: Path
    figures: dict[int, dict[str, Any]]
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "written": [str(self.written)],
            "notes": self.notes,
            "splits": [self.figures[parts] for parts in sorted(self.figures)],
        }


def run(job: SplitJob, progress: Progress = lambda done, total, name: None) -> SplitJobResult:
    """Read, split, write: the file appears whole or not at all.

    Raises
    ------
    MeshprepError
        On bad input, unknown names, outputs that exist, and numbers of parts that are there.
    """
    kind = kind_of(job.source)
    adding = kind == "parts"
    _refuse(job, adding)
    formats = [find(io.FORMATS, job.source, job.input_format).name] if kind == "mesh" else []
    warmed = warm_up(job_tasks(job.options, formats), progress)
    total = 2 + 2 * len(job.parts)
    progress(0, total, "reading")
    subject = _subject(job, kind)
    sources: list[PartsSource] = list(kept_parts(job.source)) if adding else []
    _refuse_kept(job, sources)
    figures = {}
    new = together([job.output], overwrite=job.overwrite or adding)
    with new as (staged,), ExitStack() as open_files:
        for i, parts in enumerate(job.parts):
            waiting = open_files.enter_context(spill_file(staged.with_name(f"{parts}.waiting")))
            tell = _Told(progress, 1 + 2 * i, total, parts)
            made = _split(subject, parts, job, SpilledParts(waiting, parts), tell)
            figures[parts] = made.table.description["figures"]
            sources.append(made)
        progress(total - 1, total, f"writing {job.output.name}")
        sources.sort(key=lambda one: one.table.parts)
        write_parts(staged, {"source_hash": subject.source_hash}, sources)
    return SplitJobResult(job.output, figures, warmed.notes)


def kind_of(path: Path) -> str:
    """``"parts"``, ``"plan"`` or ``"mesh"``, by the first bytes of a file."""
    try:
        if is_parts(path):
            return "parts"
        with open(path, "rb") as file:
            return "plan" if file.read(len(FORMAT)) == FORMAT.encode() else "mesh"
    except OSError:
        # readers of meshes say what is wrong
        return "mesh"


@dataclass(frozen=True)
class _Told:
    """Progress of one split."""

    progress: Progress
    done: int
    total: int
    parts: int

    def ordering(self, share: float) -> None:
        self.progress(self.done + min(share, 0.999), self.total, f"{self.parts} parts: ordering")

    def building(self, share: float) -> None:
        self.progress(self.done + 1 + share, self.total, f"{self.parts} parts: blocks and colours")


def _split(
    subject: SplitSubject, parts: int, job: SplitJob, spill: SpilledParts, tell: _Told
) -> SpilledParts:
    """One number of parts, each built, proved and put aside."""
    tell.ordering(0)
    made = split(subject, parts, job.how, job.options, tell.ordering)
    proof, found = PartsProof(subject.sizes, parts), []
    for part in range(parts):
        tell.building(part / parts)
        one = made.builder.build(part)
        found.append(part_figures(one))
        spill.add(one)
        if job.options.proof:
            proof.add(one)
    if job.options.proof and proof.finish():
        raise ProofError(f"the parts are wrong: {'; '.join(proof.findings[:3])}")
    costs = {name: asdict(cost) for name, cost in made.costs.items()}
    how = {"cut": job.how.cut, "weights": list(job.how.weights)}
    options = job.options.effective()
    spill.finish({**split_figures(found), "increments": costs, **how, "options": options})
    return spill


def _refuse(job: SplitJob, adding: bool) -> None:
    same = adding and job.output.resolve() == job.source.resolve()
    if not same:
        check_targets([job.output], overwrite=job.overwrite, inputs=[job.source])
    if adding and job.requests:
        raise MeshprepError(f"{job.source} has its loops: leave --loop and --loops out")


def _refuse_kept(job: SplitJob, sources: list[PartsSource]) -> None:
    for one in list(sources):
        if one.table.parts in job.parts:
            if not job.overwrite:
                raise MeshprepError(
                    f"{job.source} is split into {one.table.parts} parts already: "
                    "name another number, or allow overwriting it by --force"
                )
            sources.remove(one)


def _subject(job: SplitJob, kind: str) -> SplitSubject:
    if kind == "parts":
        return joined_subject(job.source)
    if kind == "plan":
        if job.requests:
            raise MeshprepError(f"{job.source} has its loops: leave --loop and --loops out")
        return subject_of_plan(Plan.load(job.source))
    declared = job.declared or None
    mesh = io.read(job.source, format=job.input_format, dimension=job.dimension, sets=declared)
    full, specs = plan_request_maps(mesh, job.requests or (default_request(mesh),))
    return subject_of_mesh(mesh, full, specs)
