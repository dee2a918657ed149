"""Which strategy and blocks ``strategy="auto"`` runs: what was tuned, else a rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from ..bind import Slot
from ..cpu import STRATEGIES, choose_strategy
from ..cpu.executor import StrategyAndVariant
from ..kernel.compiler import import_numba
from ..plan import LoopPlan, Variant
from ..plan.structure import check_variant
from ..plan.tuned import CPU, Machine, Trial
from .lookup import AUTO, processor, tuned_for


class Chooser:
    """The strategy and the blocks that a loop runs now; a call costs less than a microsecond.

    Parameters
    ----------
    plan : LoopPlan
    strategy : str
        ``"auto"``, or the one to run always.
    variant : Variant or None
        The blocks where nothing was tuned.
    slots : sequence of Slot
        The layouts, which what was tuned must have had.
    kernel : function
    fixed : bool
        Run no other blocks than ``variant``, whatever was tuned.
    """

    def __init__(
        self,
        plan: LoopPlan,
        strategy: str,
        variant: Variant | None,
        slots: Sequence[Slot],
        kernel: Callable[..., None],
        *,
        fixed: bool,
    ) -> None:
        self.plan = plan
        self.strategy = strategy
        self.variant = variant
        self.soa = tuple(s.name for s in slots if s.soa)
        self.kernel = kernel.__name__
        self.fixed = fixed
        self._by_threads: dict[int, StrategyAndVariant] = {}

    def __call__(self) -> StrategyAndVariant:
        if self.strategy != AUTO:
            return self.strategy, self.variant
        threads = import_numba().get_num_threads()
        if threads not in self._by_threads:
            self._by_threads[threads] = self._choose(threads)
        return self._by_threads[threads]

    def _choose(self, threads: int) -> StrategyAndVariant:
        machine = Machine(CPU, _processor(), threads)
        trial = tuned_for(self.plan, machine, self.kernel, self.soa, STRATEGIES)
        if trial is None or not self._allows(trial):
            return choose_strategy(self.variant), self.variant
        if not trial.variant:
            return trial.strategy, self.variant
        variant = self.plan.variant(trial.variant)
        check_variant(self.plan, variant)
        return trial.strategy, variant

    def _allows(self, trial: Trial) -> bool:
        own = "" if self.variant is None else self.variant.name
        return not (self.fixed and trial.variant) or trial.variant == own


_processor = cache(processor)
