"""Reading and writing a million triangles and a million tets, against meshio, same format.

Bar: at least as fast as meshio.
"""

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
OTHERS = {"vtu": (".vtu", {}), "su2": (".su2", {}), "xdmf": (".xdmf", {"data_format": "XML"})}


def main() -> None:
    """Print and save the table."""
    rows = []
    for kind in ("delaunay2d", "delaunay3d"):
        mesh = _plain(mesh_of(kind, 1_000_000))
        with tempfile.TemporaryDirectory() as folder:
            for name, (ours, theirs) in GMSH.items():
                rows.append(_case(f"{kind} {name}", mesh, Path(folder, "a.msh"), ours, theirs))
            for name, (ending, theirs) in OTHERS.items():
                rows.append(_case(f"{kind} {name}", mesh, Path(folder, f"a{ending}"), {}, theirs))
    report("io", rows)


def _plain(mesh: Mesh) -> Mesh:
    """Nodes and cells of the highest dimension only: what every format can carry."""
    sets = [s for s in mesh.sets.values() if s.name in ("nodes", "cells")]
    dats = [d for d in mesh.dats if d.name == "coordinates"]
    return Mesh(sets, [mesh.map("cells->nodes")], dats)


def _case(name: str, mesh: Mesh, path: Path, ours: dict, theirs: dict) -> dict[str, object]:
    cell_type = str(mesh.sets["cells"].cell_type)
    other = meshio.Mesh(mesh.coordinates, [(cell_type, mesh.map("cells->nodes").table)])
    peer_path = path.with_name(f"peer-{path.name}")
    write = best(lambda: io.write(mesh, path, overwrite=True, check=False, drop=True, **ours), 2)
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
