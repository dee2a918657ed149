"""What each command prints, writes and returns."""

import json
import os
import re
import tomllib
from dataclasses import replace

import numpy as np
import pytest
from numba import get_num_threads

from meshprep import io
from meshprep.io.generate import generate
from meshprep.mesh.assemble import Block, assemble
from meshprep_cli import console
from meshprep_cli.commands import commands
from meshprep_runtime import Plan


def test_reorder_writes_a_mesh_and_a_plan_and_shows_both_sides(cli, mesh_file):
    code, out, err = cli("reorder", mesh_file, "--block-size", 64)
    assert code == 0
    assert out.startswith(("Pays after ", "Does ", "Makes ", "Too noisy "))
    assert len(out.splitlines()) == 5
    assert "[1/" in err
    full = cli("reorder", mesh_file, "--block-size", 64, "--force", "--full")[1]
    assert ("before: input order" in full, "reuse factor" in full) == (True, True)
    folder = mesh_file.parent
    assert sorted(os.listdir(folder)) == ["wing-reordered.msh", "wing.msh", "wing.plan.h5"]
    plan = Plan.load(folder / "wing.plan.h5")
    new = io.read(folder / "wing-reordered.msh")
    assert new.content_hash() == plan.mesh_hash
    assert io.read(mesh_file).content_hash() == plan.source_hash


def test_reorder_the_order_alone(cli, fails, mesh_file):
    new, old = mesh_file.with_name("new.npy"), mesh_file.with_name("old.txt")
    words = ("reorder", mesh_file, "--order-only", "--old-to-new", new, "--new-to-old", old)
    code, out, _ = cli(*words)
    assert code == 0
    assert re.match(r"cells: gps gains: bandwidth [\d,]+ -> [\d,]+, ", out)
    written = ["new.npy", "old.txt", "wing-reordered.msh", "wing.msh"]
    assert sorted(os.listdir(mesh_file.parent)) == written
    before, after = io.read(mesh_file), io.read(mesh_file.with_name("wing-reordered.msh"))
    old_to_new, new_to_old = np.load(new), np.loadtxt(old, dtype=int)
    assert (old_to_new[new_to_old] == np.arange(before.size("cells"))).all()
    corners = [
        m.coordinates[m.map("cells->nodes").table].sum(axis=1) for m in (before, after)
    ]
    assert np.allclose(corners[0][new_to_old], corners[1])
    assert "--order-only makes no plan: leave --plan out" in fails(
        *words, "--plan", "a.plan.h5"
    )
    assert json.loads(cli(*words, "--force", "--json", "-q")[1])["orders"][0]["applied"]


def test_reorder_as_json(cli, mesh_file):
    code, out, err = cli("reorder", mesh_file, "--json", "-q", "--loop", "cells->nodes")
    assert (code, err) == (0, "")
    values = json.loads(out)
    (figures,) = values["metrics"]["loops"]["cells->nodes"].values()
    assert figures["after"]["reuse"] > figures["before"]["reuse"]
    assert len(values["written"]) == 2


def test_info_shows_data_before_groups_and_has_a_line_for_many_entities(cli, tmp_path):
    path = tmp_path / "a.msh"
    n = 20
    nodes = [f"{i + 1} {i % 2} {i // 2} 0" for i in range(2 * n + 2)]
    cells = [f"{i + 1} 3 2 7 {i + 1} " + " ".join(map(str, quad(i))) for i in range(n)]
    names = '$PhysicalNames\n1\n2 7 "wing"\n$EndPhysicalNames'
    parts = ["$MeshFormat\n2.2 0 8\n$EndMeshFormat", names, f"$Nodes\n{len(nodes)}", *nodes]
    parts += ["$EndNodes", f"$Elements\n{n}", *cells, "$EndElements\n"]
    path.write_text("\n".join(parts))
    lines = cli("info", path)[1].splitlines()
    assert (
        lines.index("sets")
        < lines.index("maps")
        < lines.index("data")
        < lines.index("tags")
    )
    tags = [line.split() for line in lines[lines.index("tags") :]]
    assert " ".join(tags[2]) == "entity cells 1 to 20 20 groups (--full lists them) 20"
    assert ["physical", "cells", "7", "wing", "20"] in tags
    full = [line.split() for line in cli("info", path, "--full")[1].splitlines()]
    assert ["entity", "cells", "13", "1"] in full
    found = json.loads(cli("info", path, "--json")[1])["tags"]
    assert sum(t["tag"] == "entity" for t in found) == n


