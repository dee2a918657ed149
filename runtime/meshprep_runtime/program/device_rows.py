"""Pack and unpack rows of dats in the memory of a GPU, by loops that run there.

Messages lie on the host: the packed rows are copied there and back.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cuda.device import current
from ..cuda.source.shape import C_TYPES
from ..kernel.analysis import DeviceFunction
from ..loop import ParLoop
from ..plan.model import LoopPlan
from ..types.loops import Access, Arg, Loop
from ..types.maps import SetMap
from .dat import ProgramDat

# The three loops: from the dat to the buffer, back, and back by addition.
PACK = "pack"
PUT = "put"
ADD = "add"
# How each loop accesses the dat.
ACCESS_OF_ROW = {PACK: Access.READ, PUT: Access.WRITE, ADD: Access.INC}
# What each loop does with component k.
STATEMENT = {
    PACK: "buffer[k] = row[k]",
    PUT: "row[k] = buffer[k]",
    ADD: "row[k] += buffer[k]",
}


class DeviceRows:
    """Some rows of a dat, with a buffer and the loops that move them.

    Made once for a list of rows. ``dat`` may be any dat of the same set, dim, dtype and
    layout; ``rows`` names each of its ``n`` rows at most once.
    """

    def __init__(self, dat: ProgramDat, rows: NDArray[np.int32], n: int) -> None:
        self._dim = dat.dim
        self._dtype = dat.dtype
        self._layout = dat.layout
        self._map = SetMap(
            name="rows->points", from_set="rows", to_set="points", table=rows.reshape(-1, 1)
        )
        self._sizes = {"rows": rows.size, "points": n}
        self._buffer = current().array(np.zeros((rows.size, dat.dim), dat.dtype))
        self._loops: dict[str, Callable[..., None]] = {}

    def pack(self, dat: ProgramDat, values: NDArray[Any]) -> None:
        """Copy the rows of the dat into ``values``; waits for the GPU."""
        self._run(PACK, dat)
        rows = self._buffer.get()
        if dat.axis:
            rows = rows.T
        values[...] = rows

    def put(self, dat: ProgramDat, values: NDArray[Any], add: bool) -> None:
        """Write ``values`` to the rows of the dat, or add them; queued on the GPU."""
        rows = values
        if dat.axis:
            rows = values.T
        self._buffer.set(np.ascontiguousarray(rows))
        if add:
            self._run(ADD, dat)
        else:
            self._run(PUT, dat)

    def _run(self, task: str, dat: ProgramDat) -> None:
        if task not in self._loops:
            self._loops[task] = self._make_loop(task)
        self._loops[task](row=dat.current(), buffer=self._buffer)

    def _make_loop(self, task: str) -> ParLoop:
        """A loop over the rows that packs, puts or adds them."""
        name = f"{task}_rows"
        dtype = self._dtype.str[1:]
        if task == PACK:
            access_of_buffer = Access.WRITE
            const_row = "const "
            const_buffer = ""
            strategy = "global-atomics"
        else:
            access_of_buffer = Access.READ
            const_row = ""
            const_buffer = "const "
            # One colour is enough, as each row occurs once.
            strategy = "global-colouring"
        # Describe it as a loop over the rows that are sent or received.
        row = Arg(
            name="row",
            access=ACCESS_OF_ROW[task],
            dim=self._dim,
            dtype=dtype,
            map="rows->points",
            index=(0,),
        )
        buffer = Arg(name="buffer", access=access_of_buffer, dim=self._dim, dtype=dtype)
        loop = Loop(name, "rows", (row, buffer))
        plan = LoopPlan(
            loop=loop,
            sizes=self._sizes,
            maps={"rows->points": self._map},
            variants={},
            default="",
        )
        # Write the function of one row.
        c_type = C_TYPES[dtype]
        parameters = f"{const_row}{c_type}* row, {const_buffer}{c_type}* buffer"
        text = f"__device__ void {name}({parameters}) {{\n"
        text += f"  for (int k = 0; k < {self._dim}; ++k) {STATEMENT[task]};\n}}\n"
        return ParLoop(
            kernel=DeviceFunction(name, text),
            plan=plan,
            strategy=strategy,
            layout={"row": self._layout},
        )
