"""``tune --spmv``: how the product with a matrix runs fastest on this machine."""

import time
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.cpu.pool import SETTLED
from meshprep_runtime.errors import MeshprepError, Progress
from meshprep_runtime.matrix import CsrMatrix, LocalMatrices
from meshprep_runtime.matrix.assemble import STORES
from meshprep_runtime.matrix.code import PIECE
from meshprep_runtime.matrix.cuda_text import CsrThreads, fixed_rule
from meshprep_runtime.matrix.kernels import MOST_DOFS
from meshprep_runtime.matrix.products import Product
from meshprep_runtime.matrix.stores import Store
from meshprep_runtime.plan import LoopPlan, Plan
from meshprep_runtime.plan.matrices import MatrixPlan
from meshprep_runtime.plan.tuned import Machine, Timing
from meshprep_runtime.tuning.machines import this_cpu
from meshprep_runtime.tuning.tune import SAMPLE_SECONDS
from meshprep_runtime.types.loops import Arg

from ...io import read
from ...io.graphs.common import MATRIX_MARKET, WEIGHT, pairs_of, symmetry_of
from ...metrics.product_traffic import CsrBytes, csr_bytes, lines_of_x, store_bytes


@dataclass(frozen=True)
class _Samples:
    """Seconds of the samples of a product."""

    seconds: float  # of the fastest
    median: float
    slowest: float
    runs: int

    @property
    def timing(self) -> Timing:
        return Timing(self.seconds, self.median, self.slowest, self.runs)


@dataclass(frozen=True)
class StoreTrial(_Samples):
    """The product in one store."""

    store: str  # as :class:`~..metrics.product_traffic.StoreBytes` names it
    bytes: int  # that a product moves if caches keep the vectors


@dataclass(frozen=True)
class ProductTrial(_Samples):
    """One way to multiply on a CPU, and what came out."""

    threads: int
    piece: int  # nonzeros and rows that a thread takes at a time


K = TypeVar("K")


def _timed(
    products: Mapping[K, Product], dtype: Any, runs: int, progress: Callable[[float], None]
) -> dict[K, tuple[float, float, float, int]]:
    """The samples of each product; they take turns, so that a slow spell of the machine hits all.

    ``progress`` is told the share of the turns that are done.
    """
    seconds: dict[K, list[float]] = {key: [] for key in products}
    rows, columns = next(iter(products.values())).shape
    x, y = np.ones(columns, dtype), np.ones(rows, dtype)
    for product in products.values():
        # until it has found out how many threads it takes, so that samples are alike
        for _ in range(SETTLED):
            product(x, out=y)
    for turn in range(runs):
        progress(turn / runs)
        for key, product in products.items():
            seconds[key].append(_sample(product, x, y))
    return {key: astuple(Timing.of(samples)) for key, samples in seconds.items()}


def _sample(product: Product, x: NDArray[Any], y: NDArray[Any]) -> float:
    """Seconds of a call, the mean of calls in a row that take two milliseconds together."""
    product(x, out=y)
    calls, start = 0, time.perf_counter()
    while True:
        product(x, out=y)
        calls += 1
        spent = time.perf_counter() - start
        if spent > SAMPLE_SECONDS:
            return spent / calls


def _time_stores(
    plan: LoopPlan, runs: int, progress: Callable[[float], None]
) -> tuple[StoreTrial, ...]:
    """The product in each store that the loop alone can fill, on all threads.

    In the order of :func:`~..metrics.product_traffic.store_bytes`.
    """
    (arg,) = plan.loop.matrices
    pattern = plan.matrices[arg.name]
    moved = {s.store: s.product for s in store_bytes(pattern, np.dtype(arg.dtype).itemsize)}
    alone, blocks = len(pattern.place) == 1, plan if plan.variants else None
    products = {
        name: Product(_empty(plan, arg, name), blocks if name.startswith("local") else None)
        for name in moved
        if name == "csr" or (alone and _is_multiplied(name, pattern))
    }
    timed = _timed(products, arg.dtype, runs, progress)
    return tuple(StoreTrial(*seconds, name, moved[name]) for name, seconds in timed.items())


def _is_multiplied(store: str, pattern: MatrixPlan) -> bool:
    """Whether a processor multiplies matrices of elements with so many dofs."""
    (place,) = pattern.place.values()
    return store != "local, half" or place.shape[1] <= MOST_DOFS**2


