"""Files of parts say in which order their mesh numbers the cells of several types."""

import re

import numpy as np

from meshprep.distribute.job import check as checked
from meshprep.distribute.job.check import check_parts
from meshprep.distribute.job.run import SplitJob, run
from meshprep.io import write
from meshprep.io.source import MeshSource
from meshprep.loops.options import Options
from meshprep.loops.requests import simple_request
from meshprep.mesh.assemble import Block, assemble
from meshprep.pipeline.workflow import Job
from meshprep.pipeline.workflow import run as prepare

SMALL = Options(block_size=64)
SEVEN = ("quad", "triangle6", "quad8", "quad9", "triangle", "quad16", "triangle10")


def strip_of_types(types):
    """A row of squares, of which each is a quad or two triangles; the types take turns."""
    rng = np.random.default_rng(0)
    cells, n = {name: [] for name in types}, 40
    points = [(x, y) for x in range(n + 1) for y in (0.0, 1.0)]
    for i, name in enumerate(rng.permutation(np.resize(SEVEN, n))):
        a, b, c, d = 2 * i, 2 * i + 2, 2 * i + 3, 2 * i + 1
        for corners in [(a, b, c, d)] if "quad" in name else [(a, b, c), (a, c, d)]:
            more = int(re.sub(r"\D", "", name) or len(corners)) - len(corners)
            cells[str(name)].append([*corners, *range(len(points), len(points) + more)])
            points += [(i + 0.5, 0.5)] * more
    blocks = [Block(name, np.array(rows)) for name, rows in cells.items()]
    return assemble(np.array(points), blocks)[0]


def test_a_file_that_numbers_seven_cell_types_otherwise_fits_the_parts(
    tmp_path, monkeypatch
):
    mesh, other = tmp_path / "a.msh", tmp_path / "b.msh"
    write(strip_of_types(SEVEN), mesh)
    write(strip_of_types(SEVEN[::-1]), other)
    loops = tuple(map(simple_request, ("edges->cells", "boundary_edges->nodes")))
    plan, made, again = (tmp_path / f"{name}.h5" for name in ("plan", "parts", "again"))
    prepare(Job(MeshSource(mesh), None, plan, loops, SMALL))
    run(SplitJob(mesh, made, (3,), loops, options=SMALL))
    run(SplitJob(made, again, (2,), options=SMALL))
    run(SplitJob(plan, plan.with_name("split.h5"), (2,), options=SMALL))
    run(
        SplitJob(mesh, plan.with_name("slices.h5"), (2,), loops, options=SMALL, slices=True)
    )
    for path in (made, again, plan.with_name("split.h5"), plan.with_name("slices.h5")):
        assert check_parts(path, mesh=MeshSource(mesh)).verdict.endswith("parts)")
        found = check_parts(path, mesh=MeshSource(other))
        assert found.findings == []
        assert (
            f"numbers the cells by type as {', '.join(SEVEN)}, the file as" in found.verdict
        )
    monkeypatch.setattr(checked, "with_type_order", lambda mesh, names: mesh)
    wrong = "3 parts: map 'edges->cells' is not that of the mesh"
    assert wrong in check_parts(made, mesh=MeshSource(other)).findings
