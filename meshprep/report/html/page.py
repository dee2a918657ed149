"""The whole report as one page: verdicts, tables, figures; no address outside itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files
from typing import Any

from meshprep_runtime.errors import Progress

from ..compare import Column, Comparison
from ..meshes import NamedMesh
from ..table import Table
from ..verdict import outcome
from . import comparisons, details
from .details import ShownVariant
from .parts import Section, count

# Loops of plans that get pictures, and verdicts shown without being asked for.
MOST_PICTURED, MOST_VERDICTS = 3, 6


def html_report(
    comparison: Comparison,
    meshes: Sequence[NamedMesh] = (),
    progress: Progress = lambda done, total, name: None,
    *,
    title: str = "",
    best: tuple[str, str] | None = None,
) -> str:
    """The report as HTML that needs no other file and no network.

    Parameters
    ----------
    comparison : Comparison
    meshes : sequence of NamedMesh
        The meshes of the plans, as read or renumbered; a plan holds no coordinates. Where the mesh
        of a plan is not among them, the page says so in place of its pictures.
    progress : callable
        Called with the loops done, their number and what comes next.
    title : str
        Of the page; without one it names the plans.
    best : (str, str), optional
        Name of the best plan and what it is best in: its verdicts alone stand in the open.

    O(elements + pixels) for each of the first three loops that have arrays; others get no pictures.
    """
    title = title or _title(comparison)
    columns = comparison.columns()
    shown_variants = _shown_variants(comparison, columns)
    total = len(shown_variants) + 1
    sections: list[Section] = []
    for number, shown_variant in enumerate(shown_variants):
        progress(number, total, f"figures of {shown_variant.label}")
        drawn = number < MOST_PICTURED
        sections.append(details.section(shown_variant, meshes, pictures=drawn))
    progress(len(shown_variants), total, "page")
    loops = [
        comparisons.section(comparison, group, _scrolled(comparison.loop_tables(group)))
        for group in comparison.by_loop()
    ]
    others = _scrolled([*comparison.order_tables(), comparison.seconds_table()])
    body = [
        _header(comparison, title, [*loops, *sections]),
        _verdicts(_first_drawn(_nameless(columns), shown_variants), best),
        *(s.html() for s in loops),
        _left_out(len(shown_variants)),
        *(s.html() for s in sections),
        f'<section id="more"><h2>Orders and seconds</h2>{others}</section>',
        _footer(comparison),
    ]
    style = files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{style}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
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


def _header(comparison: Comparison, title: str, sections: Sequence[Section]) -> str:
    assumptions = comparison.assumptions
    made = sorted({str(p.about.get("created", ""))[:10] for p in comparison.plans} - {""})
    when = f"Plans of {' to '.join(dict.fromkeys((made[0], made[-1])))}. " if made else ""
    links = "".join(f'<a href="#{s.id}">{escape(s.title)}</a>' for s in sections[:12])
    return (
        f"<header><h1>{escape(title)}</h1>"
        f'<p class="soft">{escape(when)}Predictions are for {escape(assumptions.device)} at '
        f"{assumptions.gigabytes:,.0f} GB/s, {assumptions.launch:g} us a launch and "
        f"{assumptions.registers} registers a thread. "
        "Before is the input order cut into runs of block size.</p>"
        f"<nav>{links}</nav></header>"
    )


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


def _verdicts(columns: Sequence[Column], best: tuple[str, str] | None) -> str:
    own = [c for c in columns if best and c.plan in (best[0], "")]
    # of a loop cut in several ways the way that a solver gets unless it asks for another
    shown = (own or [c for c in columns if c.chosen])[:MOST_VERDICTS]
    rest = [_card(c) for c in columns if c not in shown]
    lead = (
        f'<p class="lead">Best by {escape(best[1])}: <b>{escape(best[0])}</b>, of '
        f"{count(len({c.plan for c in columns}), 'plan')}.</p>"
        if best
        else ""
    )
    more = (
        f"<details><summary>{count(len(rest), 'more verdict')}</summary>"
        f'<div class="verdicts">{"".join(rest)}</div></details>'
        if rest
        else ""
    )
    cards = "".join(_card(c) for c in shown)
    return f'{lead}<div class="verdicts" id="verdicts">{cards}</div>{more}'


def _card(column: Column) -> str:
    before, after = column.before, column.after
    old, new = before.reuse if before else None, after.reuse
    none = "no maps" if after.blocks else "no elements"
    number = none if new is None else f"{new:.2f} <span>reuse</span>"
    was = "" if old is None else f"<span>{old:.2f} &rarr;</span> "
    first, *rest = column.verdict.split("; ")
    if None not in (old, new) and first == f"reuse {old:.2f} -> {new:.2f}":
        # the large figures say so already
        first, *rest = rest
    items = "".join(f"<li>{escape(text)}</li>" for text in rest)
    return (
        f'<div class="verdict {outcome(column.before, after)}"><h3>{escape(_where(column))}</h3>'
        f'<div class="big">{was}{number}</div>'
        f"<p>{escape(first)}</p>{f'<ul>{items}</ul>' if items else ''}</div>"
    )


def _where(column: Column) -> str:
    """Plan, loop, partitioner and variant, none twice."""
    how = f"{column.after.partitioner} {column.variant}"
    if column.plan.endswith(how):
        return f"{column.plan}: {column.loop}"
    named = f"{column.plan}: " if column.plan else ""
    return f"{named}{column.loop}, {how}"


def _scrolled(tables: Sequence[Table]) -> str:
    """Tables that scroll by themselves where the page is narrow."""
    return "".join(f'<div class="scroll" tabindex="0">{t.html()}</div>' for t in tables)


def _left_out(count: int) -> str:
    left = count - MOST_PICTURED
    if left <= 0:
        return ""
    return (
        f'<p class="soft">Pictures are shown of the first {MOST_PICTURED} of {count} loops and '
        "variants; report on the others by themselves to see theirs.</p>"
    )


def _footer(comparison: Comparison) -> str:
    about: list[dict[str, Any]] = [
        {"plan": name, "about": dict(plan.about), "options": dict(plan.options)}
        for name, plan in zip(comparison.names, comparison.plans, strict=True)
    ]
    text = json.dumps(about, indent=1, default=str)
    return (
        "<footer><details><summary>Versions and options</summary>"
        f"<pre>{escape(text)}</pre></details></footer>"
    )
