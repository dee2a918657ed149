"""One signature for every partitioner: names, options, the problem and the blocks."""

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.partitioning import (
    PARTITIONERS,
    BlockProblem,
    Option,
    blocks_of,
    loads,
    partition,
)
from meshprep_runtime.errors import MeshprepError

# Structured meshes only, and an extra package: tested on their own.
GENERAL = [name for name in PARTITIONERS if name != "structured"]
TABLE = np.array([[0, 1], [1, 2], [2, 3]], dtype=np.int32)


@pytest.mark.parametrize("name", GENERAL)
@settings(deadline=None, max_examples=effort.examples(40))
@given(data=st.data())
def test_blocks_hold_every_element_once_within_the_cap(name, data, tables, check_blocks):
    table, n_points = data.draw(tables())
    block_size = data.draw(st.integers(1, 12))
    blocks = partition(BlockProblem(table, n_points, block_size), name)
    check_blocks(blocks, len(table), block_size)
    assert (np.bincount(blocks.block_of_element) == np.diff(blocks.block_offset)).all()


@pytest.mark.parametrize("name", GENERAL)
@pytest.mark.parametrize("shape", [(0, 2), (0, 0), (7, 0), (1, 3), (1, 0)])
def test_tables_without_rows_or_columns_are_cut_all_the_same(name, shape, check_blocks):
    blocks = partition(BlockProblem(np.zeros(shape, dtype=np.int32), 5, 3), name)
    check_blocks(blocks, shape[0], 3)
    assert blocks.n_blocks == -(-shape[0] // 3)


@pytest.mark.parametrize("name", GENERAL)
def test_fewer_elements_than_the_cap_are_one_block_in_their_order(name):
    blocks = partition(BlockProblem(TABLE, 4, 448), name)
    assert blocks.new_to_old.tolist() == [0, 1, 2]
    assert blocks.block_offset.tolist() == [0, 3]


@pytest.mark.parametrize("name", GENERAL)
def test_block_size_one_gives_one_element_a_block(name):
    blocks = partition(BlockProblem(TABLE, 4, 1), name)
    assert blocks.block_offset.tolist() == [0, 1, 2, 3]


def test_contiguous_cuts_full_chunks_and_a_smaller_last_one():
    table = np.arange(10, dtype=np.int32).reshape(10, 1)
    blocks = partition(BlockProblem(table, 10, 4), "contiguous")
    assert blocks.new_to_old.tolist() == list(range(10))
    assert blocks.block_offset.tolist() == [0, 4, 8, 10]


def test_an_unknown_partitioner_lists_those_there_are():
    with pytest.raises(MeshprepError, match=r"no partitioner 'best': choose blocks, con"):
        partition(BlockProblem(TABLE, 4, 2), "best")


@pytest.mark.parametrize("seed", range(5))
def test_runs_of_the_order_stage_no_more_than_they_may(seed):
    """As one that adds element after element and looks at all points of the block each time."""
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 20, (60, 3)).astype(np.int32)
    weight = rng.integers(1, 9, 20).astype(np.int32)
    problem = BlockProblem(table, 20, 8, point_bytes=weight)
    blocks = partition(problem, "contiguous", {"staged_bytes": 40})
    ends, begin = [0], 0
    for i in range(60):
        if i - begin == 8 or weight[np.unique(table[begin : i + 1])].sum() > 40:
            ends.append(i)
            begin = i
    assert blocks.block_offset.tolist() == [*ends, 60]
    assert blocks.new_to_old.tolist() == list(range(60))
    with pytest.raises(
        MeshprepError, match="staged_bytes is 1, but element 0 alone needs more"
    ):
        partition(problem, "contiguous", {"staged_bytes": 1})


def test_an_unknown_option_lists_those_there_are():
    with pytest.raises(
        MeshprepError, match=r"'metis' has no option 'ufactor': choose graph,"
    ):
        partition(BlockProblem(TABLE, 4, 2), "metis", {"ufactor": 3})
    with pytest.raises(
        MeshprepError, match=r"'contiguous' has no option 'size': choose staged"
    ):
        partition(BlockProblem(TABLE, 4, 2), "contiguous", {"size": 3})


