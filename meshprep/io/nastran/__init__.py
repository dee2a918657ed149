"""Decks of Nastran: the mesh of the bulk data, and what of a deck is left out."""

from ...mesh import Mesh
from ..cell_blocks import block_format
from ..cell_blocks.limits import usual_limits
from ..format import Capabilities, Values
from ..format.reduce import without_counts
from .elements import CARDS
from .read import read
from .write import write

__all__ = ["FORMAT"]

_NUMBERS = Values(kinds="", numbers=2**63 - 1)


def _without_counts(mesh: Mesh) -> tuple[Mesh, list[str]]:
    """The mesh without numbers that only count, and the losses of every format."""
    return usual_limits(without_counts(mesh))


FORMAT = block_format(
    read=read,
    write=write,
    carries=Capabilities(
        cell_types=tuple(CARDS),
        node_values=_NUMBERS,
        cell_values=_NUMBERS,
        tag="nastran:ref",
        node_tag="nastran:ref",
    ),
    limits=_without_counts,
    digits=10,
    overlaid=True,
)