def test_info_counts_every_group_of_an_edge(cli, tmp_path):
    path, plan = tmp_path / "a.msh", tmp_path / "a.plan.h5"
    cells = ["1 1 2 7 1 1 2", "2 1 2 8 1 1 2", "3 1 2 8 1 2 4", "4 3 2 9 1 1 2 4 3"]
    names = '$PhysicalNames\n3\n1 7 "wall"\n1 8 "all"\n2 9 "fluid"\n$EndPhysicalNames'
    nodes = [f"{i + 1} {i % 2} {i // 2} 0" for i in range(4)]
    parts = [
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat",
        names,
        "$Nodes\n4",
        *nodes,
        "$EndNodes",
    ]
    path.write_text("\n".join([*parts, "$Elements\n4", *cells, "$EndElements\n"]))
    assert cli("plan", path, "--loop", "boundary_edges:cells", "-q")[0] == 0
    found = json.loads(cli("info", plan, "--json")[1])["tags"]
    counts = [(t["name"], t["elements"]) for t in found if t["tag"] == "physical"]
    assert counts == [("wall", 1), ("all", 2)]


def quad(i):
    return (2 * i + 1, 2 * i + 2, 2 * i + 4, 2 * i + 3)


def test_loops_without_quotes(cli, mesh_file):
    code, _, err = cli("reorder", mesh_file, "--loop", "cells:nodes", "-q")
    assert (code, err) == (0, "")
    plan = mesh_file.with_name("wing.plan.h5")
    assert list(Plan.load(plan).loops) == ["cells->nodes"]
    assert Plan.load(plan)["cells:nodes"].loop.name == "cells->nodes"
    words = ("--measured", "cells:nodes=2:1", "--mesh", mesh_file, "--loop", "cells:nodes")
    code, out, err = cli(
        "report", plan, *words, "--picture", mesh_file.with_suffix(".png"), "-q"
    )
    assert (code, err) == (0, "")
    assert re.match(r"Pays after (about )?[\d,]+ calls as measured: ", out)
    kernel = mesh_file.with_name("three.py")
    kernel.write_text(
        "def add(a, b, c):\n    a[0] += 1.0\n    b[0] += 1.0\n    c[0] += 1.0\n"
    )
    tune = (
        "tune",
        plan,
        "--kernel",
        f"{kernel}:add",
        "--loop",
        "cells:nodes",
        "--json",
        "-q",
    )
    code, out, _ = cli(*tune, "--strategies", "sequential", "--runs", 1, "--dry-run")
    assert (code, json.loads(out)["loop"]) == (0, "cells->nodes")


def test_reorder_times_the_loops_unless_told_otherwise(cli, mesh_file):
    said = "on one thread of this CPU: its loop moves its data in "
    for words, timed in (((), True), (("-q",), True), (("--no-measure",), False)):
        code, out, _ = cli("reorder", mesh_file, "--force", *words)
        assert (code, said in out) == (0, timed)
    out = cli("reorder", mesh_file, "--force", "-q", "--json")[1]
    assert json.loads(out)["measured"]["edges->cells"]["after"]["runs"] > 0
    out = cli("reorder", mesh_file, "--force", "-q", "--json", "--no-measure")[1]
    assert json.loads(out)["measured"] == {}