@pytest.mark.parametrize(
    ("kind", "given_value", "expected"),
    [
        (int, "12", 12),
        (int, 12, 12),
        (float, "1.5", 1.5),
        (float, 2, 2.0),
        (bool, "Yes", True),
        (bool, "off", False),
        (bool, True, True),
        (str, "cut", "cut"),
    ],
)
def test_option_values_are_parsed_from_their_type_and_from_text(
    kind, given_value, expected
):
    parsed = Option(kind, None, "").parse(given_value, "o")
    assert parsed == expected
    assert type(parsed) is kind


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        (Option(int, 1, ""), "1.5", "option 'o' is '1.5', must be a whole number"),
        (Option(int, 1, ""), True, "option 'o' is True, must be a whole number"),
        (Option(int, 1, "", low=1), 0, "option 'o' is 0, must be a whole number from 1"),
        (Option(float, 1.0, "", low=1, high=2), "3", "must be a number from 1 to 2"),
        (Option(float, 1.0, ""), "nan", "must be a number"),
        (Option(float, 1.0, ""), "fast", "must be a number"),
        (Option(bool, True, ""), "maybe", "must be true or false"),
        (Option(bool, True, ""), 1, "must be true or false"),
        (Option(str, "a", ""), 3, "must be text"),
        (Option(str, "a", "", choices=("a", "b")), "c", "must be one of a, b"),
    ],
)
def test_option_values_that_do_not_fit_say_what_would(option, value, message):
    with pytest.raises(MeshprepError) as caught:
        option.parse(value, "o")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"block_size": 0}, "block size is 0"),
        ({"block_size": 2**31}, "must be within 1"),
        ({"seed": -1}, "seed is -1"),
        ({"n_points": 3}, "outside its 3 points"),
        ({"table": TABLE.astype(np.int64)}, "must be int32"),
        ({"table": TABLE[0]}, "must be int32 of shape"),
        ({"table": TABLE - 1}, "outside its 4 points"),
        ({"point_bytes": np.ones(3, np.int32)}, "must be 4 integers"),
        ({"point_bytes": np.array([1, 1, -1, 1])}, "outside 0"),
        ({"coordinates": np.ones((2, 2))}, r"must be \(3, d\)"),
        ({"coordinates": np.array([[0.0], [np.nan], [1.0]])}, "element 1 are not finite"),
    ],
)
def test_a_problem_that_does_not_fit_is_refused(changes, message):
    with pytest.raises(MeshprepError, match=message):
        BlockProblem(**({"table": TABLE, "n_points": 4, "block_size": 2} | changes))


def test_blocks_are_numbered_by_their_first_element_and_sorted_stably():
    blocks = blocks_of(np.array([7, 2, 7, 5, 2, 2]), 9, {"asked": 3})
    assert blocks.new_to_old.tolist() == [0, 2, 1, 4, 5, 3]
    assert blocks.block_offset.tolist() == [0, 2, 5, 6]
    assert blocks.block_of_element.tolist() == [0, 1, 0, 2, 1, 1]
    assert blocks.notes == {"asked": 3}


def test_blocks_may_keep_the_order_of_their_numbers():
    blocks = blocks_of(np.array([7, 2, 7, 5, 2, 2]), 9, keep_numbers=True)
    assert blocks.new_to_old.tolist() == [1, 4, 5, 3, 0, 2]
    assert blocks.block_offset.tolist() == [0, 3, 4, 6]


@settings(deadline=None, max_examples=effort.examples(40))
@given(data=st.data())
def test_loads_are_the_distinct_points_of_every_block(data, tables, slow_loads):
    table, n_points = data.draw(tables())
    n_blocks = data.draw(st.integers(1, 5))
    size = st.integers(0, n_blocks - 1)
    block = data.draw(st.lists(size, min_size=len(table), max_size=len(table)))
    blocks = blocks_of(np.array(block, dtype=np.int32), n_blocks)
    found = loads(table[blocks.new_to_old], n_points, blocks.block_offset)
    assert found == slow_loads(table, blocks)
