"""A GPU by CuPy, of which only copies and launches are used; no other module calls CuPy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError
from .build import compiled
from .programs import Call, CudaProgram

# Bytes of shared memory that a block may have without asking for more.
USUAL_SHARED = 48 * 1024
# Kinds of memory of the CUDA runtime (``cudaMemoryType``).
DEVICE = 2
MANAGED = 3


class CupyDevice:
    """The CUDA device with a number; see :class:`.device.Device`."""

    def __init__(self, cupy: Any, number: int) -> None:
        runtime = cupy.cuda.runtime
        # Make the context that the driver's functions need.
        runtime.free(0)
        self._cupy = cupy
        self.number = number
        self.name = runtime.getDeviceProperties(number)["name"].decode()
        self.arch = f"sm_{cupy.cuda.Device(number).compute_capability}"
        self.most_shared = int(
            runtime.deviceGetAttribute(
                runtime.cudaDevAttrMaxSharedMemoryPerBlockOptin, number
            )
        )

    def load(self, program: CudaProgram) -> CupyKernel:
        driver = self._cupy.cuda.driver
        cubin = compiled(program, self.arch).cubin
        try:
            module = self._cupy.cuda.function.Module()
            module.load(cubin)
            function = module.get_function(program.name)
            # More shared memory than usual must be asked for.
            if program.shared_bytes > USUAL_SHARED:
                attribute = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                driver.funcSetAttribute(function.ptr, attribute, program.shared_bytes)
        except RuntimeError as error:
            raise self._failed(
                f"loop '{program.loop.name}' cannot be loaded", error
            ) from error
        return CupyKernel(driver, function, program)

    def upload(self, values: NDArray[Any]) -> CupyMemory:
        values = np.ascontiguousarray(values)
        memory = self._allocated(values.nbytes)
        if values.nbytes:
            self._copy(
                to=memory.pointer,
                source=values.ctypes.data,
                nbytes=values.nbytes,
                way="HostToDevice",
            )
            # The copy may still be reading an array that goes at once.
            self.wait(self.stream())
        return memory

    def array(self, values: NDArray[Any]) -> Any:
        return self._cupy.asarray(values)

    def zeros(self, shape: int | tuple[int, ...], dtype: np.dtype) -> Any:
        return self._cupy.zeros(shape, dtype)

    def copy(self, to: Any, source: Any, nbytes: int) -> None:
        self._copy(
            to=to.pointer, source=source.pointer, nbytes=nbytes, way="DeviceToDevice"
        )

    def write(self, memory: Any, values: NDArray[Any]) -> None:
        # From memory that is not pinned the copy has read its source when it returns.
        values = np.ascontiguousarray(values)
        self._copy(
            to=memory.pointer,
            source=values.ctypes.data,
            nbytes=values.nbytes,
            way="HostToDevice",
        )

    def read(self, memory: Any, into: NDArray[Any]) -> None:
        self._copy(
            to=into.ctypes.data,
            source=memory.pointer,
            nbytes=into.nbytes,
            way="DeviceToHost",
        )
        self.wait(self.stream())

    def stream(self) -> Any:
        return self._cupy.cuda.get_current_stream()

    def follow(self, stream: Any) -> None:
        self.stream().wait_event(stream.record())

    def wait(self, stream: Any) -> None:
        try:
            stream.synchronize()
        except RuntimeError as error:
            raise self._failed("a loop failed", error) from error

    def mark(self) -> Any:
        return self.stream().record()

    def seconds(self, start: Any, end: Any) -> float:
        end.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(start, end)) / 1000

    def run(self, calls: Sequence[Call]) -> None:
        stream = self.stream().ptr
        try:
            for call in calls:
                call(stream)
        except RuntimeError as error:
            raise self._failed("a loop cannot be launched", error) from error

    def record(self, calls: Sequence[Call]) -> Callable[[], None]:
        # The legacy stream cannot be recorded.
        stream = self._cupy.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            try:
                self.run(calls)
            finally:
                graph = stream.end_capture()
        launch: Callable[[], None] = graph.launch
        return launch

    def home(self, pointer: int) -> int | None:
        attributes = self._cupy.cuda.runtime.pointerGetAttributes(pointer)
        if attributes.type in (DEVICE, MANAGED):
            return int(attributes.device)
        return None

    def from_dlpack(self, value: Any) -> Any:
        return self._cupy.from_dlpack(value)

    def _allocated(self, nbytes: int) -> CupyMemory:
        try:
            return CupyMemory(self._cupy.cuda.alloc(max(nbytes, 1)))
        except MemoryError as error:
            raise self._failed(f"no room for {nbytes} bytes of a plan", error) from error

    def _copy(self, to: int, source: int, nbytes: int, way: str) -> None:
        runtime = self._cupy.cuda.runtime
        kind = getattr(runtime, f"memcpy{way}")
        try:
            runtime.memcpyAsync(to, source, nbytes, kind, self.stream().ptr)
        except RuntimeError as error:
            raise self._failed("a copy failed", error) from error

    def _failed(self, what: str, error: Exception) -> MeshprepError:
        reason = str(error).partition("\n")[0]
        return MeshprepError(f"GPU {self.number} ({self.name}): {what}: {reason}")


class CupyMemory:
    """Memory of CuPy's pool."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self.pointer = int(memory.ptr)


class CupyKernel:
    """A function of a loaded module."""

    def __init__(self, driver: Any, function: Any, program: CudaProgram) -> None:
        self._launch = driver.launchKernel
        self._driver = driver
        # Keeps its module loaded.
        self._function = function
        self._shape = (program.threads, 1, 1, program.shared_bytes)

    def prepare(self, blocks: int, arguments: Sequence[int]) -> Call:
        return _Prepared(self, blocks, arguments)

    @property
    def registers(self) -> int:
        """Registers of a thread, as the driver says."""
        attribute = self._driver.CU_FUNC_ATTRIBUTE_NUM_REGS
        return int(self._driver.funcGetAttribute(attribute, self._function.ptr))


class _Prepared:
    """A launch with its arguments packed: the driver reads eight bytes at each address."""

    def __init__(self, kernel: CupyKernel, blocks: int, arguments: Sequence[int]) -> None:
        self._kernel = kernel
        self._values = np.array(arguments, np.int64)
        # The driver takes an array of pointers to the arguments: keep both alive.
        each = self._values.itemsize
        base = self._values.ctypes.data
        self._addresses = (ctypes.c_void_p * len(arguments))(
            *(base + each * i for i in range(len(arguments)))
        )
        self._grid = (kernel._function.ptr, blocks, 1, 1, *kernel._shape)
        self._at = ctypes.addressof(self._addresses)

    def __call__(self, stream: int) -> None:
        self._kernel._launch(*self._grid, stream, self._at, 0)
