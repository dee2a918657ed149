"""``meshprep plan``: a plan for a mesh that keeps its order."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .reorder import finish


def run(
    mesh: options.MeshFile,
    plan: Annotated[
        Path | None,
        typer.Option("-o", "--output", "--plan", help="Plan to write; default: MESH.plan.h5."),
    ] = None,
    blocks: options.BlocksOutput = None,
    loop: options.LoopTexts = None,
    loops: options.LoopsFile = None,
    sets: options.Sets = None,
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
    dimension: options.Dimension = None,
    threads: options.Threads = None,
    force: options.Force = False,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
    full: options.Full = False,
    quiet: options.Quiet = False,
) -> None:
    """Plan the loops of a mesh whose nodes and cells keep their order; writes the plan only."""
    from meshprep.pipeline import workflow

    options.set_threads(threads)
    chosen = options.pipeline_options(
        method="none",
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
        output=None,
        plan=plan or options.default_plan(mesh),
        requests=tuple(options.requests(loop, loops)),
        options=chosen,
        declared=options.declared(sets, loops),
        input_format=input_format,
        dimension=dimension,
        overwrite=force,
        blocks=blocks,
    )
    finish(job, dry_run=dry_run, as_json=as_json, full=full, quiet=quiet)
