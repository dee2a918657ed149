"""A solver's program: its dats and loops, and what each call does and takes [G12 section 2]."""

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

# What runs a loop of a program, on one rank or as one of several.
Runner = WholeLoop | PartLoop
STORED = ProgramDat, ReducedGlobal
Notes = TypeVar("Notes", DryRun, Replay)


class Program:
    """A plan with the dats and loops of a solver; every call of its loops passes through it.

    Parameters
    ----------
    plan : Plan or DistributedPlan
        On ranks, dats are made and loops called on all of them, in the same order.
    checkpoint : str or Path, optional
        Save the state in this file now and then; go on from it where it exists. On the host; each
        of several ranks has a file of its own, ``PATH.rank0`` and so on. Until the program is where
        it was, loops do nothing but hand out the globals that they gave, so what the program does
        may depend on globals, not on dats.
    every : float
        Seconds from one checkpoint to the next, by the clock of rank 0.

    Raises
    ------
    MeshprepError
        On all ranks, for a checkpoint of another mesh or number of ranks, and a damaged one.
    """

    def __init__(
        self,
        plan: PlanContent | DistributedPlan,
        *,
        checkpoint: str | Path | None = None,
        every: float = 600.0,
    ) -> None:
        if not hasattr(plan, "sizes"):
            raise MeshprepError(f"plan is a {type(plan).__name__}: pass Plan.load(FILE)")
        self.plan = plan
        self.checkpoints: Checkpoints | None = None
        if checkpoint is not None:
            comm = plan.comm if isinstance(plan, DistributedPlan) else ALONE
            self.checkpoints = Checkpoints(Path(checkpoint), every, plan, comm)
        self.active: Chain | DryRun | Replay | None = None
        self.runners: dict[str, Runner] = {}

    def __repr__(self) -> str:
        return f"Program(loops {', '.join(self.runners) or 'none'} of {self.plan!r})"

    def _repr_html_(self) -> str:
        from ..types.shown import html_table

        times = {name: runner.times for name, runner in self.runners.items()}
        rows = ((n, t.calls, f"{t.core + t.boundary + t.exec:.3g}") for n, t in times.items())
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
            In the plan's numbering, of NumPy or of a GPU; kept, not copied. None: zeros, of shape
            ``(n,)`` where dim is 1. On ranks see :meth:`DistributedPlan.dat`.
        layout : str
            ``"aos"``, or ``"soa"`` for ``(dim, n)``.

        Returns
        -------
        ProgramDat

        Raises
        ------
        MeshprepError
            For an unknown set, layout or dtype, and for values of another shape or dtype; with
            checkpoints or on ranks for values that are those of another dat.
        """
        if isinstance(self.plan, DistributedPlan):
            made = self.plan.dat(set_name, dim, dtype, values=values, layout=layout)
        else:
            n = self.plan.sizes[set_name]
            made = make_dat(set_name, (n, n), dim, dtype, values, layout)
        if self.checkpoints is not None:
            self.checkpoints.keep(made)
        return made

    def matrix(self, name: str, *, values: Any = None) -> ProgramDat:
        """Values of a matrix that loops of the plan add to; ``plan.matrices`` has its pattern.

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
            raise MeshprepError("a program on ranks has no matrices: run the loop on one rank")
        check_choice("matrix", name, self.plan.matrices)
        n = self.plan.matrices[name].columns.size
        loops = (plan.loop for plan in self.plan.loops.values())
        dtype = next(a.dtype for loop in loops for a in loop.matrices if a.name == name)
        values = np.zeros(n, dtype) if values is None else values
        made = make_dat(nonzeros_of(name), (n, n), 1, dtype, values)
        if self.checkpoints is not None:
            self.checkpoints.keep(made)
        return made

    def checkpoint_here(self) -> None:
        """Begin a checkpoint before the next loop: where few dats are read before written.

        Raises
        ------
        MeshprepError
            For a program without a file for checkpoints, and after a loop that raised an
            exception: nothing is saved any more.
        """
        if self.checkpoints is None:
            raise MeshprepError("the program has no file for checkpoints: Program(checkpoint=...)")
        if self.active is not None:
            self.active.flush()
        self.checkpoints.here()

    def checkpoint_places(self, period: Callable[[], object]) -> list[CheckpointPlace]:
        """Where a checkpoint may begin, and what it saves there: the smallest has the best place.

        Parameters
        ----------
        period : function without arguments
            Calls loops as a time step does. They are noted, and none of them runs.

        Returns
        -------
        list of CheckpointPlace
            A row ``(call, loop, dats, bytes)`` for each call: what a checkpoint before it saves of
            the dats that the period changes, if the period runs again and again.

        Raises
        ------
        MeshprepError
            For a chain that is under way or begins, and arguments that cannot be saved.
        """
        return self._noted(DryRun(), period).places()

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
            As of :class:`ParLoop`. Without ``layout`` the loop takes dats as they are stored, and
            arrays as ``"aos"``.

        Returns
        -------
        ProgramLoop
        """
        plan = self.plan[name]
        if plan.loop.name in self.runners:
            raise MeshprepError(f"the program has loop '{plan.loop.name}' already: use that one")
        if plan.loop.matrices and isinstance(self.plan, DistributedPlan):
            raise MeshprepError(
                f"loop '{plan.loop.name}' adds to a matrix, which no program on ranks has: run it "
                "by meshprep_runtime.matrix.PartAssembly"
            )
        asked = options.pop("layout", None)

        def make(of: LoopPlan, layout: Layout) -> ParLoop:
            return ParLoop(kernel, of, layout=layout, **options)

        layouts = LoopLayouts(make, plan, asked)
        runner: Runner
        if isinstance(self.plan, DistributedPlan):
            whole = self.plan.part
            runner = PartLoop(layouts, whole.loops[plan.loop.name], whole, self.plan.messages)
        else:
            runner = WholeLoop(layouts)
        self.runners[plan.loop.name] = runner
        return ProgramLoop(self, plan, runner)

    def reduced(self, values: ArrayLike = 0.0, dim: int = 1, dtype: str = "f8") -> ReducedGlobal:
        """A global for loops to reduce, whose value a chain need not know before it is asked for.

        Parameters
        ----------
        values : number or (dim,) array, to start from
        dim, dtype : int, str

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
            The queue runs when so many loops are in it, at most 64.
        tile_size : int or "auto", optional
            Run each sequence of ``length`` loops tile by tile, on the host: all loops
            on so many elements of the last loop's set, while these are in cache. Arguments must be
            dats and reduced globals of the program. A dat that tiles write gets another array at
            each run: ask for ``values()`` again. A sequence is cut when it is met first. ``"auto"``
            times some runs of each sequence, loop by loop and in tiles, and takes what is fastest.
            Not on ranks, where chains run loop by loop.
        dropped : dats
            That tiles write and whose values nobody wants after the chain: they are not stored.
            The chain must write all of each (``full = true``) before it reads it.
        zero : dats
            That are zero before and after the chain: they are neither read nor stored, which is
            checked.

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
        if isinstance(tile_size, str) and tile_size != "auto":
            raise MeshprepError(f"tile_size is '{tile_size}', must be a number or 'auto'")
        auto, size = (True, None) if isinstance(tile_size, str) else (False, tile_size)
        return Chain(self, length, TileOptions(size, tuple(dropped), tuple(zero), auto))

    def replay(self, period: Callable[[], object]) -> Replay:
        """A call that runs the loops of a function again, in compiled code.

        Parameters
        ----------
        period : function without arguments
            Calls loops as a time step does. They are noted, and none of them runs.

        Returns
        -------
        Replay
            Each call of it runs the loops, on the values that dats and arrays have then. Numbers
            stay what they were: give an array of one value for what changes. What else the function
            does is not repeated.

        Raises
        ------
        MeshprepError
            For arguments that do not fit, a function that calls no loop, and in a chain.
        """
        return self._noted(Replay(self), period)

    def _noted(self, notes: Notes, period: Callable[[], object]) -> Notes:
        """The calls of loops that a function makes."""
        if self.active is not None:
            raise MeshprepError("a chain is under way: give a function of loops outside of it")
        self.active = notes
        try:
            period()
        finally:
            self.active = None
        if not notes.calls:
            raise MeshprepError("no loop of this program was called: give a function that calls it")
        return notes

    def timings(self) -> Timings:
        """What every loop took since the program was made, or since ``reset``, on every rank.

        Returns
        -------
        Timings
            ``print`` shows a table; ``to_json()`` has all of it. Waits for loops that a GPU still
            runs. On ranks all must ask for it.
        """
        if self.active is not None:
            self.active.flush()
        for runner in self.runners.values():
            runner.settle()
        own = {name: runner.times for name, runner in self.runners.items()}
        ranks = [own]
        if isinstance(self.plan, DistributedPlan):
            ranks = self.plan.comm.allgather(own)
        return Timings({name: tuple(rank[name] for rank in ranks) for name in own})

    def reset(self) -> None:
        """Forget what the loops took so far, as after a first call that compiles."""
        for runner in self.runners.values():
            runner.settle()
            times = runner.times
            runner.times = LoopTimes(useful_bytes=times.useful_bytes, elements=times.elements)


