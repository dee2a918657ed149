"""How many blocks a multiprocessor holds at once, for the compiler to aim at.

From "Compute Capabilities" in NVIDIA's *CUDA C++ Programming Guide*.
"""

from __future__ import annotations

import re

REGISTERS, REGISTER_UNIT, WARP_UNIT = 65536, 8, 32
# Threads, blocks and KB of shared memory of a multiprocessor, by compute capability.
LIMITS = {
    60: (2048, 32, 64),
    70: (2048, 32, 96),
    75: (1024, 16, 64),
    80: (2048, 32, 164),
    86: (1536, 16, 100),
    89: (1536, 24, 100),
    120: (1536, 24, 100),
}
LATER = (2048, 32, 228)
# Bytes that the system takes for each block, from 8.0 on.
RESERVED = 1024


def by_registers(registers: int, threads: int) -> int:
    """Blocks whose registers fit."""
    each = -(-registers // REGISTER_UNIT) * REGISTER_UNIT
    return REGISTERS // (each * -(-threads // WARP_UNIT) * WARP_UNIT)


def most_registers(blocks: int, threads: int) -> int:
    """Registers of a thread with which so many blocks fit."""
    each = REGISTERS // (blocks * -(-threads // WARP_UNIT) * WARP_UNIT)
    return each // REGISTER_UNIT * REGISTER_UNIT


def resident_at_most(arch: str, threads: int, shared_bytes: int) -> int:
    """Blocks that fit but for their registers."""
    most_threads, most_blocks, kilobytes = LIMITS.get(int(re.sub(r"\D", "", arch)), LATER)
    fit = kilobytes * 1024 // (shared_bytes + RESERVED)
    return min(most_threads // max(threads, 1), most_blocks, fit)
