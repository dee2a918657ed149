"""Checks what a kernel does with its rows against the accesses of its loop [G12 section 2].

The kernel runs in Python, three times on each of some elements, on copies of its rows. Rows
whose old values must not matter (``write``, ``inc``, ``min``, ``max``) begin with other
values each time.

:func:`check_access` is called by users, and reports every fault. :func:`check_sample` runs
before the first run of each compiled kernel, on few elements, and reports only faults that
do not depend on the data: it passes over exceptions in Python that compiled code may not
have.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError
from ..plan import LoopPlan
from ..types.loops import Access, Arg
from . import cache
from .analysis import fresh, names_of, reach, stable
from .lint import lint_kernel
from .misuse import check_rows
from .parameters import kernel_by_row
from .syntax import definition_of, function_of

# Runs of the kernel on each element.
TURNS = 3
# Elements that run side by side.
BATCH = 64
# Elements of the sample before a first run.
SAMPLE = 50
# Seconds after which the first turn of a sample leaves out its other elements.
SAMPLE_SECONDS = 1.5e-3
# The values of written rows before each turn.
POISON = (85, 42, 17)
# Types in which increments are added up, by the kind of the dat's dtype: wider than the
# dat, so that rounding is not taken for a fault.
WIDE = {"f": np.float64, "i": np.int64, "u": np.uint64}
# The start of sums of integers in later turns.
INTEGER_START = 1009

# In Python's message for an index past the end of a tuple of rows.
PAST_A_TUPLE = "tuple index out of range"

# Samples that this process has passed.
_passed: set[str] = set()


class _Wrong(MeshprepError):
    """A fault of a kernel; the message does not say in which element."""


class Trace:
    """Notes on a row while the kernel runs; slices of the row share them."""

    __slots__ = ("access", "cut_off", "largest", "memory", "sums", "what")

    def __init__(self, what: str, access: Access, memory: NDArray[Any]) -> None:
        self.what = what
        self.access = access
        self.memory = memory
        # The largest value that the row was set to, and how often it was set.
        self.largest = 0.0
        self.sums = 0
        # How often a fraction was cut off.
        self.cut_off = 0


class TracedRow(np.ndarray[Any, np.dtype[Any]]):
    """A row that refuses an index past its end, and to be set where it is only read."""

    row_trace: Trace | None

    def __array_finalize__(self, other: Any) -> None:
        self.row_trace = getattr(other, "row_trace", None)

    def __getitem__(self, key: Any) -> Any:
        try:
            return super().__getitem__(key)
        except IndexError as error:
            self._raise_if_outside(key, error)
            raise

    def __setitem__(self, key: Any, value: Any) -> None:
        trace = self.row_trace
        # Only the row that the kernel was handed is traced; views and temporaries are not.
        if trace is None or not self._is_row(trace):
            super().__setitem__(key, value)
            return
        if trace.access is Access.READ:
            raise _Wrong(
                f"{trace.what}, component {key}: the kernel sets it, but its access is "
                "'read': use write, rw or inc"
            )
        try:
            super().__setitem__(key, value)
        except IndexError as error:
            self._raise_if_outside(key, error)
            raise
        # Note how large a sum has grown, which bounds its rounding, and what a whole number
        # cut off.
        if trace.access is Access.INC:
            trace.largest = max(trace.largest, float(np.abs(np.asarray(self)).max()))
            trace.sums += 1
            trace.cut_off += self.dtype.kind != "f" and _has_fraction(value)

    def _is_row(self, trace: Trace) -> bool:
        """False for an array that was computed from a row, and has memory of its own."""
        return np.may_share_memory(self, trace.memory)

    def _raise_if_outside(self, key: Any, error: IndexError) -> None:
        trace = self.row_trace
        if trace is not None and _is_outside(error) and self._is_row(trace):
            raise _Wrong(
                f"{trace.what}: the kernel reaches component {key}, but its dim is "
                f"{self.size}"
            ) from None


def _has_fraction(value: Any) -> bool:
    """True for a sum that loses its fraction in a row of whole numbers."""
    values = np.asarray(value)
    return values.dtype.kind == "f" and bool(np.any(values != np.trunc(values)))


def _is_outside(error: Exception) -> bool:
    """True for an index past the end, which compiled code would follow."""
    text = str(error)
    return isinstance(error, IndexError) and (
        "out of bounds" in text or PAST_A_TUPLE in text
    )


@dataclass(eq=False)
class RowsToCheck:
    """A parameter of the kernel: its argument, and its row for each element of a batch."""

    arg: Arg
    what: str
    values: NDArray[Any]
    # The rows before this turn, the rows that the kernel works on, and the rows after the
    # first turn.
    before: NDArray[Any] = field(init=False)
    rows: NDArray[Any] = field(init=False)
    first: NDArray[Any] | None = None
    # The largest sum of each row, and the number of its sums, in any turn.
    largest: NDArray[Any] = field(init=False)
    sums: NDArray[Any] = field(init=False)
    # The number of sums whose fraction was cut off.
    cut_off: NDArray[Any] = field(init=False)
    traces: list[Trace] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.largest = np.zeros(len(self.values))
        self.sums = np.zeros(len(self.values))
        self.cut_off = np.zeros(len(self.values))

    def begin(self, turn: int) -> None:
        """Fill the rows for a turn."""
        self.before = self._start(turn)
        self.rows = self.before.copy()
        access = self.arg.access
        if access is Access.INC:
            self.traces = [Trace(self.what, access, row) for row in self.rows]
        else:
            self.traces = [Trace(self.what, access, self.rows)] * len(self.rows)

    def row(self, place: int) -> TracedRow:
        """The row of an element."""
        row: TracedRow = self.rows[place].view(TracedRow)
        row.row_trace = self.traces[place]
        return row

    def end(self) -> None:
        """Take the notes of a turn."""
        if self.arg.access is Access.INC:
            left = np.abs(self.rows).max(axis=1).astype(np.float64)
            largest = np.array([trace.largest for trace in self.traces])
            self.largest = np.maximum(self.largest, np.maximum(largest, left))
            self.sums = np.maximum(self.sums, [trace.sums for trace in self.traces])
            cut_off = [trace.cut_off for trace in self.traces]
            self.cut_off = np.maximum(self.cut_off, cut_off)
        if self.first is None:
            self.first = self.rows

    def _start(self, turn: int) -> NDArray[Any]:
        """The rows before a turn, by their access."""
        access = self.arg.access
        values = self.values
        if access in (Access.READ, Access.RW):
            return values.copy()
        if access is Access.WRITE:
            return np.full_like(values, POISON[turn])
        if access is Access.INC:
            # From zero first, then from far above and far below.
            zero = np.zeros(values.shape, self._wide_dtype())
            if turn == 0:
                return zero
            far = self._far_starts().astype(zero.dtype)[:, np.newaxis]
            start: NDArray[Any] = zero + far if turn == 1 else zero - far
            return start
        # Minima and maxima: from a value that every other one replaces, then from one that
        # none replaces, and from the results of the first turn.
        if turn == 2 and self.first is not None:
            return self.first.copy()
        low, high = _limits(values.dtype)
        starts_high = (access is Access.MIN) == (turn == 0)
        return np.full_like(values, high if starts_high else low)

    def _wide_dtype(self) -> Any:
        kind = self.values.dtype.kind
        size = self.values.dtype.itemsize
        if (kind, size) == ("f", 8):
            return np.longdouble
        return WIDE[kind]

    def _far_starts(self) -> NDArray[Any]:
        """A start for each row, beside which no increment is too small to be seen.

        That is a power of two, at least twice the largest sum.
        """
        if self.values.dtype.kind != "f":
            return np.full(len(self.values), INTEGER_START)
        largest = np.where(self.largest > 0, self.largest, 1.0)
        far = np.exp2(np.ceil(np.log2(largest)) + 1)
        return np.where(np.isfinite(largest), far, 1.0)

    def faults(self, strict: bool) -> Iterator[tuple[NDArray[np.bool_], str]]:
        """The faults after a turn: a mask of elements and components, and the message.

        With ``strict``, written components that were not set are faults, too.
        """
        # Compare the rows that the turn left with what the access allows.
        assert self.first is not None
        access = self.arg.access
        left = self.rows
        if access is Access.READ:
            wrong = _differ(left, self.values)
            yield wrong, "the kernel changes it, but it is read: use rw"
        elif access is Access.INC:
            wrong = self._unlike_sums()
            yield wrong, "what is added depends on its value: 'inc' only adds, use rw"
        elif access is Access.MIN or access is Access.MAX:
            lowers = access is Access.MIN
            if lowers:
                wrong = left > self.before
            else:
                wrong = left < self.before
            yield wrong, f"the kernel sets it whatever it was: '{access}' needs {access}()"
        else:
            # Each turn has other old values in rows that are not read: a result that
            # changes with them has read them.
            wrong = _differ(left, self.first)
            if access is Access.WRITE:
                unset = wrong & ~_differ(left, self.before)
                wrong &= ~unset
                if strict:
                    yield (
                        unset,
                        "the kernel does not set it: 'write' sets every one, use rw",
                    )
            yield (
                wrong,
                "its result depends on old values of rows that are not read: use rw",
            )

    def _unlike_sums(self) -> NDArray[np.bool_]:
        """Where the change of a sum differs from that of the first turn, from zero."""
        assert self.first is not None
        change = self.rows - self.before
        wrong = _differ(change, self.first)
        if change.dtype.kind == "f":
            # Each addition is rounded by at most half a unit of the largest sum.
            eps = float(np.finfo(change.dtype).eps)
            rounding = (self.sums + 2) * eps * self.largest
        else:
            # Each fraction that is cut off changes both sums by less than one.
            rounding = 2 * self.cut_off
        wrong &= ~(np.abs(change - self.first) <= rounding[:, np.newaxis])
        return wrong


def check_access(
    kernel: Callable[..., None],
    plan: LoopPlan,
    arrays: Mapping[str, NDArray[Any]],
    most: int,
) -> None:
    """Check what a kernel does against the accesses of its loop.

    ``arrays`` are ``(n, dim)`` for dats and ``(dim,)`` for globals, and are not changed; at
    most ``most`` elements run, spread over the set. Raises MeshprepError naming element,
    argument and component, for the first fault, or line and argument where the source
    shows one on a path that no element may take.
    """
    _refuse_by_source(kernel, plan)
    plain = fresh(kernel_by_row(kernel, plan.loop), _as_it_is)
    elements = _spread(plan, most)
    for begin in range(0, len(elements), BATCH):
        batch = _Batch(
            kernel=plain,
            plan=plan,
            arrays=arrays,
            elements=elements[begin : begin + BATCH],
            strict=True,
        )
        batch.check()


def _refuse_by_source(kernel: Callable[..., None], plan: LoopPlan) -> None:
    """Raise MeshprepError for what a path through the source does against an access."""
    function = function_of(kernel)
    definition = definition_of(kernel)
    if function is None or definition is None:
        return
    numbers = {k: v for k, v in function.__globals__.items() if type(v) is int}
    code = function.__code__
    for finding in lint_kernel(definition, plan.loop, numbers):
        if finding.certain:
            line = code.co_firstlineno + finding.line - 1
            raise MeshprepError(
                f"loop '{plan.loop.name}': {finding.row}: kernel '{code.co_name}' at "
                f"{code.co_filename}:{line} {finding.what}"
            )


def check_sample(
    kernel: Callable[..., None],
    plan: LoopPlan,
    arrays: Callable[[], Mapping[str, NDArray[Any]]],
) -> None:
    """Check a kernel before its first run: its source, and some elements in Python.

    ``arrays`` returns the arrays of :func:`check_access`. A kernel that passes is noted on
    disk, by all that its code depends on; then a check takes a tenth of a millisecond, else
    some milliseconds. Raises MeshprepError for faults that do not depend on the data, but
    not for exceptions of the kernel, which compiled code may not have. Kernels that draw
    random numbers do not run, nor do those that use objects other than functions and
    numbers.
    """
    # Look whether the kernel has passed, in this process or an earlier one.
    words = stable(reach(kernel))
    args = [arg.to_dict() for arg in plan.loop.args]
    name = "" if words is None else cache.digest_of(("sample", words, args))
    if name in _passed or (name and cache.is_noted(name)):
        return
    # Check the source; run only what another process can name, and what draws no numbers.
    check_rows(kernel, plan)
    if not name:
        return
    if _is_random(kernel):
        cache.note(name)
        return
    # Run some elements in Python, on copies.
    batch = _Batch(
        kernel=fresh(kernel, _without_output),
        plan=plan,
        arrays=arrays(),
        elements=_spread(plan, SAMPLE),
        strict=False,
    )
    batch.check(SAMPLE_SECONDS)
    _passed.add(name)
    if batch.ran.any():
        cache.note(name)


def _as_it_is(function: FunctionType, options: object) -> FunctionType:
    return function


def _without_output(function: FunctionType, options: object) -> FunctionType:
    function.__globals__.setdefault("print", _print_nothing)
    return function


def _print_nothing(*values: object) -> None:
    """Stands for ``print`` in a kernel whose sample runs."""


def _is_random(kernel: Callable[..., None]) -> bool:
    names = names_of(kernel)
    return "random" in names or "rand" in names


def _spread(plan: LoopPlan, most: int) -> NDArray[np.int64]:
    """At most ``most`` elements, spread evenly over the set."""
    n = plan.sizes[plan.loop.over]
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


class _Batch:
    """Some elements that run side by side, turn after turn."""

    def __init__(
        self,
        kernel: Callable[..., None],
        plan: LoopPlan,
        arrays: Mapping[str, NDArray[Any]],
        elements: NDArray[np.int64],
        strict: bool,
    ) -> None:
        self.kernel = kernel
        self.loop = plan.loop
        self.elements = elements
        self.strict = strict
        self.parameters = list(
            _parameters(plan=plan, arrays=arrays, elements=elements, exact=strict)
        )
        # Whether an element has run through all turns so far, without a fault.
        self.ran = np.ones(len(elements), bool)
        # The first fault of an element, by its place in ``elements``.
        self.faults: dict[int, str] = {}
        # The exception of the kernel, where that is the fault.
        self.raised: dict[int, Exception] = {}

    def check(self, seconds: float = np.inf) -> None:
        """Raise MeshprepError for the first element with a fault."""
        with np.errstate(all="ignore"):
            for turn in range(TURNS):
                self._turn(turn, seconds)
        if self.faults:
            first = min(self.faults)
            raise MeshprepError(
                f"loop '{self.loop.name}', element {self.elements[first]}: "
                f"{self.faults[first]}"
            ) from self.raised.get(first)

    def _turn(self, turn: int, seconds: float) -> None:
        """Run the kernel once on each element; the first turn takes about ``seconds``."""
        for parameter in self.parameters:
            parameter.begin(turn)
        # Of the thread: what other programs take does not shorten the look.
        end = time.thread_time() + seconds
        # Stop the first turn when its time is over: further turns run the same elements.
        for row in range(len(self.elements)):
            if not self.ran[row]:
                continue
            if turn == 0 and time.thread_time() > end and row:
                self.ran[row:] = False
                break
            self._run(row)
        for parameter in self.parameters:
            parameter.end()
        # Note the faults of the elements that ran.
        ran = self.ran.copy()
        for parameter in self.parameters:
            for wrong, why in parameter.faults(self.strict):
                for first in np.flatnonzero(wrong.any(axis=1) & ran).tolist():
                    component = int(np.argmax(wrong[first]))
                    fault = f"{parameter.what}, component {component}: {why}"
                    self._note_fault(first, fault)

    def _run(self, place: int) -> None:
        rows = [parameter.row(place) for parameter in self.parameters]
        try:
            self.kernel(*rows)
        except _Wrong as error:
            self._note_fault(place, str(error))
        except Exception as error:
            # Compiled code may not have this exception, but an index outside is always
            # wrong.
            if self.strict or _is_outside(error):
                fault = f"the kernel raised {error!r}"
                if PAST_A_TUPLE in str(error):
                    fault += ": an argument has as many rows as its index has columns"
                self._note_fault(place, fault)
                self.raised.setdefault(place, error)
            self.ran[place] = False

    def _note_fault(self, place: int, fault: str) -> None:
        self.faults.setdefault(place, fault)
        self.ran[place] = False


def _parameters(
    plan: LoopPlan,
    arrays: Mapping[str, NDArray[Any]],
    elements: NDArray[np.int64],
    exact: bool,
) -> Iterator[RowsToCheck]:
    """Copies of the rows of some elements; ``exact``: in the types of the arrays."""
    n = len(elements)
    of_type = np.asarray if exact else _with_wide_integers
    for arg in plan.loop.args:
        array = arrays[arg.name]
        argument = f"argument '{arg.name}'"
        if arg.columns is not None:
            # The matrix of an element starts from zero, whatever the matrix holds.
            matrices = np.zeros((n, arg.dim * len(arg.index)), array.dtype)
            yield RowsToCheck(arg, argument, matrices)
        elif arg.is_global:
            yield RowsToCheck(arg, argument, of_type(np.tile(array, (n, 1))))
        elif arg.map is None:
            yield RowsToCheck(arg, argument, of_type(array[elements]))
        else:
            for column in arg.index:
                points = plan.maps[arg.map].table[elements, column]
                row = f"{argument}, index {column}"
                yield RowsToCheck(arg, row, of_type(array[points]))


def _with_wide_integers(rows: NDArray[Any]) -> NDArray[Any]:
    """The rows, with integers in 64 bits.

    Compiled code computes with 64 bits; scalars of NumPy would overflow sooner.
    """
    if rows.dtype.kind in "iu" and rows.dtype.itemsize < 8:
        return rows.astype(np.int64)
    return rows


def _differ(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    """Where values differ; two NaN are the same."""
    differ: NDArray[np.bool_] = (a != b) & ~((a != a) & (b != b))
    return differ


def _limits(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """The least and the largest value of a dtype."""
    if dtype.kind == "f":
        return -np.inf, np.inf
    limits = np.iinfo(dtype)
    return limits.min, limits.max
