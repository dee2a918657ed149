"""Runs a loop on arrays of a GPU: chooses, writes the program and keeps its launcher."""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError
from ..kernel.analysis import DeviceFunction, name_of
from ..kernel.bind import AUTO, Layout, Slot
from ..plan import LoopPlan
from ..tuning.choose_gpu import Choice, choose
from .arrays import BoundArray, DeviceBinder
from .device import Device, Kernel, Memory, current
from .programs import Call, CudaProgram, Launch, program
from .source.parameters import Parameter
from .source.reductions import JOIN_NAME, JOIN_THREADS, join_text
from .source.shape import C_TYPES
from .strategies import STRATEGIES

# Sets of arrays whose launches are kept: solvers that swap two arrays have two.
MOST_BOUND = 8


class Launcher:
    """Runs a program on a device.

    Raises MeshprepError when a block needs more shared memory than the device has; when the code
    does not load. Compiles, or finds the code on disk, and copies the plan's arrays to the device
    once. Calls on several streams or threads run one after the other: sums of blocks have one
    place.

    With ``graph`` the launches of a set of arrays are recorded once, and replayed as one graph.
    """

    def __init__(self, program: CudaProgram, device: Device, graph: bool = False) -> None:
        _check_shared(program, device)
        self.device = device
        self.name = program.loop.name
        self._slots = program.slots
        self._alignment = program.alignment
        self._graph = graph
        self._lock = threading.Lock()
        self._stream = device.stream()
        joins = [join_program(program, i) for i in program.reduced if program.launches]
        there: dict[int, Memory] = {}
        self._steps = [_step(one, device, there) for one in (program, *program.then, *joins)]
        self._numbers = {**program.sizes, "parts": program.parts}
        slots = {f"partial{i}": program.slots[i] for i in program.reduced}
        sizes = {name: (s.dtype, s.dim * program.parts) for name, s in slots.items()}
        self._own = {
            name: device.upload(np.zeros(size, dtype))
            for name, (dtype, size) in {**sizes, **program.scratch}.items()
        }
        # Globals of the host have a place here, and constants what stands in it.
        self._globals: dict[int, Memory] = {}
        self._constants: dict[int, bytes] = {}
        self._bound: dict[tuple[int, ...], Callable[[], None]] = {}

    def __call__(self, given: Sequence[BoundArray]) -> None:
        """Queue the loop on the current stream; wait only for reductions that the host wants."""
        if not self._steps[0].launches:
            return
        with self._lock:
            self._order()
            for i, one in enumerate(given):
                if one.host is not None:
                    self._write_global(i, one.host)
            self._bound_to(given)()
            for i, one in enumerate(given):
                if one.host is not None and self._slots[i].written:
                    self.device.read(self._globals[i], one.host)

    def takes(self, given: Sequence[BoundArray]) -> bool:
        """False for arrays that do not begin where the program's vectors may be moved."""
        return self._key(given) in self._bound or self._askew(given) is None

    def __del__(self) -> None:
        # Memory and code go with this object: not before the launches that use them are done.
        # What failed is told by what is waited for next; at exit CuPy may be gone already.
        if hasattr(self, "_bound") and self._bound:
            with contextlib.suppress(Exception):
                self.device.wait(self._stream)

    def _order(self) -> None:
        stream = self.device.stream()
        if stream != self._stream:
            self.device.follow(self._stream)
            self._stream = stream

    def _write_global(self, i: int, values: NDArray[Any]) -> None:
        content = values.tobytes()
        if i not in self._globals:
            self._globals[i] = self.device.upload(values)
        elif self._slots[i].written or self._constants.get(i) != content:
            # Not from the solver's memory, which may be pinned: that is read when its turn comes.
            self.device.write(self._globals[i], np.frombuffer(content, np.uint8))
        self._constants[i] = content

    def _bound_to(self, given: Sequence[BoundArray]) -> Callable[[], None]:
        """The launches of one set of arrays."""
        key = self._key(given)
        found = self._bound.get(key)
        if found is None:
            if len(self._bound) >= MOST_BOUND:
                del self._bound[next(iter(self._bound))]
            found = self._bound[key] = self._bind(given)
        return found

    def _bind(self, given: Sequence[BoundArray]) -> Callable[[], None]:
        self._check_alignment(given)
        places = {name: memory.pointer for name, memory in self._own.items()}
        for i, one in enumerate(given):
            places[f"s{i}"] = self._globals[i].pointer if one.host is not None else one.pointer
        calls = [call for step in self._steps for call in step.calls(places, self._numbers)]
        return self.device.record(calls) if self._graph else partial(self.device.run, calls)

    def _key(self, given: Sequence[BoundArray]) -> tuple[int, ...]:
        return tuple([one.pointer for one in given])

    def _askew(self, given: Sequence[BoundArray]) -> int | None:
        """The first slot whose array does not begin at a multiple of what is moved at once."""
        for i, (wanted, one) in enumerate(zip(self._alignment, given, strict=True)):
            if one.host is None and one.nbytes and one.pointer % wanted:
                return i
        return None

    def _check_alignment(self, given: Sequence[BoundArray]) -> None:
        i = self._askew(given)
        if i is not None:
            raise MeshprepError(
                f"loop '{self.name}': argument '{self._slots[i].name}' does not begin at a "
                f"multiple of {self._alignment[i]} bytes, which its rows are loaded by: pass a "
                "copy of it, or a program without vectors"
            )


