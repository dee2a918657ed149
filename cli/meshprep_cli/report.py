"""``meshprep report``: the figures of one plan or several, side by side, and pictures of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from meshprep_runtime.errors import MeshprepError

from . import console, options


def run(
    plans: Annotated[list[Path], typer.Argument(help="Plan files.", show_default=False)],
    html: options.Html = None,
    png: Annotated[
        Path | None,
        typer.Option("--png", help="Write a picture of the first plan's mesh, by block."),
    ] = None,
    vtu: Annotated[
        Path | None,
        typer.Option("--vtu", help="Write the first plan's mesh with its blocks, for ParaView."),
    ] = None,
    mesh: Annotated[
        list[Path] | None,
        typer.Option("--mesh", help="Mesh of a plan, as read or reordered. Repeatable."),
    ] = None,
    loop: Annotated[
        str | None, typer.Option("--loop", help="Loop that --png and --vtu show; default: first.")
    ] = None,
    device: options.Device = "H200",
    registers: options.Registers = 64,
    bandwidth: options.Bandwidth = None,
    launch: options.Launch = None,
    measured: options.Measured = None,
    as_json: options.Json = False,
    as_csv: options.Csv = False,
    full: options.Full = False,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare plans: reuse factor, loads, colours and the rest, and whether they helped."""
    from meshprep.pipeline.warm_up import read_tasks
    from meshprep.report import compare
    from meshprep.report.files import Files, write_files

    assumptions = options.assumptions(device, registers, bandwidth, launch, measured)
    options.refuse_both(as_json, as_csv)
    if loop is not None and not (png or vtu):
        raise MeshprepError("--loop says what --png and --vtu show: name one of these")
    files = Files(html, png, vtu, tuple(mesh or ()), loop, force)
    files.check(plans)
    watch = console.Stopwatch()
    comparison = compare(plans, assumptions)
    silent = quiet or not files.outputs
    tasks = [*read_tasks(files.meshes), "pictures"] if files.meshes and (html or png) else []
    with console.compiled_ahead(tasks, silent) as report:
        written = write_files(comparison, files, report)
    console.show_comparison(comparison, as_json=as_json, as_csv=as_csv, full=full)
    if written:
        console.note(f"wrote {' and '.join(map(str, written))} in {watch}", quiet)
