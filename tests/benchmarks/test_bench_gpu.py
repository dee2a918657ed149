"""The whole benchmark of the GPU at tiny sizes, on a device that runs kernels under g++."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from meshprep_cuda_check.emulated import EmulatedDevice
from meshprep_runtime import MeshprepError
from meshprep_runtime.cuda import device, gpu
from meshprep_runtime.cuda.device import use

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RUNTIME = Path(__file__).parents[1] / "runtime"
SCALE = 0.0003
STAGED = ("hierarchical", "atomics")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bench")


@pytest.fixture
def bench(folder, monkeypatch, needs_gxx):
    """The script as a module, with its plans in a folder of the tests."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import bench_gpu
    import gpu_timing

    monkeypatch.setattr(bench_gpu, "BUILD", folder)
    monkeypatch.setattr(bench_gpu, "SAMPLES", 2)
    monkeypatch.setattr(gpu_timing, "SAMPLE_SECONDS", 0)
    return bench_gpu


@pytest.mark.long
def test_every_kernel_and_peer(bench, capsys):
    bench.main(["--emulate", "--scale", str(SCALE)])
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["loop", "elements"]
    assert [row.split()[0] for row in rows] == [
        *["res_calc"] * 3,
        *(
            "space_discretization",
            "getacc_scatter",
            "integrate_stress",
            "compute_face_flux",
        ),
    ]
    # Errors are rounding, and no time of g++ is shown as one.
    assert all(float(row.split()[-1]) < 1e-6 for row in rows)
    assert all(
        " -          -            -              -          -" in row for row in rows
    )


@pytest.mark.slow
def test_as_on_a_gpu(bench, monkeypatch, tmp_path, capsys):
    """What `make bench-gpu` does, on a stand-in of CuPy: code, times, the table and its file."""
    monkeypatch.syspath_prepend(str(RUNTIME))
    import common
    from fake_cupy import FakeCupy

    cupy = FakeCupy()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(device, "_known", {})
    monkeypatch.setattr(gpu, "compiled", cupy.compiled)
    monkeypatch.setattr(bench, "compiled", cupy.compiled)
    monkeypatch.setattr(bench, "ways", bench.few_ways)
    monkeypatch.setattr(bench, "COPY_BYTES", 2**16)
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    bench.main(["--scale", str(SCALE), "--loop", "res_calc"])
    told = capsys.readouterr()
    assert told.err.splitlines()[-1] == "res_calc: ready for sm_90"
    assert "res_calc: " in told.out.splitlines()[-1]
    found = json.loads((tmp_path / "gpu-fake-gpu.json").read_text())
    assert found["gpu"]["device"] == "Fake GPU"
    assert found["gpu"]["driver"] == 13000
    assert [row["order"] for row in found["rows"]] == ["ours", "metis", "input"]
    assert [row["threads"] for row in found["rows"]] == [448, 64, 256]
    # The stand-in takes a millisecond for whatever is queued: a launch a block colour.
    colours = (
        bench.plan_file(bench.CASES[0], "ours", SCALE)["res_calc"].variant().n_block_colours
    )
    assert found["rows"][0]["ms"] == colours
    assert all(row["registers"] == 32 and row["error"] < 1e-12 for row in found["rows"])


@pytest.mark.slow
def test_airfoil_as_on_a_gpu(bench, monkeypatch, tmp_path, capsys):
    """The residuals of the CPU, whether launched one by one or as graphs."""
    import bench_gpu_airfoil
    import common
    import gpu_timing

    monkeypatch.setattr(common, "RESULTS", tmp_path)
    # What stands for a GPU records nothing.
    monkeypatch.setattr(bench_gpu_airfoil, "COMMITS", ())
    monkeypatch.setattr(gpu_timing, "about_gpu", lambda found: {"device": found.name})
    with use(EmulatedDevice()):
        bench_gpu_airfoil.main(600, 3)
    # What the CPU's loops give.
    last = "5.24474e-03"
    assert capsys.readouterr().out.splitlines()[:2] == [
        f"launches: 3 {last}",
        f"graphs: 3 {last}",
    ]
    rows = json.loads((tmp_path / "gpu-airfoil-emulated.json").read_text())["rows"]
    assert [(r["loop"], r["strategy"]) for r in rows[:3]] == [
        ("save_soln", "global-atomics"),
        ("adt_calc", "global-atomics"),
        ("res_calc", "hierarchical"),
    ]
    assert len(rows) == 14


