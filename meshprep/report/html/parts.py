"""What a page is made of: figures with captions, and sections of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from .charts import Series, key

BEFORE_AFTER = (
    '<span><i class="swatch before"></i>input order</span>'
    '<span><i class="swatch after"></i>plan</span>'
)


@dataclass(frozen=True)
class Figure:
    """A figure of the page.

    Parameters
    ----------
    id : str
        Unique on the page.
    title, caption : str
        Plain text.
    body : str
        SVG or HTML; empty where the figure is ``missing``.
    legend : str
        HTML.
    missing : str
        Why there is no drawing, and what to do; plain text.
    row : {"chart", "mesh", "map"}
        What it stands in one row with; pictures of meshes and maps take more room than charts.
    """

    id: str
    title: str
    caption: str
    body: str = ""
    legend: str = ""
    missing: str = ""
    row: str = "chart"

    def html(self) -> str:
        """The figure as HTML."""
        body = self.body or f'<p class="missing">{escape(self.missing)}</p>'
        legend = f'<div class="legend">{self.legend}</div>' if self.legend else ""
        return (
            f'<figure id="{self.id}"><h3>{escape(self.title)}</h3>{legend}{body}'
            f"<figcaption>{escape(self.caption)}</figcaption></figure>"
        )


@dataclass(frozen=True)
class Section:
    """A part of the page: title, a line of text, tables as HTML, figures.

    ``adjacent`` puts tables and figures next to each other where the page is wide.
    """

    id: str
    title: str
    intro: str
    figures: Sequence[Figure] = ()
    tables: str = ""
    adjacent: bool = False

    def html(self) -> str:
        """The section as HTML; pictures stand before charts."""
        rows = "".join(self._row(row) for row in ("mesh", "map", "chart"))
        return (
            f'<section id="{self.id}"><h2>{escape(self.title)}</h2>'
            f'<p class="soft">{escape(self.intro)}</p>'
            f'<div class="{"beside" if self.adjacent else "stacked"}">'
            + (f"<div>{self.tables}</div>" if self.tables else "")
            + f"<div>{rows}</div></div></section>"
        )

    def _row(self, row: str) -> str:
        chosen = [f.html() for f in self.figures if f.row == row]
        wide = "" if row == "chart" else " pictures"
        wide += {3: " three", 4: " four" if row == "chart" else ""}.get(len(chosen), "")
        return f'<div class="figures{wide}">{"".join(chosen)}</div>' if chosen else ""


def slug(*words: str) -> str:
    """Words as an id: letters, digits and dashes."""
    return "-".join(re.sub(r"[^A-Za-z0-9]+", "-", word).strip("-").lower() for word in words)


def count(number: int, what: str) -> str:
    """``1 block``, ``2,000 blocks``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def legend(series: Sequence[Series]) -> str:
    """The marks of series and their names, each once."""
    known = {one.name: one.style for one in series}
    return "".join(f"<span>{key(style)}{escape(name)}</span>" for name, style in known.items())
