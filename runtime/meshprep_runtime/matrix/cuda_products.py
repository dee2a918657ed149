"""Products and sweeps as programs in CUDA C, with their arrays and launches."""

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
from ..plan.tuned import ProductThreads
from ..types.loops import Access, Arg, Loop
from ..types.maps import offsets_of
from . import cuda_text
from .code import check_blocks
from .cuda_text import MOST_BLOCK, CsrThreads, fixed_rule
from .search import ThreadSearch
from .stores import (
    CsrMatrix,
    Ellpack,
    LocalMatrices,
    MatrixStore,
    Store,
    check_matrix,
    check_store,
    entries_of_rows,
    rows_of_elements,
)

# Threads of a block, in kernels over rows.
ROW_THREADS = 256
S = TypeVar("S", bound=MatrixStore)


def csr_program(matrix: CsrMatrix, threads: CsrThreads | None = None) -> CudaProgram:
    """The program of ``y = A x`` for compressed rows [R14 4.5]; the values are an argument.

    ``threads`` is None for those of the fixed rule. Raises MeshprepError for a matrix whose
    arrays do not fit. The text depends only on ``coop`` and the types.
    """
    check_matrix(matrix)
    rows = matrix.shape[0]
    if threads is None:
        threads = fixed_rule(rows, matrix.values.size)
    c_type = C_TYPES[matrix.values.dtype.str[1:]]
    return _matrix_program(
        matrix=matrix,
        name="meshprep_csr",
        body=cuda_text.csr_rows_body(c_type, threads.coop),
        arrays={"row_ptr": matrix.row_ptr, "columns": matrix.columns},
        sizes={"rows": rows, "repeat": threads.repeat},
        threads=threads.block_size,
        launches=_one_launch(threads.blocks(rows)),
        takes_values=True,
    )


