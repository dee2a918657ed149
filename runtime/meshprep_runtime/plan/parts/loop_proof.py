"""The proof of the loops of parts, as far as it needs each part alone."""

from collections.abc import Iterator

import numpy as np

from ...types.loops import Access
from ..checks.proof import prove, prove_ranges
from ..file.schema import RANGES
from .batch import Numbers, PartBatch, SetBatch, begins


def loop_findings(batch: PartBatch) -> list[str]:
    """Findings about the loops of some parts; several threads may call it at once."""
    findings = []
    for name in batch.loops:
        findings += _findings_of_loop(name, batch)
    return findings


def _findings_of_loop(name: str, batch: PartBatch) -> list[str]:
    findings = list(_findings_of_joined_loop(name, batch))
    if not findings or len(batch.parts) == 1:
        return findings
    # Prove each part alone, so that numbers in the findings are those of the part.
    findings_of_parts = []
    for place in range(len(batch.parts)):
        findings_of_parts += _findings_of_loop(name, batch.alone(place))
    return findings_of_parts or findings


def _findings_of_joined_loop(name: str, batch: PartBatch) -> Iterator[str]:
    """Findings about the variants and ranges of a loop, of all parts as one."""
    where = f"part {batch.parts.start}, "
    loop = batch.loops[name]
    increments = batch.description["loops"][name]["increments"]
    over = batch.sets[loop.over]
    writes_without_inc = any(
        arg.conflicts and arg.access is not Access.INC for arg in loop.args
    )
    # Increments can be sent back to owners and added there; a value that is set cannot.
    if increments != "exec" and writes_without_inc:
        yield f"{where}loop '{name}': sends back what is no increment"
        return
    plan = batch.joined_loops[name]
    size = batch.loop_rows(name)

    # No block crosses a class, and each class has colours of its own.
    for label, variant in plan.variants.items():
        yield from (where + finding for finding in prove(plan, variant))
        path = f"loops/{name}/{label}"
        n_blocks = batch.rows[f"{path}/block_order"]
        first_class, last_class = _classes(
            offset=variant.block_offset, count=n_blocks, size=size, over=over
        )
        ends_of_colours = batch.array(f"{path}/classes", "<i8").reshape(-1, 2)
        ends_of_blocks = np.repeat(ends_of_colours, n_blocks, axis=0)
        colour = variant.colour_of_block()
        class_of_colour = (colour[:, None] >= ends_of_blocks).sum(axis=1)
        if (first_class != last_class).any():
            yield f"{where}loop '{name}': a block crosses from one class to another"
        elif (first_class != class_of_colour).any():
            yield f"{where}loop '{name}': a block has a colour of another class"

    # No range crosses a class, and those of lower classes run first.
    if plan.ranges is not None:
        yield from (where + finding for finding in prove_ranges(plan, plan.ranges))
        count = batch.rows[f"loops/{name}/{RANGES}/order"]
        first_class, last_class = _classes(
            offset=plan.ranges.offset, count=count, size=size, over=over
        )
        part = np.repeat(np.arange(count.size), count)
        class_in_order = first_class[plan.ranges.order]
        falls = (np.diff(class_in_order) < 0) & (part[1:] == part[:-1])
        if (first_class != last_class).any():
            yield f"{where}loop '{name}': a range crosses from one class to another"
        elif falls.any():
            yield f"{where}loop '{name}': a range runs before one of a lower class"


def _classes(
    offset: Numbers, count: Numbers, size: Numbers, over: SetBatch
) -> tuple[Numbers, Numbers]:
    """The classes of the first and last element of blocks or ranges.

    0 is core, 1 boundary, 2 exec. ``count`` is the number of blocks or ranges of each part.
    """
    begin = np.repeat(begins(size), count)
    core = np.repeat(over.core, count)
    owned = np.repeat(over.owned, count)
    first = offset[:-1] - begin
    last = offset[1:] - begin - 1
    first_class = (first >= core) * 1 + (first >= owned)
    last_class = (last >= core) * 1 + (last >= owned)
    return first_class, last_class
