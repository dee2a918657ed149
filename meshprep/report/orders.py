"""The figures of the order of points: of the input, of every method tried, and of the plan."""

from collections.abc import Sequence

from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.metrics import OrderMetrics, TriedOrder

from .table import Table, figure

# Label, the target whose loops want it small, and the name of the figure.
FIGURES = (
    ("bandwidth", "cpu", "bandwidth"),
    ("profile", "cpu", "profile"),
    ("rms wavefront", "cpu", "rms_wavefront"),
    ("128-byte lines a loop", "gpu", "lines"),
)
_DECIDES = {"cpu": FIGURES[0], "gpu": FIGURES[3]}


def order_tables(order: OrderMetrics, full: bool = True) -> list[Table]:
    """The order of the leading points before and after; with several methods, each of them.

    The final figures (missing in plans of older versions) are those after points were grouped by
    blocks, where they were: compact blocks raise the figures that a CPU's streaming loops want
    small, and lower those of a GPU's blocks.
    """
    applied = "" if order.applied else " (not applied)"
    how = f"{order.method}{applied}, target {order.target}"
    sides = (order.before, order.after, order.final)
    rows = [
        (f"{label} ({target})", *(figure(getattr(side, name, None)) for side in sides))
        for label, target, name in _figures(order, full)
    ]
    header = ("", "before: input order", f"after: {order.method}", "final: in the plan")
    tables = [Table(f"order of {order.set}: {how}", header, rows)]
    return [*tables, _candidates(order.candidates)] if order.asked == "auto" else tables


def _figures(order: OrderMetrics, full: bool) -> list[tuple[str, str, str]]:
    """All of them, or the one that decides for the target of the order."""
    return [one for one in FIGURES if full or one == _DECIDES[order.target]]


def order_comparison(names: Sequence[str], plans: Sequence[Plan], full: bool = True) -> list[Table]:
    """The final figures of several plans side by side; none where no plan has them.

    The input's come first, where they are the same for all plans.
    """
    orders = [plan.metrics.locality for plan in plans]
    final = [order.final if order else None for order in orders]
    if not any(final):
        return []
    several = len({order.target for order in orders if order}) > 1
    header = [
        " ".join([name, *_untold(name, order, several)]) if order and order.final else name
        for name, order in zip(names, orders, strict=True)
    ]
    shown = [f for f in FIGURES if full or any(f in _figures(x, False) for x in orders if x)]
    before = [_common(orders, name) for _, _, name in shown]
    told = any(value is not None for value in before)
    rows = [
        (
            f"{label} ({target})",
            *([figure(value)] * told),
            *(figure(getattr(found, name, None)) for found in final),
        )
        for (label, target, name), value in zip(shown, before, strict=True)
    ]
    return [Table("order of the leading points", ("", *["input order"] * told, *header), rows)]


def _common(orders: Sequence[OrderMetrics | None], name: str) -> float | None:
    """A figure of the input; None where plans differ: lines depend on the length of runs."""
    found = {getattr(order.before, name) for order in orders if order}
    return found.pop() if len(found) == 1 else None


def _untold(name: str, order: OrderMetrics, several: bool) -> list[str]:
    """The order, and the target where there are several, unless the plan's name says them."""
    kept = [] if order.applied or order.method == "none" else ["(not applied)"]
    words = [order.method, *kept, *([order.target] * several)]
    return [word for word in words if word not in name.split()]


def _candidates(candidates: Sequence[TriedOrder]) -> Table:
    header = ("method", "seconds", *(label for label, _, _ in FIGURES), "")
    rows = [
        (
            c.method,
            figure(None if c.bandwidth is None else c.seconds),
            *(figure(getattr(c, name)) for _, _, name in FIGURES),
            c.note or ("the best" if i == 0 else ""),
        )
        for i, c in enumerate(candidates)
    ]
    return Table("methods tried, the best first", header, rows)
