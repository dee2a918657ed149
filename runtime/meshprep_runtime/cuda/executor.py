"""Runs a loop on arrays of a GPU: chooses a strategy, and keeps its launchers."""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError
from ..kernel.access import check_sample
from ..kernel.analysis import DeviceFunction, name_of
from ..kernel.bind import AUTO, Layout, Slot
from ..plan import LoopPlan
from ..tuning.choose_gpu import Choice, choose
from .arrays import BoundArray, DeviceBinder, rows_on_device
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

    Raises MeshprepError when a block needs more shared memory than the device has, and when
    the code does not load. Compiles, or takes the code from disk, and copies the plan's
    arrays to the device once. Calls on several streams or threads run one after the other,
    since the sums of blocks have a single array.

    With ``graph`` the launches of a set of arrays are recorded once, and replayed as one
    graph.
    """

    def __init__(self, program: CudaProgram, device: Device, graph: bool = False) -> None:
        _check_shared(program, device)
        self.device = device
        self.name = program.loop.name
        self._slots = program.slots
        self._alignment = program.alignment
        self._graph = graph
        self._lock = threading.RLock()
        # Refuses calls of a signal handler, in the thread that holds the first lock.
        self._under_way = threading.Lock()
        self._stream = device.stream()
        # Load the program, its second steps, and the kernels that join reductions.
        joins = [join_program(program, i) for i in program.reduced if program.launches]
        copies: dict[int, Memory] = {}
        self._steps = [
            _step(step_program, device, copies)
            for step_program in (program, *program.then, *joins)
        ]
        self._numbers = {**program.sizes, "parts": program.parts}
        # Make the arrays that are not of the plan: values of blocks, and temporary arrays.
        scratch = dict(program.scratch)
        for i in program.reduced:
            slot = program.slots[i]
            scratch[f"partial{i}"] = (slot.dtype, slot.dim * program.parts)
        self._own = {
            name: device.upload(np.zeros(size, dtype))
            for name, (dtype, size) in scratch.items()
        }
        # The memory on the device of each global of the host, and its bytes there.
        self._globals: dict[int, Memory] = {}
        self._constants: dict[int, bytes] = {}
        # The launches of each set of arrays, by their addresses.
        self._bound: dict[tuple[int, ...], Callable[[], None]] = {}

    def __call__(self, given: Sequence[BoundArray]) -> None:
        """Queue the loop on the current stream; waits only for reductions on the host."""
        if not self._steps[0].launches:
            return
        with self._lock:
            if self._under_way.locked():
                raise MeshprepError(
                    f"loop '{self.name}' is called while it is being queued by the same "
                    "thread, as by a signal handler: set a flag in the handler, and call "
                    "the loop after it"
                )
            with self._under_way:
                self._queue(given)

    def _queue(self, given: Sequence[BoundArray]) -> None:
        self._order()
        # Globals on the host travel to the device before the loop, and back after it.
        for i, array in enumerate(given):
            if array.host is not None:
                self._write_global(i, array.host)
        self._launches_with(given)()
        for i, array in enumerate(given):
            if array.host is not None and self._slots[i].written:
                self.device.read(self._globals[i], array.host)

    def takes(self, given: Sequence[BoundArray]) -> bool:
        """False for arrays that begin at an address from which vectors cannot be loaded."""
        return self._key(given) in self._bound or self._askew(given) is None

    def __del__(self) -> None:
        # Memory and code go with this object, so wait for the launches that use them.
        # Errors of a launch arrive at the next wait; at exit CuPy may be gone already.
        if hasattr(self, "_bound") and self._bound:
            with contextlib.suppress(Exception):
                self.device.wait(self._stream)

    def _order(self) -> None:
        """Let the current stream wait for the launches on the one before."""
        stream = self.device.stream()
        if stream != self._stream:
            self.device.follow(self._stream)
            self._stream = stream

    def _write_global(self, i: int, values: NDArray[Any]) -> None:
        """Copy a global of the host to the device, unless its value is there already."""
        content = values.tobytes()
        if i not in self._globals:
            self._globals[i] = self.device.upload(values)
        elif self._slots[i].written or self._constants.get(i) != content:
            # From a copy: the solver's memory may be pinned, which is read only when the
            # stream comes to it.
            self.device.write(self._globals[i], np.frombuffer(content, np.uint8))
        self._constants[i] = content

    def _launches_with(self, given: Sequence[BoundArray]) -> Callable[[], None]:
        """The launches with a set of arrays."""
        key = self._key(given)
        launches = self._bound.get(key)
        if launches is None:
            if len(self._bound) >= MOST_BOUND:
                del self._bound[next(iter(self._bound))]
            launches = self._bound[key] = self._bind(given)
        return launches

    def _bind(self, given: Sequence[BoundArray]) -> Callable[[], None]:
        self._check_alignment(given)
        addresses = {name: memory.pointer for name, memory in self._own.items()}
        for i, array in enumerate(given):
            if array.host is not None:
                addresses[f"s{i}"] = self._globals[i].pointer
            else:
                addresses[f"s{i}"] = array.pointer
        calls: list[Call] = []
        for step in self._steps:
            calls += step.calls(addresses, self._numbers)
        if self._graph:
            return self.device.record(calls)
        return partial(self.device.run, calls)

    def _key(self, given: Sequence[BoundArray]) -> tuple[int, ...]:
        return tuple([array.pointer for array in given])

    def _askew(self, given: Sequence[BoundArray]) -> int | None:
        """The first slot whose array does not begin at a multiple of its alignment."""
        for i, (alignment, array) in enumerate(zip(self._alignment, given, strict=True)):
            if array.host is None and array.nbytes and array.pointer % alignment:
                return i
        return None

    def _check_alignment(self, given: Sequence[BoundArray]) -> None:
        i = self._askew(given)
        if i is not None:
            raise MeshprepError(
                f"loop '{self.name}': argument '{self._slots[i].name}' does not begin at a "
                f"multiple of {self._alignment[i]} bytes, which its rows are loaded by: "
                "pass a copy of it, or a program without vectors"
            )


def _step(program: CudaProgram, device: Device, copies: dict[int, Memory]) -> "_Step":
    """Load a program, and copy its arrays to the device.

    ``copies`` has the copies of arrays by identity, so that kernels share them.
    """
    for array in program.arrays.values():
        if id(array) not in copies:
            copies[id(array)] = device.upload(array)
    own = {name: copies[id(array)] for name, array in program.arrays.items()}
    return _Step(
        kernel=device.load(program),
        own=own,
        parameters=program.parameters,
        launches=program.launches,
    )


@dataclass(frozen=True, eq=False)
class _Step:
    """A kernel with the arrays of the plan that it reads, and its launches."""

    kernel: Kernel
    own: Mapping[str, Memory]
    parameters: tuple[Parameter, ...]
    launches: tuple[Launch, ...]

    def calls(self, addresses: Mapping[str, int], numbers: Mapping[str, int]) -> list[Call]:
        """The launches with these addresses and numbers, by parameter name."""
        calls = []
        own = {name: memory.pointer for name, memory in self.own.items()}
        for launch in self.launches:
            values = {**addresses, **own, **numbers}
            values["first"] = launch.first
            values["last"] = launch.last
            values["part"] = launch.part
            arguments = [values[p.name] for p in self.parameters]
            calls.append(self.kernel.prepare(launch.blocks, arguments))
        return calls


def join_program(program: CudaProgram, i: int) -> CudaProgram:
    """The program of the kernel that joins the values of all blocks of a reduced global."""
    # One block of threads joins each component in a fixed order, so that bits do not change
    # from run to run.
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
        launches=(Launch(blocks=slot.dim, first=0, last=slot.dim, part=0),),
        reduced=(),
    )


def _check_shared(program: CudaProgram, device: Device) -> None:
    if program.shared_bytes > device.most_shared:
        raise MeshprepError(
            f"loop '{program.loop.name}': its largest block takes {program.shared_bytes} "
            f"bytes of shared memory, but GPU {device.number} ({device.name}) has at most "
            f"{device.most_shared} for a block: take a variant with smaller blocks, or "
            "strategy 'hierarchical-inc' or 'global-atomics'"
        )


@dataclass(frozen=True)
class DeviceOptions:
    """How a loop runs on a GPU; the options are those of a ParLoop."""

    strategy: str = AUTO
    layout: Layout = "aos"
    variant: str | None = None
    commit: str = "colours"
    threads: int | None = None
    graph: bool = False
    boundscheck: bool = False
    fastmath: bool = False


class DeviceExecutor:
    """A loop for arrays of a GPU, with launchers for each device that it has run on."""

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
        # By device, and whether rows are loaded as vectors, which some addresses forbid.
        self._launchers: dict[tuple[Device, bool], Launcher] = {}

    def __call__(self, arrays: Mapping[str, Any]) -> None:
        """Check the arrays and queue the loop on the current stream."""
        device = current()
        bound = self.bind(arrays)
        if not self._launchers and not isinstance(self._function, DeviceFunction):
            check_sample(
                self._function,
                self._plan,
                lambda: rows_on_device(device, self._slots, bound),
            )
        # Vectors need aligned arrays: others take a program without them.
        launcher = self._launcher(device, True)
        if not launcher.takes(bound):
            launcher = self._launcher(device, False)
        launcher(bound)

    def bind(self, arrays: Mapping[str, Any]) -> tuple[BoundArray, ...]:
        """Check the arrays of a call; raises MeshprepError for those that do not fit."""
        return self._binder(arrays, current())

    def choice(self) -> Choice:
        """The choice for the current device."""
        return self._choice_for(current())

    def _choice_for(self, device: Device) -> Choice:
        options = self._options
        if options.strategy not in (AUTO, *STRATEGIES):
            raise MeshprepError(
                f"loop '{self._plan.loop.name}': strategy '{options.strategy}' is not for "
                f"a GPU: use {', '.join((AUTO, *STRATEGIES))}"
            )
        choice = choose(
            plan=self._plan,
            slots=self._slots,
            most_shared=device.most_shared,
            strategy=options.strategy,
            variant=options.variant,
            commit=options.commit,
            device=device.name,
            kernel=name_of(self._function),
        )
        # The number of threads that the caller asks for goes before a tuned one.
        if options.threads is None:
            return choice
        return replace(choice, threads=options.threads)

    def _launcher(self, device: Device, vectors: bool) -> Launcher:
        launcher = self._launchers.get((device, vectors))
        if launcher is None:
            launcher = self._launchers[device, vectors] = self._new_launcher(
                device, vectors
            )
        return launcher

    def _new_launcher(self, device: Device, vectors: bool) -> Launcher:
        """Write the program of the chosen strategy, and load it."""
        choice = self._choice_for(device)
        options = self._options
        if options.boundscheck:
            raise MeshprepError(
                f"loop '{self._plan.loop.name}': boundscheck is for a CPU: pass NumPy "
                "arrays, or run it under compute-sanitizer"
            )
        cuda_program = program(
            function=self._function,
            plan=self._plan,
            strategy=choice.strategy,
            layout=options.layout,
            variant=choice.variant,
            commit=choice.commit,
            threads=choice.threads,
            vectors=vectors,
            fastmath=options.fastmath,
        )
        return Launcher(cuda_program, device, options.graph)
