"""Products and sweeps as CUDA C: texts with their arrays and launches, for the runners of loops."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..cuda.arrays import DeviceBinder
from ..cuda.device import Device, current
from ..cuda.executor import Launcher
from ..cuda.programs import CudaProgram, Launch
from ..cuda.source.parameters import Parameter
from ..cuda.source.rows import Lines
from ..cuda.source.shape import C_TYPES
from ..cuda.strategies import MOST_THREADS, WARP
from ..errors import MeshprepError
from ..kernel.bind import Slot
from ..plan import LoopPlan
from ..types.loops import Access, Arg, Loop
from ..types.maps import offsets_of
from . import cuda_text
from .code import check_blocks
from .cuda_text import MOST_BLOCK, CsrThreads, fixed_rule
from .stores import CsrMatrix, LocalMatrices, MatrixStore, Store, check_matrix, check_store

ROW_THREADS = 256
S = TypeVar("S", bound=MatrixStore)


def csr_program(matrix: CsrMatrix, threads: CsrThreads | None = None) -> CudaProgram:
    """The CUDA C of ``y = A x`` for compressed rows [R14 4.5]; the values are an argument.

    Raises MeshprepError for a matrix whose arrays do not fit. The text depends on ``coop`` and the
    types alone.

    ``threads`` is None for the fixed rule's.
    """
    check_matrix(matrix)
    rows = matrix.shape[0]
    chosen = fixed_rule(rows, matrix.values.size) if threads is None else threads
    kind = C_TYPES[matrix.values.dtype.str[1:]]
    arrays = {"row_ptr": matrix.row_ptr, "columns": matrix.columns}
    body, sizes = cuda_text.csr_rows(kind, chosen.coop), {"rows": rows, "repeat": chosen.repeat}
    launches = _one_launch(chosen.blocks(rows))
    return _kernel(matrix, "meshprep_csr", body, arrays, sizes, (chosen.block_size, launches))


def local_program(matrix: LocalMatrices, plan: LoopPlan, variant: str | None = None) -> CudaProgram:
    """The CUDA C of ``y = A x`` for matrices of elements: a thread an element.

    Raises MeshprepError for a matrix whose arrays do not fit, colours that do not fit the dofs, and
    blocks that are too large for a GPU. Matrices and dofs are copied, entry by entry of all
    elements, in the order of the blocks. ``plan`` is of a loop over the elements that adds to the
    dofs: blocks of one colour are one launch, threads of one colour add at once.
    """
    check_matrix(matrix)
    blocks = plan.variant(variant)
    check_blocks(matrix, blocks)
    if blocks.block_size > MOST_THREADS:
        raise MeshprepError(
            f"blocks of up to {blocks.block_size} elements: a GPU has at most {MOST_THREADS} "
            "threads a block; take another variant"
        )
    elements, n = matrix.dofs.shape
    kind = C_TYPES[matrix.values.dtype.str[1:]]
    text = cuda_text.symmetric_elements if matrix.symmetric else cuda_text.local_elements
    threads = -(-max(blocks.block_size, 1) // WARP) * WARP
    ends = blocks.block_colour_offset.tolist()
    launches = tuple(Launch(b - a, a, b, a) for a, b in pairwise(ends) if b > a)
    found: dict[str, NDArray[Any]] = {
        "block_order": blocks.block_order,
        "block_offset": blocks.block_offset,
        "thread_colour": blocks.thread_colour,
        "thread_colours": blocks.thread_colours,
        "dofs": np.ascontiguousarray(blocks.by_place(matrix.dofs).T).reshape(-1),
        "values": np.ascontiguousarray(blocks.by_place(matrix.to_host().values).T).reshape(-1),
    }
    # a device keeps one set of numbers for both kernels
    sizes = {"rows": matrix.n_rows, "elements": elements}
    over = (ROW_THREADS, _one_launch(-(-matrix.n_rows // ROW_THREADS)))
    zero = _kernel(matrix, "meshprep_zero", cuda_text.zero(), {}, sizes, over)
    body, way = text(kind, n), (threads, launches)
    add = _kernel(matrix, "meshprep_local", body, found, sizes, way, bound=threads)
    return replace(zero, then=(add,))


def sweep_program(
    matrix: CsrMatrix, colour: NDArray[np.integer], inverse: NDArray[Any], *, backward: bool
) -> CudaProgram:
    """The CUDA C of a sweep over the rows, colour by colour [R14 Algorithm 6].

    ``colour`` are those of rows, of which no two of one colour see each other, and ``inverse`` is
    one over the diagonal; ``backward`` takes the last colour first. y is to be zero before.
    """
    rows = matrix.shape[0]
    coop = fixed_rule(rows, matrix.columns.size).coop
    groups, ends = ROW_THREADS // coop, offsets_of(np.bincount(colour, minlength=1)).tolist()
    launches = [Launch(-(-(b - a) // groups), a, b, 0) for a, b in pairwise(ends) if b > a]
    arrays: dict[str, NDArray[Any]] = {"row_ptr": matrix.row_ptr, "columns": matrix.columns}
    arrays["by_colour"] = np.argsort(colour, kind="stable").astype(np.int32)
    arrays["inverse"] = inverse
    body = cuda_text.sweep_rows(C_TYPES[matrix.values.dtype.str[1:]], coop)
    way = (ROW_THREADS, tuple(launches[::-1] if backward else launches))
    return _kernel(matrix, "meshprep_sweep", body, arrays, {}, way)


def to_gpu(matrix: S) -> S:
    """The matrix with its values on the current GPU: products and solvers then run there.

    Parameters
    ----------
    matrix : CsrMatrix or LocalMatrices

    Returns
    -------
    CsrMatrix or LocalMatrices
        On the same pattern, which stays on the host; the matrix itself where it lies there.

    Raises
    ------
    MissingPackageError
        Where CuPy is not installed.
    MeshprepError
        Where CUDA finds no GPU.
    """
    check_store(matrix)
    return matrix if matrix.on_gpu else matrix.with_values(current().array(matrix.values))


class DeviceProduct:
    """A program of a matrix on the current device, called with arrays that lie there.

    ``values`` are those of the matrix there, None where the program has a copy.
    """

    def __init__(self, program: CudaProgram, values: Any = None) -> None:
        # They go first, and wait for what they have queued.
        self._launchers: dict[Device, Launcher] = {}
        self._program = program
        self._fixed = {} if values is None else {"values": values.reshape(-1)}
        self._bound = DeviceBinder(program.loop, program.slots)

    def __call__(self, x: Any, out: Any = None) -> Any:
        """Queue ``y = A x`` on the current stream; gives ``out``, or a new y."""
        device, slot = current(), self._program.slots[1]
        y = device.zeros(slot.shape[0], slot.dtype) if out is None else out
        given = self._bound({"x": x, "y": y, **self._fixed}, device)
        if device not in self._launchers:
            self._launchers[device] = Launcher(self._program, device)
        self._launchers[device](given)
        return y


def device_product(
    matrix: Store, plan: LoopPlan | None = None, threads: CsrThreads | int | None = None
) -> DeviceProduct:
    """The product with a matrix whose values lie on a GPU; raises as the programs do."""
    if isinstance(threads, int):
        raise MeshprepError(f"threads is {threads}: on a GPU give CsrThreads, or None")
    if isinstance(matrix, CsrMatrix):
        return DeviceProduct(csr_program(matrix, threads), matrix.values)
    if plan is None:
        raise MeshprepError(
            "on a GPU the matrices of elements are added up in blocks: give the plan of their loop"
        )
    return DeviceProduct(local_program(matrix, plan))


def _one_launch(blocks: int) -> tuple[Launch, ...]:
    return (Launch(blocks, 0, blocks, 0),) if blocks else ()


def _kernel(
    matrix: Store,
    name: str,
    body: Lines,
    arrays: Mapping[str, NDArray[Any]],
    sizes: Mapping[str, int],
    way: tuple[int, tuple[Launch, ...]],
    bound: int = MOST_BLOCK,
) -> CudaProgram:
    """A kernel of a product; ``way`` are the threads of a block and the launches."""
    dtype, (rows, columns) = matrix.values.dtype, matrix.shape
    code = dtype.str[1:]
    slots = [
        Slot("x", Access.READ, dtype, (columns, 1), "columns"),
        Slot("y", Access.WRITE, dtype, (rows, 1), "rows"),
    ]
    if not isinstance(matrix, LocalMatrices):
        slots.append(Slot("values", Access.READ, dtype, (matrix.values.size, 1), "values"))
    listed = [Parameter(n, "in", C_TYPES[a.dtype.str[1:]]) for n, a in arrays.items()]
    ways = ("out" if s.written else "in" for s in slots)
    listed += [Parameter(f"s{i}", one, C_TYPES[code]) for i, one in enumerate(ways)]
    listed += [Parameter(size, "size") for size in (*sizes, "first", "last")]
    names, texts = [s.name for s in slots], [p.text for p in listed]
    x, y = Arg("x", Access.READ, 1, code), Arg("y", Access.WRITE, 1, code)
    return CudaProgram(
        loop=Loop("product", "rows", (x, y)),
        name=name,
        text=cuda_text.whole(name, bound, names, texts, body),
        parameters=tuple(listed),
        arrays=arrays,
        sizes=sizes,
        slots=tuple(slots),
        threads=way[0],
        shared_bytes=0,
        launches=way[1],
        reduced=(),
        alignment=(dtype.itemsize,) * len(slots),
    )
