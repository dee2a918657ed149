"""The overviews of docs/api.md: for who reads the page where the site is not built.

``python .ci/api.py`` brings the tables up to date: under each heading a row for every name, with
the first sentence of its docstring.
"""

import importlib
import inspect
import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
NAMES = re.compile(r"(?:\n\| name \|.*?\n\n|)((?:^::: \S+$\n?)+)", re.MULTILINE | re.DOTALL)


def with_tables(text: str) -> str:
    """The page with a table before each run of names."""
    return NAMES.sub(_table_before, text)


def _table_before(run: re.Match[str]) -> str:
    names = run[1].split()[1::2]
    rows = [f"| `{name.rpartition('.')[2]}` | {_first_sentence(name)} |" for name in names]
    table = "\n".join(["| name | what it is |", "|---|---|", *rows])
    return f"\n{table}\n\n{run[1]}"


def _first_sentence(name: str) -> str:
    """The first paragraph of a docstring, in Markdown."""
    module, _, own = name.rpartition(".")
    thing = getattr(importlib.import_module(module), own)
    first = inspect.getdoc(thing).partition("\n\n")[0]
    # roles of Sphinx and double backquotes are Markdown's backquotes
    first = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", " ".join(first.split()))
    return first.replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
