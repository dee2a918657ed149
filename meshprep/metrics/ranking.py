"""Which strategy, blocks and layout a GPU would run fastest, by the traffic model alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product

from meshprep_runtime.cuda.strategies import COMMITS, MOST_THREADS, STRATEGIES, refusal
from meshprep_runtime.errors import MeshprepError, Progress, check_choice
from meshprep_runtime.kernel.bind import AOS, SOA, slots
from meshprep_runtime.plan import LoopPlan, Variant
from meshprep_runtime.plan.tuned import GPU, Machine, Trial, Tuned
from meshprep_runtime.tuning.candidates import fewer_threads
from meshprep_runtime.tuning.choose_gpu import staged_bytes

from .memory import MemoryTraffic, memory_traffic
from .occupancy import (
    DEVICES,
    LAUNCH_SECONDS,
    DeviceLimits,
    Occupancy,
    memory_seconds,
    occupancy,
)
from .traffic import THREADS

# Strategies that the model tells apart; those that keep increments only move alike, and
# hierarchical-inc stands for them.
RANKED = (
    "hierarchical",
    "hierarchical-inc",
    "hierarchical-unstaged",
    "global-colouring",
    "global-atomics",
    "two-step",
)
# Of the time of a thread an element, what several must take at most to be listed: less is waves
# that happen to be full.
CLEARLY = 0.97


def rank(
    plan: LoopPlan,
    device: str,
    *,
    registers: int = 48,
    strategies: Sequence[str] | None = None,
    layouts: tuple[str, ...] = (AOS, SOA),
    progress: Progress = lambda done, total, what: None,
) -> Tuned:
    """Rank ways to run a loop on a device that is not here.

    Raises MeshprepError for an unknown device, and where no strategy can run the loop. A call takes
    the bytes of :func:`~meshprep.metrics.memory.memory_traffic` over the device's bandwidth, longer
    where fewer than half of the warps are at work, or its atomics over their rate, whichever is
    longer, and three microseconds a launch. The rate of atomics is a range: a trial's ``seconds``
    are those of the fast end, its ``spread`` reaches to the slow one, and the ``median``, by which
    trials are in order, lies between. Blocks with two and four elements a thread are trials where
    enough warps fit by it to be 3 % faster. Good for an order of preference; arithmetic and
    instructions are not in it. O(n x arity x dats) for each candidate.

    Parameters
    ----------
    plan : LoopPlan
        With the variants to choose from; those with more than 1,024 elements a block do not count.
    device : str
        A name in ``occupancy.DEVICES``.
    registers : int
        Registers of a thread; Airfoil's res_calc takes 48.
    strategies : sequence of str or None
        None for all of ``RANKED`` that can run the loop.
    layouts : tuple of {"aos", "soa"}
    progress : callable
        ``progress(done, total, what)`` before each candidate.

    Returns
    -------
    Tuned
        Not measured; fastest first.
    """
    check_choice("device", device, DEVICES)
    for name in strategies or ():
        check_choice("strategy", name, RANKED)
    for name in layouts or ("",):
        check_choice("layout", name, (AOS, SOA))
    dats = _dats(plan)
    whole = {AOS: (), SOA: dats}
    grid = [
        (strategy, commit, variant, layout)
        for strategy, commit in product(strategies or RANKED, COMMITS)
        if _differs(plan, strategy, commit) and refusal(plan.loop, strategy, commit) is None
        for layout in (dict.fromkeys(layouts) if dats else (AOS,))
        for variant in _variants(plan, strategy)
    ]
    trials: list[Trial] = []
    for done, (strategy, commit, variant, layout) in enumerate(grid):
        progress(done, len(grid), f"{strategy} {variant.name} {layout}")
        way = Way(strategy, variant, commit, layout)
        trials += _trials(plan, way, DEVICES[device], registers, whole[layout])
    if not trials:
        raise MeshprepError(
            f"loop '{plan.loop.name}': no strategy can run it on a {device} with these blocks: "
            "try smaller ones"
        )
    return Tuned(
        machine=Machine(GPU, device),
        kernel="",
        measured=False,
        trials=tuple(sorted(trials, key=lambda t: t.median)),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _dats(plan: LoopPlan) -> tuple[str, ...]:
    several = (a for a in plan.loop.args if a.dim > 1 and not a.is_global and a.columns is None)
    return tuple(dict.fromkeys(a.name for a in several))


def _differs(plan: LoopPlan, strategy: str, commit: str) -> bool:
    """Whether a commit is another way than the first one."""
    blocks = STRATEGIES[strategy].blocks and bool(plan.loop.conflict_columns)
    return blocks or commit == COMMITS[0]


def _variants(plan: LoopPlan, strategy: str) -> list[Variant]:
    fit = [v for v in plan.variants.values() if v.block_size <= MOST_THREADS]
    return fit if STRATEGIES[strategy].blocks else fit[:1]


@dataclass(frozen=True, eq=False)
class Way:
    """How a loop runs: a strategy, its blocks, a commit and the layout of all dats.

    ``threads`` are those of a thread block, None for as many as the blocks have elements.
    """

    strategy: str
    variant: Variant
    commit: str = COMMITS[0]
    layout: str = AOS
    threads: int | None = None


def _trials(
    plan: LoopPlan, way: Way, device: DeviceLimits, registers: int, soa: tuple[str, ...]
) -> list[Trial]:
    """A thread an element, and several where that is predicted to be clearly faster."""
    blocks = STRATEGIES[way.strategy].blocks
    fewer = fewer_threads(way.variant) if blocks else []
    moved = _moved(plan, way, device)
    found: list[Trial] = []
    for one in (way, *(replace(way, threads=threads) for threads in fewer)):
        held = _held(plan, one, device, registers)
        if not held.blocks:
            continue
        fast, slow = _seconds(moved, held, device, LAUNCH_SECONDS)
        if all(fast < CLEARLY * trial.seconds for trial in found):
            name = way.variant.name if blocks else ""
            times = (fast, (fast * slow) ** 0.5, slow / fast - 1, 0)
            found.append(Trial(way.strategy, name, soa, *times, way.commit, one.threads))
    return found


def predicted_seconds(
    plan: LoopPlan,
    way: Way,
    device: DeviceLimits,
    registers: int = 48,
    launch: float = LAUNCH_SECONDS,
) -> tuple[float, float] | None:
    """Seconds of a call with the most and the least rate of atomics that is assumed.

    None where not even one block fits on a multiprocessor; see :func:`rank`.
    """
    held = _held(plan, way, device, registers)
    return _seconds(_moved(plan, way, device), held, device, launch) if held.blocks else None


def _held(plan: LoopPlan, way: Way, device: DeviceLimits, registers: int) -> Occupancy:
    """What a multiprocessor holds at once."""
    chosen = STRATEGIES[way.strategy]
    staged = chosen.blocks and chosen.stages
    threads = way.threads or (way.variant.block_size if chosen.blocks else THREADS)
    need = staged_bytes(plan, slots(plan), way.variant, chosen.stages_reads) if staged else 0
    return occupancy(device, threads, registers, need)


def _moved(plan: LoopPlan, way: Way, device: DeviceLimits) -> MemoryTraffic:
    return memory_traffic(
        plan, way.variant, way.strategy, device.cache, commit=way.commit, layout=way.layout
    )


def _seconds(
    moved: MemoryTraffic, held: Occupancy, device: DeviceLimits, launch: float
) -> tuple[float, float]:
    memory = memory_seconds(moved.nbytes, moved.launches, device, held, 1e9 * device.bandwidth)
    most, least = (moved.atomics / (1e9 * rate) for rate in device.atomics)
    launches = launch * len(moved.launches)
    return max(memory, least) + launches, max(memory, most) + launches
