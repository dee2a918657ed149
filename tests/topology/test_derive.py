"""Edges, faces and boundaries, against numbers counted by hand."""

import re
import tomllib

import numpy as np
import pytest

from meshprep.loops.request_maps import plan_request_maps
from meshprep.loops.requests import LoopRequest, simple_request
from meshprep.loops.template import template
from meshprep.mesh import ElementSet, Mesh, SetMap
from meshprep.mesh.assemble import Block, assemble
from meshprep.mesh.cells import SHAPES
from meshprep.topology import derivable, derive
from meshprep_runtime.errors import MeshprepError

HEX = [
    [0, 0, 0],
    [1, 0, 0],
    [1, 1, 0],
    [0, 1, 0],
    [0, 0, 1],
    [1, 0, 1],
    [1, 1, 1],
    [0, 1, 1],
]
CORNERS = {
    "triangle": [[0, 0, 0], [1, 0, 0], [0, 1, 0]],
    "quad": HEX[:4],
    "tetra": [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "pyramid": [*HEX[:4], [0.5, 0.5, 1]],
    "wedge": [HEX[0], HEX[1], HEX[3], HEX[4], HEX[5], HEX[7]],
    "hexahedron": HEX,
}


def build(cells, n_nodes=None, points=None):
    """A mesh from {type: rows of nodes}."""
    if points is None:
        n = 1 + max(max(map(max, rows)) for rows in cells.values())
        points = np.zeros((n_nodes or n, 3))
    blocks = [Block(t, np.array(rows, np.int32)) for t, rows in cells.items()]
    return assemble(np.array(points, float), blocks)[0]


def table(mesh, name):
    return mesh.map(name).table.tolist()


# Edges, triangle faces, quad faces of one cell.
COUNTS = {
    "triangle": (3, 0, 0),
    "triangle6": (3, 0, 0),
    "quad": (4, 0, 0),
    "quad9": (4, 0, 0),
    "tetra": (6, 4, 0),
    "tetra10": (6, 4, 0),
    "pyramid": (8, 4, 1),
    "pyramid14": (8, 4, 1),
    "wedge": (9, 2, 3),
    "wedge15": (9, 2, 3),
    "hexahedron": (12, 0, 6),
    "hexahedron27": (12, 0, 6),
    "VTK_LAGRANGE_TETRAHEDRON": (6, 4, 0),
}
WIDTH = {"VTK_LAGRANGE_TETRAHEDRON": 20, "triangle": 3, "quad": 4, "tetra": 4, "pyramid": 5}
WIDTH |= {"wedge": 6, "hexahedron": 8}
WIDTH |= {t: int("".join(c for c in t if c.isdigit())) for t in COUNTS if t[-1].isdigit()}


@pytest.mark.parametrize("cell_type", COUNTS)
def test_one_cell(cell_type):
    n_edges, n_triangles, n_quads = COUNTS[cell_type]
    mesh = build({cell_type: [list(range(WIDTH[cell_type]))]})
    edges = derive(mesh, ["edges->nodes"])
    assert edges.size("edges") == n_edges
    assert len({tuple(sorted(e)) for e in table(edges, "edges->nodes")}) == n_edges
    if n_triangles + n_quads == 0:
        closed = derive(
            mesh, ["edges->cells", "boundary_edges->cells", "boundary_edges->nodes"]
        )
        assert closed.map("edges->cells").table.shape == (0, 2)
        assert table(closed, "boundary_edges->cells") == [[0]] * n_edges
        return
    closed = derive(mesh, ["faces->cells", "boundary_faces->cells"])
    assert closed.map("faces->cells").table.shape == (0, 2)
    assert table(closed, "boundary_faces->cells") == [[0]] * (n_triangles + n_quads)
    if n_triangles and n_quads:
        types = ["boundary_triangle_faces->nodes", "boundary_quad_faces->nodes"]
        closed = derive(mesh, types)
        assert closed.size("boundary_triangle_faces") == n_triangles
        assert closed.size("boundary_quad_faces") == n_quads
    cells_faces = derive(mesh, ["cells->faces"])
    assert sorted(table(cells_faces, "cells->faces")[0]) == list(
        range(n_triangles + n_quads)
    )


def test_two_triangles():
    # 3--2
    # | /|
    # 0--1
    mesh = build({"triangle": [[0, 1, 2], [0, 2, 3]]})
    inner = derive(mesh, ["edges->cells", "edges->nodes", "boundary_edges->cells"])
    assert table(inner, "edges->cells") == [[0, 1]]
    assert table(inner, "edges->nodes") == [[2, 0]]
    assert table(inner, "boundary_edges->cells") == [[0], [0], [1], [1]]
    every = derive(mesh, ["edges->nodes", "boundary_edges->nodes", "cells->edges"])
    assert table(every, "edges->nodes") == [[0, 1], [1, 2], [2, 0], [2, 3], [3, 0]]
    assert table(every, "cells->edges") == [[0, 1, 2], [2, 3, 4]]
    assert table(every, "boundary_edges->nodes") == [[0, 1], [1, 2], [2, 3], [3, 0]]
    assert "edges" not in mesh.sets


def test_two_tets():
    mesh = build({"tetra": [[0, 1, 2, 3], [1, 2, 3, 4]]})
    out = derive(
        mesh, ["faces->cells", "faces->nodes", "boundary_faces->cells", "edges->nodes"]
    )
    assert table(out, "faces->cells") == [[0, 1]]
    assert table(out, "faces->nodes") == [[1, 2, 3]]
    assert table(out, "boundary_faces->cells") == [[0]] * 3 + [[1]] * 3
    assert out.size("edges") == 9


def test_two_hexes():
    mesh = build({"hexahedron": [[0, 1, 2, 3, 4, 5, 6, 7], [4, 5, 6, 7, 8, 9, 10, 11]]})
    out = derive(
        mesh, ["faces->cells", "faces->nodes", "boundary_faces->nodes", "cells->edges"]
    )
    assert table(out, "faces->nodes") == [[4, 5, 6, 7]]
    assert out.size("boundary_faces") == 10
    assert out.size("edges") == 20
    assert derive(mesh, ["cells->faces"]).size("faces") == 11


def test_pyramid_on_hex():
    mesh = build({"hexahedron": [[0, 1, 2, 3, 4, 5, 6, 7]], "pyramid": [[4, 5, 6, 7, 8]]})
    out = derive(
        mesh, ["faces->cells", "quad_faces->nodes", "boundary_triangle_faces->nodes"]
    )
    assert table(out, "faces->cells") == [[0, 1]]
    assert table(out, "quad_faces->nodes") == [[4, 5, 6, 7]]
    assert out.sets["faces"].parts == ("triangle_faces", "quad_faces")
    assert out.size("triangle_faces") == 0
    assert out.size("boundary_triangle_faces") == 4
    assert out.size("boundary_faces") == 9


def test_tet_and_pyramid_number_triangles_before_quads():
    # The tet shares the pyramid's face (0, 1, 4); the pyramid is cell 1.
    mesh = build({"tetra": [[0, 1, 4, 5]], "pyramid": [[0, 1, 2, 3, 4]]})
    every = derive(mesh, ["triangle_faces->nodes", "quad_faces->nodes"])
    assert (every.size("triangle_faces"), every.size("quad_faces")) == (7, 1)
    assert every.size("faces") == 8
    assert derive(mesh, ["edges->nodes"]).size("edges") == 11
    inner = derive(mesh, ["faces->cells", "boundary_faces->cells"])
    assert table(inner, "faces->cells") == [[0, 1]]
    assert table(inner, "boundary_faces->cells") == [[0]] * 3 + [[1]] * 4


def test_wedges_glued_on_a_quad_have_faces_in_the_union():
    mesh = build({"wedge": [[0, 1, 2, 3, 4, 5], [1, 6, 2, 4, 7, 5]]})
    assert derive(mesh, ["faces->cells"]).sets["faces"].parts == ()
    out = derive(mesh, ["cells->faces", "quad_faces->nodes"])
    # Triangles 0..3, quads 4..8; local order: two triangles, then three quads.
    assert table(out, "cells->faces") == [[0, 1, 4, 5, 6], [2, 3, 7, 8, 5]]
    assert out.sets["faces"].parts == ("triangle_faces", "quad_faces")


def test_mixed_2d():
    mesh = build({"triangle": [[1, 4, 2]], "quad": [[0, 1, 2, 3]]})
    out = derive(mesh, ["edges->cells", "edges->nodes", "boundary_edges->cells"])
    assert table(out, "edges->cells") == [[0, 1]]
    assert table(out, "edges->nodes") == [[2, 1]]
    assert table(out, "boundary_edges->cells") == [[0], [0], [1], [1], [1]]


def test_lines_below_the_cells_make_no_edges():
    mesh = build({"line": [[0, 1]], "triangle": [[0, 1, 2]], "vertex": [[2]]})
    assert derive(mesh, ["edges->nodes"]).size("edges") == 3


def test_moebius_strip_is_fine():
    # Five quads in a ring, glued with a twist: one boundary edge curve, five inner edges.
    rows = [[2 * i, 2 * i + 2, 2 * i + 3, 2 * i + 1] for i in range(4)] + [[8, 1, 0, 9]]
    out = derive(build({"quad": rows}), ["edges->cells", "boundary_edges->nodes"])
    assert table(out, "edges->cells") == [[0, 1], [0, 4], [1, 2], [2, 3], [3, 4]]
    assert out.size("boundary_edges") == 10


def test_closed_surface_has_no_boundary():
    faces = [list(f) for f in SHAPES["hexahedron"].faces]
    out = derive(build({"quad": faces}), ["edges->cells", "boundary_edges->cells"])
    assert out.size("edges") == 12
    assert out.size("boundary_edges") == 0


FAN = [[0, 1, 2], [0, 1, 3], [1, 0, 4]]


def test_three_cells_on_an_edge_are_named():
    mesh = build({"triangle": FAN})
    with pytest.raises(
        MeshprepError, match=r"edge with nodes 0, 1 belongs to 3 cells \(0, 1, 2;"
    ):
        derive(mesh, ["edges->cells"])
    with pytest.raises(
        MeshprepError, match=r"use another loop, for example 'cells->nodes'$"
    ):
        derive(mesh, ["edges->nodes", "edges->cells"])


NON_MANIFOLD = {
    "a fan": {"triangle": FAN},
    "a fan of two types": {"triangle": FAN[:2], "quad": [[0, 1, 4, 5]]},
    "solids": {"tetra": [[0, 2, 1, 3], [0, 1, 2, 4], [0, 1, 2, 5]]},
    "solids of two types": {
        "tetra": [[0, 2, 1, 3], [0, 1, 2, 4]],
        "wedge": [[0, 1, 2, 5, 6, 7]],
    },
}


@pytest.mark.parametrize("name", NON_MANIFOLD)
def test_every_message_names_a_loop_that_works(name):
    mesh = build(NON_MANIFOLD[name])
    asked = ["edges->cells", "faces->cells", "cells->nodes", "cells->edges", "cells->faces"]
    named = 0
    for map_name in asked:
        try:
            derive(mesh, [map_name])
        except MeshprepError as error:
            said = str(error)
        else:
            continue
        other = re.search("'([a-z]+->[a-z]+)'$", said)
        if other:
            named += 1
            assert plan_request_maps(mesh, [simple_request(other[1])])[0].map(other[1]).size
        else:
            assert "cannot give map" in said
    assert named >= 1
    requests = tomllib.loads(template(mesh, "x"))["loop"]
    loops = [LoopRequest(n, values, n) for n, values in requests.items()]
    assert len(plan_request_maps(mesh, loops)[1]) == len(loops) > 0


def test_three_cells_on_an_edge_do_no_harm_elsewhere():
    out = derive(build({"triangle": FAN}), ["edges->nodes", "boundary_edges->cells"])
    assert out.size("edges") == 7
    assert table(out, "boundary_edges->cells") == [[0], [0], [1], [1], [2], [2]]


def test_three_cells_on_a_face_of_a_mixed_mesh():
    tets = [[0, 1, 4, 5], [0, 1, 4, 6]]
    mesh = build({"tetra": tets, "pyramid": [[0, 1, 2, 3, 4]]})
    with pytest.raises(
        MeshprepError, match=r"face with nodes 0, 4, 1 belongs to 3 cells \(0, 1, 2;"
    ):
        derive(mesh, ["faces->cells"])
    assert derive(mesh, ["quad_faces->nodes"]).size("triangle_faces") == 10


@pytest.mark.parametrize("cell_type", CORNERS)
def test_facets_point_out_of_the_lower_cell(cell_type):
    # A cell beside its mirror image in the plane of each facet, so that every facet is interior.
    shape = SHAPES[cell_type]
    base = np.array(CORNERS[cell_type], float)
    entity = {2: "edges", 3: "faces"}[shape.dim]
    for facet in shape.facets:
        own = base[list(facet)]
        normal = outward(own, base.mean(axis=0))
        others = [i for i in range(shape.n_corners) if i not in facet]
        mirror = base[others] - 2 * np.outer((base[others] - own[0]) @ normal, normal)
        row = list(range(shape.n_corners))
        for place, i in enumerate(others):
            row[i] = shape.n_corners + place
        mesh = build(
            {cell_type: [list(range(shape.n_corners)), row]},
            points=np.vstack([base, mirror]),
        )
        names = [n for n in derivable(mesh) if n.endswith(f"{entity}->nodes")]
        names = [n for n in names if not n.startswith("boundary_")]
        out = derive(mesh, [f"{entity}->cells", *names])
        (found,) = (f for n in names for f in table(out, n))
        assert set(found) == set(facet)
        assert area_vector(base[found]) @ normal > 0


def area_vector(corners):
    """By the right-hand rule; of an edge, its normal to the right."""
    if len(corners) == 2:
        along = corners[1] - corners[0]
        return np.array([along[1], -along[0], 0.0])
    return np.cross(corners[1] - corners[0], corners[2] - corners[0])


def outward(corners, centre):
    """Unit normal of a planar facet, away from the centre of the cell."""
    normal = area_vector(corners)
    normal /= np.linalg.norm(normal)
    return normal * np.sign((corners.mean(axis=0) - centre) @ normal)


def test_what_is_there_is_left_alone():
    mesh = build({"triangle": [[0, 1, 2]]})
    assert derive(mesh, ["cells->nodes"]) is mesh
    assert derive(mesh, []) is mesh
    out = derive(mesh, ["cells->nodes", "edges->nodes", "edges->nodes"])
    assert derive(out, ["edges->nodes"]) is out
    more = derive(out, ["boundary_edges->cells"])
    assert more.map("edges->nodes") is out.map("edges->nodes")


def test_tables_of_one_call_agree():
    mesh = build({"quad": [[0, 1, 4, 3], [1, 2, 5, 4], [3, 4, 7, 6], [4, 5, 8, 7]]})
    out = derive(mesh, ["edges->cells", "edges->nodes"])
    nodes = mesh.map("cells->nodes").table
    for cells, ends in zip(
        table(out, "edges->cells"), table(out, "edges->nodes"), strict=True
    ):
        assert all(set(ends) <= set(nodes[c].tolist()) for c in cells)


@pytest.mark.parametrize(
    ("cells", "names", "message"),
    [
        (
            {"triangle": [[0, 1, 2]]},
            ["faces->cells"],
            "'edges->nodes', 'boundary_edges->cells', 'boundary_edges->nodes', 'cells->edges'$",
        ),
        (
            {"tetra": [[0, 1, 2, 3]]},
            ["edges->cells"],
            "choose 'cells->nodes', 'edges->nodes', 'cells->e",
        ),
        (
            {"line": [[0, 1]]},
            ["edges->nodes"],
            "cannot give map 'edges->nodes': choose 'cells->nodes'$",
        ),
        (
            {"triangle": [[0, 1, 2]], "quad": [[0, 1, 3, 4]]},
            ["cells->nodes"],
            "several types: use 'triangle->nodes', 'quad->nodes', or 'edges->nodes'$",
        ),
        (
            {"triangle": [[0, 1, 2]], "quad": [[0, 1, 3, 4]]},
            ["cells->edges"],
            "different numbers of edges: use another loop, for example 'edges->nodes'$",
        ),
        (
            {"wedge": [[0, 1, 2, 3, 4, 5]]},
            ["faces->nodes"],
            "use 'triangle_faces->nodes' and 'quad_faces->nodes'$",
        ),
        (
            {"wedge": [[0, 1, 2, 3, 4, 5]]},
            ["boundary_faces->nodes"],
            "use 'boundary_triangle_faces->nodes' and 'boundary_quad_faces->nodes'$",
        ),
        (
            {"tetra": [[0, 1, 2, 3]]},
            ["faces->cells", "cells->faces"],
            "ask for one of the two$",
        ),
        (
            {"quad": [[0, 1, 2, 3]]},
            ["cells->edges", "edges->cells"],
            "ask for one of the two$",
        ),
    ],
)
def test_names_that_cannot_be_had(cells, names, message):
    with pytest.raises(MeshprepError, match=message) as caught:
        derive(build(cells), names)
    assert "\n" not in str(caught.value)


def test_a_set_is_never_filled_up_later():
    out = derive(build({"triangle": [[0, 1, 2]]}), ["edges->nodes"])
    with pytest.raises(MeshprepError, match="ask for all maps of 'edges' at once"):
        derive(out, ["edges->cells"])
    with pytest.raises(MeshprepError, match="ask for all maps of 'edges' at once"):
        derive(out, ["cells->edges"])


def test_a_mesh_without_cell_types():
    sets = [ElementSet("edges", 1), ElementSet("cells", 2)]
    mesh = Mesh(sets, [SetMap("edges->cells", "edges", "cells", np.array([[0, 1]]))])
    assert derive(mesh, ["edges->cells"]) is mesh
    with pytest.raises(
        MeshprepError,
        match=r"to derive 'edges->nodes' from: use its own maps, edges->cells$",
    ):
        derive(mesh, ["edges->nodes"])
    assert derivable(mesh) == ()


def test_derivable_is_what_derive_accepts():
    mesh = build({"wedge": [[0, 1, 2, 3, 4, 5], [1, 6, 2, 4, 7, 5]]})
    assert derivable(mesh) == (
        "edges->nodes",
        "cells->edges",
        "faces->cells",
        "triangle_faces->nodes",
        "quad_faces->nodes",
        "boundary_faces->cells",
        "boundary_triangle_faces->nodes",
        "boundary_quad_faces->nodes",
        "cells->faces",
    )
    for name in derivable(mesh):
        assert name in derive(mesh, [name]).maps


def test_a_map_of_a_map_is_composed_of_what_is_derived():
    mesh = build({"triangle": [[0, 1, 2], [1, 3, 2], [3, 4, 2]]})
    full = derive(mesh, ["edges->cells->nodes"])
    assert table(full, "edges->cells") == [[0, 1], [1, 2]]
    assert table(full, "edges->cells->nodes") == [[0, 1, 2, 1, 3, 2], [1, 3, 2, 3, 4, 2]]
    assert derive(full, ["edges->cells->nodes", "cells->nodes"]) is full
    with pytest.raises(MeshprepError, match="cannot give map 'nodes->rims'"):
        derive(mesh, ["cells->nodes->rims"])
