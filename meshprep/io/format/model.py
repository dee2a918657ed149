"""What a file format is: how files are read and written, and what one can carry."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.ordering import Ordering

from ...mesh import Mesh

# ``groups(mesh) -> {set name: (n,) numbers}``
Grouping = Callable[[Mesh], Mapping[str, NDArray[np.integer]]]


@dataclass(frozen=True, kw_only=True)
class Format:
    """A file format; its registration gives it its name."""

    name: str = ""  # what ``--format`` takes
    extensions: tuple[str, ...] = ()  # with the dot, lower case; the first is the usual one
    description: str = ""  # one line
    read: Callable[..., Mesh]  # ``read(path, **options) -> Mesh``
    # ``write(mesh, path, **options)``; writes what it can, in the order of the mesh, and
    # may assume that the caller asked ``losses`` first. None for formats that are only
    # read.
    write: Callable[..., None] | None
    # ``losses(mesh, **options) -> list of str``: what of this mesh is not written when
    # written with these options, in a few words each, empty when nothing is lost.
    losses: Callable[..., list[str]]
    # By option name: what ``write`` takes besides.
    options: Mapping[str, Any] = field(default_factory=dict)
    # ``reduce(mesh) -> Mesh``: what is left of the mesh when the losses are accepted,
    # exactly as reading the written file gives it. None where nothing beyond the losses
    # changes.
    reduce: Callable[[Mesh], Mesh] | None = None
    digits: int = 17  # significant decimal digits that coordinates keep; 17 means exactly
    # The file holds cells of known types; False where it holds sets and maps of any kind.
    cells: bool = True
    # Several cells may have the same nodes, as layers that add their stiffness; elsewhere a
    # cell that stands twice is an error of the file.
    overlaid: bool = False
    # Keys of :attr:`meshprep.mesh.Mesh.extras` that hold content and are written.
    extras: tuple[str, ...] = ()
    # By option name: what ``read`` takes besides.
    read_options: Mapping[str, Any] = field(default_factory=dict)
    # ``again(mesh) -> dict``: the options of ``read`` that give back this mesh once
    # written.
    again: Callable[[Mesh], dict[str, Any]] | None = None
    # ``order(mesh) -> {set name: Ordering}``: the order in which a file has the elements of
    # some sets, whatever that of the mesh. None where the order is that of the mesh.
    order: Callable[[Mesh], Mapping[str, Ordering]] | None = None
    # ``groups(mesh) -> {set name: (n,) numbers}``: the cells of each number stand together
    # in a file, in the order of these numbers, and readers hand them out so. None where a
    # file has the cells of a type in any order.
    groups: Grouping | None = None
    # ``folder(path) -> Path``: the folder that holds the mesh where that is no file, else
    # None.
    folder: Callable[[Path], Path | None] | None = None
    # ``breaks(mesh, sets) -> str``: which usual reader of this format cannot read the file
    # once these sets have values of whole numbers more, in words; empty where all can.
    breaks: Callable[[Mesh, Sequence[str]], str] | None = None
    # Errors of other kinds than MeshprepError that reading raises are told as damage of the
    # file, those of writing as what cannot be written.
    guarded: bool = False


@dataclass(frozen=True)
class Values:
    """Values on nodes or cells that a format can carry."""

    # NumPy's letters of the kinds of values: ``i``, ``u``, ``f`` for numbers, ``U`` for
    # texts.
    kinds: str = "iuf"
    # Components a row may have; empty for any number. One row is one axis of components.
    widths: tuple[int, ...] = ()
    name: str = r"[^\x00-\x1f]+"  # pattern that names must match
    # By dtype name: types that are widened, without a change of value, since the format
    # lacks them.
    cast: tuple[tuple[str, str], ...] = ()
    lacks: tuple[str, ...] = ()  # dtype names that the format has no place for
    # The largest number that an element can have, whatever the kinds are; 0: numbers are no
    # values.
    numbers: int = 0


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
    step: str = (
        ""  # the attribute by which values of one name are several, such as steps of time
    )
    # The attribute by which values are those of a part of the mesh alone, kept as they are.
    part: str = ""
    # The name of the one group number that a cell has, where there is only one, without a
    # name of its own in the file; ``"*"``: every tag, as arrays of integers; None: no
    # groups.
    tag: str | None = None
    # Groups of another name become ``tag`` where there are none of that name.
    other_tags: bool = True
    node_tag: str | None = None  # the same for nodes
    tag_on: str = "all"  # which cells have group numbers: ``"all"`` or ``"facets"``
    group_names: bool = False
    lists: tuple[str, ...] = ()  # kinds of index lists (``attrs["kind"]``)
    # Lists keep what stands beside their entries (``attrs["factors"]``,
    # ``attrs["values"]``).
    list_values: bool = False
    plane: bool = (
        False  # coordinates of two numbers a node stay so; elsewhere a zero is added
    )
    extras: tuple[str, ...] = ()  # keys of :attr:`meshprep.mesh.Mesh.extras`
