"""Cutting a set into blocks: one signature, one registry.

``partition(problem, name, options)`` runs the partitioner of that name.
"""

from collections.abc import Mapping

from meshprep_runtime.errors import MeshprepError

from . import blocks, contiguous, metis, structured
from .blocks_of import Blocks
from .options import Partitioner, effective
from .problem import BlockProblem

PARTITIONERS: dict[str, Partitioner] = {
    "blocks": Partitioner(
        blocks.blocks, blocks.OPTIONS, "bisection and annealed moves that count the loads"
    ),
    "contiguous": Partitioner(
        contiguous.contiguous, contiguous.OPTIONS, "chunks of the current order, as OP2 cuts them"
    ),
    "metis": Partitioner(
        metis.metis, metis.OPTIONS, "METIS k-way on the dual graph, then a hard cap"
    ),
    "structured": Partitioner(
        structured.structured,
        structured.OPTIONS,
        "lines, rectangles and bricks of structured meshes",
    ),
}


def partition(
    problem: BlockProblem, name: str, options: Mapping[str, object] | None = None
) -> Blocks:
    """Cut the elements into blocks of at most ``problem.block_size``.

    ``name`` is one in :data:`PARTITIONERS`; values of ``options`` may be text, as a command line
    gives them. Raises MeshprepError on an unknown partitioner or option, listing what there is, and
    on values that do not fit.
    """
    if name not in PARTITIONERS:
        raise MeshprepError(f"there is no partitioner '{name}': choose {', '.join(PARTITIONERS)}")
    chosen = PARTITIONERS[name]
    return chosen.function(problem, effective(chosen.options, options, f"partitioner '{name}'"))
