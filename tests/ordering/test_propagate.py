import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.mesh import ElementSet, Mesh, SetMap
from meshprep.ordering import followers, keep_parts, order_by_ends, propagate
from meshprep_runtime import MeshprepError, Ordering


def mesh_of(sizes, tables, parts=None):
    """Sets by size, maps by name; ``parts`` names the parts of union sets."""
    parts = parts or {}
    sets = [
        ElementSet(name, n, parts=tuple(parts.get(name, ()))) for name, n in sizes.items()
    ]
    maps = []
    for name, rows in tables.items():
        from_set, to_set = name.rstrip("'").split("->")
        table = np.asarray(rows, dtype=np.int32).reshape(sizes[from_set], -1)
        maps.append(SetMap(name, from_set, to_set, table))
    return Mesh(sets, maps)


def order(*new_to_old):
    return Ordering.from_new_to_old(np.array(new_to_old))


def propagated(mesh, **known):
    return {name: o.new_to_old.tolist() for name, o in propagate(mesh, known).items()}


# two triangles and a quad in a row over six points, their unique inner edges, and one lone set
MIXED = mesh_of(
    {"nodes": 7, "triangle": 2, "quad": 1, "cells": 3, "faces": 2, "other": 2},
    {
        "triangle->nodes": [[0, 1, 2], [1, 2, 3]],
        "quad->nodes": [[2, 3, 5, 4]],
        "faces->cells": [[0, 1], [1, 2]],
    },
    {"cells": ("triangle", "quad")},
)


def test_everything_follows_the_nodes():
    found = propagated(MIXED, nodes=order(5, 4, 3, 2, 1, 0, 6))
    assert found == {
        "nodes": [5, 4, 3, 2, 1, 0, 6],
        "triangle": [1, 0],  # its new points are 2 3 4, those of triangle 0 are 3 4 5
        "quad": [0],
        "cells": [1, 0, 2],
        "faces": [0, 1],  # face 0 has new cells 0 1, face 1 has 0 2
        "other": [0, 1],
    }


def test_nodes_follow_the_cells_by_first_touch():
    found = propagated(MIXED, cells=order(1, 0, 2))
    # triangle 1 touches 1 2 3, triangle 0 adds 0, the quad 5 and 4; 6 is unused
    assert found["nodes"] == [1, 2, 3, 0, 5, 4, 6]
    assert (found["triangle"], found["quad"], found["cells"]) == ([1, 0], [0], [1, 0, 2])
    assert found["faces"] == [0, 1]


def test_a_union_set_reached_by_touch_keeps_its_parts():
    # the faces name the quad first
    found = propagated(MIXED, faces=order(1, 0))
    assert found["cells"] == [1, 0, 2]
    assert found["triangle"] == [1, 0]
    assert found["nodes"] == [1, 2, 3, 0, 5, 4, 6]


def test_lower_cells_follow_the_nodes():
    mesh = mesh_of(
        {"nodes": 4, "tetra": 1, "triangle": 2, "line": 2},
        {
            "tetra->nodes": [[0, 1, 2, 3]],
            "triangle->nodes": [[1, 2, 3], [0, 1, 2]],
            "line->nodes": [[2, 3], [3, 0]],
        },
    )
    found = propagated(mesh, nodes=order(0, 1, 2, 3))
    assert (found["tetra"], found["triangle"], found["line"]) == ([0], [1, 0], [1, 0])


def test_the_first_map_of_the_mesh_decides_and_from_maps_come_before_to_maps():
    sizes = {"a": 2, "b": 2, "c": 2}
    to_a, to_b = [[0], [1]], [[1], [0]]
    straight = mesh_of(sizes, {"c->a": to_a, "c->b": to_b})
    crossed = mesh_of(sizes, {"c->b": to_b, "c->a": to_a})
    assert propagated(straight, a=order(0, 1), b=order(0, 1))["c"] == [0, 1]
    assert propagated(crossed, a=order(0, 1), b=order(0, 1))["c"] == [1, 0]
    # b could follow c by touch, but its own map to a comes first
    both = mesh_of(sizes, {"c->b": [[0], [1]], "b->a": [[1], [0]]})
    assert propagated(both, a=order(0, 1), c=order(0, 1))["b"] == [1, 0]


