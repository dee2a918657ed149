"""The interface of a GPU for loops, and the current device.

All that runs programs goes through :class:`Device`, so that an emulated device can take the
place of a GPU. Memory is named by its address, and every argument of a kernel is a number
of eight bytes: an address or an ``Index``.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError, import_package
from .programs import Call, CudaProgram


class Memory(Protocol):
    """Memory of a device, freed with the object."""

    @property
    def pointer(self) -> int:
        """The address."""


class Kernel(Protocol):
    """The code of a program on a device."""

    def prepare(self, blocks: int, arguments: Sequence[int]) -> Call:
        """A launch with fixed arguments, to be called with its stream."""


class Device(Protocol):
    """A GPU, or an object in place of one.

    Launches and ``write`` are queued on the current stream; ``read`` waits for it.
    """

    number: int  # of the CUDA runtime
    name: str
    arch: str  # such as ``"sm_90"``
    most_shared: int  # bytes of dynamic shared memory of a block, at most

    def load(self, program: CudaProgram) -> Kernel:
        """Compile and load; raises MeshprepError where the device cannot take it."""

    def upload(self, values: NDArray[Any]) -> Memory:
        """Copy an array of the host to new memory."""

    def array(self, values: NDArray[Any]) -> Any:
        """A copy as an array of the device, with ``get()`` for a copy back on the host."""

    def zeros(self, shape: int | tuple[int, ...], dtype: np.dtype) -> Any:
        """A new array of the device."""

    def copy(self, to: Memory, source: Memory, nbytes: int) -> None:
        """Queue a copy inside the device."""

    def write(self, memory: Memory, values: NDArray[Any]) -> None:
        """Copy from the host; ``values`` may change when this returns."""

    def read(self, memory: Memory, into: NDArray[Any]) -> None:
        """Copy to the host, and wait until it is there."""

    def stream(self) -> Any:
        """The current stream; equal for the same stream."""

    def follow(self, stream: Any) -> None:
        """Let the current stream wait for all that has been queued on another stream."""

    def wait(self, stream: Any) -> None:
        """Wait until all that has been queued on a stream is done."""

    def mark(self) -> Any:
        """A point of time: when all that has been queued on the current stream is done."""

    def seconds(self, start: Any, end: Any) -> float:
        """The seconds between two marks; waits for the second."""

    def run(self, calls: Sequence[Call]) -> None:
        """Queue launches on the current stream, one after the other."""

    def record(self, calls: Sequence[Call]) -> Callable[[], None]:
        """The launches as a graph; a call queues it on the current stream of the call."""

    def home(self, pointer: int) -> int | None:
        """The number of the device that an address lies on; None for the host."""

    def from_dlpack(self, value: Any) -> Any:
        """A view of the same memory, with ``__cuda_array_interface__``."""


_instead: list[Device] = []  # the devices of ``use``, the innermost last
_called: list["use"] = []  # the ``use`` objects that have not entered their ``with``
_known: dict[int, Device] = {}  # the devices of CuPy, by number


def current() -> Device:
    """The device of calls: that of :class:`use`, else the current device of CuPy.

    Raises MissingPackageError where CuPy is not installed. Raises MeshprepError where CUDA
    finds no GPU, and after a plain call of :class:`use`.
    """
    if _called:
        _called.clear()
        raise MeshprepError(
            "device.use(...) does nothing by itself: write 'with use(device):'"
        )
    if _instead:
        return _instead[-1]
    cupy = import_cupy()
    try:
        number = cupy.cuda.runtime.getDevice()
    except RuntimeError as error:
        raise MeshprepError(f"no GPU to run on: {error}") from error
    # Keep the device: it holds the loaded programs.
    if number not in _known:
        from .gpu import CupyDevice

        _known[number] = CupyDevice(cupy, number)
    return _known[number]


class use:
    """A context manager: inside of it a device runs all loops, in every thread."""

    def __init__(self, device: Device) -> None:
        self._device = device
        _called.append(self)

    def __enter__(self) -> Device:
        if self in _called:
            _called.remove(self)
        _instead.append(self._device)
        return self._device

    def __exit__(self, *_: object) -> None:
        _instead.remove(self._device)


def import_cupy() -> Any:
    """CuPy; raises MissingPackageError where it is not installed."""
    return import_package(
        "cupy",
        "running loops on a GPU needs CuPy: pip install 'meshprep-runtime[gpu]' (CUDA "
        "13) or 'meshprep-runtime[gpu12]' (CUDA 12)",
    )
