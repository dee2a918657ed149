"""Options that several commands share, so that they read alike everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from meshprep.registry.formats import FORMATS, WRITTEN
from meshprep_runtime.errors import MeshprepError

from .groups import words

if TYPE_CHECKING:
    from meshprep.io.source import MeshSource
    from meshprep.loops.requests import LoopRequest

MeshFile = Annotated[Path, typer.Argument(help="Mesh file.", show_default=False)]
PlanFile = Annotated[Path, typer.Argument(help="Plan file.", show_default=False)]
Drop = Annotated[
    bool,
    typer.Option("--drop", help="Accept that the output is written without some things."),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite outputs that exist.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Full = Annotated[
    bool, typer.Option("--full", help="Show every figure, not only those to act on.")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress on stderr.")]
Html = Annotated[
    Path | None,
    typer.Option(
        "--html", help="Write the report as one page with figures; needs no network."
    ),
]
NoMeasure = Annotated[
    bool, typer.Option("--no-measure", help="Do not time the loops before and after.")
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, help="Threads to use; default: every core."),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--sets",
        help='What HDF5 datasets are: "p_q=cells pecell=edges->cells". Repeatable.',
    ),
]

InputFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="Format of the input, where its name does not tell: "
        f"{', '.join(FORMATS.built_in)}.",
        autocompletion=lambda: list(FORMATS),
    ),
]


def output_format(flag: str) -> Any:
    """The option that names the format to write."""
    return typer.Option(
        flag,
        help=f"Format to write, where its name does not tell: {', '.join(WRITTEN)}.",
        autocompletion=lambda: [*WRITTEN, *FORMATS.added],
    )


@dataclass(frozen=True)
class InputOptions:
    """How the mesh is read."""

    sets: Sets = None
    input_format: InputFormat = None
    dimension: Annotated[
        int | None,
        typer.Option(
            "--dimension",
            min=1,
            max=3,
            help="Dimension of the cells to loop over; accepts loose cells of a lower one.",
        ),
    ] = None

    def declared(self, loops: Path | None = None) -> dict[str, str]:
        """Declarations of ``--sets``, and where it has none, ``[sets]`` of ``--loops``."""
        return declared(self.sets, loops)

    def of(self, mesh: Path, loops: Path | None = None) -> MeshSource:
        """The file to read."""
        from meshprep.io.source import MeshSource

        return MeshSource(mesh, self.input_format, self.dimension, self.declared(loops))

    def of_any(self, mesh: Path | None) -> MeshSource | None:
        """The file to read, if there is one; raises MeshprepError for options alone."""
        # An option without a file to read would be ignored silently.
        if mesh is None and self != InputOptions():
            flag = next(words(self))
            raise MeshprepError(f"{flag} says how to read a mesh: name one with --mesh")
        if mesh is None:
            return None
        return self.of(mesh)


@dataclass(frozen=True)
class LoopChoice:
    """Which loops run over the mesh."""

    loop: Annotated[
        list[str] | None,
        typer.Option(
            "--loop",
            help="A loop that adds through one map: "
            '"faces->cells" or faces:cells. Repeatable.',
        ),
    ] = None
    loops: Annotated[
        Path | None,
        typer.Option(
            "--loops",
            help="Loops described in TOML; meshprep loops prints a file to start from.",
        ),
    ] = None

    @property
    def requests(self) -> tuple[LoopRequest, ...]:
        """The loops of ``--loops`` and then of each ``--loop``; empty for the default."""
        from meshprep.loops.requests import read_requests, simple_request

        # The first loop decides the order of its sets: those of the file come first.
        requests = []
        if self.loops is not None:
            requests += read_requests(self.loops)
        requests += map(simple_request, self.loop or ())
        return tuple(requests)


@dataclass(frozen=True)
class RunOptions:
    """How the command runs."""

    threads: Threads = None
    force: Force = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and stop.")
    ] = False


@dataclass(frozen=True)
class Shown:
    """What is printed."""

    as_json: Json = False
    full: Full = False
    quiet: Quiet = False


@dataclass(frozen=True)
class Times:
    """What calls of the loops take."""

    measured: Annotated[
        list[str] | None,
        typer.Option(
            "--measured",
            help="LOOP=BEFORE:AFTER, milliseconds of a call. Repeatable.",
        ),
    ] = None
    no_measure: NoMeasure = False

    @property
    def given(self) -> dict[str, tuple[float, float]]:
        """By loop, before and after."""
        return dict(map(_measured, self.measured or ()))


def _measured(text: str) -> tuple[str, tuple[float, float]]:
    # From the right: a name of a loop may have an equals sign.
    loop, _, times = text.rpartition("=")
    before, _, after = times.partition(":")
    try:
        return loop, (float(before), float(after))
    except ValueError:
        raise MeshprepError(
            f"--measured '{text}' must read LOOP=BEFORE:AFTER, in milliseconds"
        ) from None


def declared(texts: Sequence[str] | None, file: Path | None = None) -> dict[str, str]:
    """Declarations of ``--sets``, and of ``[sets]`` in a loops.toml where it has none."""
    from meshprep.io.declared import from_toml, parse

    declarations: dict[str, str] = {}
    if file is not None:
        declarations |= from_toml(file)
    # What is typed goes before what a file says.
    return declarations | parse(texts or ())


def set_threads(threads: int | None) -> None:
    """Limit the threads of every parallel kernel."""
    if threads is None:
        return
    # Numba's own error names neither the option nor the machine.
    import numba

    most = numba.get_num_threads()
    if threads > most:
        raise MeshprepError(f"--threads {threads}: this machine gives {most} at most")
    numba.set_num_threads(threads)


def default_plan(mesh: Path) -> Path:
    """``wing.msh`` -> ``wing.plan.h5``, beside it."""
    mesh = case_of(mesh)
    return mesh.parent / f"{_stem(mesh)}.plan.h5"


def default_parts(source: Path) -> Path:
    """``wing.msh`` and ``wing.plan.h5`` -> ``wing.parts.h5``, beside it."""
    source = case_of(source)
    return source.parent / f"{_stem(source).removesuffix('.plan')}.parts.h5"


def default_output(mesh: Path) -> Path:
    """``wing.msh`` -> ``wing-reordered.msh``, beside it."""
    mesh = case_of(mesh)
    return mesh.parent / f"{_stem(mesh)}-reordered{mesh.suffix}"


def case_of(mesh: Path) -> Path:
    """The folder of a case that the path stands for; the path of all other meshes."""
    from meshprep.io.foam import case_folder

    return case_folder(mesh) or mesh


def _stem(mesh: Path) -> str:
    return mesh.name.removesuffix(mesh.suffix) or mesh.name
