"""``meshprep loops``: a loops.toml to start from."""

from pathlib import Path
from typing import Annotated

import typer

from .. import console, options


def run(
    mesh: options.MeshFile,
    inputs: options.InputOptions,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write; default: the terminal.")
    ] = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Print a loops.toml to start from.

    It has a loop over each set that the mesh has or can give.
    """
    from meshprep.loops.template import template_of

    with console.waiting(f"reading {mesh.name}", quiet):
        text = template_of(inputs.of(mesh), output, overwrite=force)
    if output is None:
        console.show(text.rstrip("\n"))
    else:
        then = f"meshprep reorder {mesh} --loops {output}"
        console.note(f"wrote {output}: adapt it, then {then}", quiet)
