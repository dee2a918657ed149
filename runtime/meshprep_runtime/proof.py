"""The proof of one variant: blocks, staging lists, local maps, and no race between any two writers.

Independent of the code that builds plans: keys, sorting and counting only. Every check assumes
what :mod:`structure` has checked, so that indices are safe.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .plan import LoopPlan, Staging, Variant

# Elements that are sorted at a time: half the time of sorting everything at once.
PART = 1 << 15


@dataclass(frozen=True, eq=False)
class Case:
    """A variant under proof; ``block`` is the block of every element."""

    loop_plan: LoopPlan
    variant: Variant
    block: NDArray[np.int64]

    @property
    def where(self) -> str:
        """How findings begin."""
        return f"loop '{self.loop_plan.loop.name}', variant '{self.variant.name}'"

    def columns(self, to_set: str, *, written: bool = False) -> list[NDArray[np.int32]]:
        """Columns of the loop's maps into a set; only those written through when ``written``."""
        loop, out = self.loop_plan.loop, []
        for name in loop.maps:
            m = self.loop_plan.maps[name]
            chosen = loop.conflict_columns.get(name, ()) if written else range(m.arity)
            if m.to_set == to_set:
                out += [m.table[:, k] for k in chosen]
        return out

    def parts(self) -> Iterator[slice]:
        """Ranges of elements, whole blocks, short enough to be sorted in cache; at least one."""
        offset, start = self.variant.block_offset, 0
        while True:
            stop = int(np.searchsorted(offset, offset[start] + PART, side="right")) - 1
            stop = min(max(stop, start + 1), self.variant.n_blocks)
            yield slice(int(offset[start]), int(offset[stop]))
            if stop == self.variant.n_blocks:
                return
            start = stop

    def distinct(self, to_set: str, *, written: bool = False) -> NDArray[np.int64]:
        """``block * n_to + point`` of every point that a block touches (writes), ascending."""
        n_to, columns = self.loop_plan.sizes[to_set], self.columns(to_set, written=written)
        found = []
        for part in self.parts():
            base = self.block[part] * n_to
            keys = np.sort(np.concatenate([base + c[part] for c in columns]))
            new = np.ones(keys.size, dtype=np.bool_)
            np.not_equal(keys[1:], keys[:-1], out=new[1:])
            found.append(keys[new])
        return np.concatenate(found)


def prove(loop_plan: LoopPlan, variant: Variant) -> list[str]:
    """Findings about one variant, empty when it is right.

    Parameters
    ----------
    loop_plan : LoopPlan
    variant : Variant
        One that passed :func:`structure.check_variant`.

    Returns
    -------
    list of str
        One line a broken property, naming the first place and how many more there are.

    Notes
    -----
    O(a log a) for ``a`` accesses of the loop, by sorting; 12 bytes of memory an access or so.
    """
    lengths = np.diff(variant.block_offset)
    block = np.repeat(np.arange(variant.n_blocks, dtype=np.int64), lengths)
    case = Case(loop_plan, variant, block)
    findings = [*_blocks(case, lengths), *_block_order(case)]
    if not findings:
        findings += _thread_colours(case, lengths)
    # Later keys need dense blocks and colours.
    if findings:
        return findings
    to_sets = dict.fromkeys(loop_plan.maps[m].to_set for m in loop_plan.loop.maps)
    for to_set in to_sets:
        findings += _staging(case, to_set)
        findings += _thread_races(case, to_set)
        findings += _block_races(case, to_set)
    for name in loop_plan.loop.maps:
        findings += _local(case, name)
    return findings


def _blocks(case: Case, lengths: NDArray[np.int64]) -> Iterator[str]:
    cap = case.variant.block_size
    large, empty = lengths > cap, lengths == 0
    if large.any():
        b = int(np.argmax(large))
        yield f"{case.where}: block {b} has {lengths[b]} elements, more than {cap}{_more(large)}"
    if empty.any():
        yield f"{case.where}: block {int(np.argmax(empty))} is empty{_more(empty)}"


def _block_order(case: Case) -> Iterator[str]:
    order, offset = case.variant.block_order, case.variant.block_colour_offset
    count = np.bincount(order, minlength=case.variant.n_blocks)
    if (count != 1).any():
        b = int(np.argmax(count != 1))
        yield f"{case.where}: block_order names block {b} {count[b]} times, not once"
        return
    falls = np.diff(order) < 0
    falls[offset[(offset > 0) & (offset < order.size)] - 1] = False
    if falls.any():
        at = int(np.argmax(falls)) + 1
        yield (
            f"{case.where}: block {order[at]} follows block {order[at - 1]} in its colour: "
            "blocks must ascend"
        )


def _thread_colours(case: Case, lengths: NDArray[np.int64]) -> Iterator[str]:
    colour, offset = case.variant.thread_colour, case.variant.block_offset
    if not colour.size:
        return
    needed = np.maximum.reduceat(colour, offset[:-1]).astype(np.int64) + 1
    wrong = case.variant.thread_colours != needed
    if wrong.any():
        b = int(np.argmax(wrong))
        yield (
            f"{case.where}: block {b} has thread colours 0..{needed[b] - 1}, but thread_colours "
            f"says {case.variant.thread_colours[b]}{_more(wrong)}"
        )
    many = needed > lengths
    if many.any():
        b = int(np.argmax(many))
        yield (
            f"{case.where}: block {b} has {needed[b]} thread colours for {lengths[b]} elements"
            f"{_more(many)}"
        )
    if case.variant.sorted_by_colour:
        falls = (colour[1:] < colour[:-1]) & (case.block[1:] == case.block[:-1])
        if falls.any():
            e = int(np.argmax(falls)) + 1
            yield (
                f"{case.where}: block {case.block[e]} is not sorted by thread colour at element "
                f"{e}{_more(falls)}"
            )


