"""Whether what a plan tells of itself can be shown, in text and as JSON again.

The types of ``metrics`` are checked when a plan is read. ``about`` and ``options`` are any JSON,
whoever shows them checks them once, with :func:`check_printable`. Texts may be any: what shows
them makes them printable (:func:`meshprep_runtime.errors.printable`).
"""

import math
from collections.abc import Mapping
from typing import Any

from meshprep_runtime.errors import PlanError
from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.records import Record, from_json, wrong_figures

# Far more than meshprep writes, far less than what Python can walk through.
_DEEPEST = 50


def check_printable(plan: Plan, where: str) -> None:
    """Raise PlanError, with ``where``, unless metrics, about and options can be shown."""
    try:
        _check(plan.about, "about", 0)
        _check(plan.options, "options", 0)
        _check(plan.metrics, "metrics", 0)
        for name in ("creator", "created"):
            from_json(str, plan.about.get(name, ""), f"about/{name}")
        if not isinstance(plan.options.get("partition_options") or {}, Mapping):
            raise wrong_figures("options/partition_options is no JSON object")
    except PlanError as error:
        raise PlanError(f"{where}: {error}") from None


def _check(value: Any, where: str, depth: int) -> None:
    if depth > _DEEPEST:
        raise wrong_figures(f"{where} is nested too deeply")
    if isinstance(value, Record):
        value = vars(value)
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _check(key, f"a name in {where}", depth)
            _check(inner, f"{where}/{key}", depth + 1)
    elif isinstance(value, list | tuple):
        for i, inner in enumerate(value):
            _check(inner, f"{where}/{i}", depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise wrong_figures(f"{where} is {value}")
