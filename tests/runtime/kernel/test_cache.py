"""Compiled loops on disk: used by the next process, never stale, never in the way."""

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import pytest

from meshprep.kernels.compiled import from_python
from meshprep.kernels.machine_code import folder as machine_code_of_kernels
from meshprep_runtime import Access, Arg, Loop, LoopPlan, ParLoop
from meshprep_runtime.cpu import executor
from meshprep_runtime.errors import MeshprepWarning
from meshprep_runtime.kernel import cache
from meshprep_runtime.kernel.analysis import reach, stable

PROGRAM = """
import sys
import numpy as np
from meshprep_runtime import Access, Arg, Loop, LoopPlan, ParLoop
loop = Loop("l", "cells", (Arg("v", Access.RW),))
plan = LoopPlan(loop, {"cells": 3}, {}, {}, "")
FACTOR = float(sys.argv[1])
def helper(x):
    return FACTOR * x + OFFSET
OFFSET = float(sys.argv[2])
def kernel(v):
    v[0] = helper(v[0])
v = np.ones(3)
ParLoop(kernel, plan, strategy="sequential")(v=v)
print(v[0])
"""


def run(folder, *words, program=PROGRAM):
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "MESHPREP_CACHE_DIR": str(folder)},
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return float(done.stdout)


def machine_code(folder):
    return {p: p.stat().st_mtime_ns for p in Path(folder).rglob("loop.run-*.nbc")}


@pytest.mark.slow
def test_the_next_process_finds_it_and_changes_are_seen(tmp_path):
    assert run(tmp_path, "2", "1") == 3.0
    first = machine_code(tmp_path)
    assert len(first) == 1
    assert run(tmp_path, "2", "1") == 3.0
    assert machine_code(tmp_path) == first
    # The helper's global, two calls below the loop.
    assert run(tmp_path, "2", "5") == 7.0
    assert len(machine_code(tmp_path)) == 2


