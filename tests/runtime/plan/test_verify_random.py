"""Random plans and random breaks: the proof finds what plain Python finds slowly."""

from dataclasses import replace
from itertools import pairwise

import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_files import at, random_plans, with_variant

from meshprep_runtime import LoopPlan, Variant
from meshprep_runtime.plan.checks.verify import verify


def slow_is_right(loop_plan: LoopPlan, v: Variant) -> bool:
    """Every property in plain Python, one element and one pair at a time."""
    loop, n = loop_plan.loop, loop_plan.sizes[loop_plan.loop.over]
    offset = v.block_offset.tolist()
    if offset[0] != 0 or offset[-1] != n:
        return False
    if any(not 0 < b - a <= v.block_size for a, b in pairwise(offset)):
        return False
    elements = list(range(n)) if v.elements is None else v.elements.tolist()
    if sorted(elements) != list(range(n)):
        return False
    blocks = [range(a, b) for a, b in pairwise(offset)]
    tables = {m: [loop_plan.maps[m].table[e].tolist() for e in elements] for m in loop.maps}
    cuts, order = v.block_colour_offset.tolist(), v.block_order.tolist()
    if sorted(order) != list(range(len(blocks))) or cuts[0] != 0 or cuts[-1] != len(blocks):
        return False
    if any(a > b for a, b in pairwise(cuts)):
        return False
    classes = [order[a:b] for a, b in pairwise(cuts)]
    if any(c != sorted(c) for c in classes):
        return False
    colour = v.thread_colour.tolist()
    if v.thread_colours.tolist() != [max(colour[e] for e in b) + 1 for b in blocks]:
        return False
    if any(v.thread_colours[b] > len(blocks[b]) for b in range(len(blocks))):
        return False
    for to_set in {loop_plan.maps[m].to_set for m in loop.maps}:
        names = [m for m in loop.maps if loop_plan.maps[m].to_set == to_set]
        touch = [{p for m in names for p in tables[m][e]} for e in range(n)]
        write = [
            {tables[m][e][k] for m in names for k in loop.conflict_columns.get(m, ())}
            for e in range(n)
        ]
        s = v.staging[to_set]
        bounds = s.point_offset.tolist()
        if (
            bounds[0] != 0
            or any(a > b for a, b in pairwise(bounds))
            or bounds[-1] != s.points.size
        ):
            return False
        lists = [s.points[a:b].tolist() for a, b in pairwise(bounds)]
        touched = [sorted(set().union(*(touch[e] for e in b))) for b in blocks]
        if lists != touched:
            return False
        every = [p for points in touched for p in points]
        if s.exclusive.tolist() != [every.count(p) == 1 for p in every]:
            return False
        for b, elements in enumerate(blocks):
            for m in names:
                for e in elements:
                    local = v.local[m][:, e].tolist()
                    if max(local) >= len(lists[b]):
                        return False
                    if [lists[b][i] for i in local] != tables[m][e]:
                        return False
            for e1 in elements:
                for e2 in range(e1 + 1, elements.stop):
                    if colour[e1] == colour[e2] and write[e1] & write[e2]:
                        return False
        for c in classes:
            for i, b1 in enumerate(c):
                for b2 in c[i + 1 :]:
                    w1 = set().union(*(write[e] for e in blocks[b1]))
                    w2 = set().union(*(write[e] for e in blocks[b2]))
                    if w1 & w2:
                        return False
    return True


ARRAYS = (
    "block_offset",
    "block_colour_offset",
    "block_order",
    "thread_colour",
    "thread_colours",
)


@settings(deadline=None, max_examples=effort.examples(150))
@given(random_plans(), st.booleans(), st.data())
def test_random_plans_and_random_breaks(slow, made, lists, data):
    sizes, tables, loop, block_size = made
    plan = slow.plan(sizes, tables, [loop], (block_size,), lists=lists)
    assert verify(plan) == []
    variant = plan["loop"].variant()
    assert slow_is_right(plan["loop"], variant)
    choices = {name: (getattr(variant, name), ()) for name in ARRAYS}
    if lists:
        choices["elements"] = (variant.elements, ())
    for name, local in variant.local.items():
        choices[f"local {name}"] = (local, ("local", name))
    for to, s in variant.staging.items():
        for field in ("points", "point_offset", "exclusive"):
            choices[f"{field} {to}"] = (getattr(s, field), ("staging", to, field))
    name = data.draw(st.sampled_from(sorted(choices)))
    values, place = choices[name]
    index = data.draw(st.integers(0, values.size - 1))
    low = -1 if values.dtype.kind == "i" else 0
    new = at(values, index, data.draw(st.integers(low, 1 if values.dtype == bool else 15)))
    if not place:
        changes = {name: new}
    elif place[0] == "local":
        changes = {"local": {**variant.local, place[1]: new}}
    else:
        s = replace(variant.staging[place[1]], **{place[2]: new})
        changes = {"staging": {**variant.staging, place[1]: s}}
    broken = with_variant(plan, "loop", **changes)
    findings = verify(broken)
    assert (not findings) == slow_is_right(broken["loop"], broken["loop"].variant())
    assert all("\n" not in line and "loop 'loop'" in line for line in findings)
