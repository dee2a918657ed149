"""What a mesh or a plan holds, for ``meshprep info``."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError, PlanError
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

        Tags of many groups without names, such as Gmsh's entities, have a line unless
        ``full``.
        """
        # Lists of records become tables; all else is the summary.
        records: dict[str, list[dict[str, Any]]] = {}
        summary = []
        for key, value in self.values.items():
            if isinstance(value, list) and value and isinstance(value[0], dict):
                records[key] = value
            elif value != []:
                summary.append((key, _text(value)))
        if "tags" in records and not full:
            records["tags"] = _summarised(records["tags"])
        header, *rows = summary
        tables = [_table(name, of_table) for name, of_table in records.items()]
        return [Table("", header, rows), *tables]


def _table(name: str, records: list[dict[str, Any]]) -> Table:
    """A table of records, whose keys are the header."""
    if name == "splits":
        return splits_table(records)
    rows = [tuple(map(_text, record.values())) for record in records]
    return Table(name, tuple(records[0]), rows)


def describe(source: MeshSource, *, order: bool = False) -> Description:
    """Read a mesh, a plan or parts and describe it.

    Where no format is named, the name and the first bytes of the file tell which it is.
    With ``order`` a better order of a mesh is looked for, and compared with its own.

    Raises MeshprepError for the ``order`` of a file that is no mesh.
    """
    path = source.path
    # A format that is asked for means a mesh; else the name or the content tells.
    name = "" if source.format else path.name.lower()
    plan_or_parts = name.endswith((".plan.h5", ".parts.h5"))
    if order and (plan_or_parts or (name and (is_plan(path) or is_parts(path)))):
        raise _no_mesh(str(path))
    if name.endswith(".plan.h5") or (name and is_plan(path)):
        plan = Plan.load(path)
        check_printable(plan, str(path))
        return Description({"file": str(path)} | _describe_plan(plan))
    if name.endswith(".parts.h5") or (name and is_parts(path)):
        return Description({"file": str(path)} | describe_parts(path))
    return Description({"file": str(path)} | _describe_mesh(source.read(), order))


def describe_object(given: Mesh | Plan, *, order: bool = False) -> Description:
    """Describe a mesh or a plan in memory; ``order`` as for :func:`describe`."""
    if isinstance(given, Mesh):
        return Description(_describe_mesh(given, order))
    if order:
        raise _no_mesh("this")
    return Description(_describe_plan(given))


def _no_mesh(name: str) -> MeshprepError:
    return MeshprepError(
        f"{name} is no mesh, so that no order is looked for: leave --order out"
    )


def _describe_mesh(mesh: Mesh, order: bool) -> dict[str, Any]:
    """The contents of a mesh, as JSON values."""
    # A set has a cell type, or parts that have one each.
    sets = []
    for s in mesh.sets.values():
        cells = s.cell_type or " + ".join(s.parts)
        sets.append({"set": s.name, "elements": s.size, "cells": cells})
    return {
        "kind": "mesh",
        "hash": mesh.content_hash(),
        "box": _box(mesh.coordinates),
        "sets": sets,
        "maps": [
            {"map": m.name, "arity": m.arity, "rows": m.size} for m in mesh.maps.values()
        ],
        "data": [_dat_record(dat) for dat in mesh.dats],
        "tags": list(chain.from_iterable(map(_records_of_tag, mesh.tags))),
        "lists": [
            {"list": i.name, "points into": i.set, "entries": len(i.index)}
            for i in mesh.lists
        ],
        "orders": _order_records(mesh) if order else [],
    }


def _order_records(mesh: Mesh) -> list[dict[str, Any]]:
    """The figures of the default loop's points, as they stand and in a better order."""
    # Imported here, since it loads the compiler.
    from ..pipeline.workflow import orders_of

    records = []
    for found in orders_of(mesh):
        for method, figures in (("as it is", found.before), (found.method, found.after)):
            records.append(
                {
                    "set": found.set,
                    "order": method,
                    "bandwidth": figures.bandwidth,
                    "profile": figures.profile,
                    "128-byte lines": figures.lines,
                }
            )
    return records


def _describe_plan(plan: Plan) -> dict[str, Any]:
    """The contents of a plan, as JSON values."""
    matrices = plan.matrices.values()
    loops = plan.loops.values()
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
        "loops": list(chain.from_iterable(map(_variant_records, loops))),
        "arguments": list(chain.from_iterable(map(_argument_records, loops))),
        "tags": _records_of_plan_tags(plan),
        "matrices": [matrix_record(plan, matrix) for matrix in matrices],
        "stores": list(chain.from_iterable(store_records(plan, m) for m in matrices)),
    }


