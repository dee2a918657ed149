"""Names under which a mesh in memory keeps what files say besides cells and values."""

# Values on nodes or cells of this name may be the numbers that a file gives them.
NUMBERS = "label"
# What stands between the names of several groups that MED gives a family.
BETWEEN = ", "
# The key of :attr:`meshprep.mesh.Mesh.extras` with the name of the format that the mesh was
# read from, where a file of it groups its cells.
ORIGIN = "format"
# The key of :attr:`meshprep.mesh.Mesh.extras` with the time of all values, by its text.
TIME = "time step"
# The attribute of values at a time step after the first, its number from 1.
STEP = "step"
# The attribute of values that a part of the mesh has, which is a grid of its own: its name.
GRID = "grid"
# The name of the mesh in an XDMF file, which programs ask for.
XDMF_GRID = "xdmf:grid"
# What MED files say of their fields: by name, the step and attributes of the field and of
# the step.
MED_FIELDS = "med:fields"
# Values of the whole mesh, by name.
FIELD_DATA = "field data"
# Values of the whole mesh at each time step, by name.
STEP_DATA = "global values"
# What an Exodus file says besides its mesh.
EXODUS_NOTES = "exodus:file"
# The name of the mesh in a MED file, and what the file says of it.
MED_MESH = "med:mesh"
# What VTK's files say of their arrays, by place: roles (``Scalars``) and names of
# components.
VTK_ARRAYS = "vtk:arrays"
# Tables of colours, by name: red, green, blue and opacity in each row.
LOOKUP_TABLES = "lookup tables"
# Arrays that hold group numbers, under the names that formats and meshio give them.
_SAME = (
    "su2:tag",
    "medit:ref",
    "nastran:ref",
    "cell_tags",
    "point_tags",
    "tetgen:ref",
    "ugrid:ref",
    "netgen:index",
    "avsucd:material",
    "obj:group_ids",
    "exodus:block",
    "abaqus:type",
)
GROUP_ARRAYS = {"gmsh:physical": "physical", "gmsh:geometrical": "entity"}
GROUP_ARRAYS |= {name: name for name in _SAME}
GROUP_PREFIX = "group:"


def group_of_array(name: str) -> str | None:
    """The tag that an array of integers of this name is, or None for plain values."""
    if name.startswith(GROUP_PREFIX):
        return name.removeprefix(GROUP_PREFIX)
    return GROUP_ARRAYS.get(name)


def array_of_group(name: str) -> str:
    """The array's name that a tag is written as: inverse of :func:`group_of_array`."""
    for array, tag in GROUP_ARRAYS.items():
        if tag == name:
            return array
    return f"{GROUP_PREFIX}{name}"
