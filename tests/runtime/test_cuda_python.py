"""Kernels in Python inside the CUDA text: what they compute, what is refused, what is linked."""

import math
import re
import sys
from dataclasses import replace

import effort
import numpy as np
import pytest
from cuda_loops import LAYOUT, body, random_plan, run_and_check

from meshprep_cuda_check.checked import run_checked
from meshprep_cuda_check.emulated import EmulatedDevice
from meshprep_runtime import Access, Arg, Loop, MeshprepError, MissingPackageError, ParLoop
from meshprep_runtime.cuda import DeviceFunction, program
from meshprep_runtime.cuda import build as nvrtc
from meshprep_runtime.cuda.build import compile_program
from meshprep_runtime.cuda.device import use
from meshprep_runtime.cuda.source import element

OLDER = [pytest.param(arch, marks=pytest.mark.long) for arch in ("sm_75", "sm_80")]
FACTOR = 3.0
TABLE = np.array([2.0, 5.0])


def helper(x):
    return deeper(x) + TABLE[1]


def deeper(x):
    return FACTOR * np.sqrt(abs(x)) + math.exp(-x)


def calls_helper(v):
    v[0] = helper(v[0])


def changes_what_it_reads(w, v):
    w[0] = v[0]


def raises(v):
    careful(v)


def careful(v):
    if v[0] < 0:
        raise ValueError("negative")


def asserts(v):
    assert v[0] > 0


@pytest.fixture(scope="module")
def plan(slow):
    return slow.plan({"cells": 3}, {}, [Loop("l", "cells", (Arg("v", Access.RW),))], (2,))[
        "l"
    ]


@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize(
    ("strategy", "commit"),
    effort.first(
        [
            ("hierarchical", "colours"),
            ("staged-gather", "atomics"),
            ("global-atomics", "colours"),
        ]
    ),
)
def test_exactly_the_sums_of_numpy(strategy, commit, slow):
    plan = random_plan(slow, 90, 50, 16, 2)
    made = program(body, plan, strategy, commit=commit, layout=LAYOUT, threads=32)
    run_and_check(made, plan, seed=3)


@pytest.mark.parametrize("arch", ["sm_90", *OLDER])
def test_machine_code_without_a_driver(arch, slow, compiled):
    plan = random_plan(slow, 90, 50, 16, 2)
    found = compiled(program(body, plan, "hierarchical", layout=LAYOUT), arch)
    assert found.cubin.startswith(b"\x7fELF")
    assert found.registers > 0
    assert found.spilled == 0


@pytest.mark.usefixtures("needs_gxx")
def test_helpers_and_globals_as_they_are(plan, monkeypatch):
    assert result(plan) == pytest.approx(3 * 2 + math.exp(-4) + 5)
    monkeypatch.setitem(globals(), "FACTOR", 1.0)
    TABLE[1] = 7.0
    try:
        assert result(plan) == pytest.approx(2 + math.exp(-4) + 7)
    finally:
        TABLE[1] = 5.0


def result(plan):
    v = np.full(3, 4.0)
    run_checked(program(calls_helper, plan, "global-atomics"), v=v)
    assert v[0] == v[1] == v[2]
    return v[0]


def test_helpers_are_inlined(plan, compiled):
    made = program(calls_helper, plan, "global-atomics")
    assert compiled(made).spilled == 0
    assert "call" not in ptx(made)


@pytest.mark.slow
@pytest.mark.usefixtures("needs_gxx")
def test_constants_beside_f4_are_f4(slow, compiled):
    """Bit for bit what a ParLoop gives; in f8 and rounded, some values would differ."""
    args = (Arg("v", Access.RW, dtype="f4"), Arg("w", Access.READ, dtype="f4"))
    plan = slow.plan({"cells": 64}, {}, [Loop("l", "cells", args)], (32,))["l"]

    def kernel(v, w):
        v[0] = v[0] * 0.1 + w[0] * 0.7 + thirds(w[0])

    v = np.random.default_rng(1).random(64, dtype="f4")
    ours, theirs, wide = v.copy(), v.copy(), v.astype("f8")
    w = v[::-1].copy()
    made = program(kernel, plan, "global-atomics")
    run_checked(made, v=ours, w=w)
    ParLoop(kernel, plan, strategy="sequential")(v=theirs, w=w)
    np.testing.assert_array_equal(ours, theirs)
    kernel(wide[None], w.astype("f8")[None])
    assert (ours != wide.astype("f4")).any()
    compiled(made)
    assert ".f32" in ptx(made)
    assert ".f64" not in ptx(made)


def thirds(x):
    return x * 0.3


