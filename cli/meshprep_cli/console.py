"""What a person sees: progress on stderr, tables on stdout."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from meshprep_runtime.errors import printable

from .process import LONGEST_WORD, one_line, shortened, stop_if_asked, tell

if TYPE_CHECKING:
    from meshprep.reporting import Comparison, Table
    from meshprep_runtime.plan.tuned import Timing

    from .options import Shown

Report = Callable[[float, int, str], None]
Compiling = Callable[[bool], None]

# Letters of a cell of a table.
LONGEST_CELL = 120


@contextmanager
def progress(quiet: bool) -> Iterator[Report]:
    """A function ``(done, total, stage)``: a bar on a terminal, a line a stage elsewhere.

    Either also says when a stage waits for kernels that are compiled, as in first runs
    only.
    """
    # Who asks for quiet can stop a run all the same.
    if quiet:
        yield lambda done, total, name: stop_if_asked()
        return
    # A bar moves, which a file or a log cannot show.
    if sys.stderr.isatty():
        shown = _bar()
    else:
        shown = _lines()
    with shown as (report, compiling), _watched(compiling):
        yield report


@contextmanager
def waiting(text: str, quiet: bool = False) -> Iterator[None]:
    """Say what a command without stages does: on a terminal, or while kernels compile."""
    if quiet or sys.stderr.isatty():
        with progress(quiet) as report:
            report(0, 1, text)
            yield
    else:
        with _watched(_CompilationTold(lambda: text)):
            yield


class _CompilationTold:
    """Says once a stage that it waits for the compiler."""

    def __init__(self, stage: Callable[[], str]) -> None:
        self._stage = stage
        self._told: set[str] = set()

    def __call__(self, begins: bool) -> None:
        stage = self._stage()
        if begins and stage not in self._told:
            from meshprep.kernels.machine_code import why_not_shipped

            first = why_not_shipped() or "in first runs only, half a minute or so"
            # How long it takes is said once.
            if self._told:
                more = ""
            else:
                more = f": {first}"
            self._told.add(stage)
            note(f"compiling kernels for '{stage}'{more}")


@contextmanager
def _lines() -> Iterator[tuple[Report, Compiling]]:
    stage = "start"
    last_line = ""

    def report(done: float, total: int, name: str) -> None:
        nonlocal stage, last_line
        stage = name
        # Stages are numbered from 1, as people count.
        line = f"[{int(done) + 1}/{total}] {name}"
        stop_if_asked()
        # a stage that is under way has its line already
        if done == int(done) and line != last_line:
            tell(f"meshprep: {printable(line)}")
            last_line = line

    yield report, _CompilationTold(lambda: stage)


@contextmanager
def _bar() -> Iterator[tuple[Report, Compiling]]:
    # Loaded where there is a terminal alone: scripts need not wait for it.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description:<22}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        stage = "reading"
        task = bars.add_task(stage, total=None)

        def report(done: float, total: int, name: str) -> None:
            nonlocal stage
            stage = name
            stop_if_asked()
            bars.update(task, completed=done, total=total, description=printable(name))

        def compiling(begins: bool) -> None:
            # The bar stands still for minutes then: say why.
            description = stage
            if begins:
                description += ": compiling kernels"
            bars.update(task, description=description)

        yield report, compiling


@contextmanager
def _watched(compiling: Compiling) -> Iterator[None]:
    """Call ``compiling(True)`` where the compiler begins, with False where it ends."""
    from meshprep_runtime._numba.compiling import compilation_watched

    with compilation_watched(lambda dispatcher: compiling(True), lambda: compiling(False)):
        yield


def note(text: str, quiet: bool = False) -> None:
    if not quiet:
        tell(f"meshprep: {one_line(text)}")


def show(text: str) -> None:
    typer.echo(printable(text))


def show_json(values: Any) -> None:
    # Not a number has no JSON: a fault of ours must not look like a document.
    typer.echo(json.dumps(values, indent=2, sort_keys=False, allow_nan=False))


def show_lines_or_json(values: dict[str, Any], shown: Shown) -> None:
    """What a dry run would do: its lines of text, or all of it as JSON."""
    if shown.as_json:
        show_json(values)
    else:
        show("\n".join(values["text"]))


def show_table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: bool = False,
    bold: Collection[tuple[int, int]] = (),
) -> None:
    """A table on stdout: first column to the left, the others to the right unless ``left``.

    ``bold`` are (row, column) of the cells that stand out on a terminal. A table that is
    too wide for it continues below, with the first column again.
    """
    # Names come from files, and may be as long as a page.
    lines = [[shortened(text, LONGEST_CELL) for text in row] for row in (header, *rows)]
    width = [max(map(len, column)) for column in zip(*lines, strict=True)]
    if title:
        typer.echo(typer.style(shortened(title, LONGEST_WORD), bold=True))
    for columns in _side_by_side(width):
        # The header is row -1, so that rows have the numbers that ``bold`` gives them.
        for number, row in enumerate(lines, start=-1):
            cells = []
            for j in columns:
                if left or j == 0:
                    cells.append(row[j].ljust(width[j]))
                else:
                    cells.append(row[j].rjust(width[j]))
            # Spaces at the end would break a line of exactly the terminal's width.
            cells[-1] = cells[-1].rstrip()
            for place, j in enumerate(columns):
                if (number, j) in bold:
                    cells[place] = typer.style(cells[place], bold=True)
            line = "  ".join(cells).rstrip()
            if number < 0:
                line = typer.style(line, dim=True)
            typer.echo(line)


def _side_by_side(width: Sequence[int]) -> Iterator[list[int]]:
    """The columns of each piece of a table: the first, and those that fit beside it."""
    # A file or a pipe has room for every column, and programs want them on one line.
    room = math.inf
    if sys.stdout.isatty():
        room = shutil.get_terminal_size().columns
    columns = [0]
    for j in range(1, len(width)):
        if len(columns) > 1 and sum(width[i] + 2 for i in columns) + width[j] > room:
            yield columns
            columns = [0]
        columns.append(j)
    yield columns


def show_tables(tables: Iterable[Table]) -> None:
    """Tables on stdout, an empty line after each, the best marked and what changed bold."""
    for table in tables:
        show_table(
            title=table.title, header=table.header, rows=table.marked(), bold=table.changed
        )
        show("")


def show_comparison(comparison: Comparison, shown: Shown) -> None:
    """A comparison on stdout: the verdict and a table, every figure, or JSON."""
    if shown.as_json:
        show_json(comparison.to_dict())
    elif shown.full:
        show_tables(comparison.tables())
        for line in comparison.lines():
            show(_for_terminal(one_line(line)))
    else:
        # Sentences stand between the tables, where they explain them.
        for part in comparison.brief():
            if isinstance(part, str):
                show(_for_terminal(one_line(part)))
            else:
                show_table(part.title, part.header, part.marked())


def _for_terminal(line: str) -> str:
    """A sentence as lines of a terminal, words whole; elsewhere as it stands."""
    if not sys.stdout.isatty():
        return line
    width = shutil.get_terminal_size().columns
    return textwrap.fill(line, width, subsequent_indent="  ", break_on_hyphens=False)


def difference(spread: float) -> str:
    """The time of the slowest run over the fastest: a share, or how many times as long."""
    # Nobody reads 2,340 %.
    if spread < 10:
        return f"{spread:.0%}"
    return f"{1 + spread:,.0f} times"


def times_as_fast(fast: Timing, slow: Timing) -> str:
    """By what factor one way is faster than another, where timings can tell."""
    # A factor inside the noise would be taken for a gain.
    factor = fast.times_as_fast(slow)
    if factor is None:
        return "too noisy to tell"
    return f"{factor:.2f} times as fast"


def slower(slow: Timing, fast: Timing) -> str:
    """How many times as long one way takes, or ``noise`` if it may be no longer."""
    factor = fast.times_as_fast(slow)
    if factor is None:
        return "noise"
    return f"{factor:.2f}"


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def __str__(self) -> str:
        return f"{time.perf_counter() - self._start:.1f} s"
