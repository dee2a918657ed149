"""The ``meshprep`` program: exit codes and one-line errors.

What takes long to import comes with :mod:`.commands`, so that Ctrl-C meanwhile is dealt
with here.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from meshprep_runtime.errors import MeshprepError

from . import mpi
from .process import asked, one_line, own_process, stoppable, streams, tell

FAILED, BAD_INPUT, INTERNAL, INTERRUPTED = 1, 2, 3, 130
# Flags that commands have, and people type before the command, too.
QUIET = ("-q", "--quiet")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns the exit code.

    0 all well, 1 a check failed, 2 bad input or usage, 3 a fault in meshprep, 130
    interrupted.
    """
    # A caller's process keeps its signals, threads and warnings as they are.
    if argv is None:
        own_process()
        argv = sys.argv[1:]
    # It goes anywhere, also before a command that cannot be loaded.
    args = list(argv)
    trace = "--traceback" in args
    args = [a for a in args if a != "--traceback"]
    with streams():
        return _run(_command_first(args) or ["--help"], trace)


def _command_first(args: Sequence[str]) -> list[str]:
    """The words of a command line, with ``-q`` behind the command that it stands before."""
    count = 0
    while count < len(args) and args[count] in QUIET:
        count += 1
    return [*args[count : count + 1], *args[:count], *args[count + 1 :]]


def _run(args: Sequence[str], trace: bool) -> int:
    code = 0
    try:
        with stoppable(), mpi.one_voice(), own_stdout():
            # Here, so that Ctrl-C while it is loaded is dealt with, too.
            from .commands import commands

            code = commands()(args=args, prog_name="meshprep", standalone_mode=False)
            sys.stdout.flush()
        # Some versions of typer turn Ctrl-C into this code, others into an exception.
        if code == INTERRUPTED:
            return _explain(KeyboardInterrupt())
        return int(code or 0)
    except BrokenPipeError:
        # The reader of our output went away (| head): no error of ours.
        # Python writes what is left once more when it ends, and would fail then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (Exception, KeyboardInterrupt) as error:
        if trace:
            import traceback

            traceback.print_exc()
        return _explain(error)


def _explain(error: BaseException) -> int:
    """Say in one line what went wrong; returns the exit code."""
    # Libraries that are being imported may turn Ctrl-C into an error of their own.
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort" or asked():
        return _fail("interrupted: nothing was written", INTERRUPTED)
    if any(c.__name__ == "ClickException" for c in type(error).__mro__):
        # Typer brings its own click or uses the installed one, by version.
        text = error.format_message()  # type: ignore[attr-defined]
        command = getattr(getattr(error, "ctx", None), "command_path", "meshprep")
        return _fail(f"{text} (see {command} --help)", BAD_INPUT)
    if isinstance(error, MeshprepError):
        return _fail(str(error), BAD_INPUT)
    if isinstance(error, MemoryError):
        return _fail("out of memory: use a machine with more, or a smaller mesh", BAD_INPUT)
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        if error.filename:
            reason = f"{error.filename}: {reason}"
        return _fail(reason, BAD_INPUT)
    # What is left nobody has foreseen.
    text = f"a fault in meshprep: {type(error).__name__}: {error}"
    return _fail(f"{text}: run again with --traceback and report it", INTERNAL)


def _fail(text: str, code: int) -> int:
    tell(f"meshprep: error: {one_line(text)}")
    return code


@contextmanager
def own_stdout() -> Iterator[None]:
    """Give ``sys.stdout`` a descriptor of its own; descriptor 1 becomes standard error.

    METIS and others print remarks, which would stand between the lines of a JSON document.
    Where ``sys.stdout`` is not descriptor 1 (a caller has put something else there),
    nothing changes.
    """
    if not _is_descriptor_1():
        yield
        return
    # What stands in the buffer belongs before what libraries print from now on.
    before = sys.stdout
    before.flush()
    standard_output = os.dup(1)
    try:
        os.dup2(2, 1)
        encoding = before.encoding
        errors = before.errors
        with os.fdopen(
            os.dup(standard_output), "w", encoding=encoding, errors=errors
        ) as own:
            sys.stdout = own
            yield
    finally:
        sys.stdout = before
        os.dup2(standard_output, 1)
        os.close(standard_output)


def _is_descriptor_1() -> bool:
    try:
        # Where standard error is closed there is nowhere to send remarks to.
        os.fstat(2)
        return sys.stdout.fileno() == 1
    except (AttributeError, OSError, ValueError):
        return False


if __name__ == "__main__":
    sys.exit(main())
