"""Which of the tuned choices of a plan holds for this machine, kernel and layout."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..errors import PlanError
from ..plan.model import LoopPlan
from ..plan.tuned import GPU, Machine, Trial, Tuned

# The strategy that stands for what was tuned, else a rule.
AUTO = "auto"


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
    found = [
        (t.measured, t.kernel == kernel, i, trial)
        for i, t in enumerate(entries)
        if _holds(t, machine) and (trial := t.best_for(wanted)) is not None
    ]
    return max(found, key=lambda entry: entry[:3])[3] if found else None


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
