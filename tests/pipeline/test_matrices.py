"""Matrices in plans: pattern and places against scipy, and their words."""

import effort
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix_loops import stiffness

from meshprep.distribute.subject import subject_of_plan
from meshprep.io.generate import generate
from meshprep.loops.request_maps import plan_request_maps
from meshprep.loops.requests import LoopRequest, read_requests
from meshprep.mesh import ElementSet, Mesh, SetMap, Tag
from meshprep.metrics.product_traffic import store_bytes
from meshprep.metrics.traffic import LAYOUTS
from meshprep.pipeline.steps import Options, prepare
from meshprep.reporting.html.page import matrix_sections
from meshprep.reporting.matrices import input_nonzeros
from meshprep.staging.matrices import (
    _fill_places,
    _visit_entries,
    build_matrices,
    input_reach,
)
from meshprep.staging.numbering import Numbering
from meshprep.topology import constrained_points, derive
from meshprep_runtime import MeshprepError


def counted(plan, loop="stiffness", name="K"):
    """How many entries of elements each nonzero gets, by scipy from the maps alone."""
    arg, matrix = plan[loop].loop.matrices[0], plan.matrices[name]
    rows, columns = plan.maps[arg.map].table, plan.maps[arg.columns].table
    r = np.repeat(matrix.row_of[rows], columns.shape[1], axis=1).ravel()
    c = np.tile(matrix.column_of[columns], (1, rows.shape[1])).ravel()
    kept = (r >= 0) & (c >= 0)
    ones = np.ones(kept.sum(), np.int64)
    return scipy.sparse.coo_array((ones, (r[kept], c[kept])), matrix.shape).tocsr(), kept


def test_the_pattern_and_the_places_are_those_of_scipy(plan):
    matrix, (wanted, kept) = plan.matrices["K"], counted(plan)
    wanted.sort_indices()
    assert np.array_equal(matrix.row_ptr, wanted.indptr)
    assert np.array_equal(matrix.columns, wanted.indices)
    place = matrix.place["stiffness"].ravel()
    assert np.array_equal(place >= 0, kept)
    assert np.array_equal(np.bincount(place[kept]), wanted.data)
    csr = matrix.csr()
    csr.check()
    assert csr.shape == matrix.shape
    assert not csr.values.any()


def test_the_bytes_of_assembly(plan):
    shown, loop = plan.metrics.loops["stiffness"].variants["s64"], plan["stiffness"]
    nodes, cells = plan.sizes["nodes"], plan.sizes["cells"]
    nonzeros = plan.matrices["K"].columns.size
    # two doubles a node, and each nonzero read and written
    assert shown.after.useful_bytes == 16 * nodes + 16 * nonzeros
    for layout in LAYOUTS:
        assert shown.before.traffic[layout].written > shown.after.traffic[layout].written
        assert 32 * shown.after.traffic[layout].written >= 8 * nonzeros
    bytes_of = {s.store: s.assembly for s in store_bytes(plan.matrices["K"], 8, [loop])}
    corners, places = 12 * cells, 4 * 36 * cells
    added = shown.after.useful_bytes + corners + places
    apart = 16 * nodes + corners + 8 * 36 * cells
    place = plan.matrices["K"].place["stiffness"]
    several = np.count_nonzero(place >= 0) - nonzeros
    assert bytes_of == {
        "csr": added,
        "ellpack": added,
        "lazy-ellpack": added + 16 * several,
        "local": apart,
        "local, half": None,
    }
    variant = loop.variant()
    # of what is staged, only x counts: two doubles a node
    lengths = np.diff(variant.staging["nodes"].point_offset)
    assert shown.after.staged_bytes.max == 16 * lengths.max()


@pytest.mark.parametrize("columns", ["cells->dofs2", "cells->dofs1"])
def test_what_the_order_is_compared_with(mesh, columns):
    """The same matrix as made in the order of the input."""
    requests = [stiffness("cells->dofs2", columns, fixed="boundary")]
    plan = prepare(mesh, requests, Options(block_size=64)).plan
    full, specs = plan_request_maps(mesh, requests)
    wanted = build_matrices(Numbering.of(full), specs)["K"]
    maps, sizes = input_reach(plan, plan["stiffness"])
    assert np.array_equal(maps["cells->nonzeros of K"].table, wanted.place["stiffness"])
    assert sizes["nonzeros of K"] == wanted.columns.size
    rows, found = input_nonzeros(plan, plan.matrices["K"])
    order = np.lexsort((found, rows))
    assert np.array_equal(found[order], wanted.columns)
    assert np.array_equal(np.bincount(rows), np.diff(wanted.row_ptr))


