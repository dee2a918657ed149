"""Tiles as thread blocks: results, races, and what the compiler says, without a GPU."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from test_schedules import chain_of
from test_tile_options import Flow

from meshprep_runtime import Access, Arg, Loop, MeshprepError
from meshprep_runtime.cuda import DeviceFunction
from meshprep_runtime.cuda.check.checked import CheckError, launch_checked
from meshprep_runtime.cuda.nvrtc import compile_program
from meshprep_runtime.program.chains.gpu_program import buffers, sectors, tiled_program
from meshprep_runtime.program.chains.gpu_text import check_loops
from meshprep_runtime.program.chains.inspect import with_maps

TEXT = """\
__device__ void gather(const long long* q1, const long long* q2, long long* res1, long long* res2) {
  res1[0] += q2[0];
  res2[0] += q1[0];
}

__device__ void take(long long* res, long long* q, long long* old, const long long* limit,
                     long long* most) {
  old[0] = q[0];
  most[0] = max(most[0], q[0]);
  q[0] = (q[0] + res[0]) % 101;
  res[0] = 0;
}
"""
FUNCTIONS = {name: DeviceFunction(name, TEXT) for name in ("gather", "take")}


@pytest.fixture
def flow(slow):
    return Flow(slow)


def tiled(flow, **options):
    """The tiles of two steps, with maps."""
    plan = flow.program.plan
    return with_maps(chain_of(flow, **options).tiles, plan.maps, plan.sizes)


def run(program, tiles, dats):
    """One launch, checked; the buffers after it."""
    found = buffers(program, tiles, dats)
    names = [p.name for p in program.parameters if p.access != "size"]
    arrays = [{**program.arrays, **found}[name] for name in names]
    numbers = {**program.sizes, "first": 0}
    sizes = [numbers[p.name] for p in program.parameters if p.access == "size"]
    places = [(a.ctypes.data, a.size) for a in arrays]
    launch_checked(program, tiles.n_tiles, places, sizes)
    return found


def values(flow):
    n = flow.program.plan.sizes["cells"]
    limits = {f"limit@{k}": np.array([1000]) for k in (1, 3)}
    start = {"q": np.arange(n) % 17, "res": np.zeros(n, np.int64), "old": np.zeros(n, np.int64)}
    return start | limits


@pytest.mark.parametrize(
    ("shared", "kept"),
    [
        pytest.param(300, ("old", "res"), marks=pytest.mark.slow),
        *(
            pytest.param(shared, kept, marks=pytest.mark.long)
            for shared in (48 * 1024, 300, 0)
            for kept in (("old", "res"), ("", ""))
        ),
    ],
)
def test_thread_blocks_give_what_loops_give(flow, slow, shared, kept):
    eager = Flow(slow)
    eager.step()
    eager.step()
    tiles = tiled(flow, kept=kept)
    maps = flow.program.plan.maps
    program = tiled_program(tiles, FUNCTIONS, maps, threads=32, shared_bytes=shared)
    assert program.shared_bytes <= shared
    assert (program.sizes == {}) == (shared > 10000)
    found = run(program, tiles, values(flow))
    order = ["q", "res", "old"]
    for i, name in enumerate(order):
        if name not in kept:
            expected = getattr(eager, name).values().ravel()
            assert found[f"n{i}"].tolist() == expected.tolist()
    most = max(found["partial1_4"].max(), found["partial3_4"].max())
    assert most == eager.most.value[0]


WIDE = """\
__device__ void gather(const int* x1, const int* x0, long long* res0, long long* res1,
                       const long long* q0, const long long* q1, const long long* scale) {
  for (int k = 0; k < 2; ++k) {
    res0[k] += x1[k] * scale[1 - k] + q1[1 - k];
    res1[k] += x0[2 - k] + q0[k];
  }
}