@pytest.mark.long
def test_one_kernel_in_two_modules(tmp_path):
    """What is on disk must not need the module that it was compiled from."""
    head, tail = PROGRAM.split("v = np.ones(3)")
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text(head)
        words = [
            sys.executable,
            "-c",
            f"from {name} import *\nv = np.ones(3){tail}",
            "2",
            "1",
        ]
        environment = {**os.environ, "MESHPREP_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(
            words,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (done.stderr, done.stdout) == ("", "3.0\n")
        (tmp_path / f"{name}.py").unlink()


FROM_TEXT = """
text = "def helper(x): return OFFSET * x\\ndef kernel(v): v[0] = helper(v[0]) + 1.0"
scope = {"OFFSET": 2.0, **NAME}
exec(text, scope)
kernel = scope["kernel"]
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["{}", "{'__name__': 'no_such_module'}", "{'__name__': None}"]
)
def test_kernels_without_a_file_or_a_module(tmp_path, name):
    head, tail = PROGRAM.split("v = np.ones(3)")
    program = f"{head}{FROM_TEXT.replace('NAME', name)}v = np.ones(3){tail}"
    assert run(tmp_path, "2", "1", program=program) == 3.0
    first = machine_code(tmp_path)
    assert len(first) == 1
    assert run(tmp_path, "2", "1", program=program) == 3.0
    assert machine_code(tmp_path) == first


@pytest.mark.long
@pytest.mark.parametrize("ending", ["nbc", "nbi"])
def test_files_that_were_cut_off_are_made_anew(tmp_path, ending):
    run(tmp_path, "2", "1")
    sizes = {p: p.stat().st_size for p in tmp_path.rglob(f"*.{ending}")}
    # Of the loop, and of what calls it on one thread.
    assert len(sizes) >= 2
    for path, size in sizes.items():
        os.truncate(path, size // 2)
    assert run(tmp_path, "2", "1") == 3.0
    assert run(tmp_path, "2", "1") == 3.0
    assert {p: p.stat().st_size for p in tmp_path.rglob(f"*.{ending}")} == sizes


@pytest.mark.slow
def test_processes_that_start_together(tmp_path):
    words = [sys.executable, "-c", PROGRAM, "3", "1"]
    environment = {**os.environ, "MESHPREP_CACHE_DIR": str(tmp_path)}
    both = [
        subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [p.communicate(timeout=120)[0] for p in both] == ["4.0\n", "4.0\n"]


@pytest.fixture
def plan(slow):
    return slow.plan({"cells": 3}, {}, [Loop("l", "cells", (Arg("v", Access.RW),))], (2,))[
        "l"
    ]


def result(kernel, plan):
    v = np.ones(3)
    ParLoop(kernel, plan, strategy="sequential")(v=v)
    return v[0]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MESHPREP_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(executor, "_kept", {})
    return tmp_path


def test_what_counts_by_identity_stays_in_memory(plan, folder):
    class Thing:
        value = 2.0

    thing = Thing()

    def plain(v):
        v[0] += 1.5

    assert stable(reach(plain)) is not None
    assert result(plain, plan) == 2.5
    assert len(machine_code(folder)) == 1

    def reaches(v):
        v[0] = thing.value

    assert stable(reach(reaches)) is None


def test_functions_of_numpy_count_by_name(plan, folder):
    def root(v):
        v[0] = np.sqrt(v[0] * 4.0)

    assert stable(reach(root)) is not None
    assert "sqrt" in repr(stable(reach(root)))
    assert result(root, plan) == 2.0
    assert len(machine_code(folder)) == 1


def test_no_folder_no_files(plan, folder, monkeypatch):
    def kernel(v):
        v[0] += 4.5

    monkeypatch.setenv("MESHPREP_CACHE_DIR", "")
    assert result(kernel, plan) == 5.5
    blocked = folder / "file"
    blocked.write_text("")
    monkeypatch.setenv("MESHPREP_CACHE_DIR", str(blocked))
    monkeypatch.setattr(executor, "_kept", {})
    with pytest.warns(MeshprepWarning, match="machine code cannot be kept there"):
        assert result(kernel, plan) == 5.5
    assert list(folder.iterdir()) == [blocked]


def test_the_folder_stays_small(folder, monkeypatch):
    monkeypatch.setattr(cache, "MOST_KEPT", 3)
    for i in range(5):
        place = folder / "loops" / f"{i:032d}"
        place.mkdir(parents=True)
        os.utime(place, (i, i))
    cache.forget_oldest(cache.folder())
    assert sorted(int(p.name) for p in (folder / "loops").iterdir()) == [2, 3, 4]


def days_ago(path, days):
    then = time.time() - days * cache.DAY
    os.utime(path, (then, then))


def kept(folder):
    return sorted(int(place.name) for place in (folder / "loops").iterdir())


def test_what_was_used_last_stays(folder, monkeypatch):
    """The first loop was made before the second, and is used after it."""
    for i in (1, 2):
        cache.module(f"{i:032d}", "")
        days_ago(folder / "loops" / f"{i:032d}", 30 - i)
    cache.module(f"{1:032d}", "")
    monkeypatch.setattr(cache, "MOST_KEPT", 1)
    cache.module(f"{3:032d}", "")
    assert kept(folder) == [1, 3]


@pytest.mark.parametrize("used", ["loop", "note"])
def test_use_is_written_down_once_a_day(folder, used):
    if used == "loop":
        place = folder / "loops" / "1"

        def use():
            assert cache.module("1", "") is not None
    else:
        place = folder / cache.NOTES / "1"

        def use():
            cache.note("1")
            assert cache.is_noted("1")

    use()
    for days, written in ((0.9, False), (1.1, True), (400, True)):
        days_ago(place, days)
        before = place.stat().st_mtime
        use()
        assert (place.stat().st_mtime != before) == written


def test_a_folder_that_takes_no_times_is_used(folder, monkeypatch):
    cache.module("1", "")
    days_ago(folder / "loops" / "1", 2)

    def refuse(*given):
        raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr(os, "utime", refuse)
    assert cache.module("1", "") is not None


def test_what_another_process_begins_to_use_stays(folder):
    folder.mkdir(exist_ok=True)
    places = [folder / name for name in "abc"]
    for age, place in enumerate(places):
        place.mkdir()
        days_ago(place, 9 - age)

    def found():
        yield from places
        # all times are known, and nothing is removed yet
        os.utime(places[0])
        places[1].rmdir()

    cache.keep_used_last(found(), 1)
    assert [place.exists() for place in places] == [True, False, True]


MANY = """
import sys
from meshprep_runtime.kernel import cache
cache.MOST_KEPT = 3
for i in range(60):
    cache.module(f"{(i * int(sys.argv[1])) % 7:032d}", "")
"""


def test_processes_that_remove_what_others_use(tmp_path):
    command = [sys.executable, "-W", "error", "-c", MANY]
    environment = {**os.environ, "MESHPREP_CACHE_DIR": str(tmp_path)}
    started = [
        subprocess.Popen([*command, step], env=environment, stderr=subprocess.PIPE)
        for step in "123"
    ]
    for process in started:
        assert process.communicate(timeout=60)[1] == b""
        assert process.returncode == 0
    # each process may have made one after the last that was removed
    assert 1 <= len(kept(tmp_path)) <= 3 + len(started)


RECURSIVE = """
def even(n):
    return 1.0 if n == 0 else odd(n - 1)
def odd(n):
    return 0.0 if n == 0 else even(n - 1)
def factorial(n):
    if n <= 1:
        return 1.0
    return n * factorial(n - 1)
def kernel(v):
    v[0] = factorial(4)
"""


def test_functions_that_call_themselves_run_in_the_next_process(tmp_path):
    """numba would load them from disk and crash."""
    head, tail = PROGRAM.split("def kernel(v):\n    v[0] = helper(v[0])\n")
    for _ in range(2):
        assert run(tmp_path, "1", "0", program=f"{head}{RECURSIVE}{tail}") == 24.0
    assert not machine_code(tmp_path)


def test_what_is_kept_on_disk_does_not_call_itself():
    functions = {}
    exec(RECURSIVE, functions)
    assert stable(reach(functions["even"])) is None
    assert stable(reach(functions["kernel"])) is None
    twice = {}
    exec(
        "def f(x):\n    return x\ndef g(x):\n    return f(x)\ndef h(x):\n    return f(g(x))",
        twice,
    )
    assert stable(reach(twice["h"])) is not None


def test_a_user_without_a_home_keeps_nothing(monkeypatch):
    """As in a container that runs under a number no user has."""

    def no_user(uid):
        raise KeyError(uid)

    for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "MESHPREP_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", no_user)
    assert cache.root() is None
    assert cache.folder() is None


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def doubled(folder, monkeypatch, factor):
    """What a loop gives that is compiled anew, with machine code kept in this folder."""
    monkeypatch.setenv(cache.FOLDER, str(folder))
    loop = Loop("l", "cells", (Arg("v", Access.RW),))
    plan = LoopPlan(loop, {"cells": 3}, {}, {}, "")

    def kernel(v):
        v[0] = factor * v[0]

    values = np.ones(3)
    ParLoop(kernel, plan, strategy="sequential")(v=values)
    return values.tolist()


def test_a_folder_that_cannot_be_made_is_told_once(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    told = (
        r"file/below: machine code cannot be kept there \(.*\), so each run compiles anew"
    )
    with pytest.warns(MeshprepWarning, match=told) as warned:
        assert doubled(tmp_path / "file/below", monkeypatch, 2.0) == [2.0] * 3
    assert len(warned) == 1
    # without a further warning
    assert cache.root() is None
    assert machine_code_of_kernels() is None
    assert "file/below takes no files" in cache.why_nothing_is_kept()


def test_a_disk_without_room_is_told_once(tmp_path, monkeypatch):
    monkeypatch.setattr(cache.tempfile, "TemporaryFile", full)
    with pytest.warns(MeshprepWarning, match=r"kept there \(no space left on device\)"):
        assert doubled(tmp_path, monkeypatch, 3.0) == [3.0] * 3
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_becomes_full_stops_no_loop(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.core.caching.IndexDataCacheFile, "save", full)
    with pytest.warns(MeshprepWarning, match=r"kept there \(no space left on device\)"):
        assert doubled(tmp_path, monkeypatch, 4.0) == [4.0] * 3
    assert not list(tmp_path.rglob("*.nb[ci]"))


def test_a_disk_that_becomes_full_stops_no_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.FOLDER, str(tmp_path))
    monkeypatch.setattr(numba.core.caching.IndexDataCacheFile, "save", full)

    @from_python
    def added(a, b):
        return a + b

    with pytest.warns(MeshprepWarning, match=r"kept there \(no space left on device\)"):
        assert added(2, 3) == 5
    # of other types, without a further warning
    assert added(2.0, 0.5) == 2.5


def test_nothing_is_left_of_a_file_that_is_not_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        cache.write_whole(tmp_path / "seal", b"text")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="needs limits of a process")
def test_a_program_whose_files_are_limited_runs_and_says_why_it_takes_long(tmp_path):
    limited = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (9999, 9999))\n"
    done = subprocess.run(
        [sys.executable, "-c", limited + PROGRAM, "2", "1"],
        capture_output=True,
        text=True,
        env={**os.environ, "MESHPREP_CACHE_DIR": str(tmp_path)},
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "3.0\n")
    assert done.stderr.count("machine code cannot be kept there (file too large)") == 1
    assert not list(tmp_path.rglob("*.nb[ci]"))
