"""What is asked of CuPy, against a stand-in whose driver runs the kernels under g++."""

import importlib
import sys

import numpy as np
import pytest
from cuda_loops import BODY, LAYOUT, arrays, expected, laid_out
from fake_cupy import FakeCupy, Stream

from meshprep_runtime import MeshprepError, MissingPackageError, ParLoop
from meshprep_runtime.cuda import device, gpu, program

pytestmark = pytest.mark.usefixtures("needs_gxx")


@pytest.fixture
def cupy(monkeypatch):
    """The stand-in as ``cupy``; what is compiled is only noted."""
    made = FakeCupy()
    monkeypatch.setitem(sys.modules, "cupy", made)
    monkeypatch.setattr(gpu, "compiled", made.compiled)
    monkeypatch.setattr(device, "_known", {})
    return made


def run(cupy, plan, leave=(), **options):
    loop = ParLoop(BODY, plan, layout=LAYOUT, **options)
    given = arrays(plan)
    ours = {
        k: v if k in leave else cupy.device.array(v)
        for k, v in laid_out(given, LAYOUT).items()
    }
    theirs = given
    for _ in range(2):
        loop(**ours)
        theirs = expected(plan, theirs)
    cupy.stream.synchronize()
    for name, value in laid_out(theirs, LAYOUT).items():
        found = ours[name] if name in leave else ours[name].get()
        np.testing.assert_array_equal(found, value, err_msg=name)


@pytest.mark.parametrize("graph", [False, True])
def test_exactly_the_sums_of_numpy(graph, cupy, plan):
    run(cupy, plan, ("c", "total", "most"), strategy="hierarchical", graph=graph)
    assert cupy.graphs == graph
    colours = plan.variant().n_block_colours
    assert cupy.launches == (colours + 3) * (1 if graph else 2)
    assert cupy.attributes == []


def test_on_a_stream_of_the_solver(cupy, plan):
    with Stream(cupy, non_blocking=True) as stream:
        run(cupy, plan, ("c", "least"), strategy="hierarchical")
        assert stream.queue.added
    # Two launches and one read apart, the plan's arrays were copied inside, too.
    assert not cupy.streams[0].queue.added


def test_a_graph_of_the_solver(cupy, plan):
    """Loops that have run once on a stream may be recorded there, several in one graph."""
    given = arrays(plan)
    ours = {k: cupy.device.array(v) for k, v in laid_out(given, LAYOUT).items()} | {"c": 3}
    first = ParLoop(BODY, plan, layout=LAYOUT, strategy="hierarchical")
    second = ParLoop(BODY, plan, layout=LAYOUT, strategy="global-atomics", threads=32)
    with Stream(cupy, non_blocking=True) as stream:
        first(**ours)
        second(**ours)
        stream.begin_capture()
        first(**ours)
        second(**ours)
        graph = stream.end_capture()
        graph.launch()
        stream.synchronize()
    theirs = given | {"c": np.array([3], "i4")}
    for _ in range(4):
        theirs = expected(plan, theirs)
    for name, value in laid_out(theirs, LAYOUT).items():
        if name != "c":
            np.testing.assert_array_equal(ours[name].get(), value, err_msg=name)


def test_shared_memory_is_asked_for(cupy, plan, monkeypatch):
    need = program(BODY, plan, "hierarchical", layout=LAYOUT).shared_bytes
    monkeypatch.setattr(gpu, "USUAL_SHARED", need - 1)
    run(cupy, plan, strategy="hierarchical")
    # The loop's kernel, and those that join reductions of 256 threads.
    assert cupy.attributes == [need, *(n for n in (256 * 8, 256 * 4, 256 * 2) if n >= need)]


def test_marks_and_copies(cupy):
    there = device.current()
    start = there.mark()
    first, second = (there.upload(np.full(5, value)) for value in (1.5, 2.5))
    there.copy(second, first, 24)
    end = there.mark()
    # Two copies to the device, one inside it.
    assert there.seconds(start, end) == pytest.approx(0.003)
    into = np.zeros(5)
    there.read(second, into)
    assert into.tolist() == [1.5, 1.5, 1.5, 2.5, 2.5]
    there.write(second, np.arange(10.0)[::2])
    there.read(there.upload(np.arange(10.0)[::-2]), into)
    assert into.tolist() == [9, 7, 5, 3, 1]
    there.read(second, into)
    assert into.tolist() == [0, 2, 4, 6, 8]
    assert there.array(into).get().tolist() == into.tolist()


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        (
            "launchKernel",
            RuntimeError("CUDA_ERROR_LAUNCH\nmore"),
            "cannot be launched: CUDA_ERROR",
        ),
        ("funcSetAttribute", RuntimeError("no"), "loop 'sums' cannot be loaded: no"),
        ("alloc", MemoryError("out of it"), r"no room for \d+ bytes of a plan: out of it"),
        ("memcpyAsync", RuntimeError("no copy"), "a copy failed: no copy"),
    ],
)
def test_errors_of_cuda_are_one_line(name, error, message, cupy, plan, monkeypatch):
    def fail(*_):
        raise error

    monkeypatch.setattr(gpu, "USUAL_SHARED", 0)
    place = next(
        p for p in (cupy.cuda.driver, cupy.cuda.runtime, cupy.cuda) if hasattr(p, name)
    )
    setattr(place, name, fail)
    with pytest.raises(MeshprepError, match=rf"^GPU 0 \(Fake GPU\): .*{message}[^\n]*$"):
        run(cupy, plan, strategy="hierarchical")


def test_without_cupy(monkeypatch, plan):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(
        MissingPackageError, match=r"CuPy: pip install 'meshprep-runtime\[gpu\]'"
    ):
        ParLoop(BODY, plan, layout=LAYOUT).on_gpu  # noqa: B018


def test_without_a_gpu(cupy, plan):
    def fail():
        raise RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")

    cupy.cuda.runtime.getDevice = fail
    with pytest.raises(
        MeshprepError, match="no GPU to run on: cudaErrorNoDevice: no CUDA-capable"
    ):
        ParLoop(BODY, plan, layout=LAYOUT).on_gpu  # noqa: B018


def test_the_stand_in_has_the_names_of_cupy(cupy, monkeypatch):
    """Where CuPy is installed; importing it needs no GPU."""
    monkeypatch.delitem(sys.modules, "cupy")
    real = pytest.importorskip("cupy")
    importlib.import_module("cupy.cuda.function")
    for part in ("runtime", "driver", "function"):
        for name in vars(getattr(cupy.cuda, part)):
            assert hasattr(getattr(real.cuda, part), name), f"{part}.{name}"
    for name in vars(cupy.cuda):
        assert hasattr(real.cuda, name), name
    words = ("begin_capture", "end_capture", "record", "wait_event", "synchronize")
    assert all(hasattr(real.cuda.Stream, word) for word in words)
    assert hasattr(real.cuda.Graph, "launch")
    assert hasattr(real, "asarray")
    assert hasattr(real, "from_dlpack")
    assert real.cuda.runtime.cudaDevAttrMaxSharedMemoryPerBlockOptin == 97
    assert [real.cuda.runtime.memcpyHostToDevice, real.cuda.runtime.memcpyDeviceToHost] == [
        1,
        2,
    ]
