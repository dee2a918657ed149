"""Coordinates, groups and fields of parts are those of the mesh, whoever reads and splits it."""

from dataclasses import replace

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parts_arrays import check_part, proved
from parts_files import SMALL, all_parts
from thread_ranks import on_ranks

from meshprep.distribute.job.check import check_parts
from meshprep.distribute.job.run import SplitJob, run
from meshprep.distribute.job.split import SplitOptions, split
from meshprep.distribute.subject import subject_of_mesh, subject_of_plan, tag_of_ids
from meshprep.io import read, write
from meshprep.io.generate import generate
from meshprep.io.source import MeshSource
from meshprep.loops.request_maps import plan_request_maps
from meshprep.loops.requests import simple_request
from meshprep.mesh import Dat, Tag
from meshprep.mesh.assemble import GroupTable
from meshprep.pipeline.steps import prepare
from meshprep_runtime import DistributedPlan, run_ranks
from meshprep_runtime.errors import MeshprepError, UnknownNameError

LOOPS = {
    "delaunay2d": ("edges->cells", "cells->nodes", "boundary_edges->nodes"),
    "mixed2d": ("edges->cells", "quad->nodes", "boundary_edges->cells"),
    "mixed3d": ("faces->cells", "tetra->nodes", "boundary_faces->cells"),
}
NAMES = {1: "wall", 2: "inflow", 9: "of nothing"}


def with_groups(mesh, rng):
    """Random groups, some of which overlap, and values, on every set of a mesh."""
    tags, dats = [], []
    for s in (s for s in mesh.sets.values() if not s.parts):
        lists = [(), (1,), (2, 1), (3,), (1, 2, 7), (5,)]
        made = GroupTable.of(lists, rng.integers(0, len(lists), s.size).astype(np.int32))
        arrays = made.values, made.group_offset, made.group_id
        tags.append(Tag("physical", s.name, *arrays, NAMES))
        dats.append(Dat("p", s.name, rng.random((s.size, 3))))
        dats.append(Dat("n", s.name, rng.integers(0, 99, s.size).astype(">i4")))
    return replace(mesh, tags=tuple(tags), dats=(*mesh.dats, *dats))


def numbers_of(parts, part, name):
    """The number in the mesh of each local element."""
    every = np.concatenate([p.sets[name].original for p in parts])
    return np.concatenate([part.sets[name].original, every[part.sets[name].copies]])


def groups_of(mesh, name, number):
    """The groups of an element, the first one first."""
    parts = mesh.sets[name].parts
    for part in parts if mesh.tag("physical", name) is None else ():
        if number < mesh.size(part):
            return groups_of(mesh, part, number)
        number -= mesh.size(part)
    tag = mesh.tag("physical", name)
    first, *more = tag.groups(tag.values[number]) or (0,)
    return first, set(more) - {first}


def assert_values_of(mesh, parts, fields):
    for part in parts:
        check_part(part)
        assert set(part.coordinates) == {"nodes"} & set(part.sets)
        for name, one in part.sets.items():
            numbers = numbers_of(parts, part, name)
            if name == "nodes":
                assert np.array_equal(part.coordinates[name], mesh.coordinates[numbers])
            if not any(t.set in (name, *mesh.sets[name].parts) for t in mesh.tags):
                assert name not in part.tags
                continue
            further = part.further_groups.get(name, {}).get(
                "physical", np.empty((0, 2), int)
            )
            found = [set() for _ in range(one.size)]
            for element, group in further.tolist():
                found[element].add(group)
            first = part.tags[name]["physical"].tolist()
            expected = [groups_of(mesh, name, number) for number in numbers.tolist()]
            assert list(zip(first, found, strict=True)) == expected
            assert part.group_names[name]["physical"].items() >= NAMES.items()
            for label in ("p", "n"):
                dat = mesh.dat(label, name)
                assert (dat is not None and fields) == (label in part.fields.get(name, {}))
                if dat is not None and fields:
                    assert np.array_equal(part.fields[name][label], dat.values[numbers])


@settings(deadline=None, max_examples=effort.examples(25))
@given(
    st.sampled_from(list(LOOPS)),
    st.integers(0, 2**32 - 1),
    st.integers(1, 7),
    st.booleans(),
)
def test_parts_have_the_values_of_the_mesh(kind, seed, n_parts, fields):
    rng = np.random.default_rng(seed)
    sides = rng.integers(1, 5, 3).tolist()
    size = {"delaunay2d": {"cells": int(rng.integers(4, 90))}}.get(kind)
    sides[0] += 3
    size = size or dict(
        zip(("nx", "ny", "nz")[: 2 + (kind == "mixed3d")], sides, strict=False)
    )
    mesh = with_groups(generate(kind, seed=0, **size), rng)
    full, specs = plan_request_maps(mesh, [simple_request(one) for one in LOOPS[kind]])
    subject = subject_of_mesh(mesh, full, specs, fields=fields)
    n_parts = min(n_parts, subject.sizes[subject.leading_set])
    made = split(subject, n_parts, SplitOptions("rcb"), SMALL).builder
    parts = [made.build(p) for p in range(n_parts)]
    assert_values_of(full, parts, fields)
    assert proved(iter(parts), subject.sizes, n_parts).findings == []


