"""Generated meshes fill their box, conform, and carry the tags they promise."""

from itertools import pairwise

import meshio
import numpy as np
import pytest
from gmsh_meshes import KINDS

from meshprep.io import write
from meshprep.io.generate import GENERATORS, generate
from meshprep.io.generate.box import delaunay3d
from meshprep.mesh.cells import SHAPES
from meshprep.topology import derive, unattached
from meshprep_runtime.errors import MeshprepError

SMALL = {
    "delaunay2d": {"cells": 300},
    "delaunay3d": {"cells": 500},
    "box": {"nx": 3, "ny": 4, "nz": 2},
    "mixed2d": {"nx": 5, "ny": 3},
    "mixed3d": {"nx": 6, "ny": 2, "nz": 3},
    "airfoil": {"i": 4, "j": 3},
}
FACETS = {2: "edges", 3: "faces"}


def measure(points, cell_type, cells):
    """Area or volume of each cell: the sum over its facets of area vector times position / dim."""
    shape = SHAPES[cell_type]
    centre = points[cells].mean(axis=1)
    total = np.zeros(len(cells))
    for facet in shape.facets:
        corners = [points[cells[:, i]] - centre for i in facet]
        if shape.dim == 2:
            (x1, y1), (x2, y2) = (c.T for c in corners)
            total += (x1 * y2 - x2 * y1) / 2
        else:
            # Quads are planar in these meshes.
            for second, third in pairwise(corners[1:]):
                total += np.einsum("ij,ij->i", corners[0], np.cross(second, third)) / 6
    return total


def top_sets(mesh):
    names = mesh.sets["cells"].parts or ("cells",)
    return [mesh.sets[n] for n in names]


def measures(mesh):
    return np.concatenate(
        [
            measure(mesh.coordinates, s.cell_type, mesh.cell_map(s.name).table)
            for s in top_sets(mesh)
        ]
    )


def closed(mesh):
    """The mesh with its interior and boundary facets."""
    entity = FACETS[SHAPES[top_sets(mesh)[0].cell_type].dim]
    return derive(mesh, [f"{entity}->cells", f"boundary_{entity}->cells"])


BOXES = [
    *[("box", {"type": t, **SMALL["box"]}) for t in SHAPES if SHAPES[t].dim > 1],
    *[(n, SMALL[n]) for n in ("delaunay2d", "delaunay3d", "mixed2d", "mixed3d")],
]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(("name", "options"), BOXES)
def test_the_box_is_filled_and_its_boundary_tagged(name, options, shuffle):
    mesh = generate(name, **options, shuffle=shuffle)
    dim = mesh.coordinates.shape[1]
    sizes = measures(mesh)
    assert sizes.min() > 0
    assert sizes.sum() == pytest.approx(1, abs=1e-12)
    assert all(rows.size == 0 for rows in unattached(mesh).values())
    # Were a pair of faces not to match, it would be boundary without a side.
    out = closed(mesh)
    tag = out.tag("physical", f"boundary_{FACETS[dim]}")
    assert set(tag.first_ids()) == set(range(1, 2 * dim + 1))
    used = np.concatenate([mesh.cell_map(s.name).table.reshape(-1) for s in top_sets(mesh)])
    assert np.unique(used).size == mesh.size("nodes")


@pytest.mark.parametrize(("name", "options"), [*BOXES, ("airfoil", SMALL["airfoil"])])
@pytest.mark.parametrize(("version", "binary"), KINDS)
def test_meshio_reads_every_mesh_and_the_group_of_its_cells(
    tmp_path, name, options, version, binary
):
    mesh = generate(name, **options, shuffle=True)
    write(mesh, tmp_path / "a.msh", version=version, binary=binary)
    theirs = meshio.read(tmp_path / "a.msh")
    group, dim = theirs.field_data["fluid" if name == "airfoil" else "domain"]
    assert dim == mesh.coordinates.shape[1]
    for s in mesh.cell_sets:
        mine = [k for k, block in enumerate(theirs.cells) if block.type == s.cell_type]
        table = np.concatenate([theirs.cells[k].data for k in mine])
        assert np.array_equal(table, mesh.cell_map(s.name).table)
        groups = np.concatenate([theirs.cell_data["gmsh:physical"][k] for k in mine])
        assert np.array_equal(groups, mesh.tag("physical", s.name).first_ids())
        assert (groups == group).all() == (s in top_sets(mesh))


