"""The proof finds every broken property, and says where."""

from dataclasses import replace

import numpy as np
import pytest
from plan_files import at, with_variant

from meshprep_runtime import Access, Arg, Loop, LoopPlan, Ordering, Plan, SetMap
from meshprep_runtime.errors import ProofError
from meshprep_runtime.plan.checks.proof import _races
from meshprep_runtime.plan.checks.verify import compare_maps, refuse_wrong, verify
from meshprep_runtime.types import maps

# A line of 7 cells between 8 nodes, each cell adding to both of its nodes, in blocks of 3.
LINE = Loop("line", "cells", (Arg("v", Access.INC, 1, "f8", "cells->nodes", (0, 1)),))
SIZES = {"cells": 7, "nodes": 8}
WHERE = "loop 'line', variant 's3'"
LOCAL = np.array([[0, 1, 2, 0, 1, 2, 0], [1, 2, 3, 1, 2, 3, 1]], dtype=np.uint16)
TABLE = np.column_stack([np.arange(7), np.arange(1, 8)])


@pytest.fixture(scope="module")
def line(slow):
    return slow.plan(SIZES, {"cells->nodes": TABLE}, [LINE], (3,))


def with_staging(plan, **changes):
    staging = plan["line"].variant().staging
    return with_variant(plan, staging={"nodes": replace(staging["nodes"], **changes)})


def test_the_line_is_as_drawn(line):
    """What the tests below break: three blocks, two block colours, two thread colours."""
    v = line["line"].variant()
    assert v.block_offset.tolist() == [0, 3, 6, 7]
    assert v.thread_colour.tolist() == [0, 1, 0, 0, 1, 0, 0]
    assert v.thread_colours.tolist() == [2, 2, 1]
    assert v.block_order.tolist() == [0, 2, 1]
    assert v.block_colour_offset.tolist() == [0, 2, 3]
    s = v.staging["nodes"]
    assert s.points.tolist() == [0, 1, 2, 3, 3, 4, 5, 6, 6, 7]
    assert s.exclusive.tolist() == [True] * 3 + [False] * 2 + [True] * 2 + [False] * 2 + [
        True
    ]
    assert v.local["cells->nodes"].tolist() == LOCAL.tolist()
    assert verify(line) == []


@pytest.mark.parametrize(
    ("changes", "finding"),
    [
        ({"block_size": 2}, "block 0 has 3 elements, more than 2 (1 more)"),
        ({"block_offset": np.array([0, 3, 2, 7])}, ", block_offset falls after entry 1"),
        ({"block_order": np.array([0, 0, 1], "i4")}, "block_order names block 0 2 times, not once"),
        (
            {"block_order": np.array([2, 0, 1], "i4")},
            "block 0 follows block 2 in its colour: blocks must ascend",
        ),
        (
            {"thread_colours": np.array([2, 3, 1], "i4")},
            "block 1 has thread colours 0..1, but thread_colours says 3",
        ),
        (
            {"thread_colour": np.array([0, 1, 0, 0, 1, 0, 1], "u1")}
            | {"thread_colours": np.array([2, 2, 2], "i4")},
            "block 2 has 2 thread colours for 1 elements",
        ),
        (
            {"sorted_by_colour": True},
            "block 0 is not sorted by thread colour at element 2 (1 more)",
        ),
        (
            {"thread_colour": np.array([0, 1, 1, 0, 1, 0, 0], "u1")},
            "set 'nodes': elements 1 and 2 of block 0 have thread colour 1 and both write point 2",
        ),
        (
            {
                "block_order": np.array([0, 1, 2], "i4"),
                "block_colour_offset": np.array([0, 2, 3]),
            },
            "set 'nodes': blocks 0 and 1 have block colour 0 and both write point 3",
        ),
        (
            {"thread_colour": np.zeros(7, "u1"), "thread_colours": np.ones(3, "i4")},
            "elements 0 and 1 of block 0 have thread colour 0 and both write point 1 (3 more)",
        ),
        (
            {"block_order": np.arange(3, dtype="i4"), "block_colour_offset": np.array([0, 3])},
            "blocks 0 and 1 have block colour 0 and both write point 3 (1 more)",
        ),
        (
            {"local": {"cells->nodes": at(LOCAL, 8, 0)}},
            "takes element 1 of block 0, column 1 to point 0, the map to 2",
        ),
    ],
)  # fmt: skip
def test_broken_variants(line, changes, finding):
    findings = verify(with_variant(line, **changes))
    assert len(findings) == 1
    assert findings[0].startswith(WHERE)
    assert findings[0].endswith(finding)