@pytest.mark.parametrize(
    "words",
    [
        ("reorder", "wing.msh", "--loop", "cells-"),
        ("reorder", "wing.msh", "--sets", "pecell=cells-"),
        ("tune", "wing.plan.h5", "--loop", "cells-"),
    ],
)
def test_what_the_shell_leaves_of_a_loop_is_explained(cli, mesh_file, monkeypatch, words):
    monkeypatch.chdir(mesh_file.parent)
    assert cli("plan", "wing.msh", "-q")[0] == 0
    code, out, err = cli(*words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "the shell took > for its own and has made a file" in err


def test_a_dry_run_writes_nothing(cli, shows, mesh_file):
    out = shows("reorder", mesh_file, "--dry-run")
    assert "would order the mesh by gps\ncells: gps gains: bandwidth " in out
    assert "would write" in out
    assert os.listdir(mesh_file.parent) == ["wing.msh"]
    out = shows("reorder", mesh_file, "--dry-run", "--json", "-q")
    assert json.loads(out)["loops"][0]["name"] == "edges->cells"


def test_info_says_what_a_better_order_gains(cli, fails, mesh_file):
    lines = cli("info", mesh_file, "--order")[1].splitlines()
    at = lines.index("orders")
    assert lines[at + 1].split() == [
        "set",
        "order",
        "bandwidth",
        "profile",
        "128-byte",
        "lines",
    ]
    assert lines[at + 2].split()[:4] == ["cells", "as", "it", "is"]
    assert lines[at + 3].split()[:2] == ["cells", "gps"]
    found = json.loads(cli("info", mesh_file, "--order", "--json", "-q")[1])["orders"]
    ordered = json.loads(cli("reorder", mesh_file, "--order-only", "--json", "-q")[1])[
        "orders"
    ][0]
    assert [record["bandwidth"] for record in found] == [
        ordered["before"]["bandwidth"],
        ordered["after"]["bandwidth"],
    ]
    assert cli("plan", mesh_file, "-q")[0] == 0
    plan = mesh_file.with_name("wing.plan.h5")
    assert "is no mesh, so that no order is looked for" in fails("info", plan, "--order")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--target", "cpu"), True),
        (("--target", "cpu", "--method", "hilbert"), False),
        ((), False),
    ],
)
def test_solvers_of_finite_elements_are_told_of_hilbert(cli, mesh_file, words, told):
    out = cli("reorder", mesh_file, *words, "--no-measure", "-q")[1]
    assert ("by --method hilbert" in out) == told


def test_loops_from_a_file(cli, mesh_file):
    loops = mesh_file.with_name("loops.toml")
    loops.write_text(
        '[loop.flux]\nover = "edges"\nblock_size = 50\nargs = [\n'
        '  { dat = "q", map = "edges->cells", dim = 4, access = "read" },\n'
        '  { dat = "r", map = "edges->cells", dim = 4, access = "inc" },\n]\n'
        '[loop.area]\nover = "cells"\nargs = [\n'
        '  { dat = "x", map = "cells->nodes", dim = 3, access = "read" },\n'
        '  { dat = "a", access = "write" },\n]\n'
    )
    assert cli("reorder", mesh_file, "--loops", loops, "-q")[0] == 0
    plan = Plan.load(mesh_file.with_name("wing.plan.h5"))
    assert list(plan.loops) == ["flux", "area"]
    assert plan["flux"].variant().block_size == 50
    assert plan["area"].variant().block_size == 256


@pytest.mark.parametrize("which", ["wing.msh", "wing-reordered.msh"])
def test_check_proves_a_plan_against_either_mesh(cli, shows, mesh_file, which):
    cli("reorder", mesh_file, "--loop", "edges->cells", "--loop", "cells->nodes", "-q")
    plan = mesh_file.with_name("wing.plan.h5")
    assert "right and fits" in shows(
        "check", plan, "--mesh", mesh_file.with_name(which), "-q"
    )
    assert json.loads(shows("check", plan, "--json", "-q"))["ok"] is True


def test_loops_through_maps_of_maps_are_planned_split_and_checked(cli, shows, mesh_file):
    loops = mesh_file.with_name("loops.toml")
    loops.write_text(
        '[loop.flux]\nover = "edges"\nargs = [\n'
        '  { dat = "x", map = "edges->cells->nodes", dim = 2, access = "read" },\n'
        '  { dat = "r", map = "edges->cells", access = "inc" },\n]\n'
    )
    assert cli("reorder", mesh_file, "--loops", loops, "-q")[0] == 0
    assert cli("split", mesh_file, "--parts", 3, "--loops", loops, "-q")[0] == 0
    plan, parts = mesh_file.with_name("wing.plan.h5"), mesh_file.with_name("wing.parts.h5")
    assert Plan.load(plan)["flux"].maps["edges->cells->nodes"].arity == 6
    for path, mesh in (
        (plan, "wing.msh"),
        (plan, "wing-reordered.msh"),
        (parts, "wing.msh"),
    ):
        assert "right and fits" in shows(
            "check", path, "--mesh", mesh_file.with_name(mesh), "-q"
        )


def test_check_finds_a_wrong_plan(cli, mesh_file):
    cli("reorder", mesh_file, "-q")
    path = mesh_file.with_name("wing.plan.h5")
    plan = Plan.load(path)
    loop = plan["edges->cells"]
    variant = loop.variant()
    wrong = replace(variant, thread_colour=np.zeros_like(variant.thread_colour))
    broken = replace(loop, variants={variant.name: wrong})
    replace(plan, loops={"edges->cells": broken}).save(path, overwrite=True)
    code, out, _ = cli("check", path, "-q")
    assert code == 1
    assert "wrong:" in out
    assert "colour" in out


