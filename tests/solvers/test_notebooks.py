"""What notebooks show, keywords that ``help`` names, and the ways to other libraries."""

import inspect
import re

import pytest
from pages import blocks

import meshprep
from meshprep.io.generate import generate
from meshprep.loops.options import Options
from meshprep_runtime import MeshprepError, ParLoop, PlanError, Program
from meshprep_runtime.loop import CodeOptions


@pytest.fixture(scope="module")
def mesh():
    return generate("delaunay2d", cells=300)


@pytest.fixture(scope="module")
def done(mesh):
    return meshprep.prepare(mesh, ["edges->cells"], target="cpu", block_size=64)


def test_a_loop_by_its_name_has_its_reuse(done):
    (sides,) = done.plan.metrics.sides()
    assert done.plan.loop("edges:cells").reuse == pytest.approx(sides.after.reuse)
    assert done.plan.loop("edges->cells") is done.plan["edges->cells"]
    with pytest.raises(PlanError, match="no loop 'wheels'"):
        done.plan.loop("wheels")


def test_values_of_a_set_there_and_back(done, mesh):
    values = mesh.map("cells->nodes").table
    moved = done.plan.apply(values, "cells")
    assert (moved == done.plan.ordering["cells"].apply(values)).all()
    assert (done.plan.restore(moved, "cells") == values).all()
    with pytest.raises(PlanError, match="the plan has no set 'wheels': choose "):
        done.plan.restore(values, "wheels")


@pytest.mark.parametrize(
    ("function", "options"), [(meshprep.prepare, Options), (ParLoop, CodeOptions)]
)
def test_options_stand_in_the_signature(function, options):
    found, own = inspect.signature(function).parameters, options()
    for name, default in vars(own).items():
        assert found[name].default == default, name
        assert found[name].kind is inspect.Parameter.KEYWORD_ONLY
    assert not [p for p in found.values() if p.kind is inspect.Parameter.VAR_KEYWORD]


def test_everything_shows_itself_as_a_table(done, mesh):
    program = Program(done.plan)
    program.loop(lambda a, b: None, "edges->cells")
    shown = [
        (mesh, ["nodes", "cells", "triangle"]),
        (done.plan, ["edges-&gt;cells", f">{done.plan.sizes['edges']}<"]),
        (done, ["edges-&gt;cells", "triangle"]),
        (program, ["edges-&gt;cells", "calls"]),
        (meshprep.compare(done.plan), ["edges-&gt;cells", "reuse"]),
    ]
    for thing, words in shown:
        text = thing._repr_html_()
        assert all(word in text for word in words), text
        assert text.count("<table>") == text.count("</table>") >= 1
        assert len(repr(thing)) < 2000
    assert repr(program).startswith("Program(loops edges->cells of Plan(")


def test_comparing_and_a_page_in_one_call_each(done, mesh, tmp_path):
    other = meshprep.prepare(mesh, ["edges->cells"], target="cpu", partition="blocks").plan
    other.save(tmp_path / "other.plan.h5")
    found = meshprep.compare([done.plan, tmp_path / "other.plan.h5"], measure=True)
    assert found.names == ("plan 1", "other.plan.h5")
    assert set(found.times) == set(found.names)
    page = tmp_path / "report.html"
    meshprep.write_report(page, done.plan, mesh, measure=False)
    assert re.search(r'id="plan1-edges-cells-s64-mesh-blocks"', page.read_text())
    with pytest.raises(MeshprepError, match="exists already"):
        meshprep.write_report(page, done.plan)
    stranger = generate("box", nx=2, ny=2, nz=2)
    with pytest.raises(MeshprepError, match="from another mesh than mesh 1"):
        meshprep.write_report(page, done.plan, stranger, overwrite=True)
    with pytest.raises(MeshprepError, match=r"name it \*.html"):
        meshprep.write_report(tmp_path / "report.txt", done.plan)


def test_the_lines_of_the_page(done, tmp_path, monkeypatch):
    for name in ("pandas", "pyvista", "xarray"):
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    scope = {"meshprep": meshprep, "done": done}
    (lines,) = [b for b in blocks("solvers/python.md", "py") if "pyvista" in b]
    exec(lines, scope)
    assert scope["grid"].n_cells == done.mesh.size("cells") + done.mesh.size("line")
    assert set(scope["figures"]["loop"]) == {"edges->cells"}
    assert scope["fields"].sizes["nodes"] == done.mesh.size("nodes")
    assert (tmp_path / "report.html").exists()