def _step(program: CudaProgram, device: Device, there: dict[int, Memory]) -> "_Step":
    """``there`` has the copies by the identity of arrays: those of several kernels have one."""
    there |= {id(a): device.upload(a) for a in program.arrays.values() if id(a) not in there}
    own = {name: there[id(a)] for name, a in program.arrays.items()}
    return _Step(device.load(program), own, program.parameters, program.launches)


@dataclass(frozen=True, eq=False)
class _Step:
    """A kernel, the arrays of the plan that it alone reads, and its launches."""

    kernel: Kernel
    own: Mapping[str, Memory]
    parameters: tuple[Parameter, ...]
    launches: tuple[Launch, ...]

    def calls(self, places: Mapping[str, int], numbers: Mapping[str, int]) -> list[Call]:
        """Its launches with these addresses."""
        made = []
        own = {name: memory.pointer for name, memory in self.own.items()}
        for launch in self.launches:
            known = {**places, **own, **numbers}
            known |= {"first": launch.first, "last": launch.last, "part": launch.part}
            arguments = [known[p.name] for p in self.parameters]
            made.append(self.kernel.prepare(launch.blocks, arguments))
        return made


def join_program(program: CudaProgram, i: int) -> CudaProgram:
    """The kernel that brings the blocks' values of a reduced global into it, as a program."""
    slot = program.slots[i]
    c_type = C_TYPES[slot.dtype.str[1:]]
    return CudaProgram(
        loop=program.loop,
        name=JOIN_NAME,
        text=join_text(slot, i, c_type),
        parameters=(
            Parameter(f"partial{i}", "in", c_type),
            Parameter(f"s{i}", "out", c_type),
            Parameter("parts", "size"),
        ),
        arrays={},
        sizes={"parts": program.parts},
        slots=program.slots,
        threads=JOIN_THREADS,
        shared_bytes=JOIN_THREADS * slot.dtype.itemsize,
        launches=(Launch(slot.dim, 0, slot.dim, 0),),
        reduced=(),
    )


def _check_shared(program: CudaProgram, device: Device) -> None:
    if program.shared_bytes > device.most_shared:
        raise MeshprepError(
            f"loop '{program.loop.name}': its largest block takes {program.shared_bytes} bytes of "
            f"shared memory, but GPU {device.number} ({device.name}) has at most "
            f"{device.most_shared} for a block: take a variant with smaller blocks, or strategy "
            "'hierarchical-inc' or 'global-atomics'"
        )


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
