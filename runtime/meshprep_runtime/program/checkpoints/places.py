"""Where a checkpoint may begin and what it saves there [R14 Figure 6.1]: loops noted, none run."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...errors import MeshprepError
from ..chains.records import RecordedLoop
from ..dat import ProgramDat
from .checkpoints import saved_dats
from .steps import Step, Steps


class CheckpointPlace(NamedTuple):
    """A call of a period, before which a checkpoint may begin."""

    call: int  # its number in the period
    loop: str
    dats: tuple[str, ...]  # that are saved, named as in the call that meets them first
    bytes: int  # of these dats, on this rank


class DryRun:
    """Stands for a chain: its program notes calls of loops, and runs none."""

    def __init__(self) -> None:
        self._steps = Steps()
        self._names: list[str] = []
        self._calls: list[Step] = []

    def record(self, loop: RecordedLoop, given: Mapping[str, Any]) -> None:
        """Note a call; raises MeshprepError for arguments that do not fit or cannot be saved."""
        loop.check(given)
        for name, value in given.items():
            if isinstance(value, ProgramDat) and self._steps.number(value) is None:
                self._steps.dats.append(value)
                self._names.append(f"{loop.loop.name}.{name}" if name in self._names else name)
        self._calls.append(self._steps.of_loop(loop.loop, loop.par_loop.kernel, given))

    def flush(self) -> None:
        """Nothing waits."""

    def places(self, period: Callable[[], object]) -> list[CheckpointPlace]:
        """What a checkpoint before each call of a period saves, when it has run once before."""
        period()
        if not self._calls:
            raise MeshprepError("no loop of this program was called: give a function that calls it")
        modified = frozenset().union(*(step.changed for step in self._calls))
        full, found = [step.full for step in self._calls], []
        for i, step in enumerate(self._calls):
            saved = sorted(saved_dats([*full[i:], *full], modified))
            names = tuple(self._names[number] for number in saved)
            size = sum(map(_nbytes, (self._steps.dats[number] for number in saved)))
            found.append(CheckpointPlace(i, step.title, names, size))
        return found


def _nbytes(dat: ProgramDat) -> int:
    return int(dat.owned * dat.dim * dat.dtype.itemsize)
