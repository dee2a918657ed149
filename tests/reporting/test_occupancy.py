"""Occupancy in reports: by staged bytes, by the registers of a kernel, and as tuned."""

import json
import shlex
import shutil
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from pages import blocks

from meshprep import Options, compare, prepare
from meshprep.io.generate import generate
from meshprep.loops.requests import read_requests
from meshprep.reporting import occupancy as reported
from meshprep.reporting.html import html_report
from meshprep.reporting.occupancy import CARDS, occupancy_records, program_on_card
from meshprep_cli.main import main
from meshprep_runtime import MeshprepError, Plan
from meshprep_runtime.cuda import DeviceFunction, program
from meshprep_runtime.cuda.build import Compiled
from meshprep_runtime.errors import PlanError
from meshprep_runtime.plan.records import from_json, to_json
from meshprep_runtime.plan.tuned import DeviceProgram, Machine, Trial, Tuned


def smooth(x1, x2, x3, x4, s1, s2, s3, s4):
    s1[0] += x1[0]
    s2[0] += x2[0]
    s3[0] += x3[0]
    s4[0] += x4[0]


KERNEL = """
def smooth(x1, x2, x3, x4, s1, s2, s3, s4):
    s1[0] += x1[0]
    s2[0] += x2[0]
    s3[0] += x3[0]
    s4[0] += x4[0]
"""


@pytest.fixture(scope="module")
def plan():
    """A block of 16 by 16 quads, whose 17 by 17 nodes are staged with nine f8."""
    mesh = generate("box", nx=16, ny=16, type="quad")
    args = [
        {"dat": "x", "map": "cells->nodes", "access": "read", "dim": 4},
        {"dat": "s", "map": "cells->nodes", "access": "inc", "dim": 5},
    ]
    loops = {"smooth": {"over": "cells", "args": args}}
    return prepare(mesh, loops, Options(block_size=256, target="gpu")).plan


# Nine f8 are 72 bytes, which take five pieces of 16: 289 nodes take 23,120 bytes.
SHARED = 289 * 80
# By hand: blocks that fit, and the warps that a multiprocessor can have.
BY_STAGED_BYTES = {
    # 65,536 bytes hold 23,296 (in units of 256) twice.
    "T4 (sm_75)": (2, 32, "shared memory"),
    # With 1,024 of the system's 24,192 (in units of 128): 167,936 hold six.
    "A100 (sm_80)": (6, 64, "shared memory"),
    # 102,400 hold four.
    "L40 (sm_89)": (4, 48, "shared memory"),
    # 233,472 hold nine, but eight have all 2,048 threads.
    "H100 (sm_90)": (8, 64, "threads"),
}
# 72 registers are 2,304 of a warp, in units of 256: 16,384 of a part hold seven warps, four
# parts 28, which are three blocks of eight warps.
BY_REGISTERS = BY_STAGED_BYTES | {
    "A100 (sm_80)": (3, 64, "registers"),
    "L40 (sm_89)": (3, 48, "registers"),
    "H100 (sm_90)": (3, 64, "registers"),
}


def check_by_hand(records, by_hand, registers):
    assert [record["card"] for record in records] == list(by_hand)
    for record, expected in zip(records, by_hand.values(), strict=True):
        held, most_warps, limit = expected
        assert record["loop"] == "smooth"
        assert record["runs as"] == "hierarchical s256"
        assert (record["threads"], record["shared bytes"]) == (256, SHARED)
        assert record["registers"] == registers
        assert record["blocks held"] == held
        assert record["occupancy"] == pytest.approx(8 * held / most_warps, abs=5e-5)
        assert record["limited by"] == limit


def test_by_threads_and_staged_bytes(plan):
    check_by_hand(occupancy_records(plan, {}), BY_STAGED_BYTES, None)


def test_by_the_registers_of_a_kernel(plan, monkeypatch):
    monkeypatch.setattr(reported, "compiled", lambda made, arch: Compiled(b"", 72, 0))
    records = occupancy_records(plan, {"smooth": smooth})
    check_by_hand(records, BY_REGISTERS, 72)


