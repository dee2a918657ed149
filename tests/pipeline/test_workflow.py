"""From file to file: outputs take their names when the plan is proved and the mesh read back."""

import pytest

from meshprep import io
from meshprep.io.generate import generate
from meshprep.io.source import MeshSource
from meshprep.loops.options import Options
from meshprep.pipeline import steps, workflow
from meshprep.pipeline.check_file import check
from meshprep.pipeline.workflow import Job, run
from meshprep_runtime.errors import MeshprepError, ProofError


@pytest.fixture
def job(tmp_path):
    mesh = tmp_path / "wing.msh"
    io.write(generate("delaunay2d", cells=400), mesh)
    options = Options(block_size=64)
    return Job(MeshSource(mesh), tmp_path / "new.msh", tmp_path / "new.h5", options=options)


def test_a_wrong_plan_leaves_nothing_beside_the_input(job, monkeypatch):
    def refuse(plan, maps, together):
        raise ProofError("the plan is wrong in 1 places")

    monkeypatch.setattr(steps, "refuse_wrong", refuse)
    with pytest.raises(ProofError, match="wrong in 1 places"):
        run(job)
    assert list(job.source.path.parent.iterdir()) == [job.source.path]


def test_a_mesh_that_reads_back_wrong_leaves_nothing_beside_the_input(job, monkeypatch):
    def refuse(*args, **options):
        raise MeshprepError("format 'gmsh' does not keep this mesh")

    monkeypatch.setattr(workflow.io, "write", refuse)
    with pytest.raises(MeshprepError, match="does not keep this mesh"):
        run(job)
    assert list(job.source.path.parent.iterdir()) == [job.source.path]


def test_the_plan_that_is_saved_has_the_seconds_of_its_proof(job):
    made = run(job).plan
    assert made.metrics.seconds["proof"] > 0
    assert made.mesh_hash == io.read(job.output).content_hash()
    assert check(job.plan, MeshSource(job.output)).findings == []
