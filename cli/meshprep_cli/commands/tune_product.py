"""``meshprep tune --spmv``: the fastest way to multiply with a matrix on this machine."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from .. import console

if TYPE_CHECKING:
    from meshprep.pipeline.tune.products import ProductTrial, ProductTuning, StoreTrial
    from meshprep_runtime.plan.tuned import Timing

SHOWN = 8


def run(path: Path, loop: str | None, runs: int, as_json: bool, quiet: bool) -> None:
    """Time products and print what came out."""
    from meshprep.pipeline.tune.products import read_matrix, tune_product

    with console.progress(quiet) as progress:
        matrix, plan = read_matrix(path, loop)
        done = tune_product(matrix, plan=plan, runs=runs, progress=progress)
    if as_json:
        console.show_json(asdict(done))
    else:
        _show(path, done)


def _show(path: Path, done: ProductTuning) -> None:
    each = done.nonzeros / max(done.rows, 1)
    console.show_table(
        f"{path.name}: {done.rows} rows, {done.nonzeros} nonzeros, {each:.1f} a row; "
        f"timed on {done.machine}",
        ("threads", "piece", "ms", "median", "slowest", "GFLOP/s", "GB/s", "times the best"),
        [_row(done, trial) for trial in done.trials[:SHOWN]],
    )
    console.show("")
    best, default = done.best, done.default
    console.show(
        f"fastest: Product(matrix, threads={best.threads}, piece={best.piece}), against "
        f"Product(matrix): {console.times_as_fast(best.timing, default.timing)}"
    )
    moved = done.bytes
    console.show(
        f"a product moves {moved.least / 1e6:.1f} MB if caches keep x, "
        f"{moved.effective / 1e6:.1f} MB if they do not; GB/s are of the former"
    )
    if done.stores:
        console.show("")
        console.show_table(
            "stores that the plan can fill, all threads",
            ("store", "MB", "ms", "median", "slowest", "GB/s", "CSR / it by bytes", "measured"),
            [_store(trial, done.stores[0]) for trial in done.stores],
        )
        console.show("")
    gpu = done.gpu
    console.show(
        f"on a GPU, by rule: {gpu.blocks(done.rows)} blocks of {gpu.block_size} threads; "
        f"threads a row: {gpu.coop}; rows each: {gpu.repeat}; "
        f"they read {done.lines} lines of 128 bytes of x"
    )


def _store(trial: StoreTrial, csr: StoreTrial) -> tuple[str, ...]:
    return (
        trial.store,
        f"{trial.bytes / 1e6:.1f}",
        *_times(trial.timing),
        f"{1e-9 * trial.bytes / trial.seconds:.1f}",
        f"{csr.bytes / trial.bytes:.2f}",
        "1.00" if trial is csr else console.slower(csr.timing, trial.timing),
    )


def _row(done: ProductTuning, trial: ProductTrial) -> tuple[str, ...]:
    return (
        str(trial.threads),
        str(trial.piece),
        *_times(trial.timing),
        f"{2e-9 * done.nonzeros / trial.seconds:.2f}",
        f"{1e-9 * done.bytes.least / trial.seconds:.1f}",
        "1.00" if trial is done.best else console.slower(trial.timing, done.best.timing),
    )


def _times(timing: Timing) -> tuple[str, ...]:
    return tuple(f"{1e3 * s:.3f}" for s in (timing.least, timing.median, timing.most))
