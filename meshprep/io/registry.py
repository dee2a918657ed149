"""The table of file formats: which module reads and writes each, and what each can hold."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meshprep_runtime.errors import MeshprepError, check_choice
from meshprep_runtime.types.ordering import Ordering

from ..mesh import Mesh


@dataclass(frozen=True)
class Format:
    """A file format."""

    name: str  # what ``--format`` takes
    extensions: tuple[str, ...]  # with the dot, lower case; the first is the usual one
    read: Callable[[Path], Mesh]  # ``read(path) -> Mesh``
    # ``write(mesh, path, **options)``; writes what it can, in the order of the mesh, and may assume
    # that the caller asked ``losses`` first. None for formats that are only read.
    write: Callable[..., None] | None
    # ``losses(mesh, **options) -> list of str``: what of this mesh the format cannot carry when
    # written with these options, in a few words each, empty when nothing is lost.
    losses: Callable[..., list[str]]
    # By option name: what ``write`` takes besides.
    options: Mapping[str, Any] = field(default_factory=dict)
    # ``reduce(mesh) -> Mesh``: what is left of the mesh when the losses are accepted, exactly as
    # reading the written file gives it. None where nothing beyond the losses changes.
    reduce: Callable[[Mesh], Mesh] | None = None
    digits: int = 17  # significant decimal digits that coordinates keep; 17 means exactly
    # The file holds cells of known types; False where it holds sets and maps of any kind.
    cells: bool = True
    # Keys of :attr:`meshprep.mesh.Mesh.extras` that hold content and are written.
    extras: tuple[str, ...] = ()
    # By option name: what ``read`` takes besides.
    read_options: Mapping[str, Any] = field(default_factory=dict)
    # ``again(mesh) -> dict``: the options of ``read`` that give back this mesh once written.
    again: Callable[[Mesh], dict[str, Any]] | None = None
    # ``order(mesh) -> {set name: Ordering}``: the order in which a file has the elements of some
    # sets, whatever that of the mesh. None where the order is that of the mesh.
    order: Callable[[Mesh], Mapping[str, Ordering]] | None = None
    # ``folder(path) -> Path``: the folder that holds the mesh where that is no file, else None.
    folder: Callable[[Path], Path | None] | None = None
    # ``breaks(mesh, sets) -> str``: which usual reader of this format cannot read the file once
    # these sets have values of whole numbers more, in words; empty where all can.
    breaks: Callable[[Mesh, Sequence[str]], str] | None = None


def find(
    formats: Mapping[str, Format], path: Path, name: str | None, *, writing: bool = False
) -> Format:
    """The format of that name, or of the longest ending that fits; else an error lists all."""
    if name is not None:
        check_choice("format", name, sorted(formats))
        return formats[name]
    endings = {e: f for f in formats.values() for e in f.extensions}
    found = [e for e in endings if path.name.lower().endswith(e)]
    if not found:
        how = "name the format" if writing else "name the format by --format (in Python format=)"
        known = " ".join(sorted(endings))
        raise MeshprepError(
            f"{path}: cannot tell the format from the name: use one of {known}, {how}, "
            "or leave others to  meshio convert"
        )
    return endings[max(found, key=len)]


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
