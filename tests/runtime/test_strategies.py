"""Which strategy and blocks a loop runs, what it refuses, and colours of the whole set."""

from dataclasses import replace
from pathlib import Path

import numba
import numpy as np
import pytest
from python_loops import INC, RW, check, edge_plan, res_calc

from meshprep_runtime import Arg, Loop, MeshprepError, ParLoop, PlanError
from meshprep_runtime.cpu import executor
from meshprep_runtime.cpu.source.element import ElementCode
from meshprep_runtime.cpu.strategies import STRATEGIES, CpuStrategy, sequential
from meshprep_runtime.cuda import STRATEGIES as GPU_STRATEGIES
from meshprep_runtime.kernel.bind import slots
from meshprep_runtime.kernel.colouring import colour_elements
from meshprep_runtime.kernel.rows import rows_of
from meshprep_runtime.tuning.machines import this_cpu


def test_auto_is_ordered_for_any_number_of_threads(airfoil):
    loop = ParLoop(res_calc, airfoil["res_calc"])
    before = numba.get_num_threads()
    for threads in (1, before):
        numba.set_num_threads(threads)
        assert loop.strategy == "ordered"
    assert (
        ParLoop(res_calc, airfoil["res_calc"], strategy="sequential").strategy
        == "sequential"
    )


def test_only_blocks_with_lists_pay_for_lists(slow):
    """No order to look up, no map in an order of its own, and no row asked for ahead, else."""
    grid = slow.quads(6, 4)
    for lists in (False, True):
        plan = slow.plan(grid.sizes, grid.tables, [slow.res_calc], lists=lists)["res_calc"]
        variant = plan.variant()
        found = STRATEGIES["hierarchical"].schedule(plan, variant)
        assert found.order is variant.elements
        assert (found.maps_permuted, found.fetches) == (lists, lists)
        rows = rows_of(plan.loop, slots(plan))
        text = ElementCode(rows, ("m0", "m1"), lists, lists, fetches=found.fetches).text()
        assert ("order[" in text) == ("fetch(" in text) == lists
        # each of the two points of q, x, adt and res once
        assert text.count("fetch(") == (8 if lists else 0)


@pytest.mark.parametrize("least", [None, 0])
def test_rows_are_asked_for_ahead_where_dats_fit_no_cache(slow, flow, monkeypatch, least):
    """Small ones do not; the loop is right either way."""
    if least is not None:
        monkeypatch.setattr(executor, "FETCHED_BYTES", least)
    texts, compiled = [], executor.Executor._compiled

    def spied(self, text, *rest):
        texts.append(text)
        return compiled(self, text, *rest)

    monkeypatch.setattr(executor.Executor, "_compiled", spied)
    grid = slow.quads(6, 4)
    plan = slow.plan(grid.sizes, grid.tables, [slow.res_calc], lists=True)["res_calc"]
    check(res_calc, plan, flow, "hierarchical", rtol=1e-13)
    assert ["fetch(" in text.functions for text in texts] == [least == 0] * len(texts)
    assert texts


def test_a_loop_without_blocks(airfoil, flow):
    bare = replace(airfoil["res_calc"], variants={}, default="")
    assert ParLoop(res_calc, bare).strategy == "ordered"
    check(res_calc, bare, flow, "auto", rtol=1e-13)
    with pytest.raises(MeshprepError, match="has no blocks in this plan"):
        ParLoop(res_calc, bare, strategy="hierarchical")


def test_blocks_for_a_cpu_are_preferred(airfoil):
    variants = dict(airfoil["res_calc"].variants)
    variants["s16"] = replace(variants["s16"], target="cpu")
    plan = replace(airfoil["res_calc"], variants=variants)
    by_colour = {"strategy": "hierarchical"}
    assert ParLoop(res_calc, plan, **by_colour)._way()[1].name == "s16"
    assert ParLoop(res_calc, plan, variant="s8", **by_colour)._way()[1].name == "s8"
    assert ParLoop(res_calc, airfoil["res_calc"], **by_colour)._way()[1].name == "s8"
    # ranges are of whole blocks of the default
    assert ParLoop(res_calc, plan)._way()[1].name == "s8"
    assert ParLoop(res_calc, plan, variant="s16")._way()[1].name == "s16"


def test_unknown_names(airfoil):
    with pytest.raises(MeshprepError) as error:
        ParLoop(res_calc, airfoil["res_calc"], strategy="warp")
    on_a_gpu = [name for name in GPU_STRATEGIES if name not in STRATEGIES]
    assert str(error.value) == (
        "loop 'res_calc': strategy 'warp' is unknown: use auto, "
        f"{', '.join(STRATEGIES)}, or on a GPU {', '.join(on_a_gpu)}"
    )
    assert "ordered, sequential, hierarchical," in str(error.value)
    assert "or on a GPU hierarchical-inc," in str(error.value)
    with pytest.raises(PlanError, match="no variant 's9': choose s8, s16"):
        ParLoop(res_calc, airfoil["res_calc"], variant="s9")
    with pytest.raises(MeshprepError, match="not a Plan: pass plan\\['NAME'\\]"):
        ParLoop(res_calc, airfoil)


