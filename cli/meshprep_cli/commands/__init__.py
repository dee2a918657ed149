"""The commands of the ``meshprep`` program."""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import typer

from ..groups import Command, with_options
from .apply import reorder_fields
from .check import check_plan
from .generate import generate_mesh
from .info import describe_file
from .lint import lint_kernel
from .loops import print_loops
from .plan import plan_mesh
from .reorder import reorder_mesh
from .report import report_plans
from .restore import restore_fields
from .split import split_mesh
from .sweep import sweep_plans
from .tune import tune_loop
from .warm_up import compile_kernels

app = typer.Typer(
    name="meshprep",
    help="Prepares unstructured meshes so that solvers run fast.",
    # Errors are ours to print, in one line; help is plain text, so that it can be searched.
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# Commands by name, in the order of the help. Each is a function of the module of its name.
COMMANDS: dict[str, Callable[..., Any]] = {
    "reorder": reorder_mesh,
    "plan": plan_mesh,
    "split": split_mesh,
    "loops": print_loops,
    "check": check_plan,
    "lint": lint_kernel,
    "report": report_plans,
    "sweep": sweep_plans,
    "tune": tune_loop,
    "info": describe_file,
    "apply": reorder_fields,
    "restore": restore_fields,
    "generate": generate_mesh,
    "warm-up": compile_kernels,
}
for name, function in COMMANDS.items():
    app.command(name, cls=Command)(with_options(name, function))


def _show_version(value: bool) -> None:
    if value:
        # Loaded for --version alone: help and completion need not wait for it.
        from importlib.metadata import version

        typer.echo(f"meshprep {version('meshprep')}")
        raise typer.Exit


@app.callback()
def _global(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    trace: Annotated[
        bool, typer.Option("--traceback", help="Show where an error arose; goes anywhere.")
    ] = False,
) -> None:
    """Prepares unstructured meshes so that solvers run fast."""
    # Typer asks for a function that has these options; main() takes --traceback out itself.


@cache
def commands() -> Callable[..., Any]:
    """All commands, put together once: a program may call :func:`.main.main` many times."""
    return typer.main.get_command(app)
