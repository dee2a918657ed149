"""``meshprep sweep``: many plans of one mesh, and one comparison."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from meshprep.loops.options import Options
from meshprep_runtime.errors import listed as all_of

from .. import console, options, process
from ..groups import listed, words

if TYPE_CHECKING:
    from meshprep.reporting.sweep import SweepPoint


# What the command that makes a plan says, unless it is what reorder chooses itself.
SHOWN = ("method", "partition", "block_size")


@dataclass(frozen=True)
class SweepAxes:
    """What a sweep varies."""

    block_sizes: Annotated[
        str | None,
        typer.Option(
            "--block-sizes",
            help="64:1024 doubles (default; for the CPU 512:8192), 128:512:64 steps by 64, "
            "256,448 lists; commas join them.",
        ),
    ] = None
    partitioners: Annotated[
        str,
        typer.Option(
            "--partitioners",
            help="NAME or NAME:OPTION=VALUE:..., with commas between them.",
        ),
    ] = "blocks,metis,contiguous"
    orders: Annotated[
        str, typer.Option("--orders", help="Locality orders, with commas between them.")
    ] = "gps"

    def points(self, target: str) -> tuple[SweepPoint, ...]:
        """Every combination; raises MeshprepError for what cannot be read."""
        from meshprep.reporting.sweep import block_sizes, sweep_points

        # A thread of the CPU has a cache of its own, larger than a GPU's shared memory.
        sizes = block_sizes(
            self.block_sizes or {"gpu": "64:1024", "cpu": "512:8192"}[target]
        )
        return tuple(sweep_points(listed(self.orders), listed(self.partitioners), sizes))


@dataclass(frozen=True)
class SweepRun:
    """How the sweep runs, and the page that it writes."""

    html: options.Html = None
    no_measure: options.NoMeasure = False
    threads: options.Threads = None
    force: options.Force = False


def sweep_plans(
    mesh: options.MeshFile,
    axes: SweepAxes,
    loops: options.LoopChoice,
    chosen: Options,
    inputs: options.InputOptions,
    how: SweepRun,
    shown: options.Shown,
) -> None:
    """Make and compare plans of many block sizes and partitioners."""
    from meshprep.reporting.files import ReportFiles
    from meshprep.reporting.sweep import VARIED, SweepPoint, run_sweep

    # Prepare the process before any kernel is loaded.
    options.set_threads(how.threads)
    process.keep_freed()
    # Read what is varied, so that a typing error does not wait for the mesh.
    source = inputs.of(mesh, loops.loops)
    requests = loops.requests
    points = axes.points(chosen.target)
    files = ReportFiles(html=how.html, overwrite=how.force)
    watch = console.Stopwatch()
    # The best plan alone is timed: calls of all would take minutes.
    measure = not how.no_measure
    with console.progress(shown.quiet) as report:
        result = run_sweep(
            source, points, requests, chosen, files, measure=measure, progress=report
        )
    for text in result.notes:
        console.note(text, shown.quiet)
    # Combinations that fail for one reason share a line.
    reasons = dict.fromkeys(reason for _, reason in result.failures)
    for reason in reasons:
        without = all_of([name for name, why in result.failures if why == reason])
        console.note(f"no plan {without}: {reason}", shown.quiet)
    if shown.as_json:
        console.show_json(result.to_dict())
        return
    console.show_comparison(result.comparison, shown)
    # The command that makes the best plan says only what reorder would not choose itself.
    best = result.best
    plain = SweepPoint(chosen.method, chosen.partitioner, chosen.block_elements)
    if best == plain:
        chose = words(chosen)
    else:
        chose = words(best.over(chosen), SHOWN)
    command = ["meshprep", "reorder", str(mesh), *words(loops), *words(inputs), *chose]
    # a file of loops goes before the command's options, so what was varied must leave it
    own = [word for word in VARIED if any(word in request.values for request in requests)]
    if own:
        without = f" (with {' and '.join(own)} taken out of {loops.loops})"
    else:
        without = ""
    console.show(f"to make it: {shlex.join(command)}{without}")
    done = f"{len(result.comparison.plans)} plans in {watch}"
    if files.outputs:
        done += f", wrote {' and '.join(map(str, files.outputs))}"
    console.note(done, shown.quiet)
