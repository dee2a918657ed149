"""ParLoop: an elemental kernel, a plan and arrays, brought together [G12 section 2]."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .bind import bind, slots
from .cpu import STRATEGIES, Executor, choose_strategy
from .errors import MeshprepError
from .plan import LoopPlan, Variant
from .structure import check_blocks, check_loop

AUTO = "auto"
GENERATOR = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class ParLoop:
    """A loop that can be called with arrays.

    Parameters
    ----------
    kernel : function
        Works on one element: one parameter for each argument and index in the order of the loop,
        each a row of ``dim`` values (a global: its ``dim`` values). It reads ``read`` rows, sets
        ``write`` rows, adds to ``inc`` rows (``row[0] += f``), and lowers or raises ``min`` and
        ``max`` globals. It is compiled by numba, with the plain functions it calls.
    plan : LoopPlan
        ``plan["res_calc"]`` of a loaded plan, or one made in memory.
    strategy : str
        ``"sequential"``; ``"hierarchical"``: block colours one after the other, blocks of one
        colour in parallel [S19]; ``"auto"``: hierarchical where there are several threads and
        the loop has blocks.
    variant : str or None
        Which blocks; None takes those made for a CPU where the plan has them, else the default.
    boundscheck : bool
        Check every index inside the kernel, for finding mistakes in it; slow, one thread.

    Raises
    ------
    MeshprepError
        For an unknown strategy or variant, a kernel with another number of parameters, a dat with
        accesses that conflict.

    Notes
    -----
    ``loop(x=x, q=q, res=res)`` runs over the whole set and changes the arrays in place. They are
    NumPy arrays in the plan's numbering, C-contiguous, of exactly the declared dtype, of shape
    ``(n, dim)``, or ``(n,)`` where dim is 1. Constants may be given as numbers.

    The result does not depend on the number of threads. numba is imported, and the kernel
    compiled, on the first call; equal kernels share compiled code for the life of the process.
    Globals and closure values that the kernel uses are those of the first call.
    """

    def __init__(
        self,
        kernel: Callable[..., None],
        plan: LoopPlan,
        *,
        strategy: str = AUTO,
        variant: str | None = None,
        boundscheck: bool = False,
    ) -> None:
        if not isinstance(plan, LoopPlan):
            raise MeshprepError(
                f"a ParLoop needs the plan of one loop, not a {type(plan).__name__}: "
                "pass plan['NAME']"
            )
        self.loop = plan.loop
        where = f"loop '{self.loop.name}'"
        if strategy not in (AUTO, *STRATEGIES):
            raise MeshprepError(
                f"{where}: strategy '{strategy}' is unknown: use {', '.join((AUTO, *STRATEGIES))}"
            )
        # Compiled code makes no bounds checks of its own.
        check_loop(plan)
        chosen = _variant(plan, variant)
        if chosen is not None:
            check_blocks(f"{where}, variant '{chosen.name}'", chosen, plan.sizes[self.loop.over])
        elif strategy == "hierarchical":
            raise MeshprepError(f"{where} has no blocks in this plan: use strategy 'sequential'")
        _check_parameters(kernel, plan)
        self._wanted = strategy
        self._slots = slots(plan)
        self._executor = Executor(kernel, plan, self._slots, chosen, boundscheck)

    @property
    def strategy(self) -> str:
        """The strategy that a call runs; with ``"auto"`` it follows the number of threads."""
        if self._wanted != AUTO:
            return self._wanted
        return choose_strategy(self._executor.variant)

    def __call__(self, **arrays: Any) -> None:
        """Run the loop on these arrays, by the names of its arguments.

        Raises
        ------
        MeshprepError
            When an array does not fit; the message names the argument. Nothing has run then.
        """
        bound = bind(self.loop, self._slots, arrays)
        self._executor.run(self.strategy, bound)

    def __repr__(self) -> str:
        names = ", ".join(s.name for s in self._slots)
        return f"ParLoop({self.loop.name}({names}) over {self.loop.over}, {self._wanted})"


def _variant(plan: LoopPlan, name: str | None) -> Variant | None:
    if name is not None or not plan.variants:
        return plan.variant(name) if name is not None else None
    cpu = next((v for v in plan.variants.values() if v.target == "cpu"), None)
    return plan.variant() if cpu is None else cpu


def _check_parameters(kernel: Callable[..., None], plan: LoopPlan) -> None:
    function = getattr(kernel, "py_func", kernel)
    if not inspect.isfunction(function):
        raise MeshprepError(
            f"loop '{plan.loop.name}': the kernel is a {type(kernel).__name__}, "
            "must be a Python function"
        )
    wanted = [
        f"{a.name}[{i}]" if a.map is not None else a.name
        for a in plan.loop.args
        for i in (a.index or (0,))
    ]
    code = function.__code__
    if code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        raise MeshprepError(
            f"kernel '{function.__name__}' has *, ** or keyword parameters: it must have "
            f"{len(wanted)} plain ones"
        )
    if code.co_flags & GENERATOR:
        raise MeshprepError(
            f"kernel '{function.__name__}' is a generator or coroutine: use no yield"
        )
    if code.co_argcount != len(wanted):
        raise MeshprepError(
            f"kernel '{function.__name__}' has {code.co_argcount} parameters, but loop "
            f"'{plan.loop.name}' hands it {len(wanted)}: {', '.join(wanted)}"
        )
