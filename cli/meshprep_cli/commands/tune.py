"""``meshprep tune``: the fastest way to run a loop, found and written into its plan."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from meshprep.loops.options import Options
from meshprep_runtime.errors import MeshprepError

from .. import console, options
from ..groups import listed

if TYPE_CHECKING:
    from meshprep.pipeline.tune import Tuning
    from meshprep.pipeline.tune_stores import StoreTimes
    from meshprep_runtime.plan import Plan
    from meshprep_runtime.plan.tuned import Trial

SHOWN = 12


@dataclass(frozen=True)
class KernelOptions:
    """What runs, and on what."""

    kernel: Annotated[
        str | None,
        typer.Option(
            "--kernel",
            help="module:function or FILE.py:function, to run here.",
        ),
    ] = None
    loop: Annotated[
        str | None,
        typer.Option(
            "--loop", help="Loop to tune; default: the one that the kernel is named as."
        ),
    ] = None
    stores: Annotated[
        bool,
        typer.Option(
            "--stores",
            help="Time the product with the loop's matrix in every store instead.",
        ),
    ] = False
    values: Annotated[
        str | None,
        typer.Option(
            "--values",
            help="module:function that takes the loop's plan and gives its arrays by name; "
            "default: made-up numbers.",
        ),
    ] = None


@dataclass(frozen=True)
class Tried:
    """What is tried, and where."""

    device: Annotated[
        str,
        typer.Option(
            "--device",
            help="cpu or gpu of this machine.",
        ),
    ] = "cpu"
    block_sizes: Annotated[
        str | None,
        typer.Option(
            "--block-sizes", help="Block sizes to try beside the plan's, such as 512,1024."
        ),
    ] = None
    strategies: Annotated[
        str | None,
        typer.Option("--strategies", help="Strategies to try, with commas; default: all."),
    ] = None
    layouts: Annotated[
        str, typer.Option("--layouts", help="Layouts to try, with commas between them.")
    ] = "aos,soa"
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs of each candidate.")] = 9


def tune_loop(
    plan: options.PlanFile,
    kernels: KernelOptions,
    tried: Tried,
    chosen: Options,
    threads: options.Threads = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what is fastest; leave the plan as it is."),
    ] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Find the fastest way to run a loop, and write it into the plan."""
    from meshprep.pipeline.tune import loop_of, tune_plan
    from meshprep.pipeline.tune_stores import time_stores
    from meshprep_runtime.plan import Plan

    options.set_threads(threads)
    # Read all that the user names before anything is timed.
    loaded = Plan.load(plan)
    if kernels.kernel is not None:
        function = function_of(kernels.kernel, "--kernel")
    else:
        function = None
    name = loop_of(loaded, function, kernels.loop)
    if kernels.stores:
        if kernels.kernel is not None:
            raise MeshprepError(
                "--stores goes without --kernel: it times products, not loops"
            )
        with console.progress(quiet) as progress:
            times = time_stores(
                loaded, name, device=tried.device, runs=tried.runs, progress=progress
            )
        # What products have found on a GPU lies in the plan.
        if loaded.matrices[times.matrix].tuned and not dry_run:
            loaded.save(plan, overwrite=True)
        _show_stores(times, loaded, as_json)
        return
    strategies = None
    if tried.strategies is not None:
        strategies = listed(tried.strategies)
    with console.progress(quiet) as progress:
        done = tune_plan(
            loaded,
            name,
            function,
            device=tried.device,
            block_sizes=_numbers(tried.block_sizes),
            values=arrays_of(kernels.values, loaded[name]),
            proof=chosen.proof,
            progress=_by_strategy(progress),
            strategies=strategies,
            layouts=listed(tried.layouts),
            runs=tried.runs,
        )
    # The plan's own file: what runs it next finds the fastest way without being told.
    if not dry_run:
        done.plan.save(plan, overwrite=True)
    if as_json:
        console.show_json(_tuning_record(done))
    else:
        _show_tuning(done, plan, dry_run)


