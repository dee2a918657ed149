"""``meshprep report`` and ``meshprep sweep`` as typed."""

import json
import os
import re
import shlex
import shutil
import signal
from dataclasses import replace

import pytest

from meshprep_cli.main import main
from meshprep_cli.process import shortened
from meshprep_runtime import Plan
from meshprep_runtime.plan.records import to_json


@pytest.fixture(scope="module")
def reordered(generated, tmp_path_factory):
    """A folder with a mesh, that mesh in a better order, and its plan."""
    folder = tmp_path_factory.mktemp("reordered")
    mesh = shutil.copy(generated, folder)
    assert main(["reorder", str(mesh), "--block-size", "64", "-q"]) == 0
    return folder


@pytest.fixture
def plan(reordered, tmp_path):
    shutil.copytree(reordered, tmp_path, dirs_exist_ok=True)
    return tmp_path / "wing.plan.h5"


SIX = """
[loop.loop{0}]
over = "edges"
args = [
  {{ dat = "x", map = "edges->nodes", access = "read" }},
  {{ dat = "r", map = "edges->cells", access = "inc" }},
]
"""


def test_six_loops_are_reported_in_fourteen_lines(cli, mesh_file):
    loops = mesh_file.with_name("loops.toml")
    loops.write_text("".join(map(SIX.format, range(6))))
    first, *lines = cli("reorder", mesh_file, "--loops", loops)[1].splitlines()
    assert re.match(
        r"(Pays after|Makes no difference|Too noisy|Does harm).* thread of this CPU: "
        r"its 6 loops ",
        first,
    )
    assert re.search(r" [\d.]+ ms a call .*preparing took [\d.]+ s;", first)
    assert [line.split()[0] for line in lines[1:7]] == [f"loop{i}" for i in range(6)]
    assert len(lines) < 14
    again = cli("report", mesh_file.with_name("wing.plan.h5"))[1].splitlines()
    assert [line.split("  ")[0] for line in again[1:-1]] == [
        line.split("  ")[0] for line in lines[:-2]
    ]
    assert again[-1].startswith("timed on ")


def test_report_writes_its_files_and_says_so(cli, fails, plan):
    page = plan.with_name("r.html")
    mesh = plan.with_name("wing.msh")
    code, out, err = cli("report", plan, "--html", page, "--mesh", mesh)
    assert code == 0
    assert out.startswith(("Pays ", "Does ", "Makes ", "Too noisy "))
    assert f"wrote {page}" in err
    assert page.read_text().startswith("<!doctype html>")
    assert "use --force" in fails("report", plan, "--html", page, "-q")
    assert cli("report", plan, "--html", page, "--force", "-q")[0] == 0


def test_report_takes_times_that_were_measured(shows, plan):
    assert "as measured" in shows("report", plan, "--measured", "edges->cells=2.5:1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--measured", "edges->cells=2"), "must read LOOP=BEFORE:AFTER"),
        (("--measured", "wheels=2:1"), "loop 'wheels' is unknown: use edges->cells"),
        (("--loop", "edges->cells"), "name one of these"),
        (("--vtu", "a.vtu"), "name its mesh with --mesh"),
    ],
)
def test_report_refuses(fails, plan, words, said):
    assert said in fails("report", plan, *words)


def test_a_loop_that_is_not_there(fails, plan):
    target = plan.with_name("a.png")
    mesh = plan.with_name("wing.msh")
    err = fails(
        "report", plan, "--picture", target, "--mesh", mesh, "--loop", "wheels", "-q"
    )
    assert "no loop 'wheels'" in err
    assert not target.exists()


@pytest.mark.parametrize(
    ("ending", "begins"),
    [(".png", b"\x89PNG\r\n"), (".pdf", b"%PDF-"), (".SVG", b"<?xml")],
)
def test_the_ending_of_a_picture_is_its_format(cli, plan, ending, begins):
    target = plan.with_name("a" + ending)
    mesh = plan.with_name("wing.msh")
    code, _, err = cli("report", plan, "--picture", target, "--mesh", mesh, "--no-measure")
    assert (code, f"wrote {target}" in err) == (0, True)
    assert target.read_bytes().startswith(begins)


def test_a_picture_has_the_name_of_its_option_of_earlier_versions(cli, plan):
    target = plan.with_name("a.png")
    mesh = plan.with_name("wing.msh")
    assert cli("report", plan, "--png", target, "--mesh", mesh, "-q")[0] == 0
    assert target.exists()


