"""The phase of every level: its sweeps, temperatures and prices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ....kernels.arithmetic import log, power
from ..levels import Level
from ..tuning import Phase, SearchTuning


def phases(
    levels: Sequence[Level], d: int, tuning: SearchTuning, n_blocks: int
) -> list[tuple[Level, Phase]]:
    """Levels with their phases, from the largest clusters to elements.

    A move of larger clusters changes more of a border, which grows with the power (d - 1) / d of
    their size: the temperature rises with it.
    """
    t, more = tuning, 1.0
    if d == 2:
        between_cells = _between_cells(levels[0], t)
        elements, clusters = t.plane_edges if between_cells else t.plane_elements, t.plane_clusters
        more = min(t.most_times, power(max(1.0, n_blocks / t.many_blocks), t.many_blocks_power))
    else:
        elements = replace(t.elements, group=t.space_group)
        first, second, third = (replace(phase, group=t.space_group) for phase in t.clusters)
        clusters = first, second, third
    powers = _powers(levels[0], d, n_blocks, t)
    times = [more * power(max(1.0, t.effort), by - 1.0) for by in powers]
    top = min(len(levels) - 1, len(clusters))
    usual, fewer = levels[top].weight.size, math.prod([t.cooler] * (len(clusters) - top))
    found = [(levels[0], elements.longer(times[0]))]
    for k, level in enumerate(levels[1:], start=1):
        growth = fewer * power(max(1.0, usual / level.weight.size), (d - 1) / d)
        found.append((level, clusters[max(0, top - k)].hotter(growth).longer(times[k > 1])))
    return found[::-1]


def in_two(
    corners: Level, phase: Phase, elements: Level, tuning: SearchTuning
) -> list[tuple[Level, Phase]]:
    """The phase of elements in two parts: with corners alone, then with all points."""
    return [(corners, phase.longer(tuning.with_corners)), (elements, phase.end(tuning.with_all))]


def _powers(elements: Level, d: int, n_blocks: int, t: SearchTuning) -> tuple[float, float]:
    """Powers of the effort by which sweeps grow: of small clusters, and of larger ones."""
    n = max(1, elements.weight.size)
    lower = t.power_by_size[d > 2] * log(max(1.0, n / n_blocks / t.usual_block))
    powers = t.plane_power, t.plane_power
    if d != 2:
        lower += t.power_by_points * log(max(1.0, elements.points.size / n / 4.0))
        higher = t.power_by_blocks * log(max(1.0, n_blocks / t.many_blocks))
        powers = min(t.highest_power, t.space_powers[0] + higher), t.space_powers[1]
    return max(t.lowest_power, powers[0] - lower), max(t.lowest_power, powers[1] - lower)


def _between_cells(elements: Level, t: SearchTuning) -> bool:
    """True if elements are edges between two cells, not edges between nodes."""
    n = elements.weight.size
    return elements.points.size <= 2 * n and elements.neighbours.size <= t.edge_neighbours * n
