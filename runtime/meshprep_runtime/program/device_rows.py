"""Rows of dats in the memory of a GPU: packed, and put in their places, by loops on it.

Messages lie on the host: buffers are copied there and back.
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

PACK, PUT, ADD = "pack", "put", "add"
_ACCESS = {PACK: Access.READ, PUT: Access.WRITE, ADD: Access.INC}
_BODY = {PACK: "buffer[k] = row[k]", PUT: "row[k] = buffer[k]", ADD: "row[k] += buffer[k]"}


class DeviceRows:
    """Some rows of a dat, and what moves them; made once for a list of rows.

    ``dat`` is any with its set, dim, dtype and layout; each of its ``n`` rows is at most once in
    ``rows``.
    """

    def __init__(self, dat: ProgramDat, rows: NDArray[np.int32], n: int) -> None:
        self._of = dat.set, dat.dim, dat.dtype, dat.layout
        self._map = SetMap("rows->points", "rows", "points", rows.reshape(-1, 1))
        self._sizes = {"rows": rows.size, "points": n}
        self._buffer = current().array(np.zeros((rows.size, dat.dim), dat.dtype))
        self._loops: dict[str, Callable[..., None]] = {}

    def pack(self, dat: ProgramDat, values: NDArray[Any]) -> None:
        """Fetch the rows; waits for the GPU."""
        self._run(PACK, dat)
        found = self._buffer.get()
        values[...] = found.T if dat.axis else found

    def put(self, dat: ProgramDat, values: NDArray[Any], add: bool) -> None:
        """Write the rows, or add to them; queued."""
        self._buffer.set(np.ascontiguousarray(values.T if dat.axis else values))
        self._run(ADD if add else PUT, dat)

    def _run(self, what: str, dat: ProgramDat) -> None:
        if what not in self._loops:
            self._loops[what] = self._loop(what)
        self._loops[what](row=dat.current(), buffer=self._buffer)

    def _loop(self, what: str) -> ParLoop:
        _, dim, dtype, layout = self._of
        name, kind = f"{what}_rows", dtype.str[1:]
        direct = Access.WRITE if what == PACK else Access.READ
        loop = Loop(
            name,
            "rows",
            (
                Arg("row", _ACCESS[what], dim, kind, "rows->points", (0,)),
                Arg("buffer", direct, dim, kind),
            ),
        )
        plan = LoopPlan(loop, self._sizes, {"rows->points": self._map}, {}, "")
        c_type = C_TYPES[kind]
        row, buffer = ("const ", "") if what == PACK else ("", "const ")
        text = f"__device__ void {name}({row}{c_type}* row, {buffer}{c_type}* buffer) {{\n"
        text += f"  for (int k = 0; k < {dim}; ++k) {_BODY[what]};\n}}\n"
        # A row stands once, so that one colour is enough.
        strategy = "global-atomics" if what == PACK else "global-colouring"
        return ParLoop(DeviceFunction(name, text), plan, strategy=strategy, layout={"row": layout})
