"""What `mkdocs build` changes in pages: links out of docs/ lead nowhere on the site."""

import re

# The files themselves stand in the clone; their names stay in the text.
OUTSIDE = re.compile(r"\[([^]]+)\]\((?:\.\./)+examples/[^)]*\)")


def on_page_markdown(markdown: str, **_: object) -> str:
    """Leave the text of such links, without the link."""
    return OUTSIDE.sub(r"\1", markdown)