def _show_stores(times: StoreTimes, plan: Plan, as_json: bool) -> None:
    """Print the stores of a matrix, the fastest first, and the threads that CSR takes."""
    if as_json:
        console.show_json(asdict(times))
        return
    fastest = times.trials[0]
    rows = []
    for trial in times.trials:
        slower = "1.00"
        if trial is not fastest:
            slower = console.slower(trial.timing, fastest.timing)
        rows.append(
            (
                trial.store,
                f"{trial.bytes / 1e6:.1f}",
                _ms(trial.timing.least),
                _ms(trial.timing.median),
                f"{1e-9 * trial.bytes / trial.timing.least:.1f}",
                slower,
            )
        )
    console.show_table(
        f"products with matrix {times.matrix}, timed on {times.machine}",
        ("store", "MB", "ms", "median", "GB/s", "times the best"),
        rows,
    )
    for tuned in plan.matrices[times.matrix].tuned:
        console.show(
            f"CSR on {tuned.device}: {tuned.coop} threads a row are the fastest, "
            f"blocks of {tuned.block_size}, {tuned.repeat} rows each"
        )


def _by_strategy(progress: console.Report) -> console.Report:
    """A stage for each strategy: its blocks and layouts are progress inside."""
    # What was reported so far: the last one is under way.
    strategies: list[str] = []

    def report(done: float, total: int, what: str) -> None:
        strategy = what.split()[0].rstrip(",")
        # Where there is no bar, whole numbers begin a line.
        if strategy in strategies[-1:]:
            done += 0.5
        progress(done, total, strategy)
        strategies.append(strategy)

    return report


def _tuning_record(done: Tuning) -> dict[str, Any]:
    """All that was timed, as JSON values."""
    from meshprep_runtime.plan.records import to_json

    more = {
        "equal_within_noise": to_json(done.tuned.equals),
        "input_order": to_json(done.before),
    }
    return {"loop": done.loop, **to_json(done.tuned), **more, "notes": done.notes}


def _show_tuning(done: Tuning, plan: Path, dry_run: bool) -> None:
    """Print the ways that were timed, the fastest first, and what was chosen."""
    tuned = done.tuned
    best = tuned.best
    # Slower ones are many and tell nothing.
    rows = [_row(t, best) for t in tuned.trials[:SHOWN]]
    header = (
        "strategy",
        "blocks",
        "SoA",
        "ms",
        "median",
        "spread",
        "runs",
        "times the best",
    )
    console.show_table(f"loop {done.loop}, timed on {tuned.machine}", header, rows)
    if len(tuned.trials) > SHOWN:
        console.show(f"and {len(tuned.trials) - SHOWN} slower ones")
    console.show("")
    console.show(f"fastest: {_way(best)}")
    if done.occupancy is not None:
        console.show(_occupancy_text(done))
    # Say how sure the choice is: another run may choose one of the equals.
    if tuned.equals:
        equals = [_way(trial) for trial in tuned.equals[:SHOWN]]
        if len(tuned.equals) > SHOWN:
            equals.append(f"and {len(tuned.equals) - SHOWN} more")
        console.show(
            f"as fast within the noise, as runs of the fastest differ by "
            f"{console.difference(best.spread)}: {'; '.join(equals)}"
        )
        console.show(
            f"chosen for the fastest run of all, {_ms(best.seconds)} ms: "
            "on an idle machine, or with more --runs, another may come first"
        )
    # What a solver gains, ready to be typed into the command that says when it pays.
    if done.before is not None:
        before = (
            f"in the input order, on one thread, it takes {_ms(done.before.seconds)} ms: "
            f"{console.times_as_fast(best.timing, done.before.timing)}"
        )
        times = f"{_ms(done.before.seconds)}:{_ms(best.seconds)}"
        console.show(
            f"{before}; with such times of every loop, report says when the plan pays:"
        )
        console.show(f'  meshprep report {plan} --measured "{done.loop}={times}"')
    # A strategy may be refused by the loop or the machine: say which, and why.
    for note in done.notes:
        console.show(f"not tried: {note}")
    if not dry_run:
        console.show(f"written into {plan.name}: strategy 'auto' runs it on that machine")


