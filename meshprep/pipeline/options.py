"""What can be chosen when preparing a mesh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from meshprep_runtime.errors import MeshprepError, check_choice

from ..partition import PARTITIONERS
from ..reorder import METHOD_NAMES

# The block size of each target, where none is asked for.
TARGETS = {"gpu": 256, "cpu": 2048}


@dataclass(frozen=True)
class Options:
    """What can be chosen; the defaults suit a GPU.

    Parameters
    ----------
    method : str
        Locality order: a name in ``reorder.METHODS``, or ``auto`` for the best of them.
    order_time : float
        Seconds after which ``auto`` begins no further method.
    partition : str or None
        A name in ``partition.PARTITIONERS``; None takes the target's: ``blocks`` for the GPU,
        ``contiguous`` for the CPU and where the loop's set has its order already.
    partition_options : mapping
        Options of the partitioner.
    block_size : int or None
        The largest number of elements in a block; a loop's own wins. None takes the target's: 256
        for the GPU, 2,048 for the CPU.
    target : str
        ``"gpu"``: compact blocks, and points grouped by the blocks that use them; ``"cpu"``: one
        banded order that loops stream through, cut where it stands.
    sort_by_colour : bool
        Sort the elements of each block by thread colour (leading loops only).
    seed : int
        Of whatever is random; the same seed gives the same plan.
    proof : bool
        Prove the plan before it is given out.

    Raises
    ------
    MeshprepError
        On unknown names, a block size below 1 and a negative time.

    Examples
    --------
    >>> from meshprep import Options
    >>> Options(target="cpu").block_elements, Options(block_size=448).partitioner
    (2048, 'blocks')
    """

    method: str = "gps"
    order_time: float = 10.0
    partition: str | None = None
    partition_options: Mapping[str, Any] = field(default_factory=dict)
    block_size: int | None = None
    target: str = "gpu"
    sort_by_colour: bool = False
    seed: int = 0
    proof: bool = True

    def __post_init__(self) -> None:
        check_choice("method", self.method, METHOD_NAMES)
        check_choice("target", self.target, TARGETS)
        if self.partition is not None:
            check_choice("partitioner", self.partition, PARTITIONERS)
        if self.block_elements < 1:
            raise MeshprepError(f"block size {self.block_size} must be at least 1")
        if not self.order_time >= 0:
            raise MeshprepError(f"order time {self.order_time} must be a number of seconds from 0")

    @property
    def block_elements(self) -> int:
        """The largest number of elements in a block: as asked, or the target's."""
        return TARGETS[self.target] if self.block_size is None else self.block_size

    @property
    def partitioner(self) -> str:
        """How a loop that leads is cut: as asked, or the target's."""
        return self.partition or {"gpu": "blocks", "cpu": "contiguous"}[self.target]

    def effective(self) -> dict[str, Any]:
        """Every option with the value that is used.

        Returns
        -------
        dict
            JSON values.
        """
        return asdict(self) | {"block_size": self.block_elements}

    def for_loop(self, own: Mapping[str, Any]) -> Options:
        """These options with those of one loop over them.

        Parameters
        ----------
        own : mapping
            What the loop's table gives: ``block_size``, ``partition``, ``effort``, ``target``.

        Returns
        -------
        Options

        Raises
        ------
        MeshprepError
            For values that cannot be.
        """
        own = dict(own)
        more = {"effort": own.pop("effort")} if "effort" in own else {}
        return replace(self, **own, partition_options={**self.partition_options, **more})
