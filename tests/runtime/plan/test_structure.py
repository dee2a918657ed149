"""What a compiled loop could not survive is refused, one line each: nothing but this checks it."""

from dataclasses import replace

import numpy as np
import pytest
from plan_files import at, with_variant

from meshprep_runtime import Access, Arg, Loop, PlanError, SetMap
from meshprep_runtime.plan.checks.structure import check_loop, check_plan

LOOP, V = "loop 'res_calc'", "loop 'res_calc', variant 's8'"
E2C = "edges->cells"


def with_loop(plan, **changes):
    return replace(plan, loops={"res_calc": replace(plan["res_calc"], **changes)})


def with_map(plan, **changes):
    """The same map, changed in the plan and in its loop."""
    maps = {**plan.maps, E2C: replace(plan.maps[E2C], **changes)}
    return replace(with_loop(plan, maps=maps), maps=maps)


def with_order(plan, change):
    order = plan.ordering["cells"]
    return replace(
        plan, ordering={**plan.ordering, "cells": replace(order, old_to_new=change(order))}
    )


def with_staging(plan, **changes):
    staging = plan["res_calc"].variant().staging
    return with_variant(
        plan, "res_calc", staging={**staging, "cells": replace(staging["cells"], **changes)}
    )


def with_column(plan, column):
    """A loop that takes a column of a map."""
    loop = Loop("res_calc", "edges", (Arg("q", Access.READ, 4, "f8", E2C, (0, column)),))
    return with_loop(plan, loop=loop)


def further(plan, rows, tag="physical"):
    return replace(plan, further_groups={"cells": {tag: np.array(rows, np.int64)}})


def other_sizes(plan, **sizes):
    return {**plan.sizes, **sizes}