def _occupancy_text(done: Tuning) -> str:
    """How full the fastest way can make a GPU, and what keeps it from more."""
    assert done.occupancy is not None
    counted = "staged bytes alone"
    if done.registers is not None:
        counted = f"{done.registers} registers a thread"
    blocks = f"{done.occupancy.blocks} blocks on a multiprocessor"
    return (
        f"occupancy {done.occupancy.share:.2f}: {blocks}, by {counted}, limited by "
        f"{' and '.join(done.occupancy.limits)}"
    )


def _way(trial: Trial) -> str:
    if trial.variant:
        blocks = f" with blocks {_describe_blocks(trial)}"
    else:
        blocks = ""
    if trial.soa:
        where = f", {', '.join(trial.soa)} as SoA"
    else:
        where = ", all AoS"
    return f"{_strategy(trial)}{blocks}{where}"


def _row(trial: Trial, best: Trial) -> tuple[str, ...]:
    slower = "1.00"
    if trial is not best:
        slower = console.slower(trial.timing, best.timing)
    return (
        _strategy(trial),
        _describe_blocks(trial),
        " ".join(trial.soa) or "-",
        _ms(trial.seconds),
        _ms(trial.median),
        console.difference(trial.spread),
        str(trial.runs),
        slower,
    )


def _ms(seconds: float) -> str:
    # Three digits at least: launches take microseconds.
    if seconds >= 1e-4:
        return f"{1e3 * seconds:.3f}"
    return f"{1e3 * seconds:.3g}"


def _describe_blocks(trial: Trial) -> str:
    if trial.threads:
        threads = f" by {trial.threads} threads"
    else:
        threads = ""
    return (trial.variant or "-") + threads


def _strategy(trial: Trial) -> str:
    # Colours are the default, and need no word.
    if trial.commit == "atomics":
        return f"{trial.strategy} atomics"
    return trial.strategy


def _numbers(text: str | None) -> list[int] | None:
    if text is None:
        return None
    # Say which option it is: Python's error would name the word alone.
    if not all(word.isdecimal() for word in listed(text)):
        raise MeshprepError(f"--block-sizes '{text}' must read as 512,1024,2048")
    return list(map(int, listed(text)))


def function_of(text: str, option: str) -> Any:
    """The function that ``module:function`` or ``FILE.py:function`` names, CUDA C too."""
    from meshprep_runtime.cuda import DeviceFunction

    # From the right: a path of Windows has a colon, too.
    where, colon, name = text.rpartition(":")
    if not (colon and where and name):
        raise MeshprepError(
            f"{option} '{text}' must read module:function or FILE.py:function"
        )
    function = getattr(_module(where, option), name, None)
    if not callable(function) and not isinstance(function, DeviceFunction):
        raise MeshprepError(f"{option}: {where} has no function '{name}'")
    return function


def _module(where: str, option: str) -> ModuleType:
    try:
        if not where.endswith(".py"):
            # A program, unlike `python -m`, does not look into the folder it is called in.
            if os.getcwd() not in sys.path:
                sys.path.insert(0, os.getcwd())
            return importlib.import_module(where)
        spec = importlib.util.spec_from_file_location(Path(where).stem, where)
        if spec is None or spec.loader is None:
            raise ImportError("no Python file")
        module = importlib.util.module_from_spec(spec)
        # Compilers look up a function's module by its name.
        sys.modules.setdefault(spec.name, module)
        spec.loader.exec_module(module)
        return module
    except FileNotFoundError as error:
        missing = error.filename or where
        raise MeshprepError(
            f"{option}: {missing} does not exist: check the name"
        ) from error
    except Exception as error:  # Whatever the user's module raises.
        raise MeshprepError(
            f"{option}: cannot import {where}: {type(error).__name__}: {error}"
        ) from error


def arrays_of(text: str | None, plan: Any) -> Mapping[str, Any] | None:
    """The arrays that a function of a loop's plan gives, by name."""
    if text is None:
        return None
    # The plan tells the sizes of sets, and so how long the arrays must be.
    arrays = function_of(text, "--values")(plan)
    if not isinstance(arrays, Mapping):
        raise MeshprepError(
            f"--values {text} gave a {type(arrays).__name__}: give arrays by name"
        )
    return arrays
