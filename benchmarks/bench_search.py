"""The search for the threads of a product on a GPU, replayed on modelled times of 44 matrices.

    python benchmarks/bench_search.py

The model has what threads trade against each other (``modelled_products.py``); it shows that the
search climbs, not how fast a GPU is: that is what ``bench_gpu_stores.py`` measures. Shares are of
the best of all sizes of blocks, threads a row and repeats. With ``noise`` each time is up to 3 %
longer by chance.
"""

from typing import Any

import numpy as np
from common import report
from modelled_products import MatrixTimes, tables

from meshprep_runtime.matrix.cuda_text import fixed_rule
from meshprep_runtime.matrix.search import ThreadSearch

NOISE = 0.03


def main() -> None:
    """Print and save the table."""
    every = tables()
    rows = []
    for kind in sorted({kind_of(one) for one in every}):
        some = [one for one in every if kind_of(one) == kind]
        rows.append({"rows are": kind} | mean_row(some))
    rows.append({"rows are": "all"} | mean_row(every))
    report("search", rows)


def kind_of(times: MatrixTimes) -> str:
    """How the lengths of the rows are spread."""
    return times.name.split()[1]


def mean_row(every: list[MatrixTimes]) -> dict[str, Any]:
    """The mean shares of the best, and the trials."""
    best = np.array([one.best() for one in every])
    rule = np.array(
        [one.seconds(fixed_rule(one.lengths.size, one.nonzeros)) for one in every]
    )
    found, trials = np.array([replayed(one) for one in every]).T
    noisy, _ = np.array([replayed(one, NOISE) for one in every]).T
    return {
        "matrices": len(every),
        "rule": float(np.mean(best / rule)),
        "found": float(np.mean(best / found)),
        "found with noise": float(np.mean(best / noisy)),
        "trials": float(trials.mean()),
        "rule / found, most": float((rule / found).max()),
    }


def replayed(times: MatrixTimes, noise: float = 0.0) -> tuple[float, int]:
    """Seconds with the threads that a search finds, and its trials."""
    rng = np.random.default_rng(0)
    search = ThreadSearch(times.lengths.size, times.nonzeros)
    trials = 0
    while not search.settled:
        search.tell(times.seconds(search.proposed) * (1 + noise * rng.random()))
        trials += 1
    return times.seconds(search.proposed), trials


if __name__ == "__main__":
    main()
