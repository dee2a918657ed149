"""What a page is made of: figures with captions, and sections of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ..table import Table

Legend = Sequence[tuple[Markup, str]]
BEFORE_AFTER: Legend = (
    (Markup('<i class="swatch before"></i>'), "input order"),
    (Markup('<i class="swatch after"></i>'), "plan"),
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
    body : Markup or None
        SVG or HTML; None where the figure is ``missing``.
    legend : sequence of (Markup, str)
        Marks and what they stand for.
    missing : str
        Why there is no drawing, and what to do; plain text.
    row : {"chart", "mesh", "map"}
        What it stands in one row with; pictures of meshes and maps take more room than charts.
    """

    id: str
    title: str
    caption: str
    body: Markup | None = None
    legend: Legend = ()
    missing: str = ""
    row: str = "chart"


@dataclass(frozen=True)
class Section:
    """A part of the page: title, a line of text, tables, figures.

    ``adjacent`` puts tables and figures next to each other where the page is wide.
    """

    id: str
    title: str
    intro: str
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    adjacent: bool = False


def slug(*words: str) -> str:
    """Words as an id: letters, digits and dashes."""
    return "-".join(re.sub(r"[^A-Za-z0-9]+", "-", word).strip("-").lower() for word in words)


def count(number: int, what: str) -> str:
    """``1 block``, ``2,000 blocks``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
