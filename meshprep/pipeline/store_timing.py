"""Products of a plan's matrix in each of its stores, timed beside the bytes that they move."""

import time
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.cpu.pool import SETTLED
from meshprep_runtime.loops import Arg
from meshprep_runtime.matrix import LocalMatrices
from meshprep_runtime.matrix.assemble import STORES, Store
from meshprep_runtime.matrix.products import Product
from meshprep_runtime.plan import LoopPlan
from meshprep_runtime.plan.tuned import Timing
from meshprep_runtime.tuning.tune import SAMPLE_SECONDS

from ..metrics.product_traffic import store_bytes


@dataclass(frozen=True)
class StoreTrial:
    """The product in one store."""

    store: str  # as :class:`~..metrics.product_traffic.StoreBytes` names it
    bytes: int  # that a product moves if caches keep the vectors
    seconds: float  # of the fastest sample
    median: float
    slowest: float
    runs: int

    @property
    def timing(self) -> Timing:
        return Timing(self.seconds, self.median, self.slowest, self.runs)


def time_stores(
    plan: LoopPlan,
    matrix: str,
    *,
    runs: int = 9,
    progress: Callable[[float], None] = lambda share: None,
) -> tuple[StoreTrial, ...]:
    """Time the product in each store that the loop alone can fill, on all threads.

    Of ``runs`` samples of each store, which take turns, the fastest counts; ``progress`` is told
    the share of the turns that are done. They stand in the order of
    :func:`~..metrics.product_traffic.store_bytes`.
    """
    arg = next(a for a in plan.loop.matrices if a.name == matrix)
    pattern = plan.matrices[matrix]
    moved = {s.store: s.product for s in store_bytes(pattern, np.dtype(arg.dtype).itemsize)}
    alone = len(pattern.place) == 1
    names = [name for name in moved if alone or name in ("csr", "ellpack")]
    products = {name: Product(_empty(plan, arg, name), _blocks(plan, name)) for name in names}
    x, y = (np.ones(size, arg.dtype) for size in pattern.shape[::-1])
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for product in products.values():
        settle(product, x, y)
    for turn in range(runs):
        progress(turn / runs)
        for name, product in products.items():
            seconds[name].append(sample(product, x, y))
    return tuple(
        StoreTrial(name, moved[name], *astuple(Timing.of(seconds[name]))) for name in names
    )


def _blocks(plan: LoopPlan, store: str) -> LoopPlan | None:
    return plan if store.startswith("local") and plan.variants else None


def _empty(plan: LoopPlan, arg: Arg, store: str) -> Store:
    """Zeros in this store; their bytes move as any others do."""
    if store != "local, half":
        return STORES[store](plan, arg)
    whole: Any = STORES["local"](plan, arg)
    elements, n = whole.dofs.shape
    half: NDArray[Any] = np.zeros((elements, n * (n + 1) // 2), arg.dtype)
    return LocalMatrices(half, whole.dofs, True, whole.n_rows)


def settle(product: Product, x: NDArray[Any], y: NDArray[Any]) -> None:
    """Let a product find out how many threads it takes, so that samples are alike."""
    for _ in range(SETTLED):
        product(x, out=y)


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
