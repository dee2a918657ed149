"""Seconds of a call of each loop on this machine, in the input's order and in the plan's.

Since no solver is at hand, a stand-in for its kernel reads the rows of all arguments that a
loop reads, and adds their sum to the rows that it writes, on one thread. It is compiled for
the numbers of rows and components, as the loop of an author is. So it costs what moving the
data costs.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.plan import LoopPlan, Plan
from meshprep_runtime.plan.tuned import Timing
from meshprep_runtime.types.loops import Access, Arg
from meshprep_runtime.types.maps import read_only

from ..kernels import Float64s, Int32s, clock, kernel
from ..metrics.cost import Measured

# Seconds for all loops together, as a rule.
SECONDS = 0.3
# Seconds for each loop at least, where there are many.
EACH = 0.1
# Seconds for all loops together at most.
MOST = 1.0
# Calls in each order, in turn: as many as tell two orders apart where some are disturbed,
# see Timing.
CALLS = 14
# How many times longer than expected a call may take.
MARGIN = 1.5
# Elements whose arguments are moved one after the other, so that sums stay in a cache.
CHUNK = 16_384
# Elements from whose time that of the others is expected.
FIRST = 16_384
# Seconds of a timed call at least: shorter ones are repeated.
LEAST = 1e-3
# Seconds that a clock of processor time must be able to tell apart.
FINE = 1e-5
Tables = Mapping[str, NDArray[np.int32]]
Ints = tuple[int, ...]


class Move(NamedTuple):
    """How data are moved between rows and sums."""

    through_map: Callable[..., None]
    direct: Callable[..., None]
    access: Sequence[Access]


@kernel
def gather(
    table: Int32s,
    columns: Ints,
    components: Ints,
    rows: NDArray[Any],
    begin: int,
    end: int,
    sums: Float64s,
) -> None:
    """Add to ``sums`` all components that the elements ``begin`` to ``end - 1`` read.

    ``table`` (n, arity), which begins with the row of ``begin``, leads to the rows by some
    ``columns``. ``rows`` is (n_rows, dim). Columns and components are tuples, so that the
    code is compiled for their numbers.
    """
    for e in range(begin, end):
        total = 0.0
        for k in columns:
            for d in range(len(components)):
                total += rows[table[e - begin, k], d]
        sums[e - begin] += total


@kernel
def scatter(
    table: Int32s,
    columns: Ints,
    components: Ints,
    rows: NDArray[Any],
    begin: int,
    end: int,
    sums: Float64s,
) -> None:
    """Add ``sums`` to all components that the elements write, with rows as in gather."""
    for e in range(begin, end):
        for k in columns:
            for d in range(len(components)):
                rows[table[e - begin, k], d] += sums[e - begin]


@kernel
def gather_direct(
    components: Ints,
    rows: NDArray[Any],
    begin: int,
    end: int,
    sums: Float64s,
) -> None:
    """Add to ``sums`` what :func:`gather` adds, with the row of the element's number."""
    for e in range(begin, end):
        for d in range(len(components)):
            sums[e - begin] += rows[e, d]


@kernel
def scatter_direct(
    components: Ints,
    rows: NDArray[Any],
    begin: int,
    end: int,
    sums: Float64s,
) -> None:
    """Add ``sums`` to the components of the rows of the elements' numbers."""
    for e in range(begin, end):
        for d in range(len(components)):
            rows[e, d] += sums[e - begin]


# The moves of a call: through a map, directly, and the accesses that they are for.
GATHER = Move(gather, gather_direct, (Access.READ, Access.RW))
SCATTER = Move(scatter, scatter_direct, (Access.INC, Access.RW, Access.WRITE))
MOVES = (GATHER, SCATTER)
# Writes each row once, whatever the loop does with it.
TOUCH = (SCATTER._replace(access=tuple(Access)),)


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

    # Time both orders in turn, another piece in each call; each is the first in every
    # other turn.
    seconds_before: list[float] = []
    seconds_after: list[float] = []
    repeat = max(1, int(LEAST / (size * seconds_of_element)))
    for call in range(CALLS):
        begun = clock()
        turn = call % len(pieces)
        before, after = tables_of_piece[turn]
        orders = [(before, seconds_before), (after, seconds_after)]
        if call % 2:
            orders.reverse()
        for tables, seconds_of_calls in orders:
            seconds_of_call = _seconds_of_call(stand_in, tables, pieces[turn], repeat)
            # Scale from the piece to all elements.
            seconds_of_calls.append(seconds_of_call * n / size)
        # Another call as long as this one would end too late.
        if 2 * clock() - begun > latest:
            break
    if len(seconds_before) < CALLS:
        return None
    return Measured(Timing.of(seconds_before), Timing.of(seconds_after))


def _seconds_of_call(
    stand_in: "_StandIn",
    tables: Tables,
    some: range,
    repeat: int,
) -> float:
    """Seconds of a call over some elements, the mean of ``repeat`` calls."""
    begun = _thread_seconds()
    for _ in range(repeat):
        stand_in.run(tables, some)
    return (_thread_seconds() - begun) / repeat


def _thread_seconds() -> float:
    """Seconds of processor of this thread, which other programs do not lengthen.

    Where the system counts them in steps as long as a call, seconds by the clock.
    """
    if time.get_clock_info("thread_time").resolution > FINE:
        return time.perf_counter()
    return time.thread_time()


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
            self.run(tables, some, TOUCH)
        return before, after

    def run(self, tables: Tables, some: range, moves: Sequence[Move] = MOVES) -> None:
        """Move what these elements read and write."""
        for begin in range(some.start, some.stop, CHUNK):
            end = min(begin + CHUNK, some.stop)
            self._sums[:] = 0.0
            for move in moves:
                for arg in self._args:
                    if arg.access in move.access:
                        self._move(move, arg, tables, begin, end, some.start)

    def _move(
        self, move: Move, arg: Arg, tables: Tables, begin: int, end: int, first: int
    ) -> None:
        """Move an argument of some elements; tables begin with the row of ``first``."""
        rows = self._rows[arg.name]
        components = tuple(range(arg.dim))
        if arg.map is None:
            move.direct(components, rows, begin, end, self._sums)
            return
        table = tables[arg.map][begin - first :]
        columns = tuple(arg.index)
        move.through_map(table, columns, components, rows, begin, end, self._sums)
