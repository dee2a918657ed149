"""The elements of a loop on one part, class by class: core in pieces, boundary, exec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..cpu.executor import StrategyAndVariant
from ..cpu.schedule import Ranges, Schedule, elements
from ..errors import MeshprepError
from ..plan.parts import LoopPart, SetPart

# Core runs in at most so many pieces, none smaller; messages are looked after in between.
MOST_PIECES, LEAST_ELEMENTS, LEAST_BLOCKS = 16, 2048, 4


@dataclass(frozen=True, eq=False)
class ClassRanges:
    """Parts of a schedule."""

    core: tuple[Ranges, ...]  # in pieces
    # None where there are no elements; owned is core and boundary in one.
    boundary: Ranges | None
    exec: Ranges | None
    owned: Ranges | None


def class_ranges(
    way: StrategyAndVariant, schedule: Schedule, part: LoopPart, of_set: SetPart
) -> ClassRanges:
    """Where the classes lie in the schedule of a strategy.

    Raises MeshprepError for a strategy that does not run class after class.
    """
    strategy, variant = way
    between: Callable[[int, int], Ranges]
    if strategy == "sequential":
        end = part.plan.sizes[part.plan.loop.over]
        core, owned, between, least = of_set.core, of_set.owned, elements, LEAST_ELEMENTS
    elif strategy in ("hierarchical", "block-permute") and variant is not None:
        colours = part.colours[variant.name]
        at = [colours.core, colours.owned, variant.n_block_colours]
        core, owned, end = variant.block_colour_offset[at].tolist()
        between, least = schedule.between, LEAST_BLOCKS
    else:
        raise MeshprepError(
            f"loop '{part.plan.loop.name}': strategy '{strategy}' cannot run a part of a mesh, "
            "class after class: use sequential, hierarchical or block-permute"
        )
    count = max(min(MOST_PIECES, core // least), 1)
    cuts = np.linspace(0, core, count + 1).astype(int).tolist() if core else []
    return ClassRanges(
        tuple(between(first, last) for first, last in pairwise(cuts)),
        *(
            between(first, last) if last > first else None
            for first, last in ((core, owned), (owned, end), (0, owned))
        ),
    )