@pytest.mark.usefixtures("needs_gxx")
def test_what_a_device_cannot(plan, compiled):
    for kernel, name in ((raises, "careful"), (asserts, "asserts")):
        made = program(kernel, plan, "global-atomics")
        with pytest.raises(
            MeshprepError, match=f"'{name}' raises or asserts, which a GPU cannot"
        ):
            run_checked(made, v=np.ones(3))
        with pytest.raises(
            MeshprepError, match=f"'{name}' raises or asserts, which a GPU cannot"
        ):
            compiled(made)


@pytest.mark.usefixtures("needs_gxx")
def test_what_does_not_compile_is_one_line(slow, compiled):
    args = (Arg("w", Access.READ), Arg("v", Access.RW))
    plan = slow.plan({"cells": 3}, {}, [Loop("l", "cells", args)], (2,))["l"]

    def unknown(w, v):
        v[0] = np.linalg.det(w)

    wrong = "argument 'w': kernel 'changes_what_it_reads' .* sets a row that is only read"
    with pytest.raises(MeshprepError, match=wrong):
        program(changes_what_it_reads, plan, "global-atomics")
    made = program(unknown, plan, "global-atomics")
    for run, given in (
        (run_checked, {"w": np.ones(3), "v": np.ones(3)}),
        (compiled, {}),
    ):
        with pytest.raises(MeshprepError, match="'unknown' does not compile") as found:
            run(made, **given)
        assert "\n" not in str(found.value)

    def floors(w, v):
        v[0] = np.floor(w[0])

    with pytest.raises(
        MeshprepError, match=r"'floors' uses np\.floor, which numba-cuda does not"
    ):
        compiled(program(floors, plan, "global-atomics"))
    with pytest.raises(
        MeshprepError, match="has 1 parameters, but loop 'l' hands it 2: w, v"
    ):
        program(calls_helper, plan)
    with pytest.raises(MeshprepError, match="architecture 'volta' is unknown"):
        compiled(program(body, random_plan(slow, 9, 9, 4, 0)), "volta")


def test_missing_packages_are_named(plan, monkeypatch):
    monkeypatch.setattr(element, "_kept", {})
    monkeypatch.setitem(sys.modules, "numba_cuda", None)
    with pytest.raises(
        MissingPackageError, match=r"pip install 'meshprep-runtime\[check\]'"
    ):
        compile_program(program(calls_helper, plan, "global-atomics"))


def test_equal_kernels_are_compiled_once(plan, monkeypatch, compiled):
    def make():
        def kernel(v):
            v[0] += 0.375

        return kernel

    monkeypatch.setattr(element, "_kept", {})
    monkeypatch.setenv("MESHPREP_CACHE_DIR", "")
    compiled(program(make(), plan, "global-atomics"))
    compiled(program(make(), plan, "global-atomics", threads=64))
    assert len(element._kept) == 1
    compiled(program(make(), plan, "global-atomics"), "sm_80")
    assert len(element._kept) == 2


def test_rows_are_loaded_at_once(slow, compiled):
    """Two f8 and four f4 in one instruction, from memory that nothing writes."""
    args = (
        Arg("q", Access.READ, 4, "f8", "elements->points", (0,)),
        Arg("x", Access.READ, 4, "f4", "elements->points", (1,)),
        Arg("r", Access.WRITE, 2, "f8"),
    )
    near = np.arange(40).reshape(20, 2)
    sizes = {"elements": 20, "points": 40}
    plan = slow.plan(
        sizes, {"elements->points": near}, [Loop("l", "elements", args)], (8,)
    )["l"]

    def kernel(q, x, r):
        r[0] = q[0] + q[1] + q[2] + q[3]
        r[1] = x[0] + x[1] + x[2] + x[3]

    compiled(program(kernel, plan, "global-atomics"))
    found = ptx(program(kernel, plan, "global-atomics"))
    assert found.count("ld.global.nc.v2.f64") == 2
    assert found.count("ld.global.nc.v4.f32") == 1
    assert found.count("st.global.v2.f64") == 1
    # What is set and never read is not loaded first.
    assert "ld.global.v2.f64" not in found
    one_by_one = ptx(program(kernel, plan, "global-atomics", vectors=False))
    assert ".v2.f64" not in one_by_one


def test_four_values_are_added_by_one_instruction(slow, compiled):
    """From sm_90 on, f4 only."""
    args = (
        Arg("a", Access.INC, 4, "f4", "elements->points", (0,)),
        Arg("b", Access.INC, 6, "f4", "elements->points", (1,)),
        Arg("c", Access.INC, 2, "f8", "elements->points", (1,)),
    )
    near = np.arange(40).reshape(20, 2)
    sizes = {"elements": 20, "points": 40}
    plan = slow.plan(
        sizes, {"elements->points": near}, [Loop("l", "elements", args)], (8,)
    )["l"]

    def kernel(a, b, c):
        for k in range(2):
            a[2 * k] += 1.0
            b[3 * k] += 2.0
            c[k] += 3.0

    made = program(kernel, plan, "global-atomics")
    assert compiled(made, "sm_80").spilled == compiled(made).spilled == 0
    found, older = ptx(made), ptx(made, arch="sm_80")
    counts = [found.count(f"red.global.add.{what}") for what in ("v4.f32", "v2.f32")]
    assert counts == [1, 3]
    assert "red.global.add.v" not in older
    adds = re.findall(r"(?:atom|red)\.global\.add\.f32", older)
    assert len(adds) == 10


