"""Whether the figures of a plan, JSON of any shape in its file, are those that meshprep writes.

``metrics``, ``about`` and ``options`` say nothing to a solver, so the runtime takes any JSON there.
Whoever shows the figures checks them once, with :func:`check_figures`. Keys that nothing shows may
hold anything that can be printed as JSON.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from meshprep_runtime.errors import PlanError
from meshprep_runtime.plan import Plan

Shape = Callable[[Any, str], None]
# Far more than meshprep writes, far less than what Python can walk through.
_DEEPEST = 50


class _Wrong(Exception):
    """Where in the figures, and what is wrong there."""


def check_figures(plan: Plan, where: str) -> None:
    """Raise PlanError unless metrics, about and options have the shape of a plan's.

    ``where`` names the plan in the message. O(figures).
    """
    try:
        for name in ("about", "options", "metrics"):
            _printable(getattr(plan, name), name, 0)
        _fields(creator=_text, created=_text)(plan.about, "about")
        _fields(partition_options=_maybe(_each(_anything)))(plan.options, "options")
        _fields(seconds=_each(_number), locality=_maybe(_lead), loops=_each(_each(_sides)))(
            plan.metrics, "metrics"
        )
        for loop, variants in plan.metrics.get("loops", {}).items():
            known = plan.loops[loop].variants if loop in plan.loops else {}
            if not variants or not variants.keys() <= known.keys():
                raise _Wrong(f"metrics/loops/{loop} does not match the variants of a loop")
    except _Wrong as error:
        raise PlanError(
            f"{where}: the plan's figures are not those of a plan ({error}): make the plan anew"
        ) from None


def _printable(value: Any, where: str, depth: int) -> None:
    """JSON values that can be printed, in text and as JSON again."""
    if depth > _DEEPEST:
        raise _Wrong(f"{where} is nested too deeply")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _text(key, f"a name in {where}")
            _printable(inner, f"{where}/{key}", depth + 1)
    elif isinstance(value, list | tuple):
        for i, inner in enumerate(value):
            _printable(inner, f"{where}/{i}", depth + 1)
    elif isinstance(value, str):
        _text(value, where)
    elif isinstance(value, float) and not math.isfinite(value):
        raise _Wrong(f"{where} is {value}")


def _anything(value: Any, where: str) -> None:
    pass


def _text(value: Any, where: str) -> None:
    if not isinstance(value, str) or not value.isprintable():
        raise _Wrong(f"{where} is no printable text")


def _flag(value: Any, where: str) -> None:
    if not isinstance(value, bool):
        raise _Wrong(f"{where} is neither true nor false")


def _number(value: Any, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        raise _Wrong(f"{where} is no number from 0 to 1e18")


def _positive(value: Any, where: str) -> None:
    _number(value, where)
    if value == 0:
        raise _Wrong(f"{where} is 0")


def _whole(value: Any, where: str) -> None:
    _number(value, where)
    if not isinstance(value, int):
        raise _Wrong(f"{where} is no whole number")


def _maybe(shape: Shape) -> Shape:
    def check(value: Any, where: str) -> None:
        if value is not None:
            shape(value, where)

    return check


def _each(shape: Shape) -> Shape:
    def check(value: Any, where: str) -> None:
        if not isinstance(value, Mapping):
            raise _Wrong(f"{where} is no JSON object")
        for key, inner in value.items():
            shape(inner, f"{where}/{key}")

    return check


def _list(shape: Shape) -> Shape:
    def check(value: Any, where: str) -> None:
        if not isinstance(value, list | tuple):
            raise _Wrong(f"{where} is no list")
        for i, inner in enumerate(value):
            shape(inner, f"{where}/{i}")

    return check


def _fields(needed: Mapping[str, Shape] | None = None, **optional: Shape) -> Shape:
    """An object with these keys; it may have others, and may lack the optional ones."""

    def check(value: Any, where: str) -> None:
        _each(_anything)(value, where)
        for key, shape in (needed or {}).items():
            if key not in value:
                raise _Wrong(f"{where}/{key} is missing")
            shape(value[key], f"{where}/{key}")
        for key in optional.keys() & value.keys():
            optional[key](value[key], f"{where}/{key}")

    return check


_NUMBERS = _each(_maybe(_number))


def _histogram(value: Any, where: str) -> None:
    _fields({"width": _positive, "bins": _list(_whole), "blocks": _list(_whole)})(value, where)
    if len(value["bins"]) != len(value["blocks"]) or sorted(set(value["bins"])) != value["bins"]:
        raise _Wrong(f"{where}/bins do not ascend, or are not as many as the blocks")


_OF_A_VARIANT = _fields(
    {
        "reuse": _maybe(_positive),
        "accesses": _number,
        "loads": _number,
        "block_size": _whole,
        "blocks": _whole,
        "block_colours": _whole,
        "partitioner": _text,
        "thread_colours": _NUMBERS,
    },
    target=_text,
    exclusive_share=_maybe(_number),
    useful_bytes=_number,
    block_elements=_NUMBERS,
    staged_bytes=_NUMBERS,
    block_colour_blocks=_NUMBERS,
    block_colour_sizes=_list(_whole),
    warp_efficiency=_NUMBERS,
    aos=_each(_NUMBERS),
    soa=_each(_NUMBERS),
    partition=_fields(seconds=_maybe(_number), scattered=_maybe(_number)),
    histograms=_each(_histogram),
    traffic=_each(_fields({"read": _number, "written": _number})),
)


def _of_a_variant(value: Any, where: str) -> None:
    _OF_A_VARIANT(value, where)
    if value["block_size"] == 0:
        raise _Wrong(f"{where}/block_size is 0")
    if value["reuse"] is None:
        return
    # Where points are loaded there is something to divide by.
    _positive(value["loads"], f"{where}/loads")
    _positive(value["thread_colours"].get("mean"), f"{where}/thread_colours/mean")
    for layout, moved in value.get("traffic", {}).items():
        _positive(moved["read"] + moved["written"], f"{where}/traffic/{layout}")


def _sides(value: Any, where: str) -> None:
    """Figures of a variant before and after."""
    _fields({"before": _maybe(_of_a_variant), "after": _of_a_variant})(value, where)
    before, after = value["before"], value["after"]
    if before is not None and (before["reuse"] is None) != (after["reuse"] is None):
        raise _Wrong(f"{where} has a reuse factor on one side only")


_ONE_LEAD = _fields(
    {
        "set": _text,
        "method": _text,
        "applied": _flag,
        "reason": _text,
        "target": _text,
        "asked": _text,
        "before": _NUMBERS,
        "after": _NUMBERS,
        "candidates": _list(_fields({"method": _text, "seconds": _number}, note=_text)),
    },
    final=_NUMBERS,
)


def _lead(value: Any, where: str) -> None:
    """Figures of an order of points, and of further ones."""
    _ONE_LEAD(value, where)
    _fields(more=_list(_ONE_LEAD))(value, where)
    for one in (value, *value.get("more", ())):
        for candidate in one["candidates"]:
            numbers = {k: v for k, v in candidate.items() if k not in ("method", "note")}
            _NUMBERS(numbers, f"{where}/candidates")
