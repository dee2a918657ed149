"""Parts against an independent builder: owners at random, every kind of set, empty parts."""

import pickle
from dataclasses import replace

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parts_arrays import arrays_of, check_part, proved
from parts_by_hand import mesh_subject, most, slow_part, slow_partial

from meshprep.distribute.build import order
from meshprep.distribute.halos import increments
from meshprep.distribute.halos.ghosts import PARTIAL
from meshprep.distribute.job.split import SplitOptions, split, split_by_owners
from meshprep.distribute.owners.inherit import inherit
from meshprep.distribute.subject import SplitSubject, subject_of_mesh, subject_of_plan
from meshprep.io.generate import generate
from meshprep.loops.options import Options
from meshprep.loops.request_maps import plan_request_maps
from meshprep.loops.requests import LoopSpec, simple_request
from meshprep.mesh.geometry import Means, centroids
from meshprep.pipeline.steps import prepare
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.checks.proof import prove
from meshprep_runtime.types.loops import Arg, Loop
from meshprep_runtime.types.maps import SetMap

MAPS = {
    "edges->cells": 2,
    "edges->nodes": 2,
    "rims->cells": 1,
    "cells->nodes": 3,
    "cells->cells": 2,
}


@st.composite
def subjects(draw):
    """Sets of cells, nodes, edges and boundary edges with random maps and loops."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    sizes = {name: int(rng.integers(1, 30)) for name in ("edges", "cells", "nodes", "rims")}
    sizes["edges"] = draw(st.integers(0, 40))
    maps = {}
    for name, arity in MAPS.items():
        start, _, to = name.partition("->")
        table = rng.integers(0, sizes[to], (sizes[start], arity))
        maps[name] = SetMap(name, start, to, table)
    specs = []
    for name in draw(
        st.lists(st.sampled_from(list(MAPS)), min_size=1, max_size=4, unique=True)
    ):
        access = draw(st.sampled_from(["inc", "read", "rw"]))
        columns = tuple(range(draw(st.integers(1, MAPS[name]))))
        args = [Arg("v", access, 1, "f8", name, columns)]
        if name.startswith("edges"):
            args.append(Arg("x", "read", 2, "f8", "edges->nodes", (0, 1)))
        specs.append(
            LoopSpec(Loop(f"over {name}", name.partition("->")[0], tuple(args)), {})
        )
    return SplitSubject(sizes, maps, tuple(specs)), rng


def written_by(subject, increments):
    found = {}
    for spec in subject.specs:
        if increments[spec.loop.name] == "exec":
            for name, columns in spec.loop.conflict_columns.items():
                found.setdefault(name, set()).update(columns)
    return found


def ids(subject, owners, parts, name, numbers):
    """Input numbers of elements by their numbers in the split mesh."""
    order = np.concatenate([p.sets[name].original for p in parts])
    return order[np.asarray(numbers, int)].tolist()


@settings(deadline=None, max_examples=effort.examples(20))
@given(subjects(), st.integers(1, 9), st.sampled_from(["exec", "auto"]))
def test_random_owners_give_the_parts_of_the_slow_builder(case, n_parts, way):
    subject, rng = case
    owners = {
        s: rng.integers(0, n_parts, n).astype(np.int32) for s, n in subject.sizes.items()
    }
    how = SplitOptions(increments=way)
    with pytest.MonkeyPatch.context() as patch:
        # so that increments are sent back
        patch.setattr(increments, "EXCHANGE", 0)
        made = split_by_owners(subject, owners, n_parts, how, Options(block_size=4)).builder
    parts = [made.build(p) for p in range(n_parts)]
    written = written_by(subject, made.increments)
    slow = [
        slow_part(subject.sizes, subject.maps, written, owners, p) for p in range(n_parts)
    ]
    for part, expected in zip(parts, slow, strict=True):
        check_part(part)
        for name, one in part.sets.items():
            runs = expected[name]
            own, copies = (
                one.original.tolist(),
                ids(subject, owners, parts, name, one.copies),
            )
            assert set(own[: one.core]) == runs["core"]
            assert set(own[one.core :]) == runs["boundary"]
            assert set(copies[: one.exec]) == runs["exec"]
            assert set(copies[one.exec :]) == runs["halo"]
            assert len(own) + len(copies) == sum(map(len, runs.values()))
        check_maps(subject, owners, parts, part)
        check_loops(part)
    check_messages(subject, parts)
    check_partial(subject, owners, parts, slow)
    assert proved(iter(parts), subject.sizes, n_parts).findings == []
    same_alone(made, range(n_parts // 2, n_parts))


def check_maps(subject, owners, parts, part):
    for m in part.maps.values():
        rows, points = (
            [*part.sets[s].original, *ids(subject, owners, parts, s, part.sets[s].copies)]
            for s in (m.from_set, m.to_set)
        )
        expected = subject.maps[m.name].table[rows[: part.sets[m.from_set].executed]]
        assert np.array_equal(np.array(points, int)[m.table], expected)


def check_loops(part):
    for loop in part.loops.values():
        over = part.sets[loop.plan.loop.over]
        (variant,) = loop.plan.variants.values()
        assert prove(loop.plan, variant) == []
        repeated = bool(loop.plan.loop.conflict_columns) and loop.increments == "exec"
        assert loop.plan.sizes[loop.plan.loop.over] == (
            over.executed if repeated else over.owned
        )
        colours, place = loop.colours[variant.name], variant.colour_of_block()
        for block, colour in enumerate(place):
            first, last = variant.block_offset[block], variant.block_offset[block + 1]
            low = next(
                i for i, end in enumerate((over.core, over.owned, 10**9)) if first < end
            )
            assert last <= (over.core, over.owned, over.executed)[low]
            assert low == int(colour >= colours.core) + int(colour >= colours.owned)


def check_messages(subject, parts):
    for name in subject.sizes:
        for kind in ("exec", "halo"):
            sent, received = {}, {}
            for part in parts:
                one = part.sets[name]
                send, receive = (
                    getattr(one, f"send_{kind}"),
                    getattr(one, f"receive_{kind}"),
                )
                number = [*range(one.owned_start, one.owned_start + one.owned), *one.copies]
                sent |= {(part.part, q): r for q, r in entries(send, number)}
                received |= {(q, part.part): r for q, r in entries(receive, number)}
            assert sent == received


def entries(messages, number):
    bounds = zip(messages.parts, messages.offset[:-1], messages.offset[1:], strict=True)
    for q, low, high in bounds:
        yield int(q), [int(number[i]) for i in messages.rows[low:high]]


def check_partial(subject, owners, parts, slow):
    for name, m in subject.maps.items():
        found = [
            slow_partial(subject.maps, name, one, owners, p) for p, one in enumerate(slow)
        ]
        count = sum(n for _, n in found)
        copies = sum(p.sets[m.to_set].exec + p.sets[m.to_set].halo for p in parts)
        assert all((name in p.partial) == (count < PARTIAL * copies) for p in parts)
        for part in parts if name in parts[0].partial else ():
            one = part.sets[m.to_set]
            number = [*range(one.owned_start, one.owned_start + one.owned), *one.copies]
            wanted = ids(
                subject,
                owners,
                parts,
                m.to_set,
                [number[i] for i in part.partial[name].receive.rows],
            )
            assert set(wanted) == found[part.part][0]
            for q, sent in entries(part.partial[name].send, number):
                other = parts[q].sets[m.to_set]
                theirs = [
                    *range(other.owned_start, other.owned_start + other.owned),
                    *other.copies,
                ]
                received = dict(entries(parts[q].partial[name].receive, theirs))
                assert received[part.part] == sent


@settings(deadline=None, max_examples=effort.examples(40))
@given(subjects(), st.integers(1, 5))
def test_sets_inherit_the_most_frequent_owner(case, n_parts):
    subject, rng = case
    leading = subject.leading_set
    own = rng.integers(0, n_parts, subject.sizes[leading]).astype(np.int32)
    found = inherit(subject, own, np.full(n_parts, 1 / n_parts))
    assert np.array_equal(found[leading], own)
    assert all(o.size == subject.sizes[s] for s, o in found.items())
    if leading == "cells":
        rows = found["cells"][subject.maps["edges->cells"].table].tolist()
        assert found["edges"].tolist() == [most(row, first=True) for row in rows]
        assert np.array_equal(found["rims"], own[subject.maps["rims->cells"].table[:, 0]])
        reached = [[] for _ in range(subject.sizes["nodes"])]
        for e, row in enumerate(subject.maps["edges->nodes"].table):
            for t in row:
                reached[t].append(int(found["edges"][e]))
        for t, around in enumerate(reached):
            if around:
                assert found["nodes"][t] == most(around, first=False)


@pytest.mark.parametrize("n_parts", [1, 4, 7])
@pytest.mark.parametrize("cut", ["metis", "rcb"])
def test_parts_of_a_mesh_are_even_and_hardly_touch(cut, n_parts):
    subject = mesh_subject("delaunay2d", ["edges->cells", "cells->nodes"], cells=3000)
    made = split(subject, n_parts, SplitOptions(cut), Options()).builder
    parts = [made.build(p) for p in range(n_parts)]
    owned = [p.sets["cells"].owned for p in parts]
    n = subject.sizes["cells"]
    assert sum(owned) == n
    assert max(owned) <= 1.03 * n / n_parts + 1
    copies = sum(p.sets["cells"].exec + p.sets["cells"].halo for p in parts)
    assert copies <= 4.5 * n_parts * (n / n_parts) ** 0.5 * (n_parts > 1)


def test_weights_are_shares_of_the_leading_set():
    subject = mesh_subject("delaunay2d", ["edges->cells"], cells=3000)
    for cut in ("metis", "rcb"):
        how = SplitOptions(cut, weights=(4.0, 1.0, 1.0))
        made = split(subject, 3, how, Options()).builder
        share = made.ordered.runs["cells"].offset / subject.sizes["cells"]
        assert np.allclose(share, [0, 4 / 6, 5 / 6, 1], atol=0.02)


@pytest.mark.parametrize("cut", ["metis", "rcb"])
@pytest.mark.parametrize("weights", [(1, 0, 2), (0, 0, 1, 1), (0, 1), (1, 0, 0)])
def test_a_part_of_no_weight_owns_nothing(cut, weights):
    subject = mesh_subject("delaunay2d", ["edges->cells"], cells=500)
    n, parts = subject.sizes["cells"], len(weights)
    made = split(subject, parts, SplitOptions(cut, weights=weights), Options()).builder
    owned = [made.build(p).sets["cells"].owned for p in range(parts)]
    assert np.allclose(owned, n * np.array(weights) / sum(weights), atol=0.03 * n)
    assert all(
        size == 0 for size, weight in zip(owned, weights, strict=True) if weight == 0
    )


def test_mixed_cells_keep_to_their_type_in_each_class():
    subject = mesh_subject("mixed2d", ["edges->cells", "quad->nodes"], nx=20, ny=20)
    quads = subject.segments["cells"][0]
    made = split(subject, 3, SplitOptions(), Options(block_size=32)).builder
    types = set()
    for part in map(made.build, range(3)):
        check_loops(part)
        cells, own = part.sets["cells"], part.sets["quad"]
        triangle = cells.original >= quads
        types.add(int(triangle.any()) + 2 * int((~triangle).any()))
        for run in (triangle[: cells.core], triangle[cells.core :]):
            assert (np.diff(run.astype(int)) >= 0).all()
        assert set(own.original) == set(cells.original[~triangle])
    assert 3 in types


@pytest.mark.parametrize(
    ("kind", "loops", "union"),
    [
        ("mixed2d", ["edges->cells", "quad->nodes", "triangle->nodes"], "cells"),
        (
            "mixed3d",
            ["faces->cells", "tetra->nodes", "triangle_faces->nodes", "quad_faces->nodes"],
            "faces",
        ),
    ],
)
def test_a_part_of_a_plan_owns_an_element_of_a_union_and_of_its_type(kind, loops, union):
    """Nothing else ties the two: no loop leads from edges to nodes."""
    mesh = generate(kind, nx=8, ny=8, seed=0)
    plan = prepare(mesh, loops, Options(block_size=32)).plan
    subject = subject_of_plan(plan)
    made = split(subject, 3, SplitOptions("metis"), Options(block_size=32)).builder
    parts = subject.unions[union]
    start = dict(zip(parts, np.cumsum([0, *subject.segments[union]]), strict=False))
    for part in map(made.build, range(3)):
        check_loops(part)
        own = part.sets[union].original[: part.sets[union].owned]
        below = [part.sets[p].original[: part.sets[p].owned] + start[p] for p in parts[:2]]
        known = own[own < start[parts[1]] + plan.sizes[parts[1]]]
        assert sorted(np.concatenate(below).tolist()) == sorted(known.tolist())


def test_more_parts_than_elements_leave_some_empty():
    subject = mesh_subject("delaunay2d", ["edges->cells"], cells=8)
    n = subject.sizes["cells"]
    made = split(subject, n + 3, SplitOptions(), Options()).builder
    owned = [made.build(p).sets["cells"].owned for p in range(n + 3)]
    assert owned == [1] * n + [0] * 3


def test_parts_that_own_nothing_are_not_ordered(monkeypatch):
    subject = mesh_subject("delaunay2d", ["edges->cells"], cells=8)
    n, ordered = subject.sizes["cells"], []
    usual = order.part_mesh

    def noted(**arguments):
        ordered.append(arguments["part"])
        return usual(**arguments)

    monkeypatch.setattr(order, "part_mesh", noted)
    made = split(subject, n + 9, SplitOptions(), Options()).builder
    assert sorted(ordered) == [
        p for p in range(n + 9) if np.diff(made.ordered.runs["cells"].offset)[p]
    ]
    assert len(ordered) == n
    same_alone(made, range(n + 9))


def same_alone(made, parts):
    """Parts that are made together are those that are made alone."""
    batch = made.batch(parts)
    for place, part in enumerate(parts):
        together, alone = batch.alone(place), made.batch(range(part, part + 1))
        assert (together.parts, together.arrays.keys()) == (
            alone.parts,
            alone.arrays.keys(),
        )
        read = arrays_of(made.build(part))
        for name, array in alone.arrays.items():
            assert np.array_equal(together.arrays[name], array), name
            assert together.arrays[name].dtype == array.dtype
            assert together.rows[name].tolist() == alone.rows[name].tolist() == [len(array)]
            assert np.array_equal(read[name], array)


def test_blocks_that_would_list_their_elements_are_refused():
    subject = mesh_subject("delaunay2d", ["edges->cells", "edges->nodes"], cells=300)
    first, second = subject.specs
    asked = replace(subject, specs=(first, replace(second, options={"partition": "metis"})))
    with pytest.raises(
        MeshprepError, match="'edges->nodes': another loop has ordered its set"
    ):
        split(asked, 2, SplitOptions(), Options(block_size=32))
    for wish in ("own_blocks", "sort_by_colour"):
        with pytest.raises(MeshprepError, match=f"leave {wish} out"):
            split(subject, 2, SplitOptions(), Options(**{wish: True}))
    asked = replace(subject, specs=(replace(first, options={"partition": "metis"}), second))
    part = split(asked, 2, SplitOptions(), Options()).builder.build(0)
    check_loops(part)


def test_centroids_of_what_reaches_the_leading_set_wait_until_they_are_asked_for():
    mesh = generate("delaunay3d", cells=600, seed=4)
    full, specs = plan_request_maps(mesh, [simple_request("faces->cells")])
    subject = subject_of_mesh(mesh, full, specs)
    sent = pickle.loads(pickle.dumps(subject)).shared()
    for name in ("faces", "boundary_faces"):
        assert isinstance(subject.centroids[name], Means)
        some = np.arange(0, full.size(name), 3)
        for one in (subject, sent):
            assert np.array_equal(one.centroids[name][some], centroids(full, name)[some])
    assert np.array_equal(subject.centroids["cells"], centroids(full, "cells"))
