"""What notebooks show: tables in HTML."""

import html
from collections.abc import Iterable, Sequence

from ..errors import printable


def html_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table for ``_repr_html_``.

    The first column is aligned to the left, the others to the right; whole numbers have
    commas.
    """
    lines = "".join(_html_row("td", row) for row in rows)
    caption = f"<caption>{_escape_html(title)}</caption>"
    return f"<table>{caption}{_html_row('th', header)}{lines}</table>"


def _cell_text(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def _html_row(tag: str, values: Sequence[object]) -> str:
    cells = []
    side = "left"
    for value in values:
        text = _escape_html(_cell_text(value))
        cells.append(f"<{tag} align='{side}'>{text}</{tag}>")
        side = "right"
    return f"<tr>{''.join(cells)}</tr>"


def _escape_html(text: str) -> str:
    return html.escape(printable(text))
