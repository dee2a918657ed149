"""``meshprep plan``: a plan for a mesh that keeps its order."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from meshprep.loops.options import Options

from .. import console, options, process
from .reorder import Blocks, show_job


def plan_mesh(
    mesh: options.MeshFile,
    loops: options.LoopChoice,
    chosen: Options,
    inputs: options.InputOptions,
    how: options.RunOptions,
    shown: options.Shown,
    plan: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", "--plan", help="Plan to write; default: MESH.plan.h5."
        ),
    ] = None,
    blocks: Blocks = None,
) -> None:
    """Plan the loops of a mesh that keeps its order.

    Writes the plan only; nodes and cells keep their numbers.
    """
    from meshprep.pipeline import workflow

    # Prepare the process before any kernel is loaded.
    options.set_threads(how.threads)
    process.keep_freed()
    watch = console.Stopwatch()
    # The job of reorder, without a mesh to write and without an order of the points.
    job = workflow.Job(
        source=inputs.of(mesh, loops.loops),
        output=None,
        plan=plan or options.default_plan(mesh),
        requests=loops.requests,
        options=replace(chosen, method="none"),
        overwrite=how.force,
        blocks=blocks,
    )
    with console.progress(shown.quiet) as report:
        # A dry run gives the text of what would be done, a run its result.
        done: Any
        if how.dry_run:
            done = workflow.describe(job, report)
        else:
            done = workflow.run(job, report)
    show_job(done, shown, watch)
