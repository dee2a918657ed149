"""The steps of a split where ranks hold slices: owners, halos, orders, parts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import (
    Float64s,
    Int32s,
    SetMap,
    distinct,
    offsets_of,
)

from ...loops.options import Options
from ...mesh.geometry import Means
from ..assign.inherit import Owners, inherit
from ..build import PartBuilder
from ..halos import OwnedRuns, SplitNumbers, all_copies, executed_copies, owned_runs
from ..increments import check_way, increment_cost
from ..order import order_parts, refuse_lists
from ..ranks import Ranks, agreed, exchanged, holder, own_parts
from ..steps import SplitOptions, SplitResult, increments_of, loops_that_write, written_columns
from ..subject import SplitSubject, written_by
from .cuts import CUTS, leading_owners
from .homes import ROWS, Homes, Places, blocks, compact, joined


def split_slices(
    subject: SplitSubject,
    parts: int,
    how: SplitOptions,
    options: Options,
    progress: Callable[[float], None],
    ranks: Ranks,
) -> SplitResult:
    """Find owners, halos and orders; the builder makes the parts of this rank.

    The parts are those of :func:`..steps.split`, whatever the number of ranks, and so are the
    parameters; tables and centroids of ``subject`` are those of the elements at home here. Raises
    MeshprepError for a cut that needs the whole mesh, and as :func:`..steps.split`; on every rank.
    O(n / ranks log n), and as much memory.
    """
    weights = agreed(ranks, lambda: _checked_shares(subject, parts, how, options))
    cut = how.cut_of(subject, slices=True)
    local = local_subject(subject, slice_owners(subject, weights, cut, ranks), parts, ranks)
    here, held = local.subject, range(len(local.held))
    costs = {
        loop.name: increment_cost(here, local.owners, loop, how.increments, len(held), ranks)
        for loop in loops_that_write(here)
    }
    increments = increments_of(here, costs)
    executed = executed_copies(here, local.owners, written_columns(here, increments), len(held))
    runs = owned_runs(here, local.owners, len(held) + 1)
    ordered = order_parts(here, runs, options, progress, ranks, held)
    numbers = split_numbers(local, ordered.runs, subject.sizes, ranks)
    copies = all_copies(here, ordered.runs, executed, numbers, ranks)
    return SplitResult(PartBuilder(here, ordered, copies, numbers, options, increments), costs)


def check_cut(cut: str | None) -> None:
    """Raise MeshprepError for a cut that needs the whole mesh."""
    if cut not in (None, *CUTS):
        raise MeshprepError(f"cut '{cut}' needs the whole mesh: with --slices, use --cut refined")


def _checked_shares(
    subject: SplitSubject, parts: int, how: SplitOptions, options: Options
) -> Float64s:
    """The shares of the parts, where all that is asked for can be done."""
    check_cut(how.cut)
    refuse_lists(subject, options)
    for loop in loops_that_write(subject):
        check_way(loop, how.increments)
    return how.shares(parts)


def slice_owners(subject: SplitSubject, weights: Float64s, cut: str, ranks: Ranks) -> Owners:
    """The part of every element that is at home here, of every set.

    Tables and centroids of ``subject`` are those of the elements at home here; ``weights`` are
    shares that add up to 1, and ``cut`` a name in :data:`.cuts.CUTS`. Raises MeshprepError without
    coordinates, and with infinite ones; on every rank. O(n / ranks log n), beside the cut.
    """
    leading = leading_owners(subject, weights, cut, ranks)
    return inherit(subject, leading, weights, ranks)


@dataclass(frozen=True, eq=False)
class LocalSubject:
    """The sets and maps around the parts of a rank, in numbers of their own.

    Elements keep the order of the input. The last element of every set is none of the mesh: rows
    that this rank does not know lead there.
    """

    subject: SplitSubject
    # By set name: what the elements are called outside; -1 for the one that is none.
    ids: Mapping[str, Int32s]
    owners: Owners  # the parts of this rank from 0; one more stands for all others
    held: range  # the parts of this rank


def local_subject(subject: SplitSubject, owners: Owners, parts: int, ranks: Ranks) -> LocalSubject:
    """Bring elements from their homes to the ranks that make parts of them.

    A rank gets the rows of what its parts own, and of what writes to that in any loop. O(n / ranks
    log n), and as much memory. ``owners`` are those of the elements at home
    here.
    """
    rows, tables = _rows_of_rank(subject, owners, parts, ranks)
    ids = {name: _reached_elements(subject, name, rows[name], tables) for name in subject.sizes}
    places = {name: Places.among(one) for name, one in ids.items()}
    maps = {
        m.name: replace(m, table=_local_table(m, rows, tables.pop(m.name), places))
        for m in subject.maps.values()
    }
    del places
    held = own_parts(ranks, parts)
    labels = {name: _labels(subject, owners, name, ids[name], held, ranks) for name in ids}
    centroids = _centroids(subject, maps, ids, labels, ranks)

    def here(name: str, values: NDArray[Any], none: int = -1) -> NDArray[Any]:
        found = Homes(subject.sizes[name], ranks).fetch(values, ids[name])
        return np.concatenate([found, np.full((1, *found.shape[1:]), none, found.dtype)])

    outside = {name: np.append(one, np.int32(-1)) for name, one in ids.items()}
    local = SplitSubject(
        sizes={name: one.size + 1 for name, one in ids.items()},
        maps=maps,
        specs=subject.specs,
        segments={name: _segments(sizes, ids[name]) for name, sizes in subject.segments.items()},
        unions=subject.unions,
        centroids=centroids,
        original={name: here(name, values) for name, values in subject.original.items()} or outside,
        source_hash=subject.source_hash,
        values={at: here(at.split("/")[1], rows) for at, rows in subject.values.items()},
        tags=tuple(replace(t, values=here(t.set, t.values, 0)) for t in subject.tags),
        blocks={
            spec.loop.name: here(spec.loop.over, subject.blocks[spec.loop.name])
            for spec in subject.specs
            if subject.blocks
        },
    )
    return LocalSubject(local, outside, labels, held)


def _rows_of_rank(
    subject: SplitSubject, owners: Owners, parts: int, ranks: Ranks
) -> tuple[dict[str, Int32s], dict[str, Int32s]]:
    """The elements of each set that this rank has rows of, and the rows of each map."""
    written, rows, tables = written_by(spec.loop for spec in subject.specs), {}, {}
    for name in subject.sizes:
        chosen = _needed_rows(subject, owners, name, written, parts, ranks)
        first = Homes(subject.sizes[name], ranks).own.start
        rows[name] = joined(exchanged(ranks, [one + np.int32(first) for one in chosen]))
        for m in subject.maps.values():
            if m.from_set == name:
                tables[m.name] = joined(exchanged(ranks, [m.table[one] for one in chosen]))
    return rows, tables


def _needed_rows(
    subject: SplitSubject,
    owners: Owners,
    name: str,
    written: Mapping[str, Sequence[int]],
    parts: int,
    ranks: Ranks,
) -> list[Int32s]:
    """Elements at home here whose rows each rank needs, ascending."""
    own = holder(ranks, owners[name], parts).astype(np.int32)
    others = [np.empty((0, 2), np.int64)]
    for label, columns in written.items():
        m = subject.maps[label]
        if m.from_set != name:
            continue
        homes = Homes(subject.sizes[m.to_set], ranks)
        for rows in blocks(ranks, m.size):
            points, local = compact(m.table[rows][:, list(columns)])
            there = holder(ranks, homes.fetch(owners[m.to_set], points), parts)[local]
            row, column = np.nonzero(there != own[rows, None])
            others.append(np.stack([there[row, column], row + rows.start], axis=1))
    rank, element = np.concatenate(others).T
    found = []
    for r in range(ranks.size):
        wanted = own == r
        wanted[element[rank == r]] = True
        found.append(np.flatnonzero(wanted).astype(np.int32))
    return found


def _reached_elements(
    subject: SplitSubject, name: str, rows: Int32s, tables: Mapping[str, Int32s]
) -> Int32s:
    """The elements of a set that this rank has rows of, or reaches; ascending."""
    places, found = Places.among(rows), [rows]
    for m in subject.maps.values():
        if m.to_set == name:
            for begin in range(0, len(tables[m.name]), ROWS):
                reached = distinct(tables[m.name][begin : begin + ROWS])
                found.append(reached[places.known(reached) < 0])
    return distinct(np.concatenate(found))


def _local_table(
    m: SetMap, rows: Mapping[str, Int32s], table: Int32s, places: Mapping[str, Places]
) -> Int32s:
    """A table in local numbers, with a row for every element here."""
    own, reached = places[m.from_set], places[m.to_set]
    out = np.full((own.points.size + 1, m.arity), reached.points.size, np.int32)
    for begin in range(0, len(table), ROWS):
        some = slice(begin, begin + ROWS)
        out[own.of(rows[m.from_set][some])] = reached.of(table[some])
    return out


def _labels(
    subject: SplitSubject, owners: Owners, name: str, ids: Int32s, held: range, ranks: Ranks
) -> Int32s:
    """Owners counted from this rank's first part; all other ranks' parts are one more."""
    part = Homes(subject.sizes[name], ranks).fetch(owners[name], ids)
    here = (part >= held.start) & (part < held.stop)
    return np.append(np.where(here, part - held.start, len(held)), len(held)).astype(np.int32)


def _centroids(
    subject: SplitSubject,
    maps: Mapping[str, SetMap],
    ids: Mapping[str, Int32s],
    labels: Owners,
    ranks: Ranks,
) -> dict[str, Any]:
    """The centroids of what is owned here, and of what others are the means of."""
    found: dict[str, Any] = {}
    elsewhere = {name: int(label[-1]) for name, label in labels.items()}
    reached = {maps[m].to_set for m in subject.through.values()}
    for name, where in subject.centroids.items():
        known = labels[name][:-1] < elsewhere[name]
        wanted = np.flatnonzero(known | (name in reached))
        out = np.zeros((ids[name].size + 1, where.shape[1]))
        out[wanted] = Homes(subject.sizes[name], ranks).fetch(where, ids[name][wanted])
        found[name] = out
    for name, m in subject.through.items():
        found[name] = Means(maps[m].table, found[maps[m].to_set])
    return found


def _segments(sizes: Sequence[int], ids: Int32s) -> tuple[int, ...]:
    ends = np.searchsorted(ids, offsets_of(sizes))
    ends[-1] += 1
    return tuple(int(n) for n in np.diff(ends))


def split_numbers(
    local: LocalSubject, runs: Mapping[str, OwnedRuns], sizes: Mapping[str, int], ranks: Ranks
) -> SplitNumbers:
    """The numbers in the split mesh of all elements here, those of other ranks by their homes.

    ``runs`` are those of the parts of this rank, in the final order; ``sizes`` those of the whole
    mesh.
    """
    count = {name: np.diff(run.offset)[: len(local.held)] for name, run in runs.items()}
    every = ranks.allgather(count)
    number, offset = {}, {}
    for name, run in runs.items():
        owned = np.concatenate([one[name] for one in every])
        offset[name] = offsets_of(owned)
        homes, ids = Homes(sizes[name], ranks), local.ids[name]
        mine = run.elements[: run.offset[len(local.held)]]
        first = int(offset[name][local.held.start])
        at_home = np.empty(len(homes.own), np.int32)
        for some in blocks(ranks, mine.size):
            given = np.arange(first + some.start, first + some.stop, dtype=np.int32)
            homes.put(at_home, ids[mine[some]], given)
        number[name] = np.append(homes.fetch(at_home, ids[:-1]), np.int32(-1))
    return SplitNumbers(number, offset, local.held)
