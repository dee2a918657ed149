"""``meshprep check``: prove a plan right, or say where it is not."""

from pathlib import Path
from typing import Annotated

import typer

from meshprep_runtime.errors import MeshprepError

from .. import console, mpi, options

# The code of a check that failed.
FAILED = 1


def check_plan(
    plan: Annotated[
        Path, typer.Argument(help="Plan, or file of parts.", show_default=False)
    ],
    source: options.InputOptions,
    mesh: Annotated[
        Path | None,
        typer.Option("--mesh", help="The mesh it was made from, or the reordered one."),
    ] = None,
    parts: Annotated[
        int | None,
        typer.Option(
            "--parts", help="Of a file of parts: prove only this number of parts."
        ),
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Prove that a plan or a file of parts is right.

    Looks at offsets, caps, staging, colours, halos and figures. Ranks of mpiexec prove a
    file of parts together.
    """
    from meshprep.pipeline.check_file import check
    from meshprep_runtime.plan.file.seal import is_parts

    # Without a mesh the plan is proved in itself; with one, also that it is this mesh's.
    against = source.of_any(mesh)
    with console.progress(quiet) as report:
        if is_parts(plan):
            from meshprep.distribute.job.check import check_parts

            # An error of one rank ends the others, too, which would wait for it for ever.
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
    # The code tells a script what the verdict tells a reader.
    if result.findings:
        return FAILED
    return 0
