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
    from meshprep.report import Comparison, Table
    from meshprep_runtime.plan.tuned import Timing

    from .options import Shown

Report = Callable[[float, int, str], None]
Compiling = Callable[[bool], None]

# Letters of a cell of a table.
LONGEST_CELL = 120


@contextmanager
def progress(quiet: bool) -> Iterator[Report]:
    """A function ``(done, total, stage)``: a bar on a terminal, a line a stage elsewhere.

    Either also says when a stage waits for kernels that are compiled, as in first runs only.
    """
    if quiet:
        yield lambda done, total, name: stop_if_asked()
        return
    shown = _bar() if sys.stderr.isatty() else _lines()
    with shown as (report, compiling), _watched(compiling):
        yield report


@contextmanager
def waiting(text: str, quiet: bool = False) -> Iterator[None]:
    """Say what a command without stages does: on a terminal, and where kernels are compiled."""
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

            first = why_not_shipped() or "in first runs only, a minute or two in all"
            more = "" if self._told else f": {first}"
            self._told.add(stage)
            note(f"compiling kernels for '{stage}'{more}")


@contextmanager
def _lines() -> Iterator[tuple[Report, Compiling]]:
    stage, told = "start", ""

    def report(done: float, total: int, name: str) -> None:
        nonlocal stage, told
        stage, line = name, f"[{int(done) + 1}/{total}] {name}"
        stop_if_asked()
        # a stage that is under way has its line already
        if done == int(done) and line != told:
            tell(f"meshprep: {printable(line)}")
            told = line

    yield report, _CompilationTold(lambda: stage)


@contextmanager
def _bar() -> Iterator[tuple[Report, Compiling]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<22}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        stage = "reading"
        task = bars.add_task(stage, total=None)

        def report(done: float, total: int, name: str) -> None:
            nonlocal stage
            stage = name
            stop_if_asked()
            bars.update(task, completed=done, total=total, description=printable(name))

        def compiling(begins: bool) -> None:
            bars.update(task, description=f"{stage}: compiling kernels" if begins else stage)

        yield report, compiling


@contextmanager
def _watched(compiling: Compiling) -> Iterator[None]:
    """Call ``compiling(True)`` where the compiler begins, ``compiling(False)`` where it ends."""
    from numba.core import event

    class Listener(event.Listener):
        depth = 0

        def on_start(self, event: Any) -> None:
            self.depth += 1
            if self.depth == 1:
                compiling(True)

        def on_end(self, event: Any) -> None:
            self.depth -= 1
            if self.depth == 0:
                compiling(False)

    with event.install_listener("numba:compile", Listener()):
        yield


def note(text: str, quiet: bool = False) -> None:
    if not quiet:
        tell(f"meshprep: {one_line(text)}")


def show(text: str) -> None:
    typer.echo(printable(text))


def show_json(values: Any) -> None:
    typer.echo(json.dumps(values, indent=2, sort_keys=False, allow_nan=False))


def show_table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: bool = False,
    bold: Collection[tuple[int, int]] = (),
) -> None:
    """A table on stdout: first column to the left, the others to the right unless ``left``.

    ``bold`` are (row, column) of the cells that stand out on a terminal. A table that is too wide
    for it continues below, with the first column again.
    """
    header, *rows = ([shortened(text, LONGEST_CELL) for text in r] for r in (header, *rows))
    width = [max(len(r[i]) for r in (header, *rows)) for i in range(len(header))]
    if title:
        typer.echo(typer.style(shortened(title, LONGEST_WORD), bold=True))
    for columns in _side_by_side(width):
        for number, row in enumerate((header, *rows), start=-1):
            cells = [
                row[j].ljust(width[j]) if left or j == 0 else row[j].rjust(width[j])
                for j in columns
            ]
            cells[-1] = cells[-1].rstrip()
            styled = (
                typer.style(text, bold=True) if (number, j) in bold else text
                for j, text in zip(columns, cells, strict=True)
            )
            line = "  ".join(styled).rstrip()
            typer.echo(typer.style(line, dim=True) if number < 0 else line)


def _side_by_side(width: Sequence[int]) -> Iterator[list[int]]:
    """The columns of each piece of a table: the first, and those that fit beside it."""
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else math.inf
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
        show_table(table.title, table.header, table.marked(), bold=table.changed)
        show("")


def show_comparison(comparison: Comparison, shown: Shown) -> None:
    """A comparison on stdout: the verdict and a table, or every figure, or as a script wants it."""
    if shown.as_json:
        show_json(comparison.to_dict())
    elif shown.full:
        show_tables(comparison.tables())
        for line in comparison.lines():
            show(_for_terminal(one_line(line)))
    else:
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
    """How much longer the slowest run took than the fastest: a share, or how many times as long."""
    return f"{spread:.0%}" if spread < 10 else f"{1 + spread:,.0f} times"


def times_as_fast(fast: Timing, slow: Timing) -> str:
    """By what factor one way is faster than another, where timings can tell."""
    factor = fast.times_as_fast(slow)
    return "too noisy to tell" if factor is None else f"{factor:.2f} times as fast"


def slower(slow: Timing, fast: Timing) -> str:
    """How many times as long one way takes, for a table; ``noise`` where that may be all."""
    factor = fast.times_as_fast(slow)
    return "noise" if factor is None else f"{factor:.2f}"


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def __str__(self) -> str:
        return f"{time.perf_counter() - self._start:.1f} s"