def _argument_records(plan: LoopPlan) -> list[dict[str, Any]]:
    """One record an argument of a loop."""
    records = []
    for arg in plan.loop.args:
        # An argument without a map is read at the element, or is the same for all.
        through = arg.map
        if through is None:
            through = "global" if arg.is_global else "direct"
        records.append(
            {
                "loop": plan.loop.name,
                "argument": arg.name,
                "through": through,
                "access": str(arg.access),
                "dim": arg.dim,
                "dtype": arg.dtype,
            }
        )
    return records


def _records_of_plan_tags(plan: Plan) -> list[dict[str, Any]]:
    """One record a group of a plan: how many elements are in it."""
    records: list[dict[str, Any]] = []
    for on, tags in plan.tags.items():
        names_of_set = plan.group_names.get(on, {})
        further_of_set = plan.further_groups.get(on, {})
        for name, first in tags.items():
            # numbers that the file gave are no groups
            if name == "label":
                continue
            # Count the first groups, where 0 is none, and the further ones.
            further = further_of_set.get(name, np.empty((0, 2), np.int64))
            group_of_further = further[:, 1]
            entries = np.concatenate([first[first != 0], group_of_further])
            groups, total = np.unique(entries, return_counts=True)
            names = names_of_set.get(name, {})
            records += _group_records(
                name=name,
                on=on,
                groups=groups,
                total=total,
                names=names,
            )
    return records


def _variant_records(plan: LoopPlan) -> list[dict[str, Any]]:
    """One record a variant of a loop."""
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


def _records_of_tag(tag: Tag) -> list[dict[str, Any]]:
    """One record a group of a mesh: how many elements are in it."""
    # Elements of each entry of the table of groups, added up by group.
    count = np.bincount(tag.values, minlength=tag.group_offset.size - 1)
    per_entry = np.repeat(count, np.diff(tag.group_offset))
    groups, row = np.unique(tag.group_id, return_inverse=True)
    total = np.bincount(row.reshape(-1), weights=per_entry, minlength=groups.size)
    return _group_records(
        name=tag.name,
        on=tag.set,
        groups=groups,
        total=total,
        names=tag.names,
    )


def _group_records(
    name: str,
    on: str,
    groups: NDArray,
    total: NDArray,
    names: Mapping[int, str],
) -> list[dict[str, Any]]:
    """One record a group of a tag, from its number and its elements."""
    records = []
    for group, n_elements in zip(groups.tolist(), total, strict=True):
        records.append(
            {
                "tag": name,
                "set": on,
                "group": group,
                "name": names.get(group, ""),
                "elements": int(n_elements),
            }
        )
    return records


def _summarised(tags: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records of groups; the many groups of a tag without names are one record."""

    def tag_and_set(record: dict[str, Any]) -> tuple[str, str]:
        return record["tag"], record["set"]

    out = []
    for (name, on), group in groupby(tags, key=tag_and_set):
        # Few groups, and groups with names, say something one by one.
        records = list(group)
        if len(records) <= MOST_UNNAMED or any(r["name"] for r in records):
            out += records
            continue
        # Many numbers without names are told by their range.
        low = records[0]["group"]
        high = records[-1]["group"]
        out.append(
            {
                "tag": name,
                "set": on,
                "group": f"{low} to {high}",
                "name": f"{len(records)} groups (--full lists them)",
                "elements": sum(r["elements"] for r in records),
            }
        )
    return out


def _dat_record(dat: Dat) -> dict[str, Any]:
    """A dat as JSON values; ``3x3`` components are those of a tensor."""
    shape = "x".join(map(str, dat.values.shape[1:])) or "1"
    return {
        "dat": dat.name,
        "set": dat.set,
        "components": shape,
        "dtype": str(dat.values.dtype),
        "rows": int(dat.values.shape[0]),
    }


def _box(xyz: NDArray[np.float64] | None) -> list[list[float]] | None:
    """The lowest and the highest corner of the box around a mesh."""
    if xyz is not None and xyz.size:
        return [end.tolist() for end in bounding_box(xyz)]
    return None


def _text(value: Any) -> str:
    """A JSON value as a cell of a table."""
    if isinstance(value, list):
        # the corners of a box
        corners = []
        for corner in value:
            places = ", ".join(f"{x:.6g}" for x in corner)
            corners.append(f"({places})")
        return " to ".join(corners)
    return figure(value)


def check_printable(plan: Plan, where: str) -> None:
    """Raise PlanError, with ``where``, unless metrics, about and options can be shown."""
    try:
        # Files of others may hold anything: try before half a report is written.
        json.dumps([plan.about, plan.options, to_json(plan.metrics)], allow_nan=False)
        for name in ("creator", "created"):
            from_json(str, plan.about.get(name, ""), f"about/{name}")
        if not isinstance(plan.options.get("partition_options") or {}, Mapping):
            raise wrong_figures("options/partition_options is no JSON object")
    except PlanError as error:
        raise PlanError(f"{where}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise PlanError(f"{where}: {wrong_figures(str(error))}") from None
