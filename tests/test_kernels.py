"""Machine code on disk: found again by another process, and never when something has changed."""

import os
import pkgutil
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import numba
import numba.core.compiler
import numpy as np
import pytest
from numba import njit
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys

import meshprep
from meshprep.kernels import KERNELS, check_numba, clock, helper
from meshprep.kernels.compiled import digest, from_python
from meshprep_runtime.errors import MissingPackageError

INNER = """
from typing import NamedTuple
from meshprep.kernels import helper

STEP = 10

class Pair(NamedTuple):
    first: int
    second: int

@helper
def twice(value):
    return 2 * value
"""
OUTER = """
from inner import STEP, Pair, twice
from meshprep.kernels import KERNELS, kernel

@kernel
def doubled(value):
    return twice(value)

@kernel
def stepped(value):
    return value + STEP

@kernel
def first_of(pair):
    return pair.first

print(doubled(4), stepped(4), first_of(Pair(first=4, second=5)))
print(*(sum(k.stats.cache_misses.values()) for k in KERNELS))
"""


@pytest.fixture
def run(tmp_path):
    """The results of three kernels in a new process, and how many it compiled."""
    (tmp_path / "inner.py").write_text(INNER)
    (tmp_path / "outer.py").write_text(OUTER)
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    environment = {**os.environ, "MESHPREP_CACHE_DIR": str(tmp_path), "PYTHONPATH": paths}
    # Python knows a file by its size and times, which an edit here leaves as they are.
    environment["PYTHONDONTWRITEBYTECODE"] = "1"

    def go():
        made = subprocess.run(
            [sys.executable, tmp_path / "outer.py"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        results, compiled = made.stdout.splitlines()
        return results, sum(int(c) for c in compiled.split())

    return go


def edit(path: Path, old: str, new: str) -> None:
    """Change a file, but not its size and times, by which numba would know it."""
    before, text = path.stat(), path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_an_edit_in_another_file_is_seen(run, tmp_path):
    """Of a helper, a constant and the order of fields, one after another."""
    assert run() == ("8 14 4", 3)
    assert run() == ("8 14 4", 0)
    for old, new, expected in (
        ("2 * value", "3 * value", "12 14 4"),
        ("STEP = 10", "STEP = 20", "12 24 4"),
        ("first: int\n    second: int", "second: int\n    first: int", "12 24 4"),
    ):
        edit(tmp_path / "inner.py", old, new)
        assert run() == (expected, 1)
    assert run() == (expected, 0)


def test_damaged_machine_code_is_made_again(run, tmp_path):
    run()
    for path in (tmp_path / "kernels").rglob("*.nbc"):
        path.write_bytes(path.read_bytes()[:100])
    assert run() == ("8 14 4", 3)
    assert run() == ("8 14 4", 0)


def test_without_a_folder_everything_works(run, tmp_path, monkeypatch):
    (tmp_path / "kernels").write_text("in the way")
    assert run() == ("8 14 4", 3)


LINKED = """
import sys
from meshprep.kernels import kernel

@kernel
def one(value):
    return value + 1

@kernel
def two(value):
    return one(one(value))

print(one(4), *([two(4)] if "two" in sys.argv else []), "numba.typed.typeddict" in sys.modules)
print(*(sum(k.stats.cache_misses.values()) for k in (one, two)))
"""


@pytest.mark.slow
def test_kernels_are_loaded_without_the_compiler_and_linked_with_it(tmp_path):
    (tmp_path / "linked.py").write_text(LINKED)
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    environment = {**os.environ, "MESHPREP_CACHE_DIR": str(tmp_path), "PYTHONPATH": paths}

    def go(*words):
        command = [sys.executable, tmp_path / "linked.py", *words]
        made = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return made.stdout.splitlines()

    assert go() == ["5 True", "1 0"]
    assert go() == ["5 False", "0 0"]
    assert go("two") == ["5 6 True", "0 1"]
    assert go("two") == ["5 6 False", "0 0"]


def test_every_kernel_has_a_digest_of_its_own():
    for module in pkgutil.walk_packages(meshprep.__path__, "meshprep."):
        import_module(module.name)
    ours = [k for k in KERNELS if k.py_func.__module__.startswith("meshprep.")]
    assert len({digest(k) for k in ours}) == len(ours) > 80


def test_a_helper_is_for_kernels():
    @helper
    def half(value):
        return value // 2

    with pytest.raises(TypeError, match="half is a helper: only kernels can call it"):
        half(4)
    assert from_python(half)(4) == 2
    with pytest.raises(TypeError, match="half is a helper"):
        half(4)


def test_an_error_in_a_helper_arrives():
    @helper
    def share(value, parts):
        return value // parts

    assert from_python(share)(9, 3) == 3

    def call(value, parts):
        return share(value, parts)

    outer = from_python(call)
    assert outer(9, 3) == 3
    with pytest.raises(ZeroDivisionError):
        outer(9, 0)


def test_what_a_kernel_calls_is_made_machine_code_with_it_alone(monkeypatch):
    @helper
    def half(values):
        out = np.empty(values.size, values.dtype)
        for i in range(values.size):
            out[i] = values[i] // 2
        return out

    @helper
    def quarter(values):
        return half(half(values))

    @from_python
    def halves(values):
        return half(values) + np.full(values.size, quarter(values)[0])

    libraries, finished = [], JITCodeLibrary._finalize_specific
    monkeypatch.setattr(
        JITCodeLibrary, "_finalize_specific", lambda own: libraries.append(own) or finished(own)
    )
    halves._cache = NullCache()
    rtsys.initialize(cpu_target.target_context)
    assert halves(np.array([8, 9])).tolist() == [6, 6]
    assert [one.name for one in libraries] == [halves.py_func.__qualname__]
    # what was compiled serves functions of others, too
    assert njit(lambda values: quarter(values)[1])(np.array([8, 9])) == 2


def test_the_clock_leaves_compiling_out():
    def busy(n):
        total = 0
        for i in range(n):
            total += i * i % 7
        return total

    unseen = from_python(busy)
    unseen._cache = NullCache()
    wall, ours = time.perf_counter(), clock()
    unseen(3)
    compiling = time.perf_counter() - wall - (clock() - ours)
    assert compiling > 0.02
    assert clock() - ours < 0.5 * compiling


@pytest.mark.parametrize("name", ["Compiler._compile_core", "CompileResult._rebuild"])
def test_a_numba_without_an_internal_is_refused_by_its_version(name, monkeypatch):
    owner, _, attribute = name.partition(".")
    for base in getattr(numba.core.compiler, owner).__mro__:
        if attribute in vars(base):
            monkeypatch.delattr(base, attribute)
    with pytest.raises(MissingPackageError) as error:
        check_numba()
    said = f"numba {numba.__version__} has no numba.core.compiler.{name}, which compiles"
    assert str(error.value).startswith(said)


def test_a_numba_without_an_internal_is_one_line():
    code = "import sys, numba.core.compiler as c; del c.CompileResult._find_referenced_environments"
    code += "; from meshprep_cli.main import main; sys.exit(main(['generate', 'box', '-q']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "CompileResult._find_referenced_environments, which compiles" in done.stderr
