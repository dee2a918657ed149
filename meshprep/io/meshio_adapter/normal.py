"""Where single formats keep less of names and sets than the table of capabilities can say."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from ...mesh import IndexList, Mesh, Tag
from ..reduce import bad_lists, with_used_names
from ..registry import FIELD_DATA, MED_MESH
from .exodus import NAME as EXODUS_NAME
from .exodus import blocks
from .incoming import BETWEEN, without_counts

# Names of groups that a format can write and read back.
_GROUP_NAMES = {
    "med": re.compile(r"(?! )[^\x00-\x1f\x7f-\x9f]+(?<!\s)"),
    "exodus": re.compile(EXODUS_NAME),
}
# Bytes of a name in a MED file.
_MED_BYTES = 80
# Formats whose writers give nodes and cells the numbers that they have, and that keep the names
# of groups that have cells.
_USED_ALONE = ("med", "exodus")


def _named(tag: Tag) -> Tag:
    return tag if tag.set == "nodes" else with_used_names(tag)


def own_losses(name: str, mesh: Mesh) -> list[str]:
    """What this format loses of a mesh that its capabilities let through."""
    lost = blocks(mesh)[1] if name == "exodus" else []
    lost += [f"'{array}' of the {FIELD_DATA}" for array in sorted(_bad_arrays(mesh))]
    if name in _USED_ALONE:
        used = {n for t in mesh.tags for n in _named(t).names.values()}
        unused = {n for t in mesh.tags for n in t.names.values()} - used
        lost += [f"the name '{n}' of a group without cells" for n in sorted(unused)]
    lost += [f"the name '{group}' of a group" for group in sorted(_bad_group_names(name, mesh))]
    return lost + [f"the list '{i.name}' of '{i.set}'" for i in _bad_lists(name, mesh)]


def normal(name: str, mesh: Mesh) -> Mesh:
    """The mesh without what :func:`own_losses` tells of."""
    if name == "exodus":
        on_nodes = (t for t in mesh.tags if t.set == "nodes")
        mesh = replace(mesh, tags=(*on_nodes, *blocks(mesh)[0]))
    if name in _USED_ALONE:
        mesh = without_counts(replace(mesh, tags=tuple(map(_named, mesh.tags))))
    if whole := mesh.extras.get(FIELD_DATA):
        kept = {key: array for key, array in whole.items() if key not in _bad_arrays(mesh)}
        mesh = replace(mesh, extras={**mesh.extras, FIELD_DATA: kept})
    bad_names = _bad_group_names(name, mesh)
    bad = {id(i) for i in _bad_lists(name, mesh)}
    kept_names = ({i: n for i, n in t.names.items() if n not in bad_names} for t in mesh.tags)
    tags = tuple(replace(t, names=n) for t, n in zip(mesh.tags, kept_names, strict=True))
    return replace(mesh, tags=tags, lists=tuple(i for i in mesh.lists if id(i) not in bad))


def _bad_lists(name: str, mesh: Mesh) -> Iterator[IndexList]:
    return bad_lists(mesh, f"(?!.*[,=]){EXODUS_NAME}" if name == "exodus" else r"(?s:.*)")


def _bad_arrays(mesh: Mesh) -> set[str]:
    """Values of the whole mesh that are no rows of numbers."""
    whole = mesh.extras.get(FIELD_DATA, {})
    return {name for name, a in whole.items() if a.dtype.kind not in "iuf" or a.ndim not in (1, 2)}


def _bad_group_names(name: str, mesh: Mesh) -> set[str]:
    """Names that do not fit, and names or numbers that stand for two things.

    A group of MED may be in several families, whose numbers these are.
    """
    if name not in _GROUP_NAMES:
        return set()
    fits = partial(_fits_med, mesh) if name == "med" else _GROUP_NAMES[name].fullmatch
    tags = [t for t in mesh.tags if t.set != "nodes"]
    pairs = {(i, n) for t in tags for i, n in t.names.items()}
    times = Counter(k for k, _ in pairs), Counter(n for _, n in pairs)
    shared = set() if name == "med" else {n for n, count in times[1].items() if count > 1}
    return {n for k, n in pairs if times[0][k] > 1 or n in shared or not fits(n)}


def _fits_med(mesh: Mesh, name: str) -> bool:
    """Whether MED can hold a name, which is of several groups where it comes from a MED file."""
    parts = name.split(BETWEEN) if MED_MESH in mesh.extras else [name]
    known = _GROUP_NAMES["med"]
    return all(
        known.fullmatch(p) and BETWEEN not in p and len(p.encode()) <= _MED_BYTES for p in parts
    )
