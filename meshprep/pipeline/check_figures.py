"""The figures that a plan records, computed anew from its arrays, and where they differ."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from math import isclose
from typing import Any

import numpy as np

from meshprep_runtime.maps import SetMap
from meshprep_runtime.plan import LoopPlan, Plan
from meshprep_runtime.plan.metrics import BeforeAfter, OrderFigures, OrderMetrics
from meshprep_runtime.plan.records import Record

from ..metrics.measures import measure
from ..reorder.figures import envelope_and_wavefront
from .input_order import input_maps, input_reach
from .variants import baseline

# What the input order is worth follows from the plan but for its colours, which another version
# may find otherwise, and what depends on them.
_OF_COLOURS = {
    "thread_colours",
    "block_colours",
    "block_colour_blocks",
    "block_colour_sizes",
    "warp_efficiency",
    "traffic",
}
# Of sums of floats the last digits may differ between processors.
_DIGITS = 1e-9


def wrong_figures(plan: Plan) -> list[str]:
    """Where a proved plan says other figures than its arrays give, one line each.

    Compared are the figures of every variant, those of the input order without its colours, and
    bandwidth, profile and wavefront of the orders before and now. Seconds, what other methods gave
    and notes of partitioners do not follow from a plan. As long as the stage "figures" of a
    preparation.
    """
    findings = list[str]()
    for name, loop in plan.metrics.loops.items():
        for variant, sides in loop.variants.items():
            findings += _of_variant(plan, plan[name], variant, sides)
    for order in plan.metrics.orders:
        findings += _of_order(plan, order)
    return findings


def _of_variant(plan: Plan, loop_plan: LoopPlan, name: str, sides: BeforeAfter) -> Iterator[str]:
    where = f"loop '{loop_plan.loop.name}', variant '{name}'"
    variant = loop_plan.variants[name]
    for path, said, found in _unlike("after", sides.after, measure(loop_plan, variant)):
        yield f"{where}: the figure {path} is {said}, but the plan gives {found}"
    if sides.before is not None:
        reached = input_reach(plan, loop_plan)
        before = baseline(loop_plan.loop, *reached, variant.block_size)
        for path, said, found in _unlike("before", sides.before, before, _OF_COLOURS):
            yield f"{where}: the figure {path} is {said}, but the input order gives {found}"


def _of_order(plan: Plan, order: OrderMetrics) -> Iterator[str]:
    """Of an order of points, by the map of the first loop that leads to them."""
    leads = (p for p in plan.loops.values() if p.loop.leading_map is not None)
    leading = next((p for p in leads if p.maps[str(p.loop.leading_map)].to_set == order.set), None)
    if leading is None:
        yield f"the order of '{order.set}' has figures, but no loop of the plan leads to that set"
        return
    name = str(leading.loop.leading_map)
    now, before = leading.maps[name], input_maps(plan, leading)[name]
    for label, m, said in (("before", before, order.before), ("final", now, order.final)):
        if said is None:
            continue
        bandwidth, profile, wavefront = envelope_and_wavefront(_points(m), plan.sizes[order.set])
        found = OrderFigures(bandwidth, profile, wavefront, said.lines)
        for path, own, other in _unlike(label, said, found):
            yield f"order of '{order.set}': the figure {path} is {own}, but the map gives {other}"


def _points(m: SetMap) -> Any:
    """The points of each row; an element of a map into its own set stands among them."""
    own = np.arange(m.size, dtype=np.int32)
    return np.column_stack([own, m.table]) if m.from_set == m.to_set else m.table


def _unlike(
    path: str, said: Any, found: Any, left_out: set[str] | frozenset[str] = frozenset()
) -> Iterator[tuple[str, Any, Any]]:
    """Path and values of each figure that differs; what a plan does not say differs in nothing."""
    if said is None or said == () or said == {}:
        return
    if isinstance(said, Record) and isinstance(found, Record):
        names = {one.name for one in fields(said)} - {"other", "partition"} - left_out
        for name in sorted(names):
            own = getattr(said, name), getattr(found, name)
            yield from _unlike(f"{path}/{name}", *own, left_out)
    elif isinstance(said, Mapping) and isinstance(found, Mapping):
        for name, value in said.items():
            yield from _unlike(f"{path}/{name}", value, found.get(name), left_out)
    elif not _same(said, found):
        yield path, said, found


def _same(said: Any, found: Any) -> bool:
    if isinstance(said, float) and isinstance(found, int | float):
        return isclose(said, found, rel_tol=_DIGITS)
    return bool(said == found)
