"""Other block sizes on a plan's order, and tuning a whole plan."""

from dataclasses import replace

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.io.generate import generate
from meshprep.pipeline import tune as tuning
from meshprep.pipeline.steps import Options, prepare
from meshprep.pipeline.tune import loop_of, tune_plan
from meshprep.reporting.columns import FIGURES, columns_of
from meshprep.staging.recut import _joined_or_split, recut, with_loop, with_sizes
from meshprep.topology import derive
from meshprep_cli.commands.tune import _show_tuning
from meshprep_cuda_check.emulated import EmulatedDevice
from meshprep_runtime.cuda import DeviceFunction, program
from meshprep_runtime.cuda.build import Compiled
from meshprep_runtime.cuda.device import use
from meshprep_runtime.cuda.occupancy import occupancy
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.tuned import CPU, DeviceProgram
from meshprep_runtime.tuning.machines import on_gpu
from meshprep_runtime.tuning.tune import tune


@pytest.fixture(scope="module")
def prepared():
    mesh = generate("delaunay2d", cells=2500, seed=3)
    return prepare(mesh, ["edges->cells", "cells->nodes"], Options(block_size=64)).plan


@pytest.fixture
def plan(prepared):
    return prepared["edges->cells"]


def value_kernel(a, b):
    a[0] += 1.0
    b[0] += 2.0


@pytest.mark.parametrize("size", [16, 48, 64, 100, 130, 512, 10**6])
def test_a_variant_of_another_size_is_right(prepared, plan, size):
    widened, refused = with_sizes(plan, [size])
    assert refused == []
    new = with_loop(prepared, widened)
    assert new.verify() == []
    variant = new["edges->cells"].variants[f"s{size}"]
    assert np.diff(variant.block_offset).max() <= size
    assert set(new.metrics.loops["edges->cells"].variants) == set(widened.variants)
    figures = new.metrics.loops["edges->cells"].variants[variant.name]
    assert figures.after.reuse == pytest.approx(
        plan.maps["edges->cells"].table.size / variant.staging["cells"].points.size
    )


def test_the_figures_before_are_those_of_the_input(prepared, plan):
    """The size that the plan has, measured again from its maps turned back."""
    known = prepared.metrics.loops
    others = {name: loop for name, loop in known.items() if name != "edges->cells"}
    bare = replace(prepared, metrics=replace(prepared.metrics, loops=others))
    again = with_loop(bare, plan).metrics.loops["edges->cells"].variants["s64"]
    assert again.before == known["edges->cells"].variants["s64"].before


def test_unions_keep_the_reuse_and_lose_no_block_edge(plan):
    own = plan.variant().block_offset
    joined = recut(plan, 256).block_offset
    assert np.isin(joined, own).all()
    loads = [recut(plan, s).staging["cells"].points.size for s in (64, 256, 1024)]
    assert loads == sorted(loads, reverse=True)


