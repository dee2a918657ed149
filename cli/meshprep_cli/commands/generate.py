"""``meshprep generate``: meshes to try things on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from meshprep_runtime.errors import MeshprepError

from .. import console, options
from ..groups import pairs


@dataclass(frozen=True)
class MeshOutput:
    """The file that is written."""

    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Mesh to write; default: KIND.msh.")
    ] = None
    output_format: Annotated[
        str | None, typer.Option("--format", help="Format to write, where its name does not tell.")
    ] = None
    drop: options.Drop = False
    force: options.Force = False


def run(
    written: MeshOutput,
    kind: Annotated[
        str | None,
        typer.Argument(help="Kind of mesh; without it, the kinds and their options are listed."),
    ] = None,
    cells: Annotated[
        int | None, typer.Option("--cells", min=1, help="Number of cells, about.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Seed of whatever is random; default: 0.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", help="NAME=VALUE of the kind, such as type=triangle. Repeatable."),
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a mesh to try things on: Delaunay, boxes, an airfoil."""
    from meshprep.pipeline import workflow

    if kind is None:
        _show_kinds(workflow.kinds(), as_json)
        return
    own = {k: v for k, v in (("cells", cells), ("seed", seed)) if v is not None}
    others = pairs(option, "--option")
    if twice := next((name for name in own if name in others), None):
        raise MeshprepError(f"--{twice} and --option {twice} say the same: leave one of them out")
    target = written.output or Path(f"{kind}.msh")
    watch = console.Stopwatch()
    with console.progress(quiet) as report:
        made = workflow.generate(
            kind,
            target,
            values=own | others,
            format=written.output_format,
            drop=written.drop,
            overwrite=written.force,
            progress=report,
        )
    if as_json:
        console.show_json({"written": [str(target)], "notes": made.notes, "sets": made.sizes})
        return
    for text in made.notes:
        console.note(text)
    told = ", ".join(f"{n} {name}" for name, n in made.sizes.items())
    console.note(f"{target}: {told}, in {watch}", quiet)


def _show_kinds(kinds: list[tuple[str, str, str]], as_json: bool) -> None:
    if as_json:
        console.show_json([dict(zip(("kind", "what", "options"), k, strict=True)) for k in kinds])
        return
    console.show_table("", ("kind", "what"), [k[:2] for k in kinds], left=True)
    console.show("")
    console.show_table("", ("kind", "options"), [(k[0], k[2]) for k in kinds], left=True)
