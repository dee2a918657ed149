"""From a loop's plan and a device function to CUDA C with the arrays and launches it takes."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError, check_choice
from ..kernel.analysis import DeviceFunction
from ..kernel.bind import AOS, Layout, Slot, slots
from ..kernel.rows import Row, rows_of
from ..plan import LoopPlan, Variant
from ..plan.checks.structure import check_loop, check_variant
from ..types.loops import Loop
from ..types.maps import INDEX_LIMIT, offsets_of
from .source import text
from .source.element import PythonKernel
from .source.parameters import Parameter, parameters, plan_arrays, shared_bytes, sizes
from .source.shape import LoopShape
from .strategies import COMMITS, MOST_THREADS, STRATEGIES, WARP, refusal

# Threads of a thread block, for strategies without blocks of the plan.
USUAL_THREADS = 256
# A prepared launch, to be called with its stream.
Call = Callable[[Any], None]


@dataclass(frozen=True)
class Launch:
    """``blocks`` thread blocks for places ``first`` to ``last - 1``; ``part`` blocks before."""

    blocks: int
    first: int
    last: int
    part: int


@dataclass(frozen=True, eq=False)
class CudaProgram:
    """A kernel and how it is to be launched."""

    loop: Loop
    name: str  # the kernel's name in the text
    text: str  # the user's function and the kernel, in macros that two headers define
    parameters: tuple[Parameter, ...]
    # By parameter name: those of the plan; the rest are ``slots``, as ``s0``, ``s1``, ... in their
    # order.
    arrays: Mapping[str, NDArray[Any]]
    sizes: Mapping[str, int]  # by parameter name
    slots: tuple[Slot, ...]  # what the arrays of a call must be
    threads: int  # threads of a block
    shared_bytes: int  # dynamic shared memory of the largest block
    launches: tuple[Launch, ...]  # one after the other; blocks of one launch run in any order
    # The slots of globals that are reduced: each has an array ``partial0``, ... of its number,
    # ``dim`` times ``parts`` values, which the caller provides and joins.
    reduced: tuple[int, ...]
    # The function for one element where it is in Python: the text only declares it.
    kernel: PythonKernel | None = None
    # For each slot, the bytes that its array's address has to be a multiple of.
    alignment: tuple[int, ...] = ()
    # By parameter name: arrays that the caller provides, with nothing in particular in them.
    scratch: Mapping[str, tuple[np.dtype, int]] = field(default_factory=dict)
    # What is launched after: on the same dats and scratch, with arrays of its own.
    then: "tuple[CudaProgram, ...]" = ()
    fastmath: bool = False  # how it is to be compiled, see :func:`programs`
    # Whether indices have 32 bits; else some array may hold 2^31 values or more.
    narrow: bool = False

    @property
    def parts(self) -> int:
        """The number of blocks in all launches."""
        return sum(launch.blocks for launch in self.launches)

    @property
    def cuda(self) -> str:
        """The whole text for nvcc or NVRTC; a kernel in Python has to be linked with it."""
        narrow = "#define MP_NARROW\n" if self.narrow else ""
        return f"{narrow}{header()}\n{self.text}"


def header() -> str:
    """The text that gives the macros a meaning on a GPU."""
    return (files(__package__) / "device.hpp").read_text(encoding="utf-8")


class ProgramArguments(TypedDict, total=False):
    """The :class:`ProgramOptions` that :func:`program` takes by name."""

    threads: int | None
    vectors: bool
    fastmath: bool


@dataclass(frozen=True)
class ProgramOptions:
    """How the text is written and compiled; :func:`program` says what each means."""

    threads: int | None = None
    vectors: bool = True
    fastmath: bool = False


def program(
    function: DeviceFunction | Callable[..., None],
    plan: LoopPlan,
    strategy: str = "hierarchical",
    *,
    layout: Layout = AOS,
    variant: str | None = None,
    commit: str = "colours",
    **code: Unpack[ProgramArguments],
) -> CudaProgram:
    """Write the CUDA C of a loop.

    Raises MeshprepError for what is unknown, a loop that the strategy cannot run, and blocks too
    large for a GPU. The text depends on the loop and the options, not on the mesh. O(map entries x
    log).

    Parameters
    ----------
    function : DeviceFunction or Python function
        A Python function is what a ParLoop takes: with rows as arrays, compiled by numba when the
        program is run or compiled.
    strategy : str
        ``"hierarchical"``: thread colours in shared memory, with all indirect data staged, or
        increments only (``"hierarchical-inc"``) [S19]; ``"shared-atomics"``: atomics there;
        ``"staged-gather"``: threads leave what they add in shared memory, then one a point sums
        [G10 section 10]; ``"block-permute"``: hierarchical, with the elements of a block by thread
        colour [R14 7.1]. Without blocks: ``"global-atomics"``, ``"global-colouring"``,
        ``"full-permute"`` (the same with maps in the order of the colours), ``"two-step"``
        (a temporary array, and a second kernel that sums).
    layout : str or mapping of dat name to str
        ``"aos"`` or ``"soa"``, as for a ParLoop.
    variant : str or None
        Which blocks; None takes the loop's default. Strategies without blocks need none.
    commit : str
        How blocks add to points that others share: ``"colours"``, a launch for each block colour,
        or ``"atomics"``, one launch, where points of a single block are still written plainly.
    threads : int or None
        Threads of a thread block; None takes as many as the plan's blocks have elements, and 256
        without blocks. Where there are fewer, a thread runs several elements of its block, one
        after the other [G12 section 5]: larger blocks stage less an element, and fit all the same.
    vectors : bool
        Move up to 16 bytes of an AoS row at once, where its size is a multiple of them; arrays
        must then begin at multiples of :attr:`CudaProgram.alignment`.
    fastmath : bool
        Let the compilers reorder sums, assume that no value is inf or nan, take tiny ``f4`` for
        zero, and approximate quotients, roots and functions of ``f4``.
    """
    options = ProgramOptions(**code)
    check_loop(plan)
    _check(plan, strategy, commit, options.threads)
    chosen = STRATEGIES[strategy]
    blocks = _blocks(plan, variant) if chosen.blocks else None
    threads = _threads(options.threads, blocks)
    wanted = slots(plan, layout)
    rows = rows_of(plan.loop, wanted)
    element = _element(function, plan, wanted, rows, options.fastmath)
    shape = LoopShape(
        plan=plan,
        slots=wanted,
        rows=rows,
        strategy=chosen,
        commit=commit,
        function=element.name,
        threads=threads,
        vectors=options.vectors,
        listed=blocks is not None and blocks.elements is not None,
        several=blocks is not None and threads < blocks.block_size,
        wide=_wide(plan, wanted),
    )
    first = _first(shape, element, blocks, options.fastmath)
    sums = shape.added if shape.strategy.adds == "apart" else ()
    return replace(first, then=tuple(_sums(first, shape, i) for i in sums))


def _first(
    shape: LoopShape, element: DeviceFunction | PythonKernel, blocks: Variant | None, fastmath: bool
) -> CudaProgram:
    """The program that runs the kernel."""
    order, launches = _launches(shape, blocks)
    arrays = plan_arrays(shape, blocks, order)
    listed = parameters(shape, arrays)
    return CudaProgram(
        loop=shape.loop,
        name=text.NAME,
        text=f"{element.text}\n\n{text.text(shape, listed)}",
        parameters=listed,
        arrays=arrays,
        sizes=sizes(shape),
        slots=shape.slots,
        threads=shape.threads,
        shared_bytes=shared_bytes(shape, blocks),
        launches=launches,
        reduced=shape.reduced,
        kernel=element if isinstance(element, PythonKernel) else None,
        alignment=tuple(s.dtype.itemsize * shape.width(i) for i, s in enumerate(shape.slots)),
        scratch=text.scratch(shape),
        fastmath=fastmath,
        narrow=not shape.wide,
    )


def _threads(asked: int | None, blocks: Variant | None) -> int:
    """Threads of a thread block; more than a block has elements, in whole warps, do nothing."""
    if blocks is None:
        return USUAL_THREADS if asked is None else asked
    whole = -(-max(blocks.block_size, 1) // WARP) * WARP
    return whole if asked is None else min(asked, whole)


def _wide(plan: LoopPlan, wanted: Sequence[Slot]) -> bool:
    """True where an array that the text names may hold more than 32 bits count."""
    n = plan.sizes[plan.loop.over]
    reached = sum(max(arg.dim, 1) * len(arg.index) for arg in plan.loop.args)
    columns = sum(plan.maps[m].arity for m in plan.loop.maps)
    return max([n * reached, n * columns, *(math.prod(s.shape) for s in wanted)]) > INDEX_LIMIT


def _sums(first: CudaProgram, shape: LoopShape, i: int) -> CudaProgram:
    """The second step for one slot."""
    arrays = text.sum_arrays(shape, i)
    listed = text.sum_parameters(shape, i, arrays)
    n_points = shape.plan.sizes[str(shape.slots[i].rows)]
    body = text.sum_body(shape, i)
    return replace(
        first,
        name=text.SUM_NAME,
        text=text.kernel_text(text.SUM_NAME, shape, listed, body),
        parameters=listed,
        arrays=arrays,
        shared_bytes=0,
        launches=_nonempty(np.array([0, n_points]), shape.threads),
        reduced=(),
        kernel=None,
    )


def _element(
    function: DeviceFunction | Callable[..., None],
    plan: LoopPlan,
    wanted: tuple[Slot, ...],
    rows: tuple[Row, ...],
    fastmath: bool,
) -> DeviceFunction | PythonKernel:
    if isinstance(function, DeviceFunction):
        return function
    from ..kernel.analysis import check_parameters

    check_parameters(function, plan)
    return PythonKernel(function, plan, wanted, rows, fastmath)


def _launches(
    shape: LoopShape, blocks: Variant | None
) -> tuple[NDArray[Any] | None, tuple[Launch, ...]]:
    """The order of the places (elements without blocks), where it is another, and the launches."""
    n = shape.plan.sizes[shape.loop.over]
    if blocks is not None:
        ends = blocks.block_colour_offset
        if shape.commit == "atomics":
            ends = np.array([0, blocks.n_blocks])
        if not shape.strategy.permutes:
            return None, _nonempty(ends, 1)
        # the places of each block by thread colour, so that a warp meets few of them
        order = np.lexsort((blocks.thread_colour, blocks.block_of_place())).astype(np.int32)
        return order, _nonempty(ends, 1)
    if shape.strategy.adds != "plain":
        return None, _nonempty(np.array([0, n]), shape.threads)
    from ..kernel.colouring import colour_elements

    colour = colour_elements(shape.plan)
    ends = offsets_of(np.bincount(colour))
    return np.argsort(colour, kind="stable").astype(np.int32), _nonempty(ends, shape.threads)


def _nonempty(ends: NDArray[Any], each: int) -> tuple[Launch, ...]:
    launches, part = [], 0
    for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        if b > a:
            launches.append(Launch(-(-(b - a) // each), a, b, part))
            part += launches[-1].blocks
    return tuple(launches)


def _check(plan: LoopPlan, strategy: str, commit: str, threads: int | None) -> None:
    where = f"loop '{plan.loop.name}'"
    check_choice(f"{where}: strategy", strategy, STRATEGIES)
    check_choice(f"{where}: commit", commit, COMMITS)
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        raise MeshprepError(f"{where}: threads is {threads}, must be 1 to {MOST_THREADS}")
    if reason := refusal(plan.loop, strategy, commit):
        raise MeshprepError(f"{where}: strategy '{strategy}' cannot run it: {reason}")


def _blocks(plan: LoopPlan, name: str | None) -> Variant:
    where = f"loop '{plan.loop.name}'"
    if not plan.variants:
        raise MeshprepError(f"{where} has no blocks in this plan: use 'global-atomics'")
    variant = plan.variant(name)
    check_variant(plan, variant)
    if variant.block_size > MOST_THREADS:
        raise MeshprepError(
            f"{where}: variant '{variant.name}' has blocks of up to {variant.block_size} elements, "
            f"but a thread block has at most {MOST_THREADS} threads: take another variant"
        )
    return variant
