"""The CUDA text of loops that add to matrices, run on the CPU under checks for races."""

from dataclasses import replace

import effort
import numpy as np
import pytest
import scipy.sparse

from meshprep.io.generate import generate
from meshprep.loops.requests import LoopRequest
from meshprep.pipeline.steps import Options, prepare
from meshprep_cuda_check.checked import CheckError, run_checked
from meshprep_cuda_check.emulated import EmulatedDevice
from meshprep_runtime import MeshprepError, ParLoop
from meshprep_runtime.cuda import DeviceFunction, program
from meshprep_runtime.cuda.device import use
from meshprep_runtime.matrix import Assembly, Product

ARGS = [
    {"dat": "x", "map": "cells->nodes", "dtype": "i4"},
    {"dat": "w"},
    {"dat": "b", "map": "cells->nodes", "dtype": "f8", "access": "inc"},
    {"mat": "K", "rows": "cells->dofs1", "columns": "cells->dofs1", "access": "inc"},
]
BODY = DeviceFunction(
    "body",
    """\
__device__ void body(const int* a, const int* b, const int* c, const double* w, double* f,
                     double* g, double* h, double* K) {
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) K[3 * i + j] += (a[0] + i) * (b[0] - j) + c[0] * w[0];
  f[0] += a[0];
  g[0] += b[0];
  h[0] += c[0];
}
""",
)
CASES = [
    ("hierarchical", "colours"),
    ("hierarchical", "atomics"),
    ("hierarchical-inc", "colours"),
    ("shared-atomics", "colours"),
    ("block-permute", "colours"),
    ("global-atomics", "colours"),
    ("global-colouring", "colours"),
    ("full-permute", "colours"),
    ("hierarchical-collapsed", "colours"),
    ("hierarchical-collapsed", "atomics"),
    ("hierarchical-unstaged", "colours"),
]
LONG = [
    pytest.param(*case, marks=pytest.mark.long) for case in CASES if case not in CASES[::5]
]


@pytest.fixture(scope="module")
def plan():
    args = [*ARGS[:3], ARGS[3] | {"fixed": "boundary"}]
    request = LoopRequest("assemble", {"over": "cells", "args": args}, "test")
    mesh = generate("delaunay2d", cells=150, seed=3)
    return prepare(mesh, [request], Options(block_size=32)).plan["assemble"]


def arrays(plan):
    """Whole numbers, and room for the sums."""
    rng, sizes = np.random.default_rng(1), plan.sizes
    return {
        "x": rng.integers(-9, 9, sizes["nodes"]).astype("i4"),
        "w": rng.integers(-9, 9, sizes["cells"]).astype("f8"),
        "b": np.zeros(sizes["nodes"]),
        "K": np.zeros(plan.matrices["K"].columns.size),
    }


def summed(plan, given):
    """The matrix and the load by scipy and NumPy."""
    table, matrix = plan.maps["cells->nodes"].table, plan.matrices["K"]
    dofs = matrix.row_of[plan.maps["cells->dofs1"].table]
    i, j = np.divmod(np.arange(9), 3)
    a, b, c = given["x"][table].astype("f8").T[:, :, None]
    values = (a + i) * (b - j) + c * given["w"][:, None]
    r, s = dofs[:, i], dofs[:, j]
    kept = (r >= 0) & (s >= 0)
    entries = (values[kept], (r[kept], s[kept]))
    load = np.bincount(table.ravel(), given["x"][table].ravel(), given["b"].size)
    return scipy.sparse.coo_array(entries, matrix.shape).toarray(), load


def check(plan, found):
    """The arrays after one call, exactly."""
    dense, load = summed(plan, found)
    csr = replace(plan.matrices["K"].csr(), values=found["K"])
    assert np.array_equal(csr.to_scipy().toarray(), dense)
    assert np.array_equal(found["b"], load)


@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize(("strategy", "commit"), [*effort.first(CASES[::5]), *LONG])
def test_the_text_assembles_exactly_and_without_a_race(plan, strategy, commit):
    given = arrays(plan)
    run_checked(program(BODY, plan, strategy, commit=commit, threads=32), **given)
    check(plan, given)


@pytest.mark.parametrize(
    ("strategy", "commit", "words"),
    [
        ("staged-gather", "colours", "cannot wait"),
        ("two-step", "colours", "cannot wait"),
        ("hierarchical-unstaged", "atomics", "takes commit 'colours'"),
    ],
)
def test_what_no_text_can_assemble_is_refused(plan, strategy, commit, words):
    with pytest.raises(MeshprepError, match=f"'{strategy}' cannot run it: .*{words}"):
        program(BODY, plan, strategy, commit=commit)


