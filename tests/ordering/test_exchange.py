from itertools import pairwise

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.kernels.arrays import Adjacency
from meshprep.kernels.compiled import from_python
from meshprep.ordering.gps import sweep

from .graphs import edges_of, graph, neighbours, slow_envelope

# Python cannot call helpers as they are.
sweep = from_python(sweep)


def adjacency(g):
    """The graph as kernels take it."""
    return Adjacency(g.offset.view(np.uint64), g.index.view(np.uint32))


def swept(g, order, sweeps):
    """The order of one component after sweeps."""
    out = np.array(order, np.uint32)
    scratch = np.empty((2, g.n_rows), np.int32)
    sweep(adjacency(g), out, 0, sweeps, scratch)
    return out.tolist()


def places(order):
    return np.argsort(order).tolist()


def slow_sweep(g, order, sweeps):
    """Exchange by exchange, with bandwidth and profile computed afresh for each."""
    order = list(order)
    limit, profile = slow_envelope(g, places(order))
    for s in range(sweeps):
        steps = range(len(order) - 1)
        for i in steps if s % 2 == 0 else reversed(steps):
            other = order.copy()
            other[i], other[i + 1] = other[i + 1], other[i]
            wide, found = slow_envelope(g, places(other))
            if wide <= limit and found <= profile - (s % 4 >= 2):
                order, profile = other, found
    return order


@given(
    edges_of(max_n=14, max_edges=30), st.integers(0, 6), st.randoms(use_true_random=False)
)
@settings(deadline=None, max_examples=effort.examples(80))
def test_against_the_slow_version(case, sweeps, random):
    n, edges = case
    # a component: a chain ties all vertices
    chain = random.sample(range(n), n)
    g = graph(n, [*edges, *pairwise(chain)])
    order = random.sample(range(n), n)
    found = swept(g, order, sweeps)
    if n > 2:
        assert found == slow_sweep(g, order, sweeps)
    before, after = slow_envelope(g, places(order)), slow_envelope(g, places(found))
    assert after[0] <= before[0]
    assert after[1] <= before[1]


@pytest.mark.parametrize("loops", [[], [(i, i) for i in range(5)]])
def test_loops_make_no_difference(loops):
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]
    assert swept(graph(5, edges + loops), [2, 0, 4, 1, 3], 4) == swept(
        graph(5, edges), [2, 0, 4, 1, 3], 4
    )


def test_a_component_among_others_is_swept_alone():
    # a path 3-4-5 behind vertices 0..2; its middle stands at the end
    g = graph(6, [(0, 1), (1, 2), (3, 4), (4, 5)])
    order = np.array([3, 5, 4], np.uint32)
    scratch = np.full((2, 6), -7, np.int32)
    sweep(adjacency(g), order, 3, 1, scratch)
    assert sorted(neighbours(g, int(order[1]))) == [3, 5]
    assert (scratch[:, :3] == -7).all()
