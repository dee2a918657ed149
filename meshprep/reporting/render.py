"""HTML and SVG from the templates of this folder; all values are escaped and printable."""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from meshprep_runtime.errors import printable


def render(name: str, **values: Any) -> Markup:
    """A template with these values."""
    return Markup(_environment().get_template(name).render(values))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("meshprep.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable_text,
    )
    environment.filters["px"] = pixels
    return environment


def _printable_text(value: Any) -> Any:
    """Plain text without control characters; markup stays as it is."""
    if type(value) is str:
        return printable(value)
    return value


def pixels(value: float) -> str:
    """A coordinate, to a tenth."""
    return f"{value:.1f}".removesuffix(".0")