def test_an_unsafe_plan_made_in_memory_is_refused(airfoil):
    plan = airfoil["res_calc"]
    table = plan.maps["edges->cells"].table.copy()
    table[3, 1] = 24
    maps = {**plan.maps, "edges->cells": replace(plan.maps["edges->cells"], table=table)}
    with pytest.raises(PlanError, match="element 3, column 1 has index 24"):
        ParLoop(res_calc, replace(plan, maps=maps))
    variant = replace(plan.variant(), block_offset=plan.variant().block_offset + 1)
    with pytest.raises(PlanError, match="block_offset does not go from 0 to 38"):
        ParLoop(res_calc, replace(plan, variants={"s8": variant}))


def slow_colours(plan):
    """First-fit with sets, one element after the other."""
    seen, colours = {}, []
    for e in range(plan.sizes[plan.loop.over]):
        points = [
            (plan.maps[name].to_set, int(plan.maps[name].table[e, k]))
            for name, columns in plan.loop.conflict_columns.items()
            for k in columns
        ]
        taken = set().union(*(seen.get(p, set()) for p in points)) if points else set()
        colours.append(next(c for c in range(len(taken) + 1) if c not in taken))
        for p in points:
            seen.setdefault(p, set()).add(colours[-1])
    return colours


@pytest.mark.parametrize(("n", "m"), [(0, 3), (40, 6), (200, 2)])
def test_colours_of_the_whole_set(slow, n, m):
    """200 elements on 2 points: more than 64 colours."""
    rng = np.random.default_rng(n)
    args = (
        Arg("a", INC, 1, "f8", "cells->p", (0,)),
        Arg("b", INC, 1, "f8", "cells->p", (1,)),
    )
    tables = {"cells->p": rng.integers(0, m, (n, 2))}
    plan = slow.plan({"cells": n, "p": m}, tables, [Loop("l", "cells", args)])["l"]
    assert colour_elements(plan).tolist() == slow_colours(plan)


def backwards(plan, variant):
    """The set from its end, on one thread."""
    n = plan.sizes[plan.loop.over]
    whole = sequential(plan, variant)
    return replace(whole, order=np.arange(n, dtype=np.int32)[::-1].copy())


def test_a_strategy_takes_one_entry(airfoil, flow, monkeypatch):
    """It is run, listed and tuned, and nothing else names it."""
    entry = CpuStrategy(backwards, needs_blocks=True)
    monkeypatch.setitem(STRATEGIES, "backwards", entry)
    plan = airfoil["res_calc"]
    check(res_calc, plan, flow, "backwards", rtol=1e-13)
    with pytest.raises(MeshprepError, match="full-permute, backwards, or on a GPU"):
        ParLoop(res_calc, plan, strategy="warp")
    bare = replace(plan, variants={}, default="")
    with pytest.raises(MeshprepError, match="has no blocks in this plan"):
        ParLoop(res_calc, bare, strategy="backwards")
    machine = this_cpu()
    assert machine.strategies[-1] == "backwards"
    assert [name for name, _ in machine.variants_for(plan, "backwards")] == ["s8", "s16"]


def test_every_strategy_is_described():
    for name in STRATEGIES:
        assert f'``"{name}"``' in ParLoop.__doc__, name
    page = Path(__file__).parents[2] / "docs" / "solvers" / "gpu.md"
    for name in GPU_STRATEGIES:
        assert f"- `{name}`" in page.read_text(encoding="utf-8"), name


def test_two_steps_only_sum(slow):
    plan = edge_plan(slow, Arg("v", RW, 1, "f8", "edges->cells", (0,)))
    with pytest.raises(MeshprepError) as error:
        ParLoop(lambda v: None, plan, strategy="two-step")
    assert str(error.value) == (
        "loop 'loop': strategy 'two-step' cannot run it: argument 'v' is rw through a map, "
        "and only sums wait"
    )


def test_two_steps_do_not_sum_whole_numbers(slow):
    """A fraction is cut off otherwise beside a whole number than where it is added to it."""
    plan = edge_plan(slow, Arg("v", INC, 1, "i4", "edges->cells", (0,)))
    with pytest.raises(MeshprepError) as error:
        ParLoop(lambda v: None, plan, strategy="two-step")
    assert str(error.value) == (
        "loop 'loop': strategy 'two-step' cannot run it: argument 'v' holds whole numbers, and a "
        "fraction that waits for them is cut off before it is added"
    )


def add_four(a, b):
    a[0] += 1
    a[1] += 2
    b[0] += 3
    b[1] += 5


def test_two_steps_add_to_components_in_arrays_of_their_own(slow):
    """No element reaches the last points."""
    table = np.random.default_rng(0).integers(0, 7, (40, 2))
    loop = Loop("l", "cells", (Arg("a", INC, 2, "f8", "cells->p", (0, 1)),))
    plan = slow.plan({"cells": 40, "p": 10}, {"cells->p": table}, [loop])["l"]
    found = np.arange(20.0).reshape(2, 10)
    expected = found.copy()
    np.add.at(expected.T, table, np.array([[1.0, 2.0], [3.0, 5.0]]))
    ParLoop(add_four, plan, strategy="two-step", layout="soa")(a=found)
    assert np.array_equal(found, expected)
