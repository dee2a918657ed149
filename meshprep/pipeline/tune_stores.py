"""The product with a matrix of a plan in every store, timed on this machine."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from meshprep_runtime.errors import MeshprepError, Progress
from meshprep_runtime.matrix import LocalMatrices, Product, to_gpu
from meshprep_runtime.matrix.assemble import STORES
from meshprep_runtime.matrix.kernels import MOST_DOFS
from meshprep_runtime.matrix.search import MOST_TRIALS
from meshprep_runtime.matrix.stores import Store
from meshprep_runtime.plan import LoopPlan, Plan
from meshprep_runtime.plan.tuned import GPU, Machine, Timing
from meshprep_runtime.tuning.machines import Backend
from meshprep_runtime.tuning.tune import SAMPLE_SECONDS

from ..metrics.product_traffic import store_bytes
from .tune import backend_of

# The stores that hold the sum over all loops that add to a matrix.
SUMMED = ("csr", "ellpack")
HALF = "local, half"


@dataclass(frozen=True)
class StoreTrial:
    """The product in one store."""

    # As :class:`~meshprep.metrics.product_traffic.StoreBytes` names it.
    store: str
    # Bytes that a product moves if caches keep the vectors.
    bytes: int
    timing: Timing


@dataclass(frozen=True)
class StoreTimes:
    """The products with one matrix on one machine, the fastest first."""

    matrix: str
    machine: Machine
    trials: tuple[StoreTrial, ...]


def time_stores(
    plan: Plan,
    loop: str,
    *,
    device: str | Backend = "cpu",
    runs: int = 9,
    progress: Progress = lambda done, total, what: None,
) -> StoreTimes:
    """Time the product with the matrix that a loop adds to, in every store.

    ``device`` is a Backend, or ``"cpu"`` or ``"gpu"`` of this machine. A sample repeats a
    product until it takes two milliseconds; samples of all stores take turns. On a GPU the
    threads that CSR finds are kept in the plan. Raises MeshprepError for a loop that adds
    to no matrix or to several.
    """
    backend = backend_of(device)
    loop_plan = plan[loop]
    n_matrices = len(loop_plan.loop.matrices)
    if n_matrices != 1:
        raise MeshprepError(
            f"loop '{loop}' adds to {n_matrices} matrices: --stores times the product with "
            "the matrix of a loop that adds to one"
        )
    (arg,) = loop_plan.loop.matrices
    pattern = loop_plan.matrices[arg.name]
    bytes_of_store = {
        store.store: store.product
        for store in store_bytes(pattern, np.dtype(arg.dtype).itemsize)
    }
    # A loop fills the stores that sum nothing with its own elements alone.
    is_alone = len(pattern.place) == 1
    names = [name for name in bytes_of_store if is_alone or name in SUMMED]
    # Half of larger matrices is not multiplied on a processor.
    n_dofs = loop_plan.maps[str(arg.map)].arity
    if backend.machine.kind != GPU and n_dofs > MOST_DOFS and HALF in names:
        names.remove(HALF)
    products = {name: _product(loop_plan, name, backend) for name in names}
    x = backend.put(np.ones(pattern.shape[1], arg.dtype))
    y = backend.put(np.ones(pattern.shape[0], arg.dtype))
    # The first calls compile, and find the threads of CSR.
    for product in products.values():
        for _ in range(MOST_TRIALS + 2):
            product(x, out=y)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for run in range(runs):
        progress(run, runs, "stores")
        for name, product in products.items():
            seconds[name].append(_sample(partial(product, x, out=y), backend))
    return StoreTimes(
        matrix=arg.name,
        machine=backend.machine,
        trials=_by_time(seconds, bytes_of_store),
    )


def _product(plan: LoopPlan, store: str, backend: Backend) -> Product:
    """The product with zeros in a store, which move as any other values do."""
    matrix = _zeros_in(plan, store)
    if backend.machine.kind == GPU:
        matrix = to_gpu(matrix)
    has_blocks = isinstance(matrix, LocalMatrices) and plan.variants
    return Product(matrix, plan if has_blocks else None)


def _zeros_in(plan: LoopPlan, store: str) -> Store:
    (arg,) = plan.loop.matrices
    if store != HALF:
        matrix, _ = STORES[store](plan, arg)
        return matrix
    whole: Any = _zeros_in(plan, "local")
    half: LocalMatrices = whole.half()
    return half


def _sample(work: partial[Any], backend: Backend) -> float:
    """Seconds of a call, the mean of calls in a row that take two milliseconds."""
    backend.wait()
    calls = 0
    start = time.perf_counter()
    spent = 0.0
    # Twice as many calls each time, so that a GPU need not be waited for after each.
    while spent < SAMPLE_SECONDS:
        for _ in range(max(calls, 1)):
            work()
        calls += max(calls, 1)
        backend.wait()
        spent = time.perf_counter() - start
    return spent / calls


def _by_time(
    seconds: Mapping[str, list[float]], bytes_of_store: Mapping[str, int]
) -> tuple[StoreTrial, ...]:
    trials = [
        StoreTrial(name, bytes_of_store[name], Timing.of(samples))
        for name, samples in seconds.items()
    ]
    return tuple(sorted(trials, key=lambda trial: trial.timing.least))
