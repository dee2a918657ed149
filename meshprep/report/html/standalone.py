"""Figures of the page as SVG files of their own, for papers: in the colours of the light page."""

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from markupsafe import escape

from .parts import Figure, Section

# Rows of the legend below a figure: their height, and their room on either side of the mark.
ROW, INDENT, GAP = 18.0, 56.0, 20.0
SIZE = re.compile(r'<svg viewBox="0 0 ([\d.]+) ([\d.]+)"')


def svg_files(sections: Iterable[Section]) -> dict[str, str]:
    """Drawn figures by name of file, but surfaces in space, which are pixels alone."""
    drawn = (f for s in sections for f in s.figures if f.body and SIZE.match(f.body))
    return {f"{f.id}.svg": _standalone(f) for f in drawn}


def _standalone(figure: Figure) -> str:
    """A figure with its title, style and legend, which the page has around it."""
    found = SIZE.match(figure.body or "")
    assert found is not None
    width, height = map(float, found.groups())
    legend = "\n".join(
        _row(str(mark), name, height + ROW * i) for i, (mark, name) in enumerate(figure.legend)
    )
    whole = height + ROW * len(figure.legend) + (ROW / 2 if legend else 0)
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{whole:g}" '
        f'viewBox="0 0 {width:g} {whole:g}"'
    )
    head, end, rest = str(figure.body).partition(">")
    head = start + head[found.end() :]
    more = f"<title>{escape(figure.title)}</title><style>{_style()}</style>"
    return f"{head}{end}{more}{rest.rstrip().removesuffix('</svg>')}{legend}</svg>\n"


def _row(mark: str, name: str, y: float) -> str:
    """A line of the legend."""
    if "swatch" in mark:
        kind = "before" if "before" in mark else "after"
        drawn = f'<rect class="bars {kind}" x="1" y="1" width="12" height="12"/>'
    else:
        drawn = re.sub(r"</?svg[^>]*>", "", mark)
    text = f'<text x="{GAP:g}" y="11">{escape(name)}</text>'
    return f'<g transform="translate({INDENT:g} {y:g})">{drawn}{text}</g>'


@cache
def _style() -> str:
    """The rules of the page for SVG; programs for drawings know no variables, so values stand."""
    text = (files("meshprep.report") / "templates" / "style.css").read_text(encoding="utf-8")
    light = dict(re.findall(r"(--[\w-]+): (#\w+);", text[: text.index("@media")]))
    rules = "\n".join(re.findall(r"^svg .*$", text, re.MULTILINE)).replace(
        "font-family: inherit", "font-family: Helvetica, Arial, sans-serif"
    )
    return re.sub(r"var\((--[\w-]+)\)", lambda found: light[found[1]], rules)
