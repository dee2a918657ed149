"""``meshprep report``: the figures of one plan or several, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from meshprep_runtime.errors import MeshprepError

from . import console, options


def run(
    plans: Annotated[list[Path], typer.Argument(help="Plan files.", show_default=False)],
    as_json: options.Json = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print one line a figure and plan, for spreadsheets.")
    ] = False,
) -> None:
    """Compare plans: reuse factor, loads, colours and the rest, and whether they helped."""
    from meshprep.report import compare

    if as_json and as_csv:
        raise MeshprepError("--json and --csv exclude each other: name one")
    comparison = compare(plans)
    if as_json:
        console.show_json(comparison.to_dict())
    elif as_csv:
        console.show(comparison.to_csv().rstrip("\n"))
    else:
        console.show_tables(comparison.tables())
        console.show("\n".join(comparison.lines()))
