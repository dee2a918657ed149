"""Which dats a checkpoint must hold, and where in a sequence of loops these are least [R14 6.1]."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Decisions(Generic[K]):
    """The dats of one checkpoint, decided loop by loop from its entry on.

    A dat that a loop overwrites fully, before anybody has read it, is dropped; another is saved
    when a loop meets it, since its value is still that of the entry.

    ``modified`` are the dats that some loop has changed since the program began; others are never
    saved.

    Attributes
    ----------
    flagged : set
        Dats that are not decided yet.
    """

    def __init__(self, modified: Collection[K]) -> None:
        self.flagged = set(modified)

    def before(self, full: Mapping[K, bool]) -> list[K]:
        """Decide the dats of a loop that is about to run.

        ``full`` tells of each dat of the loop whether it overwrites all of it and reads nothing.
        Gives those that are to be saved now.
        """
        met = [dat for dat in full if dat in self.flagged]
        self.flagged.difference_update(met)
        return [dat for dat in met if not full[dat]]


def period(calls: Sequence[object]) -> int | None:
    """The least number of calls after which all repeats; None unless two periods are there.

    O(calls^2).
    """
    for p in range(1, len(calls) // 2 + 1):
        if calls[p:] == calls[:-p]:
            return p
    return None


def saved_values(
    calls: Sequence[Mapping[K, bool]], modified: Collection[K], sizes: Mapping[K, int]
) -> int:
    """What a checkpoint before the first of some calls saves; see :class:`Decisions`."""
    decisions = Decisions(modified)
    saved = [dat for full in calls for dat in decisions.before(full)]
    return sum(sizes[dat] for dat in [*saved, *decisions.flagged])


def calls_to_wait(
    calls: Sequence[Mapping[K, bool]], modified: Collection[K], sizes: Mapping[K, int]
) -> int:
    """How many calls to wait for the smallest checkpoint of a period.

    ``calls`` is the last period: for each dat of a call, whether all of it is overwritten.
    """
    twice = [*calls, *calls]
    found = [saved_values([*twice[i:], *calls], modified, sizes) for i in range(len(calls))]
    return found.index(min(found))
