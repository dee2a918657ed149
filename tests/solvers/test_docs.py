"""The commands and the Python of the pages on solvers, run as they stand."""

import json
import re
import shlex
import sys
from pathlib import Path
from runpy import run_path

import h5py
import numpy as np
import pytest
from pages import DOCS, blocks, steps

from meshprep.io import read
from meshprep.io.generate import generate
from meshprep.topology import derive
from meshprep_cli.main import main
from meshprep_runtime import DistributedPlan, Program, run_ranks

sys.path.insert(0, str(Path(__file__).parents[1] / "io"))
sys.path.insert(0, str(Path(__file__).parents[1] / "io" / "foam"))
from foam_files import STYLES, boxes, write_mesh
from op2_files import c_mesh, put_map, write_hdf5, write_text

EXAMPLES = DOCS.parent / "examples"


def commands(page):
    joined = [block.replace("\\\n", " ") for block in blocks(page)]
    lines = [line for block in joined for line in block.splitlines()]
    return [
        shlex.split(line, comments=True) for line in lines if line.startswith("meshprep ")
    ]


def test_the_commands_of_the_op2_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    mesh = c_mesh(8, 6)
    write_text(Path("new_grid.dat"), mesh)
    sizes = write_hdf5("grid.h5", mesh)
    random = np.random.default_rng(0)
    np.save("q.npy", random.random((sizes["cells"], 4)))
    np.savez("fields.npz", x=random.random(sizes["nodes"]))
    with h5py.File("out.h5", "w") as out, h5py.File("result.h5", "w") as result:
        out["p_q"] = random.random((sizes["cells"], 4))
        put_map(result, "owner", random.integers(0, sizes["cells"], (sizes["edges"], 1)))
        result["t"] = random.random(sizes["cells"])
    ran = commands("solvers/op2.md")
    assert len(ran) == 15
    for words in ran:
        force = [] if words[1] == "info" else ["--force"]
        small = ["300" if word == "720000" else word for word in words[1:]]
        assert main([*small, *force]) == 0, (words, capsys.readouterr().err)
    made = {p.name for p in Path().iterdir()}
    assert made >= {
        "new_grid-reordered.dat",
        "grid-reordered.h5",
        "out-restored.h5",
        "loops.toml",
    }
    assert "grid.op2.h5" in made
    assert made >= {"new_grid.h5", "q-reordered.npy", "fields-reordered.npz"}


def test_the_table_of_sets_of_the_op2_page(tmp_path):
    from meshprep import io
    from meshprep.io.declared import from_toml

    (table,) = blocks("solvers/op2.md", "toml")
    (tmp_path / "a.toml").write_text(table)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["mesh/connectivity"] = np.array([[0, 1, 2], [1, 3, 2]])
        file["mesh/xyz"] = np.arange(12.0).reshape(4, 3)
    mesh = io.read(tmp_path / "a.h5", sets=from_toml(tmp_path / "a.toml"))
    assert {s.name: s.size for s in mesh.sets.values()} == {"cells": 2, "nodes": 4}
    assert mesh.coordinates.shape == (4, 3)


def test_the_objects_of_the_python_page():
    meshio = pytest.importorskip("meshio")
    old = generate("delaunay2d", cells=60, shuffle=True)
    table = old.map("cells->nodes").table
    mesh = meshio.Mesh(old.coordinates, [("triangle", table)])
    (code,) = blocks("solvers/python.md", "py")
    u = np.arange(len(old.coordinates))
    scope = {"mesh": mesh, "u": u}
    exec(code, scope)
    assert np.array_equal(
        scope["mesh"].points[u],
        old.coordinates[scope["new"].plan.ordering["nodes"].new_to_old],
    )
    assert np.array_equal(scope["u_old"], scope["new"].plan.ordering["nodes"].old_to_new)