def test_the_names_of_the_sides():
    mesh = generate("box", nx=2, ny=1, nz=1, type="tetra")
    tag = mesh.tag("physical", "triangle")
    assert dict(tag.names) == {
        1: "left",
        2: "right",
        3: "front",
        4: "back",
        5: "bottom",
        6: "top",
    }
    for axis in range(3):
        for end in range(2):
            rows = mesh.map("triangle->nodes").table[tag.first_ids() == 2 * axis + end + 1]
            assert len(rows) == (2 if axis == 0 else 4)
            assert (mesh.coordinates[rows][:, :, axis] == end).all()


@pytest.mark.parametrize(
    ("cell_type", "cells", "nodes", "interior", "boundary"),
    [
        ("quad", 12, 20, 3 * 3 + 2 * 4, 14),
        ("triangle", 24, 20, 17 + 12, 14),
        ("hexahedron", 24, 60, 2 * 8 + 3 * 6 + 12, 52),
        # A cube of six tetrahedra has 6 faces inside; each square face of the cube is two.
        ("tetra", 144, 60, 2 * 46 + 24 * 6, 104),
        # Split in wedges, the 12 + 2 * 12 squares across z are two triangles each.
        ("wedge", 48, 60, 2 * 12 + 2 * 8 + 3 * 6 + 24, 2 * 24 + 16 + 12),
        ("pyramid", 144, 84, 46 + 24 * 12, 52),
    ],
)
def test_box_counts(cell_type, cells, nodes, interior, boundary):
    out = closed(generate("box", nx=3, ny=4, nz=2, type=cell_type))
    entity = FACETS[SHAPES[cell_type].dim]
    found = [out.size(s) for s in ("cells", "nodes", entity, f"boundary_{entity}")]
    assert found == [cells, nodes, interior, boundary]


def test_mixed_counts():
    flat = generate("mixed2d", nx=5, ny=3)
    assert (flat.size("quad"), flat.size("triangle")) == (6, 18)
    solid = generate("mixed3d", nx=6, ny=2, nz=3)
    sizes = {s.cell_type: s.size for s in top_sets(solid)}
    # Columns: one of wedges, three of hexahedra, one bridge, one of tetrahedra.
    assert sizes == {"wedge": 12, "hexahedron": 18, "pyramid": 6, "tetra": 60 + 36}
    thin = {s.cell_type: s.size for s in top_sets(generate("mixed3d", nx=4, ny=1, nz=1))}
    assert thin == {"wedge": 2, "hexahedron": 1, "pyramid": 1, "tetra": 16}


@pytest.mark.parametrize("cells", [2, 17, 200, 3001])
def test_delaunay2d_has_the_cells_asked_for(cells):
    assert abs(generate("delaunay2d", cells=cells).size("cells") - cells) <= 2


@pytest.mark.parametrize("cells", [1000, 8000])
def test_delaunay3d_has_about_the_cells_asked_for(cells):
    assert generate("delaunay3d", cells=cells).size("cells") == pytest.approx(
        cells, rel=0.15
    )


def test_delaunay_cells_have_no_node_inside_their_circle():
    mesh = generate("delaunay2d", cells=150, seed=3)
    points = mesh.coordinates
    for cell in mesh.map("cells->nodes").table:
        a, b, c = points[cell]
        centre = np.linalg.solve(
            2 * np.array([b - a, c - a]), [b @ b - a @ a, c @ c - a @ a]
        )
        radius = np.linalg.norm(a - centre)
        others = np.delete(points, cell, axis=0)
        assert np.linalg.norm(others - centre, axis=1).min() > radius * (1 - 1e-9)


