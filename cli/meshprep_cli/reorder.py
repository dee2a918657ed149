"""``meshprep reorder``: a renumbered mesh and a plan from a mesh."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meshprep.loops.options import Options

from . import console, options

if TYPE_CHECKING:
    from meshprep.pipeline.workflow import Job

Blocks = Annotated[
    Path | None,
    typer.Option("--blocks", help="File for the block of each element (edge): .part .txt or .npy."),
]


@dataclass(frozen=True)
class Outputs:
    """What is written, and how."""

    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Mesh to write; default: MESH-reordered."),
    ] = None
    plan: Annotated[
        Path | None, typer.Option("--plan", help="Plan to write; default: MESH.plan.h5.")
    ] = None
    permutation: Annotated[
        Path | None,
        typer.Option(
            "--permutation",
            help="File for the new number of each point (vertex): .perm .txt or .npy.",
        ),
    ] = None
    blocks: Blocks = None
    output_format: Annotated[
        str | None, typer.Option("--to", help="Format to write, where its name does not tell.")
    ] = None
    drop: options.Drop = False
    no_ids: Annotated[
        bool, typer.Option("--no-ids", help="Do not write original_id into the mesh.")
    ] = False


def run(
    mesh: options.MeshFile,
    outputs: Outputs,
    loops: options.LoopChoice,
    chosen: Options,
    source: options.InputOptions,
    how: options.RunOptions,
    shown: options.Shown,
) -> None:
    """Renumber a mesh, cut its loops into blocks, and save both mesh and plan."""
    from meshprep.pipeline.workflow import Job

    job = Job(
        mesh=mesh,
        output=outputs.output or options.default_output(mesh),
        plan=outputs.plan or options.default_plan(mesh),
        requests=loops.requests,
        chains=loops.chains,
        options=chosen,
        declared=source.declared(loops.loops),
        input_format=source.input_format,
        output_format=outputs.output_format,
        dimension=source.dimension,
        drop=outputs.drop,
        overwrite=how.force,
        ids=not outputs.no_ids,
        permutation=outputs.permutation,
        blocks=outputs.blocks,
    )
    finish(job, how, shown)


def finish(job: Job, how: options.RunOptions, shown: options.Shown) -> None:
    """Run or describe a job, and print its table."""
    from meshprep.pipeline import workflow
    from meshprep.report import plan_table

    options.set_threads(how.threads)
    watch = console.Stopwatch()
    with console.progress(shown.quiet) as report:
        if how.dry_run:
            steps = workflow.describe(job, report)
        else:
            done = workflow.run(job, report)
    if how.dry_run:
        console.show_json(steps) if shown.as_json else console.show("\n".join(steps["text"]))
        return
    for text in done.notes:
        console.note(text, shown.quiet)
    if shown.as_json:
        console.show_json(done.to_dict())
        return
    console.show_tables(plan_table(done.plan, full=shown.full))
    console.show(f"wrote {' and '.join(str(p) for p in done.written)} in {watch}")