def test_report_puts_plans_side_by_side(cli, shows, mesh_file):
    a, b = mesh_file.with_name("a.plan.h5"), mesh_file.with_name("b.plan.h5")
    cli("plan", mesh_file, "-o", a, "--block-size", 32, "-q")
    cli(
        "plan",
        mesh_file,
        "--plan",
        b,
        "--block-size",
        128,
        "--partition",
        "contiguous",
        "-q",
    )
    out = shows("report", a, b)
    assert "a.plan.h5" in out
    assert "b.plan.h5" in out
    assert "a.plan.h5, loop edges->cells s32: reuse " in shows("report", a, b, "--full")
    assert "(* the best of its column)" in out
    values = json.loads(cli("report", a, b, "--json")[1])
    assert len(values["plans"]) == 2
    assert {v["plan"] for v in values["verdicts"]} == {"a.plan.h5", "b.plan.h5"}
    keys = {"loop", "plan", "variant", "figure", "before", "after", "best"}
    assert {*map(frozenset, values["figures"])} == {frozenset(keys)}


def test_info_on_meshes_and_plans(cli, mesh_file):
    values = json.loads(cli("info", mesh_file, "--json")[1])
    assert {s["set"] for s in values["sets"]} >= {"nodes", "cells", "line"}
    assert "cells->nodes" in cli("info", mesh_file)[1]
    cli("reorder", mesh_file, "-q")
    plan = mesh_file.with_name("wing.plan.h5")
    assert "edges->cells" in cli("info", plan)[1]
    groups = Plan.load(plan).tags["boundary_edges"]["physical"]
    wanted = [(int(g), int((groups == g).sum())) for g in np.unique(groups)]
    found = json.loads(cli("info", plan, "--json")[1])["tags"]
    physical = [(t["group"], t["elements"]) for t in found if t["tag"] == "physical"]
    assert physical == wanted
    assert {t["name"] for t in found} >= {"left", "right", "bottom", "top"}
    args = [{"global": "sum", "access": "inc"}, {"dat": "v", "access": "read"}]
    loops = mesh_file.with_name("loops.toml")
    words = [", ".join(f'{k} = "{v}"' for k, v in arg.items()) for arg in args]
    loops.write_text(
        f'[loop.add]\nover = "cells"\nargs = [{{ {words[0]} }}, {{ {words[1]} }}]\n'
    )
    cli("plan", mesh_file, "--loops", loops, "--force", "-q")
    found = json.loads(cli("info", mesh_file.with_name("wing.plan.h5"), "--json")[1])
    assert [a["through"] for a in found["arguments"]] == ["global", "direct"]


def test_generate_lists_its_kinds(shows):
    out = shows("generate")
    assert "delaunay2d" in out
    assert "airfoil" in out


def test_generate_says_what_it_wrote(cli, tmp_path):
    target = tmp_path / "a.msh"
    code, out, err = cli("generate", "box", "--option", "nx=1", "-o", target)
    sets = ", ".join(f"{name} {s.size:,}" for name, s in io.read(target).sets.items())
    assert (code, out) == (0, "")
    assert err.splitlines()[-1].startswith(f"meshprep: {target}: {sets}, in ")


def test_threads_are_limited(cli, mesh_file):
    assert cli("plan", mesh_file, "--threads", 1, "--dry-run", "-q")[0] == 0
    assert get_num_threads() == 1


def test_force_overwrites(cli, fails, mesh_file):
    assert cli("reorder", mesh_file, "-q")[0] == 0
    assert "use --force" in fails("reorder", mesh_file, "-q")
    assert cli("reorder", mesh_file, "-q", "--force")[0] == 0


def test_version_and_help(cli, shows):
    assert cli("--version")[1].startswith("meshprep ")
    out = shows("--help")
    assert "reorder" in out
    assert cli()[:2] == (0, out)


@pytest.mark.parametrize("name", list(commands().commands))
def test_the_list_of_commands_has_whole_sentences(cli, name):
    (line,) = (each for each in cli()[1].splitlines() if each.split()[:1] == [name])
    assert line.endswith(".")
    assert not line.endswith("...")


def test_help_has_a_heading_for_each_group(cli):
    lines = cli("reorder", "--help")[1].splitlines()
    of_blocks = lines[lines.index("How it is numbered and cut into blocks:") :]
    assert of_blocks[1].split()[:2] == ["--method", "TEXT"]
    assert of_blocks.index("") < of_blocks.index("How the mesh is read:")
    assert sum(line.startswith("  --method ") for line in lines) == 1


