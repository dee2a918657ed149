"""``make fuzz``: random combinations, spoiled files and damaged plans, while there is time.

With ``--kernels`` so many random kernels instead, in every form and strategy on one to eight
threads, beside a plain loop. Prints the seed that repeats each wrong outcome, and exits with 1 if
there was any.
"""

import argparse
import os
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

# Kernels run on so many threads, whatever the machine has.
os.environ["NUMBA_NUM_THREADS"] = "8"

from damage import try_files, try_plans
from random_cases import random_case, run_case
from random_kernels import outcomes_of_kernels

from meshprep.pipeline.steps import prepare
from meshprep_runtime.cpu import STRATEGIES

CHUNK, SPOILED = 25, 4


def main() -> int:
    """Run the campaign; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--kernels", type=int, default=0, help="random kernels instead")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--first", type=int, default=1000, help="first seed")
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    end, outcomes, wrong = time.monotonic() + 60 * asked.minutes, Counter[str](), 0
    chunk, count = _chunk, asked.cases
    if asked.kernels:
        chunk, count = _chunk_of_kernels, asked.kernels
    with ProcessPoolExecutor(asked.processes) as pool:
        firsts = range(asked.first, asked.first + count, CHUNK)
        for found in pool.map(chunk, firsts, [end] * len(firsts)):
            for outcome, seed in found:
                outcomes[outcome] += 1
                if outcome not in ("right", "refused", "time is up"):
                    wrong += 1
                    print(f"seed {seed}: {outcome}", flush=True)
            done = sum(outcomes.values()) - outcomes["time is up"]
            if done % 1000 < CHUNK and found[0][0] != "time is up":
                print(f"{done:,} cases, {wrong} wrong", flush=True)
    right, refused = outcomes["right"], outcomes["refused"]
    print(f"{done:,} cases: {right:,} right, {refused:,} refused, {wrong} wrong")
    return 1 if wrong else 0


def _chunk(first: int, end: float) -> list[tuple[str, int]]:
    """Outcomes of some seeds."""
    if time.monotonic() > end:
        return [("time is up", first)] * CHUNK
    return [(_outcome(seed), seed) for seed in range(first, first + CHUNK)]


def _chunk_of_kernels(first: int, end: float) -> list[tuple[str, int]]:
    """Outcomes of some random kernels."""
    if time.monotonic() > end:
        return [("time is up", first)] * CHUNK
    seeds = range(first, first + CHUNK)
    return [(out, seed) for seed, out in outcomes_of_kernels(seeds, every=True)]


def _outcome(seed: int) -> str:
    """``right``, ``refused``, or what is wrong."""
    try:
        case = random_case(seed)
        found = run_case(case, tuple(STRATEGIES))
        chance = random.Random(seed)
        with tempfile.TemporaryDirectory() as folder:
            try_files(case.mesh, Path(folder), chance, SPOILED)
            if found == "right":
                made = prepare(
                    case.mesh, case.requests, case.options, keep_order=case.keep_order
                )
                try_plans(made.plan, Path(folder), chance, SPOILED)
    except (Exception, SystemExit) as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:200]} ({where.name}, line {where.lineno})"
    return "right" if found == "right" else "refused"


if __name__ == "__main__":
    sys.exit(main())
