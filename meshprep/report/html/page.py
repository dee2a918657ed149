"""The whole report as one page: verdicts, tables, figures; no address outside itself."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..compare import Column, Comparison
from ..meshes import NamedMesh
from ..render import render
from ..verdict import outcome
from . import chains, comparisons, details, matrices
from .details import ShownVariant
from .parts import Section, count, distinct

# Loops of plans that get pictures, and verdicts shown without being asked for.
MOST_PICTURED, MOST_VERDICTS = 3, 6


@dataclass(frozen=True)
class Sections:
    """What a page shows."""

    loops: Sequence[Section]  # a comparison of all plans, loop by loop
    plans: Sequence[Section]  # each loop of each plan, the first three with pictures
    further: Sequence[Section]  # matrices and chains

    def all(self) -> list[Section]:
        return [*self.loops, *self.plans, *self.further]


def sections_of(comparison: Comparison, meshes: Sequence[NamedMesh] = ()) -> Sections:
    """All figures and tables of loops, as :func:`html_report` shows them. O(elements + pixels)."""
    shown = _shown_variants(comparison, comparison.columns())
    loops = [
        comparisons.section(comparison, group, [comparison.loop_table(group)])
        for group in comparison.by_loop()
    ]
    plans = [
        details.section(one, meshes, pictures=number < MOST_PICTURED)
        for number, one in enumerate(shown)
    ]
    further = [
        *matrices.sections(comparison.names, comparison.plans),
        *chains.sections(comparison.names, comparison.plans, meshes),
    ]
    made, ends = distinct([*loops, *plans, *further]), (len(loops), len(loops) + len(plans))
    return Sections(made[: ends[0]], made[ends[0] : ends[1]], made[ends[1] :])


def html_report(
    comparison: Comparison,
    meshes: Sequence[NamedMesh] = (),
    *,
    title: str = "",
    best: tuple[str, str] | None = None,
    sections: Sections | None = None,
) -> str:
    """The report as HTML that needs no other file and no network.

    ``meshes`` are those of the plans, as read or renumbered; a plan holds no coordinates. Where the
    mesh of a plan is not among them, the page says so in place of its pictures. Without ``title``
    the page names the plans. ``best`` is the name of the best plan and what it is best in: its
    verdicts alone stand in the open. ``sections`` are what :func:`sections_of` has made of the
    same. O(elements + pixels) for each of the first three loops that have arrays; others get no
    pictures.
    """
    sections = sections_of(comparison, meshes) if sections is None else sections
    title = title or _title(comparison)
    columns = comparison.columns()
    shown_variants = _shown_variants(comparison, columns)
    shown, more = _verdicts(_first_drawn(_nameless(columns), shown_variants), best)
    made = sorted({str(p.about.get("created", ""))[:10] for p in comparison.plans} - {""})
    return render(
        "page.html",
        title=title,
        assumed=comparison.assumptions,
        made=list(dict.fromkeys((made[0], made[-1]))) if made else [],
        best=best,
        n_plans=count(len(comparison.plans), "plan"),
        cards=list(map(_card, shown)),
        more=list(map(_card, more)),
        n_more=count(len(more), "more verdict"),
        loops=sections.loops,
        plans=sections.plans,
        further=sections.further,
        pictured=MOST_PICTURED,
        others=[*comparison.order_tables(), comparison.seconds_table()],
        about=_about(comparison),
    )


def _shown_variants(comparison: Comparison, columns: Sequence[Column]) -> list[ShownVariant]:
    """The columns whose plans have arrays, the plans in their order."""
    found = []
    for number, (name, plan) in enumerate(zip(comparison.names, comparison.plans, strict=True)):
        own = [c for c in columns if c.plan == name and c.variant in plan[c.loop].variants]
        alone = len(comparison.plans) == 1
        found += [ShownVariant(plan, column, number + 1, alone) for column in own]
    return found


def _title(comparison: Comparison) -> str:
    names = ", ".join(comparison.names[:3])
    more = len(comparison.names) - 3
    return f"meshprep report: {names}{f' and {more} more' if more > 0 else ''}"


def _first_drawn(columns: Sequence[Column], shown_variants: Sequence[ShownVariant]) -> list[Column]:
    """Those with pictures first, where there are more than are shown."""
    if len(columns) <= MOST_VERDICTS:
        return list(columns)
    drawn = {shown_variant.column.plan for shown_variant in shown_variants}
    return sorted(columns, key=lambda column: column.plan not in drawn)


def _nameless(columns: Sequence[Column]) -> list[Column]:
    """Columns of one plan without its name, which is the title; those of several as they are."""
    alone = len({c.plan for c in columns}) == 1
    return [replace(c, plan="") if alone else c for c in columns]


def _verdicts(
    columns: Sequence[Column], best: tuple[str, str] | None
) -> tuple[list[Column], list[Column]]:
    """The columns whose verdicts stand in the open, and the others."""
    own = [c for c in columns if best and c.plan in (best[0], "")]
    # of a loop cut in several ways the way that a solver gets unless it asks for another
    shown = (own or [c for c in columns if c.chosen])[:MOST_VERDICTS]
    return shown, [c for c in columns if c not in shown]


def _card(column: Column) -> dict[str, Any]:
    """The words of a verdict; the reuse factors stand in large figures, and not again below."""
    before, after = column.before, column.after
    old, new = before.reuse if before else None, after.reuse
    first, *rest = column.verdict.split("; ")
    if old is not None and new is not None and first == f"reuse {old:.2f} -> {new:.2f}":
        first, *rest = rest
    return {
        "outcome": outcome(before, after),
        "where": _where(column),
        "was": "" if old is None else f"{old:.2f}",
        "reuse": "" if new is None else f"{new:.2f}",
        "none": "no maps" if after.blocks else "no elements",
        "first": first,
        "rest": rest,
    }


def _where(column: Column) -> str:
    """Plan, loop, partitioner and variant, none twice."""
    how = f"{column.after.partitioner} {column.variant}"
    if column.plan.endswith(how):
        return f"{column.plan}: {column.loop}"
    named = f"{column.plan}: " if column.plan else ""
    return f"{named}{column.loop}, {how}"


def _about(comparison: Comparison) -> str:
    about = [
        {"plan": name, "about": dict(plan.about), "options": dict(plan.options)}
        for name, plan in zip(comparison.names, comparison.plans, strict=True)
    ]
    return json.dumps(about, indent=1, default=str)