@pytest.mark.parametrize("in_c", [False, True])
def test_fastmath_reaches_the_compilers(in_c, slow, compiled):
    args = (Arg("w", Access.READ, 1, "f4"), Arg("v", Access.RW, 1, "f4"))
    plan = slow.plan({"cells": 3}, {}, [Loop("l", "cells", args)], (2,))["l"]

    def kernel(w, v):
        v[0] = math.sqrt(w[0]) / v[0]

    text = "__device__ void f(const float* w, float* v) { v[0] = sqrtf(w[0]) / v[0]; }"
    function = DeviceFunction("f", text) if in_c else kernel
    exact, fast = (
        program(function, plan, "global-atomics", fastmath=f) for f in (False, True)
    )
    assert compiled(exact).cubin != compiled(fast).cubin
    found = [translated(made) if in_c else ptx(made) for made in (exact, fast)]
    assert ["sqrt.rn.f32" in text for text in found] == [True, False]
    assert ["sqrt.approx.ftz.f32" in text for text in found] == [False, True]


@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize("fastmath", [False, True])
def test_a_loop_hands_fastmath_on(plan, fastmath, monkeypatch):
    device = EmulatedDevice()
    real, seen = device.load, []
    monkeypatch.setattr(
        device, "load", lambda made: seen.append(made.fastmath) or real(made)
    )
    with use(device):
        ParLoop(calls_helper, plan, fastmath=fastmath)(v=device.array(np.ones(3)))
    assert seen == [fastmath]


def test_what_spills_is_compiled_with_room(plan, compiled, monkeypatch):
    made = program(calls_helper, plan, "global-atomics")
    compiled(made)
    real, calls, spills = nvrtc._compile_for, [], iter((16, 0, 16, 24))

    def spilling(program, arch, *options):
        calls.append(options)
        return replace(real(program, arch, *options), spilled=next(spills))

    monkeypatch.setattr(nvrtc, "_compile_for", spilling)
    assert compile_program(made).spilled == 0
    assert compile_program(made).spilled == 16
    assert calls == [(), ("--define-macro=MP_RESIDENT=1",)] * 2
    # Only then the compiler is told of a single block.
    assert ".minnctapersm" not in ptx(made)
    assert ".minnctapersm 1" in ptx(made, "--define-macro=MP_RESIDENT=1")


@pytest.mark.parametrize(("spilled", "registers"), [(0, 48), (8, 53)])
def test_one_block_more_where_nothing_spills(
    plan, spilled, registers, compiled, monkeypatch
):
    """53 registers let four blocks of 256 threads be on a multiprocessor, 48 five."""
    made = program(calls_helper, plan, "global-atomics", threads=256)
    compiled(made)
    calls, found = [], {(): (53, 0), ("--define-macro=MP_RESIDENT=5",): (48, spilled)}

    def compiling(program, arch, *options):
        calls.append(options)
        return nvrtc.Compiled(b"", *found[options])

    monkeypatch.setattr(nvrtc, "_compile_for", compiling)
    assert compile_program(made).registers == registers
    assert calls == list(found)
    # Where four blocks take all of the shared memory, registers decide nothing.
    calls.clear()
    full = replace(made, shared_bytes=56 * 1024)
    assert compile_program(full).registers == 53
    assert calls == [()]
    # 80 of 110 registers, with which one block more would fit, are too few.
    calls.clear()
    found[()] = (110, 0)
    assert compile_program(made).registers == 110
    assert calls == [()]


def test_what_is_linked_must_fit(plan):
    """A broken part is one line, not the linker's log."""
    pytest.importorskip("cuda.bindings")
    with pytest.raises(MeshprepError, match="the loop and its kernel do not link: "):
        nvrtc._link((b"nothing",), "sm_90")


def translated(made):
    """The text before machine code, where nothing is joined."""
    return nvrtc._translate(made, "PTX", "--gpu-architecture=compute_90")[0].decode()


def ptx(made, *options, arch="sm_90"):
    """The joined parts one step before machine code."""
    virtual = arch.replace("sm_", "--gpu-architecture=compute_")
    text, _ = nvrtc._translate(made, "LTOIR", virtual, "-dlto", *options)
    parts = (text, made.kernel.ltoir(arch))
    return nvrtc._link(parts, arch, made.fastmath, "-ptx")[0].decode()
