"""An emulated GPU: kernels run on the CPU under the checks of :mod:`checked`.

Memory of the device is memory of the host that only kernels and copies may touch, and what is
queued on a stream waits until somebody waits for it, as late as a GPU may be.
"""

from __future__ import annotations

import ctypes
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import ArrayLike, NDArray

from meshprep_runtime.cuda.programs import Call, CudaProgram
from meshprep_runtime.cuda.source.shape import C_TYPES
from meshprep_runtime.errors import MeshprepError

from .checked import launch_checked

ALIGNED = 256


class EmulatedDevice:
    """Stands for a GPU; see :class:`device.Device`.

    ``most_shared`` are the bytes of shared memory that a block may have, and ``number`` is what it
    calls itself.
    """

    name = "emulated"
    arch = "sm_90"

    def __init__(self, most_shared: int = 227 * 1024, number: int = 0) -> None:
        self.most_shared = most_shared
        self.number = number
        # Names of the programs loaded, and how many launches were queued one by one.
        self.loaded: list[str] = []
        self.launched = 0
        self._memory: weakref.WeakValueDictionary[int, EmulatedMemory] = (
            weakref.WeakValueDictionary()
        )
        self._stream = Stream()
        self._recording = False

    def array(self, values: ArrayLike) -> Array:
        return Array(self, np.asarray(values))

    def zeros(self, shape: int | tuple[int, ...], dtype: np.dtype) -> Array:
        return Array(self, np.zeros(shape, dtype))

    def load(self, program: CudaProgram) -> EmulatedKernel:
        if program.shared_bytes > self.most_shared:
            raise MeshprepError(f"a block cannot have {program.shared_bytes} bytes")
        self.loaded.append(program.name)
        return EmulatedKernel(self, program)

    def upload(self, values: NDArray[Any]) -> EmulatedMemory:
        self._refuse_recording("upload")
        memory = EmulatedMemory(values.nbytes)
        memory.bytes[:] = _bytes_of(values)
        self._memory[memory.pointer] = memory
        return memory

    def copy(self, to: EmulatedMemory, source: EmulatedMemory, nbytes: int) -> None:
        self._stream.add(lambda: to.bytes.__setitem__(slice(nbytes), source.bytes[:nbytes]))

    def write(self, memory: EmulatedMemory, values: NDArray[Any]) -> None:
        self._refuse_recording("write")
        content = _bytes_of(values).copy()
        self._stream.add(lambda: memory.bytes.__setitem__(slice(None), content))

    def read(self, memory: EmulatedMemory, into: NDArray[Any]) -> None:
        self._refuse_recording("read")
        self.synchronize()
        # which may be a part of an array
        content = ctypes.string_at(memory.pointer, into.nbytes)
        into.view(np.uint8).reshape(-1)[:] = np.frombuffer(content, np.uint8)

    def stream(self) -> Stream:
        return self._stream

    @contextmanager
    def on(self, stream: Stream) -> Iterator[Stream]:
        """Make another stream the current one."""
        before, self._stream = self._stream, stream
        try:
            yield stream
        finally:
            self._stream = before

    def follow(self, stream: Stream) -> None:
        until = stream.added
        self._stream.add(lambda: stream.finish(until))

    def wait(self, stream: Stream) -> None:
        stream.finish(stream.added)

    def mark(self) -> TimeMark:
        made = TimeMark(self._stream)
        self._stream.add(made.pass_by)
        return made

    def seconds(self, start: TimeMark, end: TimeMark) -> float:
        self.wait(end.stream)
        return end.time - start.time

    def run(self, calls: Sequence[Call]) -> None:
        for call in calls:
            self.launched += 1
            call(self._stream)

    def record(self, calls: Sequence[Call]) -> Callable[[], None]:
        found = Stream()
        self._recording = True
        try:
            for call in calls:
                call(found)
        finally:
            self._recording = False
        work = list(found.waiting)

        def replay() -> None:
            for one in work:
                self._stream.add(one)

        return replay

    def home(self, pointer: int) -> int | None:
        return self.number if self.span(pointer) is not None else None

    def from_dlpack(self, value: Any) -> Any:
        return value.__dlpack__()

    def synchronize(self) -> None:
        self.wait(self._stream)

    def span(self, pointer: int) -> int | None:
        """Bytes from an address to the end of its memory; None outside."""
        for begin, memory in self._memory.items():
            if begin <= pointer < begin + max(memory.bytes.size, 1):
                return begin + memory.bytes.size - pointer
        return None

    def _refuse_recording(self, what: str) -> None:
        if self._recording:
            raise MeshprepError(f"{what}: not while launches are recorded")