def test_an_empty_block_is_found(line):
    v = line["line"].variant()
    s = v.staging["nodes"]
    bad = with_variant(
        line,
        block_offset=np.insert(v.block_offset, 1, 3),
        block_order=np.array([0, 1, 3, 2], dtype=np.int32),
        block_colour_offset=np.array([0, 3, 4]),
        thread_colours=np.insert(v.thread_colours, 1, 0),
        staging={"nodes": replace(s, point_offset=np.insert(s.point_offset, 1, 4))},
    )
    assert verify(bad) == [f"{WHERE}: block 1 is empty"]


@pytest.mark.parametrize(
    ("changes", "finding"),
    [
        ({"points": [0, 1, 2, 3, 4, 3, 5, 6, 6, 7]}, "the staging list of block 1 does not ascend"),
        ({"points": [0, 1, 2, 2, 3, 4, 5, 6, 6, 7]}, "the staging list of block 0 does not ascend"),
        ({"exclusive": at([1, 1, 1, 0, 0, 1, 1, 0, 0, 1], 3, 1)},
         "point 3 is marked exclusive in block 0, which is wrong"),
        ({"exclusive": at([1, 1, 1, 0, 0, 1, 1, 0, 0, 1], 9, 0)},
         "point 7 is marked not exclusive in block 2, which is wrong"),
    ],
)  # fmt: skip
def test_broken_staging(line, changes, finding):
    changes = {
        k: np.array(v, dtype="i4" if k == "points" else "?") for k, v in changes.items()
    }
    findings = verify(with_staging(line, **changes))
    assert f"{WHERE}, set 'nodes': {finding}" in findings


def test_missing_and_superfluous_points(line):
    points = np.array([0, 1, 2, 3, 2, 4, 5, 6, 6, 7], dtype=np.int32)
    findings = verify(with_staging(line, points=points))
    assert findings[:2] == [
        f"{WHERE}, set 'nodes': the staging list of block 1 lacks point 3",
        f"{WHERE}, set 'nodes': the staging list of block 1 has superfluous point 2",
    ]


@pytest.mark.parametrize(("added", "more"), [([7], ""), ([4, 7], " (1 more)")])
def test_points_that_no_element_of_the_block_reaches(line, added, more):
    """Staged behind all that block 0 needs, so that every local index is right."""
    s = line["line"].variant().staging["nodes"]
    wrong = replace(
        s,
        points=np.insert(s.points, 4, added),
        point_offset=s.point_offset + len(added) * (s.point_offset > 0),
        exclusive=np.insert(s.exclusive, 4, False if len(added) == 1 else [False] * 2),
    )
    said = f"the staging list of block 0 has superfluous point {added[0]}{more}"
    assert verify(with_variant(line, staging={"nodes": wrong})) == [
        f"{WHERE}, set 'nodes': {said}"
    ]


def test_a_first_colour_of_one_block_is_right(line):
    changes = {"block_order": np.array([1, 0, 2], "i4")}
    assert (
        verify(with_variant(line, **changes, block_colour_offset=np.array([0, 1, 3]))) == []
    )


@pytest.mark.parametrize(
    ("forward", "back", "finding"),
    [
        ([1, 0, 2], [1, 0, 2], None),
        ([1, 2, 0], [1, 2, 0], "old_to_new is not the inverse of new_to_old at element 0"),
        (
            [0, 2, 3, 1],
            [0, 2, 3, 1],
            "old_to_new is not the inverse of new_to_old at element 1",
        ),
        ([1, 1, 0], [1, 2, 0], "new_to_old is no permutation: element 1 stands 2 times"),
        ([1, 2, 0], [1, 2, 3], "old_to_new[2] is 3, outside 0..2"),
        ([1, 2, -1], [1, 2, 0], "new_to_old[2] is -1, outside 0..2"),
        ([1, 2, 0], [1, 0], "old_to_new is no permutation: element 2 stands 0 times"),
        ([0, 1, 2], [0, 1, 2, 0], "old_to_new is no permutation: element 0 stands 2 times"),
        # clipped, these would be right
        ([-1, 1, 2], [0, 1, 2], "new_to_old[0] is -1, outside 0..2"),
        ([0, 1, 3], [0, 1, 2], "new_to_old[2] is 3, outside 0..2"),
        ([0, 1, 2], [0, 1], "old_to_new is no permutation: element 2 stands 0 times"),
    ],
)
@pytest.mark.parametrize("piece", [2, 1 << 16])
def test_orderings(forward, back, finding, piece, monkeypatch):
    monkeypatch.setattr(maps, "CHUNK", piece)
    ordering = Ordering(np.array(forward, dtype=np.int32), np.array(back, dtype=np.int32))
    findings = verify(Plan({"s": 3}, {"s": ordering}, {}, {}, "", ""))
    assert findings == ([] if finding is None else [f"ordering of 's': {finding}"])


