"""The ways to run a loop that are timed, and what is kept of each."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ..cuda import COMMITS
from ..cuda.strategies import hopeless
from ..errors import MeshprepError
from ..plan import LoopPlan
from ..plan.tuned import Trial
from .machines import Backend


@dataclass(frozen=True)
class TuningCandidate:
    """One way to run a loop; ``variant`` is empty for strategies without blocks."""

    strategy: str
    variant: str
    soa: tuple[str, ...]
    commit: str = COMMITS[0]

    def __str__(self) -> str:
        blocks = f" {self.variant}" if self.variant else ""
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
    )
