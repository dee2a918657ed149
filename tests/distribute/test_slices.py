"""Ranks that hold slices make what one process makes of the whole mesh, byte for byte."""

from dataclasses import replace

import effort
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from parts_arrays import arrays_of
from parts_by_hand import mesh_subject
from thread_ranks import on_ranks, slice_of

from meshprep.distribute import homes
from meshprep.distribute import ranks as messages
from meshprep.distribute.halos import increments
from meshprep.distribute.job import check
from meshprep.distribute.job.check import check_parts
from meshprep.distribute.job.run import SplitJob, run
from meshprep.distribute.job.split import SplitOptions, split
from meshprep.distribute.job.split_slices import slice_owners, split_slices
from meshprep.distribute.owners import refine
from meshprep.distribute.owners.cuts import CutProblem, owners_of_leading_set
from meshprep.distribute.owners.inherit import inherit, runs
from meshprep.distribute.slices import facets
from meshprep.distribute.slices import read as sliced_read
from meshprep.distribute.slices.read import subject_of_slices
from meshprep.distribute.subject import SplitSubject, subject_of_mesh
from meshprep.io import read, write
from meshprep.io.generate import generate
from meshprep.io.sliced import scan
from meshprep.io.source import MeshSource
from meshprep.loops.options import Options
from meshprep.loops.request_maps import plan_request_maps
from meshprep.loops.requests import LoopSpec, simple_request
from meshprep.mesh import Dat, ElementSet, Mesh
from meshprep.topology import derive
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.parts.store import read_batch
from meshprep_runtime.types.loops import Arg, Loop
from meshprep_runtime.types.maps import SetMap
from meshprep_runtime.types.ordering import Ordering

MAPS = {"edges->cells": 2, "edges->nodes": 2, "rims->cells": 1, "cells->nodes": 3}
CURVE = SplitOptions("curve")
SMALL = Options(block_size=16)


@pytest.fixture(scope="module", autouse=True)
def few_turns():
    """Borders are refined for a moment: here it counts that ranks do the same.

    Messages cost nothing, so that increments of small parts are sent back.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(increments, "EXCHANGE", 0)
        patch.setattr(refine, "TURNS", 6)
        patch.setattr(refine, "LAST", 2)
        yield


@st.composite
def subjects(draw):
    """Random maps between cells, nodes, edges and boundary edges; cells have places, some equal."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = {name: int(rng.integers(1, 30)) for name in ("edges", "cells", "nodes", "rims")}
    maps = {}
    for name, arity in MAPS.items():
        start, _, to = name.partition("->")
        maps[name] = SetMap(
            name, start, to, rng.integers(0, sizes[to], (sizes[start], arity))
        )
    specs = []
    for name in ("edges->cells", *draw(st.sets(st.sampled_from(list(MAPS)[1:])))):
        args = [Arg("v", draw(st.sampled_from(["inc", "rw", "read"])), 1, "f8", name, (0,))]
        if name == "edges->cells":
            args.append(Arg("x", "read", 2, "f8", "edges->nodes", (0, 1)))
        specs.append(
            LoopSpec(Loop(f"over {name}", name.partition("->")[0], tuple(args)), {})
        )
    places = rng.integers(0, 4, (sizes["cells"], 2)).astype(float)
    return SplitSubject(sizes, maps, tuple(specs), centroids={"cells": places})


def parts_of(made, parts):
    return {p: arrays_of(made.builder.build(p)) for p in parts}


def parts_by_ranks(subject, parts, how, size):
    """All parts, each from the rank that makes it, of a subject or of slices of a file."""

    def work(ranks):
        mine = subject(ranks) if callable(subject) else slice_of(subject, ranks)
        made = split_slices(mine, parts, how, SMALL, lambda share: None, ranks)
        return parts_of(made, made.builder.numbers.parts_of_rank), made.costs

    found = on_ranks(size, work)
    for one in found:
        if isinstance(one, Exception):
            raise one
    return {p: one for mine, _ in found for p, one in mine.items()}, found[0][1]


def assert_same_parts(found, expected):
    assert found.keys() == expected.keys()
    for part, arrays in expected.items():
        assert found[part].keys() == arrays.keys()
        for name, values in arrays.items():
            assert np.array_equal(found[part][name], values), (part, name)