def test_text_page_and_json_show_the_same(plan, monkeypatch):
    monkeypatch.setattr(reported, "compiled", lambda made, arch: Compiled(b"", 72, 0))
    found = compare(plan, kernels=[smooth])
    (table,) = found.occupancy_tables()
    assert table in found.tables()
    rows = {row[2]: row for row in table.rows}
    assert rows["A100 (sm_80)"][3:] == ("256", "23,120", "72", "3", "0.38", "registers")
    page = html_report(found)
    assert "occupancy: blocks that a multiprocessor holds" in page
    for row in rows.values():
        assert row[2] in page
    records = json.loads(json.dumps(found.to_dict()))["occupancy"]
    assert [record.pop("plan") for record in records] == ["plan 1"] * 4
    check_by_hand(records, BY_REGISTERS, 72)


def test_without_a_kernel_no_registers_are_shown(plan):
    (table,) = compare(plan).occupancy_tables()
    assert table.header[-3:] == ("blocks held", "occupancy", "limited by")
    assert "registers" not in table.header
    assert table.title.endswith("by threads and staged bytes")


def test_blocks_for_a_cpu_hold_no_thread_block():
    """Tuning adds blocks of thousands of elements, which no GPU runs."""
    mesh = generate("box", nx=64, ny=64, type="quad")
    args = [{"dat": "s", "map": "cells->nodes", "access": "inc"}]
    loops = {"count": {"over": "cells", "args": args}}
    large = prepare(mesh, loops, Options(block_size=2048)).plan
    assert occupancy_records(large, {}, ["sm_75"]) == []
    kernels = {"count": DeviceFunction("count", COUNT)}
    (record,) = occupancy_records(large, kernels, ["sm_75"])
    assert record["runs as"] == "global-atomics"


COUNT = """
__device__ void count(double* a, double* b, double* c, double* d)
{ a[0] += 1; b[0] += 1; c[0] += 1; d[0] += 1; }
"""


def test_of_several_plans_one_card(plan):
    (table,) = compare([plan, plan]).occupancy_tables()
    assert [row[0] for row in table.rows] == ["plan 1", "plan 2"]
    assert {row[3] for row in table.rows} == {"H100 (sm_90)"}


LOOPS = {
    "reads are staged": [
        {"dat": "x", "map": "cells->nodes", "access": "read", "dim": 3},
        {"dat": "s", "map": "cells->nodes", "access": "inc"},
    ],
    "f4 beside f8": [
        {"dat": "x", "map": "cells->nodes", "access": "read", "dim": 3, "dtype": "f4"},
        {"dat": "s", "map": "cells->nodes", "access": "inc"},
    ],
    "reads that do not fit": [
        {"dat": "x", "map": "cells->nodes", "access": "read", "dim": 60},
        {"dat": "s", "map": "cells->nodes", "access": "inc", "dim": 2},
    ],
    "a sum and a few points": [
        {"dat": "s", "map": "cells->nodes", "index": [0], "access": "inc", "dtype": "i4"},
        {"global": "total", "access": "inc"},
    ],
}


@pytest.mark.parametrize("args", LOOPS.values(), ids=LOOPS)
@pytest.mark.parametrize("block_size", [100, 256])
def test_blocks_alone_tell_what_the_program_takes(args, block_size):
    mesh = generate("delaunay2d", cells=900, seed=1)
    loops = {"loop": {"over": "cells", "args": args}}
    loop = prepare(mesh, loops, Options(block_size=block_size, target="gpu")).plan["loop"]
    any_kernel = DeviceFunction("loop", "__device__ void loop();")
    for arch in CARDS:
        choice, taken = program_on_card(loop, None, arch)
        made = program(any_kernel, loop, choice.strategy, variant=choice.variant)
        assert (taken.threads, taken.shared_bytes) == (made.threads, made.shared_bytes)


SCALE = DeviceFunction("scale", "__device__ void scale(const double* x);")


def test_loops_without_blocks_on_a_gpu(monkeypatch):
    """They are shown where registers are known: nothing else can be short."""
    monkeypatch.setattr(reported, "compiled", lambda made, arch: Compiled(b"", 129, 0))
    mesh = generate("delaunay2d", cells=300, seed=1)
    plan = prepare(mesh, {"scale": {"over": "cells", "args": [{"dat": "x"}]}}).plan
    assert occupancy_records(plan, {}) == []
    assert compare(plan).occupancy_tables() == []
    by_card = {
        record["card"]: record for record in occupancy_records(plan, {"scale": SCALE})
    }
    # 129 registers are 4,352 of a warp: three warps of a part, 12 in all, one block of 8.
    assert by_card["H100 (sm_90)"]["runs as"] == "global-atomics"
    assert by_card["H100 (sm_90)"]["blocks held"] == 1
    assert by_card["H100 (sm_90)"]["occupancy"] == 8 / 64
    assert by_card["L40 (sm_89)"]["occupancy"] == pytest.approx(8 / 48, abs=5e-5)


