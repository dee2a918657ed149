"""``meshprep report``: the figures of one plan or several, side by side, and pictures of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from meshprep_runtime.errors import MeshprepError, listed

from .. import console, options


@dataclass(frozen=True)
class Pictures:
    """The files to write, and of what."""

    html: options.Html = None
    png: Annotated[
        Path | None,
        typer.Option("--png", help="Write a picture of the first plan's mesh, by block."),
    ] = None
    vtu: Annotated[
        Path | None,
        typer.Option("--vtu", help="Write the first plan's mesh with its blocks, for ParaView."),
    ] = None
    mesh: Annotated[
        list[Path] | None,
        typer.Option("--mesh", help="Mesh of a plan, as read or reordered. Repeatable."),
    ] = None
    loop: Annotated[
        str | None, typer.Option("--loop", help="Loop that --png and --vtu show; default: first.")
    ] = None
    force: options.Force = False


def run(
    plans: Annotated[
        list[Path], typer.Argument(help="Plan files, or files of parts.", show_default=False)
    ],
    pictures: Pictures,
    times: options.Times,
    shown: options.Shown,
) -> None:
    """Compare plans, or one plan with the input order.

    Of files of parts it shows neighbours, halos and messages.
    """
    from meshprep.report import compare
    from meshprep.report.files import ReportFiles, write_files
    from meshprep_runtime.plan.file.seal import is_parts

    given, wanted = times.given, pictures
    if any(map(is_parts, plans)):
        _show_parts(plans, pictures, shown)
        return
    if wanted.loop is not None and not (wanted.png or wanted.vtu):
        raise MeshprepError("--loop says what --png and --vtu show: name one of these")
    meshes = tuple(wanted.mesh or ())
    files = ReportFiles(wanted.html, wanted.png, wanted.vtu, meshes, wanted.loop, wanted.force)
    files.check(plans)
    watch = console.Stopwatch()
    measure = not (given or times.no_measure)
    silent = shown.quiet or not (files.outputs or files.meshes)
    with console.progress(silent) as report:
        comparison = compare(plans, given, measure=measure)
        written = write_files(comparison, files, report)
    console.show_comparison(comparison, shown)
    if written:
        console.note(f"wrote {listed(written)} in {watch}", shown.quiet)


def _show_parts(paths: list[Path], pictures: Pictures, shown: options.Shown) -> None:
    """The halo tables of files of parts."""
    from meshprep.report.parts import halo_tables, kept_splits
    from meshprep_runtime.plan.file.seal import is_parts

    other = next((path for path in paths if not is_parts(path)), None)
    if other is not None:
        raise MeshprepError(f"{other} is no file of parts as the others are: report it alone")
    if pictures != Pictures():
        raise MeshprepError("--html, --png and --vtu are for plans: leave them out for parts")
    splits = [split for path in paths for split in kept_splits(path)]
    if shown.as_json:
        console.show_json({"splits": splits})
    else:
        console.show_tables(halo_tables(splits, full=shown.full))
