"""Reading and writing a million triangles and a million tets, against meshio, same format.

Bar: at least as fast as meshio. Where OpenFOAM is installed, a case beside renumberMesh, too.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import meshio
from common import best, mesh_of, report

from meshprep import io
from meshprep.mesh import Mesh

GMSH = {
    "gmsh 4.1 binary": ({"version": "4.1", "binary": True}, {"file_format": "gmsh"}),
    "gmsh 4.1 ascii": (
        {"version": "4.1", "binary": False},
        {"file_format": "gmsh", "binary": False},
    ),
    "gmsh 2.2 binary": ({"version": "2.2", "binary": True}, {"file_format": "gmsh22"}),
    "gmsh 2.2 ascii": (
        {"version": "2.2", "binary": False},
        {"file_format": "gmsh22", "binary": False},
    ),
}
# Ending and what makes meshio write the same: XDMF as one file.
OTHERS = {
    "vtu": (".vtu", {}),
    "su2": (".su2", {}),
    "xdmf": (".xdmf", {"data_format": "XML"}),
}


def main() -> None:
    """Print and save the table."""
    rows = []
    for kind in ("delaunay2d", "delaunay3d"):
        mesh = _plain(mesh_of(kind, 1_000_000))
        with tempfile.TemporaryDirectory() as folder:
            for name, (ours, theirs) in GMSH.items():
                rows.append(
                    _case(f"{kind} {name}", mesh, Path(folder, "a.msh"), ours, theirs)
                )
            for name, (ending, theirs) in OTHERS.items():
                rows.append(
                    _case(f"{kind} {name}", mesh, Path(folder, f"a{ending}"), {}, theirs)
                )
    report("io", rows)
    if shutil.which("renumberMesh") is not None:
        report("io-openfoam", [_openfoam(form) for form in ("ascii", "binary")])


BOX = """scale 1; vertices ((0 0 0)(1 0 0)(1 1 0)(0 1 0)(0 0 1)(1 0 1)(1 1 1)(0 1 1));
blocks (hex (0 1 2 3 4 5 6 7) (74 74 74) simpleGrading (1 1 1)); edges (); boundary (walls
{ type wall; faces ((0 3 2 1)(4 5 6 7)(1 5 4 0)(3 7 6 2)(0 4 7 3)(2 6 5 1)); }); mergePatchPairs ();
"""
CONTROL = """startFrom startTime; startTime 0; stopAt endTime; endTime 1; deltaT 1;
writeControl timeStep; writeInterval 1; writeFormat {};"""
EMPTY = "FoamFile {{ version 2.0; format ascii; class dictionary; object {}; }}\n"
NUMERICS = "".join(
    f"{kind}Schemes {{ default none; }} " for kind in ("grad", "div", "laplacian", "snGrad")
)


def _openfoam(form: str) -> dict[str, object]:
    """Processor seconds of an order alone and of ``renumberMesh -overwrite``, by turns."""
    with tempfile.TemporaryDirectory() as folder:
        case = Path(folder, "case")
        (case / "system").mkdir(parents=True)
        files = {
            "blockMeshDict": BOX,
            "controlDict": CONTROL.format(form),
            "fvSolution": "",
        }
        for name, text in (files | {"fvSchemes": NUMERICS}).items():
            (case / "system" / name).write_text(EMPTY.format(name) + text)
        _processor_seconds(case, "blockMesh", "-case", str(case))
        ours = [sys.executable, "-m", "meshprep_cli", "reorder", str(case), "-q", "--force"]
        ours += ["--target", "cpu", "--order-only"]
        found: tuple[list[float], list[float]] = [], []
        for _ in range(4):
            copy = shutil.copytree(case, Path(folder, "copy"), dirs_exist_ok=True)
            found[0].append(_processor_seconds(case, *ours))
            found[1].append(
                _processor_seconds(copy, "renumberMesh", "-overwrite", "-case", copy)
            )
        read = best(lambda: io.read(case), 2)
    one, other = min(found[0]), min(found[1])
    row = {
        "405,224 cells, format": form,
        "read s": read,
        "meshprep --order-only, processor s": one,
    }
    return row | {"renumberMesh": other, "times faster": other / one}


def _processor_seconds(case: Path, *command: object) -> float:
    etc = Path("/usr/share/openfoam")
    more = {"WM_PROJECT_DIR": str(etc)} if etc.is_dir() else {}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [*map(str, command)],
        check=True,
        env={**os.environ, **more},
        stdout=subprocess.DEVNULL,
        cwd=case,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _plain(mesh: Mesh) -> Mesh:
    """Nodes and cells of the highest dimension only: what every format can carry."""
    sets = [s for s in mesh.sets.values() if s.name in ("nodes", "cells")]
    dats = [d for d in mesh.dats if d.name == "coordinates"]
    return Mesh(sets, [mesh.map("cells->nodes")], dats)


def _case(name: str, mesh: Mesh, path: Path, ours: dict, theirs: dict) -> dict[str, object]:
    cell_type = str(mesh.sets["cells"].cell_type)
    other = meshio.Mesh(mesh.coordinates, [(cell_type, mesh.map("cells->nodes").table)])
    peer_path = path.with_name(f"peer-{path.name}")
    write = best(
        lambda: io.write(mesh, path, overwrite=True, check=False, drop=True, **ours), 2
    )
    try:
        peer_write = best(lambda: meshio.write(peer_path, other, **theirs), 2)
    except TypeError:  # meshio's SU2 writer fails on its own cell blocks
        peer_write, peer_path = None, path
    read = best(lambda: io.read(peer_path), 2)
    peer_read = best(lambda: meshio.read(peer_path), 2)
    return {
        "mesh, format": name,
        "write s": write,
        "meshio": peer_write,
        "write times faster": peer_write / write if peer_write else None,
        "read s": read,
        "meshio ": peer_read,
        "read times faster": peer_read / read,
    }


if __name__ == "__main__":
    main()
