import itertools

import numpy as np
import pytest

from meshprep.io.workers import read_bytes
from meshprep.kernels.parallel import WORTHWHILE, each, pieces


@pytest.mark.parametrize("n", [0, 1, WORTHWHILE - 1, WORTHWHILE, 3 * WORTHWHILE + 1])
def test_pieces_follow_each_other(n):
    parts = pieces(n)
    assert parts[0][0] == 0
    assert parts[-1][1] == n
    assert all(a[1] == b[0] for a, b in itertools.pairwise(parts))


@pytest.mark.parametrize("n", [0, 1, 5])
def test_results_stand_in_the_order_of_the_tasks(n):
    assert each(lambda x, y: x * y, [(i, 10) for i in range(n)]) == [10 * i for i in range(n)]


@pytest.mark.parametrize("n", [0, 3, 200_001])
def test_all_bytes_of_a_file_are_read(tmp_path, n):
    data = np.random.default_rng(1).integers(0, 256, n, dtype=np.uint8)
    (tmp_path / "a").write_bytes(data.tobytes())
    assert np.array_equal(read_bytes(tmp_path / "a"), data)


def test_what_a_thread_raises_arrives():
    with pytest.raises(ZeroDivisionError):
        each(lambda x: 1 // x, [(1,), (0,)])
