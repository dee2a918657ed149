"""On a real GPU: `make check-gpu`. Skipped where there is none.

MESHPREP_GPU=required fails instead; MESHPREP_GPU=emulated runs the same tests under g++, to try
the tests themselves.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from cuda_loops import BODY, LAYOUT, WAYS, arrays, expected, laid_out, random_plan

from airfoil import Airfoil, prepared_airfoil
from meshprep.io.generate import generate
from meshprep.loops.requests import LoopRequest
from meshprep.pipeline.steps import Options, prepare
from meshprep.staging.build_variant import baseline_variant
from meshprep_runtime import Access, Arg, Loop, LoopPlan, MeshprepError, ParLoop, SetMap
from meshprep_runtime.cuda import COMMITS, STRATEGIES, DeviceFunction

pytestmark = pytest.mark.gpu
EMULATED = os.environ.get("MESHPREP_GPU") == "emulated"
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def device(gpu):
    return gpu


@pytest.fixture(scope="module")
def plan(slow):
    """Blocks of up to 64 elements, several colours, points that a block only reads."""
    n = 300 if EMULATED else 4000
    return random_plan(slow, n, n // 2, 64, 7)


def check(loop, device, plan, layout=LAYOUT, leave=(), calls=2):
    given = arrays(plan)
    ours = {
        k: v if k in leave else device.array(v) for k, v in laid_out(given, layout).items()
    }
    theirs = given
    for _ in range(calls):
        loop(**ours)
        theirs = expected(plan, theirs)
    for name, value in laid_out(theirs, layout).items():
        found = ours[name] if name in leave else ours[name].get()
        np.testing.assert_array_equal(found, value, err_msg=name)


@pytest.mark.parametrize(("strategy", "commit"), WAYS)
def test_exactly_the_sums_of_numpy(strategy, commit, plan, device):
    """Whole numbers, every kind of argument, reductions; all on the device or globals not."""
    options = {"strategy": strategy, "commit": commit}
    check(ParLoop(BODY, plan, layout=LAYOUT, **options), device, plan)
    loop = ParLoop(BODY, plan, layout="aos", **options)
    check(loop, device, plan, {}, ("c", "total", "least", "most"))


@pytest.mark.parametrize("strategy", [s for s in STRATEGIES if STRATEGIES[s].blocks])
@pytest.mark.parametrize("threads", [24, 32])
def test_several_elements_a_thread(threads, strategy, plan, device):
    loop = ParLoop(BODY, plan, layout=LAYOUT, strategy=strategy, threads=threads)
    check(loop, device, plan)


@pytest.mark.parametrize("strategy", ["hierarchical", "global-colouring"])
def test_a_graph(strategy, plan, device):
    loop = ParLoop(BODY, plan, layout=LAYOUT, strategy=strategy, graph=True)
    check(loop, device, plan, leave=("c", "most"), calls=3)


@pytest.mark.parametrize("commit", COMMITS)
def test_several_calls_recorded_as_one_graph(commit, plan, device):
    """A solver records a whole step itself, on a stream that the loop has run on before."""
    cupy = pytest.importorskip("cupy")
    if EMULATED:
        pytest.skip("records nothing")
    loop = ParLoop(BODY, plan, layout=LAYOUT, strategy="hierarchical", commit=commit)
    given = arrays(plan)
    ours = {name: device.array(values) for name, values in laid_out(given, LAYOUT).items()}
    cupy.cuda.Stream.null.synchronize()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        loop(**ours)
        stream.begin_capture()
        loop(**ours)
        loop(**ours)
        graph = stream.end_capture()
        graph.launch(stream)
    stream.synchronize()
    for _ in range(3):
        given = expected(plan, given)
    for name, values in laid_out(given, LAYOUT).items():
        np.testing.assert_array_equal(ours[name].get(), values, err_msg=name)


def test_auto(plan, device):
    check(ParLoop(BODY, plan, layout=LAYOUT), device, plan)


def test_a_python_kernel(device):
    """By numba-cuda and nvJitLink; the same function runs on the CPU."""

    def flow(x1, x2, q1, q2, adt1, adt2, res1, res2):
        for k in range(4):
            f = (q1[k] - q2[k]) * (x1[0] - x2[1]) + 0.5 * (adt1[0] + adt2[0])
            res1[k] += f
            res2[k] -= f

    mesh = generate("box", nx=40, ny=30, type="quad")
    dats = (("x", "edges->nodes", 2), ("q", "edges->cells", 4), ("adt", "edges->cells", 1))
    args = tuple(Arg(n, Access.READ, d, "f8", m, (0, 1)) for n, m, d in dats)
    args += (Arg("res", Access.INC, 4, "f8", "edges->cells", (0, 1)),)
    request = LoopRequest("flow", Loop("flow", "edges", args).to_dict(), "here")
    made = prepare(mesh, [request], Options(block_size=128)).plan["flow"]
    rng = np.random.default_rng(0)
    host = {a.name: rng.random((made.sizes[made.maps[a.map].to_set], a.dim)) for a in args}
    there = {name: device.array(values) for name, values in host.items()}
    loop = ParLoop(flow, made, strategy="hierarchical")
    loop(**there)
    loop(**host)
    np.testing.assert_allclose(there["res"].get(), host["res"], rtol=1e-13, atol=1e-13)


def test_more_shared_memory_than_usual(device):
    """Each block stages 128 values of each of its points: more than 48 KB."""
    points = np.column_stack([np.arange(600), np.arange(600) + 1])
    text = "__device__ void add(const double* a, const double* b, double* s, double* t) "
    text += "{ for (int k = 0; k < 128; ++k) { s[k] += b[k]; t[k] += a[k]; } }"
    args = (
        Arg("v", Access.READ, 128, "f8", "lines->points", (0, 1)),
        Arg("w", Access.INC, 128, "f8", "lines->points", (0, 1)),
    )
    maps = {"lines->points": SetMap("lines->points", "lines", "points", points)}
    sizes = {"lines": 600, "points": 601}
    loop = Loop("add", "lines", args)
    blocks = baseline_variant(loop, maps, sizes, 32)
    plan = LoopPlan(loop, sizes, maps, {blocks.name: blocks}, blocks.name)
    v = np.random.default_rng(0).random((601, 128))
    w = device.array(np.zeros((601, 128)))
    run = ParLoop(DeviceFunction("add", text), plan, strategy="hierarchical")
    assert 33 * 256 * 8 > 48 * 1024
    run(v=device.array(v), w=w)
    theirs = np.zeros_like(v)
    theirs[:-1] += v[1:]
    theirs[1:] += v[:-1]
    np.testing.assert_array_equal(w.get(), theirs)


def test_airfoil_whole(device):
    """Ten iterations of the program, against the CPU."""
    cells = 1200 if EMULATED else 20_000
    prepared = prepared_airfoil(cells, 128, "gpu")
    ours, theirs = Airfoil(prepared, device=device), Airfoil(prepared, "sequential")
    for rms, wanted in zip(ours.steps(10), theirs.steps(10), strict=True):
        assert rms == pytest.approx(wanted, rel=1e-10)
    np.testing.assert_allclose(
        ours.dats["q"].get(), theirs.dats["q"], rtol=1e-11, atol=1e-12
    )


def test_the_five_kernels(device, monkeypatch, tmp_path):
    """Those of the benchmark at small sizes, every strategy, both layouts."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import bench_gpu

    monkeypatch.setattr(bench_gpu, "BUILD", tmp_path)
    for case in bench_gpu.CASES:
        made = bench_gpu.Bench(case, device, 0.0005 if EMULATED else 0.01, 1.0)
        own = (None, made.plans["ours"].default)
        found = dict.fromkeys(
            w for w in bench_gpu.ways(case, made.plans) if w.variant in own
        )
        found = [way for way in found if way.order == "ours"]
        if EMULATED:
            found = found[:3]
        else:
            bench_gpu.precompile(case, made.plans, found, device.arch)
        for way in found:
            assert made.row(way)["error"] < 1e-5, way


