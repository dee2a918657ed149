"""The registry of partitioners, which share one signature.

``partition(problem, name, options)`` runs the partitioner of that name.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.ordering import Ordering

from ..registry.entries import (
    LoadedEntries,
    RegistryEntry,
    import_from,
    in_one_line,
    named_errors,
)
from ..registry.partitioners import PARTITIONERS as NAMES
from ..registry.partitioners import is_given
from .blocks_of import BlockProblem, Blocks
from .given import TAKEN
from .options import Option, Partitioner, effective


def _partitioner_of_entry(entry: RegistryEntry) -> Partitioner:
    """The partitioner of an entry of meshprep."""
    options: Mapping[str, Option] = {}
    if entry.options:
        options = import_from(entry.options)
    return Partitioner(
        function=import_from(entry.function), options=options, description=entry.help
    )


def _partitioner_of_package(partitioner: Any, described: str) -> Partitioner:
    """The partitioner that another package adds, whose results are checked."""
    if not isinstance(partitioner, Partitioner):
        raise MeshprepError(
            f"{described} is a {type(partitioner).__name__}: its entry point must name a "
            "meshprep.partitioning.Partitioner"
        )
    for name, option in partitioner.options.items():
        if not isinstance(option, Option):
            raise MeshprepError(
                f"{described}: option '{name}' is a {type(option).__name__}: it must be a "
                "meshprep.partitioning.Option"
            )
    return replace(
        partitioner, function=partial(_run_checked_partitioner, partitioner, described)
    )


def _run_checked_partitioner(
    partitioner: Partitioner,
    described: str,
    problem: BlockProblem,
    options: Mapping[str, Any],
) -> Blocks:
    """Run the partitioner of another package; raise MeshprepError for wrong blocks."""
    try:
        blocks = partitioner.function(problem, options)
    except MeshprepError:
        raise
    except Exception as error:
        raise MeshprepError(
            f"{described} failed: {in_one_line(error)}: choose another partitioner"
        ) from error
    if not isinstance(blocks, Blocks):
        raise MeshprepError(
            f"{described} gave a {type(blocks).__name__}: it must give "
            "meshprep.partitioning.Blocks, which blocks_of makes of a block for each "
            "element"
        )
    with named_errors(described):
        return _checked_blocks(blocks, problem)


def _checked_blocks(blocks: Blocks, problem: BlockProblem) -> Blocks:
    """The blocks with arrays of the usual types; raise MeshprepError for wrong blocks."""
    new_to_old = Ordering.from_new_to_old(np.asarray(blocks.new_to_old)).new_to_old
    if new_to_old.size != problem.n:
        raise MeshprepError(
            f"the blocks hold {new_to_old.size} elements, but there are {problem.n}"
        )
    offset = np.asarray(blocks.block_offset)
    if offset.ndim != 1 or offset.dtype.kind not in "iu" or not offset.size:
        raise MeshprepError("block_offset must be a row of whole numbers")
    offset = offset.astype(np.int64)
    if offset[0] != 0 or offset[-1] != problem.n:
        raise MeshprepError(f"block_offset must go from 0 to {problem.n}")
    sizes = np.diff(offset)
    if (sizes < 1).any():
        raise MeshprepError(f"block {int(sizes.argmin())} has no elements")
    if (sizes > problem.block_size).any():
        largest = int(sizes.argmax())
        raise MeshprepError(
            f"block {largest} has {sizes[largest]} elements, more than the block size "
            f"{problem.block_size}"
        )
    for name, value in blocks.notes.items():
        if not isinstance(value, int | float):
            raise MeshprepError(f"note '{name}' is no number")
    return Blocks(new_to_old, offset, dict(blocks.notes))


PARTITIONERS: LoadedEntries[Partitioner] = LoadedEntries(
    registry=NAMES,
    from_entry=_partitioner_of_entry,
    from_package=_partitioner_of_package,
)


def partitioner_named(name: str) -> Partitioner:
    """The partitioner of a name, which may stand for blocks that are given."""
    if is_given(name):
        return TAKEN
    return PARTITIONERS[name]


def partition(
    problem: BlockProblem, name: str, options: Mapping[str, object] | None = None
) -> Blocks:
    """Cut the elements into blocks of at most ``problem.block_size``.

    ``name`` is one in :data:`PARTITIONERS`; values of ``options`` may be text, as a command
    line gives them. Raises MeshprepError on an unknown partitioner or option, listing what
    there is, and on values that do not fit.
    """
    if name not in PARTITIONERS:
        raise MeshprepError(
            f"there is no partitioner '{name}': choose {', '.join(PARTITIONERS)}"
        )
    partitioner = PARTITIONERS[name]
    values = effective(partitioner.options, options, f"partitioner '{name}'")
    return partitioner.function(problem, values)
