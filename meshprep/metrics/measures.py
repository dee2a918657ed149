"""What a report shows of one loop variant: reuse, blocks, colours, staged bytes, cache lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.loops import Access, Loop
from meshprep_runtime.maps import SetMap
from meshprep_runtime.plan import LoopPlan, Plan, Variant

from ..colour.thread_colours import thread_bound
from ..loops.reach import indirect_dats, maps_by_set, written_table
from .distribution import histograms, warp_efficiency
from .traffic import LAYOUTS, SECTOR_BYTES, aligned_units, traffic

LINE_BYTES = 128


def measure(plan: LoopPlan, variant: Variant | None = None) -> dict[str, Any]:
    """:func:`variant_metrics` of a variant of a loop plan, the default one unless given."""
    chosen = plan.variant() if variant is None else variant
    return variant_metrics(plan.loop, plan.maps, plan.sizes, chosen)


def variant_metrics(
    loop: Loop, maps: Mapping[str, SetMap], sizes: Mapping[str, int], variant: Variant
) -> dict[str, Any]:
    """The measures of one variant, as JSON values.

    Parameters
    ----------
    loop, maps, sizes
        The loop, its maps in the plan's numbering and the sizes of the sets.
    variant : Variant

    Returns
    -------
    dict
        ``accesses``: entries of the loop's maps; ``loads``: distinct points a block, summed over
        blocks; ``reuse``: accesses / loads, 1 at worst and None where nothing is indirect [S19];
        ``exclusive_share``: the share of loads whose point no other block touches, 1 at best.
        ``sets`` has these four for each to-set.
        ``blocks``, ``least_blocks`` (elements / block size, rounded up), ``blocks_over_least``
        (their quotient, 1 at best) and ``block_elements`` (min, mean, max).
        ``staged_bytes`` a block (mean, max): every indirect dat of every staged point.
        ``thread_colours`` (mean, max, bound_mean): the bound is the largest number of the block's
        elements that write one point. ``block_colours``, and ``block_colour_blocks`` (min, mean,
        max): blocks of a colour; ``block_colour_sizes`` lists them.
        ``aos`` and ``soa``: the 128-byte ``lines`` and 32-byte ``sectors`` that the staged values
        of a block lie on (mean a block, total), with dats that start on a line.
        ``warp_efficiency`` and ``histograms``: see :mod:`~meshprep.metrics.distribution`.
        ``useful_bytes`` of a call: all values that the loop reaches of every dat, those that are
        read and written twice [S19].
        ``traffic``: for either layout, the sectors that a call is predicted to have ``read`` and
        ``written`` when blocks stage everything, see :func:`~meshprep.metrics.traffic.traffic`.

    O(n x arity + loads x dats).
    """
    table, n_points = written_table(loop, maps, sizes)
    bound = thread_bound(table, n_points, variant.block_offset)
    by_set = _reuse_by_set(loop, maps, variant)
    return {
        "block_size": variant.block_size,
        "target": variant.target,
        "partitioner": variant.partitioner,
        "sorted_by_colour": variant.sorted_by_colour,
        **_overall(by_set, variant),
        "sets": by_set,
        **_blocks(variant),
        "staged_bytes": _spread(_staged_bytes(loop, maps, variant), "mean", "max"),
        "thread_colours": _spread(variant.thread_colours, "mean", "max")
        | {"bound_mean": _spread(bound, "mean")["mean"]},
        "block_colours": variant.n_block_colours,
        "block_colour_blocks": _spread(np.diff(variant.block_colour_offset)),
        "block_colour_sizes": np.diff(variant.block_colour_offset).tolist(),
        "warp_efficiency": warp_efficiency(variant),
        "histograms": histograms(variant, sum(maps[m].arity for m in loop.maps)),
        "useful_bytes": useful_bytes(loop, maps, sizes),
        "aos": _transfers(loop, maps, variant, split=False),
        "soa": _transfers(loop, maps, variant, split=True),
        "traffic": {
            layout: {"read": moved.read, "written": moved.written}
            for layout in LAYOUTS
            for moved in [traffic(loop, maps, sizes, variant, layout=layout)]
        },
    }


def useful_bytes(loop: Loop, maps: Mapping[str, SetMap], sizes: Mapping[str, int]) -> int:
    """Bytes that no call can do without: sum(w_d S_d), w = 2 for data read and written [S19].

    Of a dat reached through maps the points that the loop reaches count: a loop over a boundary
    leaves the others alone. O(n x arity).
    """
    found: dict[tuple[str, str], tuple[int, bool, bool]] = {}
    through: dict[tuple[str, str], frozenset[str | None]] = {}
    for arg in loop.args:
        if arg.is_global:
            continue
        key = (arg.name, loop.over if arg.map is None else maps[arg.map].to_set)
        nbytes, read, written = found.get(key, (0, False, False))
        read |= arg.access is not Access.WRITE
        written |= arg.access is not Access.READ
        found[key] = (max(nbytes, arg.nbytes), read, written)
        through[key] = through.get(key, frozenset()) | {arg.map}
    ways = {(of, names) for (_, of), names in through.items()}
    reached = {way: _reached(way[1], maps, sizes[way[0]]) for way in ways}
    return sum(
        reached[key[1], through[key]] * size * (r + w) for key, (size, r, w) in found.items()
    )


def _reached(names: Iterable[str | None], maps: Mapping[str, SetMap], n_points: int) -> int:
    """How many points some maps reach; all of them where one is reached without a map."""
    if None in names:
        return n_points
    seen = np.zeros(n_points, bool)
    for name in names:
        seen[maps[str(name)].table] = True
    return int(np.count_nonzero(seen))


def _reuse_by_set(
    loop: Loop, maps: Mapping[str, SetMap], variant: Variant
) -> dict[str, dict[str, Any]]:
    return {
        to_set: _reuse(
            sum(maps[name].table.size for name in names),
            variant.staging[to_set].points.size,
            int(np.count_nonzero(variant.staging[to_set].exclusive)),
        )
        for to_set, names in maps_by_set(loop, maps).items()
    }


def _overall(by_set: Mapping[str, Mapping[str, Any]], variant: Variant) -> dict[str, Any]:
    accesses = sum(s["accesses"] for s in by_set.values())
    loads = sum(s["loads"] for s in by_set.values())
    exclusive = sum(int(np.count_nonzero(s.exclusive)) for s in variant.staging.values())
    return _reuse(accesses, loads, exclusive)


def _reuse(accesses: int, loads: int, exclusive: int) -> dict[str, Any]:
    return {
        "accesses": accesses,
        "loads": loads,
        "reuse": accesses / loads if loads else None,
        "exclusive_share": exclusive / loads if loads else None,
    }


def _blocks(variant: Variant) -> dict[str, Any]:
    size = np.diff(variant.block_offset)
    least = -(-int(size.sum()) // variant.block_size)
    return {
        "blocks": variant.n_blocks,
        "least_blocks": least,
        "blocks_over_least": variant.n_blocks / least if least else None,
        "block_elements": _spread(size),
    }


def _staged_bytes(loop: Loop, maps: Mapping[str, SetMap], variant: Variant) -> NDArray[np.int64]:
    total = np.zeros(variant.n_blocks, np.int64)
    for (_, to_set), (dim, itemsize) in indirect_dats(loop, maps).items():
        total += np.diff(variant.staging[to_set].point_offset) * (dim * itemsize)
    return total


def _transfers(
    loop: Loop, maps: Mapping[str, SetMap], variant: Variant, *, split: bool
) -> dict[str, Any]:
    """Lines and sectors a block; ``split`` when each component is an array of its own (SoA)."""
    units = {"lines": LINE_BYTES, "sectors": SECTOR_BYTES}
    counted = {unit: np.zeros(variant.n_blocks, np.int64) for unit in units}
    for (_, to_set), (dim, itemsize) in indirect_dats(loop, maps).items():
        staging = variant.staging[to_set]
        width, arrays = (itemsize, dim) if split else (dim * itemsize, 1)
        for unit, nbytes in units.items():
            counted[unit] += arrays * aligned_units(
                staging.points, staging.point_offset, width, nbytes
            )
    return {
        unit: _spread(count, "mean") | {"total": int(count.sum())}
        for unit, count in counted.items()
    }


def _spread(values: NDArray, *which: str) -> dict[str, Any]:
    """Smallest, mean and largest as JSON values, or those named; None where there are none."""
    found: dict[str, Any] = dict.fromkeys(which or ("min", "mean", "max"))
    if values.size:
        known = {"min": int(values.min()), "mean": float(values.mean()), "max": int(values.max())}
        found = {name: known[name] for name in found}
    return found


def localities(plan: Plan) -> list[dict[str, Any]]:
    """The values of every lead of a plan."""
    first = plan.metrics.get("locality")
    return [first, *first.get("more", ())] if first else []
