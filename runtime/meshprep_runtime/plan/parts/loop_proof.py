"""The proof of the loops of parts: what can be seen in each part alone."""

from collections.abc import Iterator

import numpy as np

from ...types.loops import Access
from ..checks.proof import prove, prove_ranges
from ..file.schema import RANGES
from .batch import Numbers, PartBatch, SetBatch, begins


def loop_findings(batch: PartBatch) -> list[str]:
    """What is wrong with the loops of some parts, on their own; several threads may do so."""
    return [text for name in batch.loops for text in _of_loop(name, batch)]


def _of_loop(name: str, batch: PartBatch) -> list[str]:
    found = list(_of_joined_loop(name, batch))
    if not found or len(batch.parts) == 1:
        return found
    # numbers in the text are those of the part
    alone = [batch.alone(place) for place in range(len(batch.parts))]
    return [text for one in alone for text in _of_loop(name, one)] or found


def _of_joined_loop(name: str, batch: PartBatch) -> Iterator[str]:
    where, loop = f"part {batch.parts.start}, ", batch.loops[name]
    increments, over = batch.description["loops"][name]["increments"], batch.sets[loop.over]
    if increments != "exec" and any(a.conflicts and a.access is not Access.INC for a in loop.args):
        yield f"{where}loop '{name}': sends back what is no increment"
        return
    plan, size = batch.joined_loops[name], batch.loop_rows(name)
    for label, variant in plan.variants.items():
        yield from (where + finding for finding in prove(plan, variant))
        at = f"loops/{name}/{label}"
        blocks = batch.rows[f"{at}/block_order"]
        run, run_of_end = _classes(variant.block_offset, blocks, size, over)
        classes = batch.array(f"{at}/classes", "<i8").reshape(-1, 2)
        colour = variant.colour_of_block()
        wanted = (colour[:, None] >= np.repeat(classes, blocks, axis=0)).sum(axis=1)
        if (run != run_of_end).any():
            yield f"{where}loop '{name}': a block crosses from one class to another"
        elif (run != wanted).any():
            yield f"{where}loop '{name}': a block has a colour of another class"
    if plan.ranges is not None:
        yield from (where + finding for finding in prove_ranges(plan, plan.ranges))
        count = batch.rows[f"loops/{name}/{RANGES}/order"]
        run, run_of_end = _classes(plan.ranges.offset, count, size, over)
        part = np.repeat(np.arange(count.size), count)
        falls = (np.diff(run[plan.ranges.order]) < 0) & (part[1:] == part[:-1])
        if (run != run_of_end).any():
            yield f"{where}loop '{name}': a range crosses from one class to another"
        elif falls.any():
            yield f"{where}loop '{name}': a range runs before one of a lower class"


def _classes(
    offset: Numbers, count: Numbers, size: Numbers, over: SetBatch
) -> tuple[Numbers, Numbers]:
    """Classes of the first and last element of runs: 0 core, 1 boundary, 2 exec elements."""
    begin, core, owned = (np.repeat(v, count) for v in (begins(size), over.core, over.owned))
    first, last = offset[:-1] - begin, offset[1:] - begin - 1
    run, run_of_end = ((v >= core) * 1 + (v >= owned) for v in (first, last))
    return run, run_of_end
