"""What `mkdocs build` changes in pages: links out of docs/, roles, and defaults of options."""

import re
import runpy
from pathlib import Path

from mkdocs.structure.files import File, Files

# The files themselves stand in the clone; their names stay in the text.
OUTSIDE = re.compile(
    r"\[([^]]+)\]\((?:\.\./)+(?:benchmarks|examples|include|cuda-check)/[^)]*\)"
)

# mkdocstrings shows what the source says: roles as they stand, and how the default is declared.
ROLE = re.compile(r":(?:func|class|meth|mod):(?=<code>)")
DEFAULT = re.compile(r"<code><[^>]*>_option</\w+>\(([^,]*),.*?</code>")


def on_files(files: Files, config: object) -> Files:
    """Add the page of all commands, which is made from these."""
    from meshprep_cli.commands import commands

    page = runpy.run_path(str(Path(__file__).with_name("commands.py")))["page"]
    files.append(File.generated(config, "commands.md", content=page(commands())))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Leave the text of such links, without the link."""
    return OUTSIDE.sub(r"\1", markdown)


def on_page_content(html: str, **_: object) -> str:
    """Leave names and values in the pages of the API."""
    return DEFAULT.sub(r"<code>\1</code>", ROLE.sub("", html))
