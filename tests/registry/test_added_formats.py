"""Formats of other packages: the story of CONTRIBUTING.md, and what is refused."""

import importlib.metadata
import os
import subprocess
import sys

import numpy as np
import pytest

import meshprep
from meshprep import io
from meshprep.io.generate import generate
from meshprep.registry.formats import FORMATS
from meshprep_cli.main import main
from meshprep_runtime import MeshprepError, Plan

DECLARED = "[meshprep.formats]\nmine = own_format:MINE\n"
FORMAT = """\
from meshprep.io.format import Format

def read(path):
    {body}

def write(mesh, path):
    pass

MINE = Format(read=read, write=write, losses=lambda mesh: [], extensions=(".mine",))
"""
BLOCKS = """\
from meshprep.io.cell_blocks import Capabilities, block_format

def read():
    pass

def write(mesh, path):
    pass

MINE = block_format(read=read, write=write, carries=Capabilities(("line",)))
"""


@pytest.fixture
def tri(install, story, entry_points_text):
    """The package of the guide, installed; gives the test that goes with it."""
    (module, test), declared = story("Add a format")
    install("tri-format", "tri_format", module, entry_points_text(declared))
    return test


def test_the_test_of_the_guide_passes_beside_its_module(tri, tmp_path):
    (tmp_path / "test_tri_format.py").write_text(tri, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "tri-format")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_the_story_of_the_guide_ends_with_a_reordered_file(tri, tmp_path, capsys):
    mesh = generate("delaunay2d", cells=300, seed=2)
    meshprep.write(mesh, tmp_path / "plate.tri", drop=True)
    plate = meshprep.read(tmp_path / "plate.tri")
    assert main(["reorder", str(tmp_path / "plate.tri"), "-q"]) == 0, capsys.readouterr()
    capsys.readouterr()
    assert main(["info", str(tmp_path / "plate-reordered.tri")]) == 0
    told = capsys.readouterr().out.split()
    assert str(plate.size("cells")) in told
    assert str(plate.size("nodes")) in told

    # the nodes and cells of the file that was written stand in the order of the plan
    plan = Plan.load(tmp_path / "plate.plan.h5")
    assert plan.verify() == []
    back = meshprep.read(tmp_path / "plate-reordered.tri")
    nodes = plan.ordering["nodes"].new_to_old
    assert not np.array_equal(nodes, np.arange(nodes.size))
    assert np.array_equal(back.coordinates, plate.coordinates[nodes])
    old = plate.map("cells->nodes").table[plan.ordering["cells"].new_to_old]
    assert np.array_equal(nodes[back.map("cells->nodes").table], old)


def test_an_added_format_is_offered_and_named_like_any_other(tri, tmp_path, capsys):
    assert main(["reorder", "--help"]) == 0
    assert " ".join(capsys.readouterr().out.split()).count("Of other packages: tri.") == 2
    assert io.FORMATS["tri"].name == "tri"
    assert io.FORMATS["tri"].description == "points and triangles as text"
    with pytest.raises(MeshprepError, match=r"use one of .*\.su2 \.tri "):
        meshprep.read(__file__)
    mesh = generate("box", nx=2, ny=2, nz=2, type="tetra")
    with pytest.raises(MeshprepError, match=r"cells of type .tetra. are not written"):
        meshprep.write(mesh, tmp_path / "a.tri")


