"""Runs a bound loop on the CPU: generates, compiles and keeps its code, and launches it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bind import Slot
from ..errors import MeshprepError, MissingPackageError
from ..plan import LoopPlan, Variant
from .kernel import fresh, reach
from .report import compile_error
from .source import STRATEGIES, elements_source

MAX_KEPT = 256

_kept: dict[Hashable, Any] = {}
_keeping = threading.Lock()


class _Launch:
    """One parallel launch at a time: numba's workqueue layer aborts on concurrent ones."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.used = False
        self.forked = False

    def after_fork(self) -> None:
        self.lock = threading.Lock()
        self.forked = self.used


_launch = _Launch()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_launch.after_fork)


class Executor:
    """The arrays of the plan that a loop needs, and its compiled code for each strategy."""

    def __init__(
        self,
        kernel: Callable[..., None],
        plan: LoopPlan,
        slots: Sequence[Slot],
        variant: Variant | None,
        boundscheck: bool,
    ) -> None:
        self.kernel = kernel
        self.loop = plan.loop
        self.variant = variant
        self.slots = slots
        self.boundscheck = boundscheck
        self._compiled: dict[str, Any] = {}
        none = np.zeros(1, dtype=np.int64)
        blocks: tuple[NDArray, ...] = (none, none, none[:0])
        if variant is not None:
            blocks = (variant.block_offset, variant.block_colour_offset, variant.block_order)
        maps = [plan.maps[name].table.view(np.uint32) for name in plan.loop.maps]
        self._fixed = (plan.sizes[plan.loop.over], *blocks, *maps)

    def run(self, strategy: str, arrays: Sequence[NDArray]) -> None:
        """Run the loop on arrays that :func:`bind` has checked."""
        parallel = STRATEGIES[strategy][1]
        call = self._compiled.get(strategy)
        if call is None:
            call = self._compiled[strategy] = self._compile(strategy, arrays)
        if not parallel:
            call(*self._fixed, *arrays)
            return
        _refuse_after_fork(self.loop.name)
        with _launch.lock:
            _launch.used = True
            try:
                call(*self._fixed, *arrays)
            except SystemError as error:
                # How an exception in a thread arrives here.
                raise error.__cause__ or error from None

    def _compile(self, strategy: str, arrays: Sequence[NDArray]) -> Any:
        numba = import_numba()
        make, parallel = STRATEGIES[strategy]
        text = elements_source(self.loop, self.slots) + "\n\n" + make(self.loop, self.slots)
        key = (reach(self.kernel), text, strategy, self.boundscheck)
        with _keeping:
            call = _kept.get(key) or _build(numba, self.kernel, text, parallel, self.boundscheck)
            try:
                call.compile(tuple(numba.typeof(a) for a in (*self._fixed, *arrays)))
            except Exception as error:  # numba's own and, for some bytecode, others.
                raise compile_error(self.kernel, self.loop, self.slots, error) from error
            if len(_kept) >= MAX_KEPT:
                del _kept[next(iter(_kept))]
            _kept[key] = call
        return call


def choose_strategy(variant: Variant | None) -> str:
    """Hierarchical where there are several threads and blocks to share among them."""
    several = variant is not None and variant.n_blocks > 1 and import_numba().get_num_threads() > 1
    return "hierarchical" if several else "sequential"


def import_numba() -> Any:
    """numba; raises MissingPackageError where it is not installed."""
    try:
        import numba
    except ModuleNotFoundError as error:
        raise MissingPackageError("running loops needs numba: pip install numba") from error
    return numba


def _build(
    numba: Any, kernel: Callable[..., None], text: str, parallel: bool, boundscheck: bool
) -> Any:
    """Compiled ``run`` of a generated text. Nothing is kept on disk, so nothing there is stale."""
    # Division by zero gives inf or nan, as in NumPy: threads cannot raise.
    common = {"error_model": "numpy", "boundscheck": boundscheck}
    scope: dict[str, Any] = {"np": np, "prange": numba.prange}
    scope["kernel"] = fresh(kernel, lambda f, own: numba.jit(**(common | own))(f))
    exec(compile(text, "<meshprep loop>", "exec"), scope)
    scope["elements"] = numba.jit(**common)(scope["elements"])
    return numba.jit(parallel=parallel and not boundscheck, **common)(scope["run"])


def _refuse_after_fork(name: str) -> None:
    if not _launch.forked:
        return
    import numba

    if numba.threading_layer() == "omp":
        raise MeshprepError(
            f"loop '{name}': this process was forked after a parallel loop had run, which OpenMP "
            "does not survive: start processes by 'spawn', or use strategy 'sequential'"
        )
