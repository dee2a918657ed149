"""Cells that a file keeps together: every plan has them so, and no block of a partitioner mixes."""

import effort
import netCDF4
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meshprep
from meshprep import Tag, io
from meshprep.io.deck.types import NAME
from meshprep.io.generate import generate
from meshprep.mesh import ElementSet, Mesh, SetMap
from meshprep.pipeline.steps import Options, cut_and_colour, order
from meshprep.staging.numbering import Numbering
from meshprep_cli.main import main
from meshprep_runtime.types.ordering import Ordering

LOOPS = ("cells->nodes", "faces->cells")


def box(n=6):
    return generate("box", nx=n, ny=n, nz=n, seed=2)


def bare(n):
    """The hexahedra of a box alone, without what bounds it."""
    mesh = box(n)
    sets = [mesh.sets["nodes"], mesh.sets["cells"]]
    return Mesh(sets, [mesh.map("cells->nodes")], [mesh.dat("coordinates", "nodes")])


def planned(mesh, loop, groups, **options):
    chosen = Options(block_size=64, **options)
    return cut_and_colour(order(mesh, [loop], chosen, groups=groups), chosen)


def split(n, parts, seed=0):
    """A group for each of ``n`` cells, in random places."""
    return np.random.default_rng(seed).integers(0, parts, n) * 7 - 3


