"""The ``meshprep`` program: commands, exit codes and one-line errors."""

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any

import typer

from meshprep_runtime.errors import MeshprepError

from . import (
    apply,
    check,
    console,
    generate,
    info,
    loops,
    mpi,
    plan,
    reorder,
    report,
    restore,
    split,
    sweep,
    tune,
    warm_up,
)
from .groups import with_options
from .help import Command
from .output import own_stdout
from .process import own_process
from .stopping import stoppable

FAILED, BAD_INPUT, INTERNAL, INTERRUPTED = 1, 2, 3, 130

# Typer brings its own click or uses the installed one, by version; its base error is the same.
_UsageError = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

app = typer.Typer(
    name="meshprep",
    help="Prepares unstructured meshes so that solvers run fast.",
    add_completion=False,
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
def _commands() -> Callable[..., Any]:
    """All commands, put together once: a program may call :func:`main` many times."""
    return typer.main.get_command(app)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns the exit code.

    0 all well, 1 a check failed, 2 bad input or usage, 3 a fault in meshprep, 130 interrupted.
    """
    if argv is None:
        own_process()
    args = list(sys.argv[1:] if argv is None else argv)
    trace = "--traceback" in args
    args = [a for a in args if a != "--traceback"] or ["--help"]
    code = 0
    try:
        with mpi.one_voice(), stoppable(), own_stdout():
            code = _commands()(args=args, prog_name="meshprep", standalone_mode=False)
            sys.stdout.flush()
        # Some versions of typer turn Ctrl-C into this code, others into an exception.
        return _explain(KeyboardInterrupt()) if code == INTERRUPTED else int(code or 0)
    except BrokenPipeError:
        # The reader of our output went away (| head): no error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (Exception, KeyboardInterrupt) as error:
        if trace:
            traceback.print_exc()
        return _explain(error)


def _explain(error: BaseException) -> int:
    """Say in one line what went wrong; returns the exit code."""
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        return _fail("interrupted: nothing was written", INTERRUPTED)
    if isinstance(error, _UsageError):
        text = error.format_message()  # type: ignore[attr-defined]
        command = getattr(getattr(error, "ctx", None), "command_path", "meshprep")
        return _fail(f"{text} (see {command} --help)", BAD_INPUT)
    if isinstance(error, MeshprepError):
        return _fail(str(error), BAD_INPUT)
    if isinstance(error, MemoryError):
        return _fail("out of memory: use a machine with more, or a smaller mesh", BAD_INPUT)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}", BAD_INPUT)
    text = f"a fault in meshprep: {type(error).__name__}: {error}"
    return _fail(f"{text}: run again with --traceback and report it", INTERNAL)


def _fail(text: str, code: int) -> int:
    print(f"meshprep: error: {console.one_line(text)}", file=sys.stderr)  # noqa: T201
    return code


if __name__ == "__main__":
    sys.exit(main())
