"""A sweep from a mesh file to a page: reading, every plan, the comparison."""

from dataclasses import dataclass, field

from meshprep_runtime.errors import Progress

from ..io.source import MeshSource
from ..loops import LoopRequest
from ..metrics.cost import Assumptions
from ..pipeline.steps import Options
from ..pipeline.workflow import check_default
from .files import ReportFiles, write_files
from .meshes import NamedMesh, bare
from .sweep import SweepPoint, SweepResult, sweep


@dataclass(frozen=True)
class SweepJob:
    """What to read, the plans to make and compare, and what to write of the comparison."""

    source: MeshSource
    sweep_points: tuple[SweepPoint, ...]
    requests: tuple[LoopRequest, ...] = ()
    options: Options = field(default_factory=Options)
    assumptions: Assumptions = field(default_factory=Assumptions)
    files: ReportFiles = field(default_factory=ReportFiles)


def run_sweep(job: SweepJob, progress: Progress = lambda done, total, name: None) -> SweepResult:
    """Read once, make every plan, compare them, and write the page if it is asked for.

    Raises MeshprepError on bad input, outputs that exist, and where no plan could be made.
    """
    job.source.find_format()
    job.files.check([job.source.path])
    # reading and topology come first
    made = 2 + len(job.sweep_points)
    total = made + len(job.files.outputs)
    progress(0, total, "reading")
    mesh = job.source.read()
    result = sweep(
        mesh,
        job.requests,
        job.sweep_points,
        job.options,
        assumptions=job.assumptions,
        progress=lambda done, n, name: progress(done + 1, total, name),
    )
    first = result.comparison.plans[0]
    check_default(job.requests, first.loops.values(), first.sizes)
    meshes = [NamedMesh(str(job.source.path), bare(mesh))]
    write_files(
        result.comparison,
        job.files,
        lambda done, n, name: progress(made + done, total, name),
        meshes=meshes,
        title=f"meshprep sweep: {len(result.comparison.plans)} plans of {job.source.path.name}",
        best=(result.best.name, result.criterion),
    )
    return result
