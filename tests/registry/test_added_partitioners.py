"""Partitioners of other packages: run like any other, and refused where blocks are wrong."""

import numpy as np
import pytest

from meshprep import Options, prepare
from meshprep.io.generate import generate
from meshprep.partitioning import PARTITIONERS, BlockProblem, partition
from meshprep_runtime import MeshprepError

TABLE = np.array([[0, 1], [1, 2], [2, 3], [3, 4]], dtype=np.int32)
DECLARED = "[meshprep.partitioners]\nalternate = own_blocks:ALTERNATE\n"
PARTITIONER = """\
import numpy as np
from meshprep.partitioning import Blocks, Option, Partitioner, blocks_of

def alternate(problem, options):
    n_blocks = -(-problem.n // problem.block_size)
    {body}

ALTERNATE = Partitioner(alternate, {{"turns": Option(int, 1, "a test", low=1)}}, "a test")
"""
DEALT = "return blocks_of(np.arange(problem.n) % n_blocks, n_blocks)"


def test_blocks_of_another_package_are_planned_and_proved(install):
    install("my-blocks", "own_blocks", PARTITIONER.format(body=DEALT), DECLARED)
    mesh = generate("delaunay2d", cells=300, seed=2)
    options = Options(
        partition="alternate", block_size=64, partition_options={"turns": "3"}
    )
    plan = prepare(mesh, ["edges->cells"], options).plan
    variant = plan["edges->cells"].variant()
    assert variant.partitioner == "alternate"
    assert variant.n_blocks == -(-plan.sizes["edges"] // 64)
    assert plan.verify() == []


def test_its_options_are_read_like_any_other(install):
    install("my-blocks", "own_blocks", PARTITIONER.format(body=DEALT), DECLARED)
    problem = BlockProblem(TABLE, 5, 2)
    blocks = partition(problem, "alternate", {"turns": "2"})
    assert blocks.new_to_old.tolist() == [0, 2, 1, 3]
    with pytest.raises(
        MeshprepError, match="'alternate' has no option 'turn': choose turns"
    ):
        partition(problem, "alternate", {"turn": 2})
    with pytest.raises(MeshprepError, match="option 'turns' is '0'"):
        partition(problem, "alternate", {"turns": "0"})


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "return Blocks([0, 1, 2, 3], [0, 4])",
            "block 0 has 4 elements, more than the block",
        ),
        ("return Blocks([0, 1, 2, 2], [0, 2, 4])", "3 is missing"),
        ("return Blocks([0, 1], [0, 2])", "the blocks hold 2 elements, but there are 4"),
        ("return Blocks([0, 1, 2, 3], [0, 2, 2, 4])", "block 1 has no elements"),
        ("return Blocks([0, 1, 2, 3], [0, 2])", "block_offset must go from 0 to 4"),
        ("return Blocks([0, 1, 2, 3], [0.0, 4.0])", "must be a row of whole numbers"),
        (
            "return Blocks([0, 1, 2, 3], [0, 2, 4], {'note': 'x'})",
            "note 'note' is no number",
        ),
        ("return [0, 0, 1, 1]", "gave a list: it must give meshprep.partitioning.Blocks"),
        ("return {}['x']", "failed: KeyError: 'x': choose another partitioner"),
    ],
)
def test_wrong_blocks_are_refused_in_one_line(install, body, said):
    install("my-blocks", "own_blocks", PARTITIONER.format(body=body), DECLARED)
    with pytest.raises(MeshprepError, match=said) as refused:
        partition(BlockProblem(TABLE, 5, 2), "alternate")
    assert str(refused.value).startswith("partitioner 'alternate' of package my-blocks")
    assert "\n" not in str(refused.value)


def test_the_names_of_all_partitioners(install):
    install("my-blocks", "own_blocks", PARTITIONER.format(body=DEALT), DECLARED)
    assert list(PARTITIONERS) == ["blocks", "contiguous", "metis", "alternate"]
    with pytest.raises(
        MeshprepError, match=r"'scotch' is unknown: use blocks, .*, alternate"
    ):
        Options(partition="scotch")
