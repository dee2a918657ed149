"""Which of the tuned choices of a plan holds for this machine, kernel and layout."""

import platform
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ..cpu import NEED_BLOCKS, ORDERED, STRATEGIES, refusal
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
    """As :func:`choose`; raises PlanError for a strategy that is not ``known``."""
    trial = choose(plan.tuned, machine, kernel, soa)
    if trial is not None and trial.strategy not in known:
        raise PlanError(
            f"loop '{plan.loop.name}': the plan was tuned for strategy '{trial.strategy}', which "
            "is unknown here: name one, or tune it again"
        )
    return trial


def choose(
    entries: Sequence[Tuned], machine: Machine, kernel: str, soa: Iterable[str]
) -> Trial | None:
    """What a loop should run on a machine with arrays in these layouts; None where nobody knows.

    Measured goes before ranked, this kernel before others, late before early. What was ranked for
    an H200 holds for a device that has the word in its name.
    """
    wanted = tuple(soa)
    trials = (entry.best_for(wanted) for entry in _preferred(entries, machine, kernel))
    return next((trial for trial in trials if trial is not None), None)


def _preferred(entries: Sequence[Tuned], machine: Machine, kernel: str) -> list[Tuned]:
    """The entries that hold for a machine, what is looked at first before the others."""
    found = [entry for entry in reversed(entries) if _holds(entry, machine)]
    return sorted(found, key=lambda t: (t.measured, t.kernel == kernel), reverse=True)


def _holds(entry: Tuned, machine: Machine) -> bool:
    if entry.measured or machine.kind != GPU or entry.machine.kind != GPU:
        return entry.machine == machine
    return entry.machine.name in re.split(r"[^A-Za-z0-9]+", machine.name)


def with_entry(entries: Sequence[Tuned], new: Tuned) -> tuple[Tuned, ...]:
    """The entries with a new one last, in place of the one for its machine and kernel."""
    key = (new.machine, new.kernel, new.measured)
    return (*(t for t in entries if (t.machine, t.kernel, t.measured) != key), new)


def processor() -> str:
    """The name of this machine's processor, as the system tells it."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


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
    form: str = field(default="", init=False)  # of the code, where it was tuned
    _by_threads: dict[int, StrategyAndVariant] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.for_gpu = self.strategy in GPU_STRATEGIES and self.strategy not in STRATEGIES
        # the same for any number of threads
        self.always = None if self.strategy == AUTO and self.plan.tuned else self._untuned

    @property
    def _untuned(self) -> StrategyAndVariant:
        if self.strategy not in (AUTO, ORDERED):
            return self.strategy, self.variant
        # the ranges of a plan are those of its default blocks
        own = self.variant if self.fixed else self.plan.variants.get(self.plan.default)
        return ORDERED, own

    def __call__(self) -> StrategyAndVariant:
        if self.always is not None:
            return self.always
        threads = thread_count()
        if threads not in self._by_threads:
            self._by_threads[threads] = self._choose(threads)
        return self._by_threads[threads]

    def _choose(self, threads: int) -> StrategyAndVariant:
        machine = Machine(CPU, _processor(), threads)
        trial = tuned_for(self.plan, machine, self.kernel, self.soa, STRATEGIES)
        if trial is None or not self._allows(trial):
            return self._untuned
        self.form = trial.form
        if not trial.variant:
            return trial.strategy, self.variant
        variant = self.plan.variant(trial.variant)
        check_variant(self.plan, variant)
        return trial.strategy, variant

    def _allows(self, trial: Trial) -> bool:
        own = "" if self.variant is None else self.variant.name
        return not (self.fixed and trial.variant) or trial.variant == own


_processor = cache(processor)


def chooser(
    plan: LoopPlan,
    strategy: str,
    variant: str | None,
    soa: tuple[str, ...],
    kernel: str,
    commit: str,
) -> Chooser:
    """The choice for a loop; raises MeshprepError for a strategy that cannot run it.

    A strategy that only a GPU has is looked at with ``commit``.
    """
    chosen = _variant(plan, variant)
    if chosen is not None:
        check_variant(plan, chosen)
    found = Chooser(plan, strategy, chosen, soa, kernel, variant is not None)
    if found.for_gpu:
        check_strategy(plan, strategy, commit)
    else:
        _check_strategy(plan, strategy, chosen is not None)
    return found


def _variant(plan: LoopPlan, name: str | None) -> Variant | None:
    if name is not None or not plan.variants:
        return plan.variant(name) if name is not None else None
    cpu = next((v for v in plan.variants.values() if v.target == "cpu"), None)
    return plan.variant() if cpu is None else cpu


def _check_strategy(plan: LoopPlan, strategy: str, has_blocks: bool) -> None:
    where = f"loop '{plan.loop.name}'"
    if strategy not in (AUTO, *STRATEGIES):
        more = ", ".join(name for name in GPU_STRATEGIES if name not in STRATEGIES)
        raise MeshprepError(
            f"{where}: strategy '{strategy}' is unknown: use {', '.join((AUTO, *STRATEGIES))}, or "
            f"on a GPU {more}"
        )
    if strategy in NEED_BLOCKS and not has_blocks:
        raise MeshprepError(f"{where} has no blocks in this plan: use strategy 'sequential'")
    if reason := refusal(plan.loop, strategy):
        raise MeshprepError(f"{where}: strategy '{strategy}' cannot run it: {reason}")
