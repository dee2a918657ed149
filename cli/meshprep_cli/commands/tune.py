"""``meshprep tune``: the fastest way to run a loop, found and written into its plan."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
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
        typer.Option("--loop", help="Loop to tune; default: the one that the kernel is named as."),
    ] = None
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


def run(
    plan: options.PlanFile,
    kernels: KernelOptions,
    tried: Tried,
    chosen: Options,
    threads: options.Threads = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what is fastest; leave the plan as it is.")
    ] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Find the fastest way to run a loop, and write it into the plan."""
    from meshprep.pipeline.tune import loop_of, tune_plan
    from meshprep_runtime.plan import Plan

    options.set_threads(threads)
    loaded = Plan.load(plan)
    function = function_of(kernels.kernel, "--kernel") if kernels.kernel is not None else None
    name = loop_of(loaded, function, kernels.loop)
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
            strategies=None if tried.strategies is None else listed(tried.strategies),
            layouts=listed(tried.layouts),
            runs=tried.runs,
        )
    if not dry_run:
        done.plan.save(plan, overwrite=True)
    if as_json:
        console.show_json(_described(done))
    else:
        _show(done, plan, dry_run)


def _by_strategy(progress: console.Report) -> console.Report:
    """A stage for each strategy: its blocks and layouts are progress inside."""
    seen: list[str] = []

    def report(done: float, total: int, what: str) -> None:
        strategy = what.split()[0].rstrip(",")
        # Where there is no bar, whole numbers begin a line.
        progress(done if strategy not in seen[-1:] else done + 0.5, total, strategy)
        seen.append(strategy)

    return report


def _described(done: Tuning) -> dict[str, Any]:
    from meshprep_runtime.plan.records import to_json

    more = {"equal_within_noise": to_json(done.tuned.equals), "input_order": to_json(done.before)}
    return {"loop": done.loop, **to_json(done.tuned), **more, "notes": done.notes}


def _show(done: Tuning, plan: Path, dry_run: bool) -> None:
    tuned = done.tuned
    best = tuned.best
    rows = [_row(t, best) for t in tuned.trials[:SHOWN]]
    header = ("strategy", "blocks", "SoA", "ms", "median", "spread", "runs", "times the best")
    console.show_table(f"loop {done.loop}, timed on {tuned.machine}", header, rows)
    if len(tuned.trials) > SHOWN:
        console.show(f"and {len(tuned.trials) - SHOWN} slower ones")
    console.show("")
    console.show(f"fastest: {_way(best)}")
    if tuned.equals:
        shown = "; ".join(map(_way, tuned.equals[:SHOWN]))
        more = len(tuned.equals) - SHOWN
        console.show(
            f"as fast within the noise, as runs of the fastest differ by "
            f"{console.difference(best.spread)}: "
            f"{shown}{f'; and {more} more' if more > 0 else ''}"
        )
        console.show(
            f"chosen for the fastest run of all, {_ms(best.seconds)} ms: on an idle machine, or "
            "with more --runs, another may come first"
        )
    if done.before is not None:
        before = (
            f"in the input order, on one thread, it takes {_ms(done.before.seconds)} ms: "
            f"{console.times_as_fast(best.timing, done.before.timing)}"
        )
        times = f"{_ms(done.before.seconds)}:{_ms(best.seconds)}"
        console.show(f"{before}; with such times of every loop, report says when the plan pays:")
        console.show(f'  meshprep report {plan} --measured "{done.loop}={times}"')
    for note in done.notes:
        console.show(f"not tried: {note}")
    if not dry_run:
        console.show(f"written into {plan.name}: strategy 'auto' runs it on that machine")


def _way(trial: Trial) -> str:
    blocks = f" with blocks {_blocks(trial)}" if trial.variant else ""
    where = f", {', '.join(trial.soa)} as SoA" if trial.soa else ", all AoS"
    return f"{_strategy(trial)}{blocks}{where}"


def _row(trial: Trial, best: Trial) -> tuple[str, ...]:
    return (
        _strategy(trial),
        _blocks(trial),
        " ".join(trial.soa) or "-",
        _ms(trial.seconds),
        _ms(trial.median),
        console.difference(trial.spread),
        str(trial.runs),
        "1.00" if trial is best else console.slower(trial.timing, best.timing),
    )


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3f}" if seconds >= 1e-4 else f"{1e3 * seconds:.3g}"


def _blocks(trial: Trial) -> str:
    threads = f" by {trial.threads} threads" if trial.threads else ""
    return (trial.variant or "-") + threads


def _strategy(trial: Trial) -> str:
    return trial.strategy + (" atomics" if trial.commit == "atomics" else "")


def _numbers(text: str | None) -> list[int] | None:
    if text is None:
        return None
    if not all(word.isdecimal() for word in listed(text)):
        raise MeshprepError(f"--block-sizes '{text}' must read as 512,1024,2048")
    return list(map(int, listed(text)))


def function_of(text: str, option: str) -> Any:
    """What ``module:function`` or ``FILE.py:function`` names: a function, or one in CUDA C."""
    from meshprep_runtime.cuda import DeviceFunction

    where, colon, name = text.rpartition(":")
    if not (colon and where and name):
        raise MeshprepError(f"{option} '{text}' must read module:function or FILE.py:function")
    found = getattr(_module(where, option), name, None)
    if not callable(found) and not isinstance(found, DeviceFunction):
        raise MeshprepError(f"{option}: {where} has no function '{name}'")
    return found


def _module(where: str, option: str) -> ModuleType:
    try:
        if not where.endswith(".py"):
            if os.getcwd() not in sys.path:
                sys.path.insert(0, os.getcwd())
            return importlib.import_module(where)
        spec = importlib.util.spec_from_file_location(Path(where).stem, where)
        if spec is None or spec.loader is None:
            raise ImportError("no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(spec.name, module)
        spec.loader.exec_module(module)
        return module
    except FileNotFoundError as error:
        missing = error.filename or where
        raise MeshprepError(f"{option}: {missing} does not exist: check the name") from error
    except Exception as error:  # Whatever the user's module raises.
        raise MeshprepError(
            f"{option}: cannot import {where}: {type(error).__name__}: {error}"
        ) from error


def arrays_of(text: str | None, plan: Any) -> Mapping[str, Any] | None:
    """The arrays that a function of a loop's plan gives, by name."""
    if text is None:
        return None
    found = function_of(text, "--values")(plan)
    if not isinstance(found, Mapping):
        raise MeshprepError(f"--values {text} gave a {type(found).__name__}: give arrays by name")
    return found
