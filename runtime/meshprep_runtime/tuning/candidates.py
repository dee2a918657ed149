"""The ways to run a loop that are timed, and what is kept of each."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..cuda import COMMITS
from ..cuda.strategies import WARP, hopeless
from ..errors import MeshprepError
from ..plan import LoopPlan, Variant
from ..plan.tuned import GPU, Trial
from .machines import Backend

# Elements that a thread runs, besides one, and the fewest threads of a block that takes several.
ELEMENTS, LEAST_THREADS = (2, 4), 2 * WARP


@dataclass(frozen=True)
class TuningCandidate:
    """One way to run a loop; ``variant`` is empty for strategies without blocks.

    ``threads`` are those of a thread block, None for as many as the blocks have elements.
    """

    strategy: str
    variant: str
    soa: tuple[str, ...]
    commit: str = COMMITS[0]
    threads: int | None = None

    def __str__(self) -> str:
        blocks = f" {self.variant}" if self.variant else ""
        blocks += f" by {self.threads} threads" if self.threads else ""
        atomics = " atomics" if self.commit != COMMITS[0] else ""
        soa = f", SoA {' '.join(self.soa)}" if self.soa else ""
        return f"{self.strategy}{blocks}{atomics}{soa}"


def grid(
    plan: LoopPlan,
    backend: Backend,
    asked: Sequence[str] | None,
    layouts: Sequence[tuple[str, ...]],
) -> list[TuningCandidate]:
    """Strategies by variants by whole layouts."""
    for name in asked or ():
        if name not in backend.strategies:
            raise MeshprepError(
                f"strategy '{name}' is unknown here: use {', '.join(backend.strategies)}"
            )
    found = [
        TuningCandidate(strategy, variant, soa, commit)
        for strategy in backend.strategies
        if (strategy in asked if asked else not hopeless(plan.loop, strategy))
        for soa in layouts
        for variant, commit in backend.variants_for(plan, strategy)
    ]
    if not found:
        raise MeshprepError(
            f"loop '{plan.loop.name}': none of {', '.join(asked or backend.strategies)} can run it"
        )
    return found


def fewer_threads(variant: Variant) -> list[int]:
    """Numbers of threads, in whole warps, that run two and four elements of its blocks each."""
    size = variant.block_size
    found = (-(-size // (many * WARP)) * WARP for many in ELEMENTS)
    return [threads for threads in dict.fromkeys(found) if LEAST_THREADS <= threads < size]


def with_fewer_threads(
    plan: LoopPlan, backend: Backend, seconds: Mapping[TuningCandidate, float]
) -> list[TuningCandidate]:
    """The fastest way with each of the blocks, by fewer threads [G12 section 6]; on a GPU only."""
    if backend.machine.kind != GPU:
        return []
    best: dict[str, TuningCandidate] = {}
    for candidate in sorted(seconds, key=lambda c: seconds[c]):
        best.setdefault(candidate.variant, candidate)
    return [
        replace(candidate, threads=threads)
        for name, candidate in best.items()
        if name
        for threads in fewer_threads(plan.variants[name])
    ]


def trial(candidate: TuningCandidate, times: Sequence[float]) -> Trial:
    """What came out for a candidate: the seconds of its runs, at least one."""
    return Trial(
        strategy=candidate.strategy,
        variant=candidate.variant,
        soa=candidate.soa,
        seconds=min(times),
        median=statistics.median(times),
        spread=max(times) / min(times) - 1,
        runs=len(times),
        commit=candidate.commit,
        threads=candidate.threads,
    )
