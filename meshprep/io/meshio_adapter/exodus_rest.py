"""What of an Exodus II file is not read, in words."""

import re
from typing import Any

import numpy as np

from meshprep_runtime.errors import MeshprepError

# Variables that are read, and those that hold nothing of the mesh.
_READ = re.compile(
    r"coord[xyz]?|connect\d+|(eb|ns)_(prop1|names|status)|node_ns\d+|(node|elem)_num_map"
    r"|name_(nod|elem)_var|vals_nod_var\d*|vals_elem_var\d+eb\d+|time_whole"
    r"|elem_var_tab|coor_names|(qa|info)_records"
)
_POLYHEDRA = re.compile(r"facconn\d+")
# What several variables hold together.
_TOGETHER = {
    "attributes of elements": re.compile(r"attrib.*"),
    "global values": re.compile(r"(name|vals)_glo_var"),
    "edge blocks": re.compile(r"ebconn\d+|eattrb.*|ed_\w+|(name|vals)_edge_var.*|edge_var_tab"),
    "face blocks": re.compile(r"fbconn\d+|fbepecnt\d+|fattrb.*|fa_\w+|(name|vals)_face_var.*"),
}
_SIDES = re.compile(r"(elem|side|dist_fact)_ss\d+|ss_\w+|(name|vals)_sset_var.*|sset_var_tab")


def left_out(file: Any) -> list[str]:
    """What of a file is not read; variables that nobody knows by their names.

    Raises MeshprepError for polyhedra, without which it would be another mesh.
    """
    names = [name for name in file.variables if not _READ.fullmatch(name)]
    if any(map(_POLYHEDRA.fullmatch, names)):
        raise MeshprepError("holds polyhedra, which are not supported: split them into tetrahedra")
    steps = len(file.dimensions["time_step"]) if "time_step" in file.dimensions else 0
    out = [f"time steps 2 to {steps}"] if steps > 1 else []
    sides = sum(bool(re.fullmatch(r"elem_ss\d+", name)) for name in names)
    out += [f"{sides} side sets"] if sides else []
    out += [text for text, one in _TOGETHER.items() if any(map(one.fullmatch, names))]
    known = [_SIDES, *_TOGETHER.values()]
    rest = [name for name in names if not any(p.fullmatch(name) for p in known)]
    return out + [f"'{name}'" for name in rest if not _is_default(name, file)]


def _is_default(name: str, file: Any) -> bool:
    """Whether a variable holds what it would without being there."""
    values = np.asarray(file[name][:])
    if re.fullmatch(r"dist_fact_ns\d+", name):
        return bool((values == 1).all())
    if name in ("elem_map", "node_map"):
        return np.array_equal(values.ravel(), np.arange(1, values.size + 1))
    return values.size == 0
