"""Figures of a split: the halo table [R14 Table 10.2], bytes and messages of each loop."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from meshprep_runtime.loops import Access, Arg
from meshprep_runtime.plan.parts import LoopPart, Messages, PartPlan

Figures = dict[str, Any]


def part_figures(part: PartPlan) -> Figures:
    """The figures of one part.

    Returns
    -------
    dict
        ``sets``: owned, core, exec and halo elements of each; ``neighbours``; ``loops``: bytes that
        a call receives where every dat has changed since, and from how many parts.
    """
    sets = {
        name: {"owned": s.owned, "core": s.core, "exec": s.exec, "halo": s.halo}
        for name, s in part.sets.items()
    }
    around = [
        getattr(s, f"{way}_{kind}").parts
        for s in part.sets.values()
        for way in ("send", "receive")
        for kind in ("exec", "halo")
    ]
    return {
        "sets": sets,
        "neighbours": int(np.unique(np.concatenate(around)).size),
        "loops": {name: _received(part, loop) for name, loop in part.loops.items()},
    }


def split_figures(parts: Sequence[Figures]) -> Figures:
    """The figures of all parts together: sums, means and the most of a part."""
    names = parts[0]["sets"]
    owned, total = (
        np.array([sum(s[run] for s in p["sets"].values() for run in runs) for p in parts])
        for runs in (("owned",), ("owned", "exec", "halo"))
    )
    neighbours = np.array([p["neighbours"] for p in parts])
    return {
        "parts": len(parts),
        "neighbours": round(float(neighbours.mean()), 2),
        "most neighbours": int(neighbours.max()),
        "elements": round(float(total.mean()), 1),
        "most elements": int(total.max()),
        "halo": round(float(1 - owned.sum() / max(1, total.sum())), 6),
        "sets": {name: _set_figures([p["sets"][name] for p in parts]) for name in names},
        "loops": {
            name: _loop_figures([p["loops"][name] for p in parts]) for name in parts[0]["loops"]
        },
    }


def _set_figures(found: Sequence[Figures]) -> Figures:
    owned = [one["owned"] for one in found]
    sums = {run: sum(one[run] for one in found) for run in ("owned", "core", "exec", "halo")}
    return {**sums, "least owned": min(owned), "most owned": max(owned)}


def _loop_figures(found: Sequence[Figures]) -> Figures:
    return {
        "bytes": sum(one["bytes"] for one in found),
        "most bytes": max(one["bytes"] for one in found),
        "messages": sum(one["messages"] for one in found),
    }


def _received(part: PartPlan, loop: LoopPart) -> Figures:
    """What one call receives where every dat that it reads has changed."""
    parts, total = [np.empty(0, np.int32)], 0
    for _, lists, size in _needs(part, loop):
        parts += [one.parts for one in lists]
        total += size * sum(one.rows.size for one in lists)
    return {"bytes": total, "messages": int(np.unique(np.concatenate(parts)).size)}


def _needs(part: PartPlan, loop: LoopPart) -> Iterator[tuple[str, list[Messages], int]]:
    """Each dat that a call receives: its name, by which messages, and bytes of an element."""
    words = loop.plan.loop
    again = bool(words.conflict_columns) and loop.increments == "exec"
    reads: dict[tuple[str, str], list[Arg]] = {}
    for arg in words.args:
        if arg.is_global or arg.access not in (Access.READ, Access.RW):
            continue
        on = words.over if arg.map is None else part.maps[arg.map].to_set
        if arg.map is not None or again:
            reads.setdefault((arg.name, on), []).append(arg)
    for (name, on), args in reads.items():
        one, size = part.sets[on], max(a.nbytes for a in args)
        through = {a.map for a in args if a.map is not None}
        if not through:
            yield name, [one.receive_exec], size
        elif len(through) == 1 and (only := next(iter(through))) in part.partial:
            yield name, [part.partial[only].receive], size
        else:
            yield name, [one.receive_exec, one.receive_halo], size
    if loop.increments == "reverse":
        for arg in words.args:
            if arg.conflicts and arg.map is not None:
                one = part.sets[part.maps[arg.map].to_set]
                yield arg.name, [one.send_exec, one.send_halo], arg.nbytes
