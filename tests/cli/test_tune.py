"""``meshprep tune``: what it prints, what it writes into the plan, what it refuses."""

import json
import re
from dataclasses import replace

import pytest

from meshprep.pipeline.tune import Tuning
from meshprep_cli.commands.tune import _by_strategy, _show_tuning
from meshprep_runtime import Plan
from meshprep_runtime.plan.tuned import Machine, Trial, Tuned

KERNEL = """
import math

def value(a, b):
    a[0] += 1.0
    b[0] += 2.0

def arrays(plan):
    import numpy as np
    return {"value": np.zeros(plan.sizes["cells"])}

def nothing(plan):
    return 3

def sets(a, b):
    a[0] = 1.0
    b[0] += 2.0

def complains(a, b):
    a[0] += 1.0
    b[0] += 2.0
    if a[0] > -1e9:
        raise ValueError("too much")

def raises(a, b):
    f = math.sqrt(-1.0 - a[0] * a[0])
    a[0] += f
    b[0] += 2.0
"""
SHORT = ("--runs", 1, "--layouts", "aos", "--strategies", "sequential,hierarchical", "-q")


@pytest.fixture
def plan(cli, mesh_file):
    assert (
        cli("plan", mesh_file, "--loop", "edges->cells", "--block-size", 64, "-q")[0] == 0
    )
    mesh_file.with_name("value_kernels.py").write_text(KERNEL)
    return mesh_file.with_name("wing.plan.h5")


def test_it_writes_what_is_fastest_into_the_plan(cli, shows, plan):
    kernel = f"{plan.with_name('value_kernels.py')}:value"
    words = ("--block-sizes", "32,128", *SHORT)
    code, out, err = cli("tune", plan, "--kernel", kernel, *words)
    assert (code, err) == (0, "")
    (tuned,) = Plan.load(plan)["edges->cells"].tuned
    assert f"fastest: {tuned.best.strategy}" in out
    assert "written into wing.plan.h5" in out
    hint = re.search(r'report \S+ --measured "(edges->cells=[\d.]+:[\d.]+)"', out)
    report = cli("report", plan, "--measured", hint[1], "-q")
    assert (report[0], " as measured: " in report[1]) == (0, True)
    assert {t.variant for t in tuned.trials} == {"", "s32", "s64", "s128"}
    assert cli("check", plan, "-q")[0] == 0
    values = json.loads(shows("tune", plan, "--kernel", kernel, "--json", *words))
    assert values["loop"] == "edges->cells"
    assert len(values["trials"]) == 4
    assert values["input_order"]["strategy"] == "sequential"
    # Once more on the same machine: the entry is replaced.
    assert len(Plan.load(plan)["edges->cells"].tuned) == 1


def test_a_line_for_each_strategy():
    """Whole numbers begin one; blocks and layouts are progress inside."""
    told = []
    report = _by_strategy(lambda *words: told.append(words))
    for done, what in enumerate(("two-step", "hierarchical s64", "hierarchical, q as SoA")):
        report(done, 3, what)
    assert told == [(0, 3, "two-step"), (1, 3, "hierarchical"), (2.5, 3, "hierarchical")]


def test_doubt_is_told(capsys, tmp_path):
    def trial(strategy, seconds, spread):
        return Trial(strategy, "s64", ("q",), seconds, seconds, spread, 9)

    trials = (
        trial("hierarchical", 1e-3, 0.61),
        trial("block-permute", 1.5e-3, 0.02),
        trial("two-step", 2e-3, 0.01),
    )
    tuned = Tuned(Machine("cpu", "busy", 2), "flux", True, trials)
    _show_tuning(Tuning(None, "flux", tuned, []), tmp_path / "wing.plan.h5", dry_run=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3:-1] == [
        "fastest: hierarchical with blocks s64, q as SoA",
        (
            "as fast within the noise, as runs of the fastest differ by 61%: "
            "block-permute with blocks s64, q as SoA"
        ),
    ]
    assert lines[-1].startswith("chosen for the fastest run of all, 1.000 ms")
    rough = replace(trials[0], spread=4210.06)
    tuned = Tuned(tuned.machine, "flux", True, (rough, *trials[1:]))
    _show_tuning(Tuning(None, "flux", tuned, []), tmp_path / "wing.plan.h5", dry_run=True)
    out = capsys.readouterr().out
    assert "runs of the fastest differ by 4,211 times: block-permute" in out
    assert re.search(r"1\.000 +4,211 times +9 +1\.00", out)
    sure = Tuned(
        tuned.machine, "flux", True, (trial("hierarchical", 1e-3, 0.1), *trials[1:])
    )
    _show_tuning(Tuning(None, "flux", sure, []), tmp_path / "wing.plan.h5", dry_run=True)
    assert "within the noise" not in capsys.readouterr().out


