"""The program of a solver: its dats and loops, and their calls [G12 section 2]."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..cpu.pool import BoundCode
from ..errors import MeshprepError, check_choice
from ..kernel.analysis import DeviceFunction
from ..kernel.bind import AOS, Layout, check_names
from ..kernel.full_writes import with_full_writes
from ..loop import ParLoop
from ..plan.matrices import nonzeros_of
from ..plan.model import LoopPlan, PlanContent
from ..types.maps import on_device
from .chains.chain import Chain
from .chains.records import ReducedGlobal, start_values
from .chains.tiling import TileOptions
from .checkpoints.checkpoints import CheckpointPlace, Checkpoints, DryRun
from .dat import ProgramDat, make_dat
from .distributed import DistributedPlan
from .layouts import LoopLayouts, WholeLoop, check_sets
from .mpi import ALONE
from .part_loop import PartLoop
from .replay import Replay
from .timings import LoopTimes, Timings

# Runs a loop of a program, on one rank or as one of several.
Runner = WholeLoop | PartLoop
# Arguments of a loop that have their array in `stored`.
STORED = (ProgramDat, ReducedGlobal)
Notes = TypeVar("Notes", DryRun, Replay)


class Program:
    """A plan with the dats and loops of a solver.

    Parameters
    ----------
    plan : Plan or DistributedPlan
        On ranks, dats are made and loops called on all of them, in the same order.
    checkpoint : str or Path, optional
        Save the state in this file now and then; go on from it where it exists. On the
        host; each of several ranks has a file of its own, ``PATH.rank0`` and so on. Until
        the program has come to the checkpoint again, loops compute nothing and only hand
        out the globals that they gave before; so the calls of the program may depend on
        globals, not on dats.
    every : float
        Seconds from one checkpoint to the next, by the clock of rank 0.

    Raises
    ------
    MeshprepError
        On all ranks, for a checkpoint of another mesh or number of ranks, and a damaged
        one.
    """

    def __init__(
        self,
        plan: PlanContent | DistributedPlan,
        *,
        checkpoint: str | Path | None = None,
        every: float = 600.0,
    ) -> None:
        """Take the plan, and open the checkpoint if one is asked for.

        Parameters and errors are those of the class.

        Notes
        -----
        O(bytes of the checkpoint), where there is one; else nothing is read or made.
        """
        if not hasattr(plan, "sizes"):
            raise MeshprepError(f"plan is a {type(plan).__name__}: pass Plan.load(FILE)")
        self.plan = plan
        self.checkpoints: Checkpoints | None = None
        if checkpoint is not None:
            self.checkpoints = Checkpoints(
                path=Path(checkpoint),
                every=every,
                plan=plan,
                comm=plan.ranks if isinstance(plan, DistributedPlan) else ALONE,
            )
        self.active: Chain | DryRun | Replay | None = None
        self.runners: dict[str, Runner] = {}

    def __repr__(self) -> str:
        return f"Program(loops {', '.join(self.runners) or 'none'} of {self.plan!r})"

    def _repr_html_(self) -> str:
        from ..types.shown import html_table

        rows = []
        for name, runner in self.runners.items():
            times = runner.times
            seconds = times.core + times.boundary + times.exec
            rows.append((name, times.calls, f"{seconds:.3g}"))
        return html_table("Program", ("loop", "calls", "seconds of computing"), rows)

    def dat(
        self,
        set_name: str,
        dim: int = 1,
        dtype: str = "f8",
        *,
        values: Any = None,
        layout: str = AOS,
    ) -> ProgramDat:
        """Values of the elements of a set.

        Parameters
        ----------
        set_name : str
        dim : int
            Components an element.
        dtype : str
        values : (n, dim), (dim, n) or (n,) array, optional
            In the plan's numbering, of NumPy or of a GPU; kept, not copied. None: zeros, of
            shape ``(n,)`` where dim is 1. On ranks see :meth:`DistributedPlan.dat`.
        layout : str
            ``"aos"``, or ``"soa"`` for ``(dim, n)``.

        Returns
        -------
        ProgramDat

        Raises
        ------
        MeshprepError
            For an unknown set, layout or dtype, and for values of another shape or dtype;
            with checkpoints or on ranks for values that are those of another dat.
        """
        if isinstance(self.plan, DistributedPlan):
            dat = self.plan.dat(set_name, dim, dtype, values=values, layout=layout)
        else:
            n = self.plan.sizes[set_name]
            dat = make_dat(
                set_name=set_name,
                size=(n, n),
                dim=dim,
                dtype=dtype,
                values=values,
                layout=layout,
            )
        if self.checkpoints is not None:
            self.checkpoints.keep(dat)
        return dat

    def matrix(self, name: str, *, values: Any = None) -> ProgramDat:
        """Values of a matrix that loops of the plan add to.

        Its pattern is in ``plan.matrices``.

        Parameters
        ----------
        name : str
        values : (nonzeros,) array, optional
            Of NumPy or of a GPU; kept, not copied. None: zeros.

        Returns
        -------
        ProgramDat
            ``plan.matrices[name].csr(values=it.values())`` is the matrix.

        Raises
        ------
        MeshprepError
            For an unknown matrix, values of another shape or dtype, and on ranks.
        """
        if isinstance(self.plan, DistributedPlan):
            raise MeshprepError(
                "a program on ranks has no matrices: run the loop on one rank"
            )
        check_choice("matrix", name, self.plan.matrices)
        n_nonzeros = self.plan.matrices[name].columns.size
        dtype = _dtype_of_matrix(self.plan, name)
        if values is None:
            values = np.zeros(n_nonzeros, dtype)
        # Its nonzeros are a dat, so that loops, checkpoints and chains need nothing new.
        dat = make_dat(
            set_name=nonzeros_of(name),
            size=(n_nonzeros, n_nonzeros),
            dim=1,
            dtype=dtype,
            values=values,
        )
        if self.checkpoints is not None:
            self.checkpoints.keep(dat)
        return dat

    def checkpoint_here(self) -> None:
        """Begin a checkpoint before the next loop.

        A good place is one after which few dats are read before they are written.

        Raises
        ------
        MeshprepError
            For a program without a file for checkpoints, and after a loop that raised an
            exception: nothing is saved any more.
        """
        if self.checkpoints is None:
            raise MeshprepError(
                "the program has no file for checkpoints: Program(checkpoint=...)"
            )
        if self.active is not None:
            self.active.flush()
        self.checkpoints.here()

    def checkpoint_places(self, period: Callable[[], object]) -> list[CheckpointPlace]:
        """Where a checkpoint may begin, and what it would save there.

        The best place is that where it saves the fewest bytes.

        Parameters
        ----------
        period : function without arguments
            Calls loops as a time step does. The calls are recorded; no loop runs.

        Returns
        -------
        list of CheckpointPlace
            A row ``(call, loop, dats, bytes)`` for each call: what a checkpoint before it
            saves of the dats that the period changes, if the period runs again and again.

        Raises
        ------
        MeshprepError
            For a chain that is under way or begins, and arguments that cannot be saved.
        """
        return self._record_calls(DryRun(), period).places()

    def loop(
        self, kernel: Callable[..., None] | DeviceFunction, name: str, **options: Any
    ) -> "ProgramLoop":
        """A loop of the plan with its kernel.

        Parameters
        ----------
        kernel : function or DeviceFunction
        name : str
            Of the loop in the plan.
        **options
            As of :class:`ParLoop`. Without ``layout`` the loop takes dats as they are
            stored, and arrays as ``"aos"``.

        Returns
        -------
        ProgramLoop
        """
        plan = self.plan[name]
        if plan.loop.name in self.runners:
            raise MeshprepError(
                f"the program has loop '{plan.loop.name}' already: use that one"
            )
        if plan.loop.matrices and isinstance(self.plan, DistributedPlan):
            raise MeshprepError(
                f"loop '{plan.loop.name}' adds to a matrix, which no program on ranks has: "
                "run it by meshprep_runtime.matrix.PartAssembly"
            )
        # Make the ParLoop when the layouts of its dats are known.
        required_layout = options.pop("layout", None)

        def make_par_loop(loop_plan: LoopPlan, layout: Layout) -> ParLoop:
            return ParLoop(kernel, loop_plan, layout=layout, **options)

        layouts = LoopLayouts(make=make_par_loop, plan=plan, required=required_layout)
        # On ranks the loop runs class after class, with messages between.
        runner: Runner
        if isinstance(self.plan, DistributedPlan):
            part = self.plan.part
            runner = PartLoop(
                layouts=layouts,
                part=part.loops[plan.loop.name],
                whole=part,
                exchange=self.plan.messages,
            )
        else:
            runner = WholeLoop(layouts)
        self.runners[plan.loop.name] = runner
        return ProgramLoop(self, plan, runner)

    def reduced(
        self, values: ArrayLike = 0.0, dim: int = 1, dtype: str = "f8"
    ) -> ReducedGlobal:
        """A global for loops to reduce.

        A chain may go on without its value until the program asks for it.

        Parameters
        ----------
        values : number or (dim,) array
            The value to start from.
        dim : int
        dtype : str

        Returns
        -------
        ReducedGlobal

        Raises
        ------
        MeshprepError
            Where the dtype cannot hold the values.
        """
        return ReducedGlobal(start_values(values, dim, dtype))

    def chain(
        self,
        length: int = 64,
        *,
        tile_size: int | Literal["auto"] | None = None,
        dropped: Iterable[ProgramDat] = (),
        zero: Iterable[ProgramDat] = (),
    ) -> Chain:
        """A context in which calls of loops are queued and run later.

        Parameters
        ----------
        length : int
            The queue runs when this number of loops is in it, at most 64.
        tile_size : int or "auto", optional
            Run each sequence of ``length`` loops tile by tile, on the host: all loops on
            ``tile_size`` elements of the last loop's set, while their data are in cache.
            Arguments must be dats and reduced globals of the program. A dat that tiles
            write gets another array at each run: ask for ``values()`` again. The tiles of
            a sequence are cut when it first occurs. ``"auto"`` times some runs of each
            sequence, loop by loop and in tiles, and takes the fastest. Not on ranks, where
            chains run loop by loop.
        dropped : dats
            Dats that tiles write and that are not needed after the chain: they are not
            stored. The chain must write all of each (``full = true``) before it reads it.
        zero : dats
            Dats that are zero before and after the chain: they are neither read nor stored.
            Tiles check that they are zero.

        Returns
        -------
        Chain

        Raises
        ------
        MeshprepError
            For a bad length or tile size, and tiles on ranks.
        """
        if tile_size is None:
            return Chain(self, length)
        if isinstance(self.plan, DistributedPlan):
            raise MeshprepError(
                "a program on ranks has no tiles: leave tile_size out to run loop by loop"
            )
        # Tiles have a size, or are tried in several sizes.
        auto = False
        size: int | None = None
        if not isinstance(tile_size, str):
            size = tile_size
        elif tile_size == "auto":
            auto = True
        else:
            raise MeshprepError(f"tile_size is '{tile_size}', must be a number or 'auto'")
        tiles = TileOptions(size=size, dropped=tuple(dropped), zero=tuple(zero), auto=auto)
        return Chain(self, length, tiles)

    def replay(self, period: Callable[[], object]) -> Replay:
        """An object that repeats the loops of a function at each call, in compiled code.

        Parameters
        ----------
        period : function without arguments
            Calls loops as a time step does. The calls are recorded; no loop runs.

        Returns
        -------
        Replay
            Each call of it runs the loops, on the values that dats and arrays have then.
            Numbers keep the value that they had: pass an array of one value instead of a
            number that changes. Only the loops are repeated, nothing else in the function.

        Raises
        ------
        MeshprepError
            For arguments that do not fit, a function that calls no loop, and in a chain.
        """
        return self._record_calls(Replay(self), period)

    def _record_calls(self, recorder: Notes, period: Callable[[], object]) -> Notes:
        """Record the calls of loops that a function makes, in place of running them."""
        if self.active is not None:
            raise MeshprepError(
                "a chain is under way: give a function of loops outside of it"
            )
        self.active = recorder
        try:
            period()
        finally:
            self.active = None
        if not recorder.calls:
            raise MeshprepError(
                "no loop of this program was called: give a function that calls it"
            )
        return recorder

    def timings(self) -> Timings:
        """The seconds, messages and bytes of every loop, on every rank.

        They count since the program was made, or since ``reset``.

        Returns
        -------
        Timings
            ``print`` shows a table; ``to_json()`` has all of it. Waits for loops that a GPU
            still runs. On ranks all must call it.
        """
        if self.active is not None:
            self.active.flush()
        for runner in self.runners.values():
            runner.settle()
        times_here = {name: runner.times for name, runner in self.runners.items()}
        times_of_ranks = [times_here]
        if isinstance(self.plan, DistributedPlan):
            times_of_ranks = self.plan.ranks.allgather(times_here, "timings")
        times_of_loops = {}
        for name in times_here:
            times_of_loops[name] = tuple(times[name] for times in times_of_ranks)
        return Timings(times_of_loops)

    def reset(self) -> None:
        """Set the times of all loops to zero, as after a first call that compiles."""
        for runner in self.runners.values():
            runner.settle()
            times = runner.times
            runner.times = LoopTimes(
                useful_bytes=times.useful_bytes, elements=times.elements
            )


def _dtype_of_matrix(plan: PlanContent, name: str) -> str:
    """The dtype of a matrix of the plan, as the first loop that adds to it has it."""
    for loop_plan in plan.loops.values():
        for arg in loop_plan.loop.matrices:
            if arg.name == name:
                return arg.dtype
    raise MeshprepError(f"no loop of the plan adds to matrix '{name}'")


class _RepeatedCall:
    """A call on the host, ready to run again with the same dats, in half of the time.

    ``_arrays`` are those of the dats; ``_others`` are the names and types of the arguments
    that are no dats, and are given anew at each call.
    """

    __slots__ = ("_arrays", "_dats", "_loop", "_others", "_runner", "_written")

    def __init__(
        self, runner: WholeLoop, given: Mapping[str, Any], written: Iterable[str]
    ) -> None:
        self._runner = runner
        self._loop = runner.layouts.par_loop
        self._dats = [(n, v, v.stored) for n, v in given.items() if isinstance(v, STORED)]
        self._arrays = {name: stored for name, _, stored in self._dats}
        self._others = [(n, type(v)) for n, v in given.items() if not isinstance(v, STORED)]
        self._written = [v for n in written if isinstance(v := given[n], ProgramDat)]

    def fits(self, given: Mapping[str, Any]) -> bool:
        """True where each name is the same dat, with the same array and no queue."""
        if len(given) != len(self._dats) + len(self._others):
            return False
        for name, dat, stored in self._dats:
            if given.get(name) is not dat or dat.stored is not stored:
                return False
            if dat.chain is not None or dat.dropped:
                return False
        others = self._others
        return not others or all(type(given.get(name)) is kind for name, kind in others)

    def run(self, given: dict[str, Any]) -> None:
        """Run the call, with the arguments given now that are no dats; add up its time."""
        try:
            arrays = self._arrays
            if self._others:
                arrays = given | self._arrays
            self._runner.on_host(self._loop, arrays)
        finally:
            for dat in self._written:
                dat.touch()


class ProgramLoop:
    """A loop of a program, called with dats, arrays and globals by name."""

    def __init__(self, program: Program, plan: LoopPlan, runner: Runner) -> None:
        self._program = program
        self.loop = with_full_writes(plan.loop, runner.layouts.par_loop.kernel)
        self.runner = runner
        self._full = [arg.name for arg in self.loop.args if arg.full]
        self._written = [*self.loop.written]
        # The last two calls, the newest first: a ParLoop keeps the arrays of two calls.
        self._last: tuple[_RepeatedCall, ...] = ()

    @property
    def par_loop(self) -> ParLoop:
        """The ParLoop that ran last."""
        return self.runner.layouts.par_loop

    @property
    def times(self) -> LoopTimes:
        """The times of its calls on this rank so far; waits for a GPU."""
        self.runner.settle()
        return self.runner.times

    def __call__(self, /, **given: Any) -> None:
        """Run the loop; inside a chain, queue it.

        Parameters
        ----------
        **given : ProgramDat, ReducedGlobal, or arguments of a ParLoop
            Only dats know whether copies on other ranks are stale.

        Raises
        ------
        MeshprepError
            When an argument does not fit; the message names it.
        """
        if self._program.active is not None:
            self._program.active.record(self, given)
            return
        # A call with the same arrays as one of the last two is not checked again.
        for last in self._last:
            if last.fits(given):
                last.run(given)
                return
        self.check(given)
        self.run(given)
        # With checkpoints or ranks each call is counted, so none is cut short.
        if self._program.checkpoints is not None or not isinstance(self.runner, WholeLoop):
            return
        if not any(on_device(getattr(v, "stored", v)) for v in given.values()):
            newest = _RepeatedCall(self.runner, given, self._written)
            self._last = (newest, *self._last[:1])

    def alone(self, given: Mapping[str, Any]) -> list[BoundCode]:
        """The compiled steps of a call that always runs on one thread of the host.

        Empty for a call that may run otherwise.
        """
        if self._program.checkpoints is not None or not isinstance(self.runner, WholeLoop):
            return []
        return self.taking(given).alone(
            {n: getattr(v, "stored", v) for n, v in given.items()}
        )

    def check(self, given: Mapping[str, Any]) -> None:
        """Raise MeshprepError when names are not the loop's, or a dat is on another set."""
        check_names(self.loop, self.par_loop.slots, given)
        check_sets(self.par_loop, given)

    def taking(self, given: Mapping[str, Any]) -> ParLoop:
        """The ParLoop for dats in the layouts that these are stored in."""
        return self.runner.layouts.taking(given)

    def run(self, given: Mapping[str, Any]) -> None:
        """Run the loop now, with arguments that were checked."""
        checkpoints = self._program.checkpoints
        if checkpoints is None:
            self._run(given)
            return
        step = checkpoints.steps.of_loop(self.loop, self.par_loop.kernel, given)
        checkpoints.run(step, lambda: self._run(given))

    def _run(self, given: Mapping[str, Any]) -> None:
        arrays = {
            n: v.array if isinstance(v, ReducedGlobal) else v for n, v in given.items()
        }
        # A loop that writes all of a dat gives it values again.
        for name in self._full:
            if isinstance(given[name], ProgramDat):
                given[name].dropped = False
        try:
            self.runner(arrays)
        finally:
            # Also after an error or an interrupt: some elements may have changed.
            for name in self._written:
                if isinstance(given[name], ProgramDat):
                    given[name].touch()
