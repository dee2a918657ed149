"""A part as named arrays, and back: docs/plan-format.md, "Parts", in code."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import PlanError
from ...types.loops import Loop
from ...types.maps import SetMap, read_only
from ..file.schema import BLOCK_ARRAYS, RANGE_ARRAYS, RANGES, get_blocks, get_ranges, staging_arrays
from ..file.tree import Tree, loop_of
from ..model import LoopPlan, Variant
from ..ranges import ranges_for
from .model import ClassColours, LoopPart, MapPart, Messages, PartPlan, SetPart

Arrays = dict[str, NDArray[Any]]
# Of a variant.
WORDS = ("block_size", "target", "partitioner")
COUNTS = ("owned_start", "core", "owned", "exec", "halo")
# What has a row for each local element, and the rows of further groups: ``KIND/SET/NAME``.
VALUES, FURTHER = ("coordinates", "tags", "fields"), "further_groups"
MESSAGES = ("send_exec", "send_halo", "receive_exec", "receive_halo")


def describe_parts(part: PartPlan) -> dict[str, Any]:
    """What all parts have in common, as JSON values."""
    return {
        "sets": {name: int(size) for name, size in part.sizes.items()},
        "maps": {m.name: [m.from_set, m.to_set, m.arity] for m in part.maps.values()},
        "loops": {name: _describe_loop(one) for name, one in part.loops.items()},
        "partial": list(part.partial),
        "group_names": {
            name: {tag: {str(k): own for k, own in named.items()} for tag, named in tags.items()}
            for name, tags in part.group_names.items()
        },
    }


def _describe_loop(part: LoopPart) -> dict[str, Any]:
    return {
        **part.plan.loop.to_dict(),
        "increments": part.increments,
        "default": part.plan.default,
        "variants": {
            name: {word: getattr(v, word) for word in WORDS}
            for name, v in part.plan.variants.items()
        },
    }


def arrays_of(part: PartPlan) -> Arrays:
    """Every array of a part, by its place under ``/parts/K``."""
    found: Arrays = {}
    for name, one in part.sets.items():
        at = f"sets/{name}"
        found[f"{at}/counts"] = np.array([getattr(one, c) for c in COUNTS], np.int64)
        found[f"{at}/copies"], found[f"{at}/original"] = one.copies, one.original
        for kind in MESSAGES:
            # what is received stands one after the other
            rows = kind.startswith("send")
            found |= _messages(f"{at}/{kind}", getattr(one, kind), rows=rows)
    for m in part.maps.values():
        found[f"maps/{m.name}/table"] = m.table
    for name, partial in part.partial.items():
        for kind in ("send", "receive"):
            found |= _messages(f"partial/{name}/{kind}", getattr(partial, kind), rows=True)
    for name, loop in part.loops.items():
        for variant in loop.plan.variants.values():
            found |= _variant(f"loops/{name}/{variant.name}", variant, loop)
        found |= range_arrays(f"loops/{name}", loop.plan)
    found |= {f"coordinates/{name}": where for name, where in part.coordinates.items()}
    for kind in ("tags", "fields", FURTHER):
        for name, arrays in getattr(part, kind).items():
            found |= {f"{kind}/{name}/{label}": array for label, array in arrays.items()}
    return found


def range_arrays(at: str, plan: LoopPlan) -> Arrays:
    """The ranges of a loop, where it has them."""
    return {
        f"{at}/{RANGES}/{name}": getattr(plan.ranges, name)
        for name in RANGE_ARRAYS
        if plan.ranges is not None
    }


def _messages(at: str, messages: Messages, *, rows: bool) -> Arrays:
    found: Arrays = {f"{at}/parts": messages.parts, f"{at}/offset": messages.offset}
    return found | ({f"{at}/rows": messages.rows} if rows else {})


def _variant(at: str, variant: Variant, loop: LoopPart) -> Arrays:
    colours = loop.colours[variant.name]
    found: Arrays = {f"{at}/{name}": getattr(variant, name) for name in BLOCK_ARRAYS}
    found[f"{at}/classes"] = np.array([colours.core, colours.owned], np.int64)
    for name, staging in variant.staging.items():
        found |= {f"{at}/staging/{name}/{k}": a for k, a in staging_arrays(staging).items()}
    for name, local in variant.local.items():
        # flat, so that a part's columns are one slice
        found[f"{at}/local/{name}"] = local.reshape(-1)
    return found


def part_of(description: Mapping[str, Any], arrays: Arrays, part: int, parts: int) -> PartPlan:
    """The part that these arrays are; raises PlanError where one is missing or misshapen."""
    tree = Tree(datasets={**arrays})
    sets = {name: _set(tree, f"sets/{name}") for name in description["sets"]}
    maps = {
        name: SetMap(name, start, to, tree.array(f"maps/{name}/table", "<i4", ndim=2))
        for name, (start, to, _) in description["maps"].items()
    }
    loops = {
        name: _loop(tree, name, words, sets, maps) for name, words in description["loops"].items()
    }
    partial = {
        name: MapPart(
            _read_messages(tree, f"partial/{name}/send"),
            _read_messages(tree, f"partial/{name}/receive"),
        )
        for name in description["partial"]
    }
    return PartPlan(
        part,
        parts,
        description["sets"],
        sets,
        maps,
        loops,
        partial,
        {name: array for at, array in arrays.items() for name in _names(at, "coordinates")},
        **{kind: _by_set(arrays, kind) for kind in ("tags", "fields", FURTHER)},
        group_names={
            name: {tag: {int(k): own for k, own in named.items()} for tag, named in tags.items()}
            for name, tags in description.get("group_names", {}).items()
        },
    )


def _names(at: str, kind: str) -> list[str]:
    """The names after the kind of an array, none where it is of another."""
    first, *names = at.split("/")
    return names if first == kind else []


def _by_set(arrays: Arrays, kind: str) -> dict[str, Arrays]:
    found: dict[str, Arrays] = {}
    for at, array in arrays.items():
        if names := _names(at, kind):
            found.setdefault(names[0], {})[names[-1]] = read_only(array)
    return found


def _set(tree: Tree, at: str) -> SetPart:
    counts = [int(n) for n in tree.array(f"{at}/counts", "<i8")]
    if len(counts) != len(COUNTS) or min(counts) < 0:
        raise PlanError(f"{at}/counts is {counts}, must be {len(COUNTS)} numbers from 0")
    start, core, owned, n_exec, n_halo = counts
    ends = {"exec": (owned, owned + n_exec), "halo": (owned + n_exec, owned + n_exec + n_halo)}
    send = {k: _read_messages(tree, f"{at}/{k}") for k in MESSAGES if k.startswith("send")}
    receive = {
        f"receive_{kind}": _read_messages(
            tree, f"{at}/receive_{kind}", np.arange(*bounds, dtype=np.int32)
        )
        for kind, bounds in ends.items()
    }
    return SetPart(
        owned_start=start,
        core=core,
        owned=owned,
        exec=n_exec,
        halo=n_halo,
        copies=tree.array(f"{at}/copies", "<i8"),
        original=tree.array(f"{at}/original", "<i8"),
        **send,
        **receive,
    )


def _read_messages(tree: Tree, at: str, rows: NDArray[np.int32] | None = None) -> Messages:
    parts, offset = tree.array(f"{at}/parts", "<i4"), tree.array(f"{at}/offset", "<i8")
    return Messages(parts, offset, tree.array(f"{at}/rows", "<i4") if rows is None else rows)


def _loop(
    tree: Tree,
    name: str,
    words: Mapping[str, Any],
    sets: Mapping[str, SetPart],
    maps: Mapping[str, SetMap],
) -> LoopPart:
    loop = loop_of(name, words, f"loop {name}")
    over = sets[loop.over]
    n = over.executed if loop.conflict_columns and words["increments"] == "exec" else over.owned
    own = {m: SetMap(m, loop.over, maps[m].to_set, maps[m].table[:n]) for m in loop.maps}
    variants, colours = {}, {}
    for label, row in words["variants"].items():
        at = f"loops/{name}/{label}"
        # flat in the file, see :func:`_variant`
        local = {
            m.name: tree.array(f"{at}/local/{m.name}", "<u2").reshape(m.arity, m.size)
            for m in own.values()
        }
        given = {word: row[word] for word in WORDS} | get_blocks(tree, at, own)
        variants[label] = Variant(label, sorted_by_colour=False, local=local, **given)
        core, owned = tree.array(f"{at}/classes", "<i8")
        colours[label] = ClassColours(int(core), int(owned))
    rows = {s: one.size for s, one in sets.items()}
    plan = LoopPlan(loop, rows | {loop.over: n}, own, variants, words["default"], rows=rows)
    at = f"loops/{name}/{RANGES}"
    if f"{at}/offset" in tree.datasets:
        found = get_ranges(tree, at)
    else:
        # a file of before
        found = ranges_for(plan, (over.core, over.owned))
    return LoopPart(replace(plan, ranges=found), colours, words["increments"])


def loops_of(description: Mapping[str, Any]) -> dict[str, Loop]:
    """The loops that a description names."""
    return {name: loop_of(name, words, name) for name, words in description["loops"].items()}