def test_sentences_fit_a_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    line = "wing.plan.h5, loop edges->cells s256: " + "reuse 1.34 -> 2.77; " * 9
    assert console._for_terminal(line) == line
    monkeypatch.setattr(console.sys.stdout, "isatty", lambda: True, raising=False)
    shown = console._for_terminal(line).splitlines()
    assert max(map(len, shown)) <= 60
    assert " ".join(" ".join(shown).split()) == line.strip()


def test_a_wide_table_continues_below_on_a_terminal(monkeypatch, capsys):
    header = ("loop", "elements", "blocks", "of which", "colours")
    rows = [("flux", "29,898", "118", "7", "4"), ("update", "20,000", "79", "8", "1")]
    monkeypatch.setenv("COLUMNS", "32")
    console.show_table("", header, rows)
    assert len(capsys.readouterr().out.splitlines()) == 3
    monkeypatch.setattr(console.sys.stdout, "isatty", lambda: True, raising=False)
    console.show_table("", header, rows)
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[1:] for line in shown[1:3]] == [list(row[1:3]) for row in rows]
    assert shown[4] == ["flux", "7", "4"]
    monkeypatch.setenv("COLUMNS", "5")
    console.show_table("", header, rows)
    assert len(capsys.readouterr().out.splitlines()) == 3 * 4


@pytest.fixture
def apart(tmp_path):
    """Two tetrahedra that share no face."""
    points = np.random.default_rng(0).random((8, 3))
    mesh, _ = assemble(points, [Block("tetra", np.arange(8).reshape(2, 4))])
    io.write(mesh, tmp_path / "apart.vtu")
    return tmp_path / "apart.vtu"


@pytest.mark.parametrize("command", ["reorder", "plan", "sweep"])
def test_a_default_loop_without_elements_gives_way(cli, apart, command):
    code, out, err = cli(command, apart)
    assert code == 0
    told = (
        "no two cells share a face: the loop is cells->nodes, that of finite elements, in place "
        "of faces->cells"
    )
    assert told in out + err
    if command != "sweep":
        plan = Plan.load(apart.with_suffix(".plan.h5"))
        assert [*plan.loops] == ["cells->nodes"]
        assert cli(command, apart, "--dry-run", "--force")[1].count(told) == 1


def test_one_cell_is_split_by_its_nodes(cli, apart):
    code, _, err = cli("split", apart, "--parts", "2")
    assert code == 0
    assert "no two cells share a face: the loop is cells->nodes" in err


@pytest.fixture
def three_shells(tmp_path):
    """Shells that meet in one line, beside each other and beside a triangle: a T."""
    points = np.array(
        [[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0], [-1, 0, 0], [-1, 1, 0], [0, 0, 1]]
    )
    blocks = [
        Block("quad", np.array([[0, 1, 3, 2], [0, 1, 5, 4]])),
        Block("triangle", np.array([[0, 1, 6]])),
    ]
    mesh, _ = assemble(points.astype(float), blocks)
    io.write(mesh, tmp_path / "shells.vtu")
    return tmp_path / "shells.vtu"


@pytest.mark.parametrize("command", ["reorder", "plan", "sweep", "split"])
def test_a_default_loop_over_edges_of_three_cells_gives_way(cli, three_shells, command):
    more = ["--parts", "2"] if command == "split" else []
    code, out, err = cli(command, three_shells, *more)
    assert code == 0, err
    told = (
        "the edge with nodes 0, 1 belongs to 3 cells (0, 1, 2; counted from 0), 'edges->cells' "
        "allows two: the loops are quad->nodes and triangle->nodes, those of finite elements, "
        "in place of edges->cells"
    )
    assert told in out + err
    if command in ("reorder", "plan"):
        plan = Plan.load(three_shells.with_suffix(".plan.h5"))
        assert [*plan.loops] == ["quad->nodes", "triangle->nodes"]


def test_a_loop_over_edges_of_three_cells_that_was_asked_for_is_refused(
    fails, three_shells
):
    said = fails("reorder", three_shells, "--loop", "edges->cells")
    assert "belongs to 3 cells" in said
    assert said.endswith("use another loop, for example 'edges->nodes'")


