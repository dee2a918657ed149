"""A part as named arrays, and back: docs/plan-format.md, "Parts", in code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import MeshprepError, PlanError
from ...loops import Loop, loop_from_dict
from ...maps import SetMap, read_only
from ..model import LoopPlan, Staging, Variant
from ..schema import BLOCK_ARRAYS
from .model import ClassColours, LoopPart, MapPart, Messages, PartPlan, SetPart

Arrays = dict[str, NDArray[Any]]
COUNTS = ("owned_start", "core", "owned", "exec", "halo")
MESSAGES = ("send_exec", "send_halo", "receive_exec", "receive_halo")


def describe_parts(part: PartPlan) -> dict[str, Any]:
    """What all parts have in common, as JSON values."""
    return {
        "sets": {name: int(size) for name, size in part.sizes.items()},
        "maps": {m.name: [m.from_set, m.to_set, m.arity] for m in part.maps.values()},
        "loops": {name: _describe_loop(one) for name, one in part.loops.items()},
        "partial": list(part.partial),
    }


def _describe_loop(part: LoopPart) -> dict[str, Any]:
    words = ("block_size", "target", "partitioner")
    return {
        **part.plan.loop.to_dict(),
        "increments": part.increments,
        "default": part.plan.default,
        "variants": {
            name: {word: getattr(v, word) for word in words}
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
    return found


def _messages(at: str, messages: Messages, *, rows: bool) -> Arrays:
    found: Arrays = {f"{at}/parts": messages.parts, f"{at}/offset": messages.offset}
    return found | ({f"{at}/rows": messages.rows} if rows else {})


def _variant(at: str, variant: Variant, loop: LoopPart) -> Arrays:
    colours = loop.colours[variant.name]
    found: Arrays = {f"{at}/{name}": getattr(variant, name) for name in BLOCK_ARRAYS}
    found[f"{at}/classes"] = np.array([colours.core, colours.owned], np.int64)
    for name, staging in variant.staging.items():
        found[f"{at}/staging/{name}/point_offset"] = staging.point_offset
        found[f"{at}/staging/{name}/points"] = staging.points
        found[f"{at}/staging/{name}/exclusive"] = staging.exclusive.view(np.uint8)
    for name, local in variant.local.items():
        # flat, so that a part's columns are one slice
        found[f"{at}/local/{name}"] = local.reshape(-1)
    return found


def part_of(description: Mapping[str, Any], arrays: Arrays, part: int, parts: int) -> PartPlan:
    """The part that these arrays are; raises PlanError where one is missing or misshapen."""
    sets = {name: _set(arrays, f"sets/{name}") for name in description["sets"]}
    maps = {
        name: SetMap(name, start, to, _get(arrays, f"maps/{name}/table", "<i4", 2))
        for name, (start, to, _) in description["maps"].items()
    }
    loops = {
        name: _loop(arrays, name, words, sets, maps) for name, words in description["loops"].items()
    }
    partial = {
        name: MapPart(
            _read_messages(arrays, f"partial/{name}/send"),
            _read_messages(arrays, f"partial/{name}/receive"),
        )
        for name in description["partial"]
    }
    return PartPlan(part, parts, description["sets"], sets, maps, loops, partial)


def _get(arrays: Arrays, name: str, dtype: str, ndim: int = 1) -> NDArray[Any]:
    found = arrays.get(name)
    if found is None or found.dtype.str != dtype or found.ndim != ndim:
        raise PlanError(f"{name} is missing, or no {dtype} of {ndim} dimensions")
    # what was read from a file is so already
    return read_only(found) if found.flags.writeable else found


def _set(arrays: Arrays, at: str) -> SetPart:
    counts = [int(n) for n in _get(arrays, f"{at}/counts", "<i8")]
    if len(counts) != len(COUNTS) or min(counts) < 0:
        raise PlanError(f"{at}/counts is {counts}, must be {len(COUNTS)} numbers from 0")
    start, core, owned, n_exec, n_halo = counts
    ends = {"exec": (owned, owned + n_exec), "halo": (owned + n_exec, owned + n_exec + n_halo)}
    send = {k: _read_messages(arrays, f"{at}/{k}") for k in MESSAGES if k.startswith("send")}
    receive = {
        f"receive_{kind}": _read_messages(
            arrays, f"{at}/receive_{kind}", np.arange(*bounds, dtype=np.int32)
        )
        for kind, bounds in ends.items()
    }
    return SetPart(
        owned_start=start,
        core=core,
        owned=owned,
        exec=n_exec,
        halo=n_halo,
        copies=_get(arrays, f"{at}/copies", "<i8"),
        original=_get(arrays, f"{at}/original", "<i8"),
        **send,
        **receive,
    )


def _read_messages(arrays: Arrays, at: str, rows: NDArray[np.int32] | None = None) -> Messages:
    parts, offset = _get(arrays, f"{at}/parts", "<i4"), _get(arrays, f"{at}/offset", "<i8")
    return Messages(parts, offset, _get(arrays, f"{at}/rows", "<i4") if rows is None else rows)


def _loop(
    arrays: Arrays,
    name: str,
    words: Mapping[str, Any],
    sets: Mapping[str, SetPart],
    maps: Mapping[str, SetMap],
) -> LoopPart:
    try:
        loop = loop_from_dict(name, {"over": words["over"], "args": words["args"]}, f"loop {name}")
    except MeshprepError as error:
        raise PlanError(str(error)) from None
    over = sets[loop.over]
    n = over.executed if loop.conflict_columns and words["increments"] == "exec" else over.owned
    own = {m: SetMap(m, loop.over, maps[m].to_set, maps[m].table[:n]) for m in loop.maps}
    variants, colours = {}, {}
    for label, row in words["variants"].items():
        at = f"loops/{name}/{label}"
        variants[label] = _read_variant(arrays, at, label, row, own)
        core, owned = _get(arrays, f"{at}/classes", "<i8")
        colours[label] = ClassColours(int(core), int(owned))
    rows = {s: one.size for s, one in sets.items()}
    plan = LoopPlan(loop, rows | {loop.over: n}, own, variants, words["default"], rows=rows)
    return LoopPart(plan, colours, words["increments"])


def _read_variant(
    arrays: Arrays, at: str, name: str, words: Mapping[str, Any], maps: Mapping[str, SetMap]
) -> Variant:
    kinds = {k: t[0] for k, t in BLOCK_ARRAYS.items()}
    thread = arrays.get(f"{at}/thread_colour")
    if thread is not None and thread.dtype.str in BLOCK_ARRAYS["thread_colour"]:
        kinds["thread_colour"] = thread.dtype.str
    staging = {m.to_set: _staging(arrays, f"{at}/staging/{m.to_set}") for m in maps.values()}
    local = {
        m.name: _get(arrays, f"{at}/local/{m.name}", "<u2").reshape(m.arity, m.size)
        for m in maps.values()
    }
    return Variant(
        name=name,
        block_size=int(words["block_size"]),
        target=str(words["target"]),
        partitioner=str(words["partitioner"]),
        sorted_by_colour=False,
        staging=staging,
        local=local,
        **{k: _get(arrays, f"{at}/{k}", kind) for k, kind in kinds.items()},
    )


def _staging(arrays: Arrays, at: str) -> Staging:
    exclusive = _get(arrays, f"{at}/exclusive", "|u1")
    if exclusive.size and exclusive.max() > 1:
        raise PlanError(f"{at}/exclusive holds something else than 0 and 1")
    return Staging(
        _get(arrays, f"{at}/point_offset", "<i8"),
        _get(arrays, f"{at}/points", "<i4"),
        read_only(exclusive.view(np.bool_)),
    )


def loops_of(description: Mapping[str, Any]) -> dict[str, Loop]:
    """The loops that a description names."""
    return {
        name: loop_from_dict(name, {"over": words["over"], "args": words["args"]}, name)
        for name, words in description["loops"].items()
    }
