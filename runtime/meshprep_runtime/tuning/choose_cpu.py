"""Which strategy and blocks ``strategy="auto"`` runs: what was tuned, else a rule."""

from dataclasses import dataclass, field
from functools import cache

from ..cpu import STRATEGIES, choose_strategy
from ..cpu.cores import thread_count
from ..cpu.executor import StrategyAndVariant
from ..plan import LoopPlan, Variant
from ..plan.structure import check_variant
from ..plan.tuned import CPU, Machine, Trial
from .lookup import AUTO, processor, tuned_for


@dataclass
class Chooser:
    """The strategy and the blocks that a loop runs now; a call costs less than a microsecond."""

    plan: LoopPlan
    strategy: str  # ``"auto"``, or the one to run always
    variant: Variant | None  # the blocks where nothing was tuned
    # Dats stored component after component, as they must have been where it was tuned.
    soa: tuple[str, ...]
    kernel: str  # its name
    fixed: bool  # run no other blocks than ``variant``, whatever was tuned
    _by_threads: dict[int, StrategyAndVariant] = field(default_factory=dict, init=False)

    def __call__(self) -> StrategyAndVariant:
        if self.strategy != AUTO:
            return self.strategy, self.variant
        threads = thread_count()
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
