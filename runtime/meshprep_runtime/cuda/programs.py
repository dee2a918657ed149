"""Writes the CUDA C of a loop, with the arrays and launches that it takes."""

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
    """A launch of thread blocks for a range of places."""

    blocks: int  # thread blocks
    first: int  # the first place
    last: int  # the place after the last
    part: int  # thread blocks of the launches before


@dataclass(frozen=True, eq=False)
class CudaProgram:
    """A kernel and how it is to be launched."""

    loop: Loop
    name: str  # the kernel's name in the text
    text: str  # the user's function and the kernel, in macros that two headers define
    parameters: tuple[Parameter, ...]
    # The arrays of the plan, by parameter name. The arrays of a call are parameters ``s0``,
    # ``s1``, ... in the order of ``slots``.
    arrays: Mapping[str, NDArray[Any]]
    sizes: Mapping[str, int]  # by parameter name
    slots: tuple[Slot, ...]  # the forms of the arrays of a call
    threads: int  # threads of a block
    shared_bytes: int  # dynamic shared memory of the largest block
    # Run one after the other; blocks of a launch run in any order.
    launches: tuple[Launch, ...]
    # The slots of globals that are reduced: each has an array ``partial0``, ... of its
    # number, ``dim`` times ``parts`` values, which the caller provides and joins.
    reduced: tuple[int, ...]
    # The kernel, where it is in Python: the text only declares it.
    kernel: PythonKernel | None = None
    # For each slot, the bytes that its array's address has to be a multiple of.
    alignment: tuple[int, ...] = ()
    # Dtype and size, by parameter name, of arrays that the caller provides, with any
    # values.
    scratch: Mapping[str, tuple[np.dtype, int]] = field(default_factory=dict)
    # Programs that are launched afterwards: on the same dats and scratch, with arrays of
    # the plan of their own.
    then: "tuple[CudaProgram, ...]" = ()
    fastmath: bool = False  # see :func:`program`
    # Whether indices have 32 bits; otherwise an array may hold 2^31 values or more.
    narrow: bool = False

    @property
    def parts(self) -> int:
        """The number of blocks in all launches."""
        return sum(launch.blocks for launch in self.launches)

    @property
    def cuda(self) -> str:
        """The whole text for nvcc or NVRTC; a kernel in Python is to be linked to it."""
        narrow = "#define MP_NARROW\n" if self.narrow else ""
        return f"{narrow}{header()}\n{self.text}"


