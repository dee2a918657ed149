"""What a kernel does with its rows, against the accesses of its loop [G12 section 2].

The kernel runs in Python, three times on each element, on copies of its rows. Rows whose old values
must not matter (``write``, ``inc``, ``min``, ``max``) begin with other values each time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MeshprepError
from ..plan import LoopPlan
from ..types.loops import Access, Arg
from .analysis import fresh

TURNS = 3
# What written rows hold before each turn.
POISON = (85, 42, 17)
# Increments are added up with more digits than the dat has, so that rounding tells nothing.
WIDE = {"f": np.float64, "i": np.int64, "u": np.uint64}
INTEGER_START = 1009


class TracedRow(np.ndarray[Any, np.dtype[Any]]):
    """A row that says who reaches past its end or sets what is only read."""

    what: str
    limited: bool
    # The largest value that was ever set, and how often one was; its slices share the list.
    seen: list[float]

    def __array_finalize__(self, other: Any) -> None:
        for name, value in (("what", ""), ("limited", False), ("seen", [0.0, 0.0])):
            setattr(self, name, getattr(other, name, value))

    def __getitem__(self, key: Any) -> Any:
        try:
            return super().__getitem__(key)
        except IndexError:
            raise self._outside(key) from None

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.limited:
            raise MeshprepError(
                f"{self.what}, component {key}: the kernel sets it, but its access is 'read': "
                "use write, rw or inc"
            )
        try:
            super().__setitem__(key, value)
        except IndexError:
            raise self._outside(key) from None
        self.seen[:] = self.largest, self.seen[1] + 1

    @property
    def largest(self) -> float:
        """The largest value that it was ever set to."""
        return max(self.seen[0], float(np.abs(np.asarray(self)).max()))

    def _outside(self, key: Any) -> MeshprepError:
        return MeshprepError(
            f"{self.what}: the kernel reaches component {key}, but its dim is {self.size}"
        )


@dataclass(frozen=True, eq=False)
class RowToCheck:
    """One parameter of the kernel: its argument, and the values that its row has."""

    arg: Arg
    what: str
    values: NDArray[Any]

    def row(self, turn: int, first: TracedRow | None) -> TracedRow:
        """The row at the beginning of a turn; ``first`` is what the first turn left."""
        made = self._start(turn, first).view(TracedRow)
        made.what, made.limited, made.seen = self.what, self.arg.access is Access.READ, [0.0, 0.0]
        return made

    def _start(self, turn: int, first: TracedRow | None) -> NDArray[Any]:
        access, values = self.arg.access, self.values
        if access in (Access.READ, Access.RW):
            return values.copy()
        if access is Access.WRITE:
            return np.full_like(values, POISON[turn])
        if access is Access.INC:
            zero = np.zeros(values.shape, self._wide())
            far = zero if first is None else _far(first)
            return zero + far if turn == 1 else zero - far
        if turn == 2 and first is not None:
            return np.array(first)
        low, high = _limits(values.dtype)
        return np.full_like(values, high if (access is Access.MIN) == (turn == 0) else low)

    def _wide(self) -> Any:
        kind, size = self.values.dtype.kind, self.values.dtype.itemsize
        return np.longdouble if (kind, size) == ("f", 8) else WIDE[kind]

    def fault(
        self, before: NDArray[Any], row: TracedRow, first: TracedRow
    ) -> tuple[int, str] | None:
        """The first component that is wrong after a turn, and how."""
        access, left = self.arg.access, np.asarray(row)
        if access is Access.READ:
            return _where(
                _differ(left, self.values), "the kernel changes it, but it is read: use rw"
            )
        if access is Access.INC:
            wrong = _unlike_sums(left - before, first, row)
            return _where(wrong, "what is added depends on its value: 'inc' only adds, use rw")
        if access is Access.MIN or access is Access.MAX:
            wrong = (left > before) if access is Access.MIN else (left < before)
            return _where(wrong, f"the kernel sets it whatever it was: '{access}' needs {access}()")
        wrong = _differ(left, np.asarray(first))
        unset = wrong & ~_differ(left, before)
        if access is Access.WRITE and unset.any():
            return _where(unset, "the kernel does not set it: 'write' sets every one, use rw")
        return _where(wrong, "its result depends on old values of rows that are not read: use rw")


def check_access(
    kernel: Callable[..., None], plan: LoopPlan, arrays: Mapping[str, NDArray[Any]], most: int
) -> None:
    """Compare what a kernel does with the accesses of its loop; the arrays stay as they are.

    ``arrays`` are ``(n, dim)`` for dats and ``(dim,)`` for globals; at most ``most`` elements run,
    spread over the set. Raises MeshprepError naming element, argument and component, for the first
    fault.
    """
    plain = fresh(kernel, lambda function, options: function)
    n = plan.sizes[plan.loop.over]
    with np.errstate(all="ignore"):
        for element in np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64)):
            where = f"loop '{plan.loop.name}', element {element}"
            _check_element(plain, where, list(_parameters(plan, arrays, int(element), where)))


def _parameters(
    plan: LoopPlan, arrays: Mapping[str, NDArray[Any]], element: int, where: str
) -> Iterator[RowToCheck]:
    for arg in plan.loop.args:
        array, what = arrays[arg.name], f"{where}: argument '{arg.name}'"
        if arg.columns is not None:
            # What a matrix holds does not matter: that of an element starts from zero.
            yield RowToCheck(arg, what, np.zeros(arg.dim * len(arg.index), array.dtype))
            continue
        if arg.is_global or arg.map is None:
            yield RowToCheck(arg, what, array if arg.is_global else array[element])
            continue
        for column in arg.index:
            point = plan.maps[arg.map].table[element, column]
            yield RowToCheck(arg, f"{what}, index {column}", array[point])


def _check_element(
    kernel: Callable[..., None], where: str, parameters: Sequence[RowToCheck]
) -> None:
    first: Sequence[TracedRow] = ()
    for turn in range(TURNS):
        rows = [p.row(turn, first[i] if first else None) for i, p in enumerate(parameters)]
        before = [np.array(row) for row in rows]
        try:
            kernel(*rows)
        except MeshprepError:
            raise
        except Exception as error:
            raise MeshprepError(f"{where}: the kernel raised {error!r}") from error
        first = first or rows
        for p, start, row, one in zip(parameters, before, rows, first, strict=True):
            if found := p.fault(start, row, one):
                raise MeshprepError(f"{p.what}, component {found[0]}: {found[1]}")


def _far(first: TracedRow) -> NDArray[Any]:
    """A start that no increment hides: twice the largest sum or more, a power of two."""
    if first.dtype.kind != "f":
        return np.full(first.shape, INTEGER_START, first.dtype)
    largest = first.largest or 1.0
    far = np.exp2(np.ceil(np.log2(largest)) + 1) if np.isfinite(largest) else 1.0
    return np.full(first.shape, far, first.dtype)


def _unlike_sums(change: NDArray[Any], first: TracedRow, row: TracedRow) -> NDArray[np.bool_]:
    """Where a change is not that of the first turn, which began at zero."""
    wrong = _differ(change, np.asarray(first))
    if change.dtype.kind == "f":
        # Each sum is rounded by at most half a unit of the largest value that it went through.
        largest, sums = max(first.largest, row.largest), max(first.seen[1], row.seen[1])
        rounding = (sums + 2) * float(np.finfo(change.dtype).eps) * largest
        wrong &= ~(np.abs(change - np.asarray(first)) <= rounding)
    return wrong


def _differ(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    differ: NDArray[np.bool_] = (a != b) & ~((a != a) & (b != b))
    return differ


def _where(wrong: NDArray[np.bool_], why: str) -> tuple[int, str] | None:
    return (int(np.argmax(wrong)), why) if wrong.any() else None


def _limits(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    if dtype.kind == "f":
        return -np.inf, np.inf
    limits = np.iinfo(dtype)
    return limits.min, limits.max
