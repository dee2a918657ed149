"""Mt-KaHyPar: the error where it is missing; where it is installed, its blocks."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.partition import BlockProblem, loads, partition
from meshprep.partition.kahypar import _nets
from meshprep_runtime.errors import MeshprepError, MissingPackageError


def reuse(table, n_points, blocks):
    return table.size / loads(table[blocks.new_to_old], n_points, blocks.block_offset)


def test_a_missing_package_names_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "mtkahypar", None)
    problem = BlockProblem(np.array([[0, 1], [1, 2]], dtype=np.int32), 3, 1)
    with pytest.raises(MissingPackageError, match=r"pip install meshprep\[kahypar\]"):
        partition(problem, "kahypar")


def test_the_package_is_not_imported_unless_chosen():
    import subprocess

    code = (
        "import sys, numpy, meshprep.partition as p;"
        "p.partition(p.BlockProblem(numpy.zeros((4, 1), 'i4'), 1, 2), 'contiguous');"
        "print('mtkahypar' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_nets_are_the_elements_of_every_shared_point(data, tables):
    table, n_points = data.draw(tables())
    expected, weights = [], []
    for p in range(n_points):
        on = sorted({e for e, row in enumerate(table.tolist()) if p in row})
        if len(on) > 1:
            expected.append(on)
            weights.append(p + 1)
    byte = np.arange(8, 8 * n_points + 8, 8)
    nets, found = _nets(BlockProblem(table, n_points, 2, point_bytes=byte))
    assert nets == expected
    unit = np.gcd.reduce(weights) if weights else 1
    assert found == [w // unit for w in weights]
    assert _nets(BlockProblem(table, n_points, 2)) == (expected, [1] * len(expected))


@pytest.mark.slow
def test_hexes_are_cut_within_the_cap_in_silence(hex_nodes, check_blocks, capfd):
    pytest.importorskip("mtkahypar")
    table, n_points, _ = hex_nodes(16)
    made = [partition(BlockProblem(table, n_points, 320, seed=3), "kahypar") for _ in range(2)]
    check_blocks(made[0], len(table), 320)
    assert made[0].n_blocks == made[0].notes["asked"] == 13
    assert reuse(table, n_points, made[0]) > 4.9
    assert (made[0].new_to_old == made[1].new_to_old).all()
    assert capfd.readouterr() == ("", "")


@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_random_tables_are_cut_within_the_cap(data, tables, check_blocks):
    pytest.importorskip("mtkahypar")
    table, n_points = data.draw(tables())
    block_size = data.draw(st.integers(1, 9))
    preset = data.draw(st.sampled_from(["deterministic", "large-k"]))
    blocks = partition(BlockProblem(table, n_points, block_size), "kahypar", {"preset": preset})
    check_blocks(blocks, len(table), block_size)


def test_an_unknown_preset_lists_those_there_are():
    problem = BlockProblem(np.zeros((2, 1), np.int32), 1, 1)
    with pytest.raises(MeshprepError, match=r"preset' is 'best', must be one of deterministic,"):
        partition(problem, "kahypar", {"preset": "best"})
