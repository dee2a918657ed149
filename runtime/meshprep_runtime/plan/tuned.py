"""What was found to run a loop fastest, and the machine it holds for [G12 section 6]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import PlanError

if TYPE_CHECKING:
    pass

CPU, GPU = "cpu", "gpu"


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