@pytest.mark.parametrize("name", SMALL)
def test_a_seed_gives_one_mesh(name):
    first = generate(name, **SMALL[name], shuffle=True, seed=5)
    again = generate(name, **SMALL[name], shuffle=True, seed=5)
    other = generate(name, **SMALL[name], shuffle=True, seed=6)
    assert first.content_hash() == again.content_hash()
    assert (first.coordinates == again.coordinates).all()
    assert first.content_hash() != other.content_hash()


@pytest.mark.parametrize("name", ["box", "mixed2d", "mixed3d", "airfoil"])
def test_shuffling_moves_numbers_only(name):
    def cells(mesh):
        xy = mesh.coordinates
        sets = mesh.cell_sets
        return {
            s.name: sorted(
                sorted(map(tuple, xy[row])) for row in mesh.cell_map(s.name).table
            )
            for s in sets
        }

    plain, mixed = (
        generate(name, **SMALL[name]),
        generate(name, **SMALL[name], shuffle=True),
    )
    assert cells(plain) == cells(mixed)
    assert plain.content_hash() != mixed.content_hash()


def test_unshuffled_delaunay_is_local():
    spread = {}
    for shuffle in (False, True):
        table = (
            generate("delaunay2d", cells=4000, shuffle=shuffle).map("cells->nodes").table
        )
        spread[shuffle] = np.ptp(table, axis=1).mean()
    assert spread[False] < spread[True] / 5


def airfoil_by_hand(n_i, n_j):
    """Edges of the C-mesh as pairs of cells and boundary edges as (cell, bound), in loops."""

    def cell(i, j):
        return i + 3 * n_i * j

    edges, boundary = [], []
    for j in range(n_j):
        for i in range(3 * n_i):
            if j == 0 and i < n_i:
                edges.append({cell(3 * n_i - 1 - i, 0), cell(i, 0)})
            if j < n_j - 1:
                edges.append({cell(i, j), cell(i, j + 1)})
            if i < 3 * n_i - 1:
                edges.append({cell(i, j), cell(i + 1, j)})
    boundary += [(cell(i, 0), 1) for i in range(n_i, 2 * n_i)]
    boundary += [(cell(3 * n_i - 1, j), 2) for j in range(n_j)]
    boundary += [(cell(i, n_j - 1), 2) for i in range(3 * n_i)]
    boundary += [(cell(0, j), 2) for j in range(n_j)]
    return edges, boundary


@pytest.mark.parametrize(("i", "j"), [(3, 1), (4, 6), (7, 2)])
def test_airfoil_has_the_edges_of_the_benchmark(i, j):
    edges, boundary = airfoil_by_hand(i, j)
    out = closed(generate("airfoil", i=i, j=j))
    assert sorted(map(sorted, out.map("edges->cells").table.tolist())) == sorted(
        map(sorted, edges)
    )
    cells = out.map("boundary_edges->cells").table[:, 0].tolist()
    bound = out.tag("physical", "boundary_edges").first_ids().tolist()
    assert sorted(zip(cells, bound, strict=True)) == sorted(boundary)
    assert len(edges) == 3 * i * (j - 1) + (3 * i - 1) * j + i
    assert len(boundary) == 2 * j + 4 * i
    assert out.size("nodes") == (3 * i + 1) * (j + 1) - (i + 1)


def test_airfoil_formulas_give_the_documented_counts():
    for i, j, edges, boundary in (
        (400, 600, 1_438_600, 2_800),
        (800, 1200, 5_757_200, 5_600),
    ):
        assert 3 * i * (j - 1) + (3 * i - 1) * j + i == edges
        assert 2 * j + 4 * i == boundary


def test_airfoil_by_number_of_cells():
    out = closed(generate("airfoil", cells=18_000))
    sizes = [out.size(s) for s in ("cells", "edges", "boundary_edges")]
    i, j = 63, 94
    assert sizes == [3 * i * j, 3 * i * (j - 1) + (3 * i - 1) * j + i, 2 * j + 4 * i]
    assert generate("airfoil", cells=180, j=10).size("cells") == 180


