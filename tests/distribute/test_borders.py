"""Borders refined by ranks: shorter, within sizes, and the same for any number of ranks."""

import numpy as np
import pytest
from thread_ranks import on_ranks, slice_of

from meshprep.distribute import homes
from meshprep.distribute.owners import moves, refine
from meshprep.distribute.owners.cuts import CutProblem, owners_of_leading_set
from meshprep.distribute.owners.refine import points_of_elements
from meshprep.distribute.owners.sliced import leading_owners
from meshprep.distribute.ranks import ALONE
from meshprep.distribute.subject import SplitSubject, subject_of_mesh
from meshprep.io.generate import generate
from meshprep.loops.request_maps import plan_request_maps
from meshprep.loops.requests import LoopSpec, simple_request
from meshprep_runtime.types.loops import Arg, Loop
from meshprep_runtime.types.maps import SetMap


def subject_of(kind, loops, **values):
    mesh = generate(kind, **values)
    full, specs = plan_request_maps(mesh, [simple_request(one) for one in loops])
    return subject_of_mesh(mesh, full, specs)


def figures(subject, part, facets):
    """Cut facets and node copies, counted by sets."""
    table = subject.maps[facets].table
    nodes = subject.maps["cells->nodes"].table
    pairs = {(int(p), int(part[i])) for i, points in enumerate(nodes) for p in points}
    return int((part[table[:, 0]] != part[table[:, 1]]).sum()), len(pairs) - len(
        np.unique(nodes)
    )


@pytest.fixture(scope="module")
def tetrahedra():
    return subject_of("delaunay3d", ["faces->cells", "cells->nodes"], cells=12_000, seed=3)


@pytest.mark.parametrize("parts", [2, 7, 40])
def test_borders_are_shorter_than_those_of_bisection_and_parts_keep_their_sizes(
    tetrahedra, parts
):
    problem = CutProblem(tetrahedra, np.full(parts, 1 / parts))
    plain, part = (owners_of_leading_set(problem, cut) for cut in ("rcb", "refined"))
    sizes, mean = np.bincount(part, minlength=parts), part.size / parts
    assert sizes.max() <= 1.03 * mean
    assert sizes.min() >= np.floor(0.9 * mean)
    before, after = (figures(tetrahedra, one, "faces->cells") for one in (plain, part))
    assert after[0] < 0.95 * before[0]
    assert after[1] < 0.82 * before[1]


def test_parts_keep_unequal_shares(tetrahedra):
    shares = np.array([0.0, 0.5, 0.25, 0.25])
    part = owners_of_leading_set(CutProblem(tetrahedra, shares), "refined")
    sizes = np.bincount(part, minlength=4)
    assert sizes[0] == 0
    assert (sizes <= 1.03 * part.size * shares).all()


@pytest.mark.parametrize("loops", [["edges->cells", "cells->nodes"], ["edges->cells"]])
def test_the_parts_do_not_depend_on_the_number_of_ranks(monkeypatch, loops):
    monkeypatch.setattr(refine, "TURNS", 40)
    monkeypatch.setattr(homes, "ROWS", 500)
    subject = subject_of("delaunay2d", loops, cells=1500, seed=2)
    shares = np.array([0.3, 0.2, 0.2, 0.15, 0.15])
    alone = leading_owners(subject, shares, "refined", ALONE)
    assert (alone != leading_owners(subject, shares, "rcb", ALONE)).sum() > 15
    for size in (2, 3):
        found = on_ranks(
            size, lambda r: leading_owners(slice_of(subject, r), shares, "refined", r)
        )
        assert np.array_equal(np.concatenate(found), alone)


def star(n):
    """Elements around hubs: many rows reach one element."""
    rng = np.random.default_rng(0)
    table = np.stack([rng.integers(0, 3, 4 * n), rng.integers(0, n, 4 * n)], axis=1)
    m = SetMap("edges->cells", "edges", "cells", table.astype(np.int32))
    loop = Loop("flux", "edges", (Arg("r", "inc", 1, "f8", m.name, (0, 1)),))
    places = {"cells": rng.random((n, 2))}
    return SplitSubject(
        {"edges": 4 * n, "cells": n}, {m.name: m}, (LoopSpec(loop, {}),), centroids=places
    )


def test_of_many_rows_the_lowest_are_looked_at_whatever_the_number_of_ranks(monkeypatch):
    monkeypatch.setattr(homes, "ROWS", 37)
    subject = star(60)
    alone = points_of_elements(subject, ALONE).table
    rows = subject.maps["edges->cells"].table
    for cell in range(60):
        there = np.flatnonzero((rows == cell).any(axis=1))[:32]
        assert sorted(alone[cell][alone[cell] >= 0]) == there.tolist()
    found = on_ranks(3, lambda r: points_of_elements(slice_of(subject, r), r).table)
    for one, expected in zip(np.concatenate(found), alone, strict=True):
        assert sorted(one) == sorted(expected)
    shares = np.full(4, 0.25)
    parts = leading_owners(subject, shares, "refined", ALONE)
    again = on_ranks(
        3, lambda r: leading_owners(slice_of(subject, r), shares, "refined", r)
    )
    assert np.array_equal(np.concatenate(again), parts)


def drawn(element, turn):
    """splitmix64 of both."""
    top = 2**64 - 1
    z = (element * 0x9E3779B97F4A7C15 + turn * 0xD1B54A32D192ED03) & top
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & top
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & top
    return z ^ z >> 31


def wish(table, part, prices, full, i):
    """Where an element would go, and what that costs, by counting all elements; or None."""
    cost, gain = 0, {}
    for p in table[i][table[i] >= 0]:
        price = prices.node if p < prices.nodes else prices.other
        own = part[np.nonzero(table == p)[0]]
        cost += price * ((own == part[i]).sum() > 1)
        for other in set(own) - {part[i]}:
            gain[other] = gain.get(other, 0) + price
    best = min((q for q in gain if not full[q]), key=lambda q: (-gain[q], q), default=None)
    return None if best is None else (int(best), int(cost - gain[best]))


@pytest.mark.parametrize("seed", range(3))
def test_elements_propose_what_a_count_of_all_elements_says(seed):
    rng, n, turn = np.random.default_rng(seed), 300, 5
    table = rng.integers(-1, 2 * n, (n, 4)).astype(np.int32)
    part = rng.choice(4, n, p=[0.45, 0.45, 0.05, 0.05]).astype(np.int32)
    ids, full = rng.permutation(5 * n)[:n], np.arange(4) == 2
    prices, key, target = (
        moves.Prices(n, 7, 3),
        np.zeros(n, np.uint64),
        np.empty(n, np.int32),
    )
    at, every = moves.parts_at_points(table, part, 2 * n), np.arange(n, dtype=np.int32)
    keys = {i: drawn(int(e), turn) for i, e in enumerate(ids)}
    wishes = {
        i: wish(table, part, prices, full, i) for i in range(n) if not keys[i] % moves.ASKED
    }
    count = 0
    for limit in range(-28, 28):
        allowed = np.full(moves.DRAWS, limit * moves.FINE)
        elements, proposal = (ids, part, table), (key, target)
        some = moves.propose(every, elements, at, prices, full, allowed, turn, proposal)
        found = {int(i): (int(target[i]), int(key[i])) for i in some}
        cheap = {
            i: one[0] for i, one in wishes.items() if one is not None and one[1] < limit
        }
        assert found == {i: (to, keys[i]) for i, to in cheap.items()}
        count += len(found)
    assert count > 1000
