"""How a search begins: the sample of elements that is cut to choose a rotation."""

import numpy as np
import pytest

from meshprep.partitioning.multilevel.initial.geometry import Geometry
from meshprep.partitioning.multilevel.initial.start import _around_the_centre
from meshprep_runtime.types.maps import CHUNK


@pytest.mark.parametrize("count", [3, 500, 20_000])
@pytest.mark.parametrize("step", [1, 1000])
def test_the_sample_is_what_is_nearest_to_the_middle_element(count, step):
    """With a step, many are equally far away: twice the count is the most."""
    n = CHUNK + 1234
    where = np.random.default_rng(count).integers(0, 10**6, (n, 2)) // step * step + 0.5
    table = np.arange(n, dtype=np.int32)[:, None]
    sample = _around_the_centre(Geometry.of(table, np.ones(n, np.int32), where), count)
    far = ((where - where[n // 2]) ** 2).sum(axis=1)
    expected = np.flatnonzero(far <= np.sort(far)[count])[: 2 * count]
    assert len(expected) > count
    assert np.array_equal(sample.coordinates, where[expected])
