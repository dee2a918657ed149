"""What benchmarks on a GPU share: the device, its clock, how far sums are off, and its report."""

import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from common import report

from meshprep_cuda_check.emulated import EmulatedDevice
from meshprep_runtime import MeshprepError, MissingPackageError
from meshprep_runtime.cuda import CudaProgram
from meshprep_runtime.cuda.build import compiled
from meshprep_runtime.cuda.device import Device, current, import_cupy
from meshprep_runtime.cuda.occupancy import by_registers, resident_at_most

SAMPLE_SECONDS = 0.002


def device_or_exit(emulate: bool = False) -> Device:
    """The GPU, or the one under g++; ends the program where there is none."""
    try:
        return EmulatedDevice() if emulate else current()
    except MeshprepError as error:
        sys.exit(f"error: this needs a GPU: {error}")


def device_seconds(device: Device, work: Callable[[], Any], samples: int) -> list[float]:
    """Seconds of a call by the device's clock, in several samples of some milliseconds."""

    def sample(calls: int) -> float:
        start = device.mark()
        for _ in range(calls):
            work()
        return device.seconds(start, device.mark()) / calls

    calls = 1 + int(SAMPLE_SECONDS / max(sample(3), 1e-7))
    return [sample(calls) for _ in range(samples)]


def check_off(found: np.ndarray, wanted: np.ndarray, tolerance: float, what: str) -> None:
    """Raise MeshprepError where sums differ by more than a share of the largest."""
    off = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    if not off <= tolerance:
        raise MeshprepError(f"{what} is off by {off:.1e}")


def taken(made: CudaProgram, arch: str) -> dict[str, int | None]:
    """Registers, bytes spilled, and warps of a multiprocessor by registers and shared memory.

    None where no ``arch`` is given, or nothing compiles here.
    """
    try:
        code = compiled(made, arch) if arch else None
    except MissingPackageError:
        code = None
    if code is None:
        return dict.fromkeys(("registers", "spilled", "warps"))
    blocks = resident_at_most(arch, made.threads, made.shared_bytes)
    warps = min(blocks, by_registers(code.registers, made.threads)) * -(-made.threads // 32)
    return {"registers": code.registers, "spilled": code.spilled, "warps": warps}


def report_gpu(
    name: str, device: Device, rows: Sequence[dict[str, Any]], **more: Any
) -> None:
    """Print and save a table of this device; see :func:`common.report`."""
    report(file_name(name, device), rows, gpu=about_gpu(device), **more)


def file_name(name: str, device: Device) -> str:
    """The name of the file of a benchmark's results on a device."""
    return f"gpu{name}-{device.name.lower().replace(' ', '-')}"


def about_gpu(device: Device) -> dict[str, Any]:
    """The device, its driver and what compiles for it."""
    found: dict[str, Any] = {"device": device.name, "arch": device.arch}
    for name in ("cupy-cuda13x", "cupy-cuda12x", "numba-cuda", "nvidia-cuda-nvrtc"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    runtime = import_cupy().cuda.runtime
    versions = {
        "driver": runtime.driverGetVersion(),
        "runtime": runtime.runtimeGetVersion(),
    }
    return found | versions
