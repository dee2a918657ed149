"""Sets and dats that a loop reaches through its maps, and the points that it writes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from meshprep_runtime.types.loops import Loop
from meshprep_runtime.types.maps import Int32s, SetMap

from ..mesh.incidence import stack


def indirect_dats(
    loop: Loop, maps: Mapping[str, SetMap]
) -> dict[tuple[str, str], tuple[int, int]]:
    """The dats that a loop reaches through maps, with their largest size in an argument.

    Gives (components, bytes of a component) by (name, set).
    """
    dats: dict[tuple[str, str], tuple[int, int]] = {}
    for arg in loop.args:
        if arg.map is not None:
            key = (arg.name, maps[arg.map].to_set)
            size = (arg.dim, np.dtype(arg.dtype).itemsize)
            # Compare by the bytes of a point: components times bytes of each.
            dats[key] = max(dats.get(key, size), size, key=prod)
    return dats


def written_table(
    loop: Loop, maps: Mapping[str, SetMap], sizes: Mapping[str, int]
) -> tuple[Int32s, int]:
    """The columns that a loop writes through, as one table into the union of their to-sets.

    Colourings take it: ``(n_from, k)`` int32, and the number of points. Maps into one set
    share its points; k is 0 where the loop writes nothing through a map.
    """
    # The columns written through, by the set that they lead to.
    columns: dict[str, list[Int32s]] = {}
    for name, index in loop.conflict_columns.items():
        table = maps[name].table
        if len(index) == table.shape[1]:
            written = table
        else:
            written = table[:, list(index)]
        columns.setdefault(maps[name].to_set, []).append(written)
    if not columns:
        return np.empty((sizes[loop.over], 0), np.int32), 0
    # Side by side, with the points of each set numbered behind those of the sets before.
    tables = [joined_tables(into_set) for into_set in columns.values()]
    return stack(tables, [sizes[to_set] for to_set in columns])


def maps_by_set(loop: Loop, maps: Mapping[str, SetMap]) -> dict[str, list[str]]:
    """The maps of a loop by the set they reach, in the order of its arguments."""
    names: dict[str, list[str]] = {}
    for name in loop.maps:
        names.setdefault(maps[name].to_set, []).append(name)
    return names


def maps_by_place(
    maps: Mapping[str, SetMap], elements: Int32s | None
) -> Mapping[str, SetMap]:
    """The maps with a row for each place in blocks that list their ``elements``.

    Without such a list the maps are as they were.
    """
    if elements is None:
        return maps
    by_place = {}
    for name, m in maps.items():
        by_place[name] = replace(m, table=m.table[elements])
    return by_place


def joined_tables(tables: Sequence[Int32s]) -> Int32s:
    """Maps of one set side by side."""
    if len(tables) == 1:
        return np.ascontiguousarray(tables[0])
    return np.hstack(tables)
