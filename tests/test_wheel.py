"""A wheel with machine code: installed elsewhere it compiles nothing; where it does not fit, it
says so and compiles."""

import json
import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from llvmlite import binding
from numba.core import config

from meshprep.kernels import machine_code
from meshprep_cli import shipped
from meshprep_runtime._numba.installed import processor
from meshprep_runtime.kernel import cache

ROOT = Path(__file__).parents[1]
# Runs the program, and says which functions this process compiled.
COMPILED = """
import json, sys
from numba.core import event
compiled = []
class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(str(event.data.get("dispatcher")))
    def on_end(self, event):
        pass
from meshprep_cli.main import main
with event.install_listener("numba:compile", Listener()):
    code = main(sys.argv[1:])
import meshprep
print(json.dumps([code, compiled, meshprep.__file__]))
"""
NOTE = "this installation was compiled for"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Both distributions, as ``make wheel`` builds them for the default tasks."""
    place = tmp_path_factory.mktemp("wheels")
    given = ["TASKS=", f"DIST={place}", f"BUILD={place}/build", f"VENV={sys.prefix}"]
    # the environment that runs the tests is as it should be
    as_it_is = ["-o", f"{sys.prefix}/.meshprep-installed"]
    made = subprocess.run(
        ["make", "wheel", *given, *as_it_is], cwd=ROOT, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    (package,) = place.glob("meshprep-*.whl")
    (runtime,) = place.glob("meshprep_runtime-*.whl")
    return package, runtime


@pytest.fixture
def installed(wheels, environment, tmp_path, monkeypatch):
    """A command with the wheels installed: which functions it compiled, and what it told."""
    monkeypatch.setenv("MESHPREP_CACHE_DIR", str(tmp_path / "cache"))
    package, runtime = wheels
    assert not package.name.endswith("-none-any.whl")
    environment.install(f"{package}[compiled]", str(runtime))

    def run(*args):
        told = environment.run("-c", COMPILED, *args).splitlines()
        code, compiled, where = json.loads(told[-1])
        assert code == 0
        assert Path(where).is_relative_to(environment.folder)
        return compiled, "\n".join(told)

    return run


@pytest.mark.long
def test_an_installed_wheel_compiles_nothing(installed, tmp_path):
    run = installed
    # the larger one has several groups of blocks, and is renumbered before it is ordered
    for kind, cells in (("delaunay2d", 200_000), ("delaunay3d", 20_000)):
        assert run("generate", kind, "--cells", str(cells), "-o", f"{kind}.msh")[0] == []
        assert run("reorder", f"{kind}.msh")[0] == []
        assert run("check", f"{kind}.plan.h5", "--mesh", f"{kind}.msh")[0] == []


@pytest.mark.long
def test_an_older_processor_compiles_once_and_says_why(installed, monkeypatch):
    run = installed
    assert run("generate", "delaunay2d", "--cells", "2000", "-o", "older.msh")[0] == []
    monkeypatch.setenv("NUMBA_CPU_NAME", "nehalem")
    monkeypatch.setenv("NUMBA_CPU_FEATURES", "")
    again = ["plan", "older.msh", "--partition", "contiguous", "--force", "--json"]
    assert NOTE in run(*again)[1]
    compiled, told = run(*again)
    assert compiled == []
    assert NOTE not in told


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package that was compiled for x86-64-v3, on a processor that has what this needs."""
    monkeypatch.setattr(machine_code, "SHIPPED", tmp_path)
    monkeypatch.setattr(shipped, "SHIPPED", tmp_path)
    monkeypatch.setattr(shipped.platform, "machine", lambda: "x86_64")
    own = dict.fromkeys(shipped.NEEDED["x86-64-v3"].split(), True)
    monkeypatch.setattr(binding, "get_host_cpu_features", lambda: own)
    monkeypatch.setenv("MESHPREP_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"):
        monkeypatch.setenv(name, "")
    for name in ("CPU_NAME", "CPU_FEATURES"):
        monkeypatch.setattr(config, name, None)
    with ZipFile(tmp_path / f"{cache.compiled_for('x86-64-v3')}.zip", "w") as archive:
        archive.writestr("kernel/", "")
        archive.writestr("kernel/loop.py", "# a kernel")
    return own


def test_what_fits_is_used(package):
    shipped.use_shipped()
    assert processor() == os.environ["NUMBA_CPU_NAME"] == "x86-64-v3"
    assert (machine_code.folder() / "kernel" / "loop.py").read_text() == "# a kernel"
    assert machine_code.why_not_shipped() is None


def test_a_processor_without_a_feature_compiles(package):
    package["avx2"] = False
    shipped.use_shipped()
    assert processor() != "x86-64-v3"
    note = machine_code.why_not_shipped()
    assert note.startswith(NOTE)
    assert "x86-64-v3" in note


def test_another_numba_compiles(package, monkeypatch):
    monkeypatch.setattr(cache, "versions", lambda: (sys.version, "2.4.0", "0.1", "0.50.0"))
    shipped.use_shipped()
    assert processor() != "x86-64-v3"
    assert "numba-0.1-" in machine_code.why_not_shipped()


def test_a_processor_that_was_asked_for_compiles(package, monkeypatch):
    monkeypatch.setattr(config, "CPU_NAME", "nehalem")
    shipped.use_shipped()
    assert processor() == "nehalem"


def test_nothing_is_said_where_nothing_came():
    assert machine_code.why_not_shipped() is None
