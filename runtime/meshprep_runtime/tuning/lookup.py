"""Looks up the tuned choice of a plan for this machine, kernel and layout."""

import platform
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ..cpu import ORDERED, STRATEGIES, refusal
from ..cpu.executor import StrategyAndVariant
from ..cpu.pool import thread_count
from ..cuda.strategies import STRATEGIES as GPU_STRATEGIES
from ..cuda.strategies import check_strategy
from ..errors import MeshprepError, PlanError
from ..kernel.bind import AUTO
from ..plan import LoopPlan, Variant
from ..plan.checks.structure import check_variant
from ..plan.tuned import CPU, GPU, Machine, Trial, Tuned


def tuned_for(
    plan: LoopPlan, machine: Machine, kernel: str, soa: Iterable[str], known: Iterable[str]
) -> Trial | None:
    """:func:`best_entry` of a plan; raises PlanError for an unknown strategy."""
    trial = best_entry(entries=plan.tuned, machine=machine, kernel=kernel, soa=soa)
    if trial is not None and trial.strategy not in known:
        raise PlanError(
            f"loop '{plan.loop.name}': the plan was tuned for strategy '{trial.strategy}', "
            "which is unknown here: name one, or tune it again"
        )
    return trial


def best_entry(
    entries: Sequence[Tuned], machine: Machine, kernel: str, soa: Iterable[str]
) -> Trial | None:
    """The tuned choice for a machine, with arrays in these layouts; None without one.

    Measured entries come before ranked ones, those of this kernel before others, later
    before earlier ones. An entry that was ranked for an H200 holds for a device with that
    word in its name.
    """
    layouts = tuple(soa)
    for entry in _preferred(entries, machine, kernel):
        trial = entry.best_for(layouts)
        if trial is not None:
            return trial
    return None


def _preferred(entries: Sequence[Tuned], machine: Machine, kernel: str) -> list[Tuned]:
    """The entries that hold for a machine, the preferred ones first."""
    valid = [entry for entry in reversed(entries) if _holds_for(entry, machine)]
    return sorted(valid, key=lambda t: (t.measured, t.kernel == kernel), reverse=True)


def _holds_for(entry: Tuned, machine: Machine) -> bool:
    if entry.measured or machine.kind != GPU or entry.machine.kind != GPU:
        return entry.machine == machine
    return entry.machine.name in re.split(r"[^A-Za-z0-9]+", machine.name)


def with_entry(entries: Sequence[Tuned], new: Tuned) -> tuple[Tuned, ...]:
    """The entries with a new one last, which replaces that of its machine and kernel."""
    key = (new.machine, new.kernel, new.measured)
    return (*(t for t in entries if (t.machine, t.kernel, t.measured) != key), new)


def processor_name() -> str:
    """The name of this machine's processor, by the system."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@dataclass
class Chooser:
    """Returns the strategy and the blocks of a call, in less than a microsecond."""

    plan: LoopPlan
    strategy: str  # ``"auto"``, or the strategy of every call
    variant: Variant | None  # the blocks where nothing was tuned
    # Dats stored component after component; tuned choices hold for the same dats.
    soa: tuple[str, ...]
    kernel: str  # its name
    fixed: bool  # run no other blocks than ``variant``
    form: str = field(default="", init=False)  # of the code, where it was tuned
    _by_threads: dict[int, StrategyAndVariant] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.for_gpu = self.strategy in GPU_STRATEGIES and self.strategy not in STRATEGIES
        # The result, where it is the same for any number of threads; else None.
        if self.strategy == AUTO and self.plan.tuned:
            self.always = None
        else:
            self.always = self._untuned

    @property
    def _untuned(self) -> StrategyAndVariant:
        """The strategy and the blocks where nothing was tuned."""
        if self.strategy not in (AUTO, ORDERED):
            return self.strategy, self.variant
        # The plan has the ranges of its default blocks.
        if self.fixed:
            return ORDERED, self.variant
        return ORDERED, self.plan.variants.get(self.plan.default)

    def __call__(self) -> StrategyAndVariant:
        if self.always is not None:
            return self.always
        threads = thread_count()
        if threads not in self._by_threads:
            self._by_threads[threads] = self._tuned_or_default(threads)
        return self._by_threads[threads]

    def _tuned_or_default(self, threads: int) -> StrategyAndVariant:
        # Take what was measured on this processor with as many threads, if the plan still
        # has it.
        machine = Machine(CPU, _processor(), threads)
        trial = tuned_for(
            plan=self.plan,
            machine=machine,
            kernel=self.kernel,
            soa=self.soa,
            known=STRATEGIES,
        )
        if trial is None or not self._allows(trial):
            return self._untuned
        self.form = trial.form
        if not trial.variant:
            return trial.strategy, self.variant
        variant = self.plan.variant(trial.variant)
        check_variant(self.plan, variant)
        return trial.strategy, variant

    def _allows(self, trial: Trial) -> bool:
        """False for other blocks than those that the caller has fixed."""
        if not (self.fixed and trial.variant):
            return True
        return self.variant is not None and trial.variant == self.variant.name


_processor = cache(processor_name)


def chooser(
    plan: LoopPlan,
    strategy: str,
    variant: str | None,
    soa: tuple[str, ...],
    kernel: str,
    commit: str,
) -> Chooser:
    """The chooser of a loop; raises MeshprepError for a strategy that cannot run it.

    A strategy that only a GPU has is checked with ``commit``.
    """
    blocks = _variant_for_cpu(plan, variant)
    if blocks is not None:
        check_variant(plan, blocks)
    loop_chooser = Chooser(
        plan=plan,
        strategy=strategy,
        variant=blocks,
        soa=soa,
        kernel=kernel,
        fixed=variant is not None,
    )
    if loop_chooser.for_gpu:
        check_strategy(plan, strategy, commit)
    else:
        _check_strategy_for_cpu(plan, strategy, blocks is not None)
    return loop_chooser


def _variant_for_cpu(plan: LoopPlan, name: str | None) -> Variant | None:
    """The blocks of a name; else those made for a CPU, or the default, if any."""
    if name is not None:
        return plan.variant(name)
    if not plan.variants:
        return None
    for variant in plan.variants.values():
        if variant.target == "cpu":
            return variant
    return plan.variant()


def _check_strategy_for_cpu(plan: LoopPlan, strategy: str, has_blocks: bool) -> None:
    where = f"loop '{plan.loop.name}'"
    if strategy not in (AUTO, *STRATEGIES):
        # Name those of the GPU, too: the arrays decide where the loop runs.
        more = ", ".join(name for name in GPU_STRATEGIES if name not in STRATEGIES)
        raise MeshprepError(
            f"{where}: strategy '{strategy}' is unknown: use "
            f"{', '.join((AUTO, *STRATEGIES))}, or on a GPU {more}"
        )
    if strategy == AUTO:
        return
    if STRATEGIES[strategy].needs_blocks and not has_blocks:
        raise MeshprepError(
            f"{where} has no blocks in this plan: use strategy 'sequential'"
        )
    if reason := refusal(plan.loop, strategy):
        raise MeshprepError(f"{where}: strategy '{strategy}' cannot run it: {reason}")
