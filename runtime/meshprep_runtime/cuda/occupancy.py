"""The share of a multiprocessor's warps that can be resident: CUDA's occupancy [G12 5].

A block takes warps, registers and shared memory of its multiprocessor, each in whole units;
blocks are resident until one of these is used up. The limits are those of NVIDIA's CUDA C++
Programming Guide, by compute capability; the units are those of its occupancy calculator.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

WARP = 32
# Registers of a multiprocessor; a warp takes a multiple of so many.
REGISTERS = 65536
REGISTERS_OF_WARP = 256
# The registers are in four parts, each with the warps of one scheduler.
PARTS = 4


class MultiprocessorLimits(NamedTuple):
    """What the blocks on a multiprocessor may take together.

    Attributes
    ----------
    threads : int
        Resident threads.
    blocks : int
        Resident blocks.
    kilobytes : int
        Shared memory, in KiB.
    """

    threads: int
    blocks: int
    kilobytes: int


# By compute capability, such as 90 for 9.0.
LIMITS = {
    60: MultiprocessorLimits(2048, 32, 64),
    61: MultiprocessorLimits(2048, 32, 96),
    70: MultiprocessorLimits(2048, 32, 96),
    75: MultiprocessorLimits(1024, 16, 64),
    80: MultiprocessorLimits(2048, 32, 164),
    86: MultiprocessorLimits(1536, 16, 100),
    87: MultiprocessorLimits(1536, 16, 164),
    89: MultiprocessorLimits(1536, 24, 100),
    90: MultiprocessorLimits(2048, 32, 228),
    100: MultiprocessorLimits(2048, 32, 228),
    120: MultiprocessorLimits(1536, 24, 100),
}
# The architecture of figures where no device is known.
USUAL_ARCH = "sm_90"
# Bytes of shared memory that the system takes for each block from 8.0 on, and the unit in
# which a block takes its own, before 8.0 and since.
RESERVED = 1024
UNIT_BEFORE = 256
UNIT_SINCE = 128


@dataclass(frozen=True)
class Occupancy:
    """The blocks on a multiprocessor, and what keeps further ones away.

    Parameters
    ----------
    blocks : int
        Resident blocks; 0 where a block does not fit.
    share : float
        Their warps, as a share of those that a multiprocessor can have: from 0 to 1.
    limits : tuple of str
        What there is none left of: ``"threads"``, ``"blocks"``, ``"shared memory"`` or
        ``"registers"``.
    """

    blocks: int
    share: float
    limits: tuple[str, ...]


def occupancy(
    arch: str, threads: int, shared_bytes: int, registers: int | None = None
) -> Occupancy:
    """The occupancy of thread blocks of a kernel.

    Parameters
    ----------
    arch : str
        Such as ``"sm_90"``; unknown ones count as that.
    threads : int
        Threads of a block, from 1.
    shared_bytes : int
        Shared memory of a block.
    registers : int, optional
        Registers of a thread; without them they count as no limit.

    Returns
    -------
    Occupancy
    """
    limits = limits_of(arch)
    warps = -(-threads // WARP)
    fitting = {
        "threads": limits.threads // WARP // warps,
        "blocks": limits.blocks,
        "shared memory": by_shared_memory(arch, shared_bytes),
    }
    if registers is not None:
        fitting["registers"] = by_registers(registers, threads)
    blocks = min(fitting.values())
    return Occupancy(
        blocks=blocks,
        share=blocks * warps / (limits.threads // WARP),
        limits=tuple(name for name, count in fitting.items() if count == blocks),
    )


def limits_of(arch: str) -> MultiprocessorLimits:
    """The limits of an architecture; of an unknown one those of sm_90."""
    return LIMITS.get(_capability(arch), LIMITS[90])


def by_registers(registers: int, threads: int) -> int:
    """The number of blocks on a multiprocessor that its registers allow.

    ``registers`` are those of a thread, at least 1.
    """
    of_warp = -(-registers * WARP // REGISTERS_OF_WARP) * REGISTERS_OF_WARP
    warps = REGISTERS // of_warp // PARTS * PARTS
    return warps // -(-threads // WARP)


def most_registers(blocks: int, threads: int) -> int:
    """The most registers of a thread with which ``blocks`` blocks fit."""
    warps = -(-blocks * -(-threads // WARP) // PARTS) * PARTS
    of_warp = REGISTERS // warps // REGISTERS_OF_WARP * REGISTERS_OF_WARP
    return of_warp // WARP


def by_shared_memory(arch: str, shared_bytes: int) -> int:
    """The number of blocks on a multiprocessor that its shared memory allows."""
    since = _capability(arch) >= 80
    unit = UNIT_SINCE if since else UNIT_BEFORE
    taken = shared_bytes + (RESERVED if since else 0)
    in_units = max(1, -(-taken // unit)) * unit
    return limits_of(arch).kilobytes * 1024 // in_units


def most_shared_bytes(arch: str) -> int:
    """The most bytes of shared memory that a block may take."""
    reserved = RESERVED if _capability(arch) >= 80 else 0
    return limits_of(arch).kilobytes * 1024 - reserved


def resident_at_most(arch: str, threads: int, shared_bytes: int) -> int:
    """The number of blocks that fit by threads and shared memory, not by registers."""
    return occupancy(arch, max(threads, 1), shared_bytes).blocks


def _capability(arch: str) -> int:
    """90 of ``"sm_90"`` and ``"sm_90a"``."""
    return int(re.sub(r"\D", "", arch))
