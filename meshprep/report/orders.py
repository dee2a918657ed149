"""The figures of the order of points: of the input, of every method tried, and of the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from meshprep_runtime.plan import Plan

from .table import Table, figure

Values = Mapping[str, Any]

# Label, the target whose loops want it small, and the name of the figure.
FIGURES = (
    ("bandwidth", "cpu", "bandwidth"),
    ("profile", "cpu", "profile"),
    ("rms wavefront", "cpu", "rms_wavefront"),
    ("128-byte lines a loop", "gpu", "lines"),
)
_DECIDES = {"cpu": FIGURES[0], "gpu": FIGURES[3]}


def order_tables(locality: Values, full: bool = True) -> list[Table]:
    """The order of the leading points before and after; with several methods, each of them.

    The final figures (missing in plans of older versions) are those after points were grouped by
    blocks, where they were: compact blocks raise the figures that a CPU's streaming loops want
    small, and lower those of a GPU's blocks.
    """
    applied = "" if locality["applied"] else " (not applied)"
    how = f"{locality['method']}{applied}, target {locality.get('target', 'gpu')}"
    sides = ("before", "after", "final")
    rows = [
        (f"{label} ({target})", *(figure(locality.get(side, {}).get(name)) for side in sides))
        for label, target, name in _figures(locality, full)
    ]
    header = ("", "before: input order", f"after: {locality['method']}", "final: in the plan")
    tables = [Table(f"order of {locality['set']}: {how}", header, rows)]
    if locality.get("asked") == "auto":
        tables.append(_candidates(locality["candidates"]))
    return tables


def _figures(locality: Values, full: bool) -> list[tuple[str, str, str]]:
    """All of them, or the one that decides for the target of the order."""
    target = locality.get("target", "gpu")
    return [one for one in FIGURES if full or one == _DECIDES[target]]


def order_comparison(names: Sequence[str], plans: Sequence[Plan], full: bool = True) -> list[Table]:
    """The final figures of several plans side by side; none where no plan has them."""
    found = [plan.metrics.get("locality") or {} for plan in plans]
    if not any("final" in x for x in found):
        return []
    header = [
        " ".join([name, *_untold(name, x)]) if "final" in x else name
        for name, x in zip(names, found, strict=True)
    ]
    rows = [
        (f"{label} ({target})", *(figure(x.get("final", {}).get(key)) for x in found))
        for label, target, key in FIGURES
        if full or any((label, target, key) in _figures(x, False) for x in found if x)
    ]
    return [Table("order of the leading points", ("", *header), rows)]


def _untold(name: str, found: Values) -> list[str]:
    """Order and target, where the plan's name does not say them already."""
    words = (found["method"] if found["applied"] else "input", found["target"])
    return [word for word in words if word not in name.split()]


def _candidates(candidates: Sequence[Values]) -> Table:
    header = ("method", "seconds", *(label for label, _, _ in FIGURES), "")
    rows = [
        (
            c["method"],
            figure(c["seconds"]) if "bandwidth" in c else "-",
            *(figure(c.get(name)) for _, _, name in FIGURES),
            c.get("note", "the best" if i == 0 else ""),
        )
        for i, c in enumerate(candidates)
    ]
    return Table("methods tried, the best first", header, rows)