def test_sizes_and_maps_must_agree(line):
    assert verify(replace(line, sizes={"cells": 7, "nodes": 9})) == [
        "ordering of 'nodes', new_to_old is int32 of shape (8,), must be int32 of shape (9,)"
    ]
    short = replace(line["line"], sizes={"cells": 7, "nodes": 7})
    assert verify(replace(line, loops={"line": short})) == [
        "map 'cells->nodes': element 6, column 1 has index 7, but set 'nodes' has 7 elements"
    ]
    other = {"cells->nodes": SetMap("cells->nodes", "cells", "nodes", TABLE[::-1])}
    assert verify(replace(line, maps=other)) == [
        "loop 'line' has a map 'cells->nodes' that differs from the plan's"
    ]
    tags = {"cells": {"physical": np.zeros(6, dtype=np.int64)}}
    assert verify(replace(line, tags=tags)) == [
        "tag 'physical' on 'cells' is int64 of shape (6,), must be int64 of shape (7,)"
    ]


def test_columns_that_are_only_read_need_no_colours(slow):
    """Column 0 is read, column 1 written: all seven cells may have one colour."""
    loop = Loop(
        "shift",
        "cells",
        (
            Arg("a", Access.READ, 1, "f8", "cells->nodes", (0,)),
            Arg("b", Access.INC, 1, "f8", "cells->nodes", (1,)),
        ),
    )
    plan = slow.plan(SIZES, {"cells->nodes": TABLE}, [loop], (3,))
    assert plan["shift"].variant().n_block_colours == 1
    assert plan["shift"].variant().thread_colour.max() == 0
    assert verify(plan) == []


def test_two_maps_into_one_set_conflict_together(slow):
    """Two elements that write one point through different maps must not share a colour."""
    loop = Loop(
        "both",
        "cells",
        (
            Arg("v", Access.INC, 1, "f8", "cells->a", (0,)),
            Arg("v", Access.INC, 1, "f8", "cells->b", (0,)),
        ),
    )
    maps = {
        "cells->a": SetMap("cells->a", "cells", "nodes", np.array([[0], [1], [2], [3]])),
        "cells->b": SetMap("cells->b", "cells", "nodes", np.array([[4], [0], [5], [3]])),
    }
    sizes = {"cells": 4, "nodes": 6}
    variant = slow.variant(loop, maps, 4, 2)
    loop_plan = LoopPlan(loop, sizes, maps, {"s2": variant}, "s2")
    plan = Plan(sizes, {}, maps, {"both": loop_plan}, "", "")
    assert variant.thread_colour.tolist() == [0, 1, 0, 0]
    assert verify(plan) == []
    bad = with_variant(
        plan, "both", thread_colour=np.zeros(4, "u1"), thread_colours=np.ones(2, "i4")
    )
    (finding,) = verify(bad)
    assert finding == (
        "loop 'both', variant 's2', set 'nodes': elements 0 and 1 of block 0 have thread colour 0 "
        "and both write point 0"
    )


# --- Blocks that list their elements ---

BACKWARDS = np.arange(7, dtype=np.int32)[::-1].copy()


@pytest.fixture(scope="module")
def backwards(line, slow):
    """The line with its elements taken from the other end: blocks of 3, 3 and 1."""
    plan = line["line"]
    variant = slow.listed(plan.loop, plan.maps, 7, 3, BACKWARDS)
    return replace(line, loops={"line": replace(plan, variants={"s3": variant})})


def test_a_list_is_as_drawn(backwards):
    v = backwards["line"].variant()
    assert verify(backwards) == []
    assert v.staging["nodes"].points.tolist() == [4, 5, 6, 7, 1, 2, 3, 4, 0, 1]
    assert v.local["cells->nodes"].tolist() == [
        [2, 1, 0, 2, 1, 0, 0],
        [3, 2, 1, 3, 2, 1, 1],
    ]
    assert v.block_of_element().tolist() == [2, 1, 1, 1, 0, 0, 0]
    assert v.block_of_place().tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert v.by_element(v.by_place(np.arange(7) + 5)).tolist() == list(range(5, 12))


def test_blocks_that_are_sorted_by_colour_are_right(line, slow):
    plan = line["line"]
    elements = np.array([0, 2, 1, 3, 5, 4, 6])
    variant = slow.listed(plan.loop, plan.maps, 7, 3, elements)
    assert variant.thread_colour.tolist() == [0, 0, 1, 0, 0, 1, 0]
    variants = {"s3": replace(variant, sorted_by_colour=True)}
    assert verify(replace(line, loops={"line": replace(plan, variants=variants)})) == []


