"""Machine code on disk: found again by another process, and never when something has changed."""

import os
import pkgutil
import random
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import pytest

import meshprep
from meshprep.kernels import KERNELS, clock, helper, machine_code
from meshprep.kernels.compiled import from_python
from meshprep.kernels.machine_code import digest
from meshprep_runtime._numba.installed import TESTED, import_numba
from meshprep_runtime.errors import MeshprepWarning, UntestedVersionWarning
from meshprep_runtime.kernel import cache
from meshprep_runtime.kernel.cache import is_private

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


class Runs:
    """A folder with three kernels and their machine code, which new processes run."""

    def __init__(self, folder):
        self.folder = folder
        paths = os.pathsep.join([str(folder), *sys.path])
        self.environment = {
            **os.environ,
            "MESHPREP_CACHE_DIR": str(folder),
            "PYTHONPATH": paths,
            # Python knows a file by its size and times, which an edit here leaves as they are.
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def __call__(self):
        """The results of the kernels in a new process, and how many it compiled."""
        made = subprocess.run(
            [sys.executable, self.folder / "outer.py"],
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        results, compiled = made.stdout.splitlines()
        return results, sum(int(c) for c in compiled.split())


@pytest.fixture
def run(tmp_path):
    """Three kernels that nobody has compiled."""
    (tmp_path / "inner.py").write_text(INNER)
    (tmp_path / "outer.py").write_text(OUTER)
    return Runs(tmp_path)


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory):
    """The folder of three kernels after a first run."""
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "inner.py").write_text(INNER)
    (folder / "outer.py").write_text(OUTER)
    assert Runs(folder)() == ("8 14 4", 3)
    # What is kept is found in a copy of the folder, too.
    copy = tmp_path_factory.mktemp("copy")
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    assert Runs(copy)() == ("8 14 4", 0)
    return folder


@pytest.fixture
def run_again(compiled_once, tmp_path):
    """Three kernels whose machine code an earlier run has kept."""
    shutil.copytree(compiled_once, tmp_path, dirs_exist_ok=True)
    return Runs(tmp_path)


def edit(path: Path, old: str, new: str) -> None:
    """Change a file, but not its size and times, by which numba would know it."""
    before, text = path.stat(), path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_an_edit_in_another_file_is_seen(run, tmp_path):
    """Of a helper and a constant, one after the other."""
    assert run() == ("8 14 4", 3)
    assert run() == ("8 14 4", 0)
    edits = [
        ("2 * value", "3 * value", "12 14 4"),
        ("STEP = 10", "STEP = 20", "12 24 4"),
    ]
    for old, new, expected in edits:
        edit(tmp_path / "inner.py", old, new)
        assert run() == (expected, 1)
    assert run() == (expected, 0)


def kept(place):
    return sorted(place.joinpath("kernels").rglob("*.nb[ci]"))


DAMAGE = ["zeros", "a bit", "gone", "cut off"]


@pytest.mark.slow
@pytest.mark.parametrize("damage", [DAMAGE[:3], *([one] for one in DAMAGE)])
def test_damaged_machine_code_is_made_again(run_again, tmp_path, damage):
    """Of every file, a little after another; a bit anywhere would be run as it is."""
    rng, files = random.Random(5), kept(tmp_path)
    # the files of a kernel, which have a folder, are damaged in one way
    kernels = sorted({path.parent for path in files})
    assert len(kernels) == 3
    for path in files:
        content = bytearray(path.read_bytes())
        way = damage[kernels.index(path.parent) % len(damage)]
        if way == "gone":
            path.unlink()
            continue
        if way == "cut off":
            del content[100:]
        elif way == "zeros":
            content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
        else:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
    assert run_again() == ("8 14 4", 3)
    assert run_again() == ("8 14 4", 0)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="folders have no modes")
def test_no_machine_code_is_taken_from_a_folder_that_others_can_write_to(
    run_again, tmp_path
):
    place = tmp_path / "kernels"
    place.chmod(0o777)
    with pytest.warns(MeshprepWarning, match="others can write to this folder"):
        assert not is_private(place)
    assert run_again() == ("8 14 4", 3)
    place.chmod(0o755)
    assert run_again() == ("8 14 4", 0)


@pytest.mark.slow
@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() != 0, reason="only root gives files away"
)
def test_no_machine_code_is_taken_from_a_folder_of_another_user(run_again, tmp_path):
    for path in (tmp_path / "kernels").iterdir():
        os.chown(path, 65534, 65534)
    assert run_again() == ("8 14 4", 3)


@pytest.mark.slow
def test_without_a_folder_everything_works(run, tmp_path, monkeypatch):
    (tmp_path / "kernels").write_text("in the way")
    assert run() == ("8 14 4", 3)


def test_fields_of_named_tuples_in_another_order_are_another_digest(tmp_path, monkeypatch):
    """numba knows a named tuple by its name and the types of its fields."""
    monkeypatch.setattr(
        machine_code, "__file__", str(tmp_path / "kernels" / "machine_code.py")
    )
    found = []
    for fields in ("first: int\n    second: int", "second: int\n    first: int"):
        (tmp_path / "pairs.py").write_text(
            f"class Pair(NamedTuple):\n    {fields}\n\nX = 1\n"
        )
        machine_code.tuples.cache_clear()
        found.append(machine_code.tuples())
        (tmp_path / "pairs.py").write_text(
            f"Y = 2\nclass Pair(NamedTuple):\n    {fields}\n\n"
        )
        machine_code.tuples.cache_clear()
        assert machine_code.tuples() == found[-1]
    machine_code.tuples.cache_clear()
    assert found[0] != found[1]


