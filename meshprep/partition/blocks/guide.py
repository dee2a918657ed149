"""Whether centroids guide clusters to better blocks, or mislead them: a trial on some of them.

Layers over a bent surface, a mesh that closes on itself, graph distances that fold: there the
centroid of a block is no place that its elements should be near. No measure of places alone told
these meshes from others, so both ways are tried.
"""

import numpy as np

from ...kernels import Float64s, Int32s
from ...kernels.parallel import each
from .groups import AnnealingSchedule, Grouping, anneal_groups
from .levels import Level

# Blocks of a group of the trial, the sweeps of it at most, and where its two groups are.
TRIAL_BLOCKS, TRIAL_SWEEPS, TRIED = 32, 20, (0.25, 0.75)
# What is gained where nothing pulls, over what is gained otherwise, is chance up to this.
BY_CHANCE = 1.1


def misled(
    level: Level,
    point_weight: Int32s,
    metric: Float64s,
    block: Int32s,
    group_of_block: Int32s,
    schedule: AnnealingSchedule,
    pressure: Float64s,
) -> bool:
    """Whether two groups of blocks gain more where nothing pulls.

    Nothing is changed. O(clusters + points of the two groups) for each sweep.
    """
    # rising pressure holds back what centroids carry astray, more or less by chance
    schedule = schedule._replace(rate=0.0)
    grouping = Grouping.of(block, group_of_block)
    chosen = np.unique([int(share * grouping.groups) for share in TRIED])
    tasks = [
        (level, point_weight, metric, block.copy(), grouping, chosen, one, pressure.copy())
        for one in (schedule, schedule._replace(pull=(0.0, 0.0)))
    ]
    guided, free = each(anneal_groups, tasks)
    return bool(free > BY_CHANCE * guided)
