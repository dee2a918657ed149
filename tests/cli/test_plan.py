"""``meshprep plan``: a mesh that keeps its order, and what its blocks may be."""

import os

import pytest

from meshprep_runtime import Plan


def test_plan_keeps_the_order_of_the_mesh(cli, mesh_file):
    before = mesh_file.read_bytes()
    assert cli("plan", mesh_file, "--loop", "cells->nodes", "-q")[0] == 0
    plan = Plan.load(mesh_file.with_name("wing.plan.h5"))
    assert plan.ordering["nodes"].is_identity
    assert plan.ordering["cells"].is_identity
    assert plan.source_hash == plan.mesh_hash
    assert mesh_file.read_bytes() == before
    assert sorted(os.listdir(mesh_file.parent)) == ["wing.msh", "wing.plan.h5"]


def test_plan_takes_any_partitioner(cli, shows, mesh_file):
    """Cells keep their numbers, and their blocks are those of a partitioner."""
    words = ("--loop", "cells->nodes", "--partition", "metis", "--block-size", 32)
    assert cli("plan", mesh_file, *words, "-q")[0] == 0
    path = mesh_file.with_name("wing.plan.h5")
    plan = Plan.load(path)
    variant = plan["cells->nodes"].variant()
    assert plan.ordering["cells"].is_identity
    assert (variant.partitioner, variant.elements is None) == ("metis", False)
    assert cli("check", path, "--mesh", mesh_file)[0] == 0
    kernel = mesh_file.with_name("three.py")
    kernel.write_text(
        "def add(a, b, c):\n    a[0] += 1.0\n    b[0] += 1.0\n    c[0] += 1.0\n"
    )
    short = ("--strategies", "hierarchical", "--block-sizes", 64, "--runs", 1, "-q")
    assert "s32" in shows("tune", path, "--kernel", f"{kernel}:add", *short)


def test_second_loops_get_blocks_of_their_own(cli, mesh_file):
    loops = ("--loop", "edges->cells", "--loop", "edges->nodes", "--block-size", 16)
    for words in ((), ("--own-blocks",)):
        assert cli("reorder", mesh_file, *loops, *words, "-q", "--force")[0] == 0
        plan = Plan.load(mesh_file.with_name("wing.plan.h5"))
        lists = [loop.variant().elements is not None for loop in plan.loops.values()]
        assert lists == [False, bool(words)]
        assert plan.options["own_blocks"] == bool(words)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), True),
        (("--own-blocks",), False),
        (("--partition", "contiguous"), False),
        (("--target", "cpu"), False),
        (("--loop", "edges:cells"), False),
    ],
)
def test_runs_of_an_order_that_stays_are_told(cli, mesh_file, words, told):
    loop = () if "--loop" in words else ("--loop", "cells:nodes")
    code, _, err = cli("plan", mesh_file, *loop, *words)
    said = "the blocks of cells->nodes are runs of the mesh's order: --own-blocks makes blocks that"
    assert (code, said in err) == (0, told)
