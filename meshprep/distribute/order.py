"""The order of what each part owns: the serial pipeline, inside core and inside boundary."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import Bools, Int32s, Int64s

from ..kernels import kernel
from ..loops.options import Options
from ..pipeline.blocks import cut
from ..pipeline.numbering import Numbering
from ..pipeline.order import order_for_locality
from ..reorder import FOLLOW, propagate
from .halos import OwnedRuns
from .ranks import ALONE, Ranks, agreed, in_turn, own_parts
from .subject import SplitSubject
from .together import (
    TOGETHER,
    BlockEnds,
    JoinedParts,
    Orders,
    Parts,
    in_order_of_cuts,
    order_together,
    places_of,
    small_parts,
)


@dataclass(frozen=True, eq=False)
class OrderedParts:
    """The owned elements of every part in their final order, and how loops are cut there."""

    runs: Mapping[str, OwnedRuns]  # by set name
    blocks: list[BlockEnds]  # blocks of owned elements; none crosses from core to boundary


def order_parts(
    subject: SplitSubject,
    runs: Mapping[str, OwnedRuns],
    options: Options,
    progress: Callable[[float], None] = lambda share: None,
    ranks: Ranks = ALONE,
    own: range | None = None,
) -> OrderedParts:
    """Order every part's owned elements by the steps of the serial pipeline.

    Core and boundary of each set stand one after the other, as the cell types of a mixed mesh do,
    and so no block has elements of both. O(size of the mesh), and the memory of a part for each
    thread. Ranks share the parts, and all have the result; with ``own``, each rank orders these
    parts of its own runs. Where the subject has blocks, it is in the order that parts keep.
    """
    n_made = next(iter(runs.values())).offset.size - 1 if own is None else len(own)
    if subject.blocks:
        return OrderedParts(runs, kept_blocks(subject, runs, n_made, options))
    place = {name: run.number for name, run in runs.items()}
    elements = {name: run.elements.copy() for name, run in runs.items()}
    mine = own_parts(ranks, n_made) if own is None else own
    small = agreed(ranks, lambda: small_parts(subject, runs, options))

    def ordered(parts: Parts) -> tuple[Parts, Orders, list[BlockEnds]]:
        local = JoinedParts.of(subject, runs, place, parts)
        if small[parts[0]]:
            return parts, *order_together(subject, local, options)
        order, blocks = _ordered(subject, local, options)
        return parts, order, [blocks]

    groups = agreed(ranks, lambda: _groups(subject, runs, mine, small))
    found = agreed(ranks, lambda: list(in_turn(ordered, groups, progress)))
    blocks: list[BlockEnds] = [{}] * n_made
    every = chain.from_iterable(ranks.allgather(found)) if own is None else found
    for parts, order, ends in every:
        for part, one in zip(parts.tolist(), ends, strict=True):
            blocks[part] = one
        for name, new_to_old in order.items():
            at = places_of(runs[name], parts)
            elements[name][at] = runs[name].elements[at[new_to_old]]
    done = {name: replace(run, elements=elements[name]) for name, run in runs.items()}
    return OrderedParts(done, blocks)


def _groups(
    subject: SplitSubject, runs: Mapping[str, OwnedRuns], mine: range, small: Bools
) -> list[Parts]:
    """The parts that are ordered together: some small ones, or a larger one alone.

    What owns nothing keeps its order, and so do rows where the part owns no point of their map.
    """
    owned = {name: np.diff(run.offset) for name, run in runs.items()}
    total = np.sum(list(owned.values()), axis=0)
    wanted = total > 0
    for m in subject.maps.values():
        wanted &= (owned[m.from_set] == 0) | (owned[m.to_set] > 0)
    parts = np.arange(mine.start, mine.stop)[wanted[mine.start : mine.stop]]
    alone = parts[~small[parts]]
    parts = parts[small[parts]]
    run = np.cumsum(total[parts]) // TOGETHER
    together = np.split(parts, np.flatnonzero(np.diff(run)) + 1) if parts.size else []
    return [*alone[:, None], *together]


def refuse_lists(subject: SplitSubject, options: Options) -> None:
    """Raise MeshprepError for wishes that blocks of parts cannot have."""
    if options.own_blocks or any(spec.options.get("own_blocks") for spec in subject.specs):
        raise MeshprepError("blocks of parts are runs of their order: leave own_blocks out")
    if options.given_to_partitioner.get("staged_bytes"):
        raise MeshprepError(
            "blocks of parts stage copies besides what they are cut by: leave staged_bytes out, "
            "and take smaller blocks"
        )
    if options.sort_by_colour:
        raise MeshprepError("blocks of parts are not sorted by colour: leave sort_by_colour out")


def _ordered(
    subject: SplitSubject, part: JoinedParts, options: Options
) -> tuple[Orders, BlockEnds]:
    """The order of a part's sets, and the blocks of its loops."""
    local = part.mesh_in_classes()
    numbering = Numbering.of(local)
    chosen = [(spec.loop, options.for_names(spec.options)) for spec in subject.specs]
    numbering, _ = order_for_locality(numbering, chosen)
    blocks = {}
    for spec in in_order_of_cuts(subject):
        numbering, found = cut(numbering, spec, options.for_names(spec.options))
        if found.elements is not None:
            raise MeshprepError(
                f"loop '{spec.loop.name}': another loop has ordered its set, and blocks of parts "
                "are runs of that order: leave 'partition' out of its table"
            )
        blocks[spec.loop.name] = found.block_offset
    follow = FOLLOW[chosen[0][1].target]
    numbering = numbering.following(propagate(local, numbering.known(), follow))
    return {name: numbering.ordering(name).new_to_old for name in subject.sizes}, blocks


# Options that change neither orders nor blocks.
OTHERS = ("block_size", "seed", "proof")


def with_kept_blocks(subject: SplitSubject, options: Options) -> SplitSubject:
    """The subject without its blocks where options ask for others than it has."""
    plain = replace(Options(), **{name: getattr(options, name) for name in OTHERS})
    sizes = {spec.options.get("block_size") for spec in subject.specs}
    if options == plain and options.block_size in (None, *(sizes if len(sizes) == 1 else ())):
        return subject
    return replace(subject.with_block_size(options.block_size), blocks={})


def kept_blocks(
    subject: SplitSubject, runs: Mapping[str, OwnedRuns], parts: int, options: Options
) -> list[dict[str, Int64s]]:
    """Block ends of each loop in each part: the blocks of the file, cut to the part.

    Pieces of blocks are joined with what follows them while there is room. O(owned elements).
    """
    found: list[dict[str, Int64s]] = [{} for _ in range(parts)]
    for spec in subject.specs:
        name, run = spec.loop.name, runs[spec.loop.over]
        size = options.for_names(spec.options).block_elements
        for part, ends in enumerate(found):
            core = int(run.core[part])
            ends[name] = _joined_pieces(run.of(part), core, subject.blocks[name], size)
    return found


@kernel
def _joined_pieces(elements: Int32s, core: int, block: NDArray[np.integer], size: int) -> Int64s:
    """0, and where blocks end: elements of one block stay together, core and boundary do not."""
    ends = np.zeros(elements.size + 1, np.int64)
    n, begin, i = 0, 0, 0
    while i < elements.size:
        limit = core if i < core else elements.size
        j = i + 1
        while j < limit and block[elements[j]] == block[elements[i]]:
            j += 1
        if i > begin and (i == core or j - begin > size):
            n += 1
            ends[n], begin = i, i
        i = j
    if elements.size > begin:
        n += 1
        ends[n] = elements.size
    return ends[: n + 1].copy()
