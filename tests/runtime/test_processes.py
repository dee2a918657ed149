"""Loops in several threads, after a fork, without numba."""

import os
import subprocess
import sys

import pytest

PRELUDE = """
import os, sys, threading
import numpy as np
from meshprep_runtime import Access, Arg, Loop, LoopPlan, MeshprepError, ParLoop, Variant
i4 = np.int32
loop = Loop("l", "cells", (Arg("v", Access.INC, 1, "i8"),))
variant = Variant("s10", 10, "cpu", "contiguous", False, np.arange(0, 1010, 10),
    np.array([0, 100]), np.arange(100, dtype=i4), np.zeros(1000, "u1"), np.ones(100, i4), {}, {})
plan = LoopPlan(loop, {"cells": 1000}, {}, {"s10": variant}, "s10")
def one(v):
    v[0] += 1
run = ParLoop(one, plan, strategy="hierarchical")
v = np.zeros(1000, dtype=np.int64)
"""
MISSING = """
from meshprep_runtime import MissingPackageError
try:
    run(v=v)
except MissingPackageError as error:
    print(error)
"""


def in_a_process(code, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PRELUDE + code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["default", "workqueue"])
def test_calls_from_several_threads(layer):
    code = """
values = [np.zeros(1000, dtype=np.int64) for _ in range(4)]
def work(v):
    for _ in range(50):
        run(v=v)
threads = [threading.Thread(target=work, args=(v,)) for v in values]
[t.start() for t in threads]
[t.join() for t in threads]
print({int(x) for v in values for x in v})
"""
    assert in_a_process(code, NUMBA_THREADING_LAYER=layer) == "{50}\n"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_threads_of_its_own():
    """The parent's helpers are not there, whatever the parent's threads held when it was forked."""
    code = """
from meshprep_runtime.cpu import pool
pool.Team._takes_several = lambda team: team._took[0].append(1.0) or True
pool.thread_count = lambda: 2
run(v=v)
helpers = threading.active_count() - 1
with pool._pool.turn, pool._pool._offering:
    child = os.fork()
if child == 0:
    run(v=v)
    print(helpers, threading.active_count() - 1, set(v.tolist()), flush=True)
    os._exit(0)
os.wait()
"""
    assert in_a_process(code) == "1 1 {2}\n"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_forked_after_parallel_code_of_others():
    """GNU's OpenMP would end the process if a loop asked it for threads."""
    code = """
import numba
@numba.njit(parallel=True)
def double(v):
    for i in numba.prange(v.size):
        v[i] *= 2
double(np.ones(9))
if os.fork() == 0:
    run(v=v)
    print(set(v.tolist()), flush=True)
    os._exit(0)
print(os.wait()[1])
"""
    assert in_a_process(code) == "{1}\n0\n"


@pytest.mark.slow
def test_numba_comes_with_the_first_call():
    code = """
assert "numba" not in sys.modules
run(v=v)
assert "numba" in sys.modules
print(v.sum())
"""
    assert in_a_process(code) == "1000\n"


def test_missing_numba():
    code = 'sys.modules["numba"] = None' + MISSING
    assert (
        in_a_process(code)
        == "running loops needs numba: pip install 'meshprep-runtime[cpu]'\n"
    )


def test_a_numba_without_an_internal():
    code = "import numba.np.arrayobj; del numba.np.arrayobj.populate_array"
    said = in_a_process(code + MISSING)
    assert (
        "has no numba.np.arrayobj.populate_array, which compiles a solver's loops: ins"
        in said
    )
    assert said.count("\n") == 1