def test_airfoil_geometry():
    i, j = 40, 20
    mesh = generate("airfoil", i=i, j=j)
    points = mesh.coordinates
    assert measures(mesh).min() > 0
    # A node of the first row on the wake, one above it, and the far corners.
    x = -3 + 6 * 10 / (3 * i)
    assert points[10] == pytest.approx([x * x, 0])
    above = 2 * i + 10
    assert points[above] == pytest.approx([x * x - 0.15**2, 2 * x * 0.15])
    assert points[[-1, -3 * i - 1]] == pytest.approx(
        np.array([[0, 18], [0, -18]]), abs=1e-12
    )
    wall = mesh.map("line->nodes").table[mesh.tag("physical", "line").first_ids() == 1]
    assert len(wall) == i
    # NACA0012 scaled to a chord of about 1, shifted by the focus of the square root.
    on_wall = points[np.unique(wall)[1:]]
    chord = np.clip(on_wall[:, 0] + 0.0077, 0, None)
    series = 0.298222773 * np.sqrt(chord) - 0.127125232 * chord - 0.357907906 * chord**2
    series += 0.291984971 * chord**3 - 0.105174696 * chord**4
    assert np.abs(on_wall[:, 1]) == pytest.approx(0.594689181 * series, abs=1e-3)


def test_airfoil_edges_have_cell_0_on_their_left():
    mesh = generate("airfoil", i=5, j=4)
    out = derive(mesh, ["edges->cells", "edges->nodes"])
    points = mesh.coordinates
    centre = points[mesh.map("cells->nodes").table].mean(axis=1)
    ends = points[out.map("edges->nodes").table]
    dx, dy = (ends[:, 1] - ends[:, 0]).T
    away = ends.mean(axis=1) - centre[out.map("edges->cells").table[:, 0]]
    assert (dy * away[:, 0] - dx * away[:, 1] > 0).all()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("torus", {}, "no mesh 'torus': choose delaunay2d, "),
        (
            "box",
            {"cells": 5},
            "'box' has no option 'cells': use nx, ny, nz, type, shuffle, seed$",
        ),
        ("box", {"nx": -1}, "option 'nx' is -1, must be a whole number, 0 or more$"),
        ("box", {"nx": 1.5}, "option 'nx' is 1.5, must be a whole"),
        ("box", {"nx": True}, "option 'nx' is True, must be a whole"),
        ("box", {"nx": 0}, r"nx is 0, must be within 1\.\."),
        (
            "box",
            {"nx": 10**6, "ny": 10**6},
            "the number of nodes is 33000066000033, must be",
        ),
        ("box", {"type": "cube"}, "type 'cube' is unknown: choose quad, triangle, "),
        (
            "box",
            {"shuffle": "maybe"},
            "option 'shuffle' is 'maybe', must be true or false$",
        ),
        ("mixed2d", {"nx": 1}, "nx is 1, must be within 2"),
        ("mixed3d", {"nx": 3}, "nx is 3, must be within 4"),
        ("delaunay2d", {"cells": 1}, "cells is 1, must be within 2"),
        ("delaunay3d", {"cells": 9**30}, "option 'cells' is .*, must be a whole"),
        ("airfoil", {"i": 2}, "i is 2, must be within 3"),
        ("airfoil", {"cells": 10**12}, "cells is .*, must be within"),
        ("airfoil", {"i": 10**6}, "the number of nodes is .*, must be within"),
    ],
)
def test_bad_requests(name, options, message):
    with pytest.raises(MeshprepError, match=message):
        generate(name, **options)


def test_options_may_be_text():
    mesh = generate("box", nx="2", ny=" 3 ", type="quad", shuffle="true")
    assert (
        mesh.content_hash()
        == generate("box", nx=2, ny=3, type="quad", shuffle=True).content_hash()
    )


def test_the_registry_tells_what_there_is():
    assert set(GENERATORS) == set(SMALL)
    for generator in GENERATORS.values():
        assert "\n" not in generator.description
        assert {"shuffle", "seed"} <= set(generator.options)
    assert delaunay3d(200, 0, True).size("cells") > 100
