"""Matrices whose elements lie on several ranks of one process."""

import numpy as np
import pytest
from matrix_of_ranks import same_on

from meshprep_runtime import DistributedError, MeshprepError, run_ranks
from meshprep_runtime.matrix import BatchRows


@pytest.mark.parametrize("ranks", [1, 2, 4, 7])
def test_the_rows_of_every_rank_are_those_of_one(ranks):
    assert run_ranks(ranks, same_on, seed=ranks) == [True] * ranks


def test_what_does_not_fit_is_refused_on_all_ranks():
    one = np.zeros((1, 1), np.int64)

    def make(comm, first, row):
        return BatchRows(comm, first, one + row * comm.rank, one)

    with pytest.raises(MeshprepError, match="rank 1 has rows or columns outside the 4 x 4 matrix"):
        run_ranks(2, lambda comm: make(comm, [0, 2, 4], 9))
    with pytest.raises(MeshprepError, match="must rise from 0 in 3 numbers"):
        run_ranks(2, lambda comm: make(comm, [0, 4], 0))
    with pytest.raises(MeshprepError, match="must have 1 values"):
        run_ranks(2, lambda comm: make(comm, [0, 2, 4], 1)(np.zeros(3)))
    with pytest.raises(MeshprepError, match="or fractions among them"):
        run_ranks(2, lambda comm: BatchRows(comm, [0, 2, 4], one + 0.5, one))
    with pytest.raises(MeshprepError, match="must be the same on all ranks"):
        run_ranks(2, lambda comm: BatchRows(comm, [0, 2, 4], one, one, 4 + comm.rank))


@pytest.mark.parametrize("dtypes", [("f8", "f4"), ("f4", "f8"), ("i8", "f8")])
def test_values_of_two_dtypes_are_refused(dtypes):
    """Bytes of the one would be numbers of the other."""
    one = np.zeros((1, 1), np.int64)

    def add_up(comm):
        return BatchRows(comm, [0, 2, 4], one + 2, one)(np.ones((1, 1), dtypes[comm.rank]))

    with pytest.raises(DistributedError, match=f"{dtypes[1]} on rank 1: they must be of one dtype"):
        run_ranks(2, add_up)
