"""Whatever is wrong: one line that says what, where and what to do; exit code 2; no output."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from meshprep import io
from meshprep.mesh import Dat, ElementSet, Mesh
from meshprep_cli.main import main
from meshprep_runtime.types.maps import SetMap

NODES = "$Nodes\n4\n1 0 0 0\n2 1 0 0\n3 1 1 0\n4 0 1 0\n$EndNodes\n"
ELEMENTS = "$Elements\n2\n1 2 2 0 1 1 2 3\n2 2 2 0 1 1 3 4\n$EndElements\n"
SQUARE = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n" + NODES + ELEMENTS

TEXTS = {
    "empty": "",
    "text": "this is no mesh\n",
    "truncated": SQUARE[: len(SQUARE) // 2],
    "no-cells": SQUARE.replace(ELEMENTS, "$Elements\n0\n$EndElements\n"),
    "huge-nodes": SQUARE.replace("$Nodes\n4", "$Nodes\n1000000000000"),
    "huge-elements": SQUARE.replace("$Elements\n2", "$Elements\n1000000000000"),
    "negative-count": SQUARE.replace("$Nodes\n4", "$Nodes\n-4"),
    "nan": SQUARE.replace("2 1 0 0", "2 nan 0 0"),
    "infinite": SQUARE.replace("2 1 0 0", "2 inf 0 0"),
    "unknown-node": SQUARE.replace("1 2 3\n", "1 2 9\n"),
    "negative-node": SQUARE.replace("1 2 3\n", "1 2 -3\n"),
    "degenerate": SQUARE.replace("1 2 3\n", "1 2 2\n"),
    "duplicated": SQUARE.replace("2 2 2 0 1 1 3 4", "2 2 2 0 1 3 1 2"),
    "unknown-type": SQUARE.replace("1 2 2 0 1", "1 999 2 0 1"),
    "version": SQUARE.replace("2.2 0 8", "7.5 0 8"),
    "mixed-dimension": SQUARE.replace("2 2 2 0 1 1 3 4", "2 1 2 0 1 2 4"),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("command", ["reorder", "plan", "info"])
def test_broken_meshes(fails, tmp_path, name, command):
    path = tmp_path / f"{name}.msh"
    path.write_text(TEXTS[name])
    assert str(path) in fails(command, path)
    assert os.listdir(tmp_path) == [path.name]


def test_a_sound_file_passes(tmp_path):
    path = tmp_path / "square.msh"
    path.write_text(SQUARE)
    assert main(["reorder", str(path), "-q"]) == 0


def test_mixed_dimensions_are_accepted_when_asked(tmp_path):
    path = tmp_path / "beam.msh"
    path.write_text(TEXTS["mixed-dimension"])
    assert (
        main(["reorder", str(path), "-q", "--dimension", "2", "--loop", "cells->nodes"])
        == 0
    )
    new = io.read(tmp_path / "beam-reordered.msh", dimension=2)
    assert (new.size("cells"), new.size("line")) == (1, 1)


def test_paths_that_are_no_files(fails, tmp_path):
    assert "does not exist" in fails("reorder", tmp_path / "none.msh")
    (tmp_path / "folder.msh").mkdir()
    assert "directory" in fails("reorder", tmp_path / "folder.msh")
    os.mkfifo(tmp_path / "pipe.msh")
    fails("reorder", tmp_path / "pipe.msh")
    (tmp_path / "link.msh").symlink_to(tmp_path / "nowhere.msh")
    fails("reorder", tmp_path / "link.msh")
    fails("info", "/dev/null", "--format", "gmsh")
    assert sorted(os.listdir(tmp_path)) == ["folder.msh", "link.msh", "pipe.msh"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("command", ["info", "check", "report", "split --parts 2", "tune"])
@pytest.mark.parametrize("name", ["a.msh", "a.h5", "a.plan.h5", "a.parts.h5"])
def test_a_pipe_is_refused_unopened(fails, tmp_path, command, name):
    """Whoever opens one waits for ever."""
    os.mkfifo(tmp_path / name)
    where = [tmp_path / name, "-o", tmp_path / "b.parts.h5"][
        : 3 if "split" in command else 1
    ]
    assert "is no regular file (a pipe, socket or device)" in fails(
        *command.split(), *where
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("options", ["--loops", "--parts 2 --loops"])
def test_a_pipe_in_an_option_is_refused_unopened(fails, tmp_path, options):
    path = tmp_path / "square.msh"
    path.write_text(SQUARE)
    os.mkfifo(tmp_path / "pipe")
    command = "split" if "parts" in options else "reorder"
    assert "is no regular file" in fails(command, path, *options.split(), tmp_path / "pipe")


@pytest.mark.parametrize("command", ["reorder", "plan", "sweep", "split --parts 2"])
def test_a_name_without_a_file_is_refused(fails, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    for name, told in (
        ("wing", "wing: does not exist: check"),
        (".", ".: is a directory: name"),
    ):
        assert told in fails(*command.split(), name)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["split", "--parts", "2", "--cut", "metsi"],
            "cut 'metsi' is unknown: use annealed",
        ),
        (["split", "--parts", "3", "--weights", "1,2"], "2 weights for 3 parts"),
        (["reorder", "--effort", "lots"], "option 'effort' is 'lots', must be one of fast"),
        (
            ["plan", "--partition-option", "sie=2"],
            "partitioner 'blocks' has no option 'sie'",
        ),
    ],
)
def test_words_are_looked_at_before_the_mesh(fails, mesh_file, words, told):
    mesh_file.write_text("this is no mesh")
    assert told in fails(*words, mesh_file)


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() == 0, reason="root may do everything"
)
def test_no_permission(fails, tmp_path, mesh_file):
    mesh_file.chmod(0)
    assert "permission" in fails("reorder", mesh_file)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--loop", "faces->cells"], "edges->cells"),
        (["--loop", "wings->cells"], "loop 'wings->cells': this mesh cannot give"),
        (["--loop", "edges"], "FROM->TO"),
        (["--method", "magic"], "gps"),
        (["--partition", "magic"], "metis"),
        (["--partition-option", "magic=1"], "magic"),
        (["--partition-option", "magic"], "NAME=VALUE"),
        (["--loops", "none.toml"], "none.toml"),
        (["--to", "magic"], "gmsh"),
        (["--format", "magic"], "gmsh"),
        (["-o", "wing.magic"], "cannot tell the format"),
        (["-o", "none/wing.msh"], "does not exist"),
        (["--block-size", "0"], "block-size"),
        (["--target", "abacus"], "gpu"),
        (["--threads", "100000"], "at most"),
        (["--magic"], "--magic"),
    ],
)
def test_unknown_names(fails, tmp_path, monkeypatch, mesh_file, words, told):
    monkeypatch.chdir(tmp_path)
    assert told in fails("reorder", mesh_file, *words)
    assert os.listdir(tmp_path) == ["wing.msh"]


def test_an_unknown_command(fails):
    assert "magic" in fails("magic")


def test_usage_errors_name_the_help_of_the_command(fails):
    assert fails("reorder").endswith(
        "Missing argument 'MESH'. (see meshprep reorder --help)"
    )


def test_an_unknown_kind(fails, tmp_path):
    assert "delaunay2d" in fails("generate", "magic", "-o", tmp_path / "a.msh")
    fails("generate", "box", "--option", "type=magic", "-o", tmp_path / "a.msh")
    fails("generate", "box", "--option", "magic=1", "-o", tmp_path / "a.msh")
    assert os.listdir(tmp_path) == []


def test_an_output_that_is_the_input(fails, mesh_file):
    assert "input itself" in fails("reorder", mesh_file, "-o", mesh_file, "--force")


def test_a_plan_with_one_flipped_byte(fails, cli, mesh_file):
    cli("reorder", mesh_file, "-q")
    plan = mesh_file.with_name("wing.plan.h5")
    content = bytearray(plan.read_bytes())
    random = np.random.default_rng(5)
    for at in random.integers(0, len(content), 30):
        flipped = content.copy()
        flipped[at] ^= 0xFF
        plan.write_bytes(flipped)
        for command in ("check", "report", "info"):
            assert str(plan) in fails(command, plan)


def test_a_plan_for_another_mesh(fails, cli, mesh_file):
    cli("reorder", mesh_file, "-q")
    other = mesh_file.with_name("other.msh")
    cli("generate", "delaunay2d", "--cells", 310, "-o", other, "-q")
    line = fails("check", mesh_file.with_name("wing.plan.h5"), "--mesh", other)
    assert "another mesh" in line


def test_how_to_read_a_mesh_without_a_mesh(fails, mesh_file):
    line = fails("check", mesh_file, "--format", "gmsh")
    assert "--format says how to read a mesh: name one with --mesh" in line


def test_a_plan_has_no_parts_to_choose(cli, fails, mesh_file):
    cli("plan", mesh_file, "-q")
    line = fails("check", mesh_file.with_name("wing.plan.h5"), "--parts", 2)
    assert "wing.plan.h5 is no file of parts: leave --parts out" in line


def test_files_that_are_no_plans(fails, mesh_file, tmp_path):
    fake = tmp_path / "fake.plan.h5"
    for content in (
        b"",
        b"text",
        mesh_file.read_bytes(),
        b"\x89HDF\r\n\x1a\n" + bytes(100),
    ):
        fake.write_bytes(content)
        for command in ("check", "report", "info"):
            assert "fake.plan.h5" in fails(command, fake)


@pytest.mark.slow
@pytest.mark.parametrize("stop", ["SIGINT", "SIGTERM"])
def test_an_interrupted_run_leaves_nothing(tmp_path, stop):
    import signal

    program = shutil.which("meshprep", path=os.path.dirname(sys.executable))
    mesh = tmp_path / "big.msh"
    assert main(["generate", "delaunay2d", "--cells", "60000", "-o", str(mesh), "-q"]) == 0
    words = [program, "reorder", mesh]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, bufsize=1) as run:
        lines = []
        for line in run.stderr:
            lines.append(line)
            if "locality" in line:
                run.send_signal(getattr(signal, stop))
    assert run.returncode == 130
    assert "interrupted" in lines[-1]
    assert not any("Traceback" in line for line in lines)
    assert os.listdir(tmp_path) == ["big.msh"]


def test_links_that_lead_to_themselves(fails, tmp_path, mesh_file):
    for name in ("loop.msh", "ring.plan.h5", "loop.toml"):
        (tmp_path / name).symlink_to(tmp_path / name)
    link, plan, toml = (tmp_path / n for n in ("loop.msh", "ring.plan.h5", "loop.toml"))
    for command in ("reorder", "plan", "info", "loops", "sweep"):
        assert "is a link that leads to itself" in fails(command, link)
    assert "use --force" in fails("reorder", mesh_file, "-o", link)
    assert "use --force" in fails("reorder", mesh_file, "--plan", plan)
    for command in ("check", "report", "info"):
        assert "leads to itself" in fails(command, plan)
    assert "leads to itself" in fails("reorder", mesh_file, "--loops", toml)
    assert len(os.listdir(tmp_path)) == 4


def test_a_link_to_itself_is_replaced_when_asked(tmp_path, mesh_file):
    link = tmp_path / "loop.msh"
    link.symlink_to(link)
    assert main(["reorder", str(mesh_file), "-o", str(link), "--force", "-q"]) == 0
    assert not link.is_symlink()
    assert io.read(link).size("cells") == io.read(mesh_file).size("cells")


def test_cells_that_a_format_has_not_are_refused_before_any_work(capsys, tmp_path):
    """Also with --drop, which takes values and groups away, but no cells."""
    mesh = tmp_path / "nine.msh"
    out = tmp_path / "nine.su2"
    nodes = np.array([[0, 1, 2, 3, 4, 5, 6, 7, 8], [1, 9, 10, 2, 11, 12, 13, 5, 14]])
    cells = SetMap("cells->nodes", "cells", "nodes", nodes)
    where = Dat("coordinates", "nodes", np.arange(30.0).reshape(15, 2) ** 2)
    sets = [ElementSet("nodes", 15), ElementSet("cells", 2, "quad9")]
    io.write(Mesh(sets, [cells], [where]), mesh)
    assert main(["reorder", str(mesh), "-o", str(out), "--drop"]) == 2
    lines = [
        text for text in capsys.readouterr().err.splitlines() if "compiling" not in text
    ]
    assert lines[-1].startswith(f"meshprep: error: {out}: cells of type")
    assert len(lines) == 2, lines
    assert "reading" in lines[0]
