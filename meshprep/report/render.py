"""HTML and SVG from the templates of this folder; all text put in is escaped and printable."""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from meshprep_runtime.errors import printable


def render(name: str, **values: Any) -> Markup:
    return Markup(_environment().get_template(name).render(values))


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("meshprep.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    made.filters["px"] = pixels
    return made


def pixels(value: float) -> str:
    """A coordinate, to a tenth."""
    return f"{value:.1f}".removesuffix(".0")
