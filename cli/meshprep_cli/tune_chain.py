"""``meshprep tune --chain``: whether a chain of loops runs faster in tiles on this machine."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meshprep_runtime.errors import MeshprepError

from . import console

if TYPE_CHECKING:
    from meshprep.pipeline.chain_tuning import ChainTuning


@dataclass(frozen=True)
class ChainOptions:
    """What runs: the chain, its kernels by loop, tile sizes, and what gives values for a plan."""

    name: str
    kernels: Mapping[str, Callable[..., None]]
    tile_sizes: Sequence[int] | None
    values: Callable[[Any], Any] | None
    runs: int
    proof: bool


def run(path: Path, chosen: ChainOptions, dry_run: bool, as_json: bool, quiet: bool) -> None:
    """Time the ways to run a chain, write the fastest tiles into the plan, and print."""
    from meshprep.pipeline.chain_tuning import tune_chain
    from meshprep_runtime.plan import Plan
    from meshprep_runtime.plan.records import to_json

    plan = Plan.load(path)
    values = None if chosen.values is None else chosen.values(plan)
    if values is not None and not isinstance(values, Mapping):
        raise MeshprepError(f"--values gave a {type(values).__name__}: give arrays by name")
    with console.compiled_ahead(["chains"], quiet) as progress:
        done = tune_chain(
            plan,
            chosen.name,
            chosen.kernels,
            tile_sizes=chosen.tile_sizes,
            values=values,
            runs=chosen.runs,
            proof=chosen.proof,
            progress=progress,
        )
    if not dry_run:
        done.plan.save(path, overwrite=True)
    if as_json:
        more = {"fastest": str(done.tuned.best), "notes": done.notes}
        console.show_json({"chain": done.chain, **to_json(done.tuned), **more})
    else:
        _show(done, path, dry_run)


def _show(done: "ChainTuning", path: Path, dry_run: bool) -> None:
    from meshprep_runtime.plan.noise import timing_of

    tuned = done.tuned
    best = tuned.trials[0]
    rows = [
        (
            str(t),
            f"{1e3 * t.seconds:.3f}",
            f"{1e3 * t.median:.3f}",
            console.difference(t.spread),
            "1.00" if t is best else console.slower(timing_of(t), timing_of(best)),
        )
        for t in tuned.trials
    ]
    header = ("way", "ms", "median", "spread", "times the best")
    console.show_table(f"chain {done.chain}, timed on {tuned.machine}", header, rows)
    console.show("")
    console.show(f"taken by tile_size='auto' on that machine: {tuned.best}")
    for note in done.notes:
        console.show(f"not tried: {note}")
    if not dry_run:
        console.show(f"written into {path.name}: {tuned.tiles}, the fastest tiles")
