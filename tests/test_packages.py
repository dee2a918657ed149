"""The two distributions: one version, what each needs, and the runtime installed alone."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import meshprep_runtime
from meshprep import Plan, prepare
from meshprep.io.generate import generate

ROOT = Path(__file__).parents[1]
RUNTIME = ROOT / "runtime"
# The modules that the distributions of the runtime's pyproject.toml bring, by extra.
MODULES = {
    "": {"numpy", "h5py"},
    "cpu": {"numba", "llvmlite"},
    "check": {"numba", "numba_cuda", "cuda"},
    "gpu": {"cupy"},
    "mpi": {"mpi4py"},
}


def project(folder):
    return tomllib.loads((folder / "pyproject.toml").read_text())


def names(requirements):
    return [re.match(r"[A-Za-z0-9_.-]+", text)[0] for text in requirements]


def test_one_version():
    pins = [
        r
        for r in project(ROOT)["project"]["dependencies"]
        if r.startswith("meshprep-runtime")
    ]
    assert pins == [f"meshprep-runtime[cpu]=={meshprep_runtime.__version__}"]
    for folder in (ROOT, RUNTIME):
        found = project(folder)
        assert found["project"]["dynamic"] == ["version"]
        path = folder / found["tool"]["hatch"]["version"]["path"]
        assert path.samefile(meshprep_runtime.__file__)


def test_the_checks_of_cuda_text_have_that_version_too():
    found = project(ROOT / "cuda-check")["project"]
    assert found["version"] == meshprep_runtime.__version__
    assert names(found["dependencies"]) == ["meshprep-runtime"]


def test_the_changelog_names_the_version():
    text = (ROOT / "CHANGELOG.md").read_text()
    assert f"\n## [{meshprep_runtime.__version__}]" in text


def test_one_licence():
    for folder in (RUNTIME, ROOT / "cuda-check"):
        assert (ROOT / "LICENSE").read_bytes() == (folder / "LICENSE").read_bytes()


def test_what_the_runtime_needs():
    found = project(RUNTIME)["project"]
    assert names(found["dependencies"]) == ["numpy", "h5py"]
    extras = found["optional-dependencies"]
    assert set(extras) == {"cpu", "gpu", "gpu12", "mpi", "check"}
    assert names(extras["cpu"]) == ["numba"]


def test_the_runtime_imports_nothing_else():
    # matrices are given to scipy where a user has it
    known = set().union(
        *MODULES.values(), {"meshprep_runtime", "scipy"}, sys.stdlib_module_names
    )
    for path in (RUNTIME / "meshprep_runtime").rglob("*.py"):
        tree = ast.parse(path.read_text())
        imported = {
            a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names
        }
        imported |= {
            str(n.module)
            for n in ast.walk(tree)
            if isinstance(n, ast.ImportFrom) and not n.level
        }
        assert {name.partition(".")[0] for name in imported} <= known, path


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "square.plan.h5"
    prepare(generate("delaunay2d", cells=60), ["edges->cells"]).plan.save(path)
    return path


LOAD = """
import sys
import numpy as np
from meshprep_runtime import MissingPackageError, ParLoop, Plan
plan = Plan.load(sys.argv[1])
assert plan.verify() == []
def add(left, right):
    left[0] += 1.0
    right[0] += 1.0
total = np.zeros(plan.sizes["cells"])
loop = ParLoop(add, plan["edges->cells"])
try:
    loop(value=total)
    np.savetxt(sys.stdout, plan.ordering["cells"].restore(total), "%d")
except MissingPackageError as error:
    print(error)
"""


@pytest.mark.slow
def test_the_runtime_alone_then_with_numba_then_both(environment, plan_file):
    environment.install(str(RUNTIME))
    assert environment.distributions() == {"meshprep-runtime", "numpy", "h5py"}
    told = environment.run("-c", LOAD, str(plan_file))
    assert told == "running loops needs numba: pip install 'meshprep-runtime[cpu]'\n"

    environment.install(f"{RUNTIME}[cpu]")
    found = environment.distributions()
    assert found == {"meshprep-runtime", "numpy", "h5py", "numba", "llvmlite"}
    counts = np.array(environment.run("-c", LOAD, str(plan_file)).split(), int)
    plan = Plan.load(plan_file)
    edges = plan.maps["edges->cells"].table
    neighbours = np.bincount(edges.ravel(), minlength=plan.sizes["cells"])
    assert np.array_equal(counts, plan.ordering["cells"].restore(neighbours))

    environment.install(str(RUNTIME), str(ROOT))
    assert environment.distributions() >= {"meshprep", "meshprep-runtime", "numba", "scipy"}
    assert "networkx" not in environment.distributions()
    version = environment.run("-m", "meshprep_cli.main", "--version")
    assert version == f"meshprep {meshprep_runtime.__version__}\n"


def test_the_guide_for_contributors_names_what_there_is():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    paths = {
        p
        for p in re.findall(r"`([\w./-]+)`", text)
        if "/" in p or p.endswith((".md", ".toml"))
    }
    generated = {"benchmarks/results/"}
    assert len(paths) > 40
    assert sorted(p for p in paths - generated if not (ROOT / p).exists()) == []
    for table, path in re.findall(r"`([A-Z_]{4,})` in `([\w./-]+)`", text):
        assert re.search(rf"^{table}\b", (ROOT / path).read_text(), re.MULTILINE), (
            table,
            path,
        )
