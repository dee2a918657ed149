"""Programs that Debian has open what ``meshprep reorder`` writes, and count the same.

They are used where they are installed: ``make clients`` says which are missing.
"""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from client_programs import find
from test_clients import FILES, reordered, run_driver

import meshprep

pytestmark = pytest.mark.slow

# Where OpenFOAM and FreeFem look for what belongs to them.
WHERE_DEBIAN_HAS_THEM = {
    "WM_PROJECT_DIR": "/usr/share/openfoam",
    "FF_LOADPATH": "/usr/lib/freefem++",
}
# FreeFem's reader of Gmsh files knows volumes in text of version 2.2.
FREEFEM = """
load "gmsh"
mesh3 Th = gmshload3("{path}");
cout << "cells: " << Th.nt << " points: " << Th.nv << " volume: " << Th.measure << endl;
"""
CONTROL = """FoamFile { version 2.0; format ascii; class dictionary; object controlDict; }
application checkMesh; startFrom startTime; startTime 0; stopAt endTime; endTime 1;
deltaT 1; writeControl timeStep; writeInterval 1;
"""


def command_of(program: str) -> str:
    """The command; skips where the program is not installed."""
    found = find(program)
    if found is None:
        pytest.skip(f"{program} is not here: make clients says how to get it")
    return found


def call(*command: object, inside: Path) -> str:
    """What a program prints, where it ends well."""
    arguments = [str(part) for part in command]
    done = subprocess.run(
        arguments,
        cwd=inside,
        env={**os.environ, **WHERE_DEBIAN_HAS_THEM},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout + done.stderr


def seen_by_gmsh(path: Path, folder: Path) -> list:
    """Sets of the mesh, as an old Gmsh saves it in the format that all read."""
    saved = folder / "saved.msh"
    call(command_of("gmsh"), path, "-save", "-format", "msh22", "-o", saved, inside=folder)
    mesh = meshprep.read(saved)
    return sorted((s.name, s.size) for s in mesh.sets.values())


def seen_by_code_saturne(path: Path, folder: Path) -> list:
    """Numbers of cells, faces and points, and of the faces of each group."""
    printed = call(
        command_of("cs_preprocess"), path, "--out", folder / "out", inside=folder
    )
    return sorted(re.findall(r"Number of (\w[\w ]*?) *: *(\d+)", printed))


def seen_by_freefem(path: Path, folder: Path) -> list:
    """Cells, points and the volume."""
    program = command_of("FreeFem++-nw")
    # Debian has what reads Gmsh's files in a package that another only recommends.
    plugin = folder / "plugin.edp"
    plugin.write_text('load "gmsh"\n')
    if subprocess.run([program, plugin], capture_output=True, check=False).returncode:
        pytest.skip("FreeFem's plugin gmsh is not here: make clients says how to get it")
    script = folder / "look.edp"
    script.write_text(FREEFEM.format(path=path))
    printed = call(program, script, inside=folder)
    return re.findall(r"(cells|points|volume): +([\d.e+-]+)", printed)


def seen_by_openfoam(path: Path, folder: Path) -> list:
    """Points, cells and faces of the case that gmshToFoam makes."""
    (folder / "system").mkdir(exist_ok=True)
    (folder / "system" / "controlDict").write_text(CONTROL)
    call(command_of("gmshToFoam"), path, inside=folder)
    header = (folder / "constant" / "polyMesh" / "owner").read_text()[:2000]
    return re.findall(r"(n\w+): *(\d+)", header)


SEEN: dict[Callable[[Path, Path], list], tuple[str, ...]] = {
    seen_by_gmsh: FILES,
    seen_by_code_saturne: tuple(f for f in FILES if f.startswith(("box-", "two_boxes"))),
    seen_by_freefem: ("two_boxes-22-ascii.msh", "box-22-ascii.msh"),
    seen_by_openfoam: ("two_boxes-22-ascii.msh", "box-22-ascii.msh"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Meshes of Gmsh."""
    place = tmp_path_factory.mktemp("programs")
    run_driver("make_meshes", place)
    return place


@pytest.mark.parametrize("look", SEEN, ids=lambda look: look.__name__)
def test_a_program_counts_the_same_in_our_file(look, folder, tmp_path):
    for name in SEEN[look]:
        before = look(folder / name, tmp_path)
        output, _ = reordered(folder / name)
        assert before
        assert look(output, tmp_path) == before, name


def test_cgnscheck_finds_no_fault(folder, tmp_path):
    command = command_of("cgnscheck")
    for name in (
        "two_squares-41-ascii.msh",
        "two_boxes-41-ascii.msh",
        "half_quads-41-ascii.msh",
    ):
        output, _ = reordered(folder / name, ".cgns")
        printed = call(command, output, inside=tmp_path)
        assert "ERROR" not in printed, printed
