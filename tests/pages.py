"""The code on the pages of the documentation, for tests that run it as it stands."""

import json
import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def blocks(page, language=""):
    """The blocks of code in one language on a page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [content for name, content in found if name == language]


def steps(page):
    """What a page that is followed from its top has: files with their names, then commands."""
    text = (DOCS / page).read_text(encoding="utf-8")
    fence = r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$"
    found = re.findall(fence, text, re.MULTILINE | re.DOTALL)
    return [
        (name, content) for language, name, content in found if name or language == "sh"
    ]


def code_of_notebook(name):
    """The source of each cell of code of a notebook."""
    text = (DOCS / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8")
    cells = json.loads(text)["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
