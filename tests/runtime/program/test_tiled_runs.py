"""Chains that run tile by tile, compiled: whole numbers bit-equal to the same calls without."""

import re

import numpy as np
import pytest
from integer_loops import DIMS, LOOPS, SETS, SOA
from random_chains import KERNELS, full, grid_mesh, loops_and_globals, start_values

from meshprep_runtime import LoopPlan, Program
from meshprep_runtime.program.chains.source import CallCode, tile_text

NAMES = ("areas", "flux", "mark", "update", "areas", "flux", "update")


class Case:
    """The integer loops on a grid of cells."""

    def __init__(self, side=6, seed=3):
        self.chains = {}
        self.sizes, self.maps = grid_mesh(side)
        self.program = Program(self)
        self.start = start_values(np.random.default_rng(seed), self.sizes)
        self.dats = {}
        for name, values in self.start.items():
            soa = name in SOA
            values = values.T.copy() if soa else values.copy()
            self.dats[name] = self.program.dat(
                SETS.get(name, "cells"),
                DIMS[name],
                "i8",
                values=values,
                layout="soa" if soa else "aos",
            )
        self.loops, self.globals = loops_and_globals(self.program)

    def __getitem__(self, name):
        loop = full(LOOPS[KERNELS[name]])
        return LoopPlan(loop, self.sizes, {m: self.maps[m] for m in loop.maps}, {}, "")

    def arguments(self, name):
        args = LOOPS[KERNELS[name]].args
        reduced = {a.name: self.globals[name, a.name] for a in args if a.is_global}
        return {a.name: self.dats[a.name] for a in args if not a.is_global} | reduced

    def run(self, times=2):
        for _ in range(times):
            for name in NAMES:
                if name == "mark":
                    self.globals["update", "total"].set([1, 5])
                self.loops[name](**self.arguments(name))

    def result(self, but=()):
        dats = {n: d.values().tolist() for n, d in self.dats.items() if n not in but}
        return dats, {n: g.value.tolist() for n, g in self.globals.items()}


@pytest.fixture(scope="module")
def expected():
    eager = Case()
    eager.run()
    return eager.result()


@pytest.mark.parametrize("size", [1, 7, 36])
def test_tiles_give_what_loops_give(expected, size):
    case = Case()
    with case.program.chain(len(NAMES), tile_size=size) as chain:
        case.run()
    (run,) = chain.tiled.values()
    assert run.tiles.n_tiles == -(-36 // size)
    assert run.nbytes > run.tiles.nbytes > 0
    assert case.result() == expected


def test_short_sequences_run_loop_by_loop(expected):
    case = Case()
    with case.program.chain(len(NAMES), tile_size=7) as chain:
        case.run(1)
        case.loops["areas"](**case.arguments("areas"))
        case.dats["a"].values()
        for name in NAMES[1:]:
            if name == "mark":
                case.globals["update", "total"].set([1, 5])
            case.loops[name](**case.arguments(name))
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