SWEEP = ("--block-sizes", "32:64", "--partitioners", "blocks,contiguous", "-q")


def test_sweep_prints_one_comparison_and_the_best(cli, mesh_file):
    code, out, err = cli("sweep", mesh_file, *SWEEP)
    assert (code, err) == (0, "")
    assert out.count("gps blocks s") >= 3
    best = json.loads(cli("sweep", mesh_file, *SWEEP, "--json")[1])["best"]
    method, partitioner, size = best.split()
    assert out.startswith(f"Best: {best}, as reorder chooses itself: ")
    words = f"--method {method} --partition {partitioner} --block-size {size[1:]}"
    assert f"to make it: meshprep reorder {mesh_file} {words}\n" in out
    assert os.listdir(mesh_file.parent) == ["wing.msh"]


def test_sweep_for_scripts(cli, mesh_file):
    values = json.loads(cli("sweep", mesh_file, *SWEEP, "--json")[1])
    assert len(values["plans"]) == 4
    assert values["failures"] == []
    rows = values["figures"]
    assert len({row["plan"] for row in rows}) == 4
    reuse = {row["plan"]: row["after"] for row in rows if row["figure"] == "reuse factor"}
    assert reuse["gps blocks s64"] > reuse["gps contiguous s32"]


def test_sweep_as_a_page(cli, mesh_file):
    page = mesh_file.with_name("s.html")
    code, _, err = cli("sweep", mesh_file, *SWEEP[:-1], "--html", page)
    assert code == 0
    assert re.fullmatch(
        r"meshprep: 4 plans in [\d.]+ s, wrote .*/s\.html", err.splitlines()[-1]
    )
    text = page.read_text()
    assert "4 plans of wing.msh" in text
    assert "Best: gps blocks s64, as reorder chooses itself" in text
    assert len(re.findall(r'id="plan\d-edges-cells-s\d+-mesh-blocks"', text)) == 1


def test_the_command_that_a_sweep_names_works(cli, mesh_file):
    out = cli("sweep", mesh_file, *SWEEP, "--loop", "cells->nodes")[1]
    (line,) = [x for x in out.splitlines() if x.startswith("to make it: ")]
    assert cli(*shlex.split(line)[4:], "-q")[0] == 0


ASKED = """
[loop.res]
over = "edges"
block_size = 448
args = [{ dat = "res", map = "edges->cells", index = [0, 1], access = "inc" }]
"""


def test_the_command_that_a_sweep_names_holds_what_was_asked(cli, mesh_file):
    named = mesh_file.with_name("a <b> &\"' ü.msh")
    mesh_file.rename(named)
    loops = named.with_name("loops.toml")
    loops.write_text(ASKED)
    out = cli("sweep", named, *SWEEP, "--target", "cpu", "--seed", 3, "--loops", loops)[1]
    (line,) = [x for x in out.splitlines() if x.startswith("to make it: ")]
    assert line.endswith(f" (with block_size taken out of {loops})")
    words = shlex.split(line.partition(" (with")[0])[3:]
    assert words[:2] == ["meshprep", "reorder"]
    assert words[2] == str(named)
    pairs = dict(zip(words[3::2], words[4::2], strict=True))
    assert (pairs["--target"], pairs["--seed"], pairs["--loops"]) == (
        "cpu",
        "3",
        str(loops),
    )
    assert cli(*words[1:], "-q")[0] == 0


def test_a_mesh_of_no_plan_is_refused(cli, fails, plan):
    other, page = plan.with_name("other.msh"), plan.with_name("r.html")
    assert cli("generate", "delaunay2d", "--cells", 90, "-o", other, "-q")[0] == 0
    for words in (("--html", page), ()):
        err = fails("report", plan, "--mesh", other, *words, "-q")
        assert not page.exists()
        assert (
            f"the plan was made from another mesh than {other}: name its own with --mesh"
            in err
        )


def test_an_interrupted_sweep_leaves_nothing(capsys, mesh_file, monkeypatch):
    from meshprep.reporting import sweep

    made = []

    def slow(*args, **options):
        made.append(True)
        if len(made) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return real(*args, **options)

    real = sweep.cut_and_colour
    monkeypatch.setattr(sweep, "cut_and_colour", slow)
    page = mesh_file.with_name("s.html")
    code = main(["sweep", str(mesh_file), *SWEEP, "--html", str(page)])
    assert code == 130
    assert "interrupted" in capsys.readouterr().err
    assert len(made) == 2
    assert os.listdir(mesh_file.parent) == ["wing.msh"]


