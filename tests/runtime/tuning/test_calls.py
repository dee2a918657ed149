"""Calls as trials: what they run in turn, what stays, and what the plan's file remembers."""

from dataclasses import replace

import numpy as np
import pytest

from meshprep_runtime import Access, Arg, Loop, MeshprepError, ParLoop, Plan
from meshprep_runtime.cuda import DeviceFunction
from meshprep_runtime.plan.tuned import CPU, GPU, Machine, Trial, Tuned
from meshprep_runtime.tuning import calls
from meshprep_runtime.tuning.machines import Backend, TuningCandidate

ADD = Loop("add", "edges", (Arg("res", Access.INC, 1, "f8", "edges->cells", (0, 1)),))
TEXT = "__device__ void add(double* a, double* b) { a[0] += 1.0; b[0] += 1.0; }"
SECONDS = {"slow": 5.0, "fast": 1.0, "middle": 2.0, "other": 3.0}


@pytest.fixture
def plans(slow):
    grid = slow.quads(4, 3)
    return slow.plan(grid.sizes, grid.tables, [ADD])


class Scripted:
    """Loops that take as long as their name says, by a clock of their own."""

    def __init__(self, monkeypatch, refused=()):
        self.now, self.ran, self.refused = 0.0, [], refused
        monkeypatch.setattr(calls.time, "perf_counter", lambda: self.now)

    def make(self, candidate):
        name = candidate.strategy

        def run(**arrays):
            if name in self.refused:
                raise MeshprepError(f"{name} does not fit")
            self.ran.append(name)
            # What is run first is compiled.
            self.now += 100.0 if self.ran.count(name) == 1 else SECONDS[name]

        return run

    def trials(self, plan):
        machine = Machine(CPU, "scripted", 1)
        backend = Backend(machine, tuple(SECONDS), lambda plan, strategy: [("", "colours")])
        return calls.CallTrials(plan, backend, "add", (), self.make)


def test_every_call_runs_and_the_fastest_stays(plans, monkeypatch):
    script = Scripted(monkeypatch)
    trials = script.trials(plans["add"])
    for _ in range(4 * 4 + 3 * 3 - 1):
        trials({})
        assert trials.tuned is None
    trials({})
    assert script.ran[:16] == [name for name in SECONDS for _ in range(4)]
    # The three fastest take turns.
    assert script.ran[16:] == ["fast", "middle", "other"] * 3
    found = trials.tuned
    assert [(t.strategy, t.seconds, t.runs) for t in found.trials] == [
        ("fast", 1.0, 6),
        ("middle", 2.0, 6),
        ("other", 3.0, 6),
        ("slow", 5.0, 3),
    ]
    assert found.measured
    assert (found.machine.name, found.kernel) == ("scripted", "add")
    trials({})
    assert script.ran[25:] == ["fast"]


def test_what_cannot_run_is_passed_over(plans, monkeypatch):
    script = Scripted(monkeypatch, refused=("fast", "slow"))
    trials = script.trials(plans["add"])
    trials({})
    assert script.ran == ["middle"]
    for _ in range(20):
        trials({})
    assert [t.strategy for t in trials.tuned.trials] == ["middle", "other"]
    nothing = Scripted(monkeypatch, refused=tuple(SECONDS)).trials(plans["add"])
    for _ in range(2):
        with pytest.raises(MeshprepError, match="other does not fit"):
            nothing({})


def test_a_call_that_is_wrong_ends_no_trial(plans):
    """What all ways refuse is no fault of theirs: the next call is right."""
    loop = ParLoop(add, plans["add"], tune=True)
    res = np.zeros(plans.sizes["cells"])
    for wrong in (res[:-1], res.astype("f4"), res[::-1]):
        with pytest.raises(MeshprepError, match="argument 'res' "):
            loop(res=wrong)
    loop(res=res)
    assert res.sum() == 2 * plans.sizes["edges"]


def add(a, b):
    a[0] += 1.0
    b[0] += 1.0


def test_fewer_threads_come_after_all_others(slow, monkeypatch):
    """Of the fastest way with each of the blocks, on a GPU; what was tuned has them again."""
    grid = slow.quads(9, 9)
    plan = slow.plan(grid.sizes, grid.tables, [ADD], (128,))["add"]
    script, made = Scripted(monkeypatch), []
    backend = Backend(
        Machine(GPU, "scripted"),
        ("slow", "fast"),
        lambda plan, strategy: [("s128", "colours")],
    )

    def make(candidate):
        made.append(candidate)
        run = script.make(candidate)
        # Half the time by fewer threads.
        seconds = SECONDS[candidate.strategy] / (2 if candidate.threads else 1)

        def call(**arrays):
            run(**arrays)
            script.now += seconds - SECONDS[candidate.strategy]

        return call

    trials = calls.CallTrials(plan, backend, "add", (), make)
    for _ in range(3 * 4 + 3 * 3):
        trials({})
    assert [(c.strategy, c.threads) for c in made] == [
        ("slow", None),
        ("fast", None),
        ("fast", 64),
    ]
    best = trials.tuned.best
    assert (best.strategy, best.threads, best.seconds) == ("fast", 64, 0.5)
    calls.CallTrials(replace(plan, tuned=(trials.tuned,)), backend, "add", (), make)({})
    assert (made[-1].strategy, made[-1].threads) == ("fast", 64)


def test_what_is_known_is_not_tried(plans, monkeypatch):
    trial = Trial("middle", "", (), 1.0, 1.0, 0.0, 9)
    known = Tuned(Machine(CPU, "scripted", 1), "add", True, (trial,))
    script = Scripted(monkeypatch)
    script.trials(replace(plans["add"], tuned=(known,)))({})
    assert script.ran == ["middle"]


@pytest.mark.usefixtures("needs_gxx")
def test_a_loop_on_a_gpu_tunes_itself(plans, device, monkeypatch, tmp_path):
    """Every call adds, whatever runs it; then the plan's file has the entry."""
    ways = [
        TuningCandidate("global-atomics", "", ()),
        TuningCandidate("hierarchical", "s4", ()),
    ]
    monkeypatch.setattr(calls, "grid", lambda **given: ways)
    path = tmp_path / "a.plan.h5"
    plans.save(path)
    loop = ParLoop(DeviceFunction("add", TEXT), plans["add"], tune=True)
    res = device.array(np.zeros((12, 1)))
    assert calls.save_tuned(path, [loop]) == []
    for _ in range(20):
        loop(res=res)
    degree = np.bincount(plans["add"].maps["edges->cells"].table.ravel(), minlength=12)
    assert np.array_equal(res.get()[:, 0], 20 * degree)
    assert {t.strategy for t in loop.tuned.trials} == {"global-atomics", "hierarchical"}
    assert calls.save_tuned(path, [loop]) == ["add"]
    again = Plan.load(path)["add"]
    assert again.tuned == (loop.tuned,)
    chosen = ParLoop(DeviceFunction("add", TEXT), again).on_gpu
    assert chosen.strategy == loop.tuned.best.strategy
    assert chosen.because == "tuned for it: timed 6 times there"


def test_only_auto_is_tuned(plans):
    with pytest.raises(
        MeshprepError, match="'two-step' is asked for: leave strategy='auto'"
    ):
        ParLoop(lambda a, b: None, plans["add"], strategy="two-step", tune=True)
    assert ParLoop(lambda a, b: None, plans["add"]).tuned is None
