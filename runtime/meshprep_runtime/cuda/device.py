"""What a GPU has to do for a loop, and which one does it: the current one, by CuPy.

Everything that runs programs goes through :class:`Device`, so that :mod:`emulated` can take the
place of a GPU. Memory is named by its address, and every argument of a kernel is a number of eight
bytes: an address or an ``Index``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import MeshprepError, import_package
from .protocols import Device

_instead: list[Device] = []
_known: dict[int, Device] = {}


def current() -> Device:
    """The device that calls run on: CuPy's current one, unless :func:`use` says another.

    Raises MissingPackageError where CuPy is not installed. Raises MeshprepError where CUDA finds no
    GPU.
    """
    if _instead:
        return _instead[-1]
    cupy = import_cupy()
    try:
        number = cupy.cuda.runtime.getDevice()
    except RuntimeError as error:
        raise MeshprepError(f"no GPU to run on: {error}") from error
    if number not in _known:
        from .gpu import CupyDevice

        _known[number] = CupyDevice(cupy, number)
    return _known[number]


@contextmanager
def use(device: Device) -> Iterator[Device]:
    """Let this device run all loops inside a ``with``, in every thread."""
    _instead.append(device)
    try:
        yield device
    finally:
        _instead.remove(device)


def import_cupy() -> Any:
    """CuPy; raises MissingPackageError where it is not installed."""
    return import_package(
        "cupy",
        "running loops on a GPU needs CuPy: pip install 'meshprep-runtime[gpu]' (CUDA 13) or "
        "'meshprep-runtime[gpu12]' (CUDA 12)",
    )
