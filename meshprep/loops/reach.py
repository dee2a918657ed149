"""What a loop reaches through its maps: sets, dats, and the points that it writes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from meshprep_runtime.types.loops import Loop
from meshprep_runtime.types.maps import Int32s, SetMap

from ..mesh.incidence import stack


def indirect_dats(loop: Loop, maps: Mapping[str, SetMap]) -> dict[tuple[str, str], tuple[int, int]]:
    """The dats that a loop reaches through maps: (name, set) to (components, bytes of one)."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for arg in loop.args:
        if arg.map is not None:
            key = (arg.name, maps[arg.map].to_set)
            shape = (arg.dim, np.dtype(arg.dtype).itemsize)
            found[key] = max(found.get(key, shape), shape, key=prod)
    return found


def written_table(
    loop: Loop, maps: Mapping[str, SetMap], sizes: Mapping[str, int]
) -> tuple[Int32s, int]:
    """The columns that a loop writes through, as one table into the union of their to-sets.

    What every colouring takes: ``(n_from, k)`` int32 and the number of points. Maps into one set
    share its points; k is 0 where the loop writes nothing through a map.
    """
    columns: dict[str, list[Int32s]] = {}
    for name, index in loop.conflict_columns.items():
        table = maps[name].table
        written = table if len(index) == table.shape[1] else table[:, list(index)]
        columns.setdefault(maps[name].to_set, []).append(written)
    if not columns:
        return np.empty((sizes[loop.over], 0), np.int32), 0
    return stack([*map(joined_tables, columns.values())], [sizes[s] for s in columns])


def maps_by_set(loop: Loop, maps: Mapping[str, SetMap]) -> dict[str, list[str]]:
    """The maps of a loop by the set they reach, in the order of its arguments."""
    found: dict[str, list[str]] = {}
    for name in loop.maps:
        found.setdefault(maps[name].to_set, []).append(name)
    return found


def maps_by_place(maps: Mapping[str, SetMap], elements: Int32s | None) -> Mapping[str, SetMap]:
    """The maps with a row for each place of blocks that list their elements; None: as they are."""
    if elements is None:
        return maps
    return {name: replace(m, table=m.table[elements]) for name, m in maps.items()}


def joined_tables(tables: Sequence[Int32s]) -> Int32s:
    """Maps of one set side by side."""
    return np.ascontiguousarray(tables[0] if len(tables) == 1 else np.hstack(tables))
