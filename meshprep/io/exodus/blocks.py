"""The element blocks that the cells of a mesh get in an Exodus file, and their types."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...mesh import IndexList, Mesh, Tag
from ..cell_blocks.limits import (
    drop_group_names,
    drop_lists,
    drop_unused_group_names,
    unfit_group_names,
)
from ..format.names import EXODUS_NOTES
from ..format.reduce import bad_lists, without_counts
from .read import BLOCK, USUAL_TYPE, ExodusNotes

# Names that a file can hold: at most 255 bytes, and blanks at the ends mean nothing.
NAME = r"(?!\s)[^\x00-\x1f\x7f-\x9f]{1,63}(?<!\s)"


def limits(mesh: Mesh) -> tuple[Mesh, list[str]]:
    """The mesh with the blocks that a file gets, and names that fit; the losses."""
    block_tags, lost = blocks(mesh)
    mesh, lost_types = typed(mesh, block_tags)
    node_tags = [tag for tag in mesh.tags if tag.set == "nodes"]
    mesh = replace(mesh, tags=(*node_tags, *block_tags))

    mesh, lost_unused = drop_unused_group_names(mesh)
    mesh = without_counts(mesh)
    mesh, lost_names = drop_group_names(
        mesh, unfit_group_names(mesh, re.compile(NAME).fullmatch)
    )
    # commas and equals signs separate words in the commands of other programs
    mesh, lost_lists = drop_lists(mesh, bad_lists(mesh, f"(?!.*[,=]){NAME}"))
    return mesh, [*lost, *lost_types, *lost_unused, *lost_names, *lost_lists]


def blocks(mesh: Mesh) -> tuple[list[Tag], list[str]]:
    """The blocks that a file of this mesh gets, as tags, and what is lost, in words.

    An element block is a run of cells. So the groups of a set become blocks where the cells
    of each stand together; else the set is one block under a new number. O(cells).
    """
    # Keep the numbers of blocks that the file can have: positive, each of one run of
    # cells, and in no other set.
    block_tags = {
        cell_set.name: mesh.tag(BLOCK, cell_set.name) for cell_set in mesh.cell_sets
    }
    ids = {name: t.first_ids() for name, t in block_tags.items() if t is not None}
    tag_of_set: dict[str, Tag] = {}
    used_ids: set[int] = set()
    for name, values in ids.items():
        starts = values[starts_of_runs(values)]
        numbers = set(starts.tolist())
        if values.min() > 0 and len(numbers) == len(starts) and not numbers & used_ids:
            used_ids |= numbers
            tag_of_set[name] = block_tags[name]  # type: ignore[assignment]
    out = []
    for cell_set in mesh.cell_sets:
        # Number all other sets from 1, past the blocks that keep their numbers.
        free = next(i for i in range(1, len(used_ids) + 2) if i not in used_ids)
        used_ids |= set() if cell_set.name in tag_of_set else {free}
        out.append(
            tag_of_set.get(cell_set.name)
            or Tag.from_ids(BLOCK, cell_set.name, np.full(cell_set.size, free))
        )
    lost = [
        f"the blocks '{BLOCK}' of '{name}', whose cells the order mixes: the file gets one "
        "block"
        for name, values in ids.items()
        if name not in tag_of_set and values.any()
    ]
    # Leave the tags out where they repeat what the types say: one nameless block a type,
    # counted from 1, is also how a file without block numbers is read.
    plain = all(t.group_id.tolist() == [i] and not t.names for i, t in enumerate(out, 1))
    return ([] if plain else out), lost


def starts_of_runs(values: NDArray) -> NDArray[np.int64]:
    """Where runs of equal numbers start."""
    return np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))


def typed(mesh: Mesh, tags: Sequence[Tag]) -> tuple[Mesh, list[str]]:
    """The mesh with the types of the blocks of these tags in its notes, and what is lost.

    A block of several types of elements gets the usual one. Sides of its elements would
    have other numbers then: the side sets that name some are lost. O(cells log cells).
    """
    # Cells know their blocks of the file that was read, and the notes say the element
    # type of each: SHELL4 or QUAD4, for instance, which number their sides in different
    # ways.
    notes: ExodusNotes = mesh.extras.get(EXODUS_NOTES) or ExodusNotes()
    types: dict[int, str] = {}
    lost: list[str] = []
    mixed: set[str] = set()
    new_tags = {t.set: t for t in tags}
    for block_number, cell_set in enumerate(mesh.cell_sets, 1):
        if cell_set.name in new_tags:
            new = new_tags[cell_set.name].first_ids()
        else:
            new = np.full(cell_set.size, block_number)
        tag = mesh.tag(BLOCK, cell_set.name)
        if tag is None:
            old = new
        else:
            old = tag.first_ids()
        # Find the types that the elements of each new block had in their old ones.
        origins: dict[int, set[str]] = {}
        for number, origin in np.unique(np.column_stack([new, old]), axis=0).tolist():
            elem_type = notes.types.get(origin, USUAL_TYPE[str(cell_set.cell_type)])
            origins.setdefault(number, set()).add(elem_type)
        for number, type_name in origins.items():
            if len(type_name) == 1:
                types[number] = type_name.pop()
                continue
            mixed.add(cell_set.name)
            lost.append(
                f"the types {', '.join(sorted(type_name))} of elements of '{cell_set.name}'"
            )
    # Sides are numbered by the type of the element, which is another in mixed blocks.
    lists: list[IndexList] = []
    for index_list in mesh.lists:
        if index_list.set in mixed and index_list.attrs.get("kind") == "side_set":
            lost.append(
                f"the list '{index_list.name}' of '{index_list.set}', whose sides have "
                "other numbers"
            )
        else:
            lists.append(index_list)
    # A number that a block with elements took is no empty block any more.
    used_numbers = types.keys()
    empty = {
        number: name for number, name in notes.empty.items() if number not in used_numbers
    }
    new_notes = replace(notes, types=types, empty=empty)
    extras = {**mesh.extras, EXODUS_NOTES: new_notes}
    return replace(mesh, lists=tuple(lists), extras=extras), lost
