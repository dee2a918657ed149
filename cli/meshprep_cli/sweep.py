"""``meshprep sweep``: many plans of one mesh, and one comparison."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import console, options

if TYPE_CHECKING:
    from meshprep.loops import LoopRequest
    from meshprep.report.sweep import SweepPoint


def run(
    mesh: options.MeshFile,
    block_sizes: Annotated[
        str,
        typer.Option(
            "--block-sizes", help="64:1024 doubles, 128:512:64 steps, 256,448 lists; or all three."
        ),
    ] = "64:1024",
    partitioners: Annotated[
        str,
        typer.Option(
            "--partitioners", help="As NAME or NAME:OPTION=VALUE:..., with commas between."
        ),
    ] = "blocks,metis,contiguous",
    orders: Annotated[
        str, typer.Option("--orders", help="Locality orders, with commas between.")
    ] = "gps",
    loop: options.LoopTexts = None,
    loops: options.LoopsFile = None,
    sets: options.Sets = None,
    target: options.Target = "gpu",
    seed: options.Seed = 0,
    no_proof: options.NoProof = False,
    html: options.Html = None,
    device: options.Device = "H200",
    registers: options.Registers = 64,
    bandwidth: options.Bandwidth = None,
    launch: options.Launch = None,
    measured: options.Measured = None,
    input_format: options.Format = None,
    dimension: options.Dimension = None,
    threads: options.Threads = None,
    as_json: options.Json = False,
    as_csv: options.Csv = False,
    full: options.Full = False,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Make plans of every block size, partitioner and order asked for, and compare them."""
    from meshprep.pipeline.options import Options
    from meshprep.pipeline.warm_up import sweep_tasks
    from meshprep.report.files import Files
    from meshprep.report.sweep import block_sizes as parsed
    from meshprep.report.sweep import sweep_points
    from meshprep.report.sweep_files import SweepJob, run_sweep

    options.refuse_both(as_json, as_csv)
    options.set_threads(threads)
    job = SweepJob(
        mesh=mesh,
        sweep_points=tuple(sweep_points(_words(orders), _words(partitioners), parsed(block_sizes))),
        requests=tuple(options.requests(loop, loops)),
        options=Options(target=target, seed=seed, proof=not no_proof),
        assumptions=options.assumptions(device, registers, bandwidth, launch, measured),
        files=Files(html=html, overwrite=force),
        declared=options.declared(sets, loops),
        input_format=input_format,
        dimension=dimension,
    )
    job.files.check([mesh])
    jobs = [
        replace(job.options, method=p.method, partition=p.partitioner) for p in job.sweep_points
    ]
    watch = console.Stopwatch()
    with console.compiled_ahead(sweep_tasks(jobs, mesh, input_format), quiet) as report:
        result = run_sweep(job, report)
    for name, reason in result.failures:
        console.note(f"no plan {name}: {reason}", quiet)
    if as_json:
        console.show_json(result.to_dict())
        return
    console.show_comparison(
        result.comparison, as_json=False, as_csv=as_csv, full=full, only=result.best.name
    )
    if not as_csv:
        console.show(f"best by {result.criterion}: {result.best.name}")
        given = {"--sets": sets, "--format": input_format, "--dimension": dimension}
        given |= {"--target": None if target == "gpu" else target, "--seed": seed or None}
        command = _command(mesh, result.best, loop, loops, given)
        console.show(f"to make it: {command}{_without(job.requests, loops)}")
    done = f"{len(result.comparison.plans)} plans in {watch}"
    console.note(done if html is None else f"{done}, wrote {html}", quiet)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _command(
    mesh: Path,
    point: SweepPoint,
    loop: list[str] | None,
    loops: Path | None,
    given: Mapping[str, Any],
) -> str:
    """What makes the best plan, and the mesh in its order, as a shell takes it."""
    words = ["meshprep", "reorder", str(mesh)]
    asked = {"--loop": loop, "--loops": loops, **given}
    asked |= {"--method": point.method, "--partition": point.partitioner}
    asked |= {"--partition-option": [f"{name}={value}" for name, value in point.options.items()]}
    asked |= {"--block-size": point.block_size}
    for option, values in asked.items():
        for value in values if isinstance(values, list) else [values]:
            words += [option, str(value)] if value is not None else []
    return shlex.join(words)


def _without(requests: Sequence[LoopRequest], loops: Path | None) -> str:
    """What must leave the file of loops first, since it goes before the command's options."""
    from meshprep.report.sweep import VARIED

    own = [word for word in VARIED if any(word in request.values for request in requests)]
    return f" (with {' and '.join(own)} taken out of {loops})" if own else ""
