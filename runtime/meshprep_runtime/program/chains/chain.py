"""Chains: calls of loops are recorded, and run when a result is needed [R14 6.2]."""

from collections.abc import Hashable, Mapping
from types import TracebackType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import MeshprepError, check_integer
from ..checkpoints.checkpoints import Checkpoints
from ..checkpoints.steps import Step
from .execute import TiledRun
from .records import (
    Assign,
    Call,
    Record,
    RecordedLoop,
    ReducedGlobal,
    Watched,
    add_place,
    at_once,
    key_of,
    with_constants,
)
from .tiling import MeasuredRun, TileOptions, check_call, measured_run, tiled_run

# The most loops of a chain: a tile has one bit for each, in 64.
MOST_LOOPS = 64


class Recorder(Protocol):
    """The attributes of a program that its chains use."""

    active: Any
    plan: Any
    checkpoints: Checkpoints | None


class Chain:
    """A context in which calls of the program's loops are queued.

    Made by ``Program.chain``. The queue runs when ``length`` loops are in it; when the
    program reads or changes a dat that it uses (``values``, ``touch``, ``array``), or a
    global that it reduces; on ``flush``, and at the end of the context. A call with arrays
    that are no dats or reduced globals runs at once, after the queue. Results are those of
    the same calls without a chain.

    Parameters
    ----------
    program : Program
    length : int
    tiles : TileOptions, optional
        Cut sequences of ``length`` loops into tiles, each sequence when it first occurs.
        Shorter sequences run loop by loop.
    """

    def __init__(
        self, program: Recorder, length: int, tiles: TileOptions | None = None
    ) -> None:
        """Make an empty queue; tiles are made when a sequence of loops first occurs.

        Parameters are those of the class.

        Raises
        ------
        MeshprepError
            For a length that is no whole number, or too long for a chain.
        """
        check_integer(what="length of a chain", value=length, least=1, most=MOST_LOOPS)
        self.length = length
        self.tiled: dict[Hashable, TiledRun | MeasuredRun] = {}
        self._tiles = tiles
        self._program = program
        self._queue: list[Record] = []
        self._used: list[Any] = []
        self._waiting = 0
        self._checked: dict[Hashable, tuple[Call, bool]] = {}
        self._steps: dict[Hashable, Step] = {}

    def __enter__(self) -> "Chain":
        if self._program.active is not None:
            raise MeshprepError(
                "a chain is under way already: end it before another one begins"
            )
        self._program.active = self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._program.active = None
        # Run the queue also after an exception: without a chain, its loops would have run
        # before it.
        checkpoints = self._program.checkpoints
        if checkpoints and error:
            with checkpoints.held():
                self.flush()
        else:
            self.flush()

    def record(self, loop: RecordedLoop, given: Mapping[str, Any]) -> None:
        """Queue a call, or run it after the queue.

        Parameters
        ----------
        loop : ProgramLoop
        given : mapping of argument name to value

        Raises
        ------
        MeshprepError
            When an argument does not fit; nothing is queued then.
        """
        key = key_of(loop, given)
        is_checked = key in self._checked
        if not is_checked:
            loop.check(given)
        call = Call(loop, with_constants(loop, given), key)
        if is_checked:
            runs_at_once = self._checked[key][1]
        else:
            runs_at_once = at_once(call.given, loop.loop)
        if runs_at_once or not is_checked:
            self._check(call)
            # Keep the call: its objects are identified in the key by their addresses, which
            # would be given to others.
            self._checked[key] = call, runs_at_once
        self._put(call, [v for v in call.given.values() if isinstance(v, Watched)])
        self._waiting += 1
        if runs_at_once or self._waiting == self.length:
            self.flush()

    def assign(self, target: ReducedGlobal, values: NDArray[Any]) -> None:
        """Queue new values of a global.

        Parameters
        ----------
        target : ReducedGlobal
        values : (dim,) array
        """
        self._put(Assign(target, values), [target])

    def flush(self) -> None:
        """Run the queue.

        Raises
        ------
        Exception
            The exception of a loop, with a note that names the loop; the loops after it
            have not run.
        """
        # Empty the queue first: loops that run here must not run again.
        records = self._queue
        self._queue = []
        self._waiting = 0
        for value in self._used:
            value.chain = None
        self._used.clear()
        # Only whole sequences of `length` loops are cut into tiles.
        calls = [r for r in records if isinstance(r, Call)]
        if self._tiles is None or len(calls) != self.length:
            self.run(records)
            return
        tiles = self._tiles
        # A chain is one step of a checkpoint: between its loops no dat is whole.
        checkpoints = self._program.checkpoints
        key = tuple(record.key for record in records)
        if checkpoints is None:
            self._run_tiles(key=key, records=records, calls=calls, tiles=tiles)
            return
        if key not in self._steps:
            self._steps[key] = checkpoints.steps.of_chain(
                records, tiles.dropped, tiles.zero
            )
        checkpoints.run(
            self._steps[key],
            lambda: self._run_tiles(key=key, records=records, calls=calls, tiles=tiles),
        )

    def _run_tiles(
        self, key: Hashable, records: list[Record], calls: list[Call], tiles: TileOptions
    ) -> None:
        if key not in self.tiled:
            sizes = self._program.plan.sizes
            if tiles.auto:
                self.tiled[key] = measured_run(
                    calls=calls, sizes=sizes, options=tiles, alone=self.run
                )
            else:
                self.tiled[key] = tiled_run(calls, sizes, tiles)
        self.tiled[key](records)

    def run(self, records: list[Record]) -> None:
        """Run records one after the other.

        Parameters
        ----------
        records : list of Call and Assign
        """
        for n, record in enumerate(records):
            try:
                record.run()
            except Exception as error:
                add_place(error, records, n)
                raise

    def _put(self, record: Record, used: list[Any]) -> None:
        """Queue a record; its dats and globals, ``used``, then belong to this chain."""
        for value in used:
            if value.chain not in (None, self):
                value.chain.flush()
            value.chain = self
        self._used += used
        self._queue.append(record)

    def _check(self, call: Call) -> None:
        """Check new arguments now, so that an error is raised at the call that is wrong."""
        arrays = {
            n: v.stored if isinstance(v, Watched) else v for n, v in call.given.items()
        }
        if all(isinstance(v, np.ndarray) for v in arrays.values()):
            call.loop.taking(call.given).on_host(arrays)
        if self._tiles is not None:
            check_call(call)
