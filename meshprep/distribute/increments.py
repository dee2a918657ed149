"""Increments across parts: executed twice, or sent back, by counted bytes; figures of a split."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.parts.batch import Numbers, PartBatch
from meshprep_runtime.program.dat import EXEC, HALO
from meshprep_runtime.program.part_loop import wanted_lists
from meshprep_runtime.types.loops import Access, Arg, Loop
from meshprep_runtime.types.maps import Int32s, Int64s, SetMap, distinct

from .assign.inherit import Owners
from .halos import mark_foreign
from .ranks import ALONE, Ranks
from .subject import SplitSubject

WAYS = ("exec", "reverse", "auto")
# What a part's exchange of increments costs beside its bytes, as bytes of memory: 16 us under MPI
# between two ranks of one machine, and more with more neighbours (docs/research/ranks.md).
EXCHANGE = 1 << 17


@dataclass(frozen=True)
class IncrementCost:
    """Cost of a call beyond the owned elements, summed over all parts."""

    increments: str  # what is done: ``"exec"`` or ``"reverse"``
    why: str
    elements: int  # foreign elements that ``exec`` executes
    # Bytes that ``exec`` receives and that the foreign elements touch, all dats out of date.
    exec_bytes: int
    reverse_bytes: int  # bytes that ``reverse`` receives, and sends back, and adds up
    exchanges: int  # parts that send increments back with ``reverse``


def increment_cost(
    subject: SplitSubject, owners: Owners, loop: Loop, way: str, parts: int, ranks: Ranks = ALONE
) -> IncrementCost:
    """Count both ways and choose one.

    What another value than a sum is written to can only be executed. Raises MeshprepError where
    ``way``, one of :data:`WAYS`, is ``"reverse"`` and the loop writes otherwise than by increments.
    Owners below ``parts`` are counted; ``ranks`` count the other parts.
    """
    check_way(loop, way)
    border = _BorderElements.of(subject, owners, loop, parts)
    every = ranks.allgather((*border.executed(), *border.sent_back()))
    elements, executed, sent, exchanges = map(sum, zip(*every, strict=True))
    found, why = way, "asked for"
    if _only_executed(loop) or not loop.conflict_columns:
        found, why = "exec", "no increments of dats"
    elif way == "auto" and executed <= sent:
        found, why = "exec", "fewer bytes"
    elif way == "auto":
        saved = executed <= sent + EXCHANGE * exchanges
        found, why = ("exec", "saves messages") if saved else ("reverse", "fewer bytes")
    return IncrementCost(found, why, elements, executed, sent, exchanges)


def check_way(loop: Loop, way: str) -> None:
    """Raise MeshprepError where a loop writes what cannot be sent back, as asked for."""
    only_exec = _only_executed(loop)
    if way == "reverse" and only_exec:
        raise MeshprepError(
            f"loop '{loop.name}' writes '{only_exec[0]}' through a map otherwise than by "
            "increments of a dat, which cannot be sent back: use exec or auto"
        )


def _only_executed(loop: Loop) -> list[str]:
    """The arguments that a loop writes through a map otherwise than by increments of a dat."""
    return [
        a.name
        for a in loop.args
        if a.conflicts and (a.access is not Access.INC or a.columns is not None)
    ]


@dataclass(frozen=True, eq=False)
class _BorderElements:
    """Elements of a loop that reach another part, and the owners of what they reach."""

    loop: Loop
    rows: Int64s
    owner: Int32s
    maps: dict[str, SetMap]
    reached: dict[str, Int32s]
    parts: int

    @classmethod
    def of(cls, subject: SplitSubject, owners: Owners, loop: Loop, parts: int) -> "_BorderElements":
        owner = owners[loop.over]
        maps = {name: subject.maps[name] for name in loop.maps}
        crosses = np.zeros(owner.size, np.bool_)
        for m in maps.values():
            mark_foreign(m.table, owner, owners[m.to_set], crosses)
        rows = np.flatnonzero(crosses)
        reached = {name: owners[m.to_set][m.table[rows]] for name, m in maps.items()}
        return cls(loop, rows, owner[rows], maps, reached, parts)

    def executed(self) -> tuple[int, int]:
        part, row = self._executing()
        work = sum(_touched(a) * max(1, len(a.index)) for a in self.loop.args if not a.is_global)
        direct = sum(a.nbytes for a in self.loop.args if _is_read(a) and a.map is None)
        counted = self._counted_rows()
        reads = self._read_bytes(
            np.concatenate([self.owner[counted], part]), np.concatenate([counted, row])
        )
        return part.size, part.size * (work + direct) + reads

    def sent_back(self) -> tuple[int, int]:
        """Bytes that are moved, and parts that send some back."""
        counted = self._counted_rows()
        part = self.owner[counted]
        reads = self._read_bytes(part, counted)
        written = (a for a in self.loop.args if a.conflicts)
        # sent, and added to what is there
        back = self._copied_bytes(part, counted, written)
        parts = [
            part[self.reached[name][counted, column] != part]
            for name, columns in self.loop.conflict_columns.items()
            for column in columns
        ]
        return reads + 2 * back, distinct(np.concatenate([part[:0], *parts])).size

    def _counted_rows(self) -> Int64s:
        """Border elements that a counted part owns."""
        return np.flatnonzero(self.owner < self.parts)

    def _executing(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Distinct pairs (part, foreign row that it executes)."""
        keys = [np.empty(0, np.int64)]
        for name, columns in self.loop.conflict_columns.items():
            for column in columns:
                part = self.reached[name][:, column]
                row = np.flatnonzero((part != self.owner) & (part < self.parts))
                keys.append(part[row] * np.int64(self.rows.size) + row)
        part, row = np.divmod(distinct(np.concatenate(keys)), max(1, self.rows.size))
        return part, row

    def _read_bytes(self, part: NDArray[np.integer], row: Int64s) -> int:
        return self._copied_bytes(part, row, (a for a in self.loop.args if _is_read(a)))

    def _copied_bytes(self, part: NDArray[np.integer], row: Int64s, args: Iterable[Arg]) -> int:
        """Bytes of the distinct foreign points that these rows reach in these arguments."""
        total = 0
        dats: dict[tuple[str, str], dict[str, set[int]]] = {}
        size: dict[tuple[str, str], int] = {}
        for a in args:
            if a.map is not None:
                key = (a.name, self.maps[a.map].to_set)
                dats.setdefault(key, {}).setdefault(a.map, set()).update(a.index)
                size[key] = max(size.get(key, 0), a.nbytes)
        for key, columns in dats.items():
            keys = [np.empty(0, np.int64)]
            for name, index in columns.items():
                for column in sorted(index):
                    points = self.maps[name].table[self.rows[row], column].astype(np.int64)
                    foreign = self.reached[name][row, column] != part
                    keys.append((part.astype(np.int64) << 32 | points)[foreign])
            total += distinct(np.concatenate(keys)).size * size[key]
        return total


def _is_read(arg: Arg) -> bool:
    return not arg.is_global and arg.access in (Access.READ, Access.RW)


def _touched(arg: Arg) -> int:
    """Bytes that an element moves for an argument: once where it reads or writes, else twice."""
    return arg.nbytes * (1 if arg.access in (Access.READ, Access.WRITE) else 2)


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

    def column(*keys: str) -> Int64s:
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
