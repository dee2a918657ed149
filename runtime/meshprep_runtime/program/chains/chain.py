"""Chains: calls of loops are recorded, and run when somebody wants to see a result [R14 6.2]."""

from collections.abc import Hashable, Mapping
from contextlib import nullcontext
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

MOST_LOOPS = 64


class Recorder(Protocol):
    """A program, as its chains see it."""

    active: Any
    plan: Any
    checkpoints: Checkpoints | None


class Chain:
    """A context, made by ``Program.chain``, in which calls of the program's loops are queued.

    The queue runs when ``length`` loops are in it; when a dat that it uses is seen or changed from
    outside (``values``, ``touch``, ``array``), or the value of a global that it reduces; on
    ``flush``, and at the end of the context. A call with arrays that are no dats or reduced globals
    runs at once, after what is queued. Results are those of the same calls without a chain.

    Parameters
    ----------
    program : Program
    length : int
    tiles : TileOptions, optional
        Cut sequences of ``length`` loops into tiles, each sequence when it is met first. Shorter
        ones run loop by loop.
    """

    def __init__(self, program: Recorder, length: int, tiles: TileOptions | None = None) -> None:
        check_integer("length of a chain", length, 1, MOST_LOOPS)
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
            raise MeshprepError("a chain is under way already: end it before another one begins")
        self._program.active = self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._program.active = None
        # Loops that were called before an exception have run, as they would have without a chain.
        checkpoints = self._program.checkpoints
        with checkpoints.held() if checkpoints and error else nullcontext():
            self.flush()

    def record(self, loop: RecordedLoop, given: Mapping[str, Any]) -> None:
        """Queue a call, or run it with all that is queued.

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
        known = key in self._checked
        if not known:
            loop.check(given)
        call = Call(loop, with_constants(loop, given), key)
        now = self._checked[key][1] if known else at_once(call.given, loop.loop)
        if now or not known:
            self._check(call)
            # Kept, so that no other object gets the identity of one of the key.
            self._checked[key] = call, now
        self._put(call, [v for v in call.given.values() if isinstance(v, Watched)])
        self._waiting += 1
        if now or self._waiting == self.length:
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
        """Run what is queued.

        Raises
        ------
        Exception
            What a loop raised, with a note that names it; the loops after it have not run.
        """
        records, self._queue, self._waiting = self._queue, [], 0
        for value in self._used:
            value.chain = None
        self._used.clear()
        calls = [r for r in records if isinstance(r, Call)]
        if self._tiles is None or len(calls) != self.length:
            self.run(records)
            return
        tiles, checkpoints = self._tiles, self._program.checkpoints
        key = tuple(record.key for record in records)
        if checkpoints is None:
            self._run_tiles(key, records, calls, tiles)
            return
        if key not in self._steps:
            self._steps[key] = checkpoints.steps.of_chain(records, tiles.dropped, tiles.zero)
        checkpoints.run(self._steps[key], lambda: self._run_tiles(key, records, calls, tiles))

    def _run_tiles(
        self, key: Hashable, records: list[Record], calls: list[Call], tiles: TileOptions
    ) -> None:
        if key not in self.tiled:
            sizes = self._program.plan.sizes
            if tiles.auto:
                self.tiled[key] = measured_run(calls, sizes, tiles, self.run)
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
        for value in used:
            if value.chain not in (None, self):
                value.chain.flush()
            value.chain = self
        self._used += used
        self._queue.append(record)

    def _check(self, call: Call) -> None:
        """Bind new arguments now, so that an error arrives where the mistake is."""
        arrays = {n: v.stored if isinstance(v, Watched) else v for n, v in call.given.items()}
        if all(isinstance(v, np.ndarray) for v in arrays.values()):
            call.loop.taking(call.given).on_host(arrays)
        if self._tiles is not None:
            check_call(call)
