"""Where in a repeated sequence of loops a checkpoint is smallest [R14 6.1]."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeVar

from .decisions import Decisions

K = TypeVar("K", bound=Hashable)


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

    Parameters
    ----------
    calls : sequence of mappings
        The last period: for each dat of a call, whether all of it is overwritten.
    sizes : mapping of dat to int
    """
    twice = [*calls, *calls]
    found = [saved_values([*twice[i:], *calls], modified, sizes) for i in range(len(calls))]
    return found.index(min(found))