def test_known_orders_are_kept_and_what_nothing_reaches_stays():
    known = {"nodes": order(6, 5, 4, 3, 2, 1, 0), "faces": order(1, 0)}
    found = propagate(MIXED, known)
    assert found["nodes"] is known["nodes"]
    assert found["faces"] is known["faces"]
    nothing = propagate(MIXED, {})
    assert list(nothing) == list(MIXED.sets)
    assert all(o.is_identity for o in nothing.values())


def test_a_map_that_is_not_onto_leaves_the_untouched_last():
    mesh = mesh_of({"a": 2, "b": 5, "c": 1}, {"a->b": [[3], [1]], "c->b": [[4]]})
    assert propagated(mesh, a=order(1, 0))["b"] == [1, 3, 0, 2, 4]
    # a second ordered set that maps into it decides what the first left open
    assert propagated(mesh, a=order(1, 0), c=order(0))["b"] == [1, 3, 4, 0, 2]


def test_keep_parts():
    assert keep_parts(np.array([4, 0, 3, 2, 1]), [2, 3]).tolist() == [0, 1, 4, 3, 2]
    assert keep_parts(np.array([1, 0]), [2]).tolist() == [1, 0]
    assert keep_parts(np.array([], dtype=np.int32), []).tolist() == []
    assert keep_parts(np.array([1, 0]), [0, 2, 0]).dtype == np.int32
    # more parts than numbers of one byte
    assert keep_parts(np.arange(600)[::-1], [2] * 300).tolist() == [
        i ^ 1 for i in range(600)
    ]
    with pytest.raises(
        MeshprepError, match="ordering of 2 elements does not fit parts of 3"
    ):
        keep_parts(np.array([1, 0]), [1, 2])


@pytest.mark.parametrize(
    ("known", "told"),
    [
        (
            {"cells": order(2, 0, 1)},
            "'cells' mixes its parts triangle, quad: pass it through keep",
        ),
        (
            {"cells": order(1, 0, 2), "triangle": order(0, 1)},
            "'cells' and of its part 'triangle'",
        ),
        ({"nodes": order(1, 0)}, "'nodes' has 2 elements, but the set has 7"),
        ({"edges": order(1, 0)}, "there is no set 'edges'"),
    ],
)
def test_orders_that_do_not_fit_are_refused(known, told):
    with pytest.raises(MeshprepError, match=told):
        propagate(MIXED, known)


def slow_step(mesh, done):
    """The first rule that applies, in the words of the docstring; None at the end."""
    for s in mesh.sets.values():
        base, places = 0, []
        for part in s.parts:
            n = mesh.size(part)
            if s.name in done and part not in done:
                inside = [i for i in done[s.name] if base <= i < base + n]
                return part, [i - base for i in inside]
            places += [base + i for i in done.get(part, [])]
            base += n
        if s.parts and s.name not in done and all(p in done for p in s.parts):
            return s.name, places
    for m in mesh.maps.values():
        if m.to_set in done and m.from_set not in done:
            new = {old: i for i, old in enumerate(done[m.to_set])}
            rows = [sorted(new[int(t)] for t in row) for row in m.table]
            return m.from_set, with_parts(
                mesh, m.from_set, sorted(range(m.size), key=rows.__getitem__)
            )
    for m in mesh.maps.values():
        if m.from_set in done and m.to_set not in done:
            touched = {}
            for other in mesh.maps.values():
                if other.to_set == m.to_set and other.from_set in done:
                    for i in done[other.from_set]:
                        touched |= dict.fromkeys(
                            int(t) for t in other.table[i] if t not in touched
                        )
            rest = [i for i in range(mesh.size(m.to_set)) if i not in touched]
            return m.to_set, with_parts(mesh, m.to_set, [*touched, *rest])
    return None


def with_parts(mesh, name, new_to_old):
    bounds = np.cumsum([mesh.size(p) for p in mesh.sets[name].parts])
    return sorted(new_to_old, key=lambda i: int(np.searchsorted(bounds, i, side="right")))


