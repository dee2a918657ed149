"""The Python in the documentation, run as it stands."""

import re
import sys

import numpy as np
import pytest
from fake_cupy import FakeCupy
from pages import DOCS, blocks

from meshprep_runtime import ParLoop, Plan
from meshprep_runtime.cuda import device, gpu
from meshprep_runtime.types.loops import loop_from_dict

tomllib = pytest.importorskip("tomllib")


def test_the_solver_of_the_readme(slow, tmp_path, monkeypatch):
    grid = slow.quads(5, 4)
    arg = {"dat": "value", "map": "edges->cells", "index": [0, 1], "access": "inc"}
    loop = loop_from_dict("edges->cells", {"over": "edges", "args": [arg]}, "README.md")
    slow.plan(grid.sizes, grid.tables, [loop], (16,)).save(tmp_path / "wing.plan.h5")
    monkeypatch.chdir(tmp_path)
    scope = {}
    exec(next(b for b in blocks("../README.md", "python") if "ParLoop" in b), scope)
    plan = scope["plan"]
    found = np.bincount(plan.maps["edges->cells"].table.ravel(), minlength=20)
    assert np.array_equal(scope["neighbours"], plan.ordering["cells"].restore(found))


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda path: path.stem)
def test_lists_stand_apart(page):
    """Without an empty line before it, the site shows a list as a part of the paragraph."""
    text = re.sub(
        r"^ *```.*?^ *```$", "```", page.read_text(encoding="utf-8"), flags=re.M | re.S
    )
    parts = re.split(r"\n\n+|^#.*\n|^```\n", text, flags=re.M)
    blocks = [part.strip("\n").split("\n") for part in parts]
    item = re.compile(r"(-|\d+\.) ")
    late = [b for b in blocks if not item.match(b[0]) and any(map(item.match, b[1:]))]
    assert [b for b in late if not b[0].startswith(" ")] == []


def test_the_solver_of_the_python_page(slow, tmp_path, monkeypatch, capsys):
    (toml,) = blocks("solvers/python.md", "toml")
    described = tomllib.loads(toml)["loop"]
    loops = [loop_from_dict(name, words, "heat.toml") for name, words in described.items()]
    grid = slow.quads(12, 10)
    slow.plan(grid.sizes, grid.tables, loops, (16,)).save(tmp_path / "square.plan.h5")
    monkeypatch.chdir(tmp_path)
    scope = {}
    exec("\n".join(blocks("solvers/python.md", "python")), scope)
    (first,) = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"peak 0\.\d{6}, sum 60\.000000 of 60\.000000", first)
    left, right = scope["plan"].maps["edges->cells"].table.T
    t = scope["cells"].apply(scope["t_file"]).copy()
    for _ in range(100):
        f = t[right] - t[left]
        t += 0.1 * (np.bincount(left, f, 120) - np.bincount(right, f, 120))
    assert np.abs(scope["t"] - t).max() < 1e-13
    restored = np.load("temperature.npy")
    order = Plan.load("square.plan.h5").ordering["cells"].new_to_old
    assert np.array_equal(restored[order], scope["t"])


@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize("block", [0, 1])
def test_the_cuda_of_the_python_page(block, slow, tmp_path, monkeypatch):
    """The kernel in Python, and the one in CUDA C; all but the lines that need NVRTC."""
    (toml,) = blocks("solvers/python.md", "toml")
    flux = loop_from_dict("flux", tomllib.loads(toml)["loop"]["flux"], "heat.toml")
    code, _, _ = blocks("solvers/gpu.md", "py")[block].partition(
        "from meshprep_runtime.cuda.nv"
    )
    grid = slow.quads(12, 10)
    monkeypatch.chdir(tmp_path)
    scope = {"plan": slow.plan(grid.sizes, grid.tables, [flux], (16,))}
    scope |= {"t": np.arange(120.0) ** 2, "r": np.zeros(120)}
    kernels = next(b for b in blocks("solvers/python.md", "python") if "def flux" in b)
    exec(kernels.partition("def update")[0], scope)
    exec(code, scope)
    left, right = grid.tables["edges->cells"].T
    f = scope["t"][right] - scope["t"][left]
    assert np.array_equal(
        scope["r"], np.bincount(left, f, 120) - np.bincount(right, f, 120)
    )
    if block:
        assert "meshprep_loop(" in (tmp_path / "flux.cu").read_text()


@pytest.mark.usefixtures("needs_gxx")
def test_the_gpu_of_the_python_page(slow, monkeypatch, capsys):
    """On a stand-in of CuPy; what is compiled is run under g++."""
    (toml,) = blocks("solvers/python.md", "toml")
    loop = loop_from_dict("flux", tomllib.loads(toml)["loop"]["flux"], "heat.toml")
    cupy = FakeCupy()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(gpu, "compiled", cupy.compiled)
    monkeypatch.setattr(device, "_known", {})
    grid = slow.quads(12, 10)
    scope = {"plan": slow.plan(grid.sizes, grid.tables, [loop], (16,)), "ParLoop": ParLoop}
    scope |= {
        "flux": lambda t1, t2, r1, r2: None,
        "t": np.arange(120.0) ** 2,
        "r": np.zeros(120),
    }
    _, in_c, on_gpu, *_ = blocks("solvers/gpu.md", "py")
    (emulated,) = blocks("../cuda-check/README.md", "py")
    exec(in_c.partition("made =")[0] + on_gpu + emulated, scope)
    left, right = grid.tables["edges->cells"].T
    f = scope["t"][right] - scope["t"][left]
    expected = np.bincount(left, f, 120) - np.bincount(right, f, 120)
    assert np.array_equal(scope["r_gpu"].get(), expected)
    assert (
        capsys.readouterr().out
        == f"hierarchical-inc s16 {expected.sum()}\n{expected.sum()}\n"
    )
    assert np.array_equal(scope["r_there"].get(), expected)


def test_the_seal_of_the_format_page(airfoil, tmp_path):
    scope = {}
    for code in blocks("plan-format.md", "python"):
        exec(code, scope)
    path = tmp_path / "a.plan.h5"
    airfoil.save(path)
    assert scope["is_whole"](path)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert not scope["is_whole"](path)


def test_the_format_page_names_every_object(airfoil, tmp_path):
    """Each dataset and attribute of a file stands in the tables, under its own name."""
    import h5py

    page = (DOCS / "plan-format.md").read_text(encoding="utf-8")
    airfoil.save(tmp_path / "a.plan.h5")
    names = set()

    def visit(name, found):
        if isinstance(found, h5py.Dataset):
            names.add(name.rpartition("/")[2])
        names.update(found.attrs)

    with h5py.File(tmp_path / "a.plan.h5") as file:
        file.visititems(visit)
        names.update(file.attrs)
    data = {"edges->cells", "edges->nodes", "physical"}
    assert data < names
    assert [
        n for n in sorted(names - data) if f"`{n}`" not in page and f"/{n}`" not in page
    ] == []
