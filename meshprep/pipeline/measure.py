"""Seconds of a call of each loop on this machine, in the input's order and in the plan's.

Since no solver is at hand, a stand-in for its kernel reads the rows of all arguments that a
loop reads, and adds their sum to the rows that it writes, on one thread. So it costs what
moving the data costs.
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

# Seconds for all loops together, as a rule.
SECONDS = 0.3
# Seconds for each loop at least, where there are many.
EACH = 0.1
# Seconds for all loops together at most.
MOST = 1.0
# Calls in each order, in turn.
CALLS = 10
# Calls of which the fastest is a run: a slow call tells of the machine, not of the order.
# The five runs are enough for a factor that noise does not give, see Timing.
TAKEN = 2
# How many times longer than expected a call may take.
MARGIN = 1.5
# Elements whose arguments are moved one after the other, so that sums stay in a cache.
CHUNK = 4096
# Elements from whose time that of the others is expected.
FIRST = 16_384
# Seconds of a timed call at least: shorter ones are repeated.
LEAST = 1e-3
Tables = Mapping[str, NDArray[np.int32]]
Move = tuple[Callable[..., None], Sequence[Access]]
NO_TABLE = read_only(np.empty((0, 0), np.int32))


@kernel
def gather(
    table: Int32s,
    columns: Int64s,
    rows: NDArray[Any],
    begin: int,
    end: int,
    sums: Float64s,
) -> None:
    """Add to ``sums`` all components that the elements ``begin`` to ``end - 1`` read.

    ``table`` (n, arity) leads to the rows by some ``columns``; without columns, each
    element has the row of its own number. ``rows`` is (n_rows, dim).
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
    table: Int32s,
    columns: Int64s,
    rows: NDArray[Any],
    begin: int,
    end: int,
    sums: Float64s,
) -> None:
    """Add ``sums`` to all components that the elements write, with rows as in gather."""
    for e in range(begin, end):
        if columns.size == 0:
            for d in range(rows.shape[1]):
                rows[e, d] += sums[e - begin]
        for k in columns:
            for d in range(rows.shape[1]):
                rows[table[e - begin, k], d] += sums[e - begin]


