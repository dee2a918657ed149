"""What was found to run a loop fastest, and the machine it holds for [G12 section 6]."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import PlanError

if TYPE_CHECKING:
    from .plan import LoopPlan

CPU, GPU = "cpu", "gpu"
# The strategy that stands for what was tuned, else a rule.
AUTO = "auto"


@dataclass(frozen=True)
class Machine:
    """What a choice holds for.

    Parameters
    ----------
    kind : {"cpu", "gpu"}
    name : str
        Of the processor or the device, as the system tells it.
    threads : int
        Threads of a CPU; 0 for a GPU.
    """

    kind: str
    name: str
    threads: int = 0

    def __str__(self) -> str:
        if self.kind == GPU:
            return self.name
        return f"{self.name}, {self.threads} thread{'s' if self.threads != 1 else ''}"


@dataclass(frozen=True)
class Trial:
    """One way to run a loop, and how long a call takes.

    Parameters
    ----------
    strategy : str
    variant : str
        The blocks; empty where the strategy has none.
    soa : tuple of str
        Dats stored component after component; all others element after element.
    seconds : float
        A call: the fastest run, or what the traffic model says.
    median : float
        Of all runs.
    spread : float
        The slowest run over the fastest, less 1.
    runs : int
        0 where nothing was measured; fewer than the others had where it was given up early.
    commit : str
        On a GPU, how blocks add to points that others share: ``"colours"`` or ``"atomics"``.
    """

    strategy: str
    variant: str
    soa: tuple[str, ...]
    seconds: float
    median: float
    spread: float
    runs: int
    commit: str = "colours"

    @property
    def layout(self) -> dict[str, str]:
        """The layout as a ParLoop takes it."""
        return dict.fromkeys(self.soa, "soa")


@dataclass(frozen=True)
class Tuned:
    """All that was tried for one loop on one machine, the fastest first.

    Parameters
    ----------
    machine : Machine
    kernel : str
        The name of the kernel that ran; empty where the traffic model ranked.
    measured : bool
        False where the traffic model ranked without running anything.
    trials : tuple of Trial
        At least one.
    created : str
        The time in UTC.
    """

    machine: Machine
    kernel: str
    measured: bool
    trials: tuple[Trial, ...]
    created: str = field(default="", compare=False)

    @property
    def best(self) -> Trial:
        """The fastest of all."""
        return self.trials[0]

    @property
    def equals(self) -> tuple[Trial, ...]:
        """Those that are as fast as :attr:`best` within the noise, the fastest first.

        Their fastest run took no longer than the slowest of the best. None where the traffic model
        ranked, and none that was given up early.
        """
        best = self.best
        slowest = best.seconds * (1 + best.spread)
        enough = (t for t in self.trials[1:] if self.measured and 2 * t.runs >= best.runs)
        return tuple(t for t in enough if t.seconds <= slowest)

    def best_for(self, soa: Iterable[str]) -> Trial | None:
        """The fastest that has just these dats component after component."""
        wanted = set(soa)
        return next((t for t in self.trials if set(t.soa) == wanted), None)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


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


def from_dict(values: Any, where: str) -> Tuned:
    """The reverse of :meth:`Tuned.to_dict`; raises PlanError, naming ``where``, for all else."""
    try:
        return _from_dict(values)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise PlanError(f"{where} holds no tuned choice: {type(error).__name__} {error}") from None


def _from_dict(values: Mapping[str, Any]) -> Tuned:
    trials = tuple(
        Trial(
            strategy=str(t["strategy"]),
            variant=str(t["variant"]),
            soa=tuple(str(name) for name in t["soa"]),
            seconds=float(t["seconds"]),
            median=float(t["median"]),
            spread=float(t["spread"]),
            runs=int(t["runs"]),
            commit=str(t["commit"]),
        )
        for t in values["trials"]
    )
    if not trials:
        raise ValueError("without trials")
    m = values["machine"]
    return Tuned(
        machine=Machine(str(m["kind"]), str(m["name"]), int(m["threads"])),
        kernel=str(values["kernel"]),
        measured=bool(values["measured"]),
        trials=trials,
        created=str(values["created"]),
    )


def processor() -> str:
    """The name of this machine's processor, as the system tells it."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