class Stream:
    """Work in its order, which waits."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.failed: Exception | None = None
        self.added = 0

    def add(self, work: Callable[[], None]) -> None:
        self.waiting.append(work)
        self.added += 1

    def finish(self, until: int) -> None:
        """Do what was queued first, up to that number; what fails, fails from then on."""
        if self.failed is not None:
            raise self.failed
        while self.waiting and self.added - len(self.waiting) < until:
            try:
                self.waiting.pop(0)()
            except Exception as error:
                self.failed = error
                raise


class TimeMark:
    """When a stream came by."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.time = 0.0

    def pass_by(self) -> None:
        self.time = time.perf_counter()


class EmulatedMemory:
    """Memory of the device."""

    def __init__(self, nbytes: int) -> None:
        raw = np.zeros(nbytes + ALIGNED, np.uint8)
        begin = -raw.ctypes.data % ALIGNED
        self.bytes = raw[begin : begin + nbytes]
        self.pointer = raw.ctypes.data + begin
        self._raw = raw


class Array(NDArrayOperatorsMixin):
    """An array there, as other libraries show theirs; NumPy's functions compute with it."""

    def __init__(self, device: EmulatedDevice, values: NDArray[Any]) -> None:
        self.device = device
        self.shape = values.shape
        self.dtype = values.dtype
        self.size = values.size
        self.memory = device.upload(np.ascontiguousarray(values))
        # The axes stand the other way round than in memory.
        self.turned = False
        # What a test wants told otherwise.
        self.told: dict[str, Any] = {}

    @property
    def T(self) -> Array:
        made = copy(self)
        made.shape, made.turned = self.shape[::-1], not self.turned
        return made

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        told = {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "strides": None,
            "version": 3,
        }
        if self.turned:
            told["strides"] = self._values().strides
        return told | {"data": (self.memory.pointer, False), "stream": 1} | self.told

    def reshape(self, *shape: int) -> Array:
        """The same memory in another shape."""
        made = copy(self)
        made.shape = np.empty(self.shape, np.bool_).reshape(*shape).shape
        return made

    def astype(self, dtype: np.dtype) -> Array:
        return Array(self.device, self.get().astype(dtype))

    def __float__(self) -> float:
        return float(self.get())

    def __array_ufunc__(
        self, function: Any, method: str, *given: Any, **words: Any
    ) -> Array:
        (out,) = words.pop("out", (None,))
        found = self._computed(getattr(function, method), given, words)
        if out is None:
            return found
        out._values()[...] = found.get()
        return cast(Array, out)

    def __array_function__(
        self, function: Any, types: Any, given: Any, words: Any
    ) -> Array:
        return self._computed(function, given, words)

    def _computed(self, function: Any, given: Any, words: Any) -> Array:
        if any(isinstance(one, np.ndarray) and one.ndim for one in given):
            raise TypeError("an array of the host among those of a GPU")
        on_host = [one.get() if isinstance(one, Array) else one for one in given]
        return Array(self.device, np.asarray(function(*on_host, **words)))

    def get(self) -> NDArray[Any]:
        """A copy on the host, when the current stream is done."""
        self.device.synchronize()
        return self._values().copy("C")

    def set(self, values: ArrayLike) -> None:
        given = np.asarray(values, self.dtype)
        self.device.write(
            self.memory, np.ascontiguousarray(given.T if self.turned else given)
        )

    def _values(self) -> NDArray[Any]:
        values = self.memory.bytes.view(self.dtype)
        return (
            values.reshape(self.shape[::-1]).T
            if self.turned
            else values.reshape(self.shape)
        )


class EmulatedKernel:
    """The code of a program, for g++."""

    def __init__(self, device: EmulatedDevice, program: CudaProgram) -> None:
        self._device = device
        self._program = program

    def prepare(self, blocks: int, arguments: Sequence[int]) -> Call:
        """One launch; what is not an address of the device is refused when it runs."""
        program = self._program

        def launch() -> None:
            given = list(zip(program.parameters, arguments, strict=True))
            arrays = [
                self._span(p.name, p.c_type, value)
                for p, value in given
                if p.access != "size"
            ]
            numbers = [value for p, value in given if p.access == "size"]
            launch_checked(program, blocks, arrays, numbers)

        return lambda stream: stream.add(launch)

    def _span(self, name: str, c_type: str, pointer: int) -> tuple[int, int]:
        span = self._device.span(pointer)
        if span is None:
            if pointer == 0:
                return 0, 0
            raise MeshprepError(f"{name}: {pointer:#x} is no address of the device")
        return pointer, span // ITEMSIZE[c_type]


ITEMSIZE = {c_type: np.dtype(code).itemsize for code, c_type in C_TYPES.items()}


def _bytes_of(values: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)