@settings(max_examples=effort.examples(200), deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=40), st.integers(1, 70))
def test_joining_and_splitting_against_a_loop(sizes, block_size):
    offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    expected = [0]
    if max(sizes) <= block_size:
        room = block_size
        for size in sizes:
            if size > room:
                expected.append(expected[-1] + block_size - room)
                room = block_size
            room -= size
        expected.append(int(offset[-1]))
    else:
        for size in sizes:
            parts = -(-size // block_size)
            expected += [expected[-1] + k * size // parts for k in range(1, parts + 1)]
    assert _joined_or_split(offset, block_size).tolist() == expected


def test_sizes_it_has_are_left_and_bad_ones_refused(plan):
    widened, _ = with_sizes(plan, [64])
    assert widened.variants["s64"] is plan.variants["s64"]
    with pytest.raises(MeshprepError, match="block size 0: give at least 1"):
        recut(plan, 0)


def test_blocks_that_cannot_be_staged_are_named(prepared):
    mesh = generate("delaunay2d", cells=140_000, seed=3)
    plan = prepare(
        mesh, ["cells->nodes"], Options(partition="contiguous", method="none")
    ).plan
    widened, refused = with_sizes(plan["cells->nodes"], [256, 10**6])
    assert list(widened.variants) == ["s256"]
    assert len(refused) == 1
    assert refused[0].startswith("block size 1000000: block 0 touches")


def test_tuning_a_plan_keeps_the_best_blocks_only(prepared):
    done = tune_plan(
        prepared,
        "edges->cells",
        value_kernel,
        block_sizes=[256, 512],
        strategies=["hierarchical"],
        layouts=["aos"],
        runs=1,
    )
    own = done.plan["edges->cells"]
    best = done.tuned.best.variant
    assert own.tuned == (done.tuned,)
    assert list(own.variants) == ["s64"] + [v for v in ("s256", "s512") if v == best]
    assert {t.variant for t in done.tuned.trials} == {"s64", "s256", "s512"}
    assert done.tuned.machine.kind == CPU
    assert done.plan.verify() == []
    assert own.default == "s64"


def test_the_loop_is_timed_in_the_input_order_too(monkeypatch):
    mesh = generate("delaunay2d", cells=300, seed=3, shuffle=True)
    args = [
        {"dat": "q", "map": "edges->cells", "index": [0, 1], "dim": 2, "access": "read"},
        {"dat": "sum", "map": "edges->cells", "index": [0, 1], "access": "inc"},
        {"dat": "w", "access": "read"},
        {"global": "rate", "access": "read"},
    ]
    plan = prepare(mesh, {"flux": {"over": "edges", "args": args}}).plan
    full = derive(mesh, ["edges->cells"])
    file = {
        "q": np.arange(600.0).reshape(300, 2),
        "sum": np.zeros(300),
        "w": np.arange(float(full.size("edges"))),
    }
    values = {
        n: plan.ordering["edges" if n == "w" else "cells"].apply(v) for n, v in file.items()
    }
    timed = []
    monkeypatch.setattr(
        tuning, "tune", lambda *a, **k: timed.append((a, k)) or tune(*a, **k)
    )

    def flux(a, b, c, d, w, rate):
        c[0] += rate[0] * w[0] * (b[0] - a[1])
        d[0] += b[0]

    done = tune_plan(
        plan,
        "flux",
        flux,
        values={**values, "rate": np.ones(1)},
        strategies=["hierarchical"],
        runs=2,
    )
    assert (done.before.strategy, done.before.runs) == ("sequential", 4)
    assert len(timed) == 2
    _, before, given = timed[1][0]
    assert (
        before.maps["edges->cells"].table.tolist()
        == full.map("edges->cells").table.tolist()
    )
    for name, wanted in file.items():
        np.testing.assert_array_equal(given[name], wanted)
    assert {t.strategy for t in done.tuned.trials} == {"hierarchical"}


def test_what_tuning_refuses(prepared):
    with pytest.raises(MeshprepError, match="device 'K80' is unknown: use cpu or gpu"):
        tune_plan(prepared, "edges->cells", device="K80")
    with pytest.raises(MeshprepError, match="needs its kernel: name one with --kernel"):
        tune_plan(prepared, "edges->cells")
    with pytest.raises(MeshprepError, match="no values for argument 'value'"):
        tune_plan(prepared, "edges->cells", value_kernel, values={})


def test_which_loop_is_meant(prepared):
    assert loop_of(prepared, None, "cells->nodes") == "cells->nodes"
    with pytest.raises(MeshprepError, match="name one with --loop"):
        loop_of(prepared, value_kernel, None)
    with pytest.raises(MeshprepError, match="has no loop 'flux'"):
        loop_of(prepared, None, "flux")


ADD_IN_C = DeviceFunction(
    "add", "__device__ void add(double* a, double* b) { a[0] += 1.0; b[0] += 2.0; }"
)


@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize("registers", [None, 100])
def test_on_a_gpu_the_occupancy_is_told(prepared, monkeypatch, capsys, tmp_path, registers):
    """With the registers of the compiled kernel, or by what it stages without a compiler."""

    def compile_nothing(made, arch):
        if registers is None:
            raise MeshprepError("there is no NVRTC")
        return Compiled(b"", registers, 0)

    monkeypatch.setattr(tuning, "compiled", compile_nothing)
    device = EmulatedDevice()
    backend = on_gpu(
        device, device.array, lambda array, values: array.set(values), device.synchronize
    )
    with use(device):
        done = tune_plan(
            prepared,
            "edges->cells",
            ADD_IN_C,
            device=backend,
            block_sizes=[],
            strategies=["hierarchical"],
            layouts=["aos"],
            runs=1,
        )
    made = program(ADD_IN_C, prepared["edges->cells"], "hierarchical")
    threads = done.tuned.best.threads or made.threads
    expected = occupancy("sm_90", threads, made.shared_bytes, registers)
    assert done.occupancy == expected
    assert done.tuned.occupancy == round(expected.share, 4)
    assert done.tuned.program == DeviceProgram(
        arch="sm_90",
        threads=threads,
        shared_bytes=made.shared_bytes,
        registers=registers,
    )
    _show_tuning(done, tmp_path / "a.plan.h5", dry_run=True)
    out = capsys.readouterr().out
    counted = "staged bytes alone" if registers is None else "100 registers a thread"
    blocks = f"{expected.blocks} blocks on a multiprocessor, by {counted}"
    assert f"occupancy {expected.share:.2f}: {blocks}, limited by " in out
    # A report says it again, and what the staged bytes alone allow.
    column = columns_of({"": done.plan}, {})[0]
    assert f"occupancy {expected.share:.2f}" in column.verdict
    (row,) = [row for row in FIGURES if row.label.startswith("occupancy")]
    staged = int(column.after.staged_bytes.max)
    assert row.find(column.after) == occupancy("sm_90", 64, staged).share
