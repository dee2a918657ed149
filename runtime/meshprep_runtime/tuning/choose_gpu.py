"""The default strategy, blocks and commit of a loop on a GPU."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..cuda.source.shape import shared_row
from ..cuda.strategies import MOST_THREADS, STRATEGIES, refusal
from ..kernel.bind import AUTO, Slot
from ..plan import LoopPlan, Variant
from ..plan.tuned import GPU, Machine
from ..types.loops import Access
from .lookup import tuned_for

BY_RULE = "by rule, not measured"
# Bytes of shared memory of a block with which a block fits on any device, and two blocks on
# a multiprocessor of every device since 2017.
MODEST_SHARED = 48 * 1024
# Staging pays where each staged value is read at least so many times.
LEAST_REUSE = 2.0


@dataclass(frozen=True)
class Choice:
    """How a loop is to run on a GPU."""

    strategy: str
    variant: str | None  # None for no blocks
    commit: str
    because: str = field(default="", compare=False)  # the reason, in words
    # Threads of a thread block; None for as many as :func:`cuda.program` takes by itself.
    threads: int | None = None


def choose(
    plan: LoopPlan,
    slots: Sequence[Slot],
    most_shared: int,
    *,
    strategy: str = AUTO,
    variant: str | None = None,
    commit: str = "colours",
    device: str = "",
    kernel: str = "",
) -> Choice:
    """The choice that the caller names; else the tuned choice, else one by a rule.

    Tuned choices are those of the plan for this device and kernel, by their names. The rule
    measures nothing. Loops that do not write through maps take a thread for each element
    and no blocks (``"global-atomics"``, which then has no atomics). Other loops take blocks
    of the plan where it has any of at most 1024 elements: ``"hierarchical"`` when the
    elements of a block read each staged value at least twice, and the largest block stages
    at most 48 KB; else ``"hierarchical-inc"``, when its increments fit the device. Without
    such blocks: ``"global-atomics"``, or ``"global-colouring"`` where CUDA has no atomics
    for the dtypes of increments.

    O(map entries).
    """
    # What the caller asks for goes first, then what was measured on this device.
    blocks = _variant_for_gpu(plan, variant)
    if strategy != AUTO:
        name_of_blocks = None
        if STRATEGIES[strategy].blocks:
            name_of_blocks = variant if blocks is None else blocks.name
        return Choice(
            strategy=strategy, variant=name_of_blocks, commit=commit, because="asked for"
        )
    tuned = _tuned_choice(
        plan=plan, slots=slots, device=device, kernel=kernel, variant=variant
    )
    if tuned is not None:
        return tuned
    # By the rule: strategies that stage first.
    if blocks is not None and plan.loop.conflict_columns:
        staging = _staging_strategies(
            plan=plan, slots=slots, variant=blocks, most_shared=most_shared
        )
        for candidate, because in staging:
            if refusal(plan.loop, candidate, commit) is None:
                return Choice(
                    strategy=candidate,
                    variant=blocks.name,
                    commit=commit,
                    because=f"{BY_RULE}: {because}",
                )
    # Without blocks.
    if plan.loop.conflict_columns:
        because = "no blocks that fit"
    else:
        because = "nothing is written by maps"
    # Atomics need no colours; not every access has them.
    if refusal(plan.loop, "global-atomics") is None:
        without_blocks = "global-atomics"
    else:
        without_blocks = "global-colouring"
    return Choice(
        strategy=without_blocks,
        variant=None,
        commit=commit,
        because=f"{BY_RULE}: {because}",
    )


def staged_bytes(
    plan: LoopPlan, slots: Sequence[Slot], variant: Variant, reads: bool = True
) -> int:
    """Bytes of shared memory of the largest block.

    With ``reads`` dats that are read through maps are staged, too.
    """
    # The staged dats of each set; matrices are not staged.
    staged: dict[str, dict[int, Slot]] = {}
    for i, slot in enumerate(slots):
        args = [
            a
            for a in plan.loop.args
            if a.name == slot.name and a.map is not None and a.columns is None
        ]
        if args and (reads or args[0].access is not Access.READ):
            staged.setdefault(str(slot.rows), {})[i] = slot
    need = np.zeros(variant.n_blocks, np.int64)
    for set_name, dats in staged.items():
        points_of_block = np.diff(variant.staging[set_name].point_offset)
        need += shared_row(dats).stride * points_of_block
    return int(need.max(initial=0))


def _tuned_choice(
    plan: LoopPlan, slots: Sequence[Slot], device: str, kernel: str, variant: str | None
) -> Choice | None:
    """The choice that was tuned; None where there is none with these blocks."""
    soa = tuple(s.name for s in slots if s.soa)
    trial = tuned_for(
        plan=plan, machine=Machine(GPU, device), kernel=kernel, soa=soa, known=STRATEGIES
    )
    # An entry for other blocks than those asked for says nothing about these.
    if trial is None or (variant is not None and trial.variant not in ("", variant)):
        return None
    if trial.runs:
        because = f"tuned for it: timed {trial.runs} times there"
    else:
        because = "tuned for it: by predicted traffic, not measured"
    return Choice(
        strategy=trial.strategy,
        variant=trial.variant or None,
        commit=trial.commit,
        because=because,
        threads=trial.threads,
    )


def _staging_strategies(
    plan: LoopPlan, slots: Sequence[Slot], variant: Variant, most_shared: int
) -> list[tuple[str, str]]:
    """Strategies that stage, with the reason; the likely best first."""
    strategies = []
    reuse = _reuse(plan, variant)
    all_bytes = staged_bytes(plan, slots, variant)
    if all_bytes <= min(MODEST_SHARED, most_shared) and reuse >= LEAST_REUSE:
        because = f"elements read each staged value {reuse:.1f} times"
        strategies.append(("hierarchical", because))
    increment_bytes = staged_bytes(plan=plan, slots=slots, variant=variant, reads=False)
    if increment_bytes <= most_shared:
        because = f"all that is read, {reuse:.1f} times, is not worth staging"
        strategies.append(("hierarchical-inc", because))
    return strategies


def _reuse(plan: LoopPlan, variant: Variant) -> float:
    """How often a staged value is read, on average over the bytes read through maps."""
    read = 0
    staged = 0
    for arg in plan.loop.args:
        if arg.map is not None and arg.access is Access.READ:
            read += arg.nbytes * len(arg.index) * plan.sizes[plan.loop.over]
            staged += arg.nbytes * variant.staging[plan.maps[arg.map].to_set].points.size
    # Where nothing is read through maps, both strategies are the same.
    if staged:
        return read / staged
    return LEAST_REUSE


def _variant_for_gpu(plan: LoopPlan, name: str | None) -> Variant | None:
    """The blocks of a name; else blocks that fit a thread block.

    Blocks made for a GPU come first, then the loop's default.
    """
    if name is not None:
        return plan.variant(name)
    fits = [v for v in plan.variants.values() if v.block_size <= MOST_THREADS]
    return min(
        fits, key=lambda v: (v.target != "gpu", v.name != plan.default), default=None
    )
