"""Occupancy against values of NVIDIA's calculator and figures worked out from its rules."""

import pytest

from meshprep.metrics.cost import DEVICES, Occupancy, occupancy
from meshprep_runtime.errors import MeshprepError

KIB = 1024


@pytest.mark.parametrize(
    ("device", "threads", "registers", "shared", "blocks"),
    [
        # 2,048 threads, or 32 blocks, on all of them
        ("P100", 256, 32, 0, 8),
        ("V100", 1024, 32, 0, 2),
        ("A100", 32, 16, 0, 32),
        ("H200", 33, 16, 0, 32),
        # 65,536 registers: 64 a thread leave half of the threads, 128 a quarter
        ("V100", 256, 64, 0, 4),
        ("A100", 256, 128, 0, 2),
        ("H100", 128, 255, 0, 2),
        # 33 registers are handed out as 40; four partitions hold 12 warps each, two hold 25
        ("V100", 256, 33, 0, 6),
        ("V100", 64, 33, 0, 24),
        ("P100", 64, 33, 0, 25),
        # 65 are 72: 7 warps a partition, and a block of 32 warps does not fit
        ("V100", 1024, 64, 0, 1),
        ("V100", 1024, 65, 0, 0),
        # 9 warps take the room of 12 when a launch is checked
        ("V100", 288, 168, 0, 1),
        # shared memory: 64, 96, 164 and 228 KiB, of which A100 and later keep 1 KiB a block
        ("P100", 128, 32, 48 * KIB, 1),
        ("P100", 128, 32, 48 * KIB + 1, 0),
        ("P100", 128, 32, 16 * KIB, 4),
        ("P100", 128, 32, 16 * KIB + 1, 3),
        ("V100", 128, 32, 32 * KIB, 3),
        ("V100", 128, 32, 96 * KIB, 1),
        ("A100", 128, 32, 163 * KIB, 1),
        ("A100", 128, 32, 81 * KIB, 2),
        ("A100", 128, 32, 81 * KIB + 1, 1),
        ("A100", 128, 32, 164 * KIB, 0),
        ("H100", 128, 32, 227 * KIB, 1),
        ("H200", 128, 32, 56 * KIB, 4),
        ("H200", 128, 32, 56 * KIB + 1, 3),
    ],
)
def test_known_values(device, threads, registers, shared, blocks):
    found = occupancy(device, threads, registers, shared)
    warps = -(-threads // 32)
    assert (found.blocks, found.warps) == (blocks, blocks * warps)
    assert found.share == blocks * warps / 64


def test_it_says_what_limits():
    assert occupancy("V100", 256, 32) == Occupancy(8, 64, 1.0, ("threads", "registers"))
    assert occupancy("H100", 32, 16).limited_by == ("blocks",)
    assert occupancy("A100", 256, 64).limited_by == ("registers",)
    assert occupancy("P100", 480, 32, 40 * KIB).limited_by == ("shared memory",)


def test_more_of_anything_never_helps():
    for device in DEVICES:
        by_registers = [occupancy(device, 192, r).blocks for r in range(1, 256)]
        assert by_registers == sorted(by_registers, reverse=True)
        by_shared = [occupancy(device, 64, 32, s).blocks for s in range(0, 240 * KIB, 1000)]
        assert by_shared == sorted(by_shared, reverse=True)
        assert by_shared[-1] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("K20", 128), "device 'K20' is unknown: use P100, V100, A100, H100, H200"),
        (("H100", 1025), "block size is 1025, must be 1 to 1024"),
        (("H100", 128, 256), "registers is 256, must be 1 to 255"),
        (("H100", 128, 32, -1), "shared bytes is -1, must be at least 0"),
    ],
)
def test_bad_input(words, message):
    with pytest.raises(MeshprepError, match=message):
        occupancy(*words)