def test_the_arrays_of_the_page_on_formats(tmp_path, monkeypatch, capsys):
    """From Python and by the command, the blocks of a solver's faces and of its outer ones."""
    monkeypatch.chdir(tmp_path)
    sides = np.array([[0, 1], [4, -1], [1, 2], [3, 0], [4, 2], [3, -1], [2, 3]], np.int32)
    sides.tofile("face_cells.bin")
    scope = {}
    exec(*blocks("formats.md", "python"), scope)
    plan, inner = scope["plan"], scope["inner"]
    old = plan.ordering["cells"].new_to_old[plan.maps["faces->cells"].table]
    np.testing.assert_array_equal(old, sides[inner])
    assert sorted(inner) == [0, 2, 3, 4, 6]
    with h5py.File("own.h5", "w") as file:
        file["inside"], file["outside"] = (
            sides[sides[:, 1] >= 0],
            sides[sides[:, 1] < 0, :1],
        )
        for name, size in scope["sizes"].items():
            file[name] = np.array([size])
    write_mesh(boxes(3, 3, 2), Path("CASE"), STYLES["binary"])
    words, *cases = commands("formats.md")
    assert main([*words[1:], "--force"]) == 0, capsys.readouterr().err
    with h5py.File("own-reordered.h5") as file:
        assert file["inside"].shape == (5, 2)
    for words in cases:
        assert main([*words[1:], "--force"]) == 0, capsys.readouterr().err
    assert Path("CASE/constant/cellMap").exists()
    assert read("CASE-reordered").size("cells") == 18


def test_the_page_on_ranks(tmp_path, monkeypatch):
    """Four ranks of one process give what one rank does, by the program of the tutorial."""
    monkeypatch.chdir(tmp_path)
    tutorial = dict(steps("tutorials/ranks.md"))
    Path("flow.toml").write_text(tutorial["flow.toml"] + WALL)
    assert main(["generate", "delaunay2d", "--cells", "300", "-o", "wing.msh", "-q"]) == 0
    assert main(["split", "wing.msh", "--parts", "1,4", "--loops", "flow.toml", "-q"]) == 0
    codes = blocks("solvers/mpi.md", "python")
    assert len(codes) == 2
    scope = {"__name__": "flow"}
    exec(tutorial["flow.py"], scope)
    total, t, timings = run_ranks(4, scope["main"], seed=1)[0]
    Path("timings.json").write_text(json.dumps(timings.to_json()))
    for code in codes:
        exec(code, scope)
    page = [words for words in commands("research/ranks.md") if words[1:2] == ["split"]]
    weights = page[0][page[0].index("--weights") :][:2]
    equal = ["split", "wing.msh", "--parts", "4", "--loops", "flow.toml", "-q"]
    assert main([*equal, *weights, "-o", "balanced.parts.h5"]) == 0
    (expected, t_one, _) = run_ranks(1, scope["main"])[0]
    assert total == pytest.approx(expected)
    np.testing.assert_allclose(t, t_one, rtol=1e-12)
    assert [times.calls for times in timings.loops["flux"]] == [100] * 4
    assert all(times.messages >= 99 for times in timings.loops["flux"])
    with h5py.File("t.h5") as file:
        np.testing.assert_array_equal(file["t"][:], t_one)
    np.testing.assert_array_equal(read("t.vtu").dat("t", "cells").values, t.reshape(-1))
    _numbers_of_petsc(scope["petsc_numbers"])
    _walls_of_parts()


WALL = """
[loop.wall]
over = "boundary_edges"
args = [
  { dat = "x", map = "boundary_edges->nodes", index = [0, 1], dim = 3, access = "read" },
  { dat = "group", access = "read", dtype = "i8" },
  { global = "length", access = "inc" },
]
"""


def wall(x1, x2, group, length):
    if group[0] == 1:
        length[0] += ((x1[0] - x2[0]) ** 2 + (x1[1] - x2[1]) ** 2) ** 0.5


def length_of_the_wall(comm):
    plan = DistributedPlan.load("wing.parts.h5", comm)
    x = plan.dat("nodes", 3, values=plan.coordinates["nodes"].copy())
    groups = plan.tags["boundary_edges"]["physical"]
    group = plan.dat("boundary_edges", 1, "i8", values=groups.copy())
    length = np.zeros(1)
    Program(plan).loop(wall, "wall")(x=x, group=group, length=length)
    return length[0], plan.group("boundary_edges", "left")


