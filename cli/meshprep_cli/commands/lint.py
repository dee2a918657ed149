"""``meshprep lint``: a kernel's source against the accesses of its loop."""

from pathlib import Path
from typing import Annotated

import typer

from .. import console, options
from .check import FAILED


def lint_kernel(
    kernel: Annotated[
        str,
        typer.Argument(help="Kernel, FILE.py:function; it is not run.", show_default=False),
    ],
    loops: Annotated[
        Path, typer.Option("--loops", help="Loops described in TOML.", show_default=False)
    ],
    source: options.InputOptions,
    loop: Annotated[
        str | None,
        typer.Option(
            "--loop", help="Its loop; default: that of its name, or the only one."
        ),
    ] = None,
    mesh: Annotated[
        Path | None,
        typer.Option("--mesh", help="Mesh that tells how many columns maps have."),
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Find in a kernel's source what is against its loop's accesses.

    Follows every path through its branches, without running or importing the file.
    """
    from meshprep.loops.requests import read_requests
    from meshprep.pipeline.lint import lint_file

    read_from = source.of_any(mesh)
    result = lint_file(
        kernel=kernel,
        requests=read_requests(loops),
        loop=loop,
        mesh=None if read_from is None else read_from.read(),
    )
    if as_json:
        console.show_json(result.to_dict())
        return FAILED if result.findings else 0
    for finding in result.findings:
        console.show(console.one_line(f"wrong: {finding}"))
    if result.findings or not quiet:
        console.show(console.one_line(result.verdict))
    return FAILED if result.findings else 0
