"""The pages of ``docs/use`` that need no library of others, and what all pages there hold to."""

import re
import sys
import types

import numpy as np
import pytest
from pages import DOCS, blocks
from scipy.spatial import Delaunay

import meshprep

PAGES = sorted((DOCS / "use").glob("*.md"))


def test_pages_are_short_and_in_the_navigation():
    navigation = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    overview = (DOCS / "arrays.md").read_text(encoding="utf-8")
    assert len(PAGES) == 9
    for page in PAGES:
        assert len(page.read_text(encoding="utf-8").splitlines()) <= 60, page.name
        assert f"use/{page.name}" in navigation
        assert f"use/{page.name}" in overview


@pytest.mark.slow
def test_the_page_from_add_at_to_a_loop_gives_the_same_change_at_every_step():
    student, order, plan = blocks("use/numpy.md", "python")
    names = {}
    exec(student, names)
    expected = names["change_of"](names["u"])
    assert abs(expected).max() > 1e-3
    assert abs(expected.sum()) < 1e-12
    exec(order, names)
    restore = names["ordered"].ordering["points"].restore
    np.testing.assert_allclose(
        restore(names["change_of"](names["u"])), expected, atol=1e-14
    )
    exec(plan, names)
    of_plan = names["plan"].ordering["points"].restore
    np.testing.assert_allclose(restore(of_plan(names["change"])), expected, atol=1e-14)


@pytest.mark.slow
def test_the_page_on_numba_sums_exactly_what_numpy_sums():
    names = {}
    for code in blocks("use/numba.md", "python"):
        exec(code, names)
    assert names["total"].sum() == 3 * names["values"].sum()


class AdjacencyList:
    """As dolfinx has it: rows of different lengths, or one number a row."""

    def __init__(self, array, offsets=None):
        assert array.dtype == np.int32
        self.array = array
        self.offsets = np.arange(len(array) + 1) if offsets is None else offsets
        self.num_nodes = len(self.offsets) - 1


def create_mesh(comm, cells, e, x, partitioner=None, max_facet_to_cell_links=2):
    """Has the signature of dolfinx 0.11, and asks for the ranks of cells as it does."""
    return partitioner(comm, comm.size, ["triangle"], [cells.ravel()])


@pytest.fixture
def dolfinx(monkeypatch):
    """A stand-in with the names that the page imports."""
    graph = types.SimpleNamespace(AdjacencyList_int32=AdjacencyList)
    mesh = types.SimpleNamespace(create_mesh=create_mesh)
    for name, module in {"dolfinx.cpp.graph": graph, "dolfinx.mesh": mesh}.items():
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("dolfinx", "dolfinx.cpp"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))


def test_the_page_on_dolfinx_fits_its_interface(dolfinx):
    parts, colours, order = blocks("use/dolfinx.md", "python")
    x = np.random.default_rng(0).random((400, 2))
    triangulation = Delaunay(x)
    table = triangulation.simplices.astype(np.int64)
    for rank in (0, 1):
        names = {
            "comm": types.SimpleNamespace(size=4, rank=rank),
            "element": None,
            "table": table if rank == 0 else table[:0],
            "x": x if rank == 0 else x[:0],
        }
        exec(parts, names)
        ranks = names["mesh"]
        assert ranks.num_nodes == len(names["table"])
        if rank == 0:
            figures = meshprep.check_partition(table, ranks.array, 4)
            assert figures.shared < 100

    # A table of dofs, as dofmap.list is.
    names |= {"V": types.SimpleNamespace(dofmap=types.SimpleNamespace(list=table))}
    exec(colours, names)
    meshprep.check_colours(table, names["colour"])
    assert names["pattern"].place.shape == (len(table), 3, 3)

    # The graph of cells that share a facet; the band is narrow in the new order.
    cell, side = np.nonzero(triangulation.neighbors >= 0)
    other = triangulation.neighbors[cell, side]
    offsets = np.searchsorted(cell, np.arange(len(table) + 1))
    exec(order, names)
    new = names["reorder_fn"](AdjacencyList(other.astype(np.int32), offsets))
    assert sorted(new.tolist()) == list(range(len(table)))
    assert abs(new[cell] - new[other]).max() < abs(cell - other).max() / 5


def test_figures_stand_beside_the_command_that_gives_them():
    claims = re.compile(r"\btimes (as fast|faster)|\d+ times\b")
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if claims.search(text):
            assert re.search(r"`make bench-\w+`", text), page.name