def slow_propagate(mesh, known):
    done = {name: o.new_to_old.tolist() for name, o in known.items()}
    while step := slow_step(mesh, done):
        done[step[0]] = step[1]
    for s in mesh.sets.values():
        # a union set that nothing reaches: its parts keep theirs, side by side
        if s.name not in done and not s.parts:
            done[s.name] = list(range(s.size))
    while step := slow_step(mesh, done):
        done[step[0]] = step[1]
    return done


@given(st.data())
@settings(deadline=None, max_examples=effort.examples(150))
def test_against_the_slow_version(data):
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    sizes = {name: int(random.integers(1, 6)) for name in "abcde"}
    sizes["union"] = sizes["a"] + sizes["b"]
    ends = st.sampled_from(sorted(sizes))
    pairs = data.draw(st.lists(st.tuples(ends, ends), max_size=7, unique=True))
    tables = {
        f"{f}->{t}": random.integers(0, sizes[t], (sizes[f], random.integers(1, 4)))
        for f, t in pairs
    }
    mesh = mesh_of(sizes, tables, {"union": ("a", "b")})
    names = data.draw(st.lists(st.sampled_from(["a", "c", "d", "union"]), unique=True))
    if "union" in names and "a" in names:
        names.remove("a")
    known = {n: Ordering.from_new_to_old(random.permutation(sizes[n])) for n in names}
    if "union" in known:
        kept = keep_parts(known["union"].new_to_old, [sizes["a"], sizes["b"]])
        known["union"] = Ordering.from_new_to_old(kept)
    found = propagate(mesh, known)
    assert {n: o.new_to_old.tolist() for n, o in found.items()} == slow_propagate(
        mesh, known
    )
    assert list(found) == list(mesh.sets)


def test_followers_are_tied_by_maps_and_unions():
    sizes = {"a": 1, "b": 1, "c": 1, "u": 2, "d": 1, "e": 1, "f": 1}
    mesh = mesh_of(sizes, {"a->b": [[0]], "d->u": [[0]], "e->f": [[0]]}, {"u": ("b", "c")})
    assert followers(mesh, ["a"]) == {"a", "b", "c", "u", "d"}
    assert followers(mesh, ["d"]) == {"a", "b", "c", "u", "d"}
    assert followers(mesh, ["f"]) == {"e", "f"}
    assert followers(mesh, []) == set()


def test_rows_may_follow_by_their_ends():
    mesh = mesh_of({"a": 3, "b": 5}, {"a->b": [[0, 4, 1], [2, 0, 3], [0, 3, 1]]})
    known = {"b": Ordering.identity(5)}
    assert propagate(mesh, known)["a"].new_to_old.tolist() == [2, 0, 1]
    assert propagate(mesh, known, order_by_ends)["a"].new_to_old.tolist() == [1, 2, 0]
    pairs = np.array([[3, 1], [0, 2], [1, 0]], np.int32)
    assert order_by_ends(pairs).tolist() == [2, 1, 0]


def test_what_was_sorted_before_is_not_sorted_again():
    table = np.array([[0, 1], [2, 0], [1, 2]], dtype=np.int32)
    mesh = Mesh([ElementSet("a", 3), ElementSet("p", 3)], [SetMap("a->p", "a", "p", table)])
    known = {"p": Ordering.identity(3)}
    assert propagate(mesh, known)["a"].new_to_old.tolist() == [0, 1, 2]
    given = np.array([2, 0, 1], dtype=np.int32)
    assert propagate(mesh, known, followed={"a->p": given})["a"].new_to_old.tolist() == [
        2,
        0,
        1,
    ]


def test_only_what_is_wanted_follows():
    table = np.array([[2, 0], [0, 1]], dtype=np.int32)
    mesh = Mesh([ElementSet("a", 2), ElementSet("p", 3)], [SetMap("a->p", "a", "p", table)])
    known = {"p": Ordering.identity(3)}
    assert propagate(mesh, known, wanted=["a"])["a"].new_to_old.tolist() == [1, 0]
    assert propagate(mesh, known, wanted=["p"])["a"].new_to_old.tolist() == [0, 1]
