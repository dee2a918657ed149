"""What a plan did to a loop, in words."""

from collections.abc import Mapping

from meshprep_runtime.cuda.strategies import COMMITS
from meshprep_runtime.plan import LoopPlan, Plan
from meshprep_runtime.plan.metrics import VariantMetrics
from meshprep_runtime.plan.tuned import Trial

from ..metrics.cost import Cost, Measured, cost_of
from .table import figure, two_digits

# A reuse factor that changes by less than this share has not changed.
ALIKE = 0.02
BETTER, SAME, WORSE = "better", "same", "worse"


def outcome(before: VariantMetrics | None, after: VariantMetrics) -> str:
    """What became of the reuse factor: ``better``, ``same`` or ``worse``.

    Of a loop without maps, and of an input order that cannot be staged, ``same`` and ``better``.
    """
    new = after.reuse
    old = before.reuse if before else None
    if new is None or old is None:
        return SAME if new is None else BETTER
    if abs(new - old) <= ALIKE * old:
        return SAME
    return BETTER if new > old else WORSE


def verdict(before: VariantMetrics | None, after: VariantMetrics) -> str:
    """One line: did the plan help this loop, by how much, and at what price?

    ``before`` is None where the blocks of the input order are too scattered to be staged.
    """
    new = after.reuse
    if new is None and after.blocks == 0:
        return "there is nothing to do: the loop has no elements"
    if new is None:
        return "nothing is reached through a map: no order changes what this loop loads"
    if before is None or before.reuse is None:
        return f"reuse {new:.2f}; blocks of the input order could not be staged at all"
    old = before.reuse
    found = outcome(before, after)
    if found == SAME:
        return f"did not help: {_why(after)} (reuse {_change(old, new)})"
    if found == WORSE:
        return f"made it worse: reuse {_change(old, new)}"
    parts = [f"reuse {_change(old, new)}", _fewer(before.loads, after.loads, "loads")]
    old, new = before.thread_colours.mean or 0.0, after.thread_colours.mean or 0.0
    if new > (1 + ALIKE) * old:
        parts.append(f"price: thread colours a block {_change(old, new)}")
    return "; ".join(parts)


HERE = "on one thread of this CPU"


def conclusion(plan: Plan, times: Mapping[str, Measured], where: str = HERE) -> str:
    """One sentence: what preparing gained and cost, and for whom it pays.

    ``times`` are those of calls of loops, measured ``where``; without any the blocks alone speak.
    """
    cost = cost_of(plan, times)
    price = f"preparing took {_seconds(cost.seconds)}" if cost.seconds else ""
    parts = [_gain(cost, where, price) if cost.timed else price, *_on_a_gpu(plan)]
    if not cost.timed:
        parts.append("what a call saves was not measured")
    text = "; ".join(filter(None, parts))
    return f"{text[:1].upper()}{text[1:]}."


def _gain(cost: Cost, where: str, price: str) -> str:
    """What calls take before and after, and when that repays the preparation."""
    many = cost.loops > 1
    some = f"{cost.timed} of " if cost.timed < cost.loops else ""
    whose = f"{some}its {cost.loops} loops move their" if many else "its loop moves its"
    before, after = (f"{1e3 * t:.3g} ms" for t in (cost.before, cost.before - cost.saved))
    if not cost.saved:
        head, tail = "does not pay", f"{after} a call in either order"
    else:
        tail = f"{after} a call in place of {before}"
        factor = cost.before / (cost.before - cost.saved)
        tail += (
            f", {factor:.1f} times as fast" if factor >= 1 else f", {1 / factor:.1f} times as long"
        )
        calls = f"pays after {_about(cost.calls or 0)} calls" if price else "pays"
        head = calls if factor >= 1 else "does harm, so keep the input order,"
    told = f"{head} {where}: {whose} data in {tail}"
    return f"{told}, and {price}" if price else told


def _on_a_gpu(plan: Plan) -> list[str]:
    """What blocks are predicted to move on a GPU beside the input order; nothing for a CPU."""
    sides = [(s.before, s.after) for s in plan.metrics.sides() if s.before]
    known = [pair for pair in sides if pair[1].target == "gpu" and all(map(sectors, pair))]
    before, after = (sum(sectors(pair[i]) or 0 for pair in known) for i in range(2))
    if not known:
        return []
    most, least, how = max(before, after), min(before, after), "more" if after > before else "fewer"
    told = _fewer(most, least, "memory transactions", how)
    return [f"on a GPU {told} are predicted ('meshprep tune --device gpu' measures)"]


def sectors(found: VariantMetrics) -> int | None:
    """The sectors that a call moves on a GPU, in the better layout; None where nobody counted."""
    return min((t.total for t in found.traffic.values()), default=None)


def tuned(plan: LoopPlan) -> str:
    """What `meshprep tune` found for a loop, machine by machine; empty where it was not asked."""
    found = []
    for one in plan.tuned:
        if one.measured:
            alike = f", {len(one.equals)} others as fast within the noise" if one.equals else ""
            call = f"{1e3 * one.best.seconds:.3g} ms a call"
            found.append(f"tuned for {one.machine}: {_way(one.best)}, {call}{alike}")
    return "; ".join(found)


def _way(trial: Trial) -> str:
    layout = f"SoA {' '.join(trial.soa)}" if trial.soa else "AoS"
    commit = f"commit {trial.commit}" if trial.commit != COMMITS[0] else ""
    threads = f"by {trial.threads} threads" if trial.threads else ""
    return " ".join(filter(None, [trial.strategy, trial.variant, threads, commit, layout]))


def _why(after: VariantMetrics) -> str:
    if after.blocks == 1:
        return "one block holds the whole loop"
    if after.partitioner == "contiguous":
        return "blocks are runs of an order no better than the input's"
    return "the input order was already as good"


def _fewer(large: float, small: float, what: str, how: str = "fewer") -> str:
    """``2.7 times fewer loads``, or ``8 % fewer`` where that says more."""
    if large >= 1.5 * small:
        return f"{large / small:.1f} times {'as many' if how == 'more' else how} {what}"
    share = 1 - small / large if how == "fewer" else large / small - 1
    return f"{100 * share:.0f} % {how} {what}" if share >= 0.005 else f"hardly {how} {what}"


def _change(old: float, new: float) -> str:
    return f"{old:.2f} -> {new:.2f}"


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value >= 0.1 else f"{figure(value)} s"


def _about(count: int) -> str:
    return f"{'about ' if count >= 100 else ''}{two_digits(count):,}"
