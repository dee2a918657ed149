"""What a plan did to a loop, in words."""

from collections.abc import Mapping

from meshprep_runtime.cuda.strategies import COMMITS
from meshprep_runtime.plan import LoopPlan, Plan
from meshprep_runtime.plan.metrics import VariantMetrics
from meshprep_runtime.plan.tuned import Trial

from ..metrics.cost import Cost, Measured
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


def verdict(before: VariantMetrics | None, after: VariantMetrics, *, repaid: bool = False) -> str:
    """One line: did the plan help this loop, by how much, and at what price?

    ``before`` is None where the blocks of the input order are too scattered to be staged.
    ``repaid`` says that calls take less time all the same.
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
        advice = "" if repaid else "; keep the input order"
        return f"made it worse: reuse {_change(old, new)}{advice}"
    parts = [f"reuse {_change(old, new)}", _fewer(before.loads, after.loads, "loads")]
    return "; ".join([*parts, *_traffic(before, after), *_price(before, after)])


def repayment(cost: Cost) -> str:
    """What preparing cost and after how many calls it pays; empty where neither is known."""
    if not cost.seconds:
        return ""
    cost_text = f"prepared in {_seconds(cost.seconds)}"
    if cost.saved is None:
        return f"{cost_text}; what a call saves was not measured"
    if cost.calls is None:
        return f"{cost_text}, which no number of calls repays, as measured"
    what = "calls" if cost.loops == 1 else "calls of all its loops"
    return f"{cost_text}, repaid after {_about(cost.calls)} {what}, as measured"


def measured_lines(plan: Plan, measured: Mapping[str, Measured]) -> list[str]:
    """What calls take before and after on this machine, and when the preparation is repaid.

    A line a loop; the repayment ends the line of a single loop, and is one of its own for several.
    """
    if not measured:
        return []
    lines = [f"loop {name}: moving its data takes {_calls(m)}" for name, m in measured.items()]
    saved = 1e3 * sum(m.saved for m in measured.values())
    price = repayment(Cost(sum(plan.metrics.seconds.values()), saved, len(measured)))
    if any(v.target == "gpu" for p in plan.loops.values() for v in p.variants.values()):
        price += "; on a GPU, ask 'meshprep tune --device gpu'"
    return [f"{lines[0]}; {price}"] if len(lines) == 1 else [*lines, f"all loops: {price}"]


def _calls(found: Measured) -> str:
    before, after = (f"{1e3 * t.median:.3g} ms" for t in (found.before, found.after))
    factor = found.after.times_as_fast(found.before)
    if factor is None:
        return f"{after} a call on one thread here, in either order"
    how = f"{factor:.1f} times as fast" if factor >= 1 else f"{1 / factor:.1f} times as long"
    return f"{before} a call in the input order, {after} in the plan's, on one thread here: {how}"


def against_metis(own: VariantMetrics, metis: VariantMetrics) -> str:
    """What METIS takes for the same loop and block size, and what it reaches."""
    took, ours = (v.partition.seconds if v.partition else None for v in (metis, own))
    seconds = "" if took is None else f"{_seconds(took)} for "
    beside = "" if ours is None or took is None else f" ({own.partitioner}: {_seconds(ours)})"
    return f"METIS needs {seconds}reuse {metis.reuse:.2f}{beside}"


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


def _traffic(before: VariantMetrics, after: VariantMetrics) -> list[str]:
    """What is predicted of the layout that suits the plan.

    Nothing in plans of older versions and for the CPU: transactions are those of a GPU's blocks.
    """
    if not before.traffic or not after.traffic or after.target == "cpu":
        return []
    old, new = (min(t.total for t in m.traffic.values()) for m in (before, after))
    if new == old:
        return []
    if new > old:
        return [f"but {_fewer(new, old, 'memory transactions', 'more')} predicted"]
    return [f"{_fewer(old, new, 'memory transactions')} predicted"]


def _price(before: VariantMetrics, after: VariantMetrics) -> list[str]:
    old, new = (m.thread_colours.mean or 0.0 for m in (before, after))
    return [f"price: thread colours a block {_change(old, new)}"] if new > (1 + ALIKE) * old else []


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
