"""What runs between two calls at which a checkpoint can begin: a loop, or a chain in tiles."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import MeshprepError
from ...kernel.analysis import reach, stable
from ...types.loops import Access, Loop
from ..chains.records import Assign, Record, ReducedGlobal
from ..dat import ProgramDat


class Step(NamedTuple):
    """What a checkpoint must know of a loop, or of a chain in tiles; dats go by their numbers."""

    name: str  # its title, a digest of loops and kernels, and the dats that it was given
    # The dats that it meets: True where it needs no value from before.
    full: Mapping[int, bool]
    zero: frozenset[int]  # dats that are zero when it begins
    # Dats that it changes; those of them that have no values afterwards.
    changed: frozenset[int]
    dropped: frozenset[int]
    writes: bool  # true where it has an argument with access ``write``
    globals: Sequence[NDArray[Any]]  # those that it changes

    @property
    def title(self) -> str:
        """Its name without the digest."""
        return title_of(self.name)


NONE: frozenset[int] = frozenset()


class Steps:
    """Makes the steps of a program from its dats, which are numbered as they are made."""

    def __init__(self) -> None:
        self.dats: list[ProgramDat] = []
        self._known: dict[int, int] = {}
        self._names: dict[str, str] = {}

    def of_loop(self, loop: Loop, kernel: Any, given: Mapping[str, Any]) -> Step:
        """One call of a loop; raises MeshprepError for an argument that cannot be saved."""
        full: dict[int, bool] = {}
        given_dats = ""
        changed, writes, reduced = set(), False, []
        for arg in loop.args:
            value = given[arg.name]
            if not arg.is_global:
                number = self._number(loop, arg.name, value)
                given_dats += f".{number}{'soa' * value.axis}"
                full[number] = arg.full and full.get(number, True)
                writes |= arg.access is Access.WRITE
                if arg.access is not Access.READ:
                    changed.add(number)
            elif arg.access is not Access.READ:
                reduced.append(value.stored if isinstance(value, ReducedGlobal) else value)
        if loop.name not in self._names:
            words = repr((loop.to_dict(), stable(reach(kernel))))
            self._names[loop.name] = f"{loop.name} {_digest(words)}"
        name = self._names[loop.name] + given_dats
        return Step(name, full, NONE, frozenset(changed), NONE, writes, reduced)

    def of_chain(
        self, records: Sequence[Record], dropped: Iterable[ProgramDat], zero: Iterable[ProgramDat]
    ) -> Step:
        """A chain that runs as one; raises as :meth:`of_loop`."""
        steps, reduced = [], {}
        for record in records:
            if isinstance(record, Assign):
                reduced[id(record.target.stored)] = record.target.stored
                continue
            loop = record.loop
            steps.append(self.of_loop(loop.loop, loop.par_loop.kernel, record.given))
            reduced |= {id(values): values for values in steps[-1].globals}
        full: dict[int, bool] = {}
        for step in reversed(steps):
            full |= step.full
        gone, clear = (
            frozenset(n for d in some if (n := self._known.get(id(d), -1)) in full)
            for some in (dropped, zero)
        )
        words = repr(([step.name for step in steps], sorted(gone), sorted(clear)))
        title = f"{steps[0].title}...{steps[-1].title}, {len(steps)} loops in tiles"
        return Step(
            f"{title} {_digest(words)}",
            full | dict.fromkeys(clear, True),
            clear,
            frozenset().union(*(step.changed for step in steps)),
            gone,
            any(step.writes for step in steps),
            list(reduced.values()),
        )

    def number(self, dat: Any) -> int | None:
        """The number of a dat; None for one that the program has not made."""
        if len(self._known) != len(self.dats):
            self._known = {id(one): i for i, one in enumerate(self.dats)}
        return self._known.get(id(dat))

    def _number(self, loop: Loop, name: str, dat: Any) -> int:
        number = self.number(dat)
        if number is None or not isinstance(self.dats[number].stored, np.ndarray):
            raise MeshprepError(
                f"loop '{loop.name}': argument '{name}' cannot be saved in a checkpoint: make it "
                "by Program.dat, on the host"
            )
        return number


def title_of(name: str) -> str:
    """The name of a step without its digest."""
    return name.rpartition(" ")[0]


def _digest(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()