@pytest.mark.usefixtures("needs_gxx")
def test_one_colour_for_all_threads_is_a_race(plan):
    """The check sees what colours prevent."""
    variant = plan.variant()
    one = replace(
        variant,
        thread_colour=np.zeros_like(variant.thread_colour),
        thread_colours=np.ones_like(variant.thread_colours),
    )
    bare = tuple(a for a in plan.loop.args if a.name != "b")
    wrong = replace(plan, loop=replace(plan.loop, args=bare), variants={variant.name: one})
    body = replace(
        BODY,
        text=BODY.text.replace(
            "double* f,\n                     double* g, double* h, ", ""
        ).replace("  f[0] += a[0];\n  g[0] += b[0];\n  h[0] += c[0];\n", ""),
    )
    given = {name: value for name, value in arrays(plan).items() if name != "b"}
    with pytest.raises(CheckError, match="K"):
        run_checked(program(body, wrong, "hierarchical"), **given)


@pytest.mark.gpu
@pytest.mark.parametrize(("strategy", "commit"), CASES)
def test_on_a_gpu(plan, gpu, strategy, commit):
    given = arrays(plan)
    there = {name: gpu.array(values) for name, values in given.items()}
    ParLoop(BODY, plan, strategy=strategy, commit=commit)(**there)
    check(plan, given | {name: there[name].get() for name in ("b", "K")})


@pytest.mark.usefixtures("needs_gxx")
def test_a_par_loop_assembles_on_a_device(plan):
    given = arrays(plan)
    device = EmulatedDevice()
    with use(device):
        there = {name: device.array(value) for name, value in given.items()}
        ParLoop(BODY, plan)(**there)
        check(plan, {name: value.get() for name, value in there.items()})


@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize("store", ["csr", "ellpack", "lazy-ellpack", "local"])
def test_an_assembly_on_a_device_is_that_of_the_host(plan, store, device):
    given = {name: value for name, value in arrays(plan).items() if name != "K"}
    made = Assembly(BODY, plan, store=store)(
        **{k: device.array(v) for k, v in given.items()}
    )
    assert made.on_gpu
    assert np.array_equal(made.to_scipy().toarray(), summed(plan, given)[0])
    x = np.random.default_rng(0).integers(-9, 9, made.shape[1]).astype(float)
    found = Product(made, plan) @ device.array(x)
    assert np.array_equal(found.get(), made.to_scipy() @ x)


@pytest.mark.long
@pytest.mark.usefixtures("needs_gxx")
def test_the_matrices_of_elements_are_stored_as_they_are(plan):
    given = arrays(plan) | {"K": np.full((plan.sizes["cells"], 9), 7.0)}
    local = replace(plan, matrices={})
    run_checked(program(BODY, local, "hierarchical"), **given)
    sums = arrays(plan)
    ParLoop(product, plan, strategy="sequential")(**sums)
    place = plan.matrices["K"].place["assemble"]
    found = np.zeros_like(sums["K"])
    np.add.at(found, place[place >= 0], given["K"][place >= 0])
    assert np.array_equal(found, sums["K"])


def product(a, b, c, w, f, g, h, K):
    """The same in Python."""
    for i in range(3):
        for j in range(3):
            K[3 * i + j] += (a[0] + i) * (b[0] - j) + c[0] * w[0]
    f[0] += a[0]
    g[0] += b[0]
    h[0] += c[0]


@pytest.mark.parametrize("arch", ["sm_90", pytest.param("sm_80", marks=pytest.mark.long)])
def test_a_kernel_in_python_becomes_machine_code(plan, compiled, arch):
    found = compiled(program(product, plan, "hierarchical"), arch)
    assert found.registers > 0
    assert found.spilled == 0


TURNS = DeviceFunction(
    "turns",
    """\
__device__ void turns(double* a, double* b, double* c, double* K) {
  a[0] = a[0] + 1;
  b[0] = b[0] + 1;
  c[0] = c[0] + 1;
  for (int k = 0; k < 9; ++k) K[k] += k + 1;
}
""",
)


@pytest.mark.long
@pytest.mark.usefixtures("needs_gxx")
def test_a_matrix_beside_points_that_elements_set_in_turn():
    args = [
        {"dat": "visits", "map": "cells->nodes", "access": "rw"},
        {"mat": "K", "rows": "cells->nodes", "columns": "cells->nodes", "access": "inc"},
    ]
    request = LoopRequest("visit", {"over": "cells", "args": args}, "test")
    plan = prepare(
        generate("delaunay2d", cells=150, seed=3), [request], Options(block_size=32)
    )
    plan = plan.plan["visit"]
    visits, values = (
        np.zeros(plan.sizes["nodes"]),
        np.zeros(plan.matrices["K"].columns.size),
    )
    run_checked(program(TURNS, plan, "hierarchical"), visits=visits, K=values)
    assert np.array_equal(visits, np.bincount(plan.maps["cells->nodes"].table.ravel()))
    place = plan.matrices["K"].place["visit"]
    added = np.broadcast_to(np.arange(1.0, 10), place.shape)
    assert np.array_equal(values, np.bincount(place.ravel(), added.ravel()))
