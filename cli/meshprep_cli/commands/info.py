"""``meshprep info``: what a mesh, a plan or a file of parts holds."""

from pathlib import Path
from typing import Annotated

import typer

from .. import console, options


def describe_file(
    file: Annotated[
        Path, typer.Argument(help="Mesh, plan or file of parts.", show_default=False)
    ],
    inputs: options.InputOptions,
    full: Annotated[
        bool,
        typer.Option("--full", help="List every group, also the many that have no name."),
    ] = False,
    order: Annotated[
        bool,
        typer.Option(
            "--order", help="Find a better order of the mesh, too: what would it gain?"
        ),
    ] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show what a mesh, a plan or a file of parts holds."""
    from meshprep.reporting import describe

    # Its name or its first bytes tell which of the three the file is.
    with console.waiting(f"reading {file.name}", quiet):
        description = describe(inputs.of(file), order=order)
    if as_json:
        console.show_json(description.to_dict())
        return
    # Groups without names are counted in a line, since CAD files have thousands.
    for table in description.tables(full=full):
        console.show_table(table.title, table.header, table.rows)
        console.show("")