def _staging(case: Case, to_set: str) -> Iterator[str]:
    """The staging list is what the block touches, ascending, each point once."""
    staging, n_to = case.variant.staging[to_set], case.loop_plan.sizes[to_set]
    where = f"{case.where}, set '{to_set}'"
    staged = _staged_keys(staging, n_to)
    steps = np.diff(staged)
    if (steps <= 0).any():
        b = int(staged[int(np.argmax(steps <= 0)) + 1] // n_to)
        yield f"{where}: the staging list of block {b} does not ascend{_more(steps <= 0)}"
        return
    touched = case.distinct(to_set)
    if not np.array_equal(touched, staged):
        missing = np.setdiff1d(touched, staged, assume_unique=True)
        beyond = np.setdiff1d(staged, touched, assume_unique=True)
        for keys, what in ((missing, "lacks"), (beyond, "has superfluous")):
            if keys.size:
                b, point = divmod(int(keys[0]), n_to)
                more = f" ({keys.size - 1} more)" if keys.size > 1 else ""
                yield f"{where}: the staging list of block {b} {what} point {point}{more}"
        return
    alone = np.bincount(staging.points, minlength=n_to)[staging.points] == 1
    wrong = alone != staging.exclusive
    if wrong.any():
        at = int(np.argmax(wrong))
        word = "exclusive" if staging.exclusive[at] else "not exclusive"
        yield (
            f"{where}: point {staging.points[at]} is marked {word} in block "
            f"{int(staged[at] // n_to)}, which is wrong{_more(wrong)}"
        )


def _local(case: Case, name: str) -> Iterator[str]:
    """The staging list at the local index is the map."""
    m = case.loop_plan.maps[name]
    staging, local = case.variant.staging[m.to_set], case.variant.local[name]
    start = staging.point_offset[case.block]
    for column in range(m.arity):
        found = staging.points[start + local[column]]
        wrong = found != m.table[:, column]
        if wrong.any():
            e = int(np.argmax(wrong))
            yield (
                f"{case.where}: local map '{name}' takes element {e} of block {case.block[e]}, "
                f"column {column} to point {found[e]}, the map to {m.table[e, column]}"
                f"{_more(wrong)}"
            )


def _thread_races(case: Case, to_set: str) -> Iterator[str]:
    """No two elements of one thread colour in a block write one point."""
    n_to, columns = case.loop_plan.sizes[to_set], case.columns(to_set, written=True)
    if not columns:
        return
    first = np.cumsum(case.variant.thread_colours, dtype=np.int64) - case.variant.thread_colours
    group = first[case.block] + case.variant.thread_colour
    found = [
        _repeated(_once_a_row([c[part] for c in columns], group[part] * n_to))
        for part in case.parts()
    ]
    repeated = np.concatenate(found)
    if not repeated.size:
        return
    g, point = divmod(int(repeated[0]), n_to)
    touching = np.logical_or.reduce([c == point for c in columns])
    e1, e2 = np.flatnonzero(touching & (group == g))[:2]
    more = f" ({repeated.size - 1} more)" if repeated.size > 1 else ""
    yield (
        f"{case.where}, set '{to_set}': elements {e1} and {e2} of block {case.block[e1]} have "
        f"thread colour {case.variant.thread_colour[e1]} and both write point {point}{more}"
    )


def _block_races(case: Case, to_set: str) -> Iterator[str]:
    """No two blocks of one colour write one point."""
    n_to, variant = case.loop_plan.sizes[to_set], case.variant
    if not case.columns(to_set, written=True):
        return
    colour = np.empty(variant.n_blocks, dtype=np.int64)
    sizes = np.diff(variant.block_colour_offset)
    colour[variant.block_order] = np.repeat(np.arange(variant.n_block_colours), sizes)
    block, point = np.divmod(case.distinct(to_set, written=True), n_to)
    repeated = _repeated([colour[block] * n_to + point])
    if not repeated.size:
        return
    c, p = divmod(int(repeated[0]), n_to)
    b1, b2 = block[(point == p) & (colour[block] == c)][:2]
    more = f" ({repeated.size - 1} more)" if repeated.size > 1 else ""
    yield (
        f"{case.where}, set '{to_set}': blocks {b1} and {b2} have block colour {c} and both "
        f"write point {p}{more}"
    )


def _staged_keys(staging: Staging, n_to: int) -> NDArray[np.int64]:
    counts = np.diff(staging.point_offset)
    block = np.repeat(np.arange(counts.size, dtype=np.int64), counts)
    return block * n_to + staging.points


def _once_a_row(
    columns: list[NDArray[np.int32]], base: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """``base + column`` for each column; a point that an element names twice counts once."""
    keys = []
    for j, column in enumerate(columns):
        again = np.zeros(column.size, dtype=np.bool_)
        for earlier in columns[:j]:
            again |= earlier == column
        key = base + column
        keys.append(key[~again] if again.any() else key)
    return keys


def _repeated(keys: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    ordered = np.sort(np.concatenate(keys))
    return ordered[1:][ordered[1:] == ordered[:-1]]


def _more(wrong: NDArray[np.bool_]) -> str:
    count = int(np.count_nonzero(wrong)) - 1
    return f" ({count} more)" if count else ""
