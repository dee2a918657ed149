"""``meshprep split``: a mesh cut into parts, one for each rank of a distributed run."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meshprep.loops.options import Options
from meshprep_runtime.errors import MeshprepError, listed

from .. import console, mpi, options

if TYPE_CHECKING:
    from meshprep.distribute.job.run import SplitJob


@dataclass(frozen=True)
class Splitting:
    """Into what a mesh is split, and how."""

    parts: Annotated[
        str, typer.Option("--parts", help="Number of parts, or several: 4,8,64.")
    ]
    cut: Annotated[
        str | None,
        typer.Option(
            "--cut",
            help="Who owns what: annealed, metis, refined, rcb, curve, or file:PARTS, "
            "a .npy array or a text with the part of each element. "
            "Default: annealed; refined with --slices; "
            "metis, where it is installed, for a file of parts.",
            show_default=False,
        ),
    ] = None
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights",
            help="Share of each part relative to the others, such as 1,1,3.7; or "
            "auto:TIMINGS.json, by the times that a program wrote of a run on equal parts.",
        ),
    ] = None
    increments: Annotated[
        str,
        typer.Option(
            "--increments",
            help="exec: elements at borders are executed by both parts; "
            "reverse: increments are sent back; auto: what costs less, loop by loop.",
        ),
    ] = "auto"
    slices: Annotated[
        bool,
        typer.Option(
            "--slices",
            help="Each rank of mpiexec reads and holds slices of the mesh or the file of "
            "parts, for meshes that do not fit one process; "
            "with --cut refined, rcb or curve.",
        ),
    ] = False
    fields: Annotated[
        bool,
        typer.Option(
            "--fields",
            help="Keep the mesh's values in the parts, too, beside coordinates and groups.",
        ),
    ] = False
    op2: Annotated[
        Path | None,
        typer.Option(
            "--op2",
            help="HDF5 file to write the part of each element of the leading set to, "
            "as OP2's dats part_K.",
        ),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="File to write; default: MESH.parts.h5."),
    ] = None

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(_numbers_of(int, "--parts", self.parts))

    @property
    def shares(self) -> tuple[float, ...] | str:
        """The weights, or the file of times; empty for equal parts."""
        if self.weights is None:
            return ()
        if self.weights.startswith("auto:"):
            return self.weights
        return tuple(_numbers_of(float, "--weights", self.weights))


def split_mesh(
    source: Annotated[
        Path,
        typer.Argument(help="Mesh, plan, or file of parts to add to.", show_default=False),
    ],
    splitting: Splitting,
    loops: options.LoopChoice,
    chosen: Options,
    read: options.InputOptions,
    how: options.RunOptions,
    shown: options.Shown,
) -> None:
    """Split a mesh into parts for distributed runs; writes one file."""
    from meshprep.distribute.job import run as jobs
    from meshprep.distribute.job.split import SplitOptions

    # A file of parts gets further numbers of parts in place; all else makes a new one.
    adding = jobs.kind_of(source) == "parts"
    output = splitting.output
    if output is None and adding:
        output = source
    elif output is None:
        output = options.default_parts(source)
    job = jobs.SplitJob(
        source=source,
        output=output,
        parts=splitting.numbers,
        requests=loops.requests,
        how=SplitOptions(splitting.cut, splitting.shares, splitting.increments),
        options=chosen,
        input_format=read.input_format,
        dimension=read.dimension,
        overwrite=how.force,
        declared=read.declared(loops.loops),
        slices=splitting.slices,
        op2=splitting.op2,
        fields=splitting.fields,
    )
    if how.dry_run:
        _describe(job, adding, shown)
        return
    options.set_threads(how.threads)
    watch = console.Stopwatch()
    # An error of one rank ends the others, too, which would wait for it for ever.
    together = mpi.ranks()
    with console.progress(shown.quiet) as report, mpi.nobody_waits(together):
        done = jobs.run(job, report, together)
    # Rank 0 alone is heard, so that each line appears once.
    for text in done.notes:
        console.note(text, shown.quiet)
    if shown.as_json:
        console.show_json(done.to_dict())
        return
    from meshprep.reporting.parts import halo_tables

    console.show_tables(halo_tables(list(done.figures.values()), full=shown.full))
    console.show(f"wrote {listed(done.written)} in {watch}")


def _describe(job: "SplitJob", adding: bool, shown: options.Shown) -> None:
    """Say what a dry run leaves undone."""
    # Which cut is the default depends on what is read.
    plain = f"would split {job.source} into {listed(job.parts)} parts"
    if job.how.cut:
        plain += f" by {job.how.cut}"
    text = [plain]
    if adding:
        text.append(f"would add to {job.output}")
    else:
        text.append(f"would write {job.output}")
    text += [f"would write {path}" for path in job.outputs[1:]]
    values = {
        "text": text,
        "parts": list(job.parts),
        "outputs": [str(path) for path in job.outputs],
    }
    console.show_lines_or_json(values, shown)


def _numbers_of(kind: type, flag: str, text: str) -> list:
    try:
        return [kind(number) for number in text.split(",")]
    except ValueError:
        raise MeshprepError(
            f"{flag} '{text}' must be numbers with commas between them"
        ) from None
