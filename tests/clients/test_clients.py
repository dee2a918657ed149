"""Programs of others open what ``meshprep reorder`` writes, and see the cells in its order.

Each is asked by its driver in ``drivers/``, in an environment that ``make clients`` makes.
"""

import json
import os
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from client_programs import PACKAGES

import meshprep
from meshprep.io.source import MeshSource
from meshprep.mesh.cells import SHAPES, shape_of
from meshprep.pipeline.workflow import Job, run

pytestmark = pytest.mark.slow

DRIVERS = Path(__file__).parent / "drivers"
FOLDER = Path(__file__).parents[2] / "build" / "clients"
PYTHON = Path(os.environ.get("MESHPREP_CLIENTS", FOLDER)) / "bin" / "python"
IN_CI = "MESHPREP_REQUIRE_CLIENTS"

NAMES = ("two_squares", "half_quads", "box", "two_boxes", "box_of_second_order")
FILES = tuple(
    f"{name}-{version}-{encoding}.msh"
    for name in NAMES
    for version in ("22", "41")
    for encoding in ("ascii", "binary")
)
# Programs that read Gmsh's files. PyFR sorts cells by their curvature and takes no files in
# binary; scikit-fem has meshes of one type of cells.
READ_GMSH = (
    "gmsh",
    "meshio",
    "meshlane",
    "mfem",
    "ngsolve",
    "pyfr",
    "pyvista",
    "skfem",
    "sfepy",
)
OWN_ORDER = ("pyfr",)
# Gmsh makes entities of the numbers that cells have in other formats, which are groups there.
BY_REFERENCE = ("gmsh",)
# Endings of other formats, and who reads them.
READ_OTHERS = {
    ".vtu": ("meshio", "meshlane", "pyvista", "skfem"),
    ".vtk": ("meshio", "meshlane", "pyvista"),
    ".xdmf": ("meshio", "meshlane"),
    ".exo": ("meshio", "meshlane", "pyvista", "netcdf4"),
    ".cgns": ("pyvista",),
    ".med": ("meshio", "meshlane", "gmsh"),
    ".mesh": ("meshio", "meshlane", "gmsh", "skfem"),
    ".bdf": ("meshio", "meshlane", "gmsh", "pynastran"),
    ".inp": ("meshio", "meshlane"),
    ".su2": ("meshio", "meshlane"),
}
# The meshes of Gmsh that are written in these formats.
OF_OTHERS = ("two_squares-41-ascii", "two_boxes-41-ascii")


