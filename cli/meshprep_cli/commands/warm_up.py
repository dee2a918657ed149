"""``meshprep warm-up``: compile before the first run."""

from collections.abc import Sequence
from typing import Annotated

import typer

from .. import console, options


def compile_kernels(
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
    tasks: Sequence[str] = USUAL
    if everything:
        tasks = all_tasks()
    with console.progress(quiet) as report:
        results = warm_up(tasks, report)
    # A task gives its seconds, or why it failed; the others are compiled all the same.
    seconds = {task: value for task, value in results.items() if isinstance(value, float)}
    failures = {task: value for task, value in results.items() if isinstance(value, str)}
    code = int(bool(failures))
    if as_json:
        console.show_json({"seconds": seconds, "failures": failures})
        return code
    for task, why in failures.items():
        console.show(f"{task} failed: {why}")
    rows = [(task, f"{spent:.1f}") for task, spent in seconds.items()]
    rows.append(("all", f"{sum(seconds.values()):.1f}"))
    console.show_table("", ("compiled", "seconds of processor"), rows)
    console.show("")
    # Several tasks run at once, so that their seconds are more than those that passed.
    if not failures:
        console.show(f"ready in {watch}")
    return code