@settings(deadline=None, max_examples=effort.examples(60))
@given(st.data())
def test_a_set_with_groups_is_sorted_by_them_stably(data):
    """Against Python's own sorting; a union has its parts one after the other."""
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=2, max_size=2))
    sets = [
        ElementSet("a", sizes[0]),
        ElementSet("b", sizes[1]),
        ElementSet("ab", sum(sizes), parts=("a", "b")),
    ]
    mesh = Mesh(sets, [SetMap("a->b", "a", "b", np.zeros((sizes[0], 1), np.int32))])
    group = data.draw(st.lists(st.integers(-2, 3), min_size=sizes[0], max_size=sizes[0]))
    start = Numbering.of(mesh, groups={"a": np.array(group)})
    now = sorted(range(sizes[0]), key=lambda i: group[i])
    assert start.ordering("a").new_to_old.tolist() == now
    move = data.draw(st.permutations(range(sizes[0])))
    moved = start.moved("a", np.array(move, np.int32)).ordering("a").new_to_old
    assert moved.tolist() == sorted([now[i] for i in move], key=lambda i: group[i])
    given_order = Ordering.from_new_to_old(np.array(move))
    followed = start.following({"a": given_order}).ordering("a").new_to_old
    assert followed.tolist() == sorted(move, key=lambda i: group[i])
    # of the union, relative to now
    both = data.draw(st.permutations(range(sum(sizes))))
    kept = start.together("ab", np.array(both, np.int32)).tolist()
    key = {i: group[old] for i, old in enumerate(now)}
    assert kept == sorted(both, key=lambda i: (i >= sizes[0], key.get(i, 0)))


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    "options", [{}, {"target": "cpu"}, {"sort_by_colour": True}, {"partition": "blocks"}]
)
@pytest.mark.parametrize("parts", [2, 5, 400])
def test_a_plan_keeps_groups_together(loop, options, parts):
    """The proof has passed; cells ascend by group, and so do those in a block of a partitioner."""
    mesh = box()
    group = split(mesh.size("cells"), parts)
    plan = planned(mesh, loop, {"cells": group}, **options)
    new = group[plan.ordering["cells"].new_to_old]
    assert (np.diff(new) >= 0).all()
    loop_plan = next(iter(plan.loops.values()))
    if loop == "cells->nodes" and parts == 2 and options.get("target") != "cpu":
        bound = loop_plan.variant().block_offset
        assert {*np.flatnonzero(np.diff(new)) + 1} <= {*bound.tolist()}
        # as full as without groups, but for the last block of each
        assert bound.size - 1 <= -(-mesh.size("cells") // 64) * 1.1 + parts


def test_tiny_groups_share_blocks():
    """A group for each cell: runs of the only order that there is."""
    mesh = box()
    n = mesh.size("cells")
    group = np.random.default_rng(1).permutation(n)
    plan = planned(mesh, "cells->nodes", {"cells": group})
    np.testing.assert_array_equal(
        plan.ordering["cells"].new_to_old, Ordering.from_new_to_old(group).old_to_new
    )
    variant = next(iter(plan.loops.values())).variant()
    assert variant.block_offset.size - 1 == -(-n // 64)


@pytest.mark.parametrize("loop", LOOPS)
def test_one_group_is_none(loop):
    mesh = box()
    ones = np.full(mesh.size("cells"), 5)
    free, same = (planned(mesh, loop, groups) for groups in ({}, {"cells": ones}))
    for name in mesh.sets:
        np.testing.assert_array_equal(
            free.ordering[name].new_to_old, same.ordering[name].new_to_old
        )


def test_groups_cost_little():
    """Two halves of a box: the points that blocks load, and blocks, beside a free order."""
    mesh = box(12)
    x = mesh.coordinates[mesh.map("cells->nodes").table].mean(axis=1)[:, 0]
    group = x < np.median(x)
    metrics = [
        planned(mesh, "cells->nodes", groups).loops["cells->nodes"].variant()
        for groups in ({}, {"cells": group})
    ]
    loads = [sum(s.points.size for s in v.staging.values()) for v in metrics]
    assert loads[1] < 1.05 * loads[0]
    assert metrics[1].block_offset.size <= metrics[0].block_offset.size + 2


@pytest.mark.parametrize(
    ("ending", "name"),
    [(".e", "exodus:block"), (".cgns", "cgns:section"), (".inp", "abaqus:type")],
)
def test_blocks_of_other_formats_stay_whole(ending, name, tmp_path):
    """Nothing is lost by an order, and the file has as many blocks as before."""
    mesh = bare(4)
    names = {i: kind for i, kind in NAME.items() if kind in ("C3D8I", "C3D8R")}
    group = np.array([*names])[(split(mesh.size("cells"), 2) > 0).astype(int)]
    mesh = mesh.renumber(
        {"cells": Ordering.from_new_to_old(np.argsort(group, kind="stable"))}
    ).with_(tags=[Tag.from_ids(name, "cells", np.sort(group), names)])
    old, new = tmp_path / f"old{ending}", tmp_path / f"new{ending}"
    assert io.write(mesh, old) == []
    prepared = meshprep.prepare(meshprep.read(old), ["faces->cells"], block_size=32)
    assert not prepared.plan.ordering["cells"].is_identity
    assert io.write(prepared.mesh, new) == []
    found = io.read(new).tag(name, "cells")
    told = {found.names.get(i) or names[i] for i in found.group_id.tolist()}
    assert told == {*names.values()}
    assert np.count_nonzero(np.diff(found.first_ids())) == 1
    if ending == ".e":
        with netCDF4.Dataset(new) as file:
            rows = np.concatenate([file[f"connect{i}"][:] for i in (1, 2)])
        np.testing.assert_array_equal(rows - 1, prepared.mesh.map("cells->nodes").table)
    if ending == ".inp":
        assert new.read_text().count("*ELEMENT,") == old.read_text().count("*ELEMENT,")


def test_the_output_decides_what_stays_together(tmp_path):
    """A VTU file keeps no cells together, the Exodus file that is written from it does."""
    mesh = bare(4)
    group = split(mesh.size("cells"), 3) // 7 + 2
    mesh = mesh.with_(tags=[Tag.from_ids("exodus:block", "cells", group)])
    io.write(mesh, tmp_path / "a.vtu")
    wanted = ["--loop", "faces->cells", "-q", "--plan", str(tmp_path / "a.h5")]
    source = str(tmp_path / "a.vtu")
    assert main(["reorder", source, "-o", str(tmp_path / "a.e"), *wanted]) == 0
    found = io.read(tmp_path / "a.e").tag("exodus:block", "cells").first_ids()
    assert np.count_nonzero(np.diff(found)) == 2
    assert sorted(found) == sorted(group)
