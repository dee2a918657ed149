"""What a mesh or a plan holds, for ``meshprep info``."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import PlanError
from meshprep_runtime.plan import LoopPlan, Plan
from meshprep_runtime.plan.file.seal import is_parts, is_plan
from meshprep_runtime.plan.records import from_json, to_json, wrong_figures

from ..io.source import MeshSource
from ..mesh import Dat, Mesh, Tag
from ..mesh.geometry import bounding_box
from .matrices import matrix_record, store_records
from .parts import describe_parts, splits_table
from .table import Table, figure

# Groups without names that are listed one by one.
MOST_UNNAMED = 8


@dataclass(frozen=True)
class Description:
    """What a file holds, as JSON values under ``values``."""

    values: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return self.values

    def tables(self, *, full: bool = False) -> list[Table]:
        """A summary, then one table for every list of records.

        Tags of many groups without names, such as Gmsh's entities, have a line unless ``full``.
        """
        lists = {k: v for k, v in self.values.items() if isinstance(v, list) and v}
        parts = {k: v for k, v in lists.items() if isinstance(v[0], dict)}
        if "tags" in parts and not full:
            parts["tags"] = _summarised(parts["tags"])
        summary = [(k, _text(v)) for k, v in self.values.items() if k not in parts and v != []]
        header, *rows = summary
        return [Table("", header, rows), *(_table(name, found) for name, found in parts.items())]


def _table(name: str, records: list[dict[str, Any]]) -> Table:
    if name == "splits":
        return splits_table(records)
    return Table(name, tuple(records[0]), [tuple(map(_text, r.values())) for r in records])


def describe(source: MeshSource) -> Description:
    """Read a mesh, a plan or parts and say what is in it; names and first bytes tell which."""
    path = source.path
    name = "" if source.format else path.name.lower()
    if name.endswith(".plan.h5") or (name and is_plan(path)):
        plan = Plan.load(path)
        check_printable(plan, str(path))
        return Description({"file": str(path)} | _plan(plan))
    if name.endswith(".parts.h5") or (name and is_parts(path)):
        return Description({"file": str(path)} | describe_parts(path))
    return Description({"file": str(path)} | _mesh(source.read()))


def _mesh(mesh: Mesh) -> dict[str, Any]:
    return {
        "kind": "mesh",
        "hash": mesh.content_hash(),
        "box": _box(mesh.coordinates),
        "sets": [
            {"set": s.name, "elements": s.size, "cells": s.cell_type or " + ".join(s.parts)}
            for s in mesh.sets.values()
        ],
        "maps": [{"map": m.name, "arity": m.arity, "rows": m.size} for m in mesh.maps.values()],
        "data": [_dat(d) for d in mesh.dats],
        "tags": [record for t in mesh.tags for record in _tag(t)],
        "lists": [
            {"list": i.name, "points into": i.set, "entries": len(i.index)} for i in mesh.lists
        ],
    }


def _plan(plan: Plan) -> dict[str, Any]:
    return {
        "kind": "plan",
        "creator": plan.about.get("creator", ""),
        "created": plan.about.get("created", ""),
        "hash of the input": plan.source_hash,
        "hash in the plan's order": plan.mesh_hash,
        "sets": [{"set": name, "elements": size} for name, size in plan.sizes.items()],
        "maps": [
            {"map": m.name, "arity": m.arity, "rows": m.size, "to": m.to_set}
            for m in plan.maps.values()
        ],
        "loops": [record for p in plan.loops.values() for record in _loop(p)],
        "arguments": [
            {"loop": p.loop.name, "argument": a.name}
            | {"through": a.map or ("global" if a.is_global else "direct")}
            | {"access": str(a.access), "dim": a.dim, "dtype": a.dtype}
            for p in plan.loops.values()
            for a in p.loop.args
        ],
        # Numbers that the file gave are no groups.
        "tags": [
            record
            for on, tags in plan.tags.items()
            for name, values in tags.items()
            if name != "label"
            for names in [plan.group_names.get(on, {}).get(name, {})]
            for further in [plan.further_groups.get(on, {}).get(name, np.empty((0, 2), np.int64))]
            for groups in [np.concatenate([values[values != 0], further[:, 1]])]
            for record in _groups(name, on, *np.unique(groups, return_counts=True), names)
        ],
        "matrices": [matrix_record(plan, m) for m in plan.matrices.values()],
        "stores": [record for m in plan.matrices.values() for record in store_records(plan, m)],
    }


def _loop(plan: LoopPlan) -> list[dict[str, Any]]:
    return [
        {
            "loop": plan.loop.name,
            "variant": v.name,
            "over": plan.loop.over,
            "blocks": v.n_blocks,
            "block size": v.block_size,
            "block colours": v.n_block_colours,
            "partitioner": v.partitioner,
            "elements": "ranges" if v.elements is None else "lists",
        }
        for v in plan.variants.values()
    ]


def _tag(tag: Tag) -> list[dict[str, Any]]:
    """One record a group: how many elements are in it."""
    count = np.bincount(tag.values, minlength=tag.group_offset.size - 1)
    per_entry = np.repeat(count, np.diff(tag.group_offset))
    groups, row = np.unique(tag.group_id, return_inverse=True)
    total = np.bincount(row.reshape(-1), weights=per_entry, minlength=groups.size)
    return _groups(tag.name, tag.set, groups, total, tag.names)


def _groups(
    name: str, on: str, groups: NDArray, total: NDArray, names: Mapping[int, str]
) -> list[dict[str, Any]]:
    return [
        {"tag": name, "set": on, "group": g, "name": names.get(g, ""), "elements": int(n)}
        for g, n in zip(groups.tolist(), total, strict=True)
    ]


def _summarised(tags: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records, those of a tag on a set as one where they are many and none has a name."""
    out = []
    for (name, on), found in groupby(tags, key=lambda r: (r["tag"], r["set"])):
        records = list(found)
        if len(records) <= MOST_UNNAMED or any(r["name"] for r in records):
            out += records
            continue
        low, high = records[0]["group"], records[-1]["group"]
        elements = sum(r["elements"] for r in records)
        told = {"group": f"{low} to {high}", "name": f"{len(records)} groups (--full lists them)"}
        out.append({"tag": name, "set": on, **told, "elements": elements})
    return out


def _dat(dat: Dat) -> dict[str, Any]:
    shape = "x".join(map(str, dat.values.shape[1:])) or "1"
    return {
        "dat": dat.name,
        "set": dat.set,
        "components": shape,
        "dtype": str(dat.values.dtype),
        "rows": int(dat.values.shape[0]),
    }


def _box(xyz: NDArray[np.float64] | None) -> list[list[float]] | None:
    return [end.tolist() for end in bounding_box(xyz)] if xyz is not None and xyz.size else None


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " to ".join("(" + ", ".join(f"{v:.6g}" for v in p) + ")" for p in value)
    return figure(value)


def check_printable(plan: Plan, where: str) -> None:
    """Raise PlanError, with ``where``, unless metrics, about and options can be shown."""
    try:
        json.dumps([plan.about, plan.options, to_json(plan.metrics)], allow_nan=False)
        for name in ("creator", "created"):
            from_json(str, plan.about.get(name, ""), f"about/{name}")
        if not isinstance(plan.options.get("partition_options") or {}, Mapping):
            raise wrong_figures("options/partition_options is no JSON object")
    except PlanError as error:
        raise PlanError(f"{where}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise PlanError(f"{where}: {wrong_figures(str(error))}") from None
