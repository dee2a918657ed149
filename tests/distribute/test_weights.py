"""Parts that no cut leaves empty, and parts by what the vertices of a graph weigh."""

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thread_ranks import on_ranks

from meshprep import io
from meshprep.distribute.job.run import SplitJob, run
from meshprep.distribute.job.split import SplitOptions
from meshprep.distribute.owners.fill import filled
from meshprep.distribute.owners.timed_shares import elements_a_second
from meshprep.distribute.ranks import ALONE
from meshprep.distribute.subject import subject_of_mesh
from meshprep.loops.request_maps import plan_request_maps
from meshprep.loops.requests import default_request
from meshprep.partitioning.metis import has_metis
from meshprep_runtime.plan.parts import parts_table, read_part

needs_metis = pytest.mark.skipif(not has_metis(), reason="pymetis is not installed")
CUTS = ["annealed", pytest.param("metis", marks=needs_metis)]


def write_graph(path, n, edges, weights=None, edge_weights=False, several=1):
    """A METIS file, by hand."""
    beside = [[] for _ in range(n)]
    for a, b in edges:
        beside[a].append(b)
        beside[b].append(a)
    kind = f"0{int(weights is not None)}{int(edge_weights)}"
    lines = [f"{n} {len(edges)} {kind} {several if weights is not None else ''}"]
    for v in range(n):
        words = [] if weights is None else [str(int(weights[v]))] * several
        for other in sorted(beside[v]):
            words += [str(other + 1)] + ["7"] * edge_weights
        lines.append(" ".join(words))
    path.write_text("\n".join(lines) + "\n")


def grid(nx, ny):
    pairs = []
    for y in range(ny):
        for x in range(nx):
            v = x + nx * y
            if x + 1 < nx:
                pairs.append((v, v + 1))
            if y + 1 < ny:
                pairs.append((v, v + nx))
    return pairs


def split(path, parts, cut, weights=()):
    """The vertices that each part owns, and the notes of the split."""
    out = path.with_suffix(".parts.h5")
    done = run(SplitJob(path, out, (parts,), how=SplitOptions(cut, weights)))
    table = parts_table(out, parts)
    read = [read_part(out, table, part).sets["vertices"] for part in range(parts)]
    return [one.original.tolist() for one in read], done.notes


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize(
    ("n", "edges", "parts"),
    effort.first(
        [
            (3, [(0, 1), (1, 2)], 2),
            (7, [(0, v) for v in range(1, 7)], 5),
            (9, [(v, v + 1) for v in range(8)], 8),
            (60, grid(10, 6), 41),
        ],
        count=3,
    ),
)
def test_no_part_is_empty(n, edges, parts, cut, tmp_path):
    write_graph(tmp_path / "a.graph", n, edges)
    owned, _ = split(tmp_path / "a.graph", parts, cut)
    assert min(len(one) for one in owned) >= 1
    assert sorted(v for one in owned for v in one) == list(range(n))


@pytest.mark.parametrize("cut", CUTS)
def test_parts_of_small_shares_own_something(cut, tmp_path):
    write_graph(tmp_path / "a.graph", 60, grid(10, 6))
    owned, _ = split(tmp_path / "a.graph", 4, cut, (1.0, 1e-9, 0.0, 1.0))
    assert [len(one) > 0 for one in owned] == [True, True, False, True]


def slow_filled(part, shares):
    """One element after the other, in lists."""
    part = list(part)
    for empty in range(len(shares)):
        sizes = [part.count(k) for k in range(len(shares))]
        if sizes[empty]:
            continue
        full = [k for k in range(len(shares)) if sizes[k] > 1]
        source = max(full, key=lambda k: (sizes[k] / shares[k], -k))
        own = shares[empty] / (shares[empty] + shares[source])
        moving = max(1, int(sizes[source] * own))
        for element in reversed(range(len(part))):
            if part[element] == source and moving:
                part[element] = empty
                moving -= 1
    return part


@settings(max_examples=effort.examples(100))
@given(data=st.data())
def test_empty_parts_are_filled_as_by_hand(data):
    parts = data.draw(st.integers(1, 6))
    n = data.draw(st.integers(parts, 20))
    part = data.draw(st.lists(st.integers(0, parts - 1), min_size=n, max_size=n))
    shares = data.draw(st.lists(st.floats(0.1, 9.0), min_size=parts, max_size=parts))
    before = np.array(part, np.int32)
    found = filled(before, np.array(shares), ALONE)
    assert found.tolist() == slow_filled(part, shares)
    assert set(found.tolist()) == set(range(parts))
    assert before.tolist() == part


