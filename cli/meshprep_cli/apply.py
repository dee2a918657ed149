"""``meshprep apply``: values on sets into the plan's order."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import console, options

PlanFile = Annotated[Path, typer.Argument(help="Plan file.", show_default=False)]
Fields = Annotated[
    list[Path],
    typer.Argument(help="Files: .npy .npz .h5 .csv, or meshes such as .vtu.", show_default=False),
]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", help="File to write, where there is one input.")
]
SetsFile = Annotated[
    Path | None, typer.Option("--loops", help="A loops.toml whose table [sets] to use.")
]


def run(
    plan: PlanFile,
    fields: Fields,
    output: Output = None,
    sets: options.Sets = None,
    loops: SetsFile = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Put values from the order of the mesh file into the plan's; writes FIELDS-reordered."""
    move(plan, fields, output, options.declared(sets, loops), False, force, as_json)


def move(
    plan: Path,
    fields: list[Path],
    output: Path | None,
    declared: dict[str, str],
    inverse: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Move every file, and say what was moved."""
    from meshprep.io.fields.files import move_files

    with console.waiting(f"moving values of {plan.name}"):
        done = move_files(plan, fields, output, inverse=inverse, declared=declared, overwrite=force)
    if as_json:
        console.show_json([file.to_dict() for file in done])
        return
    for file in done:
        rows = [(m.name, m.place, f"{m.rows:,}") for m in file.moved]
        console.show_table(str(file.written), ("array", "set", "rows"), rows)
        console.show("")
