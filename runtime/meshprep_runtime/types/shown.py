"""What notebooks show: tables in HTML."""

import html
from collections.abc import Iterable, Sequence

from ..errors import printable


def html_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table for ``_repr_html_``; the first column to the left, numbers with commas."""
    cells = [[f"{v:,}" if isinstance(v, int) else str(v) for v in row] for row in rows]
    lines = [_line("th", header), *(_line("td", row) for row in cells)]
    return f"<table><caption>{_text(title)}</caption>{''.join(lines)}</table>"


def _line(tag: str, words: Sequence[str]) -> str:
    sides = ["left", *["right"] * (len(words) - 1)]
    told = zip(sides, words, strict=True)
    return f"<tr>{''.join(f'<{tag} align={s!r}>{_text(w)}</{tag}>' for s, w in told)}</tr>"


def _text(words: str) -> str:
    return html.escape(printable(words))
