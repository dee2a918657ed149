"""``tune --chain``: whether a chain of a plan runs faster in tiles, and in which."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime import Chain, Program, ProgramDat
from meshprep_runtime.errors import MeshprepError, Progress
from meshprep_runtime.loops import Access, Arg, Loop
from meshprep_runtime.plan import LoopPlan, Plan
from meshprep_runtime.plan.chains.tiles import ChainPlan
from meshprep_runtime.plan.tuned import LOOPS, OVERLAPPED, SKEWED, ChainTrial, ChainTuned
from meshprep_runtime.plan.verify import refuse_wrong
from meshprep_runtime.program.chains.numbers import number
from meshprep_runtime.program.chains.owners import sizes_to_try
from meshprep_runtime.program.chains.tiling import cut
from meshprep_runtime.tuning.machines import this_cpu
from meshprep_runtime.tuning.tune import synthetic

from .tuning import check_kernel, named

Arrays = Mapping[str, NDArray[Any]]
Kernels = Mapping[str, Callable[..., None]]


@dataclass(frozen=True, eq=False)
class ChainTuning:
    """What came out: the plan with the fastest tiles as the chain's schedule, and all times."""

    plan: Plan
    chain: str
    tuned: ChainTuned
    notes: list[str]  # what could not be checked, and why


