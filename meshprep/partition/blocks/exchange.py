"""Moves into full blocks: another cluster of the same size leaves the full block at once.

Most blocks are at the cap or near it, so that what would move into them may not. Such a cluster is
kept as an offer. After each sweep every new offer is tried: it moves if an older offer of the full
block can leave for where the cluster comes from, or for a block with room. Each of the two moves
must be allowed by itself, so that annealing goes on as if there were no caps.
"""

from ...kernels import inlined
from .centroids import Centroids, update_centroids
from .counts import Counts, move
from .moves import KEPT, LEAST_GAIN, UNKNOWN, MoveMemory, Sweep, score_of


@inlined
def exchange(state: Counts, centroids: Centroids, sweep: Sweep, memory: MoveMemory) -> int:
    """Try the offers of a sweep; returns how many clusters moved into full blocks.

    O(n_blocks + offers * (KEPT + points * blocks at a point)).
    """
    moved = 0
    for source in range(state.size.size):
        end = memory.made[source]
        for n in range(max(memory.done[source], end - KEPT), end):
            offer = n & (KEPT - 1)
            cluster, full = memory.offered[source, offer], memory.target[source, offer]
            if cluster < 0 or state.block[cluster] != source:
                continue
            weight = state.weight[cluster]
            if state.size[source] == weight:
                continue
            spare = state.size[source] - weight >= state.least[source]
            for k in range(KEPT):
                other, target = memory.offered[full, k], memory.target[full, k]
                if other < 0 or state.block[other] != full or state.weight[other] != weight:
                    continue
                room = spare and state.size[target] + weight <= state.cap[target]
                if target != source and not room:
                    continue
                allowed = sweep.temperature * memory.draw[full, k]
                memory.offered[full, k] = -1
                if score_of(state, centroids, sweep, other, target) + allowed <= LEAST_GAIN:
                    continue
                allowed = sweep.temperature * memory.draw[source, offer]
                memory.offered[source, offer] = -1
                if score_of(state, centroids, sweep, cluster, full) + allowed <= LEAST_GAIN:
                    break
                for step in range(2):
                    moves, block = (cluster, full) if step == 0 else (other, target)
                    if sweep.pull > 0.0:
                        update_centroids(
                            centroids, state.size, moves, weight, state.block[moves], block
                        )
                    move(state, moves, block)
                    memory.best[moves] = UNKNOWN
                    for s in range(state.offset[moves], state.offset[moves + 1]):
                        memory.best[state.neighbours[s]] = UNKNOWN
                moved += 1
                break
        memory.done[source] = end
    return moved
