"""Options that several commands share, so that they read alike everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from meshprep_runtime.errors import MeshprepError

if TYPE_CHECKING:
    from meshprep.loops import LoopRequest
    from meshprep.pipeline.options import Options
    from meshprep.report import Assumptions

MeshFile = Annotated[Path, typer.Argument(help="Mesh file.", show_default=False)]
Format = Annotated[
    str | None, typer.Option("--format", help="Format of the input, where its name does not tell.")
]
Dimension = Annotated[
    int | None,
    typer.Option("--dimension", min=1, max=3, help="Accept loose cells of lower dimension."),
]
LoopTexts = Annotated[
    list[str] | None,
    typer.Option(
        "--loop", help='A loop: "faces->cells" or faces:cells, one increment. Repeatable.'
    ),
]
LoopsFile = Annotated[Path | None, typer.Option("--loops", help="Loops described in TOML.")]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--sets", help='What HDF5 datasets are: "p_q=cells pecell=edges->cells". Repeatable.'
    ),
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        help="Locality order: gps, rcm, sloan, hilbert, morton, rcb, none; auto: the best of all.",
    ),
]
OrderTime = Annotated[
    float,
    typer.Option(
        "--order-time", min=0, help="Seconds after which --method auto begins no further one."
    ),
]
Partition = Annotated[
    str | None,
    typer.Option(
        "--partition",
        help="How loops are cut into blocks: blocks, metis, contiguous, structured, kahypar.",
    ),
]
PartitionOptions = Annotated[
    list[str] | None,
    typer.Option("--partition-option", help="NAME=VALUE for the partitioner. Repeatable."),
]
Effort = Annotated[
    str | None,
    typer.Option("--effort", help="How long to search: fast, default, strong."),
]
TimeLimit = Annotated[
    float | None,
    typer.Option("--time-limit", help="Seconds for the blocks; keeps the best so far."),
]
ColourWeight = Annotated[
    float | None,
    typer.Option("--colour-weight", help="Price of one more thread colour in a block, in loads."),
]
StagedBytes = Annotated[
    int | None, typer.Option("--staged-bytes", help="The most bytes a block may stage.")
]
BlockSize = Annotated[
    int | None,
    typer.Option(
        "--block-size",
        min=1,
        help="The most elements a block may have; default: 256 for the GPU, 2048 for the CPU.",
    ),
]
Target = Annotated[
    str,
    typer.Option(
        "--target",
        help="gpu: compact blocks, points grouped by them. cpu: a banded order to stream through.",
    ),
]
SortByColour = Annotated[
    bool, typer.Option("--sort-by-colour", help="Sort each block's elements by thread colour.")
]
NoProof = Annotated[
    bool, typer.Option("--no-proof", help="Do not prove the plan before it is saved.")
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of whatever is random.")]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, help="Threads to use; default: every core.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite outputs that exist.")]
Drop = Annotated[bool, typer.Option("--drop", help="Accept what the output format cannot carry.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and stop.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Full = Annotated[bool, typer.Option("--full", help="Show every figure, not only those to act on.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress on stderr.")]
PlanOutput = Annotated[
    Path | None, typer.Option("--plan", help="Plan to write; default: MESH.plan.h5.")
]
BlocksOutput = Annotated[
    Path | None,
    typer.Option("--blocks", help="File for the block of each element (edge): .part .txt or .npy."),
]

Csv = Annotated[
    bool, typer.Option("--csv", help="Print one line a figure and plan, for spreadsheets.")
]
Html = Annotated[
    Path | None,
    typer.Option("--html", help="Write the report as one page with figures; needs no network."),
]
Device = Annotated[
    str, typer.Option("--device", help="GPU to predict for: P100, V100, A100, H100, H200.")
]
Registers = Annotated[
    int, typer.Option("--registers", help="Registers of a thread, for the occupancy.")
]
Bandwidth = Annotated[
    float | None,
    typer.Option("--bandwidth", help="GB/s of the memory, to predict with; default: as published."),
]
Launch = Annotated[
    float | None,
    typer.Option("--launch", help="Microseconds of a launch, to predict with; default: 3."),
]
Measured = Annotated[
    list[str] | None,
    typer.Option(
        "--measured",
        help="LOOP=BEFORE:AFTER, milliseconds of a call, in place of predictions. Repeatable.",
    ),
]


def assumptions(
    device: str,
    registers: int,
    bandwidth: float | None,
    launch: float | None,
    measured: Sequence[str] | None,
) -> Assumptions:
    """What predictions rest on; raises MeshprepError for what is out of range."""
    from meshprep.report import Assumptions

    given = {} if launch is None else {"launch": launch}
    times = dict(map(_measured, measured or ()))
    return Assumptions(device, registers, bandwidth, measured=times, **given)


def _measured(text: str) -> tuple[str, tuple[float, float]]:
    loop, _, times = text.rpartition("=")
    before, _, after = times.partition(":")
    try:
        return loop, (float(before), float(after))
    except ValueError:
        raise MeshprepError(
            f"--measured '{text}' must read LOOP=BEFORE:AFTER, in milliseconds"
        ) from None


def refuse_both(as_json: bool, as_csv: bool) -> None:
    """Raise MeshprepError where both are asked for."""
    if as_json and as_csv:
        raise MeshprepError("--json and --csv exclude each other: name one")


def set_threads(threads: int | None) -> None:
    """Limit the threads of every parallel kernel."""
    if threads is None:
        return
    import numba

    most = numba.get_num_threads()
    if threads > most:
        raise MeshprepError(f"--threads {threads}: this machine gives {most} at most")
    numba.set_num_threads(threads)


def requests(texts: Sequence[str] | None, file: Path | None) -> list[LoopRequest]:
    """The loops of ``--loops`` and then of each ``--loop``; empty for the default."""
    from meshprep.loops import read_requests, simple_request

    found = read_requests(file) if file is not None else []
    return found + [simple_request(text) for text in texts or ()]


def declared(texts: Sequence[str] | None, file: Path | None = None) -> dict[str, str]:
    """What ``--sets`` and the table ``[sets]`` of ``--loops`` say; the former goes first."""
    from meshprep.io.declared import from_toml, parse

    return (from_toml(file) if file is not None else {}) | parse(texts or ())


def pipeline_options(
    *,
    method: str,
    order_time: float = 10.0,
    partition: str | None,
    partition_options: Sequence[str] | None,
    effort: str | None,
    time_limit: float | None,
    colour_weight: float | None,
    staged_bytes: int | None,
    block_size: int | None,
    target: str,
    sort_by_colour: bool,
    seed: int,
    no_proof: bool,
) -> Options:
    """The pipeline's options; raises MeshprepError for values it does not know."""
    from meshprep.pipeline.options import Options

    flags = {
        "effort": effort,
        "time_limit": time_limit,
        "colour_weight": colour_weight,
        "staged_bytes": staged_bytes,
    }
    given = {name: value for name, value in flags.items() if value is not None}
    return Options(
        method=method,
        order_time=order_time,
        partition=partition,
        partition_options=_pairs(partition_options or ()) | given,
        block_size=block_size,
        target=target,
        sort_by_colour=sort_by_colour,
        seed=seed,
        proof=not no_proof,
    )


def default_plan(mesh: Path) -> Path:
    """``wing.msh`` -> ``wing.plan.h5``, beside it."""
    return mesh.with_name(f"{_stem(mesh)}.plan.h5")


def default_output(mesh: Path) -> Path:
    """``wing.msh`` -> ``wing-reordered.msh``, beside it."""
    return mesh.with_name(f"{_stem(mesh)}-reordered{mesh.suffix}")


def _stem(mesh: Path) -> str:
    return mesh.name.removesuffix(mesh.suffix) or mesh.name


def _pairs(texts: Sequence[str]) -> dict[str, Any]:
    out = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise MeshprepError(f"--partition-option '{text}' must read NAME=VALUE")
        out[name] = value
    return out