def _empty(plan: LoopPlan, arg: Arg, store: str) -> Store:
    """Zeros in this store; their bytes move as any others do."""
    if store != "local, half":
        return STORES[store](plan, arg)
    whole: Any = STORES["local"](plan, arg)
    elements, n = whole.dofs.shape
    half: NDArray[Any] = np.zeros((elements, n * (n + 1) // 2), arg.dtype)
    return LocalMatrices(half, whole.dofs, True, whole.n_rows)


PIECES = (1 << 11, 1 << 12, 1 << 13, PIECE, 1 << 15, 1 << 16, 1 << 17)
PLAN_SUFFIXES = (".h5", ".hdf5")


@dataclass(frozen=True)
class ProductTuning:
    """What came out for a matrix."""

    machine: Machine
    rows: int
    nonzeros: int
    itemsize: int  # bytes of a value
    trials: tuple[ProductTrial, ...]  # the fastest first
    bytes: CsrBytes  # that a call moves, by formula
    gpu: CsrThreads  # what the fixed rule gives on a GPU
    lines: int  # lines of 128 bytes of x that its thread blocks read there
    # What else the plan could fill; empty for a matrix without a plan.
    stores: tuple[StoreTrial, ...] = ()

    @property
    def best(self) -> ProductTrial:
        return self.trials[0]

    @property
    def default(self) -> ProductTrial:
        """What a product runs that was not tuned."""
        most = max(trial.threads for trial in self.trials)
        return next(t for t in self.trials if t.threads == most and t.piece == PIECE)


def read_matrix(path: Path, loop: str | None = None) -> tuple[CsrMatrix, LoopPlan | None]:
    """The matrix of a Matrix Market file, or the pattern of one in a plan.

    ``loop`` adds to the matrix that is meant, of a plan with several. Of a plan, also gives a loop
    that adds to this matrix and to no other, if there is one. Raises MeshprepError for a file with
    another content, and where there are several matrices or none.
    """
    if path.suffix.lower() not in PLAN_SUFFIXES:
        if loop is not None:
            raise MeshprepError(f"{path}: only matrices of a plan have a loop: leave --loop out")
        return read_csr(path), None
    plan = Plan.load(path)
    names = list(plan.matrices)
    if loop is not None:
        names = [arg.name for arg in plan[loop].loop.matrices]
    if len(names) != 1:
        raise MeshprepError(
            f"{path}: has {len(names)} matrices: give a plan of a loop that adds to one, or of "
            "several the loop with --loop"
        )
    matrix = plan.matrices[names[0]]
    alone = (plan[name] for name in matrix.place if len(plan[name].loop.matrices) == 1)
    return matrix.csr(), next(alone, None)


def read_csr(path: Path) -> CsrMatrix:
    """The matrix of a Matrix Market file.

    Raises MeshprepError for what is no sparse matrix of real numbers.

    Values are real, integer, or none, which count as 1; symmetric or not. Entries in one place are
    added.
    """
    from scipy.sparse import coo_array

    mesh = read(path)
    if MATRIX_MARKET not in mesh.extras:
        raise MeshprepError(f"{path}: products need a matrix: give a Matrix Market file (.mtx)")
    row, column = pairs_of(mesh).T
    weight = next((d.values for d in mesh.dats if d.name == WEIGHT), np.ones(row.size))
    if weight.dtype.kind == "c":
        raise MeshprepError(f"{path}: the values are complex; products are of real numbers")
    values, symmetry = weight.reshape(-1).astype(np.float64), symmetry_of(mesh)
    if symmetry != "general":
        off = row != column
        mirrored = -values[off] if symmetry == "skew-symmetric" else values[off]
        row, column = np.append(row, column[off]), np.append(column, row[off])
        values = np.append(values, mirrored)
    n = mesh.size("vertices")
    return CsrMatrix.from_scipy(coo_array((values, (row, column)), shape=(n, n)))


def tune_product(
    matrix: CsrMatrix,
    *,
    plan: LoopPlan | None = None,
    runs: int = 9,
    progress: Progress = lambda done, total, what: None,
) -> ProductTuning:
    """Time the product with a matrix for numbers of threads and sizes of pieces.

    A sample repeats a call until it takes two milliseconds; of ``runs`` samples of each candidate
    the fastest counts. ``plan`` is that of a loop that adds to the matrix: its other stores are
    timed, too.
    """
    machine = this_cpu().machine
    # 1, 2, 4, ... and as many as there are
    counts = {*(1 << k for k in range(machine.threads.bit_length())), machine.threads}
    grid = [(t, p) for t in sorted(counts) for p in dict.fromkeys([PIECE, *PIECES])]
    dtype, total = matrix.values.dtype, 1 if plan is None else 2
    candidates = {(t, p): Product(matrix, threads=t, piece=p) for t, p in grid}
    timed = _timed(candidates, dtype, runs, lambda share: progress(share, total, "timing"))
    trials = [ProductTrial(*seconds, *way) for way, seconds in timed.items()]
    rows, nonzeros, itemsize = matrix.shape[0], matrix.values.size, dtype.itemsize
    gpu = fixed_rule(rows, nonzeros)
    stores: tuple[StoreTrial, ...] = ()
    if plan is not None:
        stores = _time_stores(plan, runs, lambda share: progress(1 + share, total, "stores"))
    return ProductTuning(
        machine=machine,
        rows=rows,
        nonzeros=nonzeros,
        itemsize=itemsize,
        trials=tuple(sorted(trials, key=lambda trial: trial.seconds)),
        bytes=csr_bytes(rows, nonzeros, itemsize),
        gpu=gpu,
        lines=lines_of_x(matrix.row_ptr, matrix.columns, gpu, itemsize),
        stores=stores,
    )