def header() -> str:
    """The header that defines the macros for a GPU."""
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

    Parameters
    ----------
    function : DeviceFunction or Python function
        A Python function is what a ParLoop takes: with rows as arrays, compiled by numba
        when the program is run or compiled.
    strategy : str
        In blocks. ``"hierarchical"``: thread colours in shared memory, with all indirect
        data staged [S19]; ``"hierarchical-inc"``: with increments only;
        ``"hierarchical-collapsed"``: with neighbouring threads at neighbouring pieces of
        rows; ``"hierarchical-unstaged"``: thread colours in global memory, with nothing
        staged; ``"shared-atomics"``: atomics in shared memory; ``"staged-gather"``: threads
        leave what they add in shared memory, then one a point sums [G10 section 10];
        ``"block-permute"``: hierarchical, with the elements of a block by thread colour
        [R14 7.1]. Without blocks: ``"global-atomics"``, ``"global-colouring"``,
        ``"full-permute"`` (the same with maps in the order of the colours), ``"two-step"``
        (a temporary array, and a second kernel that sums).
    layout : str or mapping of dat name to str
        ``"aos"`` or ``"soa"``, as for a ParLoop.
    variant : str or None
        Which blocks; None takes the loop's default. Strategies without blocks need none.
    commit : str
        How blocks add to points that others share: ``"colours"``, a launch for each block
        colour, or ``"atomics"``, one launch, where points of a single block are still
        written plainly.
    threads : int or None
        Threads of a thread block; None takes as many as the plan's blocks have elements,
        and 256 without blocks. Where there are fewer, a thread runs several elements of its
        block, one after the other [G12 section 5]: larger blocks stage less an element, and
        fit all the same.
    vectors : bool
        Move up to 16 bytes of an AoS row at once, where its size is a multiple of them;
        arrays must then begin at multiples of :attr:`CudaProgram.alignment`.
    fastmath : bool
        Let the compilers reorder sums, assume that no value is inf or nan, take tiny ``f4``
        for zero, and approximate quotients, roots and functions of ``f4``.

    Returns
    -------
    CudaProgram
        Its text depends on the loop and the options, not on the mesh.

    Raises
    ------
    MeshprepError
        For what is unknown, a loop that the strategy cannot run, and blocks too large for a
        GPU.

    Notes
    -----
    O(map entries x log).
    """
    # Refuse what the text cannot do before any of it is written.
    options = ProgramOptions(**code)
    check_loop(plan)
    _check_options(plan=plan, strategy=strategy, commit=commit, threads=options.threads)
    chosen_strategy = STRATEGIES[strategy]
    blocks = _blocks_for_gpu(plan, variant) if chosen_strategy.blocks else None
    threads = _threads_of_block(options.threads, blocks)
    # Find out how arguments lie in memory, and what the function gets of them.
    loop_slots = slots(plan, layout)
    rows = rows_of(plan.loop, loop_slots)
    element = _element_function(
        function=function,
        plan=plan,
        loop_slots=loop_slots,
        rows=rows,
        fastmath=options.fastmath,
    )
    # Write the text from all that it depends on.
    shape = LoopShape(
        plan=plan,
        slots=loop_slots,
        rows=rows,
        strategy=chosen_strategy,
        commit=commit,
        function=element.name,
        threads=threads,
        vectors=options.vectors,
        listed=blocks is not None and blocks.elements is not None,
        several=blocks is not None and threads < blocks.block_size,
        wide=_needs_wide_indices(plan, loop_slots),
    )
    first = _first_program(
        shape=shape, element=element, blocks=blocks, fastmath=options.fastmath
    )
    # A second step sums the temporary arrays.
    summed_slots = shape.added if shape.strategy.adds == "apart" else ()
    sums = tuple(_sum_program(first, shape, i) for i in summed_slots)
    return replace(first, then=sums)


def _first_program(
    shape: LoopShape,
    element: DeviceFunction | PythonKernel,
    blocks: Variant | None,
    fastmath: bool,
) -> CudaProgram:
    """The program that runs the kernel."""
    # The text depends on the loop; the mesh is in the order, the launches and the arrays.
    order, launches = _launches(shape, blocks)
    arrays = plan_arrays(shape, blocks, order)
    kernel_parameters = parameters(shape, arrays)
    return CudaProgram(
        loop=shape.loop,
        name=text.NAME,
        text=f"{element.text}\n\n{text.text(shape, kernel_parameters)}",
        parameters=kernel_parameters,
        arrays=arrays,
        sizes=sizes(shape),
        slots=shape.slots,
        threads=shape.threads,
        shared_bytes=shared_bytes(shape, blocks),
        launches=launches,
        reduced=shape.reduced,
        kernel=element if isinstance(element, PythonKernel) else None,
        alignment=tuple(
            s.dtype.itemsize * shape.width(i) for i, s in enumerate(shape.slots)
        ),
        scratch=text.scratch(shape),
        fastmath=fastmath,
        narrow=not shape.wide,
    )


def _threads_of_block(requested: int | None, blocks: Variant | None) -> int:
    """Threads of a thread block, as requested or by the plan.

    In blocks of the plan at most as many as the largest block has elements, in whole warps:
    more would do nothing.
    """
    if blocks is None:
        if requested is None:
            return USUAL_THREADS
        return requested
    # A thread for each element of the largest block, in whole warps.
    most = -(-max(blocks.block_size, 1) // WARP) * WARP
    if requested is None:
        return most
    return min(requested, most)


def _needs_wide_indices(plan: LoopPlan, loop_slots: Sequence[Slot]) -> bool:
    """True where an array that the text names may hold more values than 32 bits count."""
    n = plan.sizes[plan.loop.over]
    values_of_element = sum(max(arg.dim, 1) * len(arg.index) for arg in plan.loop.args)
    columns = sum(plan.maps[m].arity for m in plan.loop.maps)
    sizes_of_dats = [math.prod(slot.shape) for slot in loop_slots]
    return max([n * values_of_element, n * columns, *sizes_of_dats]) > INDEX_LIMIT


def _sum_program(first: CudaProgram, shape: LoopShape, i: int) -> CudaProgram:
    """The second step for a slot: a kernel that sums its temporary array at each point."""
    arrays = text.sum_arrays(shape, i)
    kernel_parameters = text.sum_parameters(shape, i, arrays)
    n_points = shape.plan.sizes[str(shape.slots[i].rows)]
    body = text.sum_body(shape, i)
    # It has the slots and sizes of the first kernel, and a thread for each point.
    return replace(
        first,
        name=text.SUM_NAME,
        text=text.kernel_text(
            name=text.SUM_NAME, shape=shape, parameters=kernel_parameters, body=body
        ),
        parameters=kernel_parameters,
        arrays=arrays,
        shared_bytes=0,
        launches=_nonempty(np.array([0, n_points]), shape.threads),
        reduced=(),
        kernel=None,
    )


def _element_function(
    function: DeviceFunction | Callable[..., None],
    plan: LoopPlan,
    loop_slots: tuple[Slot, ...],
    rows: tuple[Row, ...],
    fastmath: bool,
) -> DeviceFunction | PythonKernel:
    """The function for one element; one in Python is checked, and compiled when needed."""
    if isinstance(function, DeviceFunction):
        return function
    from ..kernel.analysis import check_parameters
    from ..kernel.misuse import check_rows
    from ..kernel.parameters import kernel_by_row

    check_parameters(function, plan)
    check_rows(function, plan)
    return PythonKernel(
        function=kernel_by_row(function, plan.loop),
        plan=plan,
        slots=loop_slots,
        rows=rows,
        fastmath=fastmath,
    )


def _launches(
    shape: LoopShape, blocks: Variant | None
) -> tuple[NDArray[Any] | None, tuple[Launch, ...]]:
    """The order of the places, None for their own, and the launches.

    Without blocks the places are the elements.
    """
    n = shape.plan.sizes[shape.loop.over]
    # In blocks: a launch for each block colour, or a single launch with atomics.
    if blocks is not None:
        ends = blocks.block_colour_offset
        if shape.commit == "atomics":
            ends = np.array([0, blocks.n_blocks])
        if not shape.strategy.permutes:
            return None, _nonempty(ends, 1)
        # Sort the places of each block by thread colour, so that a warp has few colours.
        order = np.lexsort((blocks.thread_colour, blocks.block_of_place())).astype(np.int32)
        return order, _nonempty(ends, 1)
    # Without blocks: a single launch, or a launch for each colour of the set.
    if shape.strategy.adds != "plain":
        return None, _nonempty(np.array([0, n]), shape.threads)
    from ..kernel.colouring import colour_elements

    colour = colour_elements(shape.plan)
    order = np.argsort(colour, kind="stable").astype(np.int32)
    ends = offsets_of(np.bincount(colour))
    return order, _nonempty(ends, shape.threads)


def _nonempty(ends: NDArray[Any], places_of_block: int) -> tuple[Launch, ...]:
    """A launch for each range of places between two ends that has any."""
    launches = []
    part = 0
    for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        if last > first:
            blocks = -(-(last - first) // places_of_block)
            launches.append(Launch(blocks=blocks, first=first, last=last, part=part))
            part += blocks
    return tuple(launches)


def _check_options(plan: LoopPlan, strategy: str, commit: str, threads: int | None) -> None:
    where = f"loop '{plan.loop.name}'"
    check_choice(f"{where}: strategy", strategy, STRATEGIES)
    check_choice(f"{where}: commit", commit, COMMITS)
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        raise MeshprepError(f"{where}: threads is {threads}, must be 1 to {MOST_THREADS}")
    if reason := refusal(plan.loop, strategy, commit):
        raise MeshprepError(f"{where}: strategy '{strategy}' cannot run it: {reason}")


def _blocks_for_gpu(plan: LoopPlan, name: str | None) -> Variant:
    """The blocks of a name, or the default; raises MeshprepError for too large ones."""
    where = f"loop '{plan.loop.name}'"
    if not plan.variants:
        raise MeshprepError(f"{where} has no blocks in this plan: use 'global-atomics'")
    variant = plan.variant(name)
    check_variant(plan, variant)
    if variant.block_size > MOST_THREADS:
        raise MeshprepError(
            f"{where}: variant '{variant.name}' has blocks of up to {variant.block_size} "
            f"elements, but a thread block has at most {MOST_THREADS} threads: take "
            "another variant"
        )
    return variant
