"""``meshprep apply``: values on sets into the plan's order."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from .. import console, options


@dataclass(frozen=True)
class FieldFiles:
    """What to move, and where to."""

    plan: options.PlanFile
    fields: Annotated[
        list[Path],
        typer.Argument(
            help="Files: .npy .npz .h5, or meshes such as .vtu.", show_default=False
        ),
    ]
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="File to write, where there is one input; default: beside the input.",
        ),
    ] = None
    sets: options.Sets = None
    loops: Annotated[
        Path | None, typer.Option("--loops", help="A loops.toml whose table [sets] to use.")
    ] = None
    drop: options.Drop = False
    force: options.Force = False
    as_json: options.Json = False
    quiet: options.Quiet = False


def reorder_fields(files: FieldFiles) -> None:
    """Bring values from the mesh file's order into the plan's.

    Writes NAME-reordered beside each file.
    """
    move_fields(files, inverse=False)


def move_fields(files: FieldFiles, *, inverse: bool) -> None:
    """Move every file, and say what was moved."""
    from meshprep.io.fields import move_files

    with console.waiting(f"moving values of {files.plan.name}", files.quiet):
        done = move_files(
            files.plan,
            files.fields,
            files.output,
            inverse=inverse,
            declared=options.declared(files.sets, files.loops),
            overwrite=files.force,
            drop=files.drop,
        )
    # Losses are told even to those who asked for quiet: they accepted them unseen.
    for file in done:
        for text in file.dropped:
            console.note(f"dropped, {file.written.name} is written without it: {text}")
    if files.as_json:
        console.show_json([file.to_dict() for file in done])
        return
    for file in done:
        rows = [(m.name, m.place, f"{m.rows:,}") for m in file.moved]
        console.show_table(str(file.written), ("array", "set", "rows"), rows)
        console.show("")
