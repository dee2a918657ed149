"""Where loops are tuned: what may be tried there, and how arrays get there and back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cpu import NEED_BLOCKS, STRATEGIES, refusal
from ..cpu.cores import thread_count
from ..cuda import COMMITS
from ..cuda import STRATEGIES as GPU_STRATEGIES
from ..cuda import refusal as gpu_refusal
from ..cuda.device import Device, current, import_cupy
from ..cuda.strategies import MOST_THREADS
from ..plan import LoopPlan
from ..plan.tuned import CPU, GPU, Machine
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
    """The current CUDA device, by CuPy.

    Raises MissingPackageError where CuPy is not installed. Raises MeshprepError where CUDA finds no
    GPU.
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
