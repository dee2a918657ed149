"""``meshprep plan``: a plan for a mesh that keeps its order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from meshprep.loops.options import Options

from . import options
from .reorder import Blocks, finish


def run(
    mesh: options.MeshFile,
    loops: options.LoopChoice,
    chosen: Options,
    source: options.InputOptions,
    how: options.RunOptions,
    shown: options.Shown,
    plan: Annotated[
        Path | None,
        typer.Option("-o", "--output", "--plan", help="Plan to write; default: MESH.plan.h5."),
    ] = None,
    blocks: Blocks = None,
) -> None:
    """Plan the loops of a mesh whose nodes and cells keep their order; writes the plan only."""
    from meshprep.pipeline.workflow import Job

    job = Job(
        mesh=mesh,
        output=None,
        plan=plan or options.default_plan(mesh),
        requests=loops.requests,
        chains=loops.chains,
        options=replace(chosen, method="none"),
        declared=source.declared(loops.loops),
        input_format=source.input_format,
        dimension=source.dimension,
        overwrite=how.force,
        blocks=blocks,
    )
    finish(job, how, shown)
