"""``meshprep tune``: the fastest way to run a loop, found and written into its plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from meshprep.loops.options import Options
from meshprep_runtime.errors import MeshprepError

from . import console, options, tune_chain, tune_product, user_code
from .groups import listed, words

if TYPE_CHECKING:
    from meshprep.pipeline.tuning import Tuning
    from meshprep_runtime.plan.tuned import Trial

SHOWN = 12


@dataclass(frozen=True)
class KernelOptions:
    """What runs, and on what."""

    kernel: Annotated[
        str | None,
        typer.Option(
            "--kernel",
            help="module:function or FILE.py:function, to run here; with --chain the module or "
            "FILE.py whose functions are named as the loops.",
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
    spmv: Annotated[
        bool,
        typer.Option("--spmv", help="Time the product with a matrix: a .mtx file, or a plan's."),
    ] = False
    chain: Annotated[
        str | None, typer.Option("--chain", help="Chain to try in tiles, instead of a loop.")
    ] = None
    tile_sizes: Annotated[
        str | None,
        typer.Option("--tile-sizes", help="Tile sizes of the chain to try, such as 1024,4096."),
    ] = None


@dataclass(frozen=True)
class Tried:
    """What is tried, and where."""

    device: Annotated[
        str,
        typer.Option(
            "--device",
            help="cpu, gpu: time it here. P100, V100, A100, H100, H200: rank by predicted traffic.",
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
    registers: Annotated[
        int, typer.Option("--registers", min=1, help="Registers of a thread, for predictions.")
    ] = 48


def run(
    plan: Annotated[
        Path,
        typer.Argument(help="Plan file; with --spmv also a matrix, .mtx.", show_default=False),
    ],
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
    """Find the fastest way to run a loop or a chain of loops.

    Writes it into the plan.
    """
    from meshprep.pipeline.tuning import loop_of, tune_plan
    from meshprep_runtime.plan import Plan

    options.set_threads(threads)
    if kernels.spmv:
        _refuse_with_spmv(kernels, tried)
        tune_product.run(plan, kernels.loop, tried.runs, as_json, quiet)
        return
    if kernels.chain is not None:
        asked = _of_chain(kernels.chain, kernels, tried, chosen.proof)
        tune_chain.run(plan, asked, dry_run, as_json, quiet)
        return
    if kernels.tile_sizes is not None:
        raise MeshprepError("--tile-sizes are those of a chain: name it with --chain")
    loaded = Plan.load(plan)
    function = (
        user_code.function_of(kernels.kernel, "--kernel") if kernels.kernel is not None else None
    )
    name = loop_of(loaded, function, kernels.loop)
    with console.compiled_ahead(["colours"], quiet) as progress:
        done = tune_plan(
            loaded,
            name,
            function,
            device=tried.device,
            block_sizes=_numbers(tried.block_sizes),
            values=user_code.arrays_of(kernels.values, loaded[name]),
            proof=chosen.proof,
            progress=_by_strategy(progress),
            strategies=None if tried.strategies is None else listed(tried.strategies),
            layouts=listed(tried.layouts),
            runs=tried.runs,
            registers=tried.registers,
        )
    if not dry_run:
        done.plan.save(plan, overwrite=True)
    if as_json:
        console.show_json(_described(done))
    else:
        _show(done, plan, dry_run)


def _refuse_with_spmv(kernels: KernelOptions, tried: Tried) -> None:
    other = replace(kernels, loop=None, spmv=False), replace(tried, runs=Tried.runs)
    given = [word for group in other for word in words(group)]
    if given:
        raise MeshprepError(f"--spmv goes without {given[0]}: it times the product of a matrix")


def _of_chain(
    name: str, kernels: KernelOptions, tried: Tried, proof: bool
) -> tune_chain.ChainOptions:
    given = [*words(KernelOptions(loop=kernels.loop)), *words(replace(tried, runs=Tried.runs))]
    if given:
        raise MeshprepError(f"--chain goes without {given[0]}: it times loops alone and tiles")
    return tune_chain.ChainOptions(
        name,
        user_code.kernels_of(kernels.kernel),
        _numbers(kernels.tile_sizes, "--tile-sizes"),
        None if kernels.values is None else user_code.function_of(kernels.values, "--values"),
        tried.runs,
        proof,
    )


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
    from meshprep_runtime.plan.noise import timing_of

    tuned = done.tuned
    best = tuned.best
    rows = [_row(t, best) for t in tuned.trials[:SHOWN]]
    how = f"timed on {tuned.machine}" if tuned.measured else f"predicted for {tuned.machine}"
    header: tuple[str, ...] = ("strategy", "blocks", "SoA", "ms", "times the best")
    if tuned.measured:
        header = (*header[:4], "median", "spread", "runs", *header[4:])
    console.show_table(f"loop {done.loop}, {how}", header, rows)
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
            f"{console.times_as_fast(timing_of(best), timing_of(done.before))}"
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
    runs = _ms(trial.median), console.difference(trial.spread), str(trial.runs)
    return (
        _strategy(trial),
        _blocks(trial),
        " ".join(trial.soa) or "-",
        _ms(trial.seconds) if trial.runs else _range(trial),
        *(runs if trial.runs else ()),
        _times_the_best(trial, best),
    )


def _times_the_best(trial: Trial, best: Trial) -> str:
    from meshprep_runtime.plan.noise import timing_of

    if not trial.runs or trial is best:
        return f"{_ranked_by(trial) / _ranked_by(best):.2f}"
    return console.slower(timing_of(trial), timing_of(best))


def _range(trial: Trial) -> str:
    """A predicted time; from and to where it hangs on the rate of atomics, which is assumed."""
    ends = [trial.seconds, *([trial.seconds * (1 + trial.spread)] if trial.spread > 0 else [])]
    return " to ".join(map(_ms, ends))


def _ranked_by(trial: Trial) -> float:
    return trial.seconds if trial.runs else trial.median


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3f}" if seconds >= 1e-4 else f"{1e3 * seconds:.3g}"


def _blocks(trial: Trial) -> str:
    threads = f" by {trial.threads} threads" if trial.threads else ""
    return (trial.variant or "-") + threads


def _strategy(trial: Trial) -> str:
    return trial.strategy + (" atomics" if trial.commit == "atomics" else "")


def _numbers(text: str | None, option: str = "--block-sizes") -> list[int] | None:
    if text is None:
        return None
    if not all(word.isdecimal() for word in listed(text)):
        raise MeshprepError(f"{option} '{text}' must read as 512,1024,2048")
    return list(map(int, listed(text)))
