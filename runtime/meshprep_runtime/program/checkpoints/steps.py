"""Steps, before which a checkpoint can begin: a loop, or a chain in tiles."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import MeshprepError
from ...kernel.analysis import reach, stable
from ...types.loops import Access, Loop
from ..chains.records import Assign, Record
from ..dat import ProgramDat


class Step(NamedTuple):
    """A loop, or a chain in tiles, as checkpoints need it; dats go by their numbers.

    Attributes
    ----------
    name : str
        Its title, a digest of loops and kernels, and its dats.
    full : mapping of int to bool
        The dats that it uses: True where it needs no value from before.
    zero : set of int
        Dats that are zero before it.
    changed : set of int
        Dats that it changes.
    dropped : set of int
        Dats among them that have no values afterwards.
    writes : bool
        True where it has an argument with access ``write``.
    globals : sequence of arrays
        The globals that it changes.
    """

    name: str
    full: Mapping[int, bool]
    zero: frozenset[int]
    changed: frozenset[int]
    dropped: frozenset[int]
    writes: bool
    globals: Sequence[NDArray[Any]]

    @property
    def title(self) -> str:
        """Its name without the digest."""
        return title_of(self.name)


# No dats.
NONE: frozenset[int] = frozenset()


class Steps:
    """Makes steps of loops and chains; dats are numbered in the order of their making."""

    def __init__(self) -> None:
        self.dats: list[ProgramDat] = []
        # The number of each dat, by its address.
        self._numbers: dict[int, int] = {}
        # The names of loops with the digests of their kernels.
        self._names: dict[str, str] = {}

    def of_loop(self, loop: Loop, kernel: Any, given: Mapping[str, Any]) -> Step:
        """One call of a loop; raises MeshprepError for an argument that cannot be saved."""
        full: dict[int, bool] = {}
        name_of_dats = ""
        changed = set()
        writes = False
        reduced = []
        # Note the dats that the loop sets as a whole, whose old values nobody needs, and
        # those that it changes.
        for arg in loop.args:
            value = given[arg.name]
            if arg.is_global:
                if arg.access is not Access.READ:
                    # A plain array is its own storage.
                    reduced.append(getattr(value, "stored", value))
                continue
            number = self._number_of_argument(loop, arg.name, value)
            name_of_dats += f".{number}"
            if value.axis:
                name_of_dats += "soa"
            full[number] = arg.full and full.get(number, True)
            writes |= arg.access is Access.WRITE
            if arg.access is not Access.READ:
                changed.add(number)
        # Name the step by the kernel, too: a restart with another one is another program.
        if loop.name not in self._names:
            words = repr((loop.to_dict(), stable(reach(kernel))))
            self._names[loop.name] = f"{loop.name} {_digest(words)}"
        return Step(
            name=self._names[loop.name] + name_of_dats,
            full=full,
            zero=NONE,
            changed=frozenset(changed),
            dropped=NONE,
            writes=writes,
            globals=reduced,
        )

    def of_chain(
        self,
        records: Sequence[Record],
        dropped: Iterable[ProgramDat],
        zero: Iterable[ProgramDat],
    ) -> Step:
        """A chain that runs in tiles, as one step; raises as :meth:`of_loop`."""
        # Take the loops one by one; an assignment in between changes a global.
        steps = []
        reduced = {}
        for record in records:
            if isinstance(record, Assign):
                reduced[id(record.target.stored)] = record.target.stored
                continue
            loop = record.loop
            steps.append(self.of_loop(loop.loop, loop.par_loop.kernel, record.given))
            reduced |= {id(values): values for values in steps[-1].globals}
        # Whether a dat is needed from before is decided by the first loop that uses it.
        full: dict[int, bool] = {}
        for step in reversed(steps):
            full |= step.full
        dropped_numbers = self._numbers_among(dropped, full)
        zero_numbers = self._numbers_among(zero, full)
        names = [step.name for step in steps]
        words = repr((names, sorted(dropped_numbers), sorted(zero_numbers)))
        title = f"{steps[0].title}...{steps[-1].title}, {len(steps)} loops in tiles"
        return Step(
            name=f"{title} {_digest(words)}",
            full=full | dict.fromkeys(zero_numbers, True),
            zero=zero_numbers,
            changed=frozenset().union(*(step.changed for step in steps)),
            dropped=dropped_numbers,
            writes=any(step.writes for step in steps),
            globals=list(reduced.values()),
        )

    def _numbers_among(
        self, dats: Iterable[ProgramDat], used: Collection[int]
    ) -> frozenset[int]:
        """The numbers of dats, without those that are not used."""
        numbers = {self._numbers.get(id(dat), -1) for dat in dats}
        return frozenset(numbers.intersection(used))

    def number(self, dat: Any) -> int | None:
        """The number of a dat; None for one that the program has not made."""
        if len(self._numbers) != len(self.dats):
            self._numbers = {id(known_dat): i for i, known_dat in enumerate(self.dats)}
        return self._numbers.get(id(dat))

    def _number_of_argument(self, loop: Loop, name: str, dat: Any) -> int:
        """The number of a dat; raises MeshprepError for one that cannot be saved."""
        number = self.number(dat)
        if number is None or not isinstance(self.dats[number].stored, np.ndarray):
            raise MeshprepError(
                f"loop '{loop.name}': argument '{name}' cannot be saved in a checkpoint: "
                "make it by Program.dat, on the host"
            )
        return number


def title_of(name: str) -> str:
    """The name of a step without its digest."""
    return name.rpartition(" ")[0]


def _digest(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()