@pytest.mark.parametrize(
    ("over", "matrix", "said"),
    [
        ("e", "e->p", "matrix 'e->p' has the name of a map: leave '->' out"),
        (
            "nonzeros of K",
            "K",
            "a set has the name 'nonzeros of K': give the matrix another one",
        ),
    ],
)
def test_names_that_others_have_are_refused(over, matrix, said):
    """Compiled code went through the map, or past the end of the set, of that name."""
    table = SetMap(f"{over}->p", over, "p", np.array([[0, 1], [1, 2]]))
    mesh = Mesh([ElementSet(over, 2), ElementSet("p", 3)], [table])
    arg = {"mat": matrix, "rows": table.name, "columns": table.name, "access": "inc"}
    request = LoopRequest("l", {"over": over, "args": [arg]}, "here")
    with pytest.raises(MeshprepError, match=said):
        prepare(mesh, [request])


@st.composite
def random_maps(draw):
    """Two maps of one set, not onto, points named twice; and which points of one are fixed."""
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    n = draw(st.integers(0, 40))
    sizes = {"p": draw(st.integers(1, 20)), "q": draw(st.integers(1, 20))}
    arities = {"p": draw(st.integers(1, 4)), "q": draw(st.integers(1, 3))}
    maps = [
        SetMap(f"e->{s}", "e", s, rng.integers(0, sizes[s], (n, arities[s]))) for s in sizes
    ]
    fixed = (rng.random(sizes["p"]) < draw(st.sampled_from([0, 0.3, 1]))).astype(np.int64)
    sets = [ElementSet("e", n), *(ElementSet(s, size) for s, size in sizes.items())]
    return Mesh(sets, maps, tags=[Tag.from_ids("t", "p", fixed, {1: "held"})])


@settings(max_examples=effort.examples(40), deadline=None)
@given(random_maps(), st.sampled_from(["e->p", "e->q"]), st.sampled_from(["gpu", "cpu"]))
def test_any_maps_give_a_right_matrix(mesh, columns, target):
    """All points may be fixed, there may be no element, and elements may name a point twice."""
    arg = {"mat": "K", "rows": "e->p", "columns": columns, "access": "inc"}
    held = (mesh.tag("t", "p").first_ids() == 1).any()
    request = LoopRequest(
        "m", {"over": "e", "args": [arg | {"fixed": ["held"] if held else []}]}, "test"
    )
    plan = prepare(mesh, [request], Options(target=target, block_size=8)).plan
    assert plan.verify() == []
    matrix, (wanted, _) = plan.matrices["K"], counted(plan, "m")
    wanted.sort_indices()
    assert np.array_equal(matrix.row_ptr, wanted.indptr)
    assert np.array_equal(matrix.columns, wanted.indices)
    place = matrix.place["m"]
    assert np.array_equal(np.bincount(place[place >= 0], minlength=wanted.nnz), wanted.data)
    (section,) = matrix_sections(("",), (plan,))
    assert len(section.figures) == (2 if wanted.nnz else 0)


def test_constrained_dofs_have_no_row(mesh, plan):
    """Those of the boundary of the input, in the order of the plan."""
    full = derive(mesh, ["cells->dofs2"])
    fixed = constrained_points(full, "cells->dofs2", ["boundary"])
    row_of = plan.matrices["K"].row_of
    assert np.array_equal(row_of < 0, plan.ordering["dofs2"].apply(fixed))
    assert 0 < fixed.sum() < fixed.size
    assert row_of[row_of >= 0].tolist() == list(range(int((~fixed).sum())))


def test_a_matrix_of_other_rows_than_columns(mesh):
    """Taylor-Hood's divergence: linear rows, quadratic columns."""
    request = stiffness("cells->dofs1", "cells->dofs2", fixed="boundary")
    plan = prepare(mesh, [request], Options(block_size=64)).plan
    matrix, (wanted, _) = plan.matrices["K"], counted(plan)
    assert matrix.shape == wanted.shape == (matrix.row_of.max() + 1, plan.sizes["dofs2"])
    wanted.sort_indices()
    assert np.array_equal(matrix.columns, wanted.indices)
    assert plan.verify() == []