def test_what_changed_is_bold_on_a_terminal_alone(monkeypatch):
    from meshprep_cli import console

    said = []
    monkeypatch.setattr(console.typer, "echo", said.append)
    rows = [("x", "1", "20"), ("y", "3", "3")]
    console.show_table("", ("", "a", "b"), rows, bold={(0, 2)})
    assert said[1:] == ["x  1  \x1b[1m20\x1b[0m", "y  3   3"]


def changed(plan, **documents):
    """The plan with other JSON, sealed as it should be."""
    loaded = Plan.load(plan)
    kept = {name: getattr(loaded, name) for name in ("metrics", "about", "options")}
    replace(loaded, **{**kept, **documents}).save(plan, overwrite=True)


def variant(plan, **figures):
    """The metrics of the plan with other figures after."""
    found = to_json(Plan.load(plan).metrics)
    sides = found["loops"]["edges->cells"]["s64"]
    sides["after"] |= figures
    return {"metrics": found}


@pytest.mark.parametrize(
    ("documents", "said"),
    [
        (
            lambda p: {"metrics": {"locality": {"set": "cells"}}},
            "locality/target is missing",
        ),
        (lambda p: {"about": {"creator": ["x"]}}, "about/creator is no text"),
        (
            lambda p: {"options": {"partition_options": 3}},
            "partition_options is no JSON object",
        ),
        (lambda p: variant(p, later=float("inf")), "Out of range float values"),
        (lambda p: variant(p, reuse="2.5"), "s64/after/reuse is no number"),
        (
            lambda p: variant(p, thread_colours={"mean": 3, "max": [1]}),
            "thread_colours/max is no",
        ),
    ],
)
@pytest.mark.parametrize("command", ["report", "info"])
def test_figures_of_another_shape_are_no_fault_of_ours(
    fails, plan, documents, said, command
):
    changed(plan, **documents(plan))
    err = fails(command, plan)
    assert "the plan's figures are not those of a plan" in err
    assert said in err


def test_what_a_later_version_wrote_is_kept(cli, plan):
    changed(plan, **variant(plan, something_new=[1, {"x": "y"}]))
    kernel = plan.with_name("both.py")
    kernel.write_text("def add(a, b):\n    a[0] += 1.0\n    b[0] += 1.0\n")
    short = ("--strategies", "sequential", "--block-sizes", 32, "--runs", 1, "-q")
    assert cli("tune", plan, "--kernel", f"{kernel}:add", *short)[0] == 0
    (found,) = json.loads(cli("report", plan, "--json")[1])["plans"]
    loop = found["metrics"]["loops"]["edges->cells"]
    assert (next(iter(loop)), loop["s64"]["after"]["something_new"]) == (
        "s64",
        [1, {"x": "y"}],
    )


def test_figures_of_older_and_newer_plans_are_shown(cli, shows, plan):
    found = variant(plan, something_new=[1, {"x": "y"}])
    del found["metrics"]["loops"]["edges->cells"]["s64"]["after"]["traffic"]
    del found["metrics"]["locality"]
    changed(plan, **found)
    out = shows("report", plan, "--full")
    assert "reuse factor" in out
    assert "sectors read" in out
    changed(plan, metrics={"another": "tool"}, about={}, options={})
    assert cli("report", plan)[0] == 0
    assert cli("info", plan)[0] == 0


def test_long_names_are_shortened(cli, shows, fails, plan):
    changed(plan, about={"creator": "x" * 5000})
    out = shows("info", plan)
    assert max(map(len, out.splitlines())) < 200
    assert "xxx...(5,000 letters)...xxx" in out
    assert "x" * 5000 in cli("info", plan, "--json")[1]
    fails("report", plan, "--picture", plan.with_suffix(".png"), "--loop", "y" * 5000)
    _, _, err = cli("report", plan, "--measured", f"{'y' * 5000}=1:2")
    assert "yyy...(5,002 letters)...yyy" in err
    assert len(err) < 600
    assert shortened("a" * 999 + "z" * 999, 24) == "aa...(1,998 letters)...z"


def test_control_characters_of_a_plan_never_reach_the_terminal(cli, plan):
    changed(plan, about={"creator": "meshprep\x1b[2J"}, options={"seed": "\x07"})
    for command in ("report", "info"):
        code, out, err = cli(command, plan)
        assert code == 0, err
        assert (out + err).replace("\n", "").isprintable()
    assert r"meshprep\u001b[2J" in out
