"""Runs a loop on arrays of a GPU: chooses, writes the program and keeps its launcher."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import MeshprepError
from ..kernel.bind import Layout, Slot
from ..plan import LoopPlan
from ..tuning.choose_gpu import Choice, choose
from ..tuning.lookup import AUTO
from .arrays import BoundArray, DeviceBinder
from .device import current
from .function import DeviceFunction, name_of
from .launcher import Launcher
from .programs import program
from .protocols import Device
from .strategies import STRATEGIES


@dataclass(frozen=True)
class DeviceOptions:
    """How a loop runs on a GPU; the words are those of a ParLoop."""

    strategy: str = AUTO
    layout: Layout = "aos"
    variant: str | None = None
    commit: str = "colours"
    threads: int | None = None
    graph: bool = False
    boundscheck: bool = False
    fastmath: bool = False


class DeviceExecutor:
    """A loop for arrays of a GPU, ready for each device it has met."""

    def __init__(
        self,
        function: DeviceFunction | Callable[..., None],
        plan: LoopPlan,
        slots: Sequence[Slot],
        options: DeviceOptions,
    ) -> None:
        self._function = function
        self._plan = plan
        self._slots = slots
        self._options = options
        self._binder = DeviceBinder(plan.loop, slots)
        # For arrays whose rows can be moved in vectors, and for those that lie askew.
        self._launchers: dict[tuple[Device, bool], Launcher] = {}

    def __call__(self, arrays: Mapping[str, Any]) -> None:
        """Check the arrays and queue the loop on the current stream."""
        device, given = current(), self.bind(arrays)
        launcher = self._launcher(device, True)
        if not launcher.takes(given):
            launcher = self._launcher(device, False)
        launcher(given)

    def bind(self, arrays: Mapping[str, Any]) -> tuple[BoundArray, ...]:
        """Check the arrays of a call; raises MeshprepError for those that do not fit."""
        return self._binder(arrays, current())

    def choice(self) -> Choice:
        """What the current device runs."""
        return self._chosen(current())

    def _chosen(self, device: Device) -> Choice:
        asked = self._options
        if asked.strategy not in (AUTO, *STRATEGIES):
            raise MeshprepError(
                f"loop '{self._plan.loop.name}': strategy '{asked.strategy}' is not for a GPU: "
                f"use {', '.join((AUTO, *STRATEGIES))}"
            )
        found = choose(
            self._plan,
            self._slots,
            device.most_shared,
            strategy=asked.strategy,
            variant=asked.variant,
            commit=asked.commit,
            device=device.name,
            kernel=name_of(self._function),
        )
        return found if asked.threads is None else replace(found, threads=asked.threads)

    def _launcher(self, device: Device, vectors: bool) -> Launcher:
        found = self._launchers.get((device, vectors))
        if found is None:
            found = self._launchers[device, vectors] = self._made(device, vectors)
        return found

    def _made(self, device: Device, vectors: bool) -> Launcher:
        chosen, asked = self._chosen(device), self._options
        if asked.boundscheck:
            raise MeshprepError(
                f"loop '{self._plan.loop.name}': boundscheck is for a CPU: pass NumPy arrays, or "
                "run it under compute-sanitizer"
            )
        made = program(
            self._function,
            self._plan,
            chosen.strategy,
            layout=asked.layout,
            variant=chosen.variant,
            commit=chosen.commit,
            threads=chosen.threads,
            vectors=vectors,
            fastmath=asked.fastmath,
        )
        return Launcher(made, device, asked.graph)
