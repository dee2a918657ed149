"""The sets and maps around the parts of a rank, fetched from the homes of elements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.types.maps import Int32s, SetMap, distinct, offsets_of

from ...mesh.geometry import Means
from ..halos.ghosts import OwnedRuns, SplitNumbers
from ..homes import ROWS, Homes, Places, blocks, compact, joined
from ..owners.inherit import Owners
from ..ranks import Ranks, exchanged, holder, own_parts
from ..subject import SplitSubject, written_by


@dataclass(frozen=True, eq=False)
class LocalSubject:
    """The sets and maps around the parts of a rank, in local numbers.

    Elements keep the order of the input. The last element of every set is none of the mesh:
    rows that this rank does not have lead there.
    """

    subject: SplitSubject
    # By set name: the numbers of the elements in the input; -1 for the last one.
    ids: Mapping[str, Int32s]
    # The parts of this rank, counted from 0; the next number stands for all others.
    owners: Owners
    parts_of_rank: range  # the parts of this rank


def local_subject(
    subject: SplitSubject,
    owners: Owners,
    parts: int,
    ranks: Ranks,
) -> LocalSubject:
    """Bring elements from their homes to the ranks that make parts of them.

    A rank gets the rows of what its parts own, and of what writes to that in any loop. O(n
    / ranks log n), and as much memory. ``owners`` are those of the elements at home here.
    """
    # Bring rows here; the local elements are those with rows, and those that rows reach.
    rows, tables = _rows_of_rank(subject=subject, owners=owners, parts=parts, ranks=ranks)
    ids = {
        name: _reached_elements(subject=subject, name=name, rows=rows[name], tables=tables)
        for name in subject.sizes
    }
    # Put the maps into local numbers, and let go of each table on the way.
    places = {name: Places.among(elements) for name, elements in ids.items()}
    maps = {}
    for m in subject.maps.values():
        table = _local_table(m=m, rows=rows, table=tables.pop(m.name), places=places)
        maps[m.name] = replace(m, table=table)
    del places
    # Bring the owners of the local elements, and centroids where orders need them.
    parts_of_rank = own_parts(ranks, parts)
    local_owners = {
        name: _local_owners(
            subject=subject,
            owners=owners,
            name=name,
            ids=ids[name],
            parts_of_rank=parts_of_rank,
            ranks=ranks,
        )
        for name in ids
    }
    centroids = _centroids(
        subject=subject,
        maps=maps,
        ids=ids,
        owners=local_owners,
        ranks=ranks,
    )

    def fetch(name: str, values: NDArray[Any], none: int = -1) -> NDArray[Any]:
        """Values of the local elements of a set; ``none`` for the last one."""
        fetched = Homes(subject.sizes[name], ranks).fetch(values, ids[name])
        last = np.full((1, *fetched.shape[1:]), none, fetched.dtype)
        return np.concatenate([fetched, last])

    # Bring all that goes with elements: every rank fetches in the same order.
    no_element = np.int32(-1)
    input_ids = {name: np.append(elements, no_element) for name, elements in ids.items()}
    original = {name: fetch(name, values) for name, values in subject.original.items()}
    values_here = {}
    for name, values in subject.values.items():
        set_name = name.split("/")[1]
        values_here[name] = fetch(set_name, values)
    tags = [replace(tag, values=fetch(tag.set, tag.values, 0)) for tag in subject.tags]
    blocks = {}
    if subject.blocks:
        for loop in (spec.loop for spec in subject.specs):
            blocks[loop.name] = fetch(loop.over, subject.blocks[loop.name])

    # The subject around this rank's parts, as that of a whole mesh.
    local = SplitSubject(
        sizes={name: elements.size + 1 for name, elements in ids.items()},
        maps=maps,
        specs=subject.specs,
        segments={
            name: _segments(sizes, ids[name]) for name, sizes in subject.segments.items()
        },
        unions=subject.unions,
        centroids=centroids,
        original=original or input_ids,
        source_hash=subject.source_hash,
        values=values_here,
        tags=tuple(tags),
        blocks=blocks,
    )
    return LocalSubject(
        subject=local,
        ids=input_ids,
        owners=local_owners,
        parts_of_rank=parts_of_rank,
    )


def _rows_of_rank(
    subject: SplitSubject,
    owners: Owners,
    parts: int,
    ranks: Ranks,
) -> tuple[dict[str, Int32s], dict[str, Int32s]]:
    """The elements of each set that this rank has rows of, and the rows of each map."""
    written = written_by(spec.loop for spec in subject.specs)
    rows = {}
    tables = {}
    for name in subject.sizes:
        chosen = _needed_rows(
            subject=subject,
            owners=owners,
            name=name,
            written=written,
            parts=parts,
            ranks=ranks,
        )
        first = np.int32(Homes(subject.sizes[name], ranks).own.start)
        elements = [local + first for local in chosen]
        rows[name] = joined(exchanged(ranks, elements))
        for m in subject.maps.values():
            if m.from_set == name:
                rows_of_ranks = [m.table[local] for local in chosen]
                tables[m.name] = joined(exchanged(ranks, rows_of_ranks))
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
    # Pairs of a rank and an element that it does not hold, but that writes to what it
    # holds.
    holder_of_element = holder(ranks, owners[name], parts).astype(np.int32)
    others = [np.empty((0, 2), np.int64)]
    for map_name, columns in written.items():
        m = subject.maps[map_name]
        if m.from_set != name:
            continue
        homes = Homes(subject.sizes[m.to_set], ranks)
        for rows in blocks(ranks, m.size):
            points, local = compact(m.table[rows][:, list(columns)])
            owner_of_point = homes.fetch(owners[m.to_set], points)
            holders = holder(ranks, owner_of_point, parts)[local]
            row, column = np.nonzero(holders != holder_of_element[rows, None])
            pairs = np.stack([holders[row, column], row + rows.start], axis=1)
            others.append(pairs)
    rank, element = np.concatenate(others).T
    # Each rank needs the rows of these, and of the elements it holds.
    elements_of_ranks = []
    for other in range(ranks.size):
        needed = holder_of_element == other
        needed[element[rank == other]] = True
        elements_of_ranks.append(np.flatnonzero(needed).astype(np.int32))
    return elements_of_ranks


def _reached_elements(
    subject: SplitSubject,
    name: str,
    rows: Int32s,
    tables: Mapping[str, Int32s],
) -> Int32s:
    """The elements of a set that this rank has rows of, or reaches; ascending."""
    places = Places.among(rows)
    elements = [rows]
    for m in subject.maps.values():
        if m.to_set == name:
            for begin in range(0, len(tables[m.name]), ROWS):
                reached = distinct(tables[m.name][begin : begin + ROWS])
                elements.append(reached[places.known(reached) < 0])
    return distinct(np.concatenate(elements))


def _local_table(
    m: SetMap,
    rows: Mapping[str, Int32s],
    table: Int32s,
    places: Mapping[str, Places],
) -> Int32s:
    """A table in local numbers, with a row for every local element.

    Elements whose rows are elsewhere lead to the last element of the other set.
    """
    from_places = places[m.from_set]
    to_places = places[m.to_set]
    n_rows = from_places.points.size + 1
    no_element = to_places.points.size
    out = np.full((n_rows, m.arity), no_element, np.int32)
    # In steps, whose numbers need memory.
    for begin in range(0, len(table), ROWS):
        step = slice(begin, begin + ROWS)
        local_row = from_places.of(rows[m.from_set][step])
        out[local_row] = to_places.of(table[step])
    return out


def _local_owners(
    subject: SplitSubject,
    owners: Owners,
    name: str,
    ids: Int32s,
    parts_of_rank: range,
    ranks: Ranks,
) -> Int32s:
    """Owners counted from this rank's first part; all other ranks' parts are one more."""
    part = Homes(subject.sizes[name], ranks).fetch(owners[name], ids)
    of_this_rank = (part >= parts_of_rank.start) & (part < parts_of_rank.stop)
    local_part = np.where(of_this_rank, part - parts_of_rank.start, len(parts_of_rank))
    return np.append(local_part, len(parts_of_rank)).astype(np.int32)


def _centroids(
    subject: SplitSubject,
    maps: Mapping[str, SetMap],
    ids: Mapping[str, Int32s],
    owners: Owners,
    ranks: Ranks,
) -> dict[str, Any]:
    """The centroids of owned elements, and of the points of means; else zeros."""
    centroids: dict[str, Any] = {}
    reached = {maps[m].to_set for m in subject.through.values()}
    for name, where in subject.centroids.items():
        # The last element, none of the mesh, has the number that stands for other ranks.
        of_other_ranks = int(owners[name][-1])
        owned = owners[name][:-1] < of_other_ranks
        to_fetch = np.flatnonzero(owned | (name in reached))
        homes = Homes(subject.sizes[name], ranks)
        out = np.zeros((ids[name].size + 1, where.shape[1]))
        out[to_fetch] = homes.fetch(where, ids[name][to_fetch])
        centroids[name] = out
    # Means of centroids that were fetched.
    for name, m in subject.through.items():
        centroids[name] = Means(maps[m].table, centroids[maps[m].to_set])
    return centroids


def _segments(sizes: Sequence[int], ids: Int32s) -> tuple[int, ...]:
    """How many local elements of a union each of its sets has."""
    ends = np.searchsorted(ids, offsets_of(sizes))
    # the last element, which is none of the mesh
    ends[-1] += 1
    return tuple(int(n) for n in np.diff(ends))


def split_numbers(
    local: LocalSubject,
    runs: Mapping[str, OwnedRuns],
    sizes: Mapping[str, int],
    ranks: Ranks,
) -> SplitNumbers:
    """The numbers in the split mesh of all local elements; homes tell those of other ranks.

    ``runs`` are those of the parts of this rank, in the final order; ``sizes`` those of the
    whole mesh.
    """
    n_parts_here = len(local.parts_of_rank)
    counts = {name: np.diff(run.offset)[:n_parts_here] for name, run in runs.items()}
    counts_of_ranks = ranks.allgather(counts)
    number = {}
    offset = {}
    for name, run in runs.items():
        # Parts own consecutive numbers.
        n_owned = np.concatenate([counts[name] for counts in counts_of_ranks])
        offset[name] = offsets_of(n_owned)
        # Send the numbers of owned elements to their homes, and fetch those of all.
        homes = Homes(sizes[name], ranks)
        ids = local.ids[name]
        owned = run.elements[: run.offset[n_parts_here]]
        first = int(offset[name][local.parts_of_rank.start])
        number_at_home = np.empty(len(homes.own), np.int32)
        for some in blocks(ranks, owned.size):
            numbers = np.arange(first + some.start, first + some.stop, dtype=np.int32)
            homes.put(number_at_home, ids[owned[some]], numbers)
        number_here = homes.fetch(number_at_home, ids[:-1])
        number[name] = np.append(number_here, np.int32(-1))
    return SplitNumbers(number=number, offset=offset, parts_of_rank=local.parts_of_rank)
