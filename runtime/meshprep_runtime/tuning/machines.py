"""Where loops are tuned: what may be tried there, and how arrays get there and back."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cpu import NEED_BLOCKS, STRATEGIES, refusal
from ..cpu.pool import thread_count
from ..cuda import COMMITS
from ..cuda import STRATEGIES as GPU_STRATEGIES
from ..cuda import refusal as gpu_refusal
from ..cuda.device import Device, current, import_cupy
from ..cuda.strategies import MOST_THREADS, WARP, hopeless
from ..errors import MeshprepError
from ..plan import LoopPlan, Variant
from ..plan.tuned import CPU, GPU, Machine, Trial
from .lookup import processor


@dataclass(frozen=True)
class Backend:
    """Where loops run while they are tuned."""

    machine: Machine
    strategies: tuple[str, ...]  # what may be tried there, the likely best first
    # ``variants_for(plan, strategy)`` gives pairs of a variant's name and a commit: all with which
    # the strategy can run the loop. The name is empty where it takes no blocks.
    variants_for: Callable[[LoopPlan, str], list[tuple[str, str]]]
    put: Callable[[NDArray[Any]], Any] = np.array  # a NumPy array as loops take it there
    # ``assign(array, values)`` gives such an array new values.
    assign: Callable[[Any, NDArray[Any]], None] = np.copyto
    wait: Callable[[], None] = lambda: None  # returns when all that was launched has run


def this_cpu() -> Backend:
    """This machine's processor, with the threads that loops use now."""
    machine = Machine(CPU, processor(), thread_count())
    first = "hierarchical"
    return Backend(machine, (first, *(s for s in STRATEGIES if s != first)), variants_on_cpu)


def this_gpu() -> Backend:
    """The current CUDA device; raises MissingPackageError without CuPy, or MeshprepError."""
    cupy = import_cupy()
    return on_gpu(
        current(),
        put=cupy.asarray,
        assign=lambda array, values: array.set(values),
        wait=lambda: cupy.cuda.get_current_stream().synchronize(),
    )


def on_gpu(
    device: Device,
    put: Callable[[NDArray[Any]], Any],
    assign: Callable[[Any, NDArray[Any]], None],
    wait: Callable[[], None],
) -> Backend:
    """A GPU, or what stands for one, with arrays of some library."""
    machine = Machine(GPU, device.name)
    return Backend(machine, tuple(GPU_STRATEGIES), variants_on_gpu, put, assign, wait)


def variants_on_cpu(plan: LoopPlan, strategy: str) -> list[tuple[str, str]]:
    """Variants for a strategy, as :class:`Backend` wants them."""
    if refusal(plan.loop, strategy):
        return []
    return [(name, COMMITS[0]) for name in (plan.variants if strategy in NEED_BLOCKS else ("",))]


def variants_on_gpu(plan: LoopPlan, strategy: str) -> list[tuple[str, str]]:
    """Variants that fit a thread block, and commits, for a strategy."""
    able = [c for c in COMMITS if gpu_refusal(plan.loop, strategy, c) is None]
    blocks = GPU_STRATEGIES[strategy].blocks
    if not (blocks and plan.loop.conflict_columns):
        # There is nothing that blocks commit.
        able = able[:1]
    fit = [v.name for v in plan.variants.values() if v.block_size <= MOST_THREADS]
    return [(name, commit) for commit in able for name in (fit if blocks else ("",))]


# Elements that a thread runs, besides one, and the fewest threads of a block that takes several.
ELEMENTS, LEAST_THREADS = (2, 4), 2 * WARP


@dataclass(frozen=True)
class TuningCandidate:
    """A way to run a loop: ``variant`` "" for no blocks, ``threads`` None for theirs."""

    strategy: str
    variant: str
    soa: tuple[str, ...]
    commit: str = COMMITS[0]
    threads: int | None = None

    def __str__(self) -> str:
        blocks = f" {self.variant}" if self.variant else ""
        blocks += f" by {self.threads} threads" if self.threads else ""
        atomics = " atomics" if self.commit != COMMITS[0] else ""
        soa = f", SoA {' '.join(self.soa)}" if self.soa else ""
        return f"{self.strategy}{blocks}{atomics}{soa}"


def grid(
    plan: LoopPlan,
    backend: Backend,
    asked: Sequence[str] | None,
    layouts: Sequence[tuple[str, ...]],
) -> list[TuningCandidate]:
    """Strategies by variants by whole layouts."""
    for name in asked or ():
        if name not in backend.strategies:
            raise MeshprepError(
                f"strategy '{name}' is unknown here: use {', '.join(backend.strategies)}"
            )
    found = [
        TuningCandidate(strategy, variant, soa, commit)
        for strategy in backend.strategies
        if (strategy in asked if asked else not hopeless(plan.loop, strategy))
        for soa in layouts
        for variant, commit in backend.variants_for(plan, strategy)
    ]
    if not found:
        raise MeshprepError(
            f"loop '{plan.loop.name}': none of {', '.join(asked or backend.strategies)} can run it"
        )
    return found


def fewer_threads(variant: Variant) -> list[int]:
    """Numbers of threads, in whole warps, that run two and four elements of its blocks each."""
    size = variant.block_size
    found = (-(-size // (many * WARP)) * WARP for many in ELEMENTS)
    return [threads for threads in dict.fromkeys(found) if LEAST_THREADS <= threads < size]


def with_fewer_threads(
    plan: LoopPlan, backend: Backend, seconds: Mapping[TuningCandidate, float]
) -> list[TuningCandidate]:
    """The fastest way with each of the blocks, by fewer threads [G12 section 6]; on a GPU only."""
    if backend.machine.kind != GPU:
        return []
    best: dict[str, TuningCandidate] = {}
    for candidate in sorted(seconds, key=lambda c: seconds[c]):
        best.setdefault(candidate.variant, candidate)
    return [
        replace(candidate, threads=threads)
        for name, candidate in best.items()
        if name
        for threads in fewer_threads(plan.variants[name])
    ]


def trial(candidate: TuningCandidate, times: Sequence[float], form: str = "") -> Trial:
    """What came out for a candidate: the seconds of its runs, at least one, and its code."""
    return Trial(
        strategy=candidate.strategy,
        variant=candidate.variant,
        soa=candidate.soa,
        seconds=min(times),
        median=statistics.median(times),
        spread=max(times) / min(times) - 1,
        runs=len(times),
        commit=candidate.commit,
        threads=candidate.threads,
        form=form,
    )
