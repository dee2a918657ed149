"""Meshes for demonstrations, tests and benchmarks, each by a name and a few options."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from meshprep_runtime.errors import MeshprepError

from ...mesh import Mesh
from .airfoil import airfoil
from .box import box, delaunay2d, delaunay3d, mixed2d, mixed3d
from .op2 import op2_grid, op2_hdf5

__all__ = ["GENERATORS", "Generator", "generate"]


@dataclass(frozen=True)
class Generator:
    """A family of meshes: its function, what the function takes with defaults, and a line.

    ``forms`` gives the mesh another form for a file format of that name.
    """

    function: Callable[..., Mesh]
    options: Mapping[str, Any]
    description: str
    forms: Mapping[str, Callable[[Mesh], Mesh]] = field(default_factory=dict)


_RANDOM = {"shuffle": False, "seed": 0}

GENERATORS: dict[str, Generator] = {
    "delaunay2d": Generator(
        delaunay2d,
        {"cells": 100_000, "seed": 0, "shuffle": True},
        "unstructured triangles in a square, sides tagged",
    ),
    "delaunay3d": Generator(
        delaunay3d,
        {"cells": 100_000, "seed": 0, "shuffle": True},
        "unstructured tetrahedra in a cube, sides tagged",
    ),
    "box": Generator(
        box,
        {"nx": 32, "ny": 32, "nz": 32, "type": "hexahedron", **_RANDOM},
        "a square or cube of triangle, quad, tetra, hexahedron, wedge or pyramid",
    ),
    "mixed2d": Generator(
        mixed2d, {"nx": 64, "ny": 64, **_RANDOM}, "a square of quads and triangles"
    ),
    "mixed3d": Generator(
        mixed3d,
        {"nx": 16, "ny": 16, "nz": 16, **_RANDOM},
        "a cube of wedges, hexahedra, pyramids and tetrahedra",
    ),
    "airfoil": Generator(
        function=airfoil,
        options={"cells": 720_000, "i": 0, "j": 0, **_RANDOM},
        description=(
            "quads around NACA0012, wall and farfield tagged: OP2's benchmark "
            "(.dat, .h5: its files)"
        ),
        forms={"op2-grid": op2_grid, "op2": op2_hdf5},
    ),
}


def generate(name: str, **options: Any) -> Mesh:
    """Make the mesh ``name`` of ``GENERATORS``.

    Raises MeshprepError for unknown names, options and values, and for sizes out of range.

    ``options`` override the generator's defaults; text is converted to the type of the
    default.

    Returns
    -------
    Mesh
        Boundary cells below the others; all are in groups of the tag ``physical``, with
        names.
    """
    if name not in GENERATORS:
        raise MeshprepError(f"there is no mesh '{name}': choose {', '.join(GENERATORS)}")
    choices = GENERATORS[name].options
    unknown = sorted(set(options) - set(choices))
    if unknown:
        raise MeshprepError(
            f"mesh '{name}' has no option '{unknown[0]}': use {', '.join(choices)}"
        )
    given = {
        k: _convert(mesh=name, option=k, value=v, default=choices[k])
        for k, v in options.items()
    }
    return GENERATORS[name].function(**{**choices, **given})


def _convert(mesh: str, option: str, value: Any, default: Any) -> Any:
    """The value in the type of the default, from text too."""
    kind = type(default)
    text = str(value).strip()
    try:
        if kind is bool:
            converted = {"true": True, "false": False}[text.lower()]
        else:
            converted = kind(text)
        if kind is int and not 0 <= converted < 10**18:
            raise ValueError(text)
    except (KeyError, ValueError):
        if kind is bool:
            wanted = "true or false"
        else:
            wanted = "a whole number, 0 or more"
        raise MeshprepError(
            f"mesh '{mesh}': option '{option}' is {value!r}, must be {wanted}"
        ) from None
    return converted
