"""What VTK's files say of their arrays: roles, names of components, notes.

``FileMesh.arrays`` has it by place (``PointData``, ``CellData``, ...) and name of the
array; under the empty name stands which array has which role, in the words of VTU files.
"""

from dataclasses import dataclass

from ..cell_blocks.file_mesh import FileMesh

FIELDS = "FieldData"
# A place, and the name of its only array.
POINTS = "Points"
# The title of a legacy file, and how it is laid out, among its notes.
TITLE = "title"
LAYOUT = "layout"
# The keyword that an array of a legacy file has, and the table of its colours.
KEYWORD = "keyword"
TABLE = "table"
_COMPONENT = "ComponentName"
# The role of arrays under each keyword of legacy files.
ROLES = {
    "SCALARS": "Scalars",
    "COLOR_SCALARS": "Scalars",
    "VECTORS": "Vectors",
    "NORMALS": "Normals",
    "TENSORS": "Tensors",
    "TENSORS6": "Tensors",
    "TEXTURE_COORDINATES": "TCoords",
    "GLOBAL_IDS": "GlobalIds",
    "PEDIGREE_IDS": "PedigreeIds",
    "EDGE_FLAGS": "EdgeFlag",
}


@dataclass(frozen=True)
class LegacyLayout:
    """How a legacy file is laid out; without one, what is written has these."""

    version: str = "5.1"
    text: bool = False
    # The type that a text has its coordinates in.
    points: str = "double"

    @property
    def counts(self) -> bool:
        """Whether each cell has its number of nodes before it, as up to version 4."""
        return self.version < "5"


def notes_on(mesh: FileMesh, place: str, name: str) -> dict[str, str]:
    """The notes on an array, to be added to."""
    found: dict[str, str] = mesh.arrays.setdefault(place, {}).setdefault(name, {})
    return found


def component(i: int) -> str:
    """The key under which the name of a component, counted from 0, stands."""
    return f"{_COMPONENT}{i}"


def is_component(key: str) -> bool:
    """Whether this is the name of a component."""
    return key.startswith(_COMPONENT)


def is_computed(note: str) -> bool:
    """Whether VTK makes this note itself, of the values."""
    return note.endswith("_RANGE")
