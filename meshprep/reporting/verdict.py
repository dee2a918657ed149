"""What a plan did to a loop, in words."""

from collections.abc import Mapping

from meshprep_runtime.cuda.strategies import COMMITS
from meshprep_runtime.plan import LoopPlan, Plan
from meshprep_runtime.plan.metrics import VariantMetrics
from meshprep_runtime.plan.tuned import Trial

from ..metrics.cost import Cost, Measured, TimingOutcome, cost_of
from .table import figure, two_digits

# A reuse factor that changes by less than this share has not changed.
ALIKE = 0.02
BETTER, SAME, WORSE = "better", "same", "worse"


def outcome(before: VariantMetrics | None, after: VariantMetrics) -> str:
    """Whether the reuse factor is ``better``, ``same`` or ``worse``.

    A loop without maps is ``same``; what the input order could not stage is ``better``.
    """
    new = after.reuse
    if new is None:
        return SAME
    if before is None or before.reuse is None:
        return BETTER
    old = before.reuse
    if abs(new - old) <= ALIKE * old:
        return SAME
    if new > old:
        return BETTER
    return WORSE


def verdict(before: VariantMetrics | None, after: VariantMetrics) -> str:
    """One line: did the plan help this loop, by how much, and at what price?

    ``before`` is None where the blocks of the input order are too scattered to be staged.
    """
    # A loop without elements or without maps has nothing to gain.
    new = after.reuse
    if new is None and after.blocks == 0:
        return "there is nothing to do: the loop has no elements"
    if new is None:
        return "nothing is reached through a map: no order changes what this loop loads"
    if before is None or before.reuse is None:
        return f"reuse {new:.2f}; blocks of the input order could not be staged at all"
    # Tell the reuse first, which a plan is made to raise.
    old = before.reuse
    result = outcome(before, after)
    if result == SAME:
        return f"did not help: {_why_it_did_not_help(after)} (reuse {_change(old, new)})"
    if result == WORSE:
        return f"made it worse: reuse {_change(old, new)}"
    parts = [f"reuse {_change(old, new)}", _fewer(before.loads, after.loads, "loads")]
    # Better locality may cost more colours, which run one after the other.
    old_colours = before.thread_colours.mean or 0.0
    new_colours = after.thread_colours.mean or 0.0
    if new_colours > (1 + ALIKE) * old_colours:
        colours = _change(old_colours, new_colours)
        parts.append(f"price: thread colours a block {colours}")
    return "; ".join(parts)


HERE = "on one thread of this CPU"


def conclusion(plan: Plan, times: Mapping[str, Measured], where: str = HERE) -> str:
    """One sentence: what preparing gained and cost, and for whom it pays.

    ``times`` are those of calls of loops, measured ``where``; without any the sentence is
    about the blocks alone.
    """
    cost = cost_of(plan, times)
    price = ""
    if cost.seconds:
        price = f"preparing took {_seconds(cost.seconds)}"
    if cost.measured:
        parts = [_gain(cost, cost.measured, where, price), *_on_a_gpu(plan)]
    else:
        parts = [price, *_on_a_gpu(plan), "what a call saves was not measured"]
    text = "; ".join(filter(None, parts))
    return f"{text[:1].upper()}{text[1:]}."


def _gain(cost: Cost, measured: Measured, where: str, price: str) -> str:
    """What calls take before and after, and when that repays the preparation."""
    # The loops that were timed.
    whose = "its loop moves its"
    if cost.loops > 1:
        timed = f"{cost.timed} of " if cost.timed < cost.loops else ""
        whose = f"{timed}its {cost.loops} loops move their"

    # The fastest calls of both orders.
    before = f"{1e3 * measured.before.least:.3g} ms"
    after = f"{1e3 * measured.after.least:.3g} ms"
    times = f"{after} a call in place of {before}"
    match measured.outcome:
        case TimingOutcome.FASTER:
            head = "pays"
            if price:
                head = f"pays after {_rounded_count(cost.calls or 0)} calls"
            tail = f"{times}, {measured.factor:.1f} times as fast"
        case TimingOutcome.SLOWER:
            head = "does harm, so keep the input order,"
            tail = f"{times}, {1 / measured.factor:.1f} times as long"
        case TimingOutcome.ALIKE:
            head = "makes no difference"
            tail = f"{before} a call in either order"
        case TimingOutcome.NOISY:
            low, high = measured.bounds
            head = f"too noisy to tell ({low:.1f} to {high:.1f} times as fast)"
            tail = f"{times}; try again when the machine has no other work"
    gain = f"{head} {where}: {whose} data in {tail}"
    if price:
        return f"{gain}, and {price}"
    return gain


