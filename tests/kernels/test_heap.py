"""The heap of kernels: pairs come out as from Python's heapq, equal ones too."""

import heapq

import numpy as np
import pytest

from meshprep.kernels.compiled import from_python
from meshprep.partitioning.shift import new_heap, pop, push, with_room

new_heap, with_room = from_python(new_heap), from_python(with_room)
push, pop = from_python(push), from_python(pop)


@pytest.mark.parametrize("values", [3, 1000])
def test_pairs_come_out_in_order(values):
    random = np.random.default_rng(values)
    heap, n, slow = new_heap(2), 0, []
    for _ in range(2000):
        if slow and random.random() < 0.4:
            assert tuple(heap[0]) == heapq.heappop(slow)
            n = pop(heap, n)
        else:
            pair = tuple(random.integers(-values, values, 2).tolist())
            heap = with_room(heap, n, 1)
            n = push(heap, n, *pair)
            heapq.heappush(slow, pair)
        assert n == len(slow)
    while slow:
        assert tuple(heap[0]) == heapq.heappop(slow)
        n = pop(heap, n)
