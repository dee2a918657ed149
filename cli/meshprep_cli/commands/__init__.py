"""The commands of the ``meshprep`` program."""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import typer

from ..groups import Command, with_options
from . import (
    apply,
    check,
    generate,
    info,
    loops,
    plan,
    reorder,
    report,
    restore,
    split,
    sweep,
    tune,
    warm_up,
)

app = typer.Typer(
    name="meshprep",
    help="Prepares unstructured meshes so that solvers run fast.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    reorder,
    plan,
    split,
    loops,
    check,
    report,
    sweep,
    tune,
    info,
    apply,
    restore,
    generate,
    warm_up,
):
    name = command.__name__.rpartition(".")[2].replace("_", "-")
    app.command(name, cls=Command)(with_options(command.run))


def _show_version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        typer.echo(f"meshprep {version('meshprep')}")
        raise typer.Exit


@app.callback()
def _global(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
    trace: Annotated[
        bool, typer.Option("--traceback", help="Show where an error arose; goes anywhere.")
    ] = False,
) -> None:
    """Prepares unstructured meshes so that solvers run fast."""


@cache
def commands() -> Callable[..., Any]:
    """All commands, put together once: a program may call :func:`.main.main` many times."""
    return typer.main.get_command(app)
