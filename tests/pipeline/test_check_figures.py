"""Figures that a plan records: those of its arrays, or named with what they should be."""

from dataclasses import replace

import numpy as np
import pytest

from meshprep import Mesh, Options, prepare
from meshprep.io.generate import generate
from meshprep.pipeline.check_file import check, wrong_figures
from meshprep.staging.recut import with_loop, with_sizes
from meshprep_runtime.plan.records import from_json, to_json

MATRIX = {"mat": "K", "rows": "cells->dofs1", "columns": "cells->dofs1", "access": "inc"}


@pytest.fixture(scope="module")
def plan():
    mesh = generate("delaunay2d", cells=300)
    made = prepare(mesh, ["edges->cells", "cells->nodes"], Options(block_size=32)).plan
    return with_loop(made, with_sizes(made["edges->cells"], [64])[0])


def two_meshes():
    """Sets that no chain of maps ties together, so that two loops lead."""
    chain = np.column_stack([np.arange(60), np.arange(60) + 1]).astype(np.int32)
    rng = np.random.default_rng(1)
    tables = {
        f"{e}->{p}": rng.permutation(61).astype(np.int32)[chain] for e, p in ("ep", "fq")
    }
    return Mesh({"e": 60, "p": 61, "f": 60, "q": 61}, tables)


@pytest.mark.parametrize(
    ("mesh", "loops", "chosen"),
    [
        ("delaunay3d", ["faces->cells"], {"method": "auto"}),
        ("delaunay2d", ["boundary_edges->cells", "edges->cells"], {"target": "cpu"}),
        (
            "delaunay2d",
            ["edges->cells", "edges->nodes"],
            {"own_blocks": True, "method": "none"},
        ),
        ("delaunay2d", ["cells->nodes"], {"partition": "metis", "keep_order": True}),
        (
            "delaunay2d",
            {"k": {"over": "cells", "args": [MATRIX]}},
            {"sort_by_colour": True},
        ),
        (two_meshes, ["e->p", "f->q"], {}),
    ],
)
def test_the_figures_of_plans_are_right(mesh, loops, chosen):
    made = generate(mesh, cells=200) if isinstance(mesh, str) else mesh()
    plan = prepare(made, loops, block_size=32, **chosen).plan
    assert plan.metrics.loops
    assert wrong_figures(plan) == []


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("loops/edges->cells/s32/after/reuse", "after/reuse is {}, but the plan gives"),
        ("loops/edges->cells/s64/after/loads", "'s64': the figure after/loads is {}, but"),
        (
            "loops/edges->cells/s32/after/block_colours",
            "after/block_colours is {}, but the plan",
        ),
        (
            "loops/edges->cells/s32/after/traffic/soa/read",
            "after/traffic/soa/read is {}, but",
        ),
        (
            "loops/edges->cells/s32/after/thread_colours/mean",
            "after/thread_colours/mean is {}",
        ),
    ],
)
def test_a_false_figure_is_named(plan, tmp_path, path, said):
    values = to_json(plan.metrics)
    *groups, name = path.split("/")
    at = values
    for group in groups:
        at = at[group]
    at[name] += 1
    false = replace(plan, metrics=from_json(type(plan.metrics), values, "metrics"))
    false.save(tmp_path / "a.plan.h5")
    found = check(tmp_path / "a.plan.h5")
    assert len(found.findings) == 1
    assert said.format(at[name]) in found.findings[0]
    assert "the plan is wrong" in found.verdict


def test_a_right_plan_and_one_without_figures(plan, tmp_path):
    for i, own in enumerate((plan, replace(plan, metrics=type(plan.metrics)()))):
        own.save(tmp_path / f"{i}.plan.h5")
        assert check(tmp_path / f"{i}.plan.h5").findings == []