def ellpack_program(matrix: Ellpack) -> CudaProgram:
    """The program of ``y = A x`` for rows of one length; the values are an argument.

    Raises MeshprepError for a matrix whose arrays do not fit.
    """
    check_matrix(matrix)
    width, rows = matrix.columns.shape
    return _matrix_program(
        matrix=matrix,
        name="meshprep_ellpack",
        body=cuda_text.ellpack_rows_body(C_TYPES[matrix.values.dtype.str[1:]]),
        arrays={"columns": matrix.columns.reshape(-1)},
        sizes={"rows": rows, "width": width},
        threads=ROW_THREADS,
        launches=_one_launch(-(-rows // ROW_THREADS)),
        takes_values=True,
    )


def local_program(
    matrix: LocalMatrices, plan: LoopPlan, variant: str | None = None
) -> CudaProgram:
    """The program of ``y = A x`` for matrices of elements, with a thread for each element.

    ``plan`` is the plan of a loop over the elements that adds to the dofs: blocks of a
    colour are a launch, threads of a colour add at once. Matrices and dofs are copied,
    entry by entry of all elements, in the order of the blocks.

    Raises MeshprepError for a matrix whose arrays do not fit, colours that do not fit the
    dofs, and blocks that are too large for a GPU.
    """
    check_matrix(matrix)
    blocks = plan.variant(variant)
    check_blocks(matrix, blocks)
    if blocks.block_size > MOST_THREADS:
        raise MeshprepError(
            f"blocks of up to {blocks.block_size} elements: a GPU has at most "
            f"{MOST_THREADS} threads a block; take another variant"
        )
    elements, n = matrix.dofs.shape
    # Both kernels have the same sizes: a device keeps one set of numbers for them.
    sizes = {"rows": matrix.n_rows, "elements": elements}
    # First a kernel sets y to zero: elements add to it.
    zero = _matrix_program(
        matrix=matrix,
        name="meshprep_zero",
        body=cuda_text.zero_body(),
        arrays={},
        sizes=sizes,
        threads=ROW_THREADS,
        launches=_one_launch(-(-matrix.n_rows // ROW_THREADS)),
        takes_values=False,
    )
    c_type = C_TYPES[matrix.values.dtype.str[1:]]
    if matrix.symmetric:
        body = cuda_text.symmetric_elements_body(c_type, n)
    else:
        body = cuda_text.local_elements_body(c_type, n)
    # Entry by entry of all elements, neighbouring threads read neighbouring values.
    values = blocks.by_place(matrix.to_host().values)
    arrays: dict[str, NDArray[Any]] = {
        "block_order": blocks.block_order,
        "block_offset": blocks.block_offset,
        "thread_colour": blocks.thread_colour,
        "thread_colours": blocks.thread_colours,
        "dofs": np.ascontiguousarray(blocks.by_place(matrix.dofs).T).reshape(-1),
        "values": np.ascontiguousarray(values.T).reshape(-1),
    }
    # Then a launch for each block colour: blocks of a colour share no dof.
    threads = -(-max(blocks.block_size, 1) // WARP) * WARP
    launches = []
    for first, last in pairwise(blocks.block_colour_offset.tolist()):
        if last > first:
            launches.append(Launch(blocks=last - first, first=first, last=last, part=first))
    add = _matrix_program(
        matrix=matrix,
        name="meshprep_local",
        body=body,
        arrays=arrays,
        sizes=sizes,
        threads=threads,
        launches=tuple(launches),
        takes_values=False,
        most_threads=threads,
    )
    return replace(zero, then=(add,))


def sweep_program(
    matrix: CsrMatrix | LocalMatrices,
    colour: NDArray[np.integer],
    inverse: NDArray[Any],
    *,
    backward: bool,
) -> CudaProgram:
    """The program of a sweep over the rows, colour by colour [R14 Algorithm 6].

    ``colour`` has the colour of each row; rows of a colour are not coupled to each other.
    ``inverse`` is one over the diagonal; ``backward`` takes the last colour first. y is to
    be zero before.
    """
    rows = matrix.shape[0]
    c_type = C_TYPES[matrix.values.dtype.str[1:]]
    arrays: dict[str, NDArray[Any]] = {
        "by_colour": np.argsort(colour, kind="stable").astype(np.int32),
        "inverse": inverse,
    }
    sizes = {}
    if isinstance(matrix, CsrMatrix):
        # Several threads share a row, as in a product.
        coop = fixed_rule(rows, matrix.columns.size).coop
        body = cuda_text.sweep_rows_body(c_type, coop)
        arrays.update({"row_ptr": matrix.row_ptr, "columns": matrix.columns})
    else:
        # A thread takes a row, from element to element.
        coop = 1
        elements = rows_of_elements(matrix)
        body = cuda_text.sweep_local_body(c_type, matrix.dofs.shape[1])
        sizes["values_of_element"] = matrix.values.shape[1]
        arrays.update(
            {
                "offset": elements.offset,
                "element": elements.element,
                "local_row": elements.local_row,
                "entry": entries_of_rows(matrix).reshape(-1),
                "dofs": matrix.dofs.reshape(-1),
            }
        )
    rows_of_block = ROW_THREADS // coop
    ends = offsets_of(np.bincount(colour, minlength=1)).tolist()
    # A launch for each colour: its rows need the values of the colours before.
    launches = []
    for first, last in pairwise(ends):
        if last > first:
            blocks = -(-(last - first) // rows_of_block)
            launches.append(Launch(blocks=blocks, first=first, last=last, part=0))
    if backward:
        launches.reverse()
    return _matrix_program(
        matrix=matrix,
        name="meshprep_sweep",
        body=body,
        arrays=arrays,
        sizes=sizes,
        threads=ROW_THREADS,
        launches=tuple(launches),
        takes_values=True,
    )


def to_gpu(matrix: S) -> S:
    """The matrix with its values on the current GPU: products and solvers then run there.

    Parameters
    ----------
    matrix : CsrMatrix, Ellpack or LocalMatrices

    Returns
    -------
    CsrMatrix, Ellpack or LocalMatrices
        On the same pattern, which stays on the host; the matrix itself where its values lie
        on a GPU already.

    Raises
    ------
    MissingPackageError
        Where CuPy is not installed.
    MeshprepError
        Where CUDA finds no GPU.
    """
    check_store(matrix)
    if matrix.on_gpu:
        return matrix
    return matrix.with_values(current().array(matrix.values))


class DeviceProduct:
    """A program of a matrix on the current device, called with arrays of the device.

    ``values`` are the matrix's values on the device, None where the program has a copy.
    """

    def __init__(self, program: CudaProgram, values: Any = None) -> None:
        # The first attribute to be destroyed: launchers wait for the launches that they
        # have queued.
        self._launchers: dict[Device, Launcher] = {}
        self._program = program
        if values is None:
            self._fixed = {}
        else:
            self._fixed = {"values": values.reshape(-1)}
        self._bound = DeviceBinder(program.loop, program.slots)

    def __call__(self, x: Any, out: Any = None) -> Any:
        """Queue ``y = A x`` on the current stream; returns ``out``, or a new y."""
        device = current()
        slot = self._program.slots[1]
        y = device.zeros(slot.shape[0], slot.dtype) if out is None else out
        given = self._bound({"x": x, "y": y, **self._fixed}, device)
        if device not in self._launchers:
            self._launchers[device] = Launcher(self._program, device)
        self._launchers[device](given)
        return y


# Products that are timed together in a trial, after one that loads the code.
TIMED_CALLS = 4


class SearchedProduct:
    """The product with a matrix in compressed rows, whose first calls find its threads.

    The threads of one device are kept in the matrix, and so in its plan.
    """

    def __init__(self, matrix: CsrMatrix) -> None:
        self._matrix = matrix
        self._dtype = matrix.values.dtype.str[1:]
        self._products: dict[CsrThreads, DeviceProduct] = {}
        self._searches: dict[Device, ThreadSearch] = {}
        # The marks before and after the trial that has not been looked at yet.
        self._marks: dict[Device, tuple[Any, Any]] = {}

    def __call__(self, x: Any, out: Any = None) -> Any:
        """As a :class:`DeviceProduct`; waits for the trial of the call before."""
        device = current()
        threads = self._tuned_threads(device)
        if threads is not None:
            return self._product(threads)(x, out)
        search = self._searches.get(device)
        if search is None:
            matrix = self._matrix
            search = ThreadSearch(matrix.shape[0], matrix.values.size)
            self._searches[device] = search
        if device in self._marks:
            start, end = self._marks.pop(device)
            search.tell(device.seconds(start, end) / TIMED_CALLS)
        product = self._product(search.proposed)
        y = product(x, out)
        if search.settled:
            self._keep(device, search)
            return y
        # A trial: y comes out the same each time.
        start = device.mark()
        for _ in range(TIMED_CALLS):
            product(x, y)
        self._marks[device] = (start, device.mark())
        return y

    def _tuned_threads(self, device: Device) -> CsrThreads | None:
        """What was found on such a device for values of this type."""
        for found in self._matrix.tuned:
            if (found.device, found.dtype) == (device.name, self._dtype):
                return CsrThreads(found.block_size, found.coop, found.repeat)
        return None

    def _keep(self, device: Device, search: ThreadSearch) -> None:
        threads = search.proposed
        self._matrix.tuned.append(
            ProductThreads(
                device=device.name,
                dtype=self._dtype,
                block_size=threads.block_size,
                coop=threads.coop,
                repeat=threads.repeat,
                seconds=search.seconds,
            )
        )

    def _product(self, threads: CsrThreads) -> DeviceProduct:
        if threads not in self._products:
            program = csr_program(self._matrix, threads)
            self._products[threads] = DeviceProduct(program, self._matrix.values)
        return self._products[threads]


def device_product(
    matrix: Store, plan: LoopPlan | None = None, threads: CsrThreads | int | None = None
) -> DeviceProduct | SearchedProduct:
    """The product with a matrix whose values lie on a GPU; raises MeshprepError."""
    if isinstance(threads, int):
        raise MeshprepError(f"threads is {threads}: on a GPU give CsrThreads, or None")
    if isinstance(matrix, CsrMatrix):
        if threads is None:
            check_matrix(matrix)
            return SearchedProduct(matrix)
        return DeviceProduct(csr_program(matrix, threads), matrix.values)
    if isinstance(matrix, Ellpack):
        return DeviceProduct(ellpack_program(matrix), matrix.values)
    if plan is None:
        raise MeshprepError(
            "on a GPU the matrices of elements are added up in blocks: give the plan of "
            "their loop"
        )
    return DeviceProduct(local_program(matrix, plan))


def _one_launch(blocks: int) -> tuple[Launch, ...]:
    """A single launch of some blocks; none for 0 blocks."""
    if blocks:
        return (Launch(blocks=blocks, first=0, last=blocks, part=0),)
    return ()


def _matrix_program(
    matrix: Store,
    name: str,
    body: Lines,
    arrays: Mapping[str, NDArray[Any]],
    sizes: Mapping[str, int],
    threads: int,
    launches: tuple[Launch, ...],
    takes_values: bool,
    most_threads: int = MOST_BLOCK,
) -> CudaProgram:
    """A kernel of x, y and, where it takes them, the values of a matrix, as a program."""
    dtype = matrix.values.dtype
    rows, columns = matrix.shape
    slots = [
        Slot(name="x", access=Access.READ, dtype=dtype, shape=(columns, 1), rows="columns"),
        Slot(name="y", access=Access.WRITE, dtype=dtype, shape=(rows, 1), rows="rows"),
    ]
    # Products have the values of elements among the arrays, in the order of the blocks.
    if takes_values:
        values = Slot(
            name="values",
            access=Access.READ,
            dtype=dtype,
            shape=(matrix.values.size, 1),
            rows="values",
        )
        slots.append(values)
    # The arrays, slots and sizes are parameters, in the order of the text.
    type_code = dtype.str[1:]
    parameters = [Parameter(n, "in", C_TYPES[a.dtype.str[1:]]) for n, a in arrays.items()]
    for i, slot in enumerate(slots):
        access = "out" if slot.written else "in"
        parameters.append(Parameter(f"s{i}", access, C_TYPES[type_code]))
    parameters += [Parameter(size, "size") for size in (*sizes, "first", "last")]
    # A product is no loop of a plan; it has the arguments of one, so that a device launches
    # it like one.
    x = Arg(name="x", access=Access.READ, dim=1, dtype=type_code)
    y = Arg(name="y", access=Access.WRITE, dim=1, dtype=type_code)
    return CudaProgram(
        loop=Loop("product", "rows", (x, y)),
        name=name,
        text=cuda_text.kernel_text(
            name=name,
            most_threads=most_threads,
            slots=[slot.name for slot in slots],
            parameters=[parameter.text for parameter in parameters],
            body=body,
        ),
        parameters=tuple(parameters),
        arrays=arrays,
        sizes=sizes,
        slots=tuple(slots),
        threads=threads,
        shared_bytes=0,
        launches=launches,
        reduced=(),
        alignment=(dtype.itemsize,) * len(slots),
    )