def test_a_template_begins_with_the_loop_that_takes_the_place_of_the_default_one(
    shows, three_shells
):
    text = shows("loops", three_shells)
    assert next(iter(tomllib.loads(text)["loop"])) == "over_quad"


def test_a_loop_without_elements_that_was_asked_for_is_told(cli, apart):
    words = (
        "reorder",
        apart,
        "--loop",
        "faces->cells",
        "--loop",
        "cells->nodes",
        "--force",
    )
    told = "loop faces->cells has no elements, as no two cells share a face"
    code, out, err = cli(*words, "--full")
    assert code == 0
    assert told in err
    assert "loop faces->cells, variant s256: no elements, so that there is nothing" in out
    assert "loop cells->nodes, variant s256: 2 elements, blocks of 256" in out
    notes = json.loads(cli(*words, "--json", "-q")[1])["notes"]
    assert any(note.startswith(told) for note in notes)
    assert told in cli(*words, "--dry-run")[1]


def test_values_that_meshio_cannot_read_are_left_out_and_said_so(cli, tmp_path):
    """meshio reads no MSH 2.2 file with values on cells of several types."""
    io.write(generate("mixed2d", nx=6, ny=6), tmp_path / "a.msh", version="2.2")
    code, _, err = cli("reorder", tmp_path / "a.msh")
    assert code == 0
    assert (
        "no original_id on cells, since meshio reads no MSH 2.2 file that has values" in err
    )
    assert "the plan has it, in ordering/line/new_to_old, ordering/quad/new_to_old" in err
    new = io.read(tmp_path / "a-reordered.msh")
    assert {d.set for d in new.dats if d.name == "original_id"} == {"nodes"}
    assert (
        "no original_id" not in cli("reorder", tmp_path / "a.msh", "--force", "--no-ids")[2]
    )
    io.write(generate("mixed2d", nx=6, ny=6), tmp_path / "b.msh", version="4.1")
    assert "no original_id" not in cli("reorder", tmp_path / "b.msh")[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--cells", 100, "--option", "cells=50"),
            "--cells and --option cells say the same",
        ),
        (("--seed", 1, "--option", "seed=2"), "--seed and --option seed say the same"),
        (
            ("--option", "cells=100", "--option", "cells=50"),
            "cells is given twice: 100 and 50",
        ),
    ],
)
def test_generate_takes_each_option_once(cli, tmp_path, words, message):
    code, out, err = cli("generate", "delaunay2d", *words, "-o", tmp_path / "a.msh")
    assert (code, out, [*tmp_path.iterdir()]) == (2, "", [])
    assert message in err


def test_generate_in_json(cli, tmp_path):
    target = tmp_path / "a.msh"
    code, out, err = cli(
        "generate", "mixed2d", "--option", "nx=2", "-o", target, "--json", "-q"
    )
    told = json.loads(out)
    assert (code, err, told["written"], told["notes"]) == (0, "", [str(target)], [])
    assert told["sets"]["cells"] == told["sets"]["quad"] + told["sets"]["triangle"]
    kinds = json.loads(cli("generate", "--json")[1])
    (mixed,) = (one for one in kinds if one["kind"] == "mixed2d")
    assert mixed["what"] == "a square of quads and triangles"
    assert "nx=64" in mixed["options"]


def test_a_plan_of_a_mesh_with_loose_cells_needs_no_dimension_again(cli, tmp_path):
    """Commands that have no such option asked for it."""
    mesh = generate("delaunay2d", cells=60)
    lines = Block(
        "line", np.array([[0, mesh.size("nodes") - 1], [1, mesh.size("nodes") - 2]])
    )
    cells = Block("triangle", mesh.cell_map("cells").table)
    path, plan = tmp_path / "a.vtu", tmp_path / "a.plan.h5"
    io.write(assemble(np.array(mesh.coordinates), [lines, cells])[0], path)
    assert cli("reorder", path, "-q")[0] == 2
    assert cli("reorder", path, "-q", "--dimension", 2)[0] == 0
    new = tmp_path / "a-reordered.vtu"
    assert cli("check", plan, "--mesh", new, "-q")[0] == 0
    assert (
        cli("report", plan, "--mesh", path, "--picture", tmp_path / "a.png", "-q")[0] == 0
    )
    assert cli("restore", plan, new, "-q")[0] == 0
    back = io.read(tmp_path / "a-reordered-restored.vtu", dimension=2)
    assert back.cell_map("line").table.tolist() == lines.nodes.tolist()
    assert back.cell_map("cells").table.tolist() == cells.nodes.tolist()
