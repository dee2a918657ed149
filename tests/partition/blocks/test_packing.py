"""Small components are packed into blocks whole: best fit as a slow version has it, uncut."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from meshprep.mesh.incidence import Csr
from meshprep.partition import BlockProblem, partition
from meshprep.partition.blocks.bisect.geometry import Sizes
from meshprep.partition.blocks.levels import element_level
from meshprep.partition.blocks.mend.apart import ComponentRow, _best_fit, packed


@given(sizes=st.lists(st.integers(1, 12), max_size=40), cap=st.integers(12, 20))
def test_an_item_goes_where_least_room_is_left(sizes, cap):
    bins = []
    for size in sizes:
        fitting = [k for k, used in enumerate(bins) if used + size <= cap]
        if fitting:
            bins[max(fitting, key=lambda k: bins[k])] += size
        else:
            bins.append(size)
    found = _best_fit(np.array(sizes, np.int64), cap)
    fill = np.bincount(found, sizes) if sizes else np.empty(0)
    assert sorted(fill) == sorted(bins)


@given(data=st.data())
def test_a_row_that_is_cut_by_its_shares_cuts_no_packed_component(data):
    size = np.array(data.draw(st.lists(st.integers(1, 60), min_size=1, max_size=60)))
    cap = data.draw(st.integers(10, 40))
    alone = np.array(data.draw(st.lists(st.booleans(), min_size=size.size, max_size=size.size)))
    n_blocks = data.draw(st.integers(-(-size.sum() // cap), 2 * size.sum() // cap + 2))
    rank, share = packed(size, alone, n_blocks, cap)
    assert sorted(rank.tolist()) == list(range(size.size))
    assert share.size == n_blocks
    if (share == 1).all():
        assert rank.tolist() == list(range(size.size))
        return
    assert share.sum() == size.sum()
    assert share.max() <= cap
    # the row, an entry an element: which component has it, and which block
    row = np.repeat(np.argsort(rank), size[np.argsort(rank)])
    block = np.repeat(np.arange(n_blocks), share)
    cut = [c for c in range(size.size) if np.unique(block[row == c]).size > 1]

    def packed_from(first):
        """Whether blocks from this one on are packed, and all others as large as each other."""
        behind, before = np.unique(row[block >= first]), row[block < first]
        whole = not set(cut) & set(behind.tolist())
        return (
            whole
            and (alone & (size <= cap))[behind].all()
            and (first == 0 or np.ptp(share[:first]) <= 1)
            and (np.diff(before) >= 0).all()
        )

    assert any(packed_from(first) for first in range(n_blocks))


def test_components_that_share_a_point_are_not_packed():
    # four pairs of bars side by side; the last two pairs have a point in common
    table = np.array([[0, 1], [1, 2], [3, 4], [4, 5], [6, 7], [7, 8], [8, 9], [9, 10]], np.int32)
    neighbour = np.arange(8, dtype=np.int32) ^ 1
    level = element_level(table, Csr(np.arange(9), neighbour), np.zeros((8, 1)))
    row = ComponentRow.of(level, Sizes.equal(8, 4, 2), True)
    # two pairs are packed, behind the others
    assert row.component.tolist() == [2, 2, 3, 3, 0, 0, 1, 1]
    assert row.share.tolist() == [2, 2, 2, 2]


def test_rubble_is_hardly_cut(check_blocks):
    random, tables, places, n_points = np.random.default_rng(5), [], [], 0
    for k in range(300):
        # a strip of squares, two wide
        long = int(random.integers(2, 31))
        corner = np.arange(3 * (long + 1)).reshape(long + 1, 3)
        squares = [corner[:-1, :-1], corner[1:, :-1], corner[1:, 1:], corner[:-1, 1:]]
        tables.append(n_points + np.stack([c.ravel() for c in squares], axis=1))
        where = np.stack(np.divmod(np.arange(2 * long), 2), axis=1).astype(float)
        places.append(where + np.array([40.0 * (k // 20), 4.0 * (k % 20)]))
        n_points += corner.size
    table = np.concatenate(tables).astype(np.int32)
    blocks = partition(
        BlockProblem(table, n_points, 64, coordinates=np.concatenate(places)), "blocks"
    )
    check_blocks(blocks, len(table), 64)
    # cut where they end by chance, the strips load 6 % more than they have points
    assert blocks.notes["loads"] < 1.005 * n_points
