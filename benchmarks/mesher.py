"""Meshes of a real mesher, Gmsh (extra ``bench``), kept under build/ once they are made."""

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import CACHE

from meshprep_runtime.errors import MeshprepError

# Elements of the mesh that tells which size gives the wanted number.
TRIAL = 20_000
FAR_FIELD = 15.0
HOLES = ((0.3, 0.3, 0.3, 0.18), (0.72, 0.66, 0.4, 0.15), (0.35, 0.7, 0.75, 0.2))


def airfoil(gmsh: Any, size: float) -> int:
    """Triangles around a NACA 0012 in a far field, finest at the airfoil; returns the dimension."""
    geo = gmsh.model.geo
    upper = [_naca(i / 60) for i in range(61)]
    around = [(x, y) for x, y in upper] + [(x, -y) for x, y in upper[-2:0:-1]]
    points = [geo.addPoint(x, y, 0.0, size) for x, y in around]
    wall = [geo.addSpline(points[:61]), geo.addSpline([*points[60:], points[0]])]
    centre = geo.addPoint(0.5, 0.0, 0.0)
    angles = [0.5 * math.pi * k for k in range(4)]
    rim = [
        geo.addPoint(0.5 + FAR_FIELD * math.cos(a), FAR_FIELD * math.sin(a), 0.0, 40 * size)
        for a in angles
    ]
    far = [geo.addCircleArc(rim[k], centre, rim[(k + 1) % 4]) for k in range(4)]
    geo.addPlaneSurface([geo.addCurveLoop(far), geo.addCurveLoop(wall)])
    geo.synchronize()
    return 2


def box_with_holes(gmsh: Any, size: float) -> int:
    """Tetrahedra in a unit cube less three balls; returns the dimension."""
    occ = gmsh.model.occ
    cube = occ.addBox(0, 0, 0, 1, 1, 1)
    balls = [(3, occ.addSphere(*hole)) for hole in HOLES]
    occ.cut([(3, cube)], balls)
    occ.synchronize()
    gmsh.option.setNumber("Mesh.MeshSizeMax", size)
    gmsh.option.setNumber("Mesh.MeshSizeMin", 0.5 * size)
    gmsh.option.setNumber("Mesh.MeshSizeFromCurvature", 0)
    return 3


def ball(gmsh: Any, size: float) -> int:
    """Triangles on the surface of a ball of radius 1; returns the dimension."""
    gmsh.model.occ.addSphere(0, 0, 0, 1)
    gmsh.model.occ.synchronize()
    gmsh.option.setNumber("Mesh.MeshSizeMax", size)
    gmsh.option.setNumber("Mesh.MeshSizeFromCurvature", 0)
    return 2


def skin_of_box(gmsh: Any, size: float) -> int:
    """Triangles on all surfaces of the box with holes; returns the dimension."""
    box_with_holes(gmsh, size)
    return 2


SHAPES: dict[str, tuple[Callable[[Any, float], int], float]] = {
    "airfoil-triangles": (airfoil, 0.02),
    "holes-tetrahedra": (box_with_holes, 0.07),
    "ball-triangles": (ball, 0.04),
    "skin-triangles": (skin_of_box, 0.03),
}


def mesher_file(shape: str, cells: int) -> Path:
    """The binary Gmsh file of about ``cells`` triangles or tetrahedra.

    Raises MeshprepError, naming the extra, where the file is not there and Gmsh is not either.
    """
    path = CACHE / f"gmsh-{shape}-{cells}.msh"
    if path.exists():
        return path
    try:
        import gmsh
    except (ImportError, OSError) as error:
        raise MeshprepError(
            f"benchmark mesh '{shape}' needs gmsh ({error}): pip install 'meshprep[bench]'"
        ) from None
    CACHE.mkdir(parents=True, exist_ok=True)
    build, size = SHAPES[shape]
    dimension, count = _mesh(gmsh, build, size, None)
    size *= (count / TRIAL) ** (1 / dimension)
    _, count = _mesh(gmsh, build, size, None)
    _mesh(gmsh, build, size * (count / cells) ** (1 / dimension), path)
    return path


def _mesh(
    gmsh: Any, build: Callable[[Any, float], int], size: float, path: Path | None
) -> tuple[int, int]:
    """Mesh a shape, and write it where a path is given; returns dimension and elements."""
    gmsh.initialize(interruptible=False)
    gmsh.option.setNumber("General.Terminal", 0)
    gmsh.model.add("shape")
    dimension = build(gmsh, size)
    gmsh.model.mesh.generate(dimension)
    count = sum(len(tags) for tags in gmsh.model.mesh.getElements(dimension)[1])
    if path is not None:
        gmsh.option.setNumber("Mesh.Binary", 1)
        partial = path.with_suffix(".part.msh")
        gmsh.write(str(partial))
        partial.rename(path)
    gmsh.finalize()
    return dimension, count


def _naca(s: float) -> tuple[float, float]:
    """A point of the upper side, from the leading edge at 0 to the closed trailing edge at 1."""
    x = 0.5 * (1 - math.cos(math.pi * s))
    powers = (
        0.2969 * math.sqrt(x) - 0.1260 * x - 0.3516 * x**2 + 0.2843 * x**3 - 0.1036 * x**4
    )
    return x, 0.6 * powers


if __name__ == "__main__":
    print(mesher_file(sys.argv[1], int(sys.argv[2])))
