"""The table of formats: what it says of each is so, and the page of formats has it all."""

from pathlib import Path

import pytest

from meshprep import io
from meshprep.registry.formats import FORMATS, WRITTEN

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"


@pytest.mark.parametrize("entry", FORMATS.entries, ids=lambda entry: entry.name)
def test_a_format_is_what_its_entry_says(entry):
    found = io.FORMATS[entry.name]
    assert found.name == entry.name
    assert found.extensions == entry.endings
    assert found.description == entry.help
    assert (found.write is None) == entry.read_only
    assert (found.folder is not None) == entry.in_folders
    assert (entry.name in WRITTEN) != entry.read_only


def test_no_two_formats_share_an_ending():
    endings = [ending for entry in FORMATS.entries for ending in entry.endings]
    assert len(set(endings)) == len(endings)


def test_the_page_has_a_row_for_each_format():
    rows = []
    for entry in FORMATS.entries:
        name = f"{entry.name}, read only" if entry.read_only else entry.name
        rows.append(f"| {name} | {' '.join(entry.endings)} | {entry.help} |")
    assert "\n".join(rows) in PAGE.read_text(encoding="utf-8")