__device__ void take(long long* res, long long* q, long long* total, int* least) {
  for (int k = 0; k < 2; ++k) {
    q[k] = (q[k] + res[k]) % 101;
    res[k] = k;
    total[k] += q[k] * (k + 1);
  }
  least[0] = min(least[0], (int)(q[0] - q[1]));
}
"""


def wide_steps(values, nodes, cells):
    """Two steps by NumPy; and what each of them reduces."""
    x, q, res, scale = (values[name].copy() for name in ("x", "q", "res", "scale@0"))
    totals, leasts = [], []
    for _ in range(2):
        to_first = x[nodes[:, 1], :2] * scale[::-1] + q[cells[:, 1], ::-1]
        to_second = x[nodes[:, 0], :0:-1] + q[cells[:, 0]]
        np.add.at(res, cells[:, 0], to_first)
        np.add.at(res, cells[:, 1], to_second)
        q, res = (q + res) % 101, np.tile([0, 1], (len(q), 1))
        totals.append(q.sum(axis=0) * [1, 2])
        leasts.append((q[:, 0] - q[:, 1]).min())
    return {"q": q, "res": res}, totals, leasts


def slow_sectors(tiles):
    """Those of a dat that a tile moves, each once; and all of the maps and lists of the tiles."""
    home = {"x": ("nodes", 12), "q": ("cells", 16), "res": ("cells", 16)}
    moved = 0
    for t in range(tiles.n_tiles):
        for name, (home_set, nbytes) in home.items():
            of_set = tiles.sets[home_set]
            held = of_set.elements[of_set.offset[t] : of_set.offset[t + 1]].tolist()
            own = held[: of_set.own[t]] if name != "x" else []
            for rows in ([held[i] for i in tiles.copies[name].of_tile(t)], own):
                moved += len({(e * nbytes + b) // 32 for e in rows for b in range(nbytes)})
    entries = sum(2 * m.table.size for m in tiles.maps.values())
    return moved + (entries + sum(4 * s.elements.size for s in tiles.sets.values())) // 32


@pytest.mark.usefixtures("needs_gxx")
def test_rows_of_several_values(slow):
    """One dat in shared memory, one in scratch and one that is read where it lies; two sets."""
    grid = slow.quads(6, 5)
    loops = [
        Loop(
            "gather",
            "edges",
            (
                Arg("x", Access.READ, 3, "i4", "edges->nodes", (1, 0)),
                Arg("res", Access.INC, 2, "i8", "edges->cells", (0, 1)),
                Arg("q", Access.READ, 2, "i8", "edges->cells", (0, 1)),
                Arg("scale", Access.READ, 2, "i8", is_global=True),
            ),
        ),
        Loop(
            "take",
            "cells",
            (
                Arg("res", Access.RW, 2, "i8"),
                Arg("q", Access.RW, 2, "i8"),
                Arg("total", Access.INC, 2, "i8", is_global=True),
                Arg("least", Access.MIN, 1, "i4", is_global=True),
            ),
        ),
    ]
    plan = slow.plan(grid.sizes, grid.tables, loops, (4,))
    tiles = tiled(SimpleNamespace(program=SimpleNamespace(plan=plan)), kept=("", ""))
    largest = tiles.sets["cells"].largest
    functions = {name: DeviceFunction(name, WIDE) for name in ("gather", "take")}
    program = tiled_program(tiles, functions, plan.maps, threads=32, shared_bytes=16 * largest)
    assert (program.shared_bytes, program.sizes) == (16 * largest, {"size2": 2 * largest})
    assert sectors(tiles, plan.maps) == slow_sectors(tiles)
    rng = np.random.default_rng(2)
    given = {name: rng.integers(0, 90, (grid.sizes["cells"], 2)) for name in ("q", "res")}
    given["x"] = rng.integers(0, 90, (grid.sizes["nodes"], 3)).astype("i4")
    given |= dict.fromkeys(("scale@0", "scale@2"), np.array([3, 5]))
    found = run(program, tiles, given)
    after, totals, leasts = wide_steps(
        given, *(plan.maps[f"edges->{s}"].table for s in ("nodes", "cells"))
    )
    for number, name in enumerate(("x", "res", "q")):
        if name in after:
            np.testing.assert_array_equal(found[f"n{number}"], after[name].ravel(), err_msg=name)
    for step in range(2):
        partial = found[f"partial{2 * step + 1}_2"].reshape(tiles.n_tiles, 2, 32)
        np.testing.assert_array_equal(partial.sum(axis=(0, 2)), totals[step])
        assert found[f"partial{2 * step + 1}_3"].min() == leasts[step]


@pytest.mark.gpu
def test_on_a_gpu(flow, slow, gpu):
    eager = Flow(slow)
    eager.step()
    eager.step()
    tiles = tiled(flow, kept=("", ""))
    for shared in (48 * 1024, 300, 0):
        program = tiled_program(
            tiles, FUNCTIONS, flow.program.plan.maps, threads=32, shared_bytes=shared
        )
        found = buffers(program, tiles, values(flow))
        there = {k: gpu.upload(v) for k, v in (dict(program.arrays) | found).items()}
        numbers = {k: m.pointer for k, m in there.items()} | dict(program.sizes) | {"first": 0}
        given = [numbers[p.name] for p in program.parameters]
        gpu.run([gpu.load(program).prepare(tiles.n_tiles, given)])
        for i, name in enumerate(["q", "res", "old"]):
            after = np.empty_like(found[f"n{i}"])
            gpu.read(there[f"n{i}"], after)
            assert after.tolist() == getattr(eager, name).values().ravel().tolist()


@pytest.mark.slow
def test_a_missing_barrier_is_a_race(flow):
    tiles = tiled(flow)
    program = tiled_program(tiles, FUNCTIONS, flow.program.plan.maps, threads=32)
    # that between the first loop and the second
    before, loop = program.text.split("// 1: take")
    *rest, last = before.split("MP_BARRIER();")
    text = "MP_BARRIER();".join(rest) + last + "// 1: take" + loop
    with pytest.raises(CheckError, match="race inside a block"):
        run(replace(program, text=text), tiles, values(flow))


def test_what_tiles_move(flow):
    tiles = tiled(flow)
    maps = flow.program.plan.maps
    tables = sum(m.table.nbytes for m in tiles.maps.values())
    lists = sum(4 * s.offset[-1] for s in tiles.sets.values())
    moved = sectors(tiles, maps) - (tables + lists) // 32
    cells = tiles.sets["cells"]
    # q is read and stored, 4 values a sector; at best and at worst
    read = int(tiles.copies["q"].count.sum())
    assert (read + 30) / 4 <= moved <= read + int(cells.own.sum())


def test_loops_that_are_refused(flow):
    turned = Loop("mark", "edges", (Arg("q", Access.RW, 1, "i8", "edges->cells", (0,)),))
    with pytest.raises(MeshprepError, match="'q' is written through a map without being added"):
        check_loops([turned])
    with pytest.raises(MeshprepError, match="loop 'take' of the chain has no function in CUDA C"):
        tiled_program(tiled(flow), {"gather": FUNCTIONS["gather"]}, flow.program.plan.maps)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_the_compiler_takes_it(flow, arch):
    pytest.importorskip("cuda.bindings.nvrtc")
    program = tiled_program(tiled(flow), FUNCTIONS, flow.program.plan.maps)
    made = compile_program(program, arch)
    assert 8 <= made.registers <= 128
    assert made.spilled == 0