@pytest.mark.slow
def test_what_is_settled_first(bench, capsys, monkeypatch):
    """Atomics against blocks in four orders, with the same sums; times of g++ are not shown."""
    import bench_gpu_first as first
    import gpu_timing

    monkeypatch.setattr(first, "SAMPLES", 1)
    monkeypatch.setattr(first, "ways", lambda plan: [("global-atomics", "colours"), STAGED])
    first.main(["--emulate", "--cells", "150"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[1][:2] == ["near", "2400"]
    assert rows[2][:3] == ["by", "chance", "2400"]
    assert [row[:2] for row in rows[4:]] == [
        [order, strategy]
        for order in ("blocks", "gps", "input", "shuffled")
        for strategy in ("global-atomics", STAGED[0])
    ]
    assert all(row[-1] == "-" for row in [*rows[1:3], *rows[4:]])
    with pytest.raises(MeshprepError, match=r"'res' is off by 1\.0e-03"):
        gpu_timing.check_off(np.array([1.001]), np.array([1.0]), 1e-11, "'res'")


@pytest.mark.slow
def test_what_a_card_has_not_settled(bench, folder, capsys, monkeypatch):
    """Loops and sums, each compared with the CPU; a wrong sum is found."""
    import bench_gpu_loops as loops

    monkeypatch.setattr(loops, "SAMPLES", 1)
    monkeypatch.setattr(loops, "BUILD", folder)
    loops.main(["--emulate", "--size", "200", "--only", "smooth"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[3:5] for row in rows[1:4]] == [
        ["global-atomics", "-"],
        ["hierarchical", "colours"],
        ["hierarchical", "atomics"],
    ]
    heads = [i for i, row in enumerate(rows) if row[0] in ("loop", "sums")]
    assert [rows[i][0] for i in heads] == ["loop", "sums"]
    plan = loops.plan_of("tetrahedra", 200)["loop"]
    n = plan.sizes["nodes"]
    with (
        use(EmulatedDevice()) as there,
        pytest.raises(MeshprepError, match="way: 's' is off by"),
    ):
        loops.check_arrays(plan, {"s": there.array(np.zeros(n))}, {"s": np.ones(n)}, "way")


STRESS_TEXTS = [
    *("components", "faces", "points"),
    *("hierarchical", "staged-gather", "block-permute"),
]


@pytest.mark.slow
def test_texts_of_integrate_stress(bench, monkeypatch):
    """All give the sums of a loop on a CPU; g++ finds no race in the texts by hand."""
    import bench_gpu_stress as stress

    monkeypatch.setattr(stress, "SAMPLES", 1)
    monkeypatch.setattr(stress, "SIZES", (64,))
    with use(EmulatedDevice()) as there:
        on_grid = stress.Stress(there, 5, 0.0, "")
        rows = list(on_grid.kernel_rows())
        plan = on_grid.plan(64)
        made = stress.components(plan[stress.CASE.loop], 32)
        on_grid.wanted["force"][3, 1] += 1e-6
        with pytest.raises(MeshprepError, match=r"components: 'force' is off by "):
            on_grid.row(plan, made, "components")
    for threads in (64, 32):
        texts = [row["text"] for row in rows if row["threads"] == threads]
        assert [text for text in texts if "registers" not in text] == STRESS_TEXTS
    assert {row["block size"] for row in rows} == {64}


@pytest.mark.slow
def test_a_text_without_its_barriers_is_a_race(bench, monkeypatch):
    """What stands for a GPU sees it: so the texts by hand are proved, not only their sums."""
    import bench_gpu_stress as stress

    with use(EmulatedDevice()) as there:
        on_grid = stress.Stress(there, 5, 0.0, "")
        plan = on_grid.plan(64)
        for text_of in stress.BY_HAND.values():
            made = text_of(plan[stress.CASE.loop], 64)
            racing = replace(made, text=made.text.replace("MP_BARRIER();", ""))
            with pytest.raises(MeshprepError, match=r"race|uninitialised|before it was"):
                on_grid.row(plan, racing, "racing")


@pytest.mark.slow
def test_shapes_beside_blocks(bench, monkeypatch):
    """Bricks by hand, ours and METIS's, with the reuse of their plans."""
    import bench_gpu_stress as stress

    monkeypatch.setattr(stress, "SAMPLES", 1)
    monkeypatch.setattr(stress, "SIZES", (64,))
    monkeypatch.setattr(stress, "SHAPES", {"bricks": (4, 4, 4), "lines": (8, 1, 1)})
    monkeypatch.setattr(stress, "STAGED", ("hierarchical",))
    with use(EmulatedDevice()) as there:
        rows = list(stress.Stress(there, 8, 0.0, "").shape_rows())
    reuse = {row["blocks"]: row["reuse"] for row in rows}
    assert list(reuse) == ["bricks", "lines", "blocks", "contiguous", "metis"]
    # By hand: 64 cells of 8 nodes over 5 x 5 x 5 nodes; 8 over 9 x 2 x 2.
    assert reuse["bricks"] == pytest.approx(512 / 125)
    assert reuse["lines"] == pytest.approx(64 / 36)


@pytest.mark.parametrize(
    "degrees",
    [
        pytest.param((1, 2), marks=pytest.mark.slow),
        pytest.param((3, 4), marks=pytest.mark.long),
    ],
)
def test_forms_of_integration(bench, capsys, monkeypatch, degrees):
    """All forms and layouts give NumPy's matrices, of which one is known by hand."""
    import bench_gpu_forms as forms

    monkeypatch.setattr(forms, "DEGREES", degrees)
    monkeypatch.setattr(forms, "SAMPLES", 1)
    monkeypatch.setattr(forms, "taken", lambda made, arch: {"registers": None})
    forms.main("--emulate", "40")
    rows = capsys.readouterr().out.splitlines()[1:]
    assert len(rows) == len(degrees) * 3 * 2
    unit = np.array([[[0.0, 0], [1, 0], [1, 1], [0, 1]]])
    # Bilinear functions on the unit square, in an order that both directions share.
    diagonal = np.diag(forms.matrices(unit, 1).reshape(4, 4))
    np.testing.assert_allclose(diagonal, 2 / 3)
    for degree in degrees:
        n = (degree + 1) ** 2
        rowsums = forms.matrices(unit, degree).reshape(n, n).sum(axis=1)
        np.testing.assert_allclose(rowsums, 0, atol=1e-10)


@pytest.mark.slow
def test_ranks_that_share_a_gpu(bench, capsys):
    """One, two and four ranks have the residual of the loops on a CPU."""
    import bench_gpu_ranks as ranks

    ranks.main("--emulate", "600", "2")
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [row[0] for row in rows] == ["1", "2", "4"]
    assert {row[-1] for row in rows} == {"5.24474e-03"}
    # One rank sends nothing.
    assert [float(row[4]) > 0 for row in rows] == [False, True, True]


def test_products_by_every_store(bench, monkeypatch):
    """Each is compared with scipy's, and with the threads that a product finds."""
    import bench_gpu_stores as stores
    from bench_spmv import neighbours

    monkeypatch.setattr(stores, "SAMPLES", 1)
    with use(EmulatedDevice()) as there:
        row = stores.store_row(there, 2, 12)
        found = stores.search_row(there, "neighbours", neighbours(9))
    us = [key for key in row if key.endswith(" us")]
    assert us == ["CSR us", "ELLPACK us", "lazy us", "elements us", "half us"]
    assert row["dofs"] == 11 * 11
    assert min(row[name] for name in us) > 0
    assert 2 <= found["trials"] <= 7
    assert found["nonzeros"] == 4 * 81
    shown = stores.without_times(row | found)
    assert {key for key, value in shown.items() if value is not None} == {
        "degree",
        "dofs",
        "matrix",
        "nonzeros",
    }


@pytest.mark.slow
def test_batches_of_element_matrices(bench, capsys, monkeypatch):
    """Both ways give NumPy's contractions, whose tensor integrates polynomials exactly."""
    import bench_gpu_batches as batches

    monkeypatch.setattr(batches, "SAMPLES", 1)
    monkeypatch.setattr(batches, "taken", lambda made, arch: {"registers": None})
    batches.main("--emulate", "37")
    rows = capsys.readouterr().out.splitlines()[1:]
    assert len(rows) == 2 * (2 + 6)
    slopes = np.array([[-1, -1, -1], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    by_hand = np.einsum("ib,jc->ijbc", slopes, slopes).reshape(16, 9) / 6
    np.testing.assert_allclose(batches.reference(1), by_hand, atol=1e-15)
    x, y, _ = batches.local_points(batches.SHAPES["tetra"], 2).T / 2
    energy = (batches.reference(2) @ np.eye(3).ravel()).reshape(10, 10)
    for u, square_of_gradient in ((x * x, 1 / 15), (x * y, 1 / 30), (1 + 0 * x, 0)):
        assert u @ energy @ u == pytest.approx(square_of_gradient, abs=1e-15)


def test_time_that_is_up(bench, capsys):
    """What is left out is named."""
    with use(EmulatedDevice()) as there:
        assert list(bench.run(there, SCALE, 0.0, "res_calc", True)) == []
    # Plans that are not there yet are made first, and told.
    told = capsys.readouterr().err.splitlines()
    assert told[-1] == "left out, for 0 minutes were up: res_calc: 3 of 3"


def test_a_wrong_sum_is_found(bench):
    case = next(c for c in bench.CASES if c.loop == "res_calc")
    with use(EmulatedDevice()) as there:
        made = bench.Bench(case, there, SCALE, 1.0)
        way = next(bench.few_ways(case, made.plans))
        assert made.row(way)["error"] < 1e-12
        made.expected["res"][7, 2] += 1e-9 * made.expected["res scale"]
        with pytest.raises(MeshprepError, match=r"res_calc, .*'res' is off by 1\.0e-09"):
            made.row(way)


def test_what_is_run_and_in_which_order(bench):
    case = next(c for c in bench.CASES if c.loop == "res_calc")
    plans = {o: bench.plan_file(case, o, SCALE)[case.loop] for o in bench.ORDERS}
    asked = list(dict.fromkeys(bench.ways(case, plans)))
    blocked = {w.strategy for w in asked if w.variant and w.order == "ours"}
    assert {w.strategy for w in asked} >= {"global-atomics", "global-colouring", *blocked}
    for strategy in blocked:
        mine = [w for w in asked if (w.strategy, w.order) == (strategy, "ours")]
        assert {(w.variant, w.layout) for w in mine} == {
            (v, layout) for v in plans["ours"].variants for layout in ("aos", "soa")
        }
        commits = (
            {"colours", "atomics"} if strategy != "hierarchical-unstaged" else {"colours"}
        )
        assert {w.commit for w in mine} == commits
    # What the verdicts need stands first.
    first = asked[:9]
    assert {w.order for w in first} == set(bench.ORDERS)
    assert [w.kernel for w in asked].count("cuda") == 1


def test_verdicts(bench):
    def row(order, strategy, ms, size, share):
        return {
            "loop": "res_calc",
            "order": order,
            "strategy": strategy,
            "ms": ms,
            "block size": size,
            "threads": size and size // 2,
            "share of copy": share,
            "layout": "aos",
        }

    rows = [
        row("ours", "hierarchical", 2.0, 448, 0.62),
        row("ours", "hierarchical", 2.5, 128, 0.5),
        row("metis", "hierarchical", 3.0, 448, 0.4),
        row("ours", "global-atomics", 5.0, None, 0.2),
        row("input", "global-atomics", 8.0, None, 0.1),
        row("ours", "global-colouring", 6.0, None, 0.2),
    ]
    (words,) = bench.verdicts(rows)
    assert words == (
        "res_calc: 0.62 of copy bandwidth (aim 0.60) by hierarchical, blocks of 448 by 224 "
        "threads, aos; 1.50 times METIS blocks; 4.00 times the input order; 3.00 times global "
        "colouring; 2.50 times atomics"
    )


def test_useful_bytes(bench):
    """x 2, q 4, adt 1 doubles a point read; res 4 doubles read and written; two maps of two."""
    case = next(c for c in bench.CASES if c.loop == "res_calc")
    plan = bench.plan_file(case, "ours", SCALE)[case.loop]
    nodes, cells, edges = (plan.sizes[name] for name in ("nodes", "cells", "edges"))
    assert bench.useful_bytes(plan) == 8 * (2 * nodes + (4 + 1 + 2 * 4) * cells)
    assert bench.map_share(plan) * bench.useful_bytes(plan) == pytest.approx(16 * edges)


def test_whole_kernels_are_the_kernels(bench):
    """Arrays in place of rows give the same as one element after the other."""
    rng = np.random.default_rng(0)
    for case in bench.CASES:
        plan = bench.plan_file(case, "ours", SCALE)[case.loop]
        dims = [(a.dim, a.access) for a in plan.loop.args for _ in a.index or (0,)]
        rows = [
            rng.random((d, 20)) + 0.5 if m == "read" else np.zeros((d, 20)) for d, m in dims
        ]
        if case.program == "bookleaf":
            rows[1][1, ::3] = 0.0
        if case.program == "miniaero":
            rows[2], rows[3] = 0.01 * rows[2], 0.01 * rows[3]
        single = [row.copy() for row in rows]
        from gpu_cases import whole

        whole(case.kernel)(*rows)
        for e in range(20):
            one = [np.ascontiguousarray(row[:, e]) for row in single]
            case.kernel(*one)
            for row, values in zip(rows, one, strict=True):
                np.testing.assert_allclose(row[:, e], values, rtol=1e-13, atol=1e-13)


def test_without_a_gpu(bench, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(SystemExit, match="error: this needs a GPU: running loo"):
        bench.main([])
