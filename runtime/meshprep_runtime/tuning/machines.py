"""The machines on which loops are tuned, and the candidates that may be tried there."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cpu import STRATEGIES, refusal
from ..cpu.pool import thread_count
from ..cuda import COMMITS
from ..cuda import STRATEGIES as GPU_STRATEGIES
from ..cuda import refusal as gpu_refusal
from ..cuda.device import Device, current, import_cupy
from ..cuda.strategies import MOST_THREADS, WARP, hopeless
from ..errors import MeshprepError
from ..plan import LoopPlan, Variant
from ..plan.tuned import CPU, GPU, Machine, Trial
from .lookup import processor_name


@dataclass(frozen=True)
class Backend:
    """A machine on which loops are tuned, and its arrays."""

    machine: Machine
    strategies: tuple[str, ...]  # that may be tried, the likely best first
    # ``variants_for(plan, strategy)`` returns pairs of a variant's name and a commit: all
    # with which the strategy can run the loop. The name is empty for no blocks.
    variants_for: Callable[[LoopPlan, str], list[tuple[str, str]]]
    # Copies a NumPy array to an array of the machine.
    put: Callable[[NDArray[Any]], Any] = np.array
    # ``assign(array, values)`` gives such an array new values.
    assign: Callable[[Any, NDArray[Any]], None] = np.copyto
    # Returns when all that was launched has run.
    wait: Callable[[], None] = lambda: None
    arch: str = ""  # of a GPU, such as ``"sm_90"``


def this_cpu() -> Backend:
    """This machine's processor, with the present number of threads."""
    machine = Machine(CPU, processor_name(), thread_count())
    first = "hierarchical"
    others = [strategy for strategy in STRATEGIES if strategy != first]
    return Backend(machine, (first, *others), variants_on_cpu)


def this_gpu() -> Backend:
    """The current CUDA device.

    Raises MissingPackageError without CuPy, and MeshprepError without a GPU.
    """
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
    """A GPU, or an object in place of one, with the functions for its arrays."""
    machine = Machine(GPU, device.name)
    return Backend(
        machine=machine,
        strategies=tuple(GPU_STRATEGIES),
        variants_for=variants_on_gpu,
        put=put,
        assign=assign,
        wait=wait,
        arch=device.arch,
    )


def variants_on_cpu(plan: LoopPlan, strategy: str) -> list[tuple[str, str]]:
    """Variants for a strategy, see :class:`Backend`; the commit does not matter."""
    if refusal(plan.loop, strategy):
        return []
    names = list(plan.variants) if STRATEGIES[strategy].needs_blocks else [""]
    return [(name, COMMITS[0]) for name in names]


def variants_on_gpu(plan: LoopPlan, strategy: str) -> list[tuple[str, str]]:
    """Variants that fit a thread block, and commits, for a strategy."""
    commits = [c for c in COMMITS if gpu_refusal(plan.loop, strategy, c) is None]
    blocks = GPU_STRATEGIES[strategy].blocks
    # Without blocks that commit sums, all commits are the same.
    if not (blocks and plan.loop.conflict_columns):
        commits = commits[:1]
    names = [""]
    if blocks:
        names = [v.name for v in plan.variants.values() if v.block_size <= MOST_THREADS]
    return [(name, commit) for commit in commits for name in names]


# Numbers of elements of a thread that are tried, besides one.
ELEMENTS = (2, 4)
# Threads of a block whose threads run several elements, at least.
LEAST_THREADS = 2 * WARP


@dataclass(frozen=True)
class TuningCandidate:
    """A way to run a loop."""

    strategy: str
    variant: str  # empty for no blocks
    soa: tuple[str, ...]  # dats stored component after component
    commit: str = COMMITS[0]
    threads: int | None = None  # None for as many as the blocks have elements

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
    """All candidates: strategies, layouts of all dats, variants and commits.

    ``asked`` are the strategies to try; None for all that may win.
    """
    # Refuse names that the machine does not have.
    for name in asked or ():
        if name not in backend.strategies:
            raise MeshprepError(
                f"strategy '{name}' is unknown here: use {', '.join(backend.strategies)}"
            )
    # Leave out what cannot win, unless it is asked for.
    candidates = []
    for strategy in backend.strategies:
        tried = strategy in asked if asked else not hopeless(plan.loop, strategy)
        if not tried:
            continue
        for soa in layouts:
            for variant, commit in backend.variants_for(plan, strategy):
                candidate = TuningCandidate(
                    strategy=strategy, variant=variant, soa=soa, commit=commit
                )
                candidates.append(candidate)
    if not candidates:
        raise MeshprepError(
            f"loop '{plan.loop.name}': none of {', '.join(asked or backend.strategies)} "
            "can run it"
        )
    return candidates


def fewer_threads(variant: Variant) -> list[int]:
    """Numbers of threads, in whole warps, with which a thread runs two or four elements."""
    size = variant.block_size
    numbers = [-(-size // (elements * WARP)) * WARP for elements in ELEMENTS]
    return [n for n in dict.fromkeys(numbers) if LEAST_THREADS <= n < size]


def with_fewer_threads(
    plan: LoopPlan, backend: Backend, seconds: Mapping[TuningCandidate, float]
) -> list[TuningCandidate]:
    """The fastest candidate of each variant, with fewer threads [G12 section 6].

    None on a CPU.
    """
    if backend.machine.kind != GPU:
        return []
    fastest: dict[str, TuningCandidate] = {}
    for candidate in sorted(seconds, key=lambda c: seconds[c]):
        fastest.setdefault(candidate.variant, candidate)
    candidates = []
    for name, candidate in fastest.items():
        if name:
            numbers = fewer_threads(plan.variants[name])
            candidates += [replace(candidate, threads=n) for n in numbers]
    return candidates


def trial(candidate: TuningCandidate, times: Sequence[float], form: str = "") -> Trial:
    """The entry of a candidate, from the seconds of its runs and the form of its code."""
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
