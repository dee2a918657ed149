"""``meshprep check``: prove a plan right, or say where it is not."""

from pathlib import Path
from typing import Annotated

import typer

from meshprep_runtime.errors import MeshprepError

from .. import console, mpi, options


def run(
    plan: Annotated[Path, typer.Argument(help="Plan, or file of parts.", show_default=False)],
    source: options.InputOptions,
    mesh: Annotated[
        Path | None,
        typer.Option("--mesh", help="The mesh it was made from, or the reordered one."),
    ] = None,
    parts: Annotated[
        int | None,
        typer.Option("--parts", help="Of a file of parts: prove only this number of parts."),
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Prove that a plan or a file of parts is right.

    Looks at offsets, caps, staging, colours, halos and figures. Ranks of mpiexec prove a file of
    parts together.
    """
    from meshprep.pipeline.check_file import check
    from meshprep_runtime.plan.file.seal import is_parts

    against = source.of_any(mesh)
    with console.progress(quiet) as report:
        if is_parts(plan):
            from meshprep.distribute.check import check_parts

            together = mpi.ranks()
            with mpi.nobody_waits(together):
                result = check_parts(plan, parts, against, progress=report, ranks=together)
        elif parts is not None:
            raise MeshprepError(f"{plan} is no file of parts: leave --parts out")
        else:
            result = check(plan, against, progress=report)
    if as_json:
        console.show_json(result.to_dict())
    else:
        for finding in result.findings:
            console.show(console.one_line(f"wrong: {finding}"))
        console.show(console.one_line(result.verdict))
    return 1 if result.findings else 0
