"""What a page is made of: figures with captions, and sections of them."""

import itertools
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
    """A part of the page: title, a line of text, tables, figures; ``folded`` until it is opened."""

    id: str
    title: str
    intro: str
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    folded: bool = False


def slug(*words: str) -> str:
    """Words as an id: letters, digits and dashes."""
    return "-".join(re.sub(r"[^A-Za-z0-9]+", "-", word).strip("-").lower() for word in words)


def distinct(sections: Iterable[Section]) -> list[Section]:
    """The sections with ids that differ: names may differ in letters that an id leaves out."""
    taken: set[str] = set()

    def fresh(id: str) -> str:
        numbered = (f"{id}-{number}" for number in itertools.count(2))
        found = next(one for one in itertools.chain([id], numbered) if one not in taken)
        taken.add(found)
        return found

    return [
        replace(s, id=fresh(s.id), figures=[replace(f, id=fresh(f.id)) for f in s.figures])
        for s in sections
    ]


def count(number: int, what: str) -> str:
    """``1 block``, ``2,000 blocks``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