def tune_chain(
    plan: Plan,
    name: str,
    kernels: Kernels,
    *,
    tile_sizes: Sequence[int] | None = None,
    values: Arrays | None = None,
    runs: int = 9,
    proof: bool = True,
    progress: Progress = lambda done, total, what: None,
) -> ChainTuning:
    """Time a chain loop by loop and in tiles, and put the fastest tiles into the plan.

    Raises MeshprepError for unknown names, kernels or values that are missing, chains that cannot
    run, and kernels that do not do what their accesses say. Raises ProofError when the plan that
    came out is wrong, which is a fault of meshprep. Overlapped tiles but for matrices, and skewed
    ones where nothing is dropped or zero.

    Parameters
    ----------
    name : str
        Of a chain of the plan.
    kernels : mapping of loop name to function
    tile_sizes : sequence of int, optional
        Default: that of the plan, what fits into a second-level cache, 4 and 16 times as much;
        none larger than the mesh.
    values : mapping of name to array, optional
        Of dats by the chain's names, in the plan's numbering, and of constants; default: made-up
        numbers.
    runs : int
        Of each way; ways take turns, so that a slow spell of the machine hits all.
    proof : bool
        Prove the plan before it is given out.
    progress : callable
        ``progress(done, total, what)`` before each way is compiled, and as they run.
    """
    if name not in plan.chains:
        has = ", ".join(plan.chains) or "none: add a table [chain.NAME] to loops.toml"
        raise MeshprepError(f"the plan has no chain '{name}': it has {has}")
    chain = plan.chains[name]
    schedules = _schedules(plan, chain, tile_sizes)
    timed = _TimedChain(replace(plan, chains=schedules), chain, kernels, values)
    notes = timed.check()
    with named(f"chain '{name}'"):
        times = _times(timed, list(schedules), runs, progress)
    tuned = ChainTuned(
        machine=this_cpu().machine,
        trials=tuple(
            sorted(
                (_trial(key, schedules.get(key), own) for key, own in times.items()),
                key=lambda t: t.seconds,
            )
        ),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    others = tuple(t for t in chain.tuned if t.machine != tuned.machine)
    best = replace(schedules[str(tuned.tiles)], name=name, tuned=(*others, tuned))
    made = replace(plan, chains={**plan.chains, name: best})
    if proof:
        refuse_wrong(made)
    return ChainTuning(made, name, tuned, notes)


def _schedules(plan: Plan, chain: ChainPlan, sizes: Sequence[int] | None) -> dict[str, ChainPlan]:
    """The tiles to try, by what they are called; so are the chains of the plan that is timed."""
    loops = chain.tiles.loops
    numbers = number(loops, plan.sizes, plan.maps)
    plans = [plan[loop.name] for loop in loops]
    kinds = (OVERLAPPED,) if chain.kept.all else (OVERLAPPED, SKEWED)
    if any(loop.matrices for loop in loops):
        kinds = (SKEWED,)
    if sizes is not None and (not sizes or min(sizes) < 1):
        raise MeshprepError(f"tile sizes are {[*sizes]}: give whole numbers from 1")
    found, n = {}, max(plan.sizes[loops[-1].over], 1)
    for size in sizes or sorted({min(chain.tile_size, n), *sizes_to_try(numbers)}):
        for kind in kinds:
            key = f"{kind} tiles of {size}"
            found[key] = ChainPlan(key, size, cut(numbers, plans, size, chain.kept, kind == SKEWED))
    return found


def _times(
    timed: "_TimedChain", schedules: Sequence[str], runs: int, progress: Progress
) -> dict[str, list[float]]:
    """Seconds of each run of the loops alone and of each schedule; the first runs compile."""
    ways: dict[str, Chain | None] = {LOOPS: None}
    ways |= {key: timed.program.chain(schedule=key) for key in schedules}
    for done, (key, tiles) in enumerate(ways.items()):
        progress(done, len(ways) + 1, key)
        timed.run(tiles)
    found: dict[str, list[float]] = {key: [] for key in ways}
    for turn in range(runs):
        progress(len(ways) + turn / runs, len(ways) + 1, "timing")
        for key, tiles in ways.items():
            found[key].append(timed.run(tiles))
    return found


def _trial(key: str, schedule: ChainPlan | None, times: Sequence[float]) -> ChainTrial:
    best = min(times)
    return ChainTrial(
        way=key.partition(" ")[0],
        tile_size=0 if schedule is None else schedule.tile_size,
        seconds=best,
        median=statistics.median(times),
        spread=max(times) / best - 1,
        runs=len(times),
    )


class _TimedChain:
    """The calls of a chain, on dats that start from the same values in every run."""

    def __init__(
        self, plan: Plan, chain: ChainPlan, kernels: Kernels, values: Arrays | None
    ) -> None:
        self.program = Program(plan)
        self._chain, self._values = chain, values
        self._dats: dict[str, tuple[ProgramDat, NDArray[Any]]] = {}
        self._written = {name for loop in chain.tiles.loops for name in loop.written}
        names = dict.fromkeys(loop.name for loop in chain.tiles.loops)
        made = {n: self.program.loop(_kernel(kernels, n), n) for n in names}
        self._calls = [
            (made[loop.name], self._given(plan[loop.name], loop)) for loop in chain.tiles.loops
        ]

    def check(self) -> list[str]:
        """Refuse kernels that do not do what their accesses say; why some could not be checked."""
        calls = {loop.loop.name: (loop, given) for loop, given in self._calls}
        return [
            text
            for loop, given in calls.values()
            for text in check_kernel(
                loop.par_loop, {name: getattr(v, "stored", v) for name, v in given.items()}
            )
        ]

    def run(self, tiles: Chain | None) -> float:
        """Seconds of one run, loop by loop or in tiles."""
        for name, (dat, start) in self._dats.items():
            if name in self._written:
                dat.stored[...] = start
                dat.dropped = False
                dat.touch()
        begin = time.perf_counter()
        with nullcontext() if tiles is None else tiles:
            for loop, given in self._calls:
                loop(**given)
        return time.perf_counter() - begin

    def _given(self, plan: LoopPlan, named: Loop) -> dict[str, Any]:
        """The arguments of a call; ``named`` has the chain's names for those of the loop."""
        invented = synthetic(plan) if self._values is None else {}
        given: dict[str, Any] = {}
        for own, common in zip(plan.loop.args, named.args, strict=True):
            if own.is_global and own.access is not Access.READ:
                given[own.name] = self.program.reduced(0, own.dim, own.dtype)
            elif own.is_global:
                given[own.name] = self._value(own.name, invented.get(own.name))
            else:
                home = plan.loop.over if own.map is None else plan.maps[own.map].to_set
                matrix = None if own.columns is None else own.name
                given[own.name] = self._dat(common, home, invented.get(own.name), matrix)
        return given

    def _dat(
        self, arg: Arg, home: str, invented: NDArray[Any] | None, matrix: str | None
    ) -> ProgramDat:
        if arg.name not in self._dats:
            start = self._value(arg.name, invented)
            if arg.name in self._chain.kept.zero:
                start = np.zeros_like(start)
            if matrix is None:
                dat = self.program.dat(home, arg.dim, arg.dtype, values=start.copy())
            else:
                dat = self.program.matrix(matrix, values=start.copy())
            self._dats[arg.name] = dat, start
        return self._dats[arg.name][0]

    def _value(self, name: str, invented: NDArray[Any] | None) -> NDArray[Any]:
        found = invented if self._values is None else self._values.get(name)
        if found is None:
            raise MeshprepError(f"chain '{self._chain.name}': no values for '{name}'")
        return found


def _kernel(kernels: Kernels, loop: str) -> Callable[..., None]:
    if loop not in kernels:
        raise MeshprepError(
            f"running a chain needs the kernels of its loops: there is none for loop '{loop}', "
            f"only for {', '.join(kernels) or 'none'}"
        )
    return kernels[loop]
