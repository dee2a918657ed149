"""What a run was measured to take, and what it would take with other shares [R14 6.3]."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.inputs import check_input

# Seconds before and after the messages have come; those of waiting are left out.
BEFORE, AFTER = ("core",), ("boundary", "exec", "other")
OWNED = ("core", "boundary")


@dataclass(frozen=True, eq=False)
class RankTimes:
    """Seconds of loops on ranks, by one call of the loop that is called least."""

    # (loops, ranks): of what needs no message; all of it where the loop exchanges nothing.
    interior: NDArray[np.float64]
    # (loops, ranks): of what is computed after the messages have come; 0 where there are none.
    boundary: NDArray[np.float64]
    exchanges: NDArray[np.bool_]  # (loops,): the loops that send messages
    share: NDArray[np.float64]  # (ranks,): what each rank owned of all elements

    @property
    def ranks(self) -> int:
        return int(self.share.size)

    @property
    def rates(self) -> NDArray[np.float64]:
        """Seconds that each rank would compute if it owned everything, (ranks,)."""
        return (self.interior + self.boundary).sum(axis=0) / self.share

    def seconds(self, share: NDArray[np.float64] | None = None) -> float:
        """The same run with other shares, equations (6.2) to (6.6): interiors hide messages.

        Times grow with what a rank owns. Every rank is taken for a neighbour of every other, and
        messages for immediate.
        """
        scale = np.ones(self.ranks) if share is None else share / self.share
        done = np.zeros(self.ranks)
        for inside, outside, exchanges in zip(
            self.interior, self.boundary, self.exchanges, strict=True
        ):
            sent = done.max() if exchanges else 0.0
            done = np.maximum(done + inside * scale, sent) + outside * scale
        return float(done.max())


def read_timings(path: Path) -> RankTimes:
    """The timings that a program wrote: ``json.dump(program.timings().to_json(), file)``.

    Raises MeshprepError when the file cannot be read, or does not hold the times of loops on ranks.
    """
    try:
        check_input(path)
        content = json.loads(path.read_text(encoding="utf-8"))
    except MeshprepError as error:
        raise MeshprepError(f"cannot read timings {path}: {error}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not JSON"
        raise MeshprepError(f"cannot read timings {path}: {reason}") from None
    try:
        return timings_of(content)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise MeshprepError(
            f"{path} does not hold the times of loops on ranks: write program.timings().to_json()"
        ) from None
    except MeshprepError as error:
        raise MeshprepError(f"timings {path}: {error}") from None


def timings_of(content: Mapping[str, Any]) -> RankTimes:
    """Times from JSON values: ``{"loops": {loop: {rank: {"calls": ..., "core": ..., ...}}}}``.

    Raises MeshprepError when nothing ran, or a rank owned or took nothing: it has no speed.
    """
    loops = [[ranks[str(r)] for r in range(len(ranks))] for ranks in content["loops"].values()]
    rows = [loop for loop in loops if any(r["calls"] for r in loop)]
    if not rows:
        raise MeshprepError("no loop ran: time a run of some calls first")
    before, after = (_seconds(rows, names) for names in (BEFORE, AFTER))
    owned = np.array([[sum(r["elements"].get(c, 0) for c in OWNED) for r in row] for row in rows])
    share, seconds = owned.sum(axis=0) / max(1, owned.sum()), (before + after).sum(axis=0)
    if not (share > 0).all() or not (seconds > 0).all():
        at = int(np.argmin((share > 0) & (seconds > 0)))
        raise MeshprepError(
            f"rank {at} owned or took nothing, so that its speed is unknown: time a run in which "
            "every rank owns something and takes a while"
        )
    sends = np.array([any(r["messages"] for r in row) for row in rows])
    once = min(r["calls"] for row in rows for r in row if r["calls"])
    return RankTimes(before / once, after / once, sends, share)


def _seconds(rows: list[list[Mapping[str, float]]], names: tuple[str, ...]) -> NDArray[np.float64]:
    return np.array([[sum(float(r[name]) for name in names) for r in row] for row in rows])