class _Again:
    """A call on the host, and what runs it again with the same dats, in half of the time."""

    __slots__ = ("_arrays", "_dats", "_loop", "_others", "_runner", "_written")

    def __init__(self, runner: WholeLoop, given: Mapping[str, Any], written: Iterable[str]) -> None:
        self._runner, self._loop = runner, runner.layouts.par_loop
        self._dats = [(n, v, v.stored) for n, v in given.items() if isinstance(v, STORED)]
        self._arrays = {name: stored for name, _, stored in self._dats}
        self._others = [(n, type(v)) for n, v in given.items() if not isinstance(v, STORED)]
        self._written = [v for n in written if isinstance(v := given[n], ProgramDat)]

    def fits(self, given: Mapping[str, Any]) -> bool:
        """True for the same dats under the same names, which have the same arrays and no queue."""
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
        """Run it with what is no dat as it is given now, and add up what it took."""
        try:
            arrays = given | self._arrays if self._others else self._arrays
            self._runner.on_host(self._loop, arrays)
        finally:
            for dat in self._written:
                dat.touch()


class ProgramLoop:
    """A loop of a program, to be called with dats, arrays and globals by the loop's names."""

    def __init__(self, program: Program, plan: LoopPlan, runner: Runner) -> None:
        self._program = program
        self.loop = with_full_writes(plan.loop, runner.layouts.par_loop.kernel)
        self.runner = runner
        self._full = [arg.name for arg in self.loop.args if arg.full]
        self._written = [*self.loop.written]
        # as a ParLoop keeps the arrays of two calls
        self._last: tuple[_Again, ...] = ()

    @property
    def par_loop(self) -> ParLoop:
        """What ran last."""
        return self.runner.layouts.par_loop

    @property
    def times(self) -> LoopTimes:
        """What its calls took on this rank, so far; on a GPU, waits for them."""
        self.runner.settle()
        return self.runner.times

    def __call__(self, /, **given: Any) -> None:
        """Run the loop; inside a chain, queue it.

        Parameters
        ----------
        **given : ProgramDat, ReducedGlobal, or what a ParLoop takes
            Only dats know whether copies on other ranks are stale.

        Raises
        ------
        MeshprepError
            When something does not fit; the message names the argument.
        """
        if self._program.active is not None:
            self._program.active.record(self, given)
            return
        for last in self._last:
            if last.fits(given):
                last.run(given)
                return
        self.check(given)
        self.run(given)
        if self._program.checkpoints is not None or not isinstance(self.runner, WholeLoop):
            return
        if not any(on_device(getattr(v, "stored", v)) for v in given.values()):
            self._last = (_Again(self.runner, given, self._written), *self._last[:1])

    def alone(self, given: Mapping[str, Any]) -> list[BoundCode]:
        """The steps of a call that always runs on one thread of the host, at once; else none."""
        if self._program.checkpoints is not None or not isinstance(self.runner, WholeLoop):
            return []
        return self.taking(given).alone({n: getattr(v, "stored", v) for n, v in given.items()})

    def check(self, given: Mapping[str, Any]) -> None:
        """Raise MeshprepError when names are not the loop's, or a dat is on another set."""
        check_names(self.loop, self.par_loop.slots, given)
        check_sets(self.par_loop, given)

    def taking(self, given: Mapping[str, Any]) -> ParLoop:
        """What runs it on dats as they are stored."""
        return self.runner.layouts.taking(given)

    def run(self, given: Mapping[str, Any]) -> None:
        """Run the loop now, with arguments that were checked."""
        if (checkpoints := self._program.checkpoints) is None:
            self._run(given)
        else:
            step = checkpoints.steps.of_loop(self.loop, self.par_loop.kernel, given)
            checkpoints.run(step, lambda: self._run(given))

    def _run(self, given: Mapping[str, Any]) -> None:
        arrays = {n: v.array if isinstance(v, ReducedGlobal) else v for n, v in given.items()}
        for name in self._full:
            if isinstance(given[name], ProgramDat):
                given[name].dropped = False
        try:
            self.runner(arrays)
        finally:
            # a loop that fails, or is interrupted, has changed some elements
            for name in self._written:
                if isinstance(given[name], ProgramDat):
                    given[name].touch()
