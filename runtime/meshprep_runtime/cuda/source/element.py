"""A kernel in Python as a function in C: for a device by numba-cuda, for this CPU by numba.

The text of a loop only declares it. For CUDA it is linked in as LTO-IR and inlined there; the run
on the CPU gets its address.
"""

import dis
import re
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...errors import MeshprepError, MissingPackageError
from ...kernel.analysis import INNER, fresh, reach, takes_single
from ...kernel.bind import Slot
from ...kernel.compiler import compile_error, import_numba
from ...kernel.rows import Row
from ...plan import LoopPlan
from .shape import C_TYPES

NAME = "meshprep_element"
MAX_KEPT = 256

_kept: dict[Hashable, Any] = {}
_keeping = threading.Lock()


@dataclass(frozen=True, eq=False)
class PythonKernel:
    """The body for one element, in Python, as a ParLoop takes it."""

    function: Callable[..., None]
    plan: LoopPlan
    slots: tuple[Slot, ...]
    rows: tuple[Row, ...]  # one for each parameter
    # On a device: sums in another order, roots and quotients of ``f4`` that are nearly right.
    fastmath: bool = False

    @property
    def name(self) -> str:
        """The function's name in the text, whatever it is in Python."""
        return NAME

    @property
    def text(self) -> str:
        """Its declaration: one text for all kernels of a loop."""
        types = [C_TYPES[self._dtype(r).str[1:]] for r in self.rows]
        given = [f"{'const ' * r.only_read}{t}*" for r, t in zip(self.rows, types, strict=True)]
        return f"MP_EXTERN({NAME}, {', '.join(given)});"

    def ltoir(self, arch: str = "sm_90") -> bytes:
        """LTO-IR for an architecture, by numba-cuda; no device and no driver are needed.

        Raises MissingPackageError without numba-cuda and NVIDIA's NVVM and NVRTC. Raises
        MeshprepError for a kernel that numba-cuda does not compile, that raises or asserts (a
        device cannot) or that changes what it only reads. About a second, once a kernel,
        architecture and process; globals are those of that moment.
        """
        found = re.fullmatch(r"sm_(\d+)(\d)[af]?", arch)
        if not found:
            raise MeshprepError(f"architecture '{arch}' is unknown: use one such as sm_90")
        capability = (int(found[1]), int(found[2]))
        made: bytes = self._once(
            ("device", capability, self.fastmath), lambda: self._on_device(capability)
        )
        return made

    def address(self) -> int:
        """The address of its machine code for this CPU; valid as long as the process."""
        address: int = self._once(("host",), self._on_host).address
        return address

    def _dtype(self, row: Row) -> np.dtype:
        return self.slots[int(row.array[1:])].dtype

    def _once(self, target: Hashable, make: Callable[[], Any]) -> Any:
        """What has been made already for a kernel with the same content."""
        rows = tuple((self._dtype(r).str, r.dim, r.only_read) for r in self.rows)
        key = (target, rows, self._single, reach(self.function))
        with _keeping:
            if key not in _kept:
                if len(_kept) >= MAX_KEPT:
                    # Addresses of code for this CPU are handed out for good.
                    device = (k for k in _kept if k[0] != ("host",))  # type: ignore[index]
                    _kept.pop(next(device, None), None)
                _kept[key] = self._explained(make)
            return _kept[key]

    @property
    def _single(self) -> bool:
        return takes_single(s.dtype for s in self.slots)

    def _explained(self, make: Callable[[], Any]) -> Any:
        try:
            return make()
        except MeshprepError:
            raise
        except Exception as error:  # numba's own and, for some bytecode, others.
            unknown = re.search(r"<ufunc '(\w+)'>", str(error))
            if unknown:
                raise MeshprepError(
                    f"kernel '{self.function.__name__}' uses np.{unknown[1]}, which numba-cuda "
                    "does not have: use a function of math, or an operator"
                ) from error
            raise compile_error(self.function, self.plan.loop, self.slots, error) from error

    def _on_device(self, capability: tuple[int, int]) -> bytes:
        cuda = import_numba_cuda()

        def compile_one(function: Any, own: dict[str, Any]) -> Any:
            self._refuse_raising(function)
            return cuda.jit(device=True, forceinline=True, fastmath=self.fastmath)(function)

        with _device_of(capability):
            entry, types = self._entry(compile_one, _device_tools())
            made, _ = cuda.compile(
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
        return bytes(made)

    def _on_host(self) -> Any:
        numba = import_numba()
        options = {"error_model": "numpy"}

        def compile_one(function: Any, own: dict[str, Any]) -> Any:
            self._refuse_raising(function)
            return numba.jit(**options | own | INNER)(function)

        entry, types = self._entry(compile_one, _host_tools())
        return numba.cfunc(types, **options)(entry)

    def _entry(self, compile_one: Callable[..., Any], tools: SimpleNamespace) -> tuple[Any, Any]:
        """A function of pointers that hands rows to the kernel, and its signature."""
        import numba

        scope: dict[str, Any] = {"kernel": fresh(self.function, compile_one, self._single)}
        given = []
        for n, row in enumerate(self.rows):
            name = f"row{row.dim}_{row.only_read}"
            scope[name] = _row_of(tools, row.dim, bool(row.only_read))
            given.append(f"{name}(p{n})")
        names = ", ".join(f"p{n}" for n in range(len(self.rows)))
        exec(f"def entry({names}):\n    kernel({', '.join(given)})\n", scope)
        pointers = [numba.types.CPointer(numba.from_dtype(self._dtype(row))) for row in self.rows]
        return scope["entry"], numba.types.void(*pointers)

    def _refuse_raising(self, function: Any) -> None:
        if any(i.opname == "RAISE_VARARGS" for i in dis.get_instructions(function)):
            raise MeshprepError(
                f"loop '{self.plan.loop.name}': function '{function.__name__}' raises or asserts, "
                "which a GPU cannot: leave that out, and mark what is wrong in a dat"
            )


def import_numba_cuda() -> Any:
    """``numba.cuda`` of the package numba-cuda; raises MissingPackageError without it."""
    import_numba()
    try:
        import numba_cuda  # noqa: F401
        from cuda import pathfinder
        from numba import cuda
        from numba.cuda.np import arrayobj  # noqa: F401
    except ModuleNotFoundError as error:
        raise _missing(str(error)) from error
    except AttributeError as error:
        # It looks for what newer releases of NumPy have not.
        raise _missing(f"this release does not know NumPy {np.__version__}: {error}") from error
    for name in ("nvrtc", "nvvm", "nvJitLink"):
        try:
            pathfinder.load_nvidia_dynamic_lib(name)
        except RuntimeError as error:
            raise _missing(f"no library {name}") from error
    _complete_functions()
    return cuda


def _missing(what: str) -> MissingPackageError:
    return MissingPackageError(
        f"compiling a Python kernel for a GPU needs numba-cuda and its libraries ({what}): "
        "pip install 'meshprep-runtime[check]'"
    )


def _complete_functions() -> None:
    """NumPy's names of functions that numba-cuda knows by those of ``math`` only."""
    import math

    from numba import types
    from numba.cuda.mathimpl import get_unary_impl_for_fn_and_ty
    from numba.cuda.ufuncs import ufunc_db

    def lowered(function: Any, kind: Any) -> Any:
        return lambda context, builder, sig, args: get_unary_impl_for_fn_and_ty(function, kind)(
            context, builder, sig, args
        )

    names = {np.sqrt: math.sqrt, np.exp: math.exp, np.expm1: math.expm1, np.log1p: math.log1p}
    for ufunc, function in (names | {np.absolute: math.fabs, np.fabs: math.fabs}).items():
        loops = {"f->f": lowered(function, types.float32), "d->d": lowered(function, types.float64)}
        ufunc_db().setdefault(ufunc, loops)


@contextmanager
def _device_of(capability: tuple[int, int]) -> Iterator[None]:
    """numba-cuda compiles what a kernel calls for the device at hand: here for one of this kind."""
    from numba.cuda import dispatcher
    from numba.cuda.core.compiler_lock import global_compiler_lock

    with global_compiler_lock:
        asked = dispatcher.get_current_device
        dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
        try:
            yield
        finally:
            dispatcher.get_current_device = asked


def _device_tools() -> SimpleNamespace:
    from numba import types
    from numba.cuda import cgutils  # type: ignore[attr-defined]
    from numba.cuda.extending import intrinsic
    from numba.cuda.np.arrayobj import populate_array

    return SimpleNamespace(
        cgutils=cgutils, types=types, intrinsic=intrinsic, populate_array=populate_array
    )


def _host_tools() -> SimpleNamespace:
    from numba.core import cgutils, types
    from numba.extending import intrinsic
    from numba.np.arrayobj import populate_array

    return SimpleNamespace(
        cgutils=cgutils, types=types, intrinsic=intrinsic, populate_array=populate_array
    )


def _row_of(tools: SimpleNamespace, dim: int, only_read: bool) -> Any:
    """An intrinsic that makes an array of ``dim`` values of a pointer."""
    types, cgutils = tools.types, tools.cgutils

    def row(typing: Any, base: Any) -> Any:
        array = types.Array(base.dtype, 1, "C", readonly=only_read)

        def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            size = context.get_abi_sizeof(context.get_data_type(base.dtype))
            view = cgutils.create_struct_proxy(array)(context, builder)
            tools.populate_array(
                view,
                data=args[0],
                shape=[context.get_constant(types.intp, dim)],
                strides=[context.get_constant(types.intp, size)],
                itemsize=context.get_constant(types.intp, size),
                meminfo=None,
                parent=None,
            )
            return view._getvalue()

        return array(base), make

    return tools.intrinsic(row)
