"""Figures of a split: the halo table [R14 Table 10.2], bytes and messages of each loop."""

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import getitem
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.plan.parts.batch import Numbers, PartBatch
from meshprep_runtime.program.dat import EXEC, HALO
from meshprep_runtime.program.part_loop import wanted_lists
from meshprep_runtime.types.maps import distinct

Figures = dict[str, Any]
RUNS = ("owned", "core", "exec", "halo")


def batch_figures(batch: PartBatch) -> Figures:
    """The figures of some parts, a number for each in (k,) arrays.

    ``sets``: owned, core, exec and halo elements of each; ``neighbours``; ``loops``: bytes that a
    call receives where every dat has changed since, and from how many parts.
    """
    around = [
        f"sets/{name}/{way}_{kind}"
        for name in batch.sets
        for way in ("send", "receive")
        for kind in ("exec", "halo")
    ]
    return {
        "sets": {n: {run: getattr(s, run) for run in RUNS} for n, s in batch.sets.items()},
        "neighbours": _neighbours(batch, around),
        "loops": {name: _received(batch, name) for name in batch.loops},
    }


def _neighbours(batch: PartBatch, messages: Sequence[str]) -> Numbers:
    """Number of neighbours of each part by these messages."""
    found = [np.empty(0, np.int64)]
    for at in messages:
        part, other, _ = batch.neighbours(at)
        found.append(part * batch.count + other)
    pairs = distinct(np.concatenate(found))
    return np.bincount(pairs // batch.count, minlength=len(batch.parts))


def split_figures(batches: Sequence[Figures]) -> Figures:
    """The figures of all parts together: sums, means and the most of a part."""

    def column(*keys: str) -> NDArray[np.int64]:
        return np.concatenate([reduce(getitem, keys, one) for one in batches])

    names = batches[0]["sets"]
    runs = {run: np.array([column("sets", name, run) for name in names]) for run in RUNS}
    owned, neighbours = runs["owned"].sum(axis=0), column("neighbours")
    total = owned + (runs["exec"] + runs["halo"]).sum(axis=0)
    return {
        "parts": int(neighbours.size),
        "neighbours": round(float(neighbours.mean()), 2),
        "most neighbours": int(neighbours.max()),
        "elements": round(float(total.mean()), 1),
        "most elements": int(total.max()),
        "halo": round(float(1 - owned.sum() / max(1, total.sum())), 6),
        "sets": {
            name: {
                **{run: int(found[i].sum()) for run, found in runs.items()},
                "least owned": int(runs["owned"][i].min()),
                "most owned": int(runs["owned"][i].max()),
            }
            for i, name in enumerate(names)
        },
        "loops": {
            name: {
                "bytes": int(column("loops", name, "bytes").sum()),
                "most bytes": int(column("loops", name, "bytes").max()),
                "messages": int(column("loops", name, "messages").sum()),
            }
            for name in batches[0]["loops"]
        },
    }


def _received(batch: PartBatch, name: str) -> Figures:
    """Bytes and messages that a call receives if every dat that it reads has changed."""
    total, every = np.zeros(len(batch.parts), np.int64), []
    for messages, size in _needs(batch, name):
        every += messages
        for at in messages:
            total += size * batch.neighbours(at)[2]
    return {"bytes": total, "messages": _neighbours(batch, every)}


def _needs(batch: PartBatch, name: str) -> Iterator[tuple[list[str], int]]:
    """For each dat that a call receives the messages, and the bytes of an element."""
    loop, words = batch.loops[name], batch.description
    partial, increments = words["partial"], words["loops"][name]["increments"]
    again = bool(loop.conflict_columns) and increments == "exec"
    dats = {a.name: a for a in loop.args if not a.is_global}
    on = {n: loop.over if a.map is None else words["maps"][a.map][1] for n, a in dats.items()}
    for dat, lists in wanted_lists(loop, again, partial).items():
        places = {one: f"sets/{on[dat]}/receive_{one}" for one in (EXEC, HALO)}
        yield [places.get(one, f"partial/{one}/receive") for one in lists], dats[dat].nbytes
    if increments == "reverse":
        for dat in {a.name for a in loop.args if a.conflicts}:
            yield [f"sets/{on[dat]}/send_{kind}" for kind in (EXEC, HALO)], dats[dat].nbytes