@pytest.mark.parametrize("reverse", [False, True])
def test_two_loops_add_to_one_matrix(mesh, reverse):
    """Its pattern is that of both, whichever comes first; so are its constraints."""
    edges = stiffness("boundary_edges->nodes", name="robin", over="boundary_edges")
    loops = [stiffness("cells->nodes", fixed="left"), edges]
    plan = prepare(mesh, loops[::-1] if reverse else loops, Options(block_size=64)).plan
    assert plan.verify() == []
    matrix, (robin, _) = plan.matrices["K"], counted(plan, "robin")
    assert 0 < matrix.shape[0] < matrix.row_of.size
    place = matrix.place["robin"]
    found = np.bincount(place[place >= 0], minlength=matrix.columns.size)
    made = scipy.sparse.csr_array((found, matrix.columns, matrix.row_ptr), matrix.shape)
    assert abs(made - robin).max() == 0
    both = counted(plan)[0] + robin
    assert np.array_equal(matrix.row_ptr, both.indptr)


def test_triangles_and_quads_add_to_one_matrix():
    mesh = generate("mixed2d", nx=6, ny=4, shuffle=True)
    loops = [
        stiffness(f"{kind}->dofs2", name=f"of_{kind}", over=kind, fixed=fixed)
        for kind, fixed in (("quad", "boundary"), ("triangle", []))
    ]
    plan = prepare(mesh, loops, Options(block_size=16)).plan
    assert plan.verify() == []
    both = counted(plan, "of_quad")[0] + counted(plan, "of_triangle")[0]
    matrix = plan.matrices["K"]
    assert np.array_equal(matrix.row_ptr, both.indptr)
    # 13 x 9 points, of which the outermost are constrained, though one loop alone says so
    assert matrix.row_of.size == 13 * 9
    assert matrix.shape == (11 * 7, 11 * 7)


def test_loops_must_agree_about_a_matrix(mesh):
    edges = stiffness("boundary_edges->nodes", name="robin", over="boundary_edges")
    with pytest.raises(MeshprepError, match="other sets or another dtype"):
        prepare(mesh, [stiffness("cells->nodes", dtype="f4"), edges])


def test_a_mesh_in_parts_keeps_no_fixed_dofs(plan):
    with pytest.raises(
        MeshprepError, match="'stiffness': matrix 'K' has fixed dofs, which a mesh"
    ):
        subject_of_plan(plan)


TOML = """
[loop.stiffness]
over = "cells"
args = [
  { dat = "x", map = "cells:nodes", dim = 2 },
  { mat = "K", rows = "cells:dofs2", columns = "cells:dofs2", access = "inc", fixed = %s },
]
"""


def test_a_matrix_in_loops_toml(mesh, plan, tmp_path):
    path = tmp_path / "loops.toml"
    path.write_text(TOML % '"boundary"')
    found = prepare(mesh, read_requests(path), Options(block_size=64)).plan
    assert np.array_equal(found.matrices["K"].columns, plan.matrices["K"].columns)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"fixed": "roof"}, "there is no group 'roof' on the boundary"),
        ({"fixed": True}, "fixed is True, must be"),
        ({"access": "write"}, 'access "inc"'),
        ({"rows": None}, "matrix 'K' takes rows ="),
        ({"columns": None}, "columns is None, must be text"),
        ({"columns": "cells->dofs7"}, "cannot give map 'cells->dofs7'"),
        ({"rows": "edges->cells"}, "runs over 'cells'"),
        ({"map": "cells->nodes"}, "unknown key 'map'"),
        ({"dat": "x"}, "unknown key 'dat'"),
    ],
)
def test_words_that_make_no_matrix(mesh, args, words):
    """A key that is None is left out."""
    arg = {
        "mat": "K",
        "rows": "cells->dofs1",
        "columns": "cells->dofs1",
        "access": "inc",
    } | args
    arg = {key: value for key, value in arg.items() if value is not None}
    request = LoopRequest("m", {"over": "cells", "args": [arg]}, "here")
    with pytest.raises(MeshprepError) as error:
        prepare(mesh, [request])
    assert words in str(error.value)


def test_kernels_are_compiled_once_for_all_matrices(plan, mesh):
    """Whatever the shape and the constraints; a second signature would compile for seconds."""
    other = prepare(mesh, [stiffness("cells->dofs1", "cells->dofs2")]).plan
    assert plan.matrices.keys() == other.matrices.keys()
    assert [len(kernel.overloads) for kernel in (_visit_entries, _fill_places)] == [1, 1]
