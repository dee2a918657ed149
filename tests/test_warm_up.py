"""Compiling ahead: in processes of their own, also when two runs begin together."""

import multiprocessing
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import effort
import pytest

from meshprep.kernels.machine_code import usual_made
from meshprep.ordering.by_component import renumbered
from meshprep.ordering.lexicographic import _packed_rows
from meshprep.ordering.propagate import _first_touch
from meshprep.partitioning.multilevel.balancing.reconnect import give_fragments
from meshprep.partitioning.multilevel.refinement.centroids import _measure
from meshprep.partitioning.shift import evict
from meshprep.pipeline.warm_up import (
    USUAL,
    all_tasks,
    compiling_beside,
    run_task,
    warm_up,
)
from meshprep_runtime.errors import MeshprepError

# Little work: seven kernels, of which none calls another, whose machine code would not be counted.
TASK = "block-colours"
COUNT = f"""
from meshprep.kernels import KERNELS
from meshprep.pipeline.warm_up import run_task
run_task({TASK!r})
print(sum(sum(k.stats.cache_misses.values()) for k in KERNELS))
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A folder for machine code that is empty."""
    monkeypatch.setenv("MESHPREP_CACHE_DIR", str(tmp_path))
    return tmp_path


def compiled():
    """How many kernels another process compiles for the task."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    made = subprocess.run(
        [sys.executable, "-c", COUNT],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(made.stdout)


@pytest.mark.slow
def test_what_was_compiled_ahead_is_found(cache):
    told = []
    seconds = warm_up([TASK], lambda *news: told.append(news))
    assert told == [(0, 1, "compiling"), (0, 1, f"compiled {TASK}")]
    assert seconds[TASK] > 0.5
    assert compiled() == 0


@pytest.mark.slow
def test_two_processes_at_once_compile_each_kernel_once(cache):
    with ThreadPoolExecutor(2) as pool:
        counts = list(pool.map(lambda _: compiled(), range(2)))
    # Every kernel has one file of machine code for each list of types.
    assert sum(counts) == len(list(cache.rglob("*.nbc"))) > 0
    assert compiled() == 0
    assert not list(cache.rglob("*.tmp"))


@pytest.mark.long
def test_a_first_run_compiles_beside_what_it_needs_later(cache, monkeypatch):
    monkeypatch.setattr("meshprep.pipeline.warm_up.BESIDE", (TASK,))
    monkeypatch.setattr("meshprep.pipeline.warm_up.thread_count", lambda: 2)
    monkeypatch.setattr("meshprep.kernels.machine_code.thread_count", lambda: 2)
    assert not usual_made()
    with compiling_beside():
        deadline = time.monotonic() + 300
        while not list(cache.rglob("*.nbc")) and time.monotonic() < deadline:
            time.sleep(0.1)
    # Some of the task is compiled, and the process has ended with the run.
    assert list(cache.rglob("*.nbc"))
    assert multiprocessing.active_children() == []
    assert usual_made()


def test_a_first_run_that_fails_leaves_no_process_and_no_note(cache, monkeypatch):
    monkeypatch.setattr("meshprep.pipeline.warm_up.thread_count", lambda: 2)
    monkeypatch.setattr("meshprep.kernels.machine_code.thread_count", lambda: 2)
    with pytest.raises(MeshprepError, match="no such mesh"), compiling_beside():
        raise MeshprepError("no such mesh")
    assert multiprocessing.active_children() == []
    assert not usual_made()


def test_a_task_that_fails_is_told(cache):
    task = "plan nonsense blocks cpu"
    assert "method 'nonsense' is unknown" in warm_up([task])[task]


def test_nothing_is_done_where_nothing_is_kept(monkeypatch):
    monkeypatch.setenv("MESHPREP_CACHE_DIR", "")
    with pytest.raises(MeshprepError, match="MESHPREP_CACHE_DIR is empty"):
        warm_up([TASK])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "needed", "rare"),
    [
        (
            "plan gps blocks gpu",
            [_measure, renumbered, _first_touch, _packed_rows],
            [give_fragments, evict],
        ),
        ("repairs", [give_fragments, evict], []),
    ],
)
def test_what_large_meshes_need_is_compiled_too(task, needed, rare):
    code = COUNT.replace(TASK, task).rpartition("print")[0]
    code += "print(*(k.py_func.__qualname__ for k in KERNELS if k.overloads))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    made = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    assert {kernel.py_func.__qualname__ for kernel in needed} <= set(made.split())
    assert not {kernel.py_func.__qualname__ for kernel in rare} & set(made.split())


@pytest.mark.parametrize("task", effort.some(all_tasks(), USUAL))
def test_every_task_runs(task):
    assert run_task(task) > 0