def _walls_of_parts():
    """The left side of the square is the wall; a rank has the rows of its edges there."""
    found = run_ranks(4, length_of_the_wall)
    assert [length for length, _ in found] == pytest.approx([1] * 4)
    mesh = derive(read("wing.msh"), ["edges->cells", "boundary_edges->nodes"])
    x = mesh.coordinates[mesh.map("boundary_edges->nodes").table, 0].mean(1)

    def rank(comm):
        plan = DistributedPlan.load("wing.parts.h5", comm)
        rows = plan.group("boundary_edges", "left")
        return plan.numbers("boundary_edges")[
            rows[rows < plan.set_part("boundary_edges").owned]
        ]

    numbers = np.concatenate(run_ranks(4, rank))
    assert sorted(numbers) == np.flatnonzero(x < 1e-9).tolist()


def test_plans_of_ranks_that_have_parts_already():
    """Owned cells stay before copies, and core edges reach owned cells alone."""
    scope = run_path(str(EXAMPLES / "rank_plan.py"))
    whole = derive(generate("delaunay2d", cells=600, shuffle=True), ["edges->cells"])
    table = whole.map("edges->cells").table
    mine = np.arange(600) < 300
    sides = table[mine[table].any(axis=1)]
    local = np.full(600, -1)
    here = np.concatenate([np.flatnonzero(mine), np.setdiff1d(sides, np.flatnonzero(mine))])
    local[here] = np.arange(here.size)
    plan = scope["rank_plan"](local[sides], 300, here.size)
    order = plan.ordering["cells"]
    assert sorted(order.new_to_old[:300]) == list(range(300))
    assert order.new_to_old[:300].tolist() != list(range(300))
    assert (
        plan.maps["core->cells"].table.max() < 300 <= plan.maps["border->cells"].table.max()
    )
    assert (plan.maps["border->cells"].table >= 300).any(axis=1).all()
    made = np.concatenate(
        [plan.maps[f"{name}->cells"].table for name in ("core", "border")]
    )
    pairs = sorted(map(sorted, here[order.new_to_old[made]].tolist()))
    assert pairs == sorted(map(sorted, sides.tolist()))


def _numbers_of_petsc(petsc_numbers):
    """Each rank owns its numbers; every row, copies too, is the element that its owner says."""

    def rank(comm):
        plan = DistributedPlan.load("wing.parts.h5", comm)
        mine = plan.dat("cells", values=plan.numbers("cells").astype(float))
        plan.update(mine)
        return petsc_numbers(plan, "cells"), mine.array.reshape(-1), plan.numbers("cells")

    found = run_ranks(4, rank)
    of_mesh = np.concatenate([owned for _, _, owned in found])
    assert sorted(of_mesh) == list(range(of_mesh.size))
    for numbers, rows, _ in found:
        np.testing.assert_array_equal(of_mesh[numbers], rows)


@pytest.mark.parametrize(
    ("page", "language", "example"),
    [("c", "c", "heat.c"), ("fortran", "fortran", "heat.f90")],
)
def test_the_loop_of_a_page_is_that_of_the_example(page, language, example):
    text = (DOCS / "solvers" / f"{page}.md").read_text(encoding="utf-8")
    loop = re.search(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]
    assert loop in (EXAMPLES / page / example).read_text()


def test_the_c_page_names_functions_that_there_are():
    names = set(re.findall(r"\bmp_\w+", (DOCS / "solvers" / "c.md").read_text()))
    headers = [*(DOCS.parent / "include" / "meshprep").glob("meshprep_p*.h")]
    declared = "".join(header.read_text() for header in headers)
    assert {name for name in names if name.startswith(("mp_read_", "mp_part_"))} >= {
        "mp_read_ranges",
        "mp_read_places",
        "mp_part_offset",
    }
    assert [name for name in names if not re.search(rf"\b{name}\b", declared)] == [
        "mp_read_"
    ]


@pytest.mark.parametrize("page", ["c", "fortran", "matrices", "mpi", "chains", "op2"])
def test_pages_that_are_read_for_a_task_are_short(page):
    assert len((DOCS / "solvers" / f"{page}.md").read_text().split()) <= 1500