def test_ranks_fill_empty_parts_alike():
    rng = np.random.default_rng(2)
    part = rng.choice([0, 3], 40).astype(np.int32)
    shares = np.array([1.0, 2.0, 0.5, 4.0, 1.0])
    whole = filled(part, shares, ALONE)
    ends = [0, 9, 9, 30, 40]

    def one(ranks):
        return filled(part[ends[ranks.rank] : ends[ranks.rank + 1]], shares, ranks)

    assert np.concatenate(on_ranks(4, one)).tolist() == whole.tolist()


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("shares", [(), (1.0, 2.0, 3.0, 4.0)])
def test_parts_of_a_graph_own_their_share_of_the_weight(cut, shares, tmp_path):
    n = 30 * 20
    weights = np.random.default_rng(4).integers(1, 30, n)
    # one corner is heavy, so that equal numbers would be far from equal weights
    weights[:150] *= 10
    write_graph(tmp_path / "a.graph", n, grid(30, 20), weights)
    owned, notes = split(tmp_path / "a.graph", 4, cut, shares)
    own = np.array([weights[one].sum() for one in owned])
    wanted = np.array(shares or (1, 1, 1, 1)) / sum(shares or (1, 1, 1, 1))
    assert own.sum() == weights.sum()
    # a part may hold 3 % more, and half of the heaviest vertex
    assert (own <= 1.03 * wanted * weights.sum() + 300).all()
    assert notes == []


@pytest.mark.parametrize("cut", CUTS)
def test_one_heavy_vertex_is_not_joined_by_the_others(cut, tmp_path):
    weights = np.ones(50, np.int64)
    weights[25] = 1000
    write_graph(tmp_path / "a.graph", 50, [(v, v + 1) for v in range(49)], weights)
    owned, _ = split(tmp_path / "a.graph", 4, cut)
    own = sorted(int(weights[one].sum()) for one in owned)
    assert own[-1] <= 1013
    assert own[0] >= 1


def test_what_of_a_graph_is_not_used_is_said(tmp_path):
    write_graph(tmp_path / "a.graph", 60, grid(10, 6), np.ones(60), True, several=2)
    _, notes = split(tmp_path / "a.graph", 3, "annealed")
    expected = (
        "no cut uses the 2 weights of each of the vertices and the weights of the edges"
    )
    assert notes == [expected]
    write_graph(tmp_path / "b.graph", 60, grid(10, 6))
    assert split(tmp_path / "b.graph", 3, "annealed")[1] == []


def test_a_cut_that_counts_vertices_says_so(tmp_path):
    write_graph(tmp_path / "a.graph", 60, grid(10, 6), np.arange(60) + 1)
    mesh = io.read(tmp_path / "a.graph")
    full, specs = plan_request_maps(mesh, (default_request(mesh),))
    subject = subject_of_mesh(mesh, full, specs)
    (note,) = SplitOptions("rcb").notes_on(subject)
    assert note == (
        "cut 'rcb' balances how many vertices the parts own, not what they weigh: "
        "choose annealed or metis for that"
    )
    assert SplitOptions("annealed").notes_on(subject) == []


def times_of(seconds, owned):
    """What a program writes of a loop on ranks that computed and owned so much."""
    loop = {}
    for rank, (core, n) in enumerate(zip(seconds, owned, strict=True)):
        classes = {"boundary": core, "exec": 0.0, "other": 0.0, "wait": 9.0}
        loop[str(rank)] = {"core": core, "elements": {"core": n, "exec": 5}} | classes
    return loop


@settings(deadline=None, max_examples=effort.examples(60))
@given(
    st.lists(st.tuples(st.floats(0.1, 9), st.integers(10, 10**6)), min_size=1, max_size=12)
)
def test_ranks_with_shares_by_their_times_end_together(found):
    """The time of a rank is that of an element times what it owns, which is then the same."""
    seconds_of_element, owned = map(np.array, zip(*found, strict=True))
    seconds = seconds_of_element * owned
    shares = elements_a_second(
        {"a": times_of(seconds / 4, owned), "b": times_of(seconds / 4, owned)}
    )
    ends = seconds_of_element * np.array(shares)
    np.testing.assert_allclose(ends, ends[0], rtol=1e-12)
    np.testing.assert_allclose(shares, 2 / seconds_of_element)
