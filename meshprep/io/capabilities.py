"""Capabilities of file formats, as data."""

from dataclasses import dataclass

# The key of :attr:`meshprep.mesh.Mesh.extras` with the time of all values, by its text.
TIME = "time step"
# The attribute of values at a time step after the first, its number from 1.
STEP = "step"
# What MED files say of their fields: by name, the step and attributes of the field and of the step.
MED_FIELDS = "med:fields"
# Values of the whole mesh, by name.
FIELD_DATA = "field data"
# The name of the mesh in a MED file, and what the file says of it.
MED_MESH = "med:mesh"
# What VTU files say of their arrays, by place: roles (``Scalars``) and names of components.
VTU_ARRAYS = "vtu:arrays"
# Arrays that hold group numbers, under the names that formats and meshio give them.
_SAME = (
    *("su2:tag", "medit:ref", "nastran:ref", "cell_tags", "point_tags", "tetgen:ref", "ugrid:ref"),
    *("netgen:index", "avsucd:material", "obj:group_ids", "exodus:block", "abaqus:type"),
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
    """The name of the array that a tag is written as: the inverse of :func:`group_of_array`."""
    for array, tag in GROUP_ARRAYS.items():
        if tag == name:
            return array
    return f"{GROUP_PREFIX}{name}"


@dataclass(frozen=True)
class Values:
    """Values on nodes or cells that a format can carry."""

    kinds: str = "iuf"  # NumPy's letters of the kinds of number: ``i``, ``u``, ``f``
    # Components a row may have; empty for any number. One row is one axis of components.
    widths: tuple[int, ...] = ()
    name: str = r"[^\x00-\x1f]+"  # pattern that names must match
    # By dtype name: types that are widened, without a change of value, since the format lacks them.
    cast: tuple[tuple[str, str], ...] = ()
    lacks: tuple[str, ...] = ()  # dtype names that the format has no place for
    numbers: bool = False  # the numbers of the elements, from 1 to 2^31-1, whatever the kinds are


@dataclass(frozen=True)
class Capabilities:
    """What a format can carry."""

    cell_types: tuple[str, ...]  # cells of the highest dimension and below
    # Cells below the highest dimension: ``"any"`` or ``"facets"`` (one below).
    lower: str = "any"
    # The order in which types come back; empty where it is that of the file.
    type_order: tuple[str, ...] = ()
    node_values: Values | None = None
    cell_values: Values | None = None
    values_on: str = "all"  # which cells have values: ``"all"`` or ``"top"``
    step: str = ""  # the attribute by which values of one name are several, such as steps of time
    # The name of the one group number that a cell has, where there is only one, without a name of
    # its own in the file; ``"*"``: every tag, as arrays of integers; None: no groups.
    tag: str | None = None
    # Groups of another name become ``tag`` where there are none of that name.
    other_tags: bool = True
    node_tag: str | None = None  # the same for nodes
    tag_on: str = "all"  # which cells have group numbers: ``"all"`` or ``"facets"``
    group_names: bool = False
    lists: tuple[str, ...] = ()  # kinds of index lists (``attrs["kind"]``)
    plane: bool = False  # coordinates of two numbers a node stay so; elsewhere a zero is added
    extras: tuple[str, ...] = ()  # keys of :attr:`meshprep.mesh.Mesh.extras`
