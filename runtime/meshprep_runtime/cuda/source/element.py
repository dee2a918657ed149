"""A kernel in Python as a C function: by numba-cuda for a device, by numba for this CPU.

The text of a loop only declares the function. For CUDA it is linked as LTO-IR, and inlined;
a run on the CPU calls it by its address.
"""

import dis
import re
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..._numba.compiling import INNER
from ..._numba.device import compiling_for, device_tools, import_numba_cuda
from ..._numba.installed import import_numba
from ..._numba.messages import unknown_ufunc_in
from ...errors import MeshprepError
from ...kernel.analysis import fresh, reach, takes_single
from ...kernel.bind import Slot
from ...kernel.compiler import compile_error
from ...kernel.rows import Row
from ...plan import LoopPlan
from .shape import C_TYPES

# The function's name in the text.
NAME = "meshprep_element"
# Compiled kernels of a process.
MAX_KEPT = 256

# Compiled kernels, by all that they depend on.
_kept: dict[Hashable, Any] = {}
# A lock that a thread may take twice: a signal handler may compile while its thread does.
_keeping = threading.RLock()


@dataclass(frozen=True, eq=False)
class PythonKernel:
    """A kernel in Python, as a ParLoop takes it."""

    function: Callable[..., None]
    plan: LoopPlan
    slots: tuple[Slot, ...]
    rows: tuple[Row, ...]  # one for each parameter
    # On a device: sums in another order, approximate roots and quotients of ``f4``.
    fastmath: bool = False

    @property
    def name(self) -> str:
        """The function's name in the text."""
        return NAME

    @property
    def text(self) -> str:
        """The declaration of the function, the same for all kernels of a loop."""
        parameters = []
        for row in self.rows:
            const = "const " if row.only_read else ""
            parameters.append(f"{const}{C_TYPES[self._dtype(row).str[1:]]}*")
        return f"MP_EXTERN({NAME}, {', '.join(parameters)});"

    def ltoir(self, arch: str = "sm_90") -> bytes:
        """LTO-IR for an architecture, by numba-cuda; no device and no driver are needed.

        Raises MissingPackageError without numba-cuda and NVIDIA's NVVM and NVRTC. Raises
        MeshprepError for a kernel that numba-cuda does not compile, that raises or asserts
        (a device cannot), or that changes a row that it only reads. Takes about a second,
        once in a process for a kernel and architecture; globals are those of that time.
        """
        numbers = re.fullmatch(r"sm_(\d+)(\d)[af]?", arch)
        if not numbers:
            raise MeshprepError(f"architecture '{arch}' is unknown: use one such as sm_90")
        capability = (int(numbers[1]), int(numbers[2]))
        target = ("device", capability, self.fastmath)
        code: bytes = self._once(target, lambda: self._compile_for_device(capability))
        return code

    def address(self) -> int:
        """The address of the machine code for this CPU, valid as long as the process."""
        address: int = self._once(("host",), self._compile_for_host).address
        return address

    def _dtype(self, row: Row) -> np.dtype:
        return self.slots[int(row.array[1:])].dtype

    def _once(self, target: Hashable, make: Callable[[], Any]) -> Any:
        """``make()``, once for kernels with the same content and target."""
        rows = tuple((self._dtype(r).str, r.dim, r.only_read) for r in self.rows)
        key = (target, rows, self._single, reach(self.function))
        with _keeping:
            if key not in _kept:
                if len(_kept) >= MAX_KEPT:
                    # Code for this CPU stays, since its address is in use.
                    device = (k for k in _kept if k[0] != ("host",))  # type: ignore[index]
                    _kept.pop(next(device, None), None)
                _kept[key] = self._with_explained_errors(make)
            return _kept[key]

    @property
    def _single(self) -> bool:
        return takes_single(s.dtype for s in self.slots)

    def _with_explained_errors(self, make: Callable[[], Any]) -> Any:
        """``make()``; raises MeshprepError for the errors of numba."""
        try:
            return make()
        except MeshprepError:
            raise
        except Exception as error:  # numba's errors and, for some bytecode, others
            unknown = unknown_ufunc_in(error)
            if unknown:
                raise MeshprepError(
                    f"kernel '{self.function.__name__}' uses np.{unknown}, which "
                    "numba-cuda does not have: use a function of math, or an operator"
                ) from error
            raise compile_error(
                kernel=self.function, loop=self.plan.loop, slots=self.slots, error=error
            ) from error

    def _compile_for_device(self, capability: tuple[int, int]) -> bytes:
        cuda = import_numba_cuda()

        def compile_one(function: Any, own: dict[str, Any]) -> Any:
            self._refuse_raising(function)
            return cuda.jit(device=True, forceinline=True, fastmath=self.fastmath)(function)

        with compiling_for(capability):
            entry, types = self._entry(compile_one, device_tools())
            code, _ = cuda.compile(
                entry,
                types,
                device=True,
                abi="c",
                abi_info={"abi_name": NAME},
                output="ltoir",
                cc=capability,
                forceinline=True,
                fastmath=self.fastmath,
            )
        return bytes(code)

    def _compile_for_host(self) -> Any:
        numba = import_numba()
        from ..._numba.lowering import HOST

        options = {"error_model": "numpy"}

        def compile_one(function: Any, own: dict[str, Any]) -> Any:
            self._refuse_raising(function)
            return numba.jit(**options | own | INNER)(function)

        entry, types = self._entry(compile_one, HOST)
        return numba.cfunc(types, **options)(entry)

    def _entry(
        self, compile_one: Callable[..., Any], tools: SimpleNamespace
    ) -> tuple[Any, Any]:
        """A function of pointers that hands rows to the kernel, and its signature."""
        import numba

        from ..._numba.lowering import row_at_pointer

        scope: dict[str, Any] = {"kernel": fresh(self.function, compile_one, self._single)}
        arguments = []
        # Rows of one length share a function that makes them.
        for n, row in enumerate(self.rows):
            name = f"row{row.dim}_{row.only_read}"
            scope[name] = row_at_pointer(tools, row.dim, bool(row.only_read))
            arguments.append(f"{name}(p{n})")
        parameters = ", ".join(f"p{n}" for n in range(len(self.rows)))
        exec(f"def entry({parameters}):\n    kernel({', '.join(arguments)})\n", scope)
        # The C text hands over pointers alone.
        pointers = [
            numba.types.CPointer(numba.from_dtype(self._dtype(row))) for row in self.rows
        ]
        return scope["entry"], numba.types.void(*pointers)

    def _refuse_raising(self, function: Any) -> None:
        if any(i.opname == "RAISE_VARARGS" for i in dis.get_instructions(function)):
            raise MeshprepError(
                f"loop '{self.plan.loop.name}': function '{function.__name__}' raises or "
                "asserts, which a GPU cannot: leave that out, and mark what is wrong in a "
                "dat"
            )
