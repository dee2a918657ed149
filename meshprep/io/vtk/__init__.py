"""Files of VTK, legacy and VTU, which share cells and notes on arrays."""

from ..cell_blocks import block_format
from ..format import Capabilities, Values
from ..format.names import FIELD_DATA, LOOKUP_TABLES, VTK_ARRAYS
from . import legacy_read, legacy_write, vtu
from .cells import CELL_TYPES

__all__ = ["VTK", "VTU"]

_VALUES = Values(kinds="iufU")


def _carries(*extras: str) -> Capabilities:
    """What both carry: arrays of any kind, groups as arrays of whole numbers."""
    return Capabilities(
        cell_types=CELL_TYPES,
        node_values=_VALUES,
        cell_values=_VALUES,
        tag="*",
        node_tag="*",
        extras=extras,
    )


VTU = block_format(read=vtu.read, write=vtu.write, carries=_carries(VTK_ARRAYS, FIELD_DATA))
VTK = block_format(
    read=legacy_read.read,
    write=legacy_write.write,
    carries=_carries(VTK_ARRAYS, FIELD_DATA, LOOKUP_TABLES),
)
