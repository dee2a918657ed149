"""The maps of a chain as arrays of numbers, each transposed where a loop writes through it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...maps import SetMap, offsets_of
from .compiled import transpose
from .numbers import ChainArrays, ChainNumbers, MapArrays
from .threads import on_threads


def map_arrays(chain: ChainNumbers, arrays: ChainArrays) -> MapArrays:
    """The maps in numbers. O(n x arity)."""
    set_number = {s: i for i, s in enumerate(chain.sizes)}
    maps = list(chain.maps.values())
    flat = [m.table.reshape(-1) for m in maps]
    where = list(zip(arrays.map.tolist(), arrays.column.tolist(), strict=True))
    writes = [k for k, w in zip(where, arrays.write.tolist(), strict=True) if w and k[0] >= 0]
    through = list(dict.fromkeys(writes))
    up = dict(zip(through, on_threads(lambda key: _up(chain, maps, *key), through), strict=True))
    starts = dict(zip(up, [0, *np.cumsum([o.size for o, _ in up.values()])], strict=False))
    named = offsets_of([elements.size for _, elements in up.values()])
    none: list[NDArray[Any]] = [np.zeros(0, np.int32)]
    offsets = [o + n for (o, _), n in zip(up.values(), named, strict=False)]
    return MapArrays(
        np.array([m.arity for m in maps], np.int64),
        np.array([arrays.set_start[set_number[m.from_set]] for m in maps], np.int64),
        np.array([set_number[m.to_set] for m in maps], np.int64),
        offsets_of([t.size for t in flat]),
        np.concatenate([*none, *flat]).astype(np.int32, copy=False),
        np.array([starts[k] if k in writes else -1 for k in where], np.int64),
        np.concatenate([np.zeros(0, np.int64), *offsets]),
        np.concatenate([*none, *(elements for _, elements in up.values())]),
    )


def _up(
    chain: ChainNumbers, maps: Sequence[SetMap], m: int, column: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    table = np.ascontiguousarray(maps[m].table[:, column])
    offset, elements = transpose(table, chain.sizes[maps[m].to_set])
    return offset, elements
