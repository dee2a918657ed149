"""The time of a distributed run whose messages travel while interiors are computed [R14 6.3]."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError


@dataclass(frozen=True, eq=False)
class LoopTime:
    """Seconds of one call of a loop on every rank."""

    # (ranks,): of what needs no message; all of it where the loop exchanges nothing.
    interior: NDArray[np.float64]
    # (ranks,): of what is computed after the messages have come; 0 where there are none.
    boundary: NDArray[np.float64]
    # (messages,): bytes of each message of the model; None where the loop exchanges nothing.
    message_bytes: NDArray[np.float64] | None = None

    @property
    def whole(self) -> NDArray[np.float64]:
        """Seconds of computing, (ranks,)."""
        return self.interior + self.boundary


@dataclass(frozen=True, eq=False)
class ExecutionModel:
    """Loops on ranks: what each computes, who sends to whom, and where all wait for all.

    Raises MeshprepError when arrays do not have one value for each rank or message.
    """

    # The loops between full synchronisations (reductions, start and end), in their order.
    regions: tuple[tuple[LoopTime, ...], ...]
    # (messages,): the ranks of each message; every loop that exchanges sends all of them.
    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    latency: float = 0.0  # seconds until the first byte of a message is there
    seconds_per_byte: float = 0.0

    def __post_init__(self) -> None:
        ranks = {a.shape for loop in self._loops() for a in (loop.interior, loop.boundary)}
        sizes = {
            loop.message_bytes.shape for loop in self._loops() if loop.message_bytes is not None
        }
        if len(ranks) > 1 or self.sender.shape != self.receiver.shape:
            raise MeshprepError("loops of a model must have times for the same ranks and messages")
        if not sizes <= {self.sender.shape}:
            raise MeshprepError("each message of a model needs its bytes in every loop that sends")

    @property
    def ranks(self) -> int:
        """Number of ranks; 0 without loops."""
        return next((loop.interior.size for loop in self._loops()), 0)

    def seconds(self) -> float:
        """The time of a run that hides messages behind interiors, equations (6.2) to (6.6).

        (6.4) is extended: a message has come ``latency + seconds_per_byte * bytes`` after it was
        sent. O(loops * (ranks + messages)).
        """
        return float(sum(self._region(loops) for loops in self.regions))

    def _region(self, loops: tuple[LoopTime, ...]) -> float:
        done = np.zeros(self.ranks)
        for loop in loops:
            if loop.message_bytes is None:
                done = done + loop.whole
                continue
            come = np.zeros(self.ranks)
            np.maximum.at(come, self.receiver, done[self.sender] + self._delay(loop))
            done = np.maximum(done + loop.interior, come) + loop.boundary
        return float(done.max(initial=0.0))

    def _delay(self, loop: LoopTime) -> NDArray[np.float64]:
        """What each message of a loop takes."""
        if loop.message_bytes is None:
            return np.zeros(0)
        return self.latency + self.seconds_per_byte * loop.message_bytes

    def _loops(self) -> list[LoopTime]:
        return [loop for region in self.regions for loop in region]
