"""What a plan did to a loop, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Values = Mapping[str, Any]
# A reuse factor that changes by less than this share has not changed.
ALIKE = 0.02


def verdict(before: Values | None, after: Values) -> str:
    """One line: did the plan help this loop, by how much, and at what price?

    Parameters
    ----------
    before, after : mapping or None
        What ``metrics.variant_metrics`` gives; ``before`` is None where the blocks of the input
        order are too scattered to be staged at all.
    """
    new = after["reuse"]
    if new is None:
        return "nothing is reached through a map: no order changes what this loop loads"
    if before is None:
        return f"reuse {new:.2f}; blocks of the input order could not be staged at all"
    old = before["reuse"]
    if abs(new - old) <= ALIKE * old:
        return f"did not help: {_why(after)} (reuse {_change(old, new)})"
    if new < old:
        return f"made it worse: reuse {_change(old, new)}; keep the input order"
    parts = [f"reuse {_change(old, new)}", _fewer(before["loads"], after["loads"], "loads")]
    return "; ".join([*parts, *_traffic(before, after), *_price(before, after)])


def _why(after: Values) -> str:
    if after["partitioner"] == "contiguous":
        return "blocks are runs of an order no better than the input's"
    return "the input order was already as good"


def _traffic(before: Values, after: Values) -> list[str]:
    """What is predicted of the layout that suits the plan; nothing in plans of older versions."""
    if "traffic" not in before or "traffic" not in after:
        return []
    old, new = (min(sum(t.values()) for t in m["traffic"].values()) for m in (before, after))
    return [f"{_fewer(old, new, 'memory transactions')} predicted"] if new < old else []


def _price(before: Values, after: Values) -> list[str]:
    old, new = (m["thread_colours"]["mean"] for m in (before, after))
    return [f"for thread colours {_change(old, new)}"] if new > (1 + ALIKE) * old else []


def _fewer(old: float, new: float, what: str) -> str:
    """``2.7 times fewer loads``, or ``8 % fewer`` where that says more."""
    if old >= 1.5 * new:
        return f"{old / new:.1f} times fewer {what}"
    return f"{100 * (1 - new / old):.0f} % fewer {what}"


def _change(old: float, new: float) -> str:
    return f"{old:.2f} -> {new:.2f}"
