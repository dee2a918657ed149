"""``meshprep warm-up``: compile before the first run."""

from typing import Annotated

import typer

from .. import console, options


def run(
    everything: Annotated[
        bool, typer.Option("--all", help="For every method, partitioner and format.")
    ] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Compile ahead what a first run would compile.

    That is what reordering a Gmsh mesh needs, or everything.
    """
    from meshprep.loops.options import Options
    from meshprep.pipeline.warm_up import all_tasks, job_tasks, warm_up

    watch = console.Stopwatch()
    tasks = all_tasks() if everything else [*job_tasks(Options(), ["gmsh"]), "measure"]
    with console.progress(quiet) as report:
        warmed = warm_up(tasks, report)
    seconds = warmed.seconds
    if as_json:
        console.show_json({"seconds": seconds, "failures": warmed.failures})
        return 1 if warmed.failures else 0
    for task, why in warmed.failures.items():
        console.show(f"{task} failed: {why}")
    if seconds:
        rows = [(task, f"{spent:.1f}") for task, spent in seconds.items()]
        rows.append(("all", f"{sum(seconds.values()):.1f}"))
        console.show_table("", ("compiled", "seconds of processor"), rows)
        console.show("")
    if not warmed.failures:
        console.show(f"ready in {watch}" if seconds else "ready: all was compiled before")
    return 1 if warmed.failures else 0
