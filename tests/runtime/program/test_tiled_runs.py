"""Chains that run tile by tile, compiled: whole numbers bit-equal to the same calls without."""

import re

import effort
import numpy as np
import pytest
from random_chains import Case, full, grid_mesh

from meshprep_runtime import Access, Arg, Loop, Program
from meshprep_runtime.program.chains.launch import CallCode, tile_text

NAMES = ("areas", "flux", "mark", "update", "areas", "flux", "update")


class TiledCase(Case):
    """The integer loops on a grid of cells."""

    def __init__(self):
        super().__init__(grid_mesh(6), np.random.default_rng(3), full)

    def run(self, times=2):
        for _ in range(times):
            for name in NAMES:
                if name == "mark":
                    self.globals["update", "total"].set([1, 5])
                self.call(name)


@pytest.fixture(scope="module")
def expected():
    eager = TiledCase()
    eager.run()
    return eager.result()


@pytest.mark.parametrize("size", effort.first([7, 1, 36]))
def test_tiles_give_what_loops_give(expected, size):
    case = TiledCase()
    with case.program.chain(len(NAMES), tile_size=size) as chain:
        case.run()
    (run,) = chain.tiled.values()
    assert run.tiles.n_tiles == -(-36 // size)
    assert run.nbytes > run.tiles.nbytes > 0
    assert case.result() == expected


def test_short_sequences_run_loop_by_loop(expected):
    case = TiledCase()
    with case.program.chain(len(NAMES), tile_size=7) as chain:
        case.run(1)
        case.call("areas")
        case.dats["a"].values()
        for name in NAMES[1:]:
            if name == "mark":
                case.globals["update", "total"].set([1, 5])
            case.call(name)
    assert len(chain.tiled) == 1
    assert case.result() == expected


def test_calls_hand_on_numbers_of_one_type():
    """Or else numba compiles the function of a loop once for each."""
    column = {"run 0": 1, "own cells": 0, "run 1": 2}
    calls = [
        CallCode(0, ["s0"], [], "cells", False, [0]),
        CallCode(0, ["s0"], [], "cells", False, []),
    ]
    text = tile_text(["g", "l", "s0", "x_s0", "state"], column, [], {}, [], calls)
    numbers = re.findall(r"elements_0\((U\(.+?\)), (U\(.+?\)), l, ", text)
    own, first, second = "U(g[t, 0])", "U(g[t, 1])", "U(g[t, 2])"
    assert numbers == [("U(0)", own), (own, first), ("U(0)", second)]


def lowest(v, low):
    """With int(inf) it would find nothing less."""
    if v[0] < int(low[0]):
        low[0] = v[0]


def highest(v, high):
    high[0] = max(high[0], v[0])


@pytest.mark.parametrize("cells", [0, 5])
def test_reductions_start_from_what_the_program_gave(slow, cells):
    def loop(name, access):
        low = Arg("g", access, 1, "f8", is_global=True)
        return Loop(name, "cells", (Arg("v", Access.READ, 1, "i8"), low))

    loops = [loop("lowest", Access.MIN), loop("highest", Access.MAX)]
    program = Program(slow.plan({"cells": cells}, {}, loops, ()))
    v = program.dat("cells", 1, "i8", values=np.arange(7, 7 + cells))
    low, high = (
        program.loop(k, k.__name__, strategy="sequential") for k in (lowest, highest)
    )
    one, other, third = program.reduced(50), program.reduced(90), program.reduced(3)
    with program.chain(5, tile_size=2):
        low(v=v, g=one)
        # the largest is that of what was the least before
        low(v=v, g=other)
        high(v=v, g=other)
        third.set(60)
        low(v=v, g=third)
        high(v=v, g=one)
    expected = [11, 11, 7] if cells else [50, 90, 60]
    assert [g.value[0] for g in (one, other, third)] == expected


def sum_of_some(v, total):
    if v[0] < 0:
        raise ValueError("negative")
    total[0] += v[0]


@pytest.mark.parametrize("tiles", [{}, {"tile_size": 2}])
def test_globals_keep_what_the_program_gave_them_before_a_loop_failed(slow, tiles):
    total = Arg("total", Access.INC, 1, "i8", is_global=True)
    loop = Loop("some", "cells", (Arg("v", Access.RW, 1, "i8"), total))
    program = Program(slow.plan({"cells": 5}, {}, [loop], ()))
    good, bad = (program.dat("cells", 1, "i8", values=np.full(5, n)) for n in (1, -1))
    some = program.loop(sum_of_some, "some", strategy="sequential")
    one, other = (program.reduced(n, 1, "i8") for n in (1, 2))

    def steps():
        some(v=good, total=other)
        other.set(20)
        some(v=bad, total=one)
        one.set(10)
        some(v=good, total=other)

    with program.chain(3, **tiles), pytest.raises(ValueError, match="negative"):
        steps()
    # without a chain the program had not come to the last one
    assert [g.value[0] for g in (one, other)] == [1, 20]
