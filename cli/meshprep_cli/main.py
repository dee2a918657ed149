"""The ``meshprep`` program: exit codes and one-line errors.

What takes long to import comes with :mod:`.commands`, so that Ctrl-C meanwhile is dealt with here.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from meshprep_runtime.errors import MeshprepError

from . import mpi
from .process import asked, one_line, own_process, stoppable, streams, tell

FAILED, BAD_INPUT, INTERNAL, INTERRUPTED = 1, 2, 3, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns the exit code.

    0 all well, 1 a check failed, 2 bad input or usage, 3 a fault in meshprep, 130 interrupted.
    """
    if argv is None:
        own_process()
    args = list(sys.argv[1:] if argv is None else argv)
    trace = "--traceback" in args
    args = [a for a in args if a != "--traceback"] or ["--help"]
    with streams():
        return _run(args, trace)


def _run(args: Sequence[str], trace: bool) -> int:
    code = 0
    try:
        with stoppable(), mpi.one_voice(), own_stdout():
            from .commands import commands

            code = commands()(args=args, prog_name="meshprep", standalone_mode=False)
            sys.stdout.flush()
        # Some versions of typer turn Ctrl-C into this code, others into an exception.
        return _explain(KeyboardInterrupt()) if code == INTERRUPTED else int(code or 0)
    except BrokenPipeError:
        # The reader of our output went away (| head): no error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (Exception, KeyboardInterrupt) as error:
        if trace:
            import traceback

            traceback.print_exc()
        return _explain(error)


def _explain(error: BaseException) -> int:
    """Say in one line what went wrong; returns the exit code."""
    # libraries that are being imported may turn Ctrl-C into an error of their own
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
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}", BAD_INPUT)
    text = f"a fault in meshprep: {type(error).__name__}: {error}"
    return _fail(f"{text}: run again with --traceback and report it", INTERNAL)


def _fail(text: str, code: int) -> int:
    tell(f"meshprep: error: {one_line(text)}")
    return code


@contextmanager
def own_stdout() -> Iterator[None]:
    """Give ``sys.stdout`` a descriptor of its own, and point descriptor 1 at standard error.

    METIS, say, prints remarks between the lines of a JSON document. Where ``sys.stdout`` is not
    descriptor 1 (a caller has put something else there), nothing changes.
    """
    if not _is_descriptor_1():
        yield
        return
    before = sys.stdout
    before.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        encoding, errors = before.encoding, before.errors
        with os.fdopen(os.dup(kept), "w", encoding=encoding, errors=errors) as own:
            sys.stdout = own
            yield
    finally:
        sys.stdout = before
        os.dup2(kept, 1)
        os.close(kept)


def _is_descriptor_1() -> bool:
    try:
        os.fstat(2)
        return sys.stdout.fileno() == 1
    except (AttributeError, OSError, ValueError):
        return False


if __name__ == "__main__":
    sys.exit(main())
