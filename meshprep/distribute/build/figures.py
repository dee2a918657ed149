"""Figures of a split: elements, ghosts, neighbours and messages of its parts."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import getitem
from typing import Any

import numpy as np

from meshprep_runtime.plan.parts.batch import Numbers, PartBatch
from meshprep_runtime.program.dat import EXEC, HALO
from meshprep_runtime.program.part_loop import wanted_lists
from meshprep_runtime.types.maps import Int64s, distinct

Figures = dict[str, Any]

RUNS = ("owned", "core", "exec", "halo")


def batch_figures(batch: PartBatch) -> Figures:
    """The figures of some parts, a number for each in (k,) arrays.

    ``sets``: owned, core, exec and halo elements of each set; ``neighbours``; ``loops``:
    bytes and messages that a call receives where every dat has changed.
    """
    messages = []
    figures_of_set = {}
    for name, set_batch in batch.sets.items():
        figures_of_set[name] = {run: getattr(set_batch, run) for run in RUNS}
        for kind in ("exec", "halo"):
            messages += [f"sets/{name}/send_{kind}", f"sets/{name}/receive_{kind}"]
    return {
        "sets": figures_of_set,
        "neighbours": _count_neighbours(batch, messages),
        "loops": {name: _received(batch, name) for name in batch.loops},
    }


def _count_neighbours(batch: PartBatch, messages: Sequence[str]) -> Numbers:
    """How many neighbours each part has by these messages, each counted once."""
    keys = [np.empty(0, np.int64)]
    for name in messages:
        part, other, _ = batch.neighbours(name)
        keys.append(part * batch.count + other)
    pairs = distinct(np.concatenate(keys))
    part_of_pair = pairs // batch.count
    return np.bincount(part_of_pair, minlength=len(batch.parts))


def split_figures(batches: Sequence[Figures]) -> Figures:
    """The figures of all parts together: sums, means and the most of a part."""

    def column(*keys: str) -> Int64s:
        """A figure of every part, by its keys in the figures of a batch."""
        return np.concatenate([reduce(getitem, keys, figures) for figures in batches])

    # By set and run: elements (parts,).
    sets: dict[str, dict[str, Int64s]] = {}
    for name in batches[0]["sets"]:
        sets[name] = {run: column("sets", name, run) for run in RUNS}
    # Over all sets: owned elements of every part, and with its ghosts.
    owned = np.sum([runs["owned"] for runs in sets.values()], axis=0)
    ghosts = np.sum([runs["exec"] + runs["halo"] for runs in sets.values()], axis=0)
    total = owned + ghosts
    share_of_owned = owned.sum() / max(1, total.sum())
    neighbours = column("neighbours")
    # Bytes and messages that a call of each loop receives, in all parts.
    loops = {}
    for name in batches[0]["loops"]:
        n_bytes = column("loops", name, "bytes")
        loops[name] = {
            "bytes": int(n_bytes.sum()),
            "most bytes": int(n_bytes.max()),
            "messages": int(column("loops", name, "messages").sum()),
        }
    return {
        "parts": int(neighbours.size),
        "neighbours": round(float(neighbours.mean()), 2),
        "most neighbours": int(neighbours.max()),
        "elements": round(float(total.mean()), 1),
        "most elements": int(total.max()),
        "halo": round(float(1 - share_of_owned), 6),
        "sets": {name: _figures_of_set(runs) for name, runs in sets.items()},
        "loops": loops,
    }


def _figures_of_set(runs: Mapping[str, Int64s]) -> Figures:
    """Elements of a set in each run over all parts, and the least and most owned."""
    figures = {run: int(elements.sum()) for run, elements in runs.items()}
    figures["least owned"] = int(runs["owned"].min())
    figures["most owned"] = int(runs["owned"].max())
    return figures


def _received(batch: PartBatch, name: str) -> Figures:
    """Bytes and messages that a call receives if every dat that it reads has changed."""
    n_bytes = np.zeros(len(batch.parts), np.int64)
    messages_of_loop = []
    for messages, bytes_of_element in _messages_of_dats(batch, name):
        messages_of_loop += messages
        for message in messages:
            n_bytes += bytes_of_element * batch.neighbours(message)[2]
    return {"bytes": n_bytes, "messages": _count_neighbours(batch, messages_of_loop)}


def _messages_of_dats(batch: PartBatch, name: str) -> Iterator[tuple[list[str], int]]:
    """For each dat that a call receives: the messages, and the bytes of an element."""
    loop = batch.loops[name]
    description = batch.description
    increments = description["loops"][name]["increments"]
    dats = {arg.name: arg for arg in loop.args if not arg.is_global}
    set_of_dat = {}
    for dat, arg in dats.items():
        to_set = loop.over
        if arg.map is not None:
            _, to_set, _ = description["maps"][arg.map]
        set_of_dat[dat] = to_set
    # Values that the loop reads come from their owners.
    executes_ghosts = bool(loop.conflict_columns) and increments == "exec"
    wanted = wanted_lists(loop, executes_ghosts, description["partial"])
    for dat, lists in wanted.items():
        messages = []
        for name_of_list in lists:
            if name_of_list in (EXEC, HALO):
                messages.append(f"sets/{set_of_dat[dat]}/receive_{name_of_list}")
            else:
                messages.append(f"partial/{name_of_list}/receive")
        yield messages, dats[dat].nbytes
    # Increments come back from the parts that values are sent to.
    if increments == "reverse":
        for dat in {arg.name for arg in loop.args if arg.conflicts}:
            messages = [f"sets/{set_of_dat[dat]}/send_{kind}" for kind in (EXEC, HALO)]
            yield messages, dats[dat].nbytes
