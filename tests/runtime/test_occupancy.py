"""Occupancy, against published values, and against blocks that are added one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshprep_runtime.cuda.occupancy import (
    LIMITS,
    RESERVED,
    by_registers,
    most_registers,
    occupancy,
)


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared", "blocks", "share", "limit"),
    [
        # CUDA C++ Best Practices Guide, "Calculating Occupancy": 75 % and 63 % of 7.0.
        ("sm_70", 128, 37, 0, 12, 0.75, "registers"),
        ("sm_70", 320, 37, 0, 4, 0.625, "registers"),
        ("sm_70", 256, 32, 0, 8, 1.0, "threads"),
        # By hand: 64 registers are 2,048 a warp, of which 65,536 hold 32, of 64 or of 48.
        ("sm_80", 1024, 64, 0, 1, 0.5, "registers"),
        ("sm_86", 512, 64, 0, 2, 2 * 16 / 48, "registers"),
        ("sm_90", 256, 60, 0, 4, 0.5, "registers"),
        # 48 KiB and 1 KiB of the system's fit 4 times into 228, of 7.5 once into 64.
        ("sm_90", 256, 32, 48 * 1024, 4, 0.5, "shared memory"),
        ("sm_75", 256, 32, 48 * 1024, 1, 0.25, "shared memory"),
        ("sm_90", 32, 16, 0, 32, 0.5, "blocks"),
        ("sm_90", 256, None, 24_576, 8, 1.0, "threads"),
        ("sm_90", 512, 255, 0, 0, 0.0, "registers"),
        ("sm_90", 256, 32, 300_000, 0, 0.0, "shared memory"),
    ],
)
def test_published_values_and_values_by_hand(
    arch, threads, registers, shared, blocks, share, limit
):
    found = occupancy(arch, threads, shared, registers)
    assert (found.blocks, found.share) == (blocks, pytest.approx(share))
    assert limit in found.limits


def slowly(capability, threads, shared, registers):
    """Blocks are added while each finds its warps, registers and shared memory."""
    most_threads, most_blocks, kilobytes = LIMITS[capability]
    warps = (threads + 31) // 32
    of_warp = next(n for n in range(0, 10**5, 256) if n >= 32 * registers)
    taken = shared + (RESERVED if capability >= 80 else 0)
    while taken % (128 if capability >= 80 else 256):
        taken += 1
    parts, left, resident, blocks = [16384] * 4, kilobytes * 1024, 0, 0
    while blocks < most_blocks and resident + warps <= most_threads // 32 and taken <= left:
        for _ in range(warps):
            roomy = parts.index(max(parts))
            if parts[roomy] < of_warp:
                return blocks
            parts[roomy] -= of_warp
        left, resident, blocks = left - taken, resident + warps, blocks + 1
    return blocks


@given(
    st.sampled_from([*LIMITS]),
    st.integers(1, 1024),
    st.integers(0, 2**18),
    st.integers(16, 255),
)
def test_as_blocks_added_one_by_one(capability, threads, shared, registers):
    found = occupancy(f"sm_{capability}", threads, shared, registers)
    assert found.blocks == slowly(capability, threads, shared, registers)


@given(st.integers(1, 16), st.integers(1, 1024))
def test_the_most_registers_with_which_blocks_fit(blocks, threads):
    most = most_registers(blocks, threads)
    if most:
        assert by_registers(most, threads) >= blocks
        assert by_registers(most + 1, threads) < blocks