def _on_a_gpu(plan: Plan) -> list[str]:
    """The prediction for a GPU, compared with the input order; nothing for a CPU."""
    before = 0
    after = 0
    for sides in plan.metrics.sides():
        if not sides.before or sides.after.target != "gpu":
            continue
        moved_before = sectors(sides.before)
        moved_after = sectors(sides.after)
        # only loops with both figures count
        if moved_before and moved_after:
            before += moved_before
            after += moved_after
    if not before:
        return []
    # Compare the transactions of all loops together.
    change = _fewer(
        large=max(before, after),
        small=min(before, after),
        what="memory transactions",
        how="more" if after > before else "fewer",
    )
    return [f"on a GPU {change} are predicted ('meshprep tune --device gpu' measures)"]


def sectors(metrics: VariantMetrics) -> int | None:
    """Sectors that a call moves on a GPU in the better layout; None where not counted."""
    return min((traffic.total for traffic in metrics.traffic.values()), default=None)


def tuned(plan: LoopPlan) -> str:
    """The results of ``meshprep tune`` for a loop, machine by machine; or nothing."""
    texts = []
    for result in plan.tuned:
        if not result.measured:
            continue
        way = _way(result.best)
        text = (
            f"tuned for {result.machine}: {way}, {1e3 * result.best.seconds:.3g} ms a call"
        )
        if result.occupancy is not None:
            text += f", occupancy {result.occupancy:.2f}"
        if result.equals:
            text += f", {len(result.equals)} others as fast within the noise"
        texts.append(text)
    return "; ".join(texts)


def _way(trial: Trial) -> str:
    """A way to run a loop: strategy, variant, threads, commit and layout."""
    words = [trial.strategy, trial.variant]
    if trial.threads:
        words.append(f"by {trial.threads} threads")
    if trial.commit != COMMITS[0]:
        words.append(f"commit {trial.commit}")
    if trial.soa:
        words.append(f"SoA {' '.join(trial.soa)}")
    else:
        words.append("AoS")
    return " ".join(filter(None, words))


def _why_it_did_not_help(after: VariantMetrics) -> str:
    """Why the reuse factor stayed, in words."""
    if after.blocks == 1:
        return "one block holds the whole loop"
    if after.partitioner == "contiguous":
        return "blocks are runs of an order no better than the input's"
    return "the input order was already as good"


def _fewer(large: float, small: float, what: str, how: str = "fewer") -> str:
    """``2.7 times fewer loads``, or ``8 % fewer loads`` where the factor is near 1."""
    if large >= 1.5 * small:
        factor_of = "as many" if how == "more" else how
        return f"{large / small:.1f} times {factor_of} {what}"
    if how == "fewer":
        share = 1 - small / large
    else:
        share = large / small - 1
    if share >= 0.005:
        return f"{100 * share:.0f} % {how} {what}"
    return f"hardly {how} {what}"


def _change(old: float, new: float) -> str:
    return f"{old:.2f} -> {new:.2f}"


def _seconds(value: float) -> str:
    if value >= 0.1:
        return f"{value:.1f} s"
    return f"{figure(value)} s"


def _rounded_count(count: int) -> str:
    """A count, with "about" where it is rounded."""
    if count >= 100:
        return f"about {two_digits(count):,}"
    return f"{count:,}"
