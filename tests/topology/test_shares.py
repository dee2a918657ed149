"""Threads that each take a share of the cells find what one thread finds."""

import itertools

import numpy as np
import pytest

from meshprep.io.generate import generate
from meshprep.kernels import parallel
from meshprep.mesh.assemble import Block, assemble
from meshprep.topology import derive, match, unattached


@pytest.fixture
def in_shares(monkeypatch):
    """Make every share a few slots, so that shares end inside of parts and cells."""

    def cut(n, *limits, **named):
        bounds = [n * i // 7 for i in range(8)]
        return list(itertools.pairwise(bounds))

    def patch():
        for module in (match, parallel):
            monkeypatch.setattr(module, "pieces", cut)

    return patch


@pytest.mark.parametrize("kind", ["mixed2d", "mixed3d"])
def test_facets(in_shares, kind):
    size = {"nx": 7, "ny": 5} | ({"nz": 4} if kind == "mixed3d" else {})
    mesh = generate(kind, **size, shuffle=True)
    facets = "edges" if kind == "mixed2d" else "faces"
    names = [f"{facets}->cells", f"boundary_{facets}->cells"]
    alone = derive(mesh, names)
    in_shares()
    found = derive(mesh, names)
    for name in names:
        assert found.map(name).table.tolist() == alone.map(name).table.tolist()
    for tag, expected in zip(found.tags, alone.tags, strict=True):
        assert (tag.set, tag.first_ids().tolist()) == (
            expected.set,
            expected.first_ids().tolist(),
        )


def test_loose_cells(in_shares):
    triangles = np.array([[i, i + 1, i + 2] for i in range(20)], np.int32)
    lines = np.array([[0, 1], [0, 21], [5, 7], [3, 9], [21, 20]], np.int32)
    blocks = [Block("triangle", triangles), Block("line", lines)]
    mesh = assemble(np.zeros((22, 2)), blocks)[0]
    in_shares()
    assert {name: rows.tolist() for name, rows in unattached(mesh).items()} == {
        "line": [1, 3]
    }