@pytest.mark.parametrize(
    ("elements", "finding"),
    [
        (
            at(BACKWARDS, 2, 0),
            ": elements is no permutation: element 0 stands 2 times (1 more)",
        ),
        (
            at(BACKWARDS, 0, 5),
            ": elements is no permutation: element 5 stands 2 times (1 more)",
        ),
        (at(BACKWARDS, 4, 7), ", elements: entry 4 is 7, outside 0..6"),
        (at(BACKWARDS, 4, -1), ", elements: entry 4 is -1, outside 0..6"),
        (BACKWARDS[1:], ", elements is int32 of shape (6,), must be int32 of shape (7,)"),
        (
            BACKWARDS.astype("i8"),
            ", elements is int64 of shape (7,), must be int32 of shape (7,)",
        ),
        (
            np.roll(BACKWARDS, 3),
            ", set 'nodes': the staging list of block 0 lacks point 0 (8 more)",
        ),
    ],
)
def test_damaged_lists(backwards, elements, finding):
    first, *more = verify(with_variant(backwards, elements=elements))
    assert first.startswith(WHERE)
    assert first.endswith(finding)
    # of lists that are wrong as such nothing else is said
    assert "staging" in first or not more


def test_findings_name_elements_not_places(backwards):
    v = backwards["line"].variant()
    colours = {"thread_colour": np.array([0, 1, 1, 0, 1, 0, 0], "u1")}
    local = {"cells->nodes": at(v.local["cells->nodes"], 1, 3)}
    for changes, finding in (
        (
            colours,
            "elements 5 and 4 of block 0 have thread colour 1 and both write point 5",
        ),
        ({"local": local}, "takes element 5 of block 0, column 0 to point 7, the map to 5"),
        (
            {"sorted_by_colour": True},
            "block 0 is not sorted by thread colour at element 4 (1 more)",
        ),
    ):
        (found,) = verify(with_variant(backwards, **changes))
        assert found.startswith(WHERE)
        assert found.endswith(finding)


@pytest.mark.parametrize("piece", [2, 1 << 16])
def test_compare_maps_takes_the_numbering_of_the_input(line, piece, monkeypatch):
    monkeypatch.setattr(maps, "CHUNK", piece)
    cells, nodes = line.ordering["cells"], line.ordering["nodes"]
    table = nodes.new_to_old[TABLE][cells.old_to_new]
    m = replace(line.maps["cells->nodes"], table=table)
    assert compare_maps(line, {"cells->nodes": m, "other": m}) == []
    assert compare_maps(line, {}) == ["map 'cells->nodes' of the plan is not in the mesh"]
    # element 2 of the plan, whose second node is 3
    wrong = np.array(table)
    wrong[cells.new_to_old[2], 1] = nodes.new_to_old[7]
    assert compare_maps(line, {"cells->nodes": replace(m, table=wrong)}) == [
        "map 'cells->nodes': element 2, column 1 is 3 in the plan, 7 in the mesh (1 differ)"
    ]
    assert compare_maps(line, {"cells->nodes": replace(m, table=table[1:])}) == [
        "map 'cells->nodes' has 7 rows of 2 in the plan, 6 of 2 in the mesh"
    ]
    assert compare_maps(line, {"cells->nodes": replace(m, to_set="x")}) == [
        "map 'cells->nodes' goes from 'cells' to 'x' in the mesh"
    ]


def test_a_wrong_plan_is_a_fault_of_meshprep(line):
    refuse_wrong(line)
    with pytest.raises(
        ProofError, match=r"wrong in 1 places: loop 'line'.* block 0 has 3 "
    ):
        refuse_wrong(with_variant(line, block_size=1))
    with pytest.raises(ProofError, match="'cells->nodes' of the plan is not in the mesh"):
        refuse_wrong(line, {})


@pytest.mark.parametrize("colours", [2, 40])
@pytest.mark.parametrize("places", [30, 1000, 100_000])
def test_races_are_those_of_all_pairs(colours, places):
    """Of few colours and many, dense and sparse ones; an element may name a place twice."""
    rng = np.random.default_rng(places + colours)
    columns = [rng.integers(0, places, 400) for _ in range(2)]
    columns[1][:20] = columns[0][:20]
    columns[1][-1] = columns[0][-2]
    writer, colour = np.arange(400, dtype=np.int32), rng.integers(0, colours, 400, np.uint8)
    colour[-2:] = 1
    users = {}
    for column in columns:
        for place, c, element in zip(
            column.tolist(), colour.tolist(), range(400), strict=True
        ):
            users.setdefault((place, c), set()).add(element)
    expected = {place for (place, _), elements in users.items() if len(elements) > 1}
    found = _races(columns, writer, colour, places)
    assert set(found[:, 0].tolist()) == expected
    assert columns[0][-2] in expected
    for place, one, other in found.tolist():
        assert one < other
        assert {one, other} <= users[place, int(colour[one])]
