"""``meshprep generate``: meshes to try things on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from meshprep_runtime.errors import MeshprepError

from .. import console, options
from ..groups import pairs


@dataclass(frozen=True)
class MeshOutput:
    """The file that is written."""

    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Mesh to write; default: KIND.msh."),
    ] = None
    output_format: Annotated[str | None, options.output_format("--format")] = None
    drop: options.Drop = False
    force: options.Force = False


def generate_mesh(
    written: MeshOutput,
    kind: Annotated[
        str | None,
        typer.Argument(
            help="Kind of mesh; without it, the kinds and their options are listed."
        ),
    ] = None,
    cells: Annotated[
        int | None, typer.Option("--cells", min=1, help="Number of cells, about.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Seed of whatever is random; default: 0.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", help="NAME=VALUE of the kind, such as type=triangle. Repeatable."
        ),
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a mesh to try things on: Delaunay, boxes, an airfoil."""
    from meshprep.pipeline import workflow

    if kind is None:
        _show_kinds(workflow.kinds(), as_json)
        return
    # What most kinds take has an option of its own; it goes the way of all others.
    values: dict[str, Any] = dict(pairs(option, "--option"))
    for name, value in (("cells", cells), ("seed", seed)):
        if value is None:
            continue
        if name in values:
            raise MeshprepError(
                f"--{name} and --option {name} say the same: leave one of them out"
            )
        values[name] = value
    target = written.output or Path(f"{kind}.msh")
    watch = console.Stopwatch()
    with console.progress(quiet) as report:
        generated = workflow.generate(
            kind,
            target,
            values=values,
            format=written.output_format,
            drop=written.drop,
            overwrite=written.force,
            progress=report,
        )
    if as_json:
        console.show_json(
            {"written": [str(target)], "notes": generated.notes, "sets": generated.sizes}
        )
        return
    # Losses are told even to those who asked for quiet.
    for text in generated.notes:
        console.note(text)
    sets = ", ".join(f"{name} {n:,}" for name, n in generated.sizes.items())
    console.note(f"{target}: {sets}, in {watch}", quiet)


def _show_kinds(kinds: list[tuple[str, str, str]], as_json: bool) -> None:
    if as_json:
        # Scripts get a record for each kind.
        console.show_json(
            [dict(zip(("kind", "what", "options"), k, strict=True)) for k in kinds]
        )
        return
    # Two tables: both texts beside each other are wider than a terminal.
    console.show_table(
        title="", header=("kind", "what"), rows=[k[:2] for k in kinds], left=True
    )
    console.show("")
    console.show_table(
        title="", header=("kind", "options"), rows=[(k[0], k[2]) for k in kinds], left=True
    )
