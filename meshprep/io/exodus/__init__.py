"""Exodus II files by netCDF4: element blocks keep their numbers and names.

meshio leaves these out, and node sets without names and side sets, numbers blocks from 0,
which Exodus does not allow, gives values that only some blocks have to other blocks, writes
none of cells, and takes nodes of second order for VTK's.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ...mesh import Mesh
from ..cell_blocks import block_format
from ..format import Capabilities, Values
from ..format.names import EXODUS_NOTES, STEP, STEP_DATA, TIME
from ..format.reduce import groups_by_tag, reduce
from .blocks import NAME, limits
from .read import BLOCK, USUAL_TYPE, read
from .write import write

__all__ = ["FORMAT"]

_VALUES = Values(
    kinds="f",
    widths=(1,),
    name=NAME,
    cast=(("float32", "float64"),),
    numbers=2**63 - 1,
)
_CARRIES = Capabilities(
    cell_types=tuple(USUAL_TYPE),
    node_values=_VALUES,
    cell_values=_VALUES,
    step=STEP,
    tag=BLOCK,
    group_names=True,
    lists=("point_set", "side_set"),
    list_values=True,
    plane=True,
    extras=(TIME, EXODUS_NOTES, STEP_DATA),
)


def _block_of_cell(mesh: Mesh) -> Mapping[str, NDArray[np.integer]]:
    """The element block of each cell, of which a file has one for each group."""
    return groups_by_tag(reduce(mesh, _CARRIES)[0], BLOCK)


FORMAT = block_format(
    read=read,
    write=write,
    carries=_CARRIES,
    limits=limits,
    groups=_block_of_cell,
)
