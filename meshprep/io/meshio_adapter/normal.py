"""Where single formats keep less of names and sets than the table of capabilities can say."""

import re
from collections import Counter
from dataclasses import replace
from functools import partial

from ...mesh import Mesh
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


def normal(name: str, mesh: Mesh) -> tuple[Mesh, list[str]]:
    """The mesh as this format keeps it, of one that its capabilities let through; the losses."""
    lost: list[str] = []
    if name == "exodus":
        found, lost = blocks(mesh)
        mesh = replace(mesh, tags=(*(t for t in mesh.tags if t.set == "nodes"), *found))
    if name in ("med", "exodus"):
        tags = tuple(t if t.set == "nodes" else with_used_names(t) for t in mesh.tags)
        before, used = ({n for t in of for n in t.names.values()} for of in (mesh.tags, tags))
        lost += [f"the name '{n}' of a group without cells" for n in sorted(before - used)]
        mesh = without_counts(replace(mesh, tags=tags))
    if whole := mesh.extras.get(FIELD_DATA):
        # rows of numbers
        kept = {n: a for n, a in whole.items() if a.dtype.kind in "iuf" and a.ndim in (1, 2)}
        lost += [f"'{array}' of the {FIELD_DATA}" for array in sorted(whole.keys() - kept)]
        mesh = replace(mesh, extras={**mesh.extras, FIELD_DATA: kept})
    bad_names = _bad_group_names(name, mesh)
    lost += [f"the name '{group}' of a group" for group in sorted(bad_names)]
    kept_names = ({i: n for i, n in t.names.items() if n not in bad_names} for t in mesh.tags)
    tags = tuple(replace(t, names=n) for t, n in zip(mesh.tags, kept_names, strict=True))
    pattern = f"(?!.*[,=]){EXODUS_NAME}" if name == "exodus" else r"(?s:.*)"
    bad = {id(i): f"the list '{i.name}' of '{i.set}'" for i in bad_lists(mesh, pattern)}
    lists = tuple(i for i in mesh.lists if id(i) not in bad)
    return replace(mesh, tags=tags, lists=lists), [*lost, *bad.values()]


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
