"""What a call of each loop takes on this machine, in the order of the input and in the plan's.

No solver is at hand: a stand-in reads the rows of all arguments that a loop reads and adds their
sum to those that it writes, on one thread, so that it costs what moving the data costs.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.plan import LoopPlan, Plan
from meshprep_runtime.plan.tuned import Timing
from meshprep_runtime.types.loops import Access, Arg
from meshprep_runtime.types.maps import read_only

from ..kernels import Float64s, Int32s, Int64s, clock, kernel
from ..metrics.cost import Measured

# Seconds for all loops together, and the least of each; never more than the last.
SECONDS, EACH, MOST = 0.3, 0.1, 1.0
# Calls in each order, in turn. The faster of two is a run, since a slow one tells of the machine;
# five runs are enough for a factor that noise does not give, see Timing.
TAKEN, CALLS = 2, 10
# Calls may take so many times what the first elements let expect.
MARGIN = 1.5
# Elements whose arguments are moved one after the other, so that sums stay in a cache.
CHUNK = 4096
# Elements that tell how long the others take, and the least seconds of a call that is timed.
FIRST, LEAST = 16_384, 1e-3
Tables = Mapping[str, NDArray[np.int32]]
Move = tuple[Callable[..., None], Sequence[Access]]
NO_TABLE = read_only(np.empty((0, 0), np.int32))


@kernel
def gather(
    table: Int32s, columns: Int64s, rows: NDArray[Any], begin: int, end: int, sums: Float64s
) -> None:
    """Add to ``sums`` all components that the elements ``begin`` to ``end - 1`` read.

    ``table`` (n, arity) leads to the rows by some ``columns``; without columns, each element has
    the row of its own number. ``rows`` is (n_rows, dim).
    """
    for e in range(begin, end):
        total = 0.0
        if columns.size == 0:
            for d in range(rows.shape[1]):
                total += rows[e, d]
        for k in columns:
            for d in range(rows.shape[1]):
                total += rows[table[e - begin, k], d]
        sums[e - begin] += total


@kernel
def scatter(
    table: Int32s, columns: Int64s, rows: NDArray[Any], begin: int, end: int, sums: Float64s
) -> None:
    """Add ``sums`` to all components that the elements write, as :func:`gather` finds them."""
    for e in range(begin, end):
        if columns.size == 0:
            for d in range(rows.shape[1]):
                rows[e, d] += sums[e - begin]
        for k in columns:
            for d in range(rows.shape[1]):
                rows[table[e - begin, k], d] += sums[e - begin]


# What is moved for arguments of which access.
MOVES: tuple[Move, ...] = (
    (gather, (Access.READ, Access.RW)),
    (scatter, (Access.INC, Access.RW, Access.WRITE)),
)


def measure(plan: Plan, seconds: float | None = None) -> dict[str, Measured]:
    """Time the loops of a plan in both orders, in turn.

    Parameters
    ----------
    plan : Plan
    seconds : float, optional
        For all loops together, without what is compiled before: 0.3, or of many loops 0.1 each, 1
        at most. Large loops are timed by pieces of consecutive elements, another one in each call.

    Returns
    -------
    dict of loop name to Measured
        Without loops that have no elements, or for which the time is too short.

    Notes
    -----
    Values that a loop adds to a matrix are left out: their places in the input's order are unknown.
    """
    if seconds is None:
        seconds = min(max(SECONDS, EACH * len(plan.loops)), MOST)
    share = seconds / max(len(plan.loops), 1)
    made = {name: _measured(plan, loop_plan, share) for name, loop_plan in plan.loops.items()}
    return {name: found for name, found in made.items() if found is not None}


def _measured(plan: Plan, loop_plan: LoopPlan, seconds: float) -> Measured | None:
    n = loop_plan.sizes[loop_plan.loop.over]
    if not n or not loop_plan.loop.maps:
        return None
    stand_in, first = _StandIn(plan, loop_plan), range(min(n, FIRST))
    # compiles, or reads what was compiled
    stand_in.run(stand_in.ready(range(1))[0], range(1))
    begun = clock()
    # a machine with other work may take twice as long
    until, latest = begun + seconds, begun + 2 * seconds
    for table in stand_in.ready(first):
        stand_in.run(table, first)
    each = (clock() - begun) / len(first)
    size = int(min(n, (until - clock()) / (MARGIN * CALLS * each)))
    if size < 1:
        return None
    # all are made ready before the first is timed, which then has left the caches
    begins = dict.fromkeys(call * size % (n - size + 1) for call in range(CALLS))
    pieces = [range(begin, begin + size) for begin in begins]
    tables = [stand_in.ready(piece) for piece in pieces]
    taken, repeat = [], max(1, int(LEAST / (size * each)))
    for call in range(CALLS):
        begun, at = clock(), call % len(pieces)
        taken.append([_seconds(stand_in, own, pieces[at], repeat) for own in tables[at]])
        if 2 * clock() - begun > latest:
            break
    if len(taken) < CALLS:
        return None
    both = np.array(taken).reshape(-1, TAKEN, 2).min(axis=1) * (n / size)
    return Measured(*(Timing.of(own) for own in both.T.tolist()))


def _seconds(stand_in: "_StandIn", tables: Tables, some: range, repeat: int) -> float:
    """Seconds of a call over some elements."""
    begun = clock()
    for _ in range(repeat):
        stand_in.run(tables, some)
    return (clock() - begun) / repeat


class _StandIn:
    """The loop's arguments, and the moves of their rows; both orders share the arrays."""

    def __init__(self, plan: Plan, loop_plan: LoopPlan) -> None:
        self._plan, self._loop = plan, loop_plan
        self._args = [a for a in loop_plan.loop.args if not a.is_global and a.columns is None]
        # zeros stay zeros, whatever is added up
        self._rows = {a.name: self._zeros(a) for a in self._args}
        self._sums = np.zeros(CHUNK)

    def _zeros(self, arg: Arg) -> NDArray[Any]:
        to_set = self._loop.loop.over if arg.map is None else self._loop.maps[arg.map].to_set
        kind = "i2" if np.dtype(arg.dtype) == np.float16 else arg.dtype
        return np.zeros((self._loop.sizes[to_set], arg.dim), kind)

    def tables(self, some: range) -> tuple[Tables, Tables]:
        """The maps of some elements, read-only, in the order of the input and in the plan's."""
        before, after = {}, {}
        for name, m in self._loop.maps.items():
            elements, points = self._plan.ordering[m.from_set], self._plan.ordering[m.to_set]
            after[name] = m.table[some.start : some.stop]
            own = m.table[elements.old_to_new[some.start : some.stop]]
            before[name] = read_only(points.new_to_old[own])
        return before, after

    def ready(self, some: range) -> tuple[Tables, Tables]:
        """:meth:`tables`, with memory behind the rows that they lead to, which never had any."""
        found = self.tables(some)
        for own in found:
            self.run(own, some, ((scatter, tuple(Access)),))
        return found

    def run(self, tables: Tables, some: range, moves: Sequence[Move] = MOVES) -> None:
        """Move what these elements read and write."""
        for begin in range(some.start, some.stop, CHUNK):
            ends = begin, min(begin + CHUNK, some.stop)
            self._sums[:] = 0.0
            for move, access in moves:
                for arg in (a for a in self._args if a.access in access):
                    own = NO_TABLE if arg.map is None else tables[arg.map][begin - some.start :]
                    columns = np.array(arg.index if arg.map else (), np.int64)
                    move(own, columns, self._rows[arg.name], *ends, self._sums)
