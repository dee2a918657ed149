"""Compiling ahead: in processes of their own, once, also when two runs begin together."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from meshprep.loops.options import Options
from meshprep.metrics.traffic import grouped_units
from meshprep.partition.blocks.anneal.centroids import middles
from meshprep.partition.blocks.mend.reconnect import _give_away
from meshprep.partition.blocks_of import _loads
from meshprep.partition.repair import enforce_cap
from meshprep.pipeline import warm_up
from meshprep.pipeline.small_runs import run_task
from meshprep.pipeline.warm_up import all_tasks, job_tasks
from meshprep.reorder.by_component import _renumbered
from meshprep.reorder.lexicographic import _packed_rows
from meshprep.reorder.propagate import _first_touch

# The least work of all tasks.
TASK = "order hilbert cpu"
COUNT = f"""
from meshprep.kernels import KERNELS
from meshprep.pipeline.small_runs import run_task
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
        [sys.executable, "-c", COUNT], env=environment, capture_output=True, text=True, check=True
    )
    return int(made.stdout)


@pytest.mark.slow
def test_what_was_compiled_ahead_is_found(cache):
    told = []
    warmed = warm_up.warm_up([TASK], lambda *news: told.append(news))
    assert told == [(0, 1, "compiling order")]
    assert list(warmed.seconds) == [TASK]
    assert warmed.seconds[TASK] > 0.5
    assert compiled() == 0
    assert warm_up.warm_up([TASK], lambda *news: told.append(news)).seconds == {}
    assert len(told) == 1


@pytest.mark.long
def test_two_at_once(cache):
    with ThreadPoolExecutor(2) as pool:
        counts = list(pool.map(lambda _: compiled(), range(2)))
    assert min(counts) > 0
    assert compiled() == 0
    assert not list(cache.rglob("*.tmp"))


@pytest.mark.slow
def test_a_caller_that_stops_does_not_wait_for_the_other_tasks(cache, monkeypatch):
    def stop(done, total, name):
        raise KeyboardInterrupt

    monkeypatch.setattr(warm_up, "thread_count", lambda: 1)
    with pytest.raises(KeyboardInterrupt):
        warm_up.warm_up(["order rcm cpu", TASK], stop)
    assert compiled() > 0


def test_a_task_that_fails_is_told(cache):
    warmed = warm_up.warm_up(["order nonsense cpu"])
    assert warmed.seconds == {}
    assert "method 'nonsense' is unknown" in warmed.failures["order nonsense cpu"]


def test_nothing_is_done_where_nothing_is_kept(monkeypatch):
    monkeypatch.setenv("MESHPREP_CACHE_DIR", "")
    assert warm_up.warm_up([TASK]).seconds == {}


def test_a_job_names_its_own_tasks():
    assert job_tasks(Options(), ["gmsh", "gmsh"]) == [
        "blocks blocks gpu",
        "colours",
        "order gps gpu",
        "rows",
        "files gmsh",
    ]
    assert job_tasks(Options(method="none", target="cpu"), ["op2-grid"]) == [
        "blocks contiguous cpu",
        "colours",
    ]
    # that of `meshprep plan`, whose mesh is cut in a temporary order
    assert job_tasks(Options(method="none", partition="metis"), []) == [
        "blocks metis gpu",
        "colours lists",
        "order gps gpu",
        "rows",
    ]
    assert job_tasks(Options(own_blocks=True), [])[1] == "colours lists"


@pytest.mark.parametrize(
    ("task", "needed", "rare"),
    [
        ("blocks blocks gpu", [middles], [_give_away, enforce_cap]),
        ("repairs", [_give_away, enforce_cap], []),
        pytest.param("order gps gpu", [_renumbered, _first_touch], [], marks=pytest.mark.slow),
        pytest.param("rows", [_packed_rows], [], marks=pytest.mark.slow),
        pytest.param("colours lists", [_loads, grouped_units], [], marks=pytest.mark.slow),
    ],
)
def test_what_large_meshes_need_is_compiled_too(task, needed, rare):
    code = COUNT.replace(TASK, task).rpartition("print")[0]
    code += "print(*(k.py_func.__qualname__ for k in KERNELS if k.overloads))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    made = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    assert {kernel.py_func.__qualname__ for kernel in needed} <= set(made.split())
    assert not {kernel.py_func.__qualname__ for kernel in rare} & set(made.split())


@pytest.mark.parametrize("task", all_tasks())
def test_every_task_runs(task):
    run_task(task)