def tuned_plan(plan, **taken):
    trial = Trial(
        strategy="staged-gather",
        variant="s256",
        soa=(),
        seconds=1e-3,
        median=1e-3,
        spread=0.1,
        runs=9,
    )
    entry = Tuned(
        machine=Machine("gpu", "NVIDIA H200"),
        kernel="smooth",
        measured=True,
        trials=(trial,),
        occupancy=0.25,
        program=DeviceProgram(**taken),
    )
    loop = replace(plan["smooth"], tuned=(entry,))
    return replace(plan, loops={"smooth": loop})


def test_what_tuning_found_is_read_from_the_plan(plan, tmp_path):
    taken = {"arch": "sm_90", "threads": 256, "shared_bytes": 1000, "registers": 128}
    tuned_plan(plan, **taken).save(tmp_path / "a.plan.h5")
    *_, last = occupancy_records(Plan.load(tmp_path / "a.plan.h5"), {})
    # 128 registers are 4,096 of a warp: four warps of a part, 16 in all, two blocks of 8.
    assert last == {
        "loop": "smooth",
        "runs as": "tuned: staged-gather s256",
        "card": "NVIDIA H200 (sm_90)",
        "threads": 256,
        "shared bytes": 1000,
        "registers": 128,
        "blocks held": 2,
        "occupancy": 0.25,
        "limited by": "registers",
    }


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"arch": "ninety"}, "arch is 'ninety'"),
        ({"threads": 0}, "threads is 0"),
        ({"registers": 0}, "registers is 0"),
    ],
)
def test_what_no_compiler_tells_is_refused(wrong, said):
    good = to_json(DeviceProgram(arch="sm_90", threads=1, shared_bytes=0, registers=1))
    assert from_json(DeviceProgram, good, "a").registers == 1
    with pytest.raises(PlanError, match=said):
        from_json(DeviceProgram, good | wrong, "a")


def test_a_kernel_of_no_loop_is_refused(plan):
    def other(x):
        pass

    with pytest.raises(
        MeshprepError, match=r"'other' is named as no loop.* name of smooth"
    ):
        compare(plan, kernels=[smooth, other])
    # Of a single loop there is no doubt.
    assert compare(plan, kernels=[other]).kernels == {"smooth": other}


def test_the_command_counts_the_registers_of_a_compiled_kernel(
    plan, tmp_path, capsys, compiled
):
    """As NVRTC and nvJitLink give them for the same program."""
    made = program(smooth, plan["smooth"], "hierarchical")
    expected = [compiled(made, arch).registers for arch in CARDS]
    (tmp_path / "k.py").write_text(KERNEL)
    plan.save(tmp_path / "a.plan.h5")
    words = ["report", str(tmp_path / "a.plan.h5"), "--no-measure", "--json"]
    assert main([*words, "--kernel", f"{tmp_path / 'k.py'}:smooth"]) == 0
    records = json.loads(capsys.readouterr().out)["occupancy"]
    assert [record["registers"] for record in records] == expected


@pytest.mark.slow
def test_the_commands_of_the_page(tmp_path, monkeypatch, capsys, compiled):
    """Both show the table; the second has registers in one of its loops."""
    kernels = Path(__file__).parents[2] / "examples" / "kernels"
    monkeypatch.chdir(tmp_path)
    shutil.copy(kernels / "airfoil.py", tmp_path)
    loops = read_requests(kernels / "airfoil.toml")
    done = prepare(generate("airfoil", cells=600), loops, Options())
    done.plan.save("wing.plan.h5")
    # Skips where there is no compiler.
    res_calc = import_module("kernels.airfoil").res_calc
    compiled(program(res_calc, done.plan["res_calc"]))
    tables = []
    for words in blocks("reports.md", "sh")[0].splitlines():
        assert main(shlex.split(words)[1:]) == 0
        out = capsys.readouterr().out
        table = out[out.index("occupancy: blocks that a multiprocessor holds") :]
        tables.append(table.partition("\n\n")[0].splitlines())
    alone, counted = tables
    assert len(alone) == len(counted) == 2 + 2 * len(CARDS)
    assert "registers" not in alone[1]
    assert "registers" in counted[1]
    assert {row.split()[0] for row in counted[2:]} == {"res_calc", "bres_calc"}
