"""``meshprep report``: the figures of one plan or several, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import console, options


def run(
    plans: Annotated[list[Path], typer.Argument(help="Plan files.", show_default=False)],
    as_json: options.Json = False,
) -> None:
    """Compare plans: reuse factor, loads, colours and the rest."""
    from meshprep.report import compare

    comparison = compare(plans)
    if as_json:
        console.show_json(comparison.to_dict())
        return
    for table in comparison.tables():
        console.show_table(table.title, table.header, table.rows)
        console.show("")
