"""Airfoil's fluxes in Fortran, in turns: the bits of C on any number of threads."""

import os
import shutil
import subprocess
import sys
from ctypes import c_void_p, create_string_buffer
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from bench_fortran import UNFUSED, build

from airfoil import KERNELS, coordinates
from kernels.airfoil import EPS, GM1
from meshprep import Options, prepare, read_requests
from meshprep.io.generate import generate
from meshprep.topology import derive

FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", UNFUSED)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    missing = [tool for tool in ("gfortran", "pkg-config") if shutil.which(tool) is None]
    if not missing and subprocess.run(["pkg-config", "--exists", "hdf5"]).returncode:
        missing = ["libhdf5-dev"]
    if missing:
        assert "MESHPREP_REQUIRE_C" not in os.environ, missing
        pytest.skip(f"needs {', '.join(missing)}")
    return build(FLAGS, tmp_path_factory.mktemp("fluxes"))


@pytest.fixture(scope="module", params=["ranges", "lists"])
def prepared(request):
    """Blocks that are ranges of the edges, and blocks that list their edges."""
    lists = request.param == "lists"
    options = Options(block_size=256, partition="metis" if lists else None)
    loops = read_requests(KERNELS / "airfoil.toml")
    mesh = generate("airfoil", cells=12_000)
    if lists:
        mesh = derive(mesh, ["edges->nodes", "edges->cells"])
    made = prepare(mesh, loops, options, keep_order=lists)
    assert (made.plan["res_calc"].variant().elements is not None) == lists
    assert made.plan["res_calc"].ranges.order.size > 8
    return made


def start(library, language, path):
    """What the program says where it cannot begin."""
    error = create_string_buffer(256)
    good = getattr(library, f"start_in_{language}")(os.fsencode(path), error)
    return "" if good else error.value.decode()


def residuals(function, arrays):
    result = np.zeros_like(arrays[1])
    function(*(c_void_p(array.ctypes.data) for array in (*arrays, result)))
    return result


def numpy_fluxes(plan, x, q, adt):
    """The same formulas on whole arrays."""
    first, second = plan.maps["edges->cells"].table.T
    n1, n2 = plan.maps["edges->nodes"].table.T
    dx, dy = (x[n2] - x[n1]).T
    half_sum = np.zeros((first.size, 4))
    for cell in (first, second):
        rho, mx, my, energy = q[cell].T
        pressure = GM1 * (energy - 0.5 * (mx**2 + my**2) / rho)
        volume = (mx * dy - my * dx) / rho
        half_sum[:, 0] += 0.5 * volume * rho
        half_sum[:, 1] += 0.5 * (volume * mx + pressure * dy)
        half_sum[:, 2] += 0.5 * (volume * my - pressure * dx)
        half_sum[:, 3] += 0.5 * volume * (energy + pressure)
    mu = 0.5 * EPS * (adt[first] + adt[second])
    flux = half_sum + mu[:, None] * (q[first] - q[second])
    result = np.zeros_like(q)
    np.add.at(result, first, flux)
    np.subtract.at(result, second, flux)
    return result


def test_fluxes_in_fortran_are_those_in_c(library, prepared, tmp_path):
    plan, path = prepared.plan, tmp_path / "airfoil.plan.h5"
    plan.save(path)
    assert start(library, "c", path) == ""
    assert start(library, "fortran", path) == ""
    random = np.random.default_rng(1)
    cells = plan.sizes["cells"]
    x = np.ascontiguousarray(coordinates(prepared))
    q = random.random((cells, 4)) + np.array([1.0, 0.0, 0.0, 3.0])
    arrays = x, q, random.random(cells)
    expected = residuals(library.fluxes_in_c, arrays)
    np.testing.assert_allclose(expected, numpy_fluxes(plan, *arrays), rtol=0, atol=1e-13)
    # Twice each: after a loop the turns stand at their beginning.
    for threads in (1, 2, 5, 2, 1):
        library.omp_set_num_threads(threads)
        for _ in range(2):
            found = residuals(library.fluxes_in_fortran, arrays)
            assert found.tobytes() == expected.tobytes()


def test_a_plan_without_the_loop_is_refused(library, tmp_path):
    (tmp_path / "other.toml").write_text(
        '[loop.other]\nover = "edges"\nargs = [\n'
        '  { dat = "x", map = "edges->nodes", access = "read" },\n'
        '  { dat = "r", map = "edges->cells", access = "inc" },\n]\n'
    )
    loops = read_requests(tmp_path / "other.toml")
    path = tmp_path / "other.plan.h5"
    prepare(generate("airfoil", cells=300), loops, Options()).plan.save(path)
    reason = start(library, "fortran", path)
    assert "res_calc" in reason
    assert "\n" not in reason
