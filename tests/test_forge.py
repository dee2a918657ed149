"""What a forge and others' tools read: workflows, forms, hooks, how to cite, versions to test."""

import itertools
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from versions import lowest, newest, requirements

import meshprep_runtime

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(
    p for p in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if p.stem != "config"
)


def read(path):
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def project(folder="."):
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]


def targets():
    """What ``make`` can be asked for."""
    text = (ROOT / "Makefile").read_text()
    found = re.findall(r"^([\w -]+):(?!=)", text, re.MULTILINE)
    return set(" ".join(found).split())


def combinations(matrix):
    """The jobs of a matrix, as values by name."""
    axes = {name: values for name, values in matrix.items() if name != "include"}
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))
    yield from matrix.get("include", ())


def commands(job):
    """Every line that a job runs, once for each combination of its matrix."""
    for values in combinations(job.get("strategy", {}).get("matrix", {})):
        for line in (
            line for step in job["steps"] for line in step.get("run", "").splitlines()
        ):
            yield re.sub(
                r"\$\{\{ matrix\.(\w+) \}\}", lambda name, v=values: v[name[1]], line
            )


def check_command(line):
    for path in re.findall(r"(?<![\w/])tests/[\w./]+", line):
        assert (ROOT / path).exists(), path
    program, *words = re.sub(r'TESTS="[^"]*"', "", line).split()
    if program == "make":
        # What is not to be made again is named, too.
        words = [word for word in words if word != "-o"]
        asked = {word for word in words if "=" not in word}
        assert asked <= targets(), asked - targets()
    else:
        assert (ROOT / program).is_file(), line


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_what_there_is(path):
    found = read(path)
    # YAML takes the word "on" for a truth value
    assert set(found) == {"name", True, "permissions", "concurrency", "jobs"}
    lines = [line for job in found["jobs"].values() for line in commands(job)]
    assert len(lines) > 1
    for line in lines:
        check_command(line)


def test_workflows_try_the_declared_pythons_and_systems():
    (job,) = (j for j in read(WORKFLOWS[0])["jobs"].values() if "strategy" in j)
    tried = list(combinations(job["strategy"]["matrix"]))
    pythons = {one["python"] for one in tried if one["versions"] == "newest"}
    systems = {one["os"].partition("-")[0] for one in tried}
    for folder in (".", "runtime"):
        declared = project(folder)
        classes = " ".join(declared["classifiers"])
        assert set(re.findall(r"Python :: (3\.\d+)", classes)) == pythons
        assert declared["requires-python"] == f">={min(pythons, key=lambda v: int(v[2:]))}"
        known = {"ubuntu": "Linux", "macos": "MacOS", "windows": "Windows"}
        assert all(known[name] in classes for name in systems)
    assert {one["versions"] for one in tried} == {"lowest", "newest"}


def test_ci_runs_what_there_is():
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    made = [line for line in lines if line.startswith("make ")]
    assert made
    for line in made:
        check_command(line)


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_forms_ask_for_something(path):
    form = read(path)
    assert {"name", "description", "body"} <= set(form)
    ids = [field["id"] for field in form["body"]]
    assert len(set(ids)) == len(ids)
    for field in form["body"]:
        assert field["type"] in {"textarea", "input", "dropdown", "checkboxes"}
        assert field["attributes"]["label"]


def test_a_report_of_a_fault_asks_for_the_version():
    fields = {
        field["id"]: field for field in read(".github/ISSUE_TEMPLATE/bug.yml")["body"]
    }
    assert "meshprep --version" in fields["environment"]["attributes"]["value"]
    assert fields["environment"]["validations"]["required"]


def test_hooks_run_what_make_lint_runs():
    hooks = [h for repo in read(".pre-commit-config.yaml")["repos"] for h in repo["hooks"]]
    entries = " ".join(hook["entry"] for hook in hooks)
    for tool in ("ruff check", "ruff format", "mypy"):
        assert tool in entries
    needed = {text for hook in hooks for text in hook.get("additional_dependencies", ())}
    assert needed <= set(project()["optional-dependencies"]["dev"])


def test_how_to_cite_this_version():
    found = read("CITATION.cff")
    assert {"cff-version", "message", "title", "authors", "version"} <= set(found)
    assert found["cff-version"] == "1.2.0"
    assert str(found["version"]) == meshprep_runtime.__version__
    assert found["license"] == project()["license"]
    assert found["authors"] == [{"name": "The meshprep maintainers"}]


def test_versions_to_test_with_come_from_what_is_declared():
    needed = requirements("meshprep", "test")
    declared = [*project()["dependencies"], *project("runtime")["dependencies"]]
    names = {re.match(r"[\w.-]+", text)[0] for text in declared} - {"meshprep-runtime"}
    assert names | {"numba", "pytest", "networkx"} <= set(needed)
    assert not {"meshprep", "meshprep-runtime"} & set(needed)
    assert lowest("numba>=0.60") == "numba==0.60"
    assert newest("meshio==5.3.5") == "meshio"
    assert newest("a[b]>=1,<2; sys_platform == 'linux'") == "a[b]; sys_platform == 'linux'"
    script = [sys.executable, str(ROOT / "tests" / "versions.py"), "lowest"]
    lines = subprocess.run(
        script, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(lines) == len(needed)
    for line in lines:
        assert re.match(r"[\w.-]+==[\d.post]+(; .*)?$", line), line


def test_only_what_must_be_is_pinned():
    needed = requirements("meshprep", "test").values()
    pinned = [text for text in needed if re.search("==|<", text.partition(";")[0])]
    assert pinned == ["meshio==5.3.5"]