# The moves of a call, each with the accesses of the arguments that it is for.
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
        For all loops together, without what is compiled before: 0.3, or of many loops 0.1
        each, 1 at most. Large loops are timed by pieces of consecutive elements, another
        one in each call.

    Returns
    -------
    dict of loop name to Measured
        Without loops that have no elements, or for which the time is too short.

    Notes
    -----
    Values that a loop adds to a matrix are left out: their places in the input's
    order are unknown.
    """
    if seconds is None:
        seconds = min(max(SECONDS, EACH * len(plan.loops)), MOST)
    share = seconds / max(len(plan.loops), 1)
    measured = {}
    for name, loop_plan in plan.loops.items():
        timings = _measure_loop(plan, loop_plan, share)
        if timings is not None:
            measured[name] = timings
    return measured


def _measure_loop(plan: Plan, loop_plan: LoopPlan, seconds: float) -> Measured | None:
    """The times of a loop in both orders; None without elements, or without time."""
    n = loop_plan.sizes[loop_plan.loop.over]
    if not n or not loop_plan.loop.maps:
        return None
    stand_in = _StandIn(plan, loop_plan)
    # Compile the moves, or read what was compiled.
    stand_in.run(stand_in.ready(range(1))[0], range(1))

    # Expect the seconds of an element from the first ones; a machine with other work may
    # take twice as long.
    begun = clock()
    until = begun + seconds
    latest = begun + 2 * seconds
    first = range(min(n, FIRST))
    for tables in stand_in.ready(first):
        stand_in.run(tables, first)
    seconds_of_element = (clock() - begun) / len(first)

    # Elements of a call, so that all calls fit into the time that is left.
    seconds_left = until - clock()
    size = int(min(n, seconds_left / (MARGIN * CALLS * seconds_of_element)))
    if size < 1:
        return None

    # Make all pieces ready before the first is timed, which has left the caches by then.
    begins = dict.fromkeys(call * size % (n - size + 1) for call in range(CALLS))
    pieces = [range(begin, begin + size) for begin in begins]
    tables_of_piece = [stand_in.ready(piece) for piece in pieces]

    # Time both orders in turn, another piece in each call.
    seconds_of_calls = []
    repeat = max(1, int(LEAST / (size * seconds_of_element)))
    for call in range(CALLS):
        begun = clock()
        turn = call % len(pieces)
        before, after = tables_of_piece[turn]
        seconds_before = _seconds_of_call(stand_in, before, pieces[turn], repeat)
        seconds_after = _seconds_of_call(stand_in, after, pieces[turn], repeat)
        seconds_of_calls.append((seconds_before, seconds_after))
        # Another call as long as this one would end too late.
        if 2 * clock() - begun > latest:
            break
    if len(seconds_of_calls) < CALLS:
        return None

    # The fastest of each few calls is a run; scale from the piece to all elements.
    runs = np.array(seconds_of_calls).reshape(-1, TAKEN, 2).min(axis=1)
    seconds_of_loop = runs * (n / size)
    in_input_order, in_plan_order = seconds_of_loop.T.tolist()
    return Measured(Timing.of(in_input_order), Timing.of(in_plan_order))


def _seconds_of_call(
    stand_in: "_StandIn",
    tables: Tables,
    some: range,
    repeat: int,
) -> float:
    """Seconds of a call over some elements, the mean of ``repeat`` calls."""
    begun = clock()
    for _ in range(repeat):
        stand_in.run(tables, some)
    return (clock() - begun) / repeat


class _StandIn:
    """The loop's arguments, and the moves of their rows; both orders share the arrays."""

    def __init__(self, plan: Plan, loop_plan: LoopPlan) -> None:
        self._plan = plan
        self._loop = loop_plan
        self._args = [
            a for a in loop_plan.loop.args if not a.is_global and a.columns is None
        ]
        # zeros stay zeros, whatever is added up
        self._rows = {a.name: self._zeros(a) for a in self._args}
        self._sums = np.zeros(CHUNK)

    def _zeros(self, arg: Arg) -> NDArray[Any]:
        """The array of an argument's dat, a row for each element of its set."""
        if arg.map is None:
            to_set = self._loop.loop.over
        else:
            to_set = self._loop.maps[arg.map].to_set
        # numba has no halves: integers of the same size move as many bytes
        if np.dtype(arg.dtype) == np.float16:
            kind = "i2"
        else:
            kind = arg.dtype
        return np.zeros((self._loop.sizes[to_set], arg.dim), kind)

    def tables(self, some: range) -> tuple[Tables, Tables]:
        """The maps of some elements in the order of the input, and in the plan's."""
        before = {}
        after = {}
        for name, m in self._loop.maps.items():
            elements = self._plan.ordering[m.from_set]
            points = self._plan.ordering[m.to_set]
            after[name] = m.table[some.start : some.stop]
            rows = m.table[elements.old_to_new[some.start : some.stop]]
            before[name] = read_only(points.new_to_old[rows])
        return before, after

    def ready(self, some: range) -> tuple[Tables, Tables]:
        """The :meth:`tables` of some elements, whose rows have been written once.

        Before that there is no memory behind them, which would cost time in the first call.
        """
        before, after = self.tables(some)
        for tables in (before, after):
            self.run(tables, some, ((scatter, tuple(Access)),))
        return before, after

    def run(self, tables: Tables, some: range, moves: Sequence[Move] = MOVES) -> None:
        """Move what these elements read and write."""
        for begin in range(some.start, some.stop, CHUNK):
            end = min(begin + CHUNK, some.stop)
            self._sums[:] = 0.0
            for move, access in moves:
                for arg in self._args:
                    if arg.access not in access:
                        continue
                    # Directly, or through the rows of a map that begin with the chunk.
                    table = NO_TABLE
                    columns = np.empty(0, np.int64)
                    if arg.map is not None:
                        table = tables[arg.map][begin - some.start :]
                        columns = np.array(arg.index, np.int64)
                    rows = self._rows[arg.name]
                    move(table, columns, rows, begin, end, self._sums)
