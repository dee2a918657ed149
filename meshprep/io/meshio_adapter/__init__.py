"""Formats with blocks of cells: what each carries, and one way from and to our mesh for all.

``tests/io/test_formats.py`` repeats those experiments: every entry is either an exact round trip
or a loss with a name.
"""

from functools import partial
from pathlib import Path
from typing import Any

from ...mesh import Mesh
from .. import registry
from ..reduce import reduce
from ..registry import Capabilities, Format, Values
from .exodus import CELL_TYPES as EXODUS_TYPES
from .exodus import NAME as EXODUS_NAME
from .vtk import CELL_TYPES as _VTK

__all__ = ["FORMATS"]

LINEAR = ("vertex", "line", "triangle", "quad", "tetra", "pyramid", "wedge", "hexahedron")
_FLAT = ("line", "triangle", "quad")
_SOLID = ("tetra", "pyramid", "wedge", "hexahedron")
_XDMF_CAST = (
    *((name, "int64") for name in ("int8", "int16", "uint8", "uint16", "uint32")),
    ("float32", "float64"),
)
# The types of whole numbers that both VTK and meshio read.
_VTK_CAST = (
    *((name, "int64") for name in ("int8", "int16", "int32")),
    *((name, "uint64") for name in ("uint8", "uint16", "uint32")),
)
_VTK_VALUES = Values(widths=(1, 3, 4, 6, 9), cast=_VTK_CAST)
_EXODUS_VALUES = Values(
    kinds="f", widths=(1,), name=EXODUS_NAME, cast=(("float32", "float64"),), numbers=True
)
# Names of fields are those of groups in HDF5, where one or two dots stand for a place.
_MED_VALUES = Values(kinds="f", name=r"(?!\.{1,2}$)[^/\x00-\x1f]{1,64}", numbers=True)
_XDMF_VALUES = Values(widths=(1, 2, 3, 6, 9), cast=_XDMF_CAST)

# HDF5 gives the groups of a MED file in the order of their names: H20, HE8, P13, ..., TR6.
_MED_ORDER = (
    *("hexahedron20", "hexahedron", "pyramid13", "wedge15", "wedge", "vertex", "pyramid"),
    *("quad", "quad8", "line", "line3", "tetra10", "tetra", "triangle", "triangle6"),
)


def _read(name: str, path: Path) -> Mesh:
    from .harden import guarded
    from .incoming import convert

    with guarded(f"not a readable {name} file"):
        return convert(_module(name).read(path))


def _module(name: str) -> Any:
    """The module of a format."""
    from . import exodus, med, medit, nastran, vtk, vtu, xdmf

    known = (exodus, med, medit, nastran, vtk, vtu, xdmf)
    return next(module for module in known if module.__name__.endswith(f".{name}"))


def _read_alone(name: str, extensions: tuple[str, ...]) -> Format:
    """A format that is not written."""

    def read(path: Path) -> Mesh:
        from . import foreign
        from .harden import guarded
        from .incoming import convert

        with guarded(f"not a readable {name} file"):
            return convert(getattr(foreign, f"read_{name}")(path))

    return Format(name, extensions, read, None, lambda mesh, **_options: [])


def _reduced(name: str, capabilities: Capabilities, mesh: Mesh) -> tuple[Mesh, list[str]]:
    from .normal import normal

    kept, lost = reduce(mesh, capabilities)
    made, more = normal(name, kept)
    return made, lost + more


def _write(name: str, capabilities: Capabilities, mesh: Mesh, path: Path) -> None:
    from .harden import guarded
    from .outgoing import convert

    with guarded(f"format '{name}' could not be written"):
        made = convert(_reduced(name, capabilities, mesh)[0], capabilities)
        _module(name).write(path, made)


def _format(
    name: str, extensions: tuple[str, ...], capabilities: Capabilities, digits: int = 17
) -> Format:
    """A format that a module of this name reads and writes."""
    reduced = partial(_reduced, name, capabilities)
    return Format(
        name,
        extensions,
        partial(_read, name),
        partial(_write, name, capabilities),
        lambda mesh, **_options: reduced(mesh)[1],
        reduce=lambda mesh: reduced(mesh)[0],
        digits=digits,
        extras=capabilities.extras,
    )


_ALL = (
    _format(
        "vtu",
        (".vtu",),
        Capabilities(
            _VTK,
            node_values=Values(),
            cell_values=Values(),
            tag="*",
            node_tag="*",
            extras=(registry.VTU_ARRAYS, registry.FIELD_DATA),
        ),
    ),
    _format(
        "vtk",
        (".vtk",),
        Capabilities(_VTK, node_values=_VTK_VALUES, cell_values=_VTK_VALUES, tag="*", node_tag="*"),
    ),
    _format(
        "xdmf",
        (".xdmf", ".xmf"),
        Capabilities(
            (*_FLAT, *_SOLID),
            node_values=_XDMF_VALUES,
            cell_values=_XDMF_VALUES,
            tag="*",
            node_tag="*",
            plane=True,
        ),
    ),
    _format(
        "medit",
        (".mesh", ".meshb"),
        Capabilities(LINEAR[1:], tag="medit:ref", node_tag="medit:ref", plane=True),
    ),
    _format(
        "exodus",
        (".e", ".exo", ".ex2"),
        Capabilities(
            EXODUS_TYPES,
            node_values=_EXODUS_VALUES,
            cell_values=_EXODUS_VALUES,
            step=registry.STEP,
            tag="exodus:block",
            group_names=True,
            lists=("point_set", "side_set"),
            plane=True,
            extras=(registry.TIME,),
        ),
    ),
    _format(
        "nastran",
        (".bdf", ".fem", ".nas"),
        Capabilities(
            ("line", "triangle", "triangle6", "quad", "quad8", *_SOLID),
            tag="nastran:ref",
            node_tag="nastran:ref",
        ),
        digits=10,
    ),
    _format(
        "med",
        (".med",),
        Capabilities(
            (
                *("vertex", "line", "line3", "triangle", "triangle6", "quad", "quad8", *_SOLID),
                *("tetra10", "pyramid13", "wedge15", "hexahedron20"),
            ),
            type_order=_MED_ORDER,
            node_values=_MED_VALUES,
            cell_values=_MED_VALUES,
            tag="cell_tags",
            node_tag="point_tags",
            group_names=True,
            plane=True,
            extras=(registry.MED_FIELDS, registry.MED_MESH),
        ),
    ),
)

_ALONE = (
    _read_alone("ugrid", (".ugrid",)),
    _read_alone("tetgen", (".node", ".ele")),
    _read_alone("netgen", (".vol",)),
)

FORMATS: dict[str, Format] = {f.name: f for f in (*_ALL, *_ALONE)}