def staged(plan):
    return plan["res_calc"].variant().staging["cells"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda p: with_order(p, lambda o: at(o.old_to_new, 3, 24)),
            "ordering of 'cells', old_to_new: entry 3 is 24, outside 0..23",
        ),
        (
            lambda p: with_order(p, lambda o: o.old_to_new[1:]),
            "ordering of 'cells', old_to_new is int32 of shape (23,), must be int32 of shape (24,)",
        ),
        (
            lambda p: replace(p, sizes=other_sizes(p, edges=37), ordering={}, tags={}),
            "map 'edges->nodes' has not one row an element of 'edges'",
        ),
        (
            lambda p: replace(p, sizes={"edges": 38}, ordering={}, tags={}),
            "map 'edges->nodes' names set 'nodes', which the plan does not have",
        ),
        (
            lambda p: replace(
                p, maps={**p.maps, "x": SetMap("x", "edges", "cells", [[24]] * 38)}
            ),
            "map 'x': element 0, column 0 has index 24, but set 'cells' has 24 elements",
        ),
        (
            lambda p: replace(p, tags={"faces": {}}),
            "a tag names set 'faces', which the plan does not have",
        ),
        (
            lambda p: replace(p, group_names={"cells": {"entity": {1: "wall"}}}),
            "names of groups on 'cells' belong to no tag of the plan",
        ),
        (
            lambda p: replace(p, group_names={"cells": {"physical": {1: "far\nfield"}}}),
            "a name of a group on 'cells' has a line break",
        ),
        (
            lambda p: further(p, [[0, 1]], tag="entity"),
            "further groups on 'cells' belong to no tag of the plan",
        ),
        (
            lambda p: further(p, [[24, 1]]),
            "further groups 'physical' on 'cells': entry 0 is 24, outside 0..23",
        ),
        (
            lambda p: further(p, [[2, 1], [1, 1]]),
            "further groups 'physical' on 'cells': the elements do not ascend",
        ),
        (
            lambda p: further(p, [[2, 1, 1]]),
            (
                "further groups 'physical' on 'cells' is int64 of shape (1, 3), "
                "must be int64 of shape (1, 2)"
            ),
        ),
        (
            lambda p: replace(p, loops={"other": p["res_calc"]}),
            "loop 'other' calls itself 'res_calc'",
        ),
        (
            lambda p: replace(p, maps={"edges->nodes": p.maps["edges->nodes"]}),
            f"loop 'res_calc' uses map '{E2C}', which the plan does not have",
        ),
        (
            lambda p: with_loop(p, maps={E2C: p.maps[E2C]}),
            "loop 'res_calc' uses map 'edges->nodes', which the plan does not have",
        ),
        (
            lambda p: with_loop(
                p, maps={**p.maps, E2C: replace(p.maps[E2C], to_set="nodes")}
            ),
            f"loop 'res_calc' has a map '{E2C}' that differs from the plan's",
        ),
        (
            lambda p: with_loop(p, sizes=other_sizes(p, cells=25)),
            "loop 'res_calc': set 'cells' has not the plan's size",
        ),
        (
            lambda p: with_map(p, from_set="cells", table=p.maps[E2C].table[:24]),
            f"{LOOP}: map '{E2C}' has not one row an element of 'edges'",
        ),
        (
            lambda p: with_column(p, 2),
            f"{LOOP}: argument 'q' takes column 2 of map '{E2C}', which has 2",
        ),
        (
            lambda p: with_loop(p, default="s9"),
            f"{LOOP}: its default variant 's9' is missing",
        ),
        (
            lambda p: with_variant(p, "res_calc", thread_colours=np.ones(4, "i4")),
            f"{V}, thread_colours is int32 of shape (4,), must be int32 of shape (5,)",
        ),
        (
            lambda p: with_variant(
                p,
                "res_calc",
                local={
                    **p["res_calc"].variant().local,
                    E2C: p["res_calc"].variant().local[E2C][:1],
                },
            ),
            f"{V}, local map '{E2C}' is uint16 of shape (1, 38), must be uint16 of shape (2, 38)",
        ),
        (
            lambda p: with_variant(p, "res_calc", staging={"cells": staged(p)}),
            f"{V} stages nothing for map 'edges->nodes'",
        ),
        (
            lambda p: with_variant(p, "res_calc", block_offset=np.zeros(0, "i8")),
            f"{V}, block_offset does not go from 0 to 38",
        ),
        (
            lambda p: with_variant(p, "res_calc", block_colour_offset=np.array([0, 6])),
            f"{V}, block_colour_offset does not go from 0 to 5",
        ),
        (
            lambda p: with_variant(p, "res_calc", block_order=np.zeros(4, "i4")),
            f"{V}, block_order is int32 of shape (4,), must be int32 of shape (5,)",
        ),
        (
            lambda p: with_staging(p, point_offset=np.array([0, staged(p).points.size])),
            f"{V}, set 'cells': point_offset has not one entry a block and one more",
        ),
        (
            lambda p: with_staging(p, point_offset=staged(p).point_offset + 1),
            f"{V}, set 'cells', point_offset does not go from 0 to 46",
        ),
        (
            lambda p: with_staging(p, points=staged(p).points.astype("i8")),
            f"{V}, set 'cells', points is int64 of shape (46,), must be int32 of shape (46,)",
        ),
        (
            lambda p: with_staging(p, exclusive=staged(p).exclusive[1:]),
            f"{V}, set 'cells', exclusive is bool of shape (45,), must be bool of shape (46,)",
        ),
    ],
)
def test_what_does_not_fit_is_refused(airfoil, change, said):
    check_plan(airfoil)
    with pytest.raises(PlanError) as error:
        check_plan(change(airfoil))
    assert str(error.value) == said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            lambda p: {"maps": {}},
            f"{LOOP} uses map 'edges->nodes', which the plan does not have",
        ),
        (
            lambda p: {"maps": {**p.maps, E2C: replace(p.maps[E2C], from_set="cells")}},
            f"{LOOP}: map '{E2C}' has not one row an element of 'edges'",
        ),
        (
            lambda p: {
                "maps": {**p.maps, E2C: replace(p.maps[E2C], table=p.maps[E2C].table[1:])}
            },
            f"{LOOP}: map '{E2C}' has not one row an element of 'edges'",
        ),
        (
            lambda p: {"sizes": {"edges": 38, "cells": 24}},
            "map 'edges->nodes' names set 'nodes', which the plan does not have",
        ),
        (
            lambda p: {"sizes": {}},
            f"{LOOP} names set 'edges', which the plan does not have",
        ),
        (
            lambda p: {"rows": {"cells": 23}},
            f"map '{E2C}': element 32, column 1 has index 23, but set 'cells' has 23 elements",
        ),
    ],
)
def test_a_loop_alone_is_refused_too(airfoil, changes, said):
    """The loops of a part have rows of copies behind their sets; verify takes a loop at a time."""
    loop_plan = airfoil["res_calc"]
    check_loop(replace(loop_plan, rows={"cells": 25}))
    with pytest.raises(PlanError) as error:
        check_loop(replace(loop_plan, **changes(loop_plan)))
    assert str(error.value) == said


def test_one_past_the_staging_list(airfoil):
    """The last local index that is right, and the first that is not, in each block."""
    v = airfoil["res_calc"].variant()
    staged = np.diff(v.staging["cells"].point_offset)
    for b, start in enumerate(v.block_offset[:-1].tolist()):
        for local, fits in ((staged[b] - 1, True), (staged[b], False)):
            changed = {**v.local, E2C: at(v.local[E2C], start, local)}
            plan = with_variant(airfoil, "res_calc", local=changed)
            if fits:
                check_plan(plan)
                continue
            with pytest.raises(
                PlanError, match=f"element {start}, column 0 is {local}, but its"
            ):
                check_plan(plan)
