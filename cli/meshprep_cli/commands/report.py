"""``meshprep report``: figures and pictures of one plan, or of several side by side."""

from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from meshprep_runtime.errors import MeshprepError, listed

from .. import console, options
from .tune import function_of


@dataclass(frozen=True)
class Pictures:
    """The files to write, and of what."""

    html: options.Html = None
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture",
            "--png",
            help="Write a picture of the first plan's mesh, by block: .png, .pdf or .svg.",
        ),
    ] = None
    vtu: Annotated[
        Path | None,
        typer.Option(
            "--vtu", help="Write the first plan's mesh with its blocks, for ParaView."
        ),
    ] = None
    mesh: Annotated[
        list[Path] | None,
        typer.Option("--mesh", help="Mesh of a plan, as read or reordered. Repeatable."),
    ] = None
    loop: Annotated[
        str | None,
        typer.Option("--loop", help="Loop that --picture and --vtu show; default: first."),
    ] = None
    force: options.Force = False


def report_plans(
    plans: Annotated[
        list[Path],
        typer.Argument(help="Plan files, or files of parts.", show_default=False),
    ],
    pictures: Pictures,
    times: options.Times,
    shown: options.Shown,
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            "--kernel",
            help="Kernel of the loop of its name, FILE.py:function, whose registers "
            "--full counts. Repeatable.",
        ),
    ] = None,
) -> None:
    """Compare plans, or one plan with the input order.

    Of files of parts it shows neighbours, halos and messages.
    """
    from meshprep.reporting import compare
    from meshprep.reporting.files import ReportFiles, write_files
    from meshprep_runtime.plan.file.seal import is_parts

    # Files of parts have figures of their own, and no pictures.
    if any(map(is_parts, plans)):
        if kernel:
            raise MeshprepError("--kernel is for plans: leave it out for parts")
        _show_parts(plans, pictures, shown)
        return
    if pictures.loop is not None and not (pictures.picture or pictures.vtu):
        raise MeshprepError("--loop says what --picture and --vtu show: name one of these")
    # Refuse names that cannot be written before loops are timed.
    meshes = tuple(pictures.mesh or ())
    files = ReportFiles(
        html=pictures.html,
        picture=pictures.picture,
        vtu=pictures.vtu,
        meshes=meshes,
        loop=pictures.loop,
        overwrite=pictures.force,
    )
    files.check(plans)
    kernels = [function_of(text, "--kernel") for text in kernel or ()]
    watch = console.Stopwatch()
    # Times of the user's own solver say more than those of a stand-in.
    measure = not (times.given or times.no_measure)
    # A table alone takes a second: a line on progress would be longer than it.
    silent = shown.quiet or not (files.outputs or files.meshes)
    with console.progress(silent) as report:
        comparison = compare(plans, times.given, measure=measure, kernels=kernels)
        written = write_files(comparison, files, report)
    console.show_comparison(comparison, shown)
    if written:
        console.note(f"wrote {listed(written)} in {watch}", shown.quiet)


def _show_parts(paths: list[Path], pictures: Pictures, shown: options.Shown) -> None:
    """The halo tables of files of parts."""
    from meshprep.reporting.parts import halo_tables, kept_splits
    from meshprep_runtime.plan.file.seal import is_parts

    # Plans and parts share no figure that could stand in one table.
    other = next((path for path in paths if not is_parts(path)), None)
    if other is not None:
        raise MeshprepError(
            f"{other} is no file of parts as the others are: report it alone"
        )
    if pictures != Pictures():
        raise MeshprepError(
            "--html, --picture and --vtu are for plans: leave them out for parts"
        )
    # Each file may hold several splits: all of them are rows of one table.
    splits = list(chain.from_iterable(kept_splits(path) for path in paths))
    if shown.as_json:
        console.show_json({"splits": splits})
    else:
        console.show_tables(halo_tables(splits, full=shown.full))