def run_driver(name: str, *arguments: object) -> str:
    """What a driver prints; skips where its program is not installed."""
    if not PYTHON.exists():
        skip("programs of others are not here: make clients")
    command = [str(PYTHON), str(DRIVERS / f"{name}.py"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last_line = done.stderr.strip().splitlines()[-1]
        if "ModuleNotFoundError" in last_line or "ImportError" in last_line:
            skip(f"{last_line}: programs of others are not here: make clients")
        raise AssertionError(done.stderr)
    return done.stdout


def skip(reason: str) -> None:
    """Leave a test out, but not where all programs are required."""
    if IN_CI in os.environ:
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """Meshes of Gmsh, and each as ``meshprep reorder`` writes it."""
    place = tmp_path_factory.mktemp("clients")
    run_driver("make_meshes", place)
    return place


@cache
def reordered(path: Path, ending: str = ".msh") -> tuple[Path, dict[str, np.ndarray]]:
    """The file that the main command writes, and the middle of each cell in the plan's order."""
    mesh = meshprep.read(path)
    output = path.parent / f"{path.stem}-reordered{ending}"
    plan = output.with_name(f"{output.name}.plan.h5")
    done = run(Job(MeshSource(path), output, plan, drop=True))
    middles = {}
    for cells in mesh.cell_sets:
        shape = shape_of(cells.cell_type)
        corners = mesh.cell_map(cells.name).table[:, : shape.n_corners]
        in_order = corners[done.ordering[cells.name].new_to_old]
        middles[shape.name] = mesh.coordinates[in_order].mean(axis=1)
    return output, middles


@cache
def seen_by(client: str, paths: tuple[Path, ...]) -> dict[Path, dict]:
    """What a program says of each file."""
    lines = run_driver(f"see_{client}", *paths).splitlines()
    return {Path(seen["file"]): seen for seen in map(json.loads, lines)}


def seen_in_other_formats(client: str, folder: Path) -> dict[Path, dict]:
    """What a program says of all that it reads, which takes one start of the program."""
    outputs = []
    for ending, readers in READ_OTHERS.items():
        if client not in readers:
            continue
        for name in OF_OTHERS:
            output, _ = reordered(folder / f"{name}.msh", ending)
            outputs.append(output)
    return seen_by(client, tuple(outputs))


def in_space(places: np.ndarray) -> np.ndarray:
    """Places with three coordinates, whatever the program keeps of them."""
    return np.pad(places, ((0, 0), (0, 3 - places.shape[1])))


def middles_of(seen: dict) -> dict[str, np.ndarray]:
    """The middle of each cell, in the order in which the program hands them out."""
    points = in_space(np.array(seen["points"]))
    return {
        shape: points[np.array(rows)].mean(axis=1) for shape, rows in seen["cells"].items()
    }


def check_cells(seen: dict, expected: dict[str, np.ndarray], own_order: bool) -> None:
    """The same cells, in the plan's order or in one of the program's own."""
    for shape, middles in middles_of(seen).items():
        wanted = in_space(expected[shape])
        if own_order:
            middles = np.array(sorted(middles.round(6).tolist()))
            wanted = np.array(sorted(wanted.round(6).tolist()))
        np.testing.assert_allclose(middles, wanted, atol=2e-6, err_msg=shape)


@pytest.mark.parametrize("client", READ_GMSH)
def test_who_opens_the_file_of_gmsh_opens_ours(client, folder):
    if client not in PACKAGES and IN_CI in os.environ:
        pytest.skip(f"{client} is built from its sources: make clients COMPILED=1")
    originals = [folder / name for name in FILES]
    ours = {path: reordered(path) for path in originals}
    paths = (*originals, *(output for output, _ in ours.values()))
    seen = seen_by(client, paths)
    opened = 0
    for original, (output, expected) in ours.items():
        before = seen[original]
        after = seen[output]
        # Nobody has to open what Gmsh itself wrote in vain.
        if "error" in before:
            continue
        opened += 1
        assert "error" not in after, f"{output.name}: {after['error']}"
        assert len(after["points"]) == len(before["points"])
        sizes_before = {shape: len(rows) for shape, rows in before["cells"].items()}
        sizes_after = {shape: len(rows) for shape, rows in after["cells"].items()}
        assert sizes_after == sizes_before
        check_cells(after, expected, own_order=client in OWN_ORDER)
    assert opened >= len(NAMES)


@pytest.mark.parametrize("ending", READ_OTHERS)
@pytest.mark.parametrize("name", OF_OTHERS)
def test_cells_of_other_formats_stand_in_the_plans_order(ending, name, folder):
    output, expected = reordered(folder / f"{name}.msh", ending)
    for client in READ_OTHERS[ending]:
        seen = seen_in_other_formats(client, folder)[output]
        assert "error" not in seen, f"{client}: {seen['error']}"
        if client in BY_REFERENCE:
            inner = max(SHAPES[shape].dim for shape in expected)
            seen["cells"] = {
                shape: rows
                for shape, rows in seen["cells"].items()
                if SHAPES[shape].dim == inner
            }
        assert seen["cells"]
        check_cells(seen, expected, own_order=False)


TWO_TRIANGLES = """# vtk DataFile Version 3.0
two triangles
ASCII
DATASET UNSTRUCTURED_GRID
POINTS 4 float
0 0 0
1 0 0
0 1 0
1 1 0
CELLS 2 8
3 0 1 2
3 1 3 2
CELL_TYPES 2
5
5
CELL_DATA 2
SCALARS material int
LOOKUP_TABLE default
1
2
"""


def test_mfem_opens_a_text_of_vtk_that_was_reordered(tmp_path):
    """It reads neither bytes nor newer versions."""
    original = tmp_path / "a.vtk"
    original.write_text(TWO_TRIANGLES)
    output, expected = reordered(original, ".vtk")
    (seen,) = seen_by("mfem", (output,)).values()
    assert "error" not in seen, seen["error"]
    check_cells(seen, expected, own_order=False)