def modules():
    """Every module of meshprep, but for the one that PyVista imports."""
    names = [m.name for m in pkgutil.walk_packages(meshprep.__path__, "meshprep.")]
    names.remove("meshprep.arrays.pyvista_accessor")
    return [import_module(name) for name in names]


def test_compiled_functions_call_helpers_alone():
    """A kernel is for Python: compiled code cannot call it."""
    found = modules()
    kernels = {id(k) for k in KERNELS}
    for module in found:
        for name, one in vars(module).items():
            if (function := getattr(one, "py_func", None)) is not None:
                reached = map(function.__globals__.get, function.__code__.co_names)
                assert not [r for r in reached if id(r) in kernels], (
                    f"{module.__name__}.{name}"
                )


def test_every_kernel_has_a_digest_of_its_own():
    assert modules()
    ours = [k for k in KERNELS if k.py_func.__module__.startswith("meshprep.")]
    assert len({digest(k.py_func) for k in ours}) == len(ours) > 80


def test_a_helper_that_moves_to_another_module_is_another_digest():
    """Machine code names the modules of helpers, which numba imports to load it."""
    found = set()
    for module in ("here", "there"):
        scope = {"__name__": module, "helper": helper}
        exec(
            "@helper\ndef twice(x):\n    return 2 * x\n\ndef outer(x):\n    return twice(x)",
            scope,
        )
        found.add(digest(scope["outer"]))
    assert len(found) == 2


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


def test_the_clock_leaves_compiling_out(monkeypatch):
    def busy(n):
        total = 0
        for i in range(n):
            total += i * i % 7
        return total

    unseen = from_python(busy)
    monkeypatch.setenv("MESHPREP_CACHE_DIR", "")
    wall, ours = time.perf_counter(), clock()
    unseen(3)
    compiling = time.perf_counter() - wall - (clock() - ours)
    assert compiling > 0.02
    assert clock() - ours < 0.5 * compiling


def one_more(value):
    return value + 1


def test_threads_that_call_a_kernel_first_at_once_share_it(tmp_path, monkeypatch):
    """With two, one held the lock of the folder, the other that of the compiler, for ever."""
    made = []
    source = cache.source

    def slow_source(path, text):
        made.append(path)
        time.sleep(0.2)
        return source(path, text)

    monkeypatch.setenv("MESHPREP_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "source", slow_source)
    kernel = from_python(one_more)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(kernel, [1, 2, 3, 4])) == [2, 3, 4, 5]
    assert len(made) == 1
    assert sum(kernel.stats.cache_misses.values()) == 1


@pytest.mark.skipif(os.name != "posix", reason="needs locks of files")
def test_the_clock_leaves_waits_for_another_process_out():
    def waited_for(n):
        return 3 * n

    kernel = from_python(waited_for)
    kernel._make()
    # what another process holds that compiles the kernel
    lock = cache.Lock(kernel._folder)
    release = threading.Timer(0.5, lock.__exit__)
    release.start()
    wall, ours = time.perf_counter(), clock()
    assert kernel(3) == 9
    release.join()
    assert time.perf_counter() - wall - (clock() - ours) > 0.45


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("NUMBA_NUM_THREADS", "0", "numba does not start: "),
        (
            "NUMBA_THREADING_LAYER",
            "nope",
            "NUMBA_THREADING_LAYER is 'nope': unset it, or use",
        ),
        (
            "NUMBA_DISABLE_JIT",
            "1",
            "NUMBA_DISABLE_JIT keeps kernels from being compiled: unset it",
        ),
    ],
)
def test_an_environment_that_numba_cannot_work_in_is_one_line(name, value, said, tmp_path):
    command = [sys.executable, "-m", "meshprep_cli", "generate", "box", "-q"]
    environment = os.environ | {name: value, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"meshprep: error: {said}")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="folders have no modes")
def test_the_program_warns_in_one_line(tmp_path):
    (tmp_path / "kernels").mkdir(mode=0o777)
    (tmp_path / "kernels").chmod(0o777)
    command = [
        sys.executable,
        "-m",
        "meshprep_cli",
        "generate",
        "airfoil",
        "--cells",
        "99",
        "-q",
    ]
    place = {"MESHPREP_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        command, env=os.environ | place, capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert done.stderr.startswith(
        f"meshprep: warning: {tmp_path / 'kernels'}: others can write"
    )


@pytest.mark.parametrize("package", ["numba", "numpy"])
def test_a_version_that_was_never_tried_is_warned_of(package, monkeypatch):
    import_numba.cache_clear()
    monkeypatch.setattr(import_module(package), "__version__", "9.1.0rc1")
    with pytest.warns(UntestedVersionWarning) as told:
        import_numba()
    assert len(told) == 1
    assert f"with {package} up to {TESTED[package]}, and this is 9.1.0rc1" in str(
        told[0].message
    )
    import_numba.cache_clear()
