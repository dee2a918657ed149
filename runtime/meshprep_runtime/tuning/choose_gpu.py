"""What a loop does on a GPU when nobody says: strategy, blocks and commit."""

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
# Two such blocks fit a multiprocessor of every device since 2017, and one any device.
MODEST_SHARED = 48 * 1024
# Values read so often from shared memory that the barriers they cost are paid back.
LEAST_REUSE = 2.0


@dataclass(frozen=True)
class Choice:
    """How a loop is to run: names of a strategy, of a variant (None: no blocks) and a commit.

    ``threads`` are those of a thread block, None as many as :func:`cuda.program` takes by itself;
    ``because`` says what the choice rests on.
    """

    strategy: str
    variant: str | None
    commit: str
    because: str = field(default="", compare=False)
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
    """What is asked for; for what is left open what was tuned, else a rule.

    Tuned choices are the plan's for the device and, if there are any, the kernel of these names.
    The rule measures nothing.
    Loops that do not write through maps take a thread an element and no blocks
    (``"global-atomics"``, of which no atomics are left). Others take blocks of the plan where it
    has any of at most 1024 elements: ``"hierarchical"`` when the elements of a block read each
    value that it stages at least twice, and the largest block stages no more than 48 KB; else
    ``"hierarchical-inc"``, when its increments fit the device. Without such blocks:
    ``"global-atomics"``, or ``"global-colouring"`` where CUDA has no atomics for what is written.

    O(map entries).
    """
    blocks = _variant(plan, variant)
    if strategy != AUTO:
        named = blocks.name if blocks is not None else variant
        named = named if STRATEGIES[strategy].blocks else None
        return Choice(strategy, named, commit, "asked for")
    tuned = _tuned(plan, slots, device, kernel, variant)
    if tuned is not None:
        return tuned
    if blocks is not None and plan.loop.conflict_columns:
        for wanted, because in _staging(plan, slots, blocks, most_shared):
            if refusal(plan.loop, wanted, commit) is None:
                return Choice(wanted, blocks.name, commit, f"{BY_RULE}: {because}")
    atomics = refusal(plan.loop, "global-atomics") is None
    because = "no blocks that fit" if plan.loop.conflict_columns else "nothing is written by maps"
    chosen = "global-atomics" if atomics else "global-colouring"
    return Choice(chosen, None, commit, f"{BY_RULE}: {because}")


def staged_bytes(
    plan: LoopPlan, slots: Sequence[Slot], variant: Variant, reads: bool = True
) -> int:
    """Shared memory of the largest block, with what is read through maps or without it."""
    need = np.zeros(variant.n_blocks, np.int64)
    staged: dict[str, dict[int, Slot]] = {}
    for i, slot in enumerate(slots):
        args = [a for a in plan.loop.args if a.name == slot.name and a.map is not None]
        # what is added to a matrix is not staged
        args = [a for a in args if a.columns is None]
        if args and (reads or args[0].access is not Access.READ):
            staged.setdefault(str(slot.rows), {})[i] = slot
    for name, own in staged.items():
        need += shared_row(own).stride * np.diff(variant.staging[name].point_offset)
    return int(need.max(initial=0))


def _tuned(
    plan: LoopPlan, slots: Sequence[Slot], device: str, kernel: str, variant: str | None
) -> Choice | None:
    """What was found best; None where nobody knows for these blocks."""
    soa = tuple(s.name for s in slots if s.soa)
    trial = tuned_for(plan, Machine(GPU, device), kernel, soa, STRATEGIES)
    if trial is None or (variant is not None and trial.variant not in ("", variant)):
        return None
    how = f"timed {trial.runs} times there" if trial.runs else "by predicted traffic, not measured"
    because = f"tuned for it: {how}"
    return Choice(trial.strategy, trial.variant or None, trial.commit, because, trial.threads)


def _staging(
    plan: LoopPlan, slots: Sequence[Slot], variant: Variant, most_shared: int
) -> list[tuple[str, str]]:
    """Strategies that stage, the likely best first, and why."""
    found = []
    everything, reuse = staged_bytes(plan, slots, variant), _reuse(plan, variant)
    if everything <= min(MODEST_SHARED, most_shared) and reuse >= LEAST_REUSE:
        found.append(("hierarchical", f"elements read each staged value {reuse:.1f} times"))
    if staged_bytes(plan, slots, variant, reads=False) <= most_shared:
        found.append(
            ("hierarchical-inc", f"all that is read, {reuse:.1f} times, is not worth staging")
        )
    return found


def _reuse(plan: LoopPlan, variant: Variant) -> float:
    """How often a staged value is read, over all that is read through maps, by bytes."""
    read, staged = 0, 0
    for arg in plan.loop.args:
        if arg.map is not None and arg.access is Access.READ:
            read += arg.nbytes * len(arg.index) * plan.sizes[plan.loop.over]
            staged += arg.nbytes * variant.staging[plan.maps[arg.map].to_set].points.size
    # Where nothing is read through maps, both strategies are the same.
    return read / staged if staged else LEAST_REUSE


def _variant(plan: LoopPlan, name: str | None) -> Variant | None:
    """The blocks asked for; else the loop's default, or others, when they fit a thread block."""
    if name is not None:
        return plan.variant(name)
    fits = [v for v in plan.variants.values() if v.block_size <= MOST_THREADS]
    return min(fits, key=lambda v: (v.target != "gpu", v.name != plan.default), default=None)
