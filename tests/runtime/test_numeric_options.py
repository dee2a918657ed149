"""Options that are numbers: what is none, or out of range, is refused in one line."""

import numpy as np
import pytest

from meshprep_runtime import (
    Access,
    Arg,
    DistributedPlan,
    MeshprepError,
    Ordering,
    Program,
    run_ranks,
)
from meshprep_runtime.matrix import CsrMatrix, Product, cg
from meshprep_runtime.tuning.tune import TuningSearch

NEITHER = ["3", [3], True, float("nan"), -1]
NO_INTEGER = [*NEITHER, 2.0, 2.5, np.float64(3), float("inf"), 10**30]
ONE = CsrMatrix(np.array([0, 1]), np.zeros(1, np.int32), np.ones(1))

INTEGERS = {
    "dim": lambda n, p: Arg("q", Access.READ, n),
    "index": lambda n, p: Arg("q", Access.READ, 1, "f8", "edges->cells", (n,)),
    "elements": lambda n, p: Ordering.identity(n),
    "of a dat": lambda n, p: Program(p).dat("cells", n),
    "of a global": lambda n, p: Program(p).reduced(0, n),
    "chain": lambda n, p: Program(p).chain(n),
    "tile_size": lambda n, p: Program(p).chain(4, tile_size=n),
    "ranks": lambda n, p: run_ranks(n, lambda comm: None),
    "n_columns": lambda n, p: CsrMatrix(ONE.row_ptr, ONE.columns, ONE.values, n),
    "threads": lambda n, p: Product(ONE, threads=n),
    "piece": lambda n, p: Product(ONE, piece=n),
    "most": lambda n, p: cg(Product(ONE), np.ones(1), most=n),
    "runs": lambda n, p: TuningSearch(runs=n),
}
NUMBERS = {
    "every": lambda x, p: Program(p, checkpoint="unused.h5", every=x),
    "delay": lambda x, p: run_ranks(1, lambda comm: None, delay=x),
    "tolerance": lambda x, p: cg(Product(ONE), np.ones(1), tolerance=x),
    "patience": lambda x, p: TuningSearch(patience=x),
    "timeout": lambda x, p: DistributedPlan(None, None, timeout=x),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_whole_numbers(name, airfoil):
    for wrong in NO_INTEGER:
        with pytest.raises(MeshprepError) as error:
            INTEGERS[name](wrong, airfoil)
        assert "\n" not in str(error.value)
        assert str(wrong) in str(error.value)


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name, airfoil):
    for wrong in NEITHER:
        with pytest.raises(MeshprepError, match=r"must be a number from [01]$"):
            NUMBERS[name](wrong, airfoil)


def test_integers_of_numpy_are_integers(airfoil):
    for name in ("dim", "elements", "of a dat", "chain", "ranks", "n_columns", "threads"):
        INTEGERS[name](np.int32(1), airfoil)
    NUMBERS["delay"](np.float32(0), airfoil)
