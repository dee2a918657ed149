"""Periodic links on their way out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...mesh import Mesh
from .layout import is_periodic
from .raw import RawPeriodic


def links(mesh: Mesh, node_label: NDArray[np.int64]) -> list[RawPeriodic]:
    """The links of a mesh, with the numbers that the nodes have in the file."""
    return [
        RawPeriodic(
            int(i.attrs["dim"]),
            int(i.attrs["slave"]),
            int(i.attrs["master"]),
            tuple(float(x) for x in i.attrs.get("affine", ())),
            node_label[i.index],
        )
        for i in mesh.lists
        if is_periodic(i)
    ]
