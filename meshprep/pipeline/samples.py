"""How long a call of a product takes."""

from __future__ import annotations

import time
from typing import Any

from numpy.typing import NDArray

from meshprep_runtime.matrix.products import Product

SAMPLE_SECONDS = 0.002


def sample(product: Product, x: NDArray[Any], y: NDArray[Any]) -> float:
    """Seconds of a call, the mean of calls in a row that take two milliseconds together."""
    product(x, out=y)
    calls, start = 0, time.perf_counter()
    while True:
        product(x, out=y)
        calls += 1
        spent = time.perf_counter() - start
        if spent > SAMPLE_SECONDS:
            return spent / calls