def test_arrays_of_cupy(plan, device):
    """Slices of the first axis, DLPack, streams; what lies askew is refused by name."""
    cupy = pytest.importorskip("cupy")
    loop = ParLoop(BODY, plan, layout=LAYOUT, strategy="hierarchical")
    given = arrays(plan)
    theirs = laid_out(expected(plan, given), LAYOUT)
    ours = {k: cupy.asarray(v) for k, v in laid_out(given, LAYOUT).items()}
    longer = cupy.asarray(np.concatenate([given["b"], given["b"]]))
    ours["b"] = longer[given["b"].shape[0] :]
    # Streams of this kind do not wait for the usual one, on which the copies are.
    cupy.cuda.Stream.null.synchronize()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        loop(**ours)
    stream.synchronize()
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name].get(), value, err_msg=name)
    np.testing.assert_array_equal(longer[: given["b"].shape[0]].get(), given["b"])
    with pytest.raises(MeshprepError, match="'w' lies in the memory of the host"):
        loop(**{**ours, "w": given["w"]})
    with pytest.raises(MeshprepError, match="'a' is not contiguous: pass cupy"):
        loop(**{**ours, "a": cupy.zeros((given["a"].shape[0], 3)).T})
    both = cupy.asarray(given["w"])
    with pytest.raises(MeshprepError, match="'b' and 'w' share memory and 'b' is written"):
        loop(**{**ours, "w": both, "b": both[: given["b"].shape[0]]})
