"""Which strategy, blocks and layout a GPU would run fastest, by the traffic model alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import product

from meshprep_runtime.bind import AOS, SOA, slots
from meshprep_runtime.cuda.strategies import refusal
from meshprep_runtime.errors import MeshprepError, Progress, check_choice
from meshprep_runtime.plan import LoopPlan, Variant
from meshprep_runtime.plan.tuned import GPU, Machine, Trial, Tuned
from meshprep_runtime.tuning.choose_gpu import staged_bytes

from ..colour import colour_whole_set
from ..loops.reach import written_table
from .occupancy import DEVICES, LAUNCH_SECONDS, THREADS_PER_BLOCK, occupancy
from .traffic import SECTOR_BYTES, THREADS, traffic

# Strategies that the model tells apart, and what it takes them to keep in shared memory. Those
# that keep increments only move alike: hierarchical-inc stands for them.
STAGED = {
    "hierarchical": "all",
    "hierarchical-inc": "increments",
    "global-colouring": "none",
    "global-atomics": "atomics",
}
WITHOUT_BLOCKS = ("global-colouring", "global-atomics")
# With this share of its warps a multiprocessor keeps enough bytes under way.
ENOUGH = 0.5


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

    Parameters
    ----------
    plan : LoopPlan
        With the variants to choose from; those with more than 1,024 elements a block do not count.
    device : str
        A name in ``occupancy.DEVICES``.
    registers : int
        Registers of a thread; Airfoil's res_calc takes 48.
    strategies : sequence of str or None
        None for all of ``STAGED`` that can run the loop.
    layouts : tuple of {"aos", "soa"}
    progress : callable
        ``progress(done, total, what)`` before each candidate.

    Returns
    -------
    Tuned
        Not measured; fastest first.

    Raises
    ------
    MeshprepError
        For an unknown device, and where no strategy can run the loop.

    Notes
    -----
    A call takes the bytes of the traffic model over the device's bandwidth, longer where fewer
    than half of the warps fit on a multiprocessor, and three microseconds a launch. Good for an
    order of preference; caches between blocks, contention of atomics and arithmetic are not in it.
    O(n x arity x dats) for each candidate.
    """
    check_choice("device", device, DEVICES)
    for name in strategies or ():
        check_choice("strategy", name, STAGED)
    for name in layouts or ("",):
        check_choice("layout", name, (AOS, SOA))
    dats = _dats(plan)
    whole = {AOS: (), SOA: dats}
    grid = [
        (strategy, variant, layout)
        for strategy, layout in product(
            strategies or STAGED, dict.fromkeys(layouts) if dats else (AOS,)
        )
        if refusal(plan.loop, strategy) is None
        for variant in _variants(plan, strategy)
    ]
    trials = []
    for done, (strategy, variant, layout) in enumerate(grid):
        progress(done, len(grid), f"{strategy} {variant.name} {layout}")
        seconds = _seconds(plan, strategy, variant, layout, device, registers)
        if seconds is not None:
            name = "" if strategy in WITHOUT_BLOCKS else variant.name
            trials.append(Trial(strategy, name, whole[layout], seconds, seconds, 0.0, 0))
    if not trials:
        raise MeshprepError(
            f"loop '{plan.loop.name}': no strategy can run it on a {device} with these blocks: "
            "try smaller ones"
        )
    return Tuned(
        machine=Machine(GPU, device),
        kernel="",
        measured=False,
        trials=tuple(sorted(trials, key=lambda t: t.seconds)),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _dats(plan: LoopPlan) -> tuple[str, ...]:
    several = (a for a in plan.loop.args if a.dim > 1 and not a.is_global and a.columns is None)
    return tuple(dict.fromkeys(a.name for a in several))


def _variants(plan: LoopPlan, strategy: str) -> list[Variant]:
    fit = [v for v in plan.variants.values() if v.block_size <= THREADS_PER_BLOCK]
    return fit[:1] if strategy in WITHOUT_BLOCKS else fit


def _seconds(
    plan: LoopPlan, strategy: str, variant: Variant, layout: str, device: str, registers: int
) -> float | None:
    """A call's seconds; None where not even one block fits on a multiprocessor."""
    blocks = strategy not in WITHOUT_BLOCKS
    threads = variant.block_size if blocks else THREADS
    everything = strategy == "hierarchical"
    shared = staged_bytes(plan, slots(plan), variant, reads=everything) if blocks else 0
    share = occupancy(device, threads, registers, shared).share
    if not share:
        return None
    moved = traffic(
        plan.loop, plan.maps, plan.sizes, variant, staged=STAGED[strategy], layout=layout
    )
    nbytes = SECTOR_BYTES * (moved.read + moved.written)
    bandwidth = 1e9 * DEVICES[device].bandwidth * min(1.0, share / ENOUGH)
    return nbytes / bandwidth + LAUNCH_SECONDS * _launches(plan, strategy, variant)


def _launches(plan: LoopPlan, strategy: str, variant: Variant) -> int:
    if strategy == "global-atomics":
        return 1
    if strategy == "global-colouring":
        return colour_whole_set(*written_table(plan.loop, plan.maps, plan.sizes)).count
    return variant.n_block_colours