@settings(deadline=None, max_examples=effort.examples(15))
@given(
    subjects(),
    st.integers(1, 9),
    st.integers(1, 4),
    st.sampled_from(["exec", "auto"]),
    st.sampled_from([(), (0, 3, 1)]),
    st.sampled_from(["curve", "rcb", "refined"]),
)
def test_slices_give_the_parts_of_the_whole(subject, parts, size, way, weights, cut):
    how = SplitOptions(cut, weights, way)
    parts = len(weights) or parts
    whole = split(subject, parts, how, SMALL)
    found, costs = parts_by_ranks(subject, parts, how, size)
    assert_same_parts(found, parts_of(whole, range(parts)))
    assert costs == whole.costs


@pytest.mark.parametrize("size", [1, 3])
def test_a_union_follows_its_types_where_the_nodes_are_cut(size):
    """No map leads from nodes to cells, but to both of their types."""
    subject = mesh_subject(
        "mixed2d", ["quad->nodes", "triangle->nodes", "edges->cells"], nx=9, ny=8
    )
    assert (subject.leading_set, subject.unions["cells"]) == ("nodes", ("quad", "triangle"))
    weights = np.full(4, 0.25)
    whole = inherit(subject, runs(subject.sizes["nodes"], weights), weights)
    types = np.concatenate([whole["quad"], whole["triangle"]])
    assert whole["cells"].tolist() == types.tolist()
    made = parts_of(split(subject, 4, CURVE, SMALL), range(4))
    assert_same_parts(parts_by_ranks(subject, 4, CURVE, size)[0], made)


def bisected(where, weights):
    """Recursive coordinate bisection, half after half."""
    owner, waiting = (
        np.empty(len(where), np.int32),
        [(np.arange(len(where)), 0, weights.size)],
    )
    while waiting:
        elements, first, last = waiting.pop()
        if last - first == 1:
            owner[elements] = first
            continue
        middle = (first + last) // 2
        share = weights[first:middle].sum() / weights[first:last].sum()
        at = where[elements]
        axis = int(np.argmax(np.ptp(at, axis=0))) if elements.size and at.shape[1] else 0
        sort = (
            np.argsort(at[:, axis], kind="stable")
            if at.shape[1]
            else np.arange(elements.size)
        )
        low = round(float(share) * elements.size)
        waiting.append((np.sort(elements[sort[:low]]), first, middle))
        waiting.append((np.sort(elements[sort[low:]]), middle, last))
    return owner


@settings(deadline=None, max_examples=effort.examples(30))
@given(subjects(), st.lists(st.integers(1, 5), min_size=2, max_size=9))
def test_the_cut_rcb_is_bisection(subject, weights):
    weights = np.array(weights) / sum(weights)
    assume(weights.size < subject.sizes[subject.leading_set])
    found = owners_of_leading_set(CutProblem(subject, weights), "rcb")
    expected = bisected(subject.centroids[subject.leading_set], weights)
    # A part that bisection leaves empty gets a cell of another one.
    assume(np.bincount(expected, minlength=weights.size).min() > 0)
    assert np.array_equal(found, expected)


