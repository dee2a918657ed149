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
    from meshprep.pipeline.warm_up import USUAL, all_tasks, warm_up

    watch = console.Stopwatch()
    with console.progress(quiet) as report:
        found = warm_up(all_tasks() if everything else USUAL, report)
    seconds = {task: value for task, value in found.items() if isinstance(value, float)}
    failures = {task: value for task, value in found.items() if isinstance(value, str)}
    if as_json:
        console.show_json({"seconds": seconds, "failures": failures})
        return 1 if failures else 0
    for task, why in failures.items():
        console.show(f"{task} failed: {why}")
    rows = [(task, f"{spent:.1f}") for task, spent in seconds.items()]
    rows.append(("all", f"{sum(seconds.values()):.1f}"))
    console.show_table("", ("compiled", "seconds of processor"), rows)
    console.show("")
    if not failures:
        console.show(f"ready in {watch}")
    return 1 if failures else 0
