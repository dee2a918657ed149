"""Which dats one checkpoint must hold: those whose value at its entry somebody reads [R14 6.1]."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Decisions(Generic[K]):
    """The dats of one checkpoint, decided loop by loop from its entry on.

    A dat that a loop overwrites fully, before anybody has read it, is dropped; another is saved
    when a loop meets it, since its value is still that of the entry.

    Parameters
    ----------
    modified : collection of keys
        Dats that some loop has changed since the program began; others are never saved.

    Attributes
    ----------
    flagged : set
        Dats that are not decided yet.
    """

    def __init__(self, modified: Collection[K]) -> None:
        self.flagged = set(modified)

    def before(self, full: Mapping[K, bool]) -> list[K]:
        """Decide the dats of a loop that is about to run.

        Parameters
        ----------
        full : mapping of key to bool
            For each dat of the loop, whether the loop overwrites all of it and reads nothing.

        Returns
        -------
        list of keys
            To be saved now.
        """
        met = [dat for dat in full if dat in self.flagged]
        self.flagged.difference_update(met)
        return [dat for dat in met if not full[dat]]