@settings(deadline=None, max_examples=effort.examples(30))
@given(st.lists(st.lists(st.integers(1, 4), max_size=4), max_size=8))
def test_a_tag_comes_from_first_and_further_groups(lists):
    made = GroupTable.of(
        [tuple(one) for one in lists], np.arange(len(lists), dtype=np.int32)
    )
    tag = Tag("physical", "cells", made.values, made.group_offset, made.group_id)
    again = tag_of_ids("physical", "cells", tag.first_ids(), tag.further_ids())
    assert np.array_equal(again.first_ids(), tag.first_ids())
    assert np.array_equal(again.further_ids(), tag.further_ids())


@pytest.mark.slow
@pytest.mark.parametrize("kind", LOOPS)
def test_a_file_has_the_same_bytes_by_slices(tmp_path, kind):
    """Alone and on ranks, from the mesh and from its parts, with several groups."""
    rng, path = np.random.default_rng(5), tmp_path / "a.msh"
    size = {"cells": 90} if kind == "delaunay2d" else {"nx": 4, "ny": 3, "nz": 2}
    if kind == "mixed2d":
        del size["nz"]
    mesh = generate(kind, seed=0, **size)
    of_cells = with_groups(mesh, rng).tags
    mesh = replace(mesh, tags=tuple(t for t in of_cells if t.set != "nodes"))
    write(mesh, path, version="4.1", binary=True)
    requests = tuple(simple_request(one) for one in LOOPS[kind])
    # the file of parts of the mesh, and one of other parts made of that
    made = [tmp_path / "alone.parts.h5", tmp_path / "again.parts.h5"]
    how = SplitOptions("refined")
    run(SplitJob(path, made[0], (2, 3), requests, how, SMALL))
    run(SplitJob(made[0], made[1], (4,), how=how, options=SMALL))
    for one in made:
        assert check_parts(one, mesh=MeshSource(path)).findings == []
    assert all(p.tags and p.group_names for p in all_parts(made[1], 4)[0])
    for ranks in (1, 3):
        first, then = (tmp_path / f"{ranks}-{i}.parts.h5" for i in range(2))
        jobs = [SplitJob(path, first, (2, 3), requests, options=SMALL, slices=True)]
        jobs.append(SplitJob(first, then, (4,), options=SMALL, slices=True))
        for job, expected in zip(jobs, made, strict=True):
            found = on_ranks(ranks, lambda r, job=job: run(job, ranks=r))
            assert [str(one) for one in found if isinstance(one, Exception)] == []
            assert job.output.read_bytes() == expected.read_bytes()


@pytest.fixture
def wing(tmp_path):
    """A mesh with values and groups, its file, and that of three parts."""
    mesh = with_groups(generate("delaunay2d", cells=200, seed=0), np.random.default_rng(1))
    mesh = replace(mesh, tags=tuple(t for t in mesh.tags if t.set != "nodes"))
    file = tmp_path / "wing.msh"
    write(mesh, file)
    requests = tuple(simple_request(one) for one in LOOPS["delaunay2d"])
    job = SplitJob(
        file, tmp_path / "wing.parts.h5", (3,), requests, options=SMALL, fields=True
    )
    run(job)
    return read(file), file, job


def test_a_rank_has_them_with_the_runtime_alone(wing):
    mesh, _, job = wing

    def main(comm):
        plan = DistributedPlan.load(job.output, comm)
        numbers = plan.dat("nodes", 1, "i8", values=plan.numbers("nodes"))
        assert np.array_equal(plan.coordinates["nodes"], mesh.coordinates[numbers.array])
        assert np.array_equal(
            plan.fields["nodes"]["n"], mesh.dat("n", "nodes").values[numbers.array]
        )
        own = plan.dat("nodes", 3, values=plan.coordinates["nodes"].copy())
        assert np.array_equal(own.array, plan.coordinates["nodes"])
        rows = plan.group("boundary_edges", "wall")
        owned = rows[rows < plan.set_part("boundary_edges").owned]
        with pytest.raises(
            UnknownNameError, match="its groups are 3, 5, 7, inflow, of nothing"
        ):
            plan.group("boundary_edges", "lid")
        assert plan.group("boundary_edges", "of nothing").size == 0
        with pytest.raises(
            UnknownNameError, match="has no group 'wall': its groups are none"
        ):
            plan.group("edges", "wall")
        return plan.numbers("boundary_edges")[owned]

    full = plan_request_maps(mesh, list(job.requests))[0]
    tag = full.tag("physical", "boundary_edges")
    wall = [e for e, row in enumerate(tag.values) if 1 in tag.groups(row)]
    assert sorted(np.concatenate(run_ranks(3, main)).tolist()) == wall


