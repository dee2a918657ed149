"""Names that reader and writer share, and what a mesh says about the file it came from."""

from collections.abc import Mapping
from typing import Any

from meshprep_runtime.errors import MeshprepError

from ...mesh import Mesh

VERSIONS = ("2.2", "4.1")
# Sections that hold no number of a node or element: carried as they are.
KEPT_SECTIONS = ("Comments", "InterpolationScheme", "Parametrizations")
# Those of them that are text in every mode and the same in every version.
PORTABLE_SECTIONS = ("Comments", "InterpolationScheme")
ENTITY_DIM, ENTITY_TAG = "gmsh:entity_dim", "gmsh:entity_tag"
PERIODIC = "gmsh:periodic"
# Names that mean something else on a mesh: values of such a name carry it in this attribute.
RESERVED = ("label", "coordinates")
# How the string tag begins that says which dtype and shape values had.
MARK = "meshprep "
# The string tag of a section whose values are the groups of its elements.
GROUPS = "groups"
NAME, SECTION, STRINGS, REALS, INTEGERS, COPY = (
    f"gmsh:{what}" for what in ("name", "section", "strings", "reals", "integers", "copy")
)
ATTRIBUTES = (NAME, SECTION, STRINGS, REALS, INTEGERS, COPY)


def source(mesh: Mesh) -> Mapping[str, Any]:
    """What the Gmsh reader left in the extras; empty for a mesh from elsewhere."""
    found = mesh.extras.get("gmsh")
    return found if isinstance(found, Mapping) else {}


def target(mesh: Mesh, version: str | None, binary: bool | None) -> tuple[str, bool]:
    """Version and mode to write: as asked, else as in the file that the mesh came from."""
    info = source(mesh)
    version = str(info.get("version", "4.1")) if version is None else str(version)
    if version not in VERSIONS:
        raise MeshprepError(f"MSH version '{version}' is unknown: use {' or '.join(VERSIONS)}")
    return version, bool(info.get("binary", True)) if binary is None else bool(binary)
