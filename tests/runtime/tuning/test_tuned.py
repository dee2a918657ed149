"""What tuning found: how a plan remembers it, and what auto makes of it."""

import json
from dataclasses import replace

import numba
import numpy as np
import pytest
from flux_loop import FLUX, A, B, entry, flux, trial, with_tuned

from meshprep_runtime import Loop, ParLoop, Plan, PlanError
from meshprep_runtime.cpu.executor import CompiledLoop
from meshprep_runtime.plan.file.schema import from_tree, to_tree
from meshprep_runtime.plan.records import to_json
from meshprep_runtime.plan.tuned import CPU, GPU, Machine
from meshprep_runtime.tuning import lookup
from meshprep_runtime.tuning.lookup import best_entry, processor_name, with_entry
from meshprep_runtime.tuning.tune import synthetic


@pytest.fixture
def plan(flux_plan):
    return flux_plan


def small_plan(slow):
    grid = slow.quads(3, 3)
    return slow.plan(grid.sizes, grid.tables, [Loop("flux", "edges", FLUX)], (4,))


def test_choosing_among_entries():
    slow_one, fast = trial(seconds=2.0), trial("two-step", seconds=1.0)
    soa = trial("hierarchical", "s8", ("q", "x"), 3.0)
    entries = (
        entry(A, fast, kernel="other"),
        entry(A, slow_one, soa),
        entry(A, trial("full-permute"), kernel="", measured=False),
    )
    assert best_entry(entries, A, "flux", ()) == slow_one
    assert best_entry(entries, A, "flux", ("x", "q")) == soa
    assert best_entry(entries, A, "third", ()) == slow_one
    assert best_entry(entries[2:], A, "flux", ()).strategy == "full-permute"
    assert best_entry(entries, B, "flux", ()) is None
    assert best_entry(entries, A, "flux", ("q",)) is None


def test_what_was_ranked_for_a_device_holds_for_its_full_name():
    ranked = entry(
        Machine(GPU, "H100"), trial("hierarchical", "s8"), kernel="", measured=False
    )
    for name, holds in (
        ("NVIDIA H100 80GB HBM3", True),
        ("NVIDIA H100-SXM", True),
        ("H1000", False),
    ):
        assert (best_entry((ranked,), Machine(GPU, name), "flux", ()) is not None) == holds
    measured = replace(ranked, measured=True)
    assert best_entry((measured,), Machine(GPU, "NVIDIA H100-SXM"), "flux", ()) is None


def test_a_new_entry_takes_the_place_of_the_old():
    first, second = entry(A, trial()), entry(A, trial("two-step"))
    other = entry(B, trial())
    assert with_entry((first, other), second) == (other, second)


def test_auto_runs_what_was_tuned(plan):
    here = Machine(CPU, processor_name(), numba.get_num_threads())
    tuned = with_tuned(
        plan, entry(here, trial("block-permute", "s8"), trial("two-step", "", ("q",)))
    )
    loop = ParLoop(flux, tuned)
    assert loop.strategy == "block-permute"
    values = synthetic(plan)
    expected = {k: v.copy() for k, v in values.items()}
    loop(**values)
    ParLoop(flux, plan, strategy="sequential")(**expected)
    np.testing.assert_allclose(values["res"], expected["res"], rtol=1e-13)
    assert ParLoop(flux, tuned, layout={"q": "soa"}).strategy == "two-step"


def test_the_same_arrays_are_bound_once_for_each_number_of_threads(plan, monkeypatch):
    tuned = with_tuned(
        plan,
        *(
            entry(Machine(CPU, processor_name(), n), trial(strategy, "s8"))
            for n, strategy in ((1, "block-permute"), (2, "hierarchical"))
        ),
    )
    ran = []
    run = CompiledLoop.bound
    monkeypatch.setattr(
        CompiledLoop, "bound", lambda *given, **named: ran.append(given[0]) or run(*given)
    )
    loop, values = ParLoop(flux, tuned), synthetic(plan)
    for threads in (1, 1, 2, 2, 1):
        monkeypatch.setattr(lookup, "thread_count", lambda n=threads: n)
        loop(**values)
    assert len(ran) == 2
    assert ran[0] is not ran[1]


def test_auto_keeps_its_rule_elsewhere(plan):
    here = Machine(CPU, processor_name(), numba.get_num_threads())
    rule = ParLoop(flux, plan).strategy
    other = replace(here, name="another processor")
    assert ParLoop(flux, with_tuned(plan, entry(other, trial("two-step")))).strategy == rule
    tuned = with_tuned(plan, entry(here, trial("block-permute", "s8")))
    assert ParLoop(flux, tuned, layout="soa").strategy == rule
    # Blocks that were asked for are kept, whatever was tuned.
    assert ParLoop(flux, tuned, variant="s4").strategy == rule
    assert ParLoop(flux, tuned, variant="s8").strategy == "block-permute"
    assert ParLoop(flux, tuned, strategy="sequential").strategy == "sequential"


def test_auto_refuses_what_it_does_not_know(plan):
    here = Machine(CPU, processor_name(), numba.get_num_threads())
    with pytest.raises(
        PlanError, match="tuned for strategy 'magic', which is unknown here"
    ):
        ParLoop(flux, with_tuned(plan, entry(here, trial("magic"))))(**synthetic(plan))
    with pytest.raises(PlanError, match="no variant 's99'"):
        ParLoop(flux, with_tuned(plan, entry(here, trial("hierarchical", "s99"))))(
            **synthetic(plan)
        )


def test_a_plan_file_remembers(slow, tmp_path):
    plan = small_plan(slow)
    assert b"tuned" not in saved(plan, tmp_path / "bare.plan.h5")
    own = with_tuned(
        plan["flux"], entry(A, trial("two-step", "", ("q",))), entry(B, trial())
    )
    plan = replace(plan, loops={"flux": own})
    saved(plan, tmp_path / "a.plan.h5")
    again = Plan.load(tmp_path / "a.plan.h5")
    assert again["flux"].tuned == own.tuned
    assert again["flux"].tuned[0].created == own.tuned[0].created
    assert saved(again, tmp_path / "b.plan.h5") == (tmp_path / "a.plan.h5").read_bytes()


def saved(plan, path):
    plan.save(path)
    return path.read_bytes()


@pytest.mark.parametrize(
    "broken",
    [
        {},
        [{}],
        [{"machine": {}, "trials": []}],
        [{**to_json(entry(A, trial())), "trials": []}],
        [{**to_json(entry(A, trial())), "trials": [{"strategy": "x"}]}],
        ["text"],
    ],
)
def test_other_words_in_its_place_are_refused(slow, broken):
    plan = small_plan(slow)
    tree = to_tree(plan)
    tree.datasets["/loops/flux/tuned"] = json.dumps(broken)
    with pytest.raises(PlanError, match="/loops/flux/tuned"):
        from_tree(tree)


def test_no_variant_may_have_its_name(slow):
    plan = small_plan(slow)
    own = plan["flux"]
    odd = replace(own.variant(), name="tuned")
    plan = replace(
        plan, loops={"flux": replace(own, variants={"tuned": odd}, default="tuned")}
    )
    with pytest.raises(PlanError, match="'tuned' is no name for a variant"):
        to_tree(plan)
