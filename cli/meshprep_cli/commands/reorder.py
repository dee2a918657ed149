"""``meshprep reorder``: a renumbered mesh and a plan from a mesh."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from meshprep.loops.options import Options
from meshprep_runtime.errors import MeshprepError, listed

from .. import console, options, process

if TYPE_CHECKING:
    from meshprep.pipeline.workflow import JobResult

Blocks = Annotated[
    Path | None,
    typer.Option(
        "--blocks", help="File for the block of each element (edge): .part .txt or .npy."
    ),
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
    old_to_new: Annotated[
        Path | None,
        typer.Option(
            "--old-to-new",
            "--permutation",
            help="File for the new number of each old point (vertex): .perm .txt or .npy.",
        ),
    ] = None
    new_to_old: Annotated[
        Path | None,
        typer.Option(
            "--new-to-old",
            help="File for the old number of each new point, the inverse of --old-to-new.",
        ),
    ] = None
    blocks: Blocks = None
    cell_map: Annotated[
        bool,
        typer.Option(
            "--cell-map",
            help="Write only constant/cellMap into an OpenFOAM case, "
            "for renumberMesh with method manual.",
        ),
    ] = False
    output_format: Annotated[str | None, options.output_format("--to")] = None
    drop: options.Drop = False
    no_ids: Annotated[
        bool,
        typer.Option(
            "--no-ids",
            help="Do not write original_id, the number in the input, into the mesh.",
        ),
    ] = False
    no_measure: options.NoMeasure = False
    order_only: Annotated[
        bool,
        typer.Option(
            "--order-only", help="Order the mesh alone: no plan, blocks or proof."
        ),
    ] = False

    def __post_init__(self) -> None:
        if not self.order_only:
            return
        # Either file would come of the plan that is not made.
        for flag, path in (("--plan", self.plan), ("--blocks", self.blocks)):
            if path is not None:
                raise MeshprepError(f"--order-only makes no plan: leave {flag} out")


# What whole solvers gain by each order: docs/worth.md.
FOR_FINITE_ELEMENTS = (
    "an unchanged solver of finite elements gains more by --method hilbert"
)


def reorder_mesh(
    mesh: options.MeshFile,
    outputs: Outputs,
    loops: options.LoopChoice,
    chosen: Options,
    inputs: options.InputOptions,
    how: options.RunOptions,
    shown: options.Shown,
) -> None:
    """Renumber a mesh and cut its loops into blocks.

    Writes the mesh in its new order and the plan.
    """
    from meshprep.kernels.machine_code import usual_made
    from meshprep.pipeline import workflow

    # Prepare the process before any kernel is loaded.
    options.set_threads(how.threads)
    process.keep_freed()
    watch = console.Stopwatch()
    # Name the files: a mesh, or the map from which OpenFOAM renumbers the case itself.
    output = outputs.output
    cell_map = None
    if outputs.cell_map:
        if output:
            raise MeshprepError("--cell-map writes no new case: leave --output out")
        cell_map = options.case_of(mesh) / "constant" / "cellMap"
    elif output is None:
        output = options.default_output(mesh)
    plan = outputs.plan
    if plan is None and not outputs.order_only:
        plan = options.default_plan(mesh)
    job = workflow.Job(
        source=inputs.of(mesh, loops.loops),
        output=output,
        cell_map=cell_map,
        plan=plan,
        requests=loops.requests,
        options=chosen,
        output_format=outputs.output_format,
        drop=outputs.drop,
        overwrite=how.force,
        ids=not outputs.no_ids,
        old_to_new=outputs.old_to_new,
        new_to_old=outputs.new_to_old,
        blocks=outputs.blocks,
        measure=not (outputs.no_measure or outputs.order_only),
    )
    with console.progress(shown.quiet) as report:
        # A dry run gives the text of what would be done, a run its result.
        done: Any
        if how.dry_run:
            done = workflow.describe(job, report)
        elif usual_made():
            done = workflow.run(job, report)
        else:
            # Compile on all cores at once what the steps would wait for one by one.
            from meshprep.pipeline.warm_up import compiling_beside

            with compiling_beside():
                done = workflow.run(job, report)
    show_job(done, shown, watch)


def show_job(
    done: "JobResult | dict[str, Any]", shown: options.Shown, watch: console.Stopwatch
) -> None:
    """Print what a job did, or, of a dry run, what it would do."""
    if isinstance(done, dict):
        console.show_lines_or_json(done, shown)
        return
    for text in done.notes:
        console.note(text, shown.quiet)
    # Losses were accepted unseen, and are nowhere else to be found.
    for text in done.dropped:
        console.note(text)
    if shown.as_json:
        console.show_json(done.to_dict())
        return
    if done.plan is None:
        # Without a plan all there is to tell is which order each set got, and why.
        for ordered in done.orders:
            console.show(f"{ordered.set}: {ordered.reason}")
    else:
        # The first lines of a report, with the times that were measured just now.
        from meshprep.reporting import Comparison, this_machine

        machine = this_machine() if done.measured else ""
        comparison = Comparison(
            names=("",),
            plans=(done.plan,),
            times={"": done.measured},
            machine=machine,
        )
        console.show_comparison(comparison, shown)
        order = done.plan.metrics.locality
        usual = order is not None and (order.target, order.method) == ("cpu", "gps")
        # Matrices and graphs have no coordinates, which hilbert needs.
        if usual and done.mesh is not None and done.mesh.coordinates is not None:
            console.show(FOR_FINITE_ELEMENTS)
    console.show(f"wrote {listed(done.written)} in {watch}")