def changed(part, kind, name, label, change):
    """The part with one of its arrays changed."""
    held = getattr(part, kind)
    array = (held[name] if label is None else held[name][label]).copy()
    found = change(array, part.sets[name])
    array = array if found is None else found
    new = array if label is None else {**held[name], label: array}
    return replace(part, **{kind: {**held, name: new}})


def last(array, _):
    """Of a copy: owners stand first."""
    array[-1] += 1


def other_group(rows, one):
    rows[np.argmax(rows[:, 0] >= one.owned), 1] += 90


WRONG = [
    (
        "coordinates",
        "nodes",
        None,
        last,
        "has other values or groups in part 1 than in part",
    ),
    ("tags", "cells", "physical", last, "has other values or groups in part 1"),
    ("fields", "cells", "p", last, "has other values or groups in part 1"),
    (
        "further_groups",
        "cells",
        "physical",
        lambda a, _: a[:-1],
        "has other values or groups in",
    ),
    (
        "further_groups",
        "cells",
        "physical",
        other_group,
        "a copy has groups that its owner has",
    ),
    (
        "coordinates",
        "nodes",
        None,
        lambda a, _: a[:-1],
        "coordinates/nodes: number of rows",
    ),
    (
        "coordinates",
        "nodes",
        None,
        lambda a, _: a[:, :1],
        "coordinates/nodes: the type <f8, or",
    ),
    (
        "tags",
        "cells",
        "physical",
        lambda a, _: a.astype("i4"),
        "tags/cells/physical: the type",
    ),
    ("fields", "cells", "p", lambda a, _: a.astype("S9"), "fields/cells/p: the type |S9"),
    (
        "further_groups",
        "cells",
        "physical",
        lambda a, _: a[::-1],
        "physical: rows do not ascend",
    ),
    (
        "further_groups",
        "cells",
        "physical",
        lambda a, _: a + np.array([999, 0]),
        "physical: its elements",
    ),
]


@pytest.mark.parametrize(("kind", "name", "label", "change", "message"), WRONG)
def test_the_proof_finds_other_values(wing, kind, name, label, change, message):
    parts, sizes = all_parts(wing[2].output, 3)
    parts[1] = changed(parts[1], kind, name, label, change)

    def said(*shares):
        try:
            check_part(parts[1])
        except MeshprepError as error:
            return [str(error)]
        return [
            text for own in shares for text in proved(iter(parts), sizes, 3, own).findings
        ]

    assert any(message in line for line in said(None)), said(None)
    assert any(message in line for line in said(range(1), range(1, 3)))


def test_check_compares_them_with_the_mesh(wing, tmp_path):
    mesh, file, job = wing
    assert check_parts(job.output, mesh=MeshSource(file)).findings == []
    moved = [replace(d, values=d.values + 1) for d in mesh.dats]
    tags = [replace(t, group_id=t.group_id + 1) for t in mesh.tags]
    write(replace(mesh, dats=tuple(moved), tags=tuple(tags)), tmp_path / "other.msh")
    findings = check_parts(job.output, mesh=MeshSource(tmp_path / "other.msh")).findings
    names = ["coordinates/nodes", "fields/cells/n", "fields/cells/p", "fields/nodes/n"]
    names += ["fields/nodes/p", "tags/boundary_edges/physical", "tags/cells/physical"]
    assert findings == [f"3 parts: {name} is not that of the mesh" for name in names]


def test_values_of_plans_and_refusals(wing, tmp_path):
    mesh, _, job = wing
    plan = prepare(mesh, list(LOOPS["delaunay2d"]), coordinates=True).plan
    made = split(subject_of_plan(plan), 2, SplitOptions("metis"), SMALL).builder
    parts = [made.build(p) for p in range(2)]
    groups = 0
    for part in parts:
        where = mesh.coordinates[numbers_of(parts, part, "nodes")]
        assert np.array_equal(part.coordinates["nodes"], where)
        groups += sum(part.tags["boundary_edges"]["physical"] == 1)
    assert groups >= (plan.tags["boundary_edges"]["physical"] == 1).sum() > 0
    plan.save(tmp_path / "a.plan.h5")
    for source in (tmp_path / "a.plan.h5", job.output):
        with pytest.raises(MeshprepError, match="is no mesh, which gives no fields"):
            run(SplitJob(source, tmp_path / "b.parts.h5", (2,), fields=True))
    with pytest.raises(MeshprepError, match="is read by slices, which gives no fields"):
        run(replace(job, output=tmp_path / "b.parts.h5", slices=True))
