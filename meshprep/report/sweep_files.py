"""A sweep from a mesh file to a page: reading, every plan, the comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from meshprep_runtime.errors import Progress

from .. import io
from ..io.registry import find
from ..loops import LoopRequest
from ..metrics.cost import Assumed
from ..pipeline.steps import Options
from ..pipeline.workflow import _check_default
from .files import Files, write_files
from .placing import NamedMesh, bare
from .sweep import Swept, Way, sweep


@dataclass(frozen=True)
class SweepJob:
    """What to read, the plans to make and compare, and what to write of the comparison."""

    mesh: Path
    ways: tuple[Way, ...]
    requests: tuple[LoopRequest, ...] = ()
    options: Options = field(default_factory=Options)
    assumed: Assumed = field(default_factory=Assumed)
    files: Files = field(default_factory=Files)
    declared: Mapping[str, str] = field(default_factory=dict)
    input_format: str | None = None
    dimension: int | None = None


def run_sweep(job: SweepJob, progress: Progress = lambda done, total, name: None) -> Swept:
    """Read once, make every plan, compare them, and write the page if it is asked for.

    Raises
    ------
    MeshprepError
        On bad input, outputs that exist, and where no plan could be made.
    """
    find(io.FORMATS, job.mesh, job.input_format)
    job.files.check([job.mesh])
    total = len(job.ways) + 1 + len(job.files.outputs)
    progress(0, total, "reading")
    sets = job.declared or None
    mesh = io.read(job.mesh, format=job.input_format, dimension=job.dimension, sets=sets)
    swept = sweep(
        mesh,
        job.requests,
        job.ways,
        job.options,
        assumed=job.assumed,
        progress=lambda done, n, name: progress(done + 1, total, name),
    )
    first = swept.comparison.plans[0]
    _check_default(job.requests, first.loops.values(), first.sizes)
    meshes = [NamedMesh(str(job.mesh), bare(mesh))]
    write_files(
        swept.comparison,
        job.files,
        lambda done, n, name: progress(len(job.ways) + done, total, name),
        meshes=meshes,
        title=f"meshprep sweep: {len(swept.comparison.plans)} plans of {job.mesh.name}",
        best=(swept.best.name, swept.criterion),
    )
    return swept