def test_threads_of_a_block_are_told(capsys, tmp_path):
    trial = Trial("hierarchical", "s512", (), 1e-3, 1e-3, 0.0, 9, "atomics", 128)
    tuned = Tuned(Machine("gpu", "GPU"), "flux", True, (trial,))
    _show_tuning(Tuning(None, "flux", tuned, []), tmp_path / "wing.plan.h5", dry_run=True)
    out = capsys.readouterr().out
    assert "fastest: hierarchical atomics with blocks s512 by 128 threads, all AoS" in out
    assert re.search(r"hierarchical atomics +s512 by 128 threads +-", out)


def test_a_dry_run_leaves_the_plan(shows, plan):
    before = plan.read_bytes()
    kernel = f"{plan.with_name('value_kernels.py')}:value"
    out = shows(
        "tune", plan, "--kernel", kernel, "--block-sizes", "32", "--dry-run", *SHORT
    )
    assert "fastest: " in out
    assert "written" not in out
    assert plan.read_bytes() == before


def test_values_of_the_user(cli, fails, plan):
    where = plan.with_name("value_kernels.py")
    words = ("--kernel", f"{where}:value", "--values")
    assert cli("tune", plan, *words, f"{where}:arrays", *SHORT)[0] == 0
    err = fails("tune", plan, *words, f"{where}:nothing", *SHORT)
    assert "gave a int: give arrays by name" in err


@pytest.mark.slow
def test_a_kernel_that_sets_what_it_should_add_to_is_refused(cli, plan):
    before, where = plan.read_bytes(), plan.with_name("value_kernels.py")
    words = ("--loop", "edges:cells", *SHORT)
    code, out, err = cli("tune", plan, "--kernel", f"{where}:sets", *words)
    assert (code, out, plan.read_bytes() == before) == (2, "", True)
    assert f"argument 'value', index 0: kernel 'sets' at {where}" in err
    code, out, err = cli("tune", plan, "--kernel", f"{where}:complains", *words)
    assert (code, out, plan.read_bytes() == before) == (2, "", True)
    assert (
        "error: running loop 'edges->cells' raised ValueError: too much: name --values"
        in err
    )
    # Python raises where machine code gives nan: it is timed, and nobody knows what it does
    code, out, _ = cli("tune", plan, "--kernel", f"{where}:raises", *words)
    assert code == 0
    assert (
        "not tried: the accesses of the kernel: loop 'edges->cells', element 0: the" in out
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--kernel", "kernels.py"), "must read module:function or FILE.py:function"),
        (("--kernel", "no.such:f"), "cannot import no.such: ModuleNotFoundError"),
        (("--kernel", "nowhere.py:f"), "nowhere.py does not exist: check the name"),
        (("--kernel", "json:nothing"), "json has no function 'nothing'"),
        ((), "needs its kernel"),
        (("--device", "K80"), "device 'K80' is unknown"),
        (("--block-sizes", "a,b"), "must read as 512,1024,2048"),
        (("--loop", "flux"), "no loop 'flux'"),
    ],
)
def test_what_it_refuses(fails, plan, words, message):
    before = plan.read_bytes()
    assert message in fails("tune", plan, *words)
    assert plan.read_bytes() == before