def test_a_damaged_file_is_told_with_the_package(tri, tmp_path):
    (tmp_path / "a.tri").write_text("one two\n")
    with pytest.raises(MeshprepError) as refused:
        meshprep.read(tmp_path / "a.tri")
    assert str(refused.value) == (
        f"{tmp_path / 'a.tri'}: format 'tri' of package tri-format: read fails: "
        "ValueError: invalid literal for int() with base 10: 'one': look into the file, or "
        "use another format"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nothing_of_this_name", "cannot be loaded from own_format:MINE: ModuleNot"),
        (
            "MINE = 'text'",
            "is a str: its entry point must name a meshprep.io.format.Format",
        ),
        (
            FORMAT.format(body="return {}"),
            "read gave a dict: it must give a meshprep.Mesh",
        ),
        (FORMAT.format(body="return 1 / 0"), "read fails: ZeroDivisionError: division"),
        (
            FORMAT.format(body="pass").replace("def read(path)", "def read()"),
            r"read takes \(\): it must be a function of \(path\)",
        ),
        (
            FORMAT.format(body="pass").replace("def write(mesh, path)", "def write(mesh)"),
            r"write takes \(mesh\): it must be a function of \(mesh, path\)",
        ),
        (
            FORMAT.format(body="pass").replace('".mine"', '"mine"'),
            "the ending 'mine' must begin with a dot",
        ),
        (
            BLOCKS,
            r"cannot be loaded .* read takes \(\): it must be a function of \(path\)",
        ),
    ],
)
def test_what_is_no_format_is_refused_in_one_line(install, tmp_path, text, said):
    install("my-formats", "own_format", text, DECLARED)
    path = tmp_path / "a.mine"
    path.write_text("some text\n")
    for name in (None, "mine"):
        with pytest.raises(MeshprepError, match=said) as refused:
            meshprep.read(path, format=name)
        assert str(refused.value).startswith(f"{path}: format 'mine' of package my-formats")
        assert "\n" not in str(refused.value)


def test_a_name_of_meshprep_cannot_be_taken(install, tmp_path):
    text = FORMAT.format(body="raise SystemExit")
    install("my-formats", "own_format", text, DECLARED.replace("mine =", "su2 ="))
    assert list(io.FORMATS) == list(FORMATS.built_in)
    (tmp_path / "a.mine").write_text("some text\n")
    with pytest.raises(MeshprepError) as refused:
        meshprep.read(tmp_path / "a.mine")
    assert str(refused.value) == (
        f"{tmp_path / 'a.mine'}: format 'su2' of package my-formats: the name is taken by "
        "meshprep: give it another one"
    )


def test_an_ending_of_meshprep_means_its_own_format(install, tmp_path):
    text = FORMAT.format(body="return {}").replace('".mine"', '".mine", ".vtu"')
    install("my-formats", "own_format", text, DECLARED)
    mesh = generate("box", nx=2, ny=2, nz=0, type="triangle")
    meshprep.write(mesh, tmp_path / "a.vtu", drop=True)
    assert meshprep.read(tmp_path / "a.vtu").content_hash() == mesh.content_hash()
    with pytest.raises(
        MeshprepError, match="'mine' of package my-formats: read gave a dict"
    ):
        meshprep.read(tmp_path / "a.vtu", format="mine")


def test_a_package_that_is_broken_leaves_the_others_alone(tri, install, tmp_path):
    install("my-formats", "own_format", "raise SystemExit(2)", DECLARED)
    (tmp_path / "a.tri").write_text("3 1\n0 0\n1 0\n0 1\n1 2 3\n")
    assert meshprep.read(tmp_path / "a.tri").size("cells") == 1
    with pytest.raises(
        MeshprepError, match="'mine' of package my-formats cannot be loaded"
    ):
        meshprep.read(__file__)


def test_two_packages_with_one_ending_are_told_apart_by_the_name(install, tmp_path):
    for package in ("first", "second"):
        text = FORMAT.format(body=f"raise ValueError('{package}')")
        install(package, package, text, f"[meshprep.formats]\n{package} = {package}:MINE\n")
    (tmp_path / "a.mine").write_text("some text\n")
    with pytest.raises(MeshprepError, match="the formats 'first' and 'second' of other"):
        meshprep.read(tmp_path / "a.mine")
    with pytest.raises(MeshprepError, match="'second' of package second: read fails"):
        meshprep.read(tmp_path / "a.mine", format="second")


def test_packages_are_looked_at_only_for_an_ending_that_is_unknown(monkeypatch, tmp_path):
    looked = []

    def entry_points(group):
        looked.append(group)
        return []

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    monkeypatch.syspath_prepend("a folder that no other test of formats has on its path")
    mesh = generate("box", nx=2, ny=2, nz=2, type="hexahedron")
    meshprep.write(mesh, tmp_path / "a.vtu", drop=True)
    meshprep.write(mesh, tmp_path / "a.dat", format="vtk", drop=True)
    assert meshprep.read(tmp_path / "a.vtu").sizes == mesh.sizes
    assert looked == []
    with pytest.raises(MeshprepError, match="format 'vtx' is unknown: use abaqus, cgns"):
        meshprep.read(tmp_path / "a.vtu", format="vtx")
    assert looked == ["meshprep.formats"]