@settings(deadline=None, max_examples=effort.examples(15))
@given(subjects(), st.integers(2, 6), st.integers(1, 4))
def test_owners_are_runs_of_sorted_keys(subject, parts, size):
    def work(ranks):
        return slice_owners(
            slice_of(subject, ranks), np.full(parts, 1 / parts), "curve", ranks
        )

    found = on_ranks(size, work)
    n, where = subject.sizes["cells"], subject.centroids["cells"]
    own = np.concatenate([one["cells"] for one in found])
    assert np.bincount(own, minlength=parts).max() <= -(-n // parts) + 1
    # cells in one place keep their order along the curve, and so do their parts
    for place in np.unique(where, axis=0):
        assert (np.diff(own[(where == place).all(axis=1)]) >= 0).all()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same kinds of meshes in every format that is read by slices."""
    folder = tmp_path_factory.mktemp("slices")
    wing, box = (
        generate("delaunay2d", cells=600, seed=1),
        generate("mixed3d", nx=4, ny=3, nz=3),
    )
    write(wing, folder / "wing.msh")
    write(box, folder / "box.msh")
    write(generate("box", nx=2, ny=1, nz=1), folder / "two.msh")
    grid = derive(wing, ["edges->cells", "edges->nodes"])
    sets = [ElementSet(name, grid.size(name)) for name in ("nodes", "edges", "cells")]
    maps = [grid.map(name) for name in ("edges->cells", "edges->nodes", "cells->nodes")]
    dat = Dat("coordinates", "nodes", wing.coordinates)
    write(Mesh(sets, maps, [dat]), folder / "grid.h5")
    return folder


CASES = [
    ("two.msh", ["faces->cells"]),
    ("grid.h5", ["edges->cells", "cells->nodes"]),
    ("wing.msh", ["edges->cells", "boundary_edges->nodes"]),
    ("box.msh", ["faces->cells", "tetra->nodes"]),
]


@pytest.mark.parametrize(("name", "loops"), CASES)
def test_files_by_slices_are_the_meshes_that_one_process_reads(files, name, loops):
    requests = [simple_request(loop) for loop in loops]
    mesh = read(files / name)
    full, specs = plan_request_maps(mesh, requests)
    expected = subject_of_mesh(mesh, full, specs)
    for size in (1, 3):
        found = on_ranks(size, lambda r: subject_of_slices(scan(files / name), requests, r))
        for one in found:
            assert not isinstance(one, Exception), one
            assert (one.sizes, one.source_hash) == (expected.sizes, expected.source_hash)
            assert (one.segments, one.unions) == (expected.segments, expected.unions)
            assert list(one.maps) == list(expected.maps)
        for m in expected.maps.values():
            assert np.array_equal(
                np.concatenate([f.maps[m.name].table for f in found]), m.table
            )
        known = {*found[0].centroids, *found[0].through}
        assert known == set(expected.centroids)
        for set_name in found[0].centroids:
            where = np.concatenate([f.centroids[set_name] for f in found])
            assert np.array_equal(where, expected.centroids[set_name])


FACTS = {
    "fan": "the edge with nodes 0, 1 belongs to more than two cells, 'edges->cells' allows two",
    "apart": "no two cells share an edge",
}
THREE = {
    "fan": [[0, 1, 2], [1, 0, 3], [0, 1, 4]],
    "apart": [[0, 1, 2], [3, 4, 5], [6, 7, 8]],
}


@pytest.mark.parametrize("kind", FACTS)
def test_slices_take_the_loop_that_one_process_takes_in_place_of_the_default_one(
    tmp_path, kind
):
    cells = SetMap("cells->nodes", "cells", "nodes", np.array(THREE[kind]))
    where = Dat("coordinates", "nodes", np.arange(27.0).reshape(9, 3) ** 2)
    sets = [ElementSet("nodes", 9), ElementSet("cells", 3, "triangle")]
    path = tmp_path / f"{kind}.msh"
    write(Mesh(sets, [cells], [where]), path)
    full, specs = plan_request_maps(read(path), ())
    assert [spec.loop.name for spec in specs] == ["cells->nodes"]
    for size in (1, 3):
        for one in on_ranks(size, lambda r: subject_of_slices(scan(path), (), r)):
            (spec,) = one.specs
            assert spec.loop == specs[0].loop
            assert spec.note.startswith(f"{FACTS[kind]}: the loop is cells->nodes, ")
            assert dict(one.sizes) == {"nodes": full.size("nodes"), "cells": 3}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "loops"), [CASES[1], CASES[-1]])
def test_the_bytes_do_not_depend_on_the_number_of_ranks(
    files, tmp_path, monkeypatch, name, loops
):
    requests = tuple(simple_request(loop) for loop in loops)
    alone = tmp_path / "alone.parts.h5"
    run(SplitJob(files / name, alone, (2, 5), requests, SplitOptions("refined"), SMALL))
    assert check_parts(alone, mesh=MeshSource(files / name)).findings == []
    more = tmp_path / "more.parts.h5"
    run(SplitJob(alone, more, (3, 7), how=SplitOptions("refined"), options=SMALL))
    assert check_parts(more, mesh=MeshSource(files / name)).findings == []
    for size in (1, 2, 3, 4) if name == "grid.h5" else (3,):
        output = tmp_path / f"{size}.parts.h5"
        again = tmp_path / f"more-{size}.parts.h5"
        both = [
            (
                SplitJob(
                    files / name, output, (2, 5), requests, options=SMALL, slices=True
                ),
                alone,
            ),
            (SplitJob(output, again, (3, 7), options=SMALL, slices=True), more),
        ]
        for job, expected in both[: 2 if size == 3 else 1]:
            found = on_ranks(size, lambda ranks, job=job: run(job, ranks=ranks))
            assert [str(one) for one in found if isinstance(one, Exception)] == []
            assert job.output.read_bytes() == expected.read_bytes()


def test_ranks_prove_a_file_together(files, tmp_path):
    path = tmp_path / "wing.parts.h5"
    run(
        SplitJob(
            files / "wing.msh",
            path,
            (2, 5),
            (simple_request("edges->cells"),),
            CURVE,
            SMALL,
        )
    )
    verdicts = {
        one.verdict for one in on_ranks(3, lambda ranks: check_parts(path, ranks=ranks))
    }
    assert verdicts == {f"{path}: right (2 and 5 parts)"}

    def with_mesh(ranks):
        return check_parts(path, mesh=MeshSource(files / "wing.msh"), ranks=ranks)

    assert all_say(on_ranks(2, with_mesh)).startswith("a mesh is compared by one process")


def test_what_one_rank_finds_wrong_all_ranks_say(files, tmp_path, monkeypatch):
    path = tmp_path / "wing.parts.h5"
    run(
        SplitJob(
            files / "wing.msh", path, (4,), (simple_request("edges->cells"),), CURVE, SMALL
        )
    )

    def changed(path, table, parts):
        """The last part, with its copies in the wrong places."""
        found, name = read_batch(path, table, parts), "sets/cells/copies"
        if 3 not in parts:
            return found
        copies, last = found.arrays[name].copy(), found.rows[name][-1]
        copies[-last:] = copies[-last:][::-1].copy()
        return replace(found, arrays={**found.arrays, name: copies})

    monkeypatch.setattr(check, "read_batch", changed)
    expected = check_parts(path)
    assert any(
        "part 3, set 'cells': copies do not ascend" in one for one in expected.findings
    )
    found = on_ranks(2, lambda ranks: check_parts(path, ranks=ranks))
    assert found[0].findings == found[1].findings
    assert set(expected.findings) <= set(found[0].findings)


def test_messages_and_steps_are_cut_where_they_are_long(monkeypatch):
    mesh = generate("delaunay2d", cells=300, seed=0)
    full, specs = plan_request_maps(mesh, [simple_request("edges->cells")])
    subject = subject_of_mesh(mesh, full, specs)
    expected = parts_of(split(subject, 4, CURVE, SMALL), range(4))
    monkeypatch.setattr(messages, "MESSAGE", 100)
    monkeypatch.setattr(homes, "ROWS", 37)
    assert_same_parts(parts_by_ranks(subject, 4, CURVE, 3)[0], expected)


@pytest.mark.parametrize("bits", [64, 34, 0])
@pytest.mark.parametrize("kind", ["box", "mixed3d"])
def test_facets_are_numbered_as_in_one_process_whatever_the_order_of_cells(
    tmp_path, monkeypatch, kind, bits
):
    # facets with one hash are told apart by their corners
    hashed, top = facets._hashed, np.uint64((1 << bits) - 1)
    monkeypatch.setattr(facets, "_hashed", lambda corners: hashed(corners) & top)
    mesh = generate(kind, nx=4, ny=4, nz=3)
    rng = np.random.default_rng(0)
    order = {
        name: Ordering.from_new_to_old(rng.permutation(s.size))
        for name, s in mesh.sets.items()
        if not s.parts
    }
    path = tmp_path / "mesh.msh"
    write(mesh.renumber(order), path, drop=True)
    requests = [simple_request("faces->cells")]
    full, _ = plan_request_maps(read(path), requests)
    found = on_ranks(4, lambda ranks: subject_of_slices(scan(path), requests, ranks))
    for name in ("faces->cells", "boundary_faces->cells"):
        table = np.concatenate([one.maps[name].table for one in found])
        assert np.array_equal(table, full.map(name).table)


def test_sets_past_the_limit_of_numbers_are_refused_by_all_ranks(files, monkeypatch):
    monkeypatch.setattr(sliced_read, "INDEX_LIMIT", 800)
    mesh, requests = scan(files / "wing.msh"), [simple_request("edges->cells")]
    text = all_say(on_ranks(2, lambda ranks: subject_of_slices(mesh, requests, ranks)))
    assert text == "there are 880 edges, past 2^31-1: slices hold no more of a set"


def test_no_array_of_a_rank_is_as_long_as_the_mesh():
    mesh = generate("delaunay2d", cells=8000, seed=0)
    full, specs = plan_request_maps(mesh, [simple_request("edges->cells")])
    subject = subject_of_mesh(mesh, full, specs)

    def work(ranks):
        sizes.setdefault(ranks.rank, [])
        mine = slice_of(subject, ranks)
        made = split_slices(mine, 8, CURVE, SMALL, lambda share: None, ranks)
        return longest(made.builder)

    sizes = {}
    whole, quarter = longest(split(subject, 8, CURVE, SMALL).builder), on_ranks(4, work)
    assert whole == subject.sizes["edges"]
    # a quarter, and the border of two parts of 1,000 cells
    assert max(quarter) < 0.3 * whole


def longest(value, seen=None):
    """The rows of the longest array in an object."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return 0
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        return value.shape[0] if value.ndim else 0
    if hasattr(value, "__dict__"):
        value = vars(value)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return max((longest(one, seen) for one in value), default=0)
    return 0


def all_say(found):
    """The one message of all ranks."""
    (kind,) = {type(one) for one in found}
    assert issubclass(kind, MeshprepError), found
    (text,) = {str(one) for one in found}
    return text


def test_bad_input_is_said_by_all_ranks_alike(files, tmp_path):
    def split_on(size, source, loops=("edges->cells",), **values):
        values = {"how": CURVE, **values}
        requests = tuple(simple_request(loop) for loop in loops)
        job = SplitJob(
            source, tmp_path / "x.parts.h5", (2,), requests, slices=True, **values
        )
        return all_say(on_ranks(size, lambda ranks: run(job, ranks=ranks)))

    for name, message in damaged(files, tmp_path):
        assert message in split_on(3, tmp_path / name)
    assert "cannot give map 'faces->cells'" in split_on(
        2, files / "wing.msh", ["faces->cells"]
    )
    assert "'cells->edges' is not derived from slices" in split_on(
        2, files / "wing.msh", ["cells->edges"]
    )
    write(generate("delaunay2d", cells=50), tmp_path / "text.vtu", drop=True)
    assert "format 'vtu' is not read by slices" in split_on(2, tmp_path / "text.vtu")
    whole = split_on(2, files / "wing.msh", how=SplitOptions("annealed"))
    assert whole == "cut 'annealed' needs the whole mesh: with --slices, use --cut refined"
    assert sorted(p.suffix for p in tmp_path.iterdir() if "parts" in p.name) == []


def damaged(files, folder):
    """Files with one thing wrong, and what is said of it."""
    import h5py

    data = (files / "grid.h5").read_bytes()
    (folder / "range.h5").write_bytes(data)
    with h5py.File(folder / "range.h5", "r+") as file:
        file["edges->cells"][-1, 1] = 10**6
    yield "range.h5", "holds index 1000000, but no set is so large"
    (folder / "nan.h5").write_bytes(data)
    with h5py.File(folder / "nan.h5", "r+") as file:
        file["coordinates"][-1, 0] = np.nan
    yield "nan.h5", "needs finite coordinates"
    rows = scan(files / "wing.msh").map("cells->nodes").rows
    data = bytearray((files / "wing.msh").read_bytes())
    end = rows.runs[-1].address + rows.runs[-1].rows * 8 * rows.runs[-1].width
    data[end - 8 : end] = (10**6).to_bytes(8, "little")
    (folder / "range.msh").write_bytes(data)
    last = f"element {rows.size - 1}, column 2 has index 999999"
    yield "range.msh", f"{folder / 'range.msh'}: map 'cells->nodes': {last}"
    cells = SetMap(
        "cells->nodes", "cells", "nodes", np.array([[0, 1, 2], [1, 0, 3], [0, 1, 4]])
    )
    where = Dat("coordinates", "nodes", np.arange(15.0).reshape(5, 3) ** 2)
    fan = Mesh(
        [ElementSet("nodes", 5), ElementSet("cells", 3, "triangle")], [cells], [where]
    )
    write(fan, folder / "fan.msh")
    yield "fan.msh", "the edge with nodes 0, 1 belongs to more than two cells"
    (folder / "short.msh").write_bytes((files / "wing.msh").read_bytes()[:-4000])
    yield "short.msh", "damaged"
    for version, binary in (("2.2", True), ("4.1", False)):
        write(
            read(files / "wing.msh"),
            folder / f"{version}.msh",
            version=version,
            binary=binary,
        )
        yield f"{version}.msh", "only Gmsh's binary MSH 4.1 is read by slices"
