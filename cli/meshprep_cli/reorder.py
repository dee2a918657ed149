"""``meshprep reorder``: a renumbered mesh and a plan from a mesh."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import console, options


def run(
    mesh: options.MeshFile,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Mesh to write; default: MESH-reordered."),
    ] = None,
    plan: options.PlanOutput = None,
    permutation: Annotated[
        Path | None,
        typer.Option(
            "--permutation",
            help="File for the new number of each point (vertex): .perm .txt or .npy.",
        ),
    ] = None,
    blocks: options.BlocksOutput = None,
    loop: options.LoopTexts = None,
    loops: options.LoopsFile = None,
    sets: options.Sets = None,
    method: options.Method = "gps",
    order_time: options.OrderTime = 10.0,
    partition: options.Partition = None,
    partition_option: options.PartitionOptions = None,
    effort: options.Effort = None,
    time_limit: options.TimeLimit = None,
    colour_weight: options.ColourWeight = None,
    staged_bytes: options.StagedBytes = None,
    block_size: options.BlockSize = None,
    target: options.Target = "gpu",
    sort_by_colour: options.SortByColour = False,
    seed: options.Seed = 0,
    no_proof: options.NoProof = False,
    input_format: options.Format = None,
    output_format: Annotated[
        str | None, typer.Option("--to", help="Format to write, where its name does not tell.")
    ] = None,
    dimension: options.Dimension = None,
    drop: options.Drop = False,
    no_ids: Annotated[
        bool, typer.Option("--no-ids", help="Do not write original_id into the mesh.")
    ] = False,
    threads: options.Threads = None,
    force: options.Force = False,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
    full: options.Full = False,
    quiet: options.Quiet = False,
) -> None:
    """Renumber a mesh, cut its loops into blocks, and save both mesh and plan."""
    from meshprep.pipeline import workflow

    options.set_threads(threads)
    chosen = options.pipeline_options(
        method=method,
        order_time=order_time,
        partition=partition,
        partition_options=partition_option,
        effort=effort,
        time_limit=time_limit,
        colour_weight=colour_weight,
        staged_bytes=staged_bytes,
        block_size=block_size,
        target=target,
        sort_by_colour=sort_by_colour,
        seed=seed,
        no_proof=no_proof,
    )
    job = workflow.Job(
        mesh=mesh,
        output=output or options.default_output(mesh),
        plan=plan or options.default_plan(mesh),
        requests=tuple(options.requests(loop, loops)),
        options=chosen,
        declared=options.declared(sets, loops),
        input_format=input_format,
        output_format=output_format,
        dimension=dimension,
        drop=drop,
        overwrite=force,
        ids=not no_ids,
        permutation=permutation,
        blocks=blocks,
    )
    finish(job, dry_run=dry_run, as_json=as_json, full=full, quiet=quiet)


def finish(job: Any, *, dry_run: bool, as_json: bool, full: bool, quiet: bool) -> None:
    """Run or describe a job, and print its table."""
    from meshprep.pipeline import workflow
    from meshprep.report import plan_table

    watch = console.Stopwatch()
    with console.progress(quiet) as report:
        if dry_run:
            steps = workflow.describe(job, report)
        else:
            done = workflow.run(job, report)
    if dry_run:
        console.show_json(steps) if as_json else console.show("\n".join(steps["text"]))
        return
    for text in done.notes:
        console.note(text, quiet)
    if as_json:
        console.show_json(done.to_dict())
        return
    console.show_tables(plan_table(done.plan, full=full))
    console.show(f"wrote {' and '.join(str(p) for p in done.written)} in {watch}")
