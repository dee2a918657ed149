"""``meshprep loops``: a loops.toml to start from."""

from pathlib import Path
from typing import Annotated

import typer

from .. import console, options


def print_loops(
    mesh: options.MeshFile,
    inputs: options.InputOptions,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="File to write; default: the terminal."),
    ] = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Print a loops.toml to start from.

    It has a loop over each set that the mesh has or can give.
    """
    from meshprep.pipeline.workflow import template_of

    # The file is written inside, so that one that is there already is refused early.
    with console.waiting(f"reading {mesh.name}", quiet):
        text = template_of(inputs.of(mesh), output, overwrite=force)
    # The text alone goes to stdout, so that a shell can send it into a file.
    if output is None:
        console.show(text.rstrip("\n"))
    else:
        then = f"meshprep reorder {mesh} --loops {output}"
        console.note(f"wrote {output}: adapt it, then {then}", quiet)
