"""What can be chosen when preparing a mesh."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from meshprep_runtime.errors import MeshprepError

from .partition import PARTITIONERS
from .reorder import METHODS

TARGETS = ("gpu", "cpu")


@dataclass(frozen=True)
class Options:
    """What can be chosen; the defaults suit a GPU.

    Parameters
    ----------
    method : str
        Locality order: a name in ``reorder.METHODS``.
    partition : str or None
        A name in ``partition.PARTITIONERS``; None takes the default, or ``contiguous`` where the
        loop's set has its order already.
    partition_options : mapping
        Options of the partitioner.
    block_size : int
        The largest number of elements in a block; a loop's own wins.
    target : str
        ``"gpu"`` or ``"cpu"``, recorded in the plan.
    sort_by_colour : bool
        Sort the elements of each block by thread colour (leading loops only).
    seed : int
    """

    method: str = "gps"
    partition: str | None = None
    partition_options: Mapping[str, Any] = field(default_factory=dict)
    block_size: int = 256
    target: str = "gpu"
    sort_by_colour: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("method", self.method, METHODS)
        check_choice("target", self.target, TARGETS)
        if self.partition is not None:
            check_choice("partitioner", self.partition, PARTITIONERS)
        if self.block_size < 1:
            raise MeshprepError(f"block size {self.block_size} must be at least 1")

    def for_loop(self, own: Mapping[str, Any]) -> Options:
        """These options with those that a loop's table gives put over them."""
        own = dict(own)
        more = {"effort": own.pop("effort")} if "effort" in own else {}
        return replace(self, **own, partition_options={**self.partition_options, **more})


def check_choice(what: str, value: str, known: Collection[str]) -> None:
    """Raise MeshprepError, listing the choices, unless the value is one of them."""
    if value not in known:
        raise MeshprepError(f"{what} '{value}' is unknown: use {', '.join(known)}")
