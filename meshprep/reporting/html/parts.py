"""The parts of a page: figures with captions, and sections of them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from ..table import Table

Legend = Sequence[tuple[Markup, str]]
BEFORE_AFTER: Legend = (
    (Markup('<i class="swatch before"></i>'), "input order"),
    (Markup('<i class="swatch after"></i>'), "plan"),
)


@dataclass(frozen=True)
class Figure:
    """A figure of the page."""

    id: str  # unique on the page
    # Plain text.
    title: str
    caption: str = ""
    body: Markup | None = None  # SVG or HTML; None where the figure is ``missing``
    legend: Legend = ()  # marks and what they stand for
    missing: str = ""  # why there is no drawing, and what to do; plain text
    first: bool = False  # whether it is shown before anything is opened


@dataclass(frozen=True)
class Section:
    """A part of the page: title, text, tables, figures; ``folded`` until it is opened."""

    id: str
    title: str
    intro: str
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    folded: bool = False


def slug(*words: str) -> str:
    """Words as an id: letters, digits and dashes."""
    return "-".join(
        re.sub(r"[^A-Za-z0-9]+", "-", word).strip("-").lower() for word in words
    )


def distinct(sections: Iterable[Section]) -> list[Section]:
    """The sections with different ids; different names can have one id."""
    used_ids: set[str] = set()

    def unused(id: str) -> str:
        """The id, with a number behind it where it is used already."""
        candidate = id
        number = 1
        while candidate in used_ids:
            number += 1
            candidate = f"{id}-{number}"
        used_ids.add(candidate)
        return candidate

    # Sections and their figures share one space of ids.
    renamed = []
    for section in sections:
        section_id = unused(section.id)
        figures = [replace(figure, id=unused(figure.id)) for figure in section.figures]
        renamed.append(replace(section, id=section_id, figures=figures))
    return renamed


def count(number: int, what: str) -> str:
    """``1 block``, ``2,000 blocks``."""
    plural = "" if number == 1 else "s"
    return f"{number:,} {what}{plural}"
