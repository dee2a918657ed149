"""The strategies on a GPU, by how they keep increments apart [S19, G10, R14]."""

from dataclasses import dataclass

import numpy as np

from ..errors import MeshprepError
from ..kernel.bind import AUTO
from ..plan import LoopPlan
from ..types.loops import Access, Loop

# Threads of a warp.
WARP = 32
# Threads of a thread block, at most.
MOST_THREADS = 1024

# Types that CUDA adds to atomically, itself or by the unsigned type of the same length.
ATOMIC_TYPES = ("f4", "f8", "i4", "i8", "u4", "u8")
COMMITS = ("colours", "atomics")


@dataclass(frozen=True)
class Strategy:
    """The properties of a strategy, which decide the text of its kernel."""

    # How increments of two threads are kept apart. In blocks, in shared memory:
    # ``"colours"`` (one thread colour after the other), ``"atomics"``, ``"gather"`` (each
    # thread leaves its increments, then a thread for each point sums them). Without blocks,
    # in global memory: ``"atomics"``, ``"plain"`` where a launch has the elements of one
    # colour of the whole set, or ``"apart"``: each thread leaves its increments in a
    # temporary array, which a second kernel sums at each point.
    adds: str
    # Thread blocks are blocks of the plan.
    blocks: bool = True
    # Dats that are read through maps are staged in shared memory, too.
    stages_reads: bool = False
    # Maps and colours lie in the order in which threads take the elements: by thread colour
    # in each block, or by colour of the whole set.
    permutes: bool = False
    # Blocks add up in shared memory; else they add to global memory, colour by colour.
    stages: bool = True
    # Threads share the pieces of all staged rows, not the points, so that neighbouring
    # threads move neighbouring values.
    collapsed: bool = False


STRATEGIES: dict[str, Strategy] = {
    "hierarchical": Strategy("colours", stages_reads=True),
    "hierarchical-inc": Strategy("colours"),
    "hierarchical-collapsed": Strategy("colours", stages_reads=True, collapsed=True),
    "hierarchical-unstaged": Strategy("colours", stages=False),
    "shared-atomics": Strategy("atomics"),
    "staged-gather": Strategy("gather"),
    "block-permute": Strategy("colours", stages_reads=True, permutes=True),
    "global-atomics": Strategy("atomics", blocks=False),
    "global-colouring": Strategy("plain", blocks=False),
    "full-permute": Strategy("plain", blocks=False, permutes=True),
    "two-step": Strategy("apart", blocks=False),
}
# Values of ``adds`` with which only one element at a time changes a point.
ONE_AT_A_TIME = ("colours", "plain")


def refusal(loop: Loop, strategy: str, commit: str = "colours") -> str | None:
    """Why the text of a strategy cannot be written for a loop, or None.

    Parameters
    ----------
    loop : Loop
    strategy : str
        A name of ``STRATEGIES``.
    commit : str
        ``"colours"`` or ``"atomics"``, as of a ParLoop.

    Returns
    -------
    str or None
    """
    chosen = STRATEGIES[strategy]
    if loop.matrices and chosen.adds in ("gather", "apart"):
        return (
            f"what it adds to matrix '{loop.matrices[0].name}' cannot wait: use another "
            "strategy"
        )
    # What is no sum needs one element at a time at each point.
    alone = chosen.adds in ONE_AT_A_TIME and not (chosen.blocks and commit == "atomics")
    if not chosen.stages and commit == "atomics" and loop.conflict_columns:
        return "it stages nothing that a block could commit, which takes commit 'colours'"
    for arg in loop.args:
        if arg.conflicts and arg.access is not Access.INC and not alone:
            names = [n for n, s in STRATEGIES.items() if s.adds in ONE_AT_A_TIME]
            return (
                f"argument '{arg.name}' is {arg.access} through a map, which takes commit "
                f"'colours' and one of {', '.join(names)}"
            )
    # Atomic additions exist for few types.
    atomic = chosen.adds == "atomics" or (chosen.blocks and commit == "atomics")
    for arg in loop.args:
        small = np.dtype(arg.dtype) not in [np.dtype(t) for t in ATOMIC_TYPES]
        if arg.conflicts and small and atomic:
            return (
                f"argument '{arg.name}' has dtype {arg.dtype}, which CUDA has no atomics "
                "for"
            )
    return None


def check_strategy(plan: LoopPlan, strategy: str, commit: str) -> None:
    """Raise MeshprepError unless a strategy can run a loop on a GPU."""
    where = f"loop '{plan.loop.name}'"
    if strategy == AUTO:
        return
    if strategy not in STRATEGIES:
        raise MeshprepError(
            f"{where}: strategy '{strategy}' is not for a GPU: use "
            f"{', '.join((AUTO, *STRATEGIES))}"
        )
    if STRATEGIES[strategy].blocks and not plan.variants:
        raise MeshprepError(
            f"{where} has no blocks in this plan: use strategy 'global-atomics'"
        )
    if reason := refusal(plan.loop, strategy, commit):
        raise MeshprepError(f"{where}: strategy '{strategy}' cannot run it: {reason}")


def hopeless(loop: Loop, strategy: str) -> bool:
    """True for a strategy that cannot be the fastest.

    Devices have no atomic addition of ``f8`` in shared memory, and take a loop for it.
    """
    chosen = STRATEGIES.get(strategy)
    wide = any(arg.conflicts and arg.dtype == "f8" for arg in loop.args)
    return wide and chosen is not None and chosen.blocks and chosen.adds == "atomics"
