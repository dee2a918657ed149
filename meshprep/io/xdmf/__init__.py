"""XDMF files: grids whose numbers are text, or in HDF5 files beside them."""

from ..cell_blocks import block_format
from ..format import Capabilities, Values
from ..format.names import FIELD_DATA, GRID, STEP, TIME, XDMF_GRID
from .read import read
from .topology import CELL_TYPES
from .write import write

__all__ = ["FORMAT"]

# Files have whole numbers of 64 bits, and double precision.
_VALUES = Values(
    cast=(
        ("int8", "int64"),
        ("int16", "int64"),
        ("uint8", "int64"),
        ("uint16", "int64"),
        ("uint32", "int64"),
        ("float32", "float64"),
    )
)

FORMAT = block_format(
    read=read,
    write=write,
    carries=Capabilities(
        cell_types=CELL_TYPES,
        node_values=_VALUES,
        cell_values=_VALUES,
        step=STEP,
        part=GRID,
        tag="*",
        node_tag="*",
        plane=True,
        extras=(TIME, FIELD_DATA, XDMF_GRID),
    ),
)
