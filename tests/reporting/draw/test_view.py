"""Views of meshes against slow searches for the element at each place."""

import sys

import numpy as np
import pytest

from meshprep.io.generate import generate
from meshprep.mesh import Dat, ElementSet, Mesh, SetMap
from meshprep.reporting.draw import count_entries, place, views_of
from meshprep.reporting.draw.colours import LIGHT, by_group, by_number, palette_of
from meshprep.reporting.draw.pieces import NO_ELEMENT
from meshprep.topology import derive
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.ordering import Ordering

RANDOM = np.random.default_rng(5)
# Where a picture shows nothing.
OUTSIDE = -2


def _places(view, count=60):
    """Random places of a picture: where they lie in it, and in the mesh."""
    drawn = RANDOM.random((count, 2)) * [1, view.height]
    size = view.x[1] - view.x[0]
    return drawn, drawn * size + [view.x[0], view.y[0]]


def _shown(view, drawn):
    """The element that a picture shows at each place; OUTSIDE where there is none."""
    found = np.full(len(drawn), OUTSIDE)
    for triangle, element in zip(view.pieces.corners, view.pieces.element, strict=True):
        edges = np.roll(triangle, -1, axis=0) - triangle
        away = drawn[:, None] - triangle
        side = edges[:, 0] * away[..., 1] - edges[:, 1] * away[..., 0]
        found[(side >= 0).all(axis=1) | (side <= 0).all(axis=1)] = element
    return found


def _weights(corners, point):
    """Barycentric coordinates of a point in a simplex."""
    edges = (corners[1:] - corners[0]).T
    rest = np.linalg.solve(edges, point - corners[0])
    return np.append(1 - rest.sum(), rest)


def _cell_at(xyz, table, point):
    """The cells whose simplex holds the point, with its coordinates in the first of them."""
    found = [(c, _weights(xyz[row], point)) for c, row in enumerate(table)]
    return [(c, w) for c, w in found if w.min() >= -1e-9]


def test_every_place_shows_the_triangle_it_lies_in():
    mesh = generate("delaunay2d", cells=60, seed=3)
    (view,) = views_of(place(mesh, "cells"))
    xyz, table = mesh.coordinates, mesh.map("cells->nodes").table
    drawn, places = _places(view, 150)
    for point, shown in zip(places, _shown(view, drawn), strict=True):
        inside = [c for c, _ in _cell_at(xyz, table, point)]
        assert shown in (inside or [OUTSIDE])
    assert view.count_elements() == len(table)


@pytest.mark.parametrize("kind", ["delaunay2d", "delaunay3d"])
@pytest.mark.parametrize(
    ("scale", "beside"), [(1e-320, 0.0), (0.0, 1e16), (1.0, 1e16), (0.0, 0.0)]
)
def test_meshes_that_are_a_point_to_the_eye_have_a_picture(kind, scale, beside):
    mesh = generate(kind, cells=60)
    points = Dat("coordinates", "nodes", scale * mesh.coordinates + beside)
    rest = [d for d in mesh.dats if d.name != "coordinates"]
    mesh = Mesh(mesh.sets.values(), mesh.maps.values(), [points, *rest])
    with np.errstate(all="raise", under="ignore"):
        views = views_of(place(mesh, "cells"), part=0.5)
    assert len(views) == 2
    assert all(view.x[0] < view.x[1] and view.y[0] < view.y[1] for view in views)
    assert all(np.isfinite(view.pieces.corners).all() for view in views)


@pytest.mark.parametrize("maps", [("edges->cells",), ("edges->nodes",)])
def test_places_show_the_edge_of_their_third_of_a_triangle(maps):
    mesh = generate("delaunay2d", cells=40, seed=2)
    (view,) = views_of(place(mesh, "edges", maps))
    full = derive(mesh, ["edges->nodes", *(m for m in maps if m != "edges->nodes")])
    ends = {
        frozenset(row): e for e, row in enumerate(full.map("edges->nodes").table.tolist())
    }
    xyz, table = mesh.coordinates, mesh.map("cells->nodes").table
    drawn, places = _places(view, 300)
    seen = set()
    for point, shown in zip(places, _shown(view, drawn), strict=True):
        found = _cell_at(xyz, table, point)
        if not found:
            assert shown == OUTSIDE
            continue
        cell, weights = found[0]
        # the nearest edge is that opposite the corner of least weight
        least = np.argsort(weights)
        if weights[least[1]] - weights[least[0]] < 1e-6:
            continue
        edge = frozenset(np.delete(table[cell], least[0]).tolist())
        assert shown == ends.get(edge, NO_ELEMENT)
        seen.add(shown)
    assert (NO_ELEMENT in seen) == ("edges->cells" in maps)


def test_places_show_the_nearest_corner_of_a_square():
    mesh = generate("box", nx=3, ny=2, nz=1, type="quad")
    (view,) = views_of(place(mesh, "nodes"))
    drawn, places = _places(view, 200)
    for point, shown in zip(places, _shown(view, drawn), strict=True):
        if shown == OUTSIDE:
            continue
        # halves of the triangles about a square's middle: its corners' quarters
        distance = np.abs(mesh.coordinates - point)
        order = np.argsort((distance / [1 / 3, 1 / 2]).max(axis=1))
        assert shown == order[0]


def test_one_part_of_a_mixed_mesh():
    mesh = generate("mixed2d", nx=6, ny=6)
    (view,) = views_of(place(mesh, "triangle"))
    (whole,) = views_of(place(mesh, "cells"))
    start = 0 if mesh.sets["cells"].parts[0] == "triangle" else mesh.size("quad")
    drawn, _ = _places(view, 300)
    cell, shown = _shown(whole, drawn), _shown(view, drawn)
    own = (cell >= start) & (cell < start + mesh.size("triangle"))
    assert (shown[own] == cell[own] - start).all()
    assert (shown[~own & (cell >= 0)] == NO_ELEMENT).all()
    assert own.any()
    assert (~own & (cell >= 0)).any()


@pytest.mark.parametrize("over", ["cells", "edges", "nodes"])
def test_a_crowded_mesh_shows_an_element_of_each_cell(over, monkeypatch):
    mesh = generate("delaunay2d", cells=300)
    monkeypatch.setattr(sys.modules["meshprep.reporting.draw.view"], "CROWDED", 100)
    (view,) = views_of(place(mesh, over))
    full = derive(mesh, [f"{over}->nodes"] if over != "nodes" else [])
    corners = mesh.map("cells->nodes").table
    cell_of = {frozenset(row): c for c, row in enumerate(corners.tolist())}
    drawn = view.pieces
    assert len(drawn.nodes) == len(corners)
    for row, element in zip(drawn.nodes.tolist(), drawn.element.tolist(), strict=True):
        if over == "nodes":
            assert element in row
        else:
            assert set(full.map(f"{over}->nodes").table[element].tolist()) <= set(row)
        assert frozenset(row) in cell_of


def test_of_cells_smaller_than_pixels_there_are_enough_to_hide_the_paper(monkeypatch):
    from meshprep.reporting.draw.picture import figure_of, pixels_of

    mesh = generate("delaunay2d", cells=20_000)
    monkeypatch.setattr(sys.modules["meshprep.reporting.draw.view"], "CROWDED", 100)
    (view,) = views_of(place(mesh, "cells"), 60)
    assert 3600 / 2 < view.count_elements() < 20_000 / 2
    group = np.zeros(20_000, np.int32)
    seen = pixels_of(figure_of([(view, by_group(view, group, 1))], 60, "none"))
    assert (seen[3:-3, 3:-3, 3] > 200).all()


def test_the_middle_of_a_mesh_holds_its_share_of_nodes():
    mesh = generate("airfoil", cells=2000)
    whole, part = views_of(place(mesh, "cells"), 100, 0.25)
    xy = mesh.coordinates[:, :2]
    inside = ((xy > [part.x[0], part.y[0]]) & (xy < [part.x[1], part.y[1]])).all(axis=1)
    assert inside.mean() == pytest.approx(0.25, abs=0.02)
    assert whole.x[0] < part.x[0] < part.x[1] < whole.x[1]
    assert part.count_elements() < whole.count_elements()


def test_a_cut_shows_the_tetrahedron_at_each_place():
    mesh = generate("delaunay3d", cells=150, seed=1)
    surface, cut = views_of(place(mesh, "cells"))
    assert (surface.name, cut.name) == ("surface", "cut")
    axis, value = cut.at.split(" = ")
    xyz, table = mesh.coordinates, mesh.map("cells->nodes").table
    # as exactly as the view has it, not as the caption tells it
    k = "xyz".index(axis)
    exact = np.median(xyz[:, k]) + 1.7e-3 * np.ptp(xyz[:, k])
    assert float(value) == pytest.approx(exact, rel=1e-3)
    drawn, places = _places(cut, 120)
    for point, shown in zip(places, _shown(cut, drawn), strict=True):
        inside = [c for c, _ in _cell_at(xyz, table, np.insert(point, k, exact))]
        assert shown in (inside or [OUTSIDE])


@pytest.mark.parametrize("over", ["faces", "edges", "nodes"])
def test_a_cut_through_tetrahedra_shows_their_faces_edges_and_nodes(over):
    mesh = generate("delaunay3d", cells=80, seed=4)
    maps = {
        "faces": ["faces->cells", "faces->nodes"],
        "edges": ["edges->nodes"],
        "nodes": [],
    }[over]
    _, cut = views_of(place(mesh, over, maps))
    _, cells = views_of(place(mesh, "cells"))
    drawn, _ = _places(cut, 200)
    of_cells, of_elements = _shown(cells, drawn), _shown(cut, drawn)
    table = mesh.map("cells->nodes").table
    full = derive(mesh, maps)
    for cell, shown in zip(of_cells, of_elements, strict=True):
        if cell < 0 or shown < 0:
            assert (cell == OUTSIDE) == (shown == OUTSIDE)
            continue
        corners = set(table[cell].tolist())
        own = (
            {shown}
            if over == "nodes"
            else set(full.map(f"{over}->nodes").table[shown].tolist())
        )
        assert own <= corners
    outer = (of_cells >= 0) & (of_elements == NO_ELEMENT)
    assert outer.any() == (over == "faces")


def test_a_surface_shows_cells_with_an_outer_face():
    mesh = generate("box", nx=4, ny=4, nz=4)
    surface, _ = views_of(place(mesh, "cells"))
    full = derive(mesh, ["boundary_faces->cells"])
    outer = set(full.map("boundary_faces->cells").table[:, 0].tolist())
    shown = set(np.unique(surface.pieces.element).tolist())
    assert shown <= outer
    # three sides of a cube of 4 x 4 x 4: those towards the eye
    xyz = mesh.coordinates[mesh.map("cells->nodes").table].mean(axis=1)
    towards = (xyz[:, 2] > 0.8) | (xyz[:, 1] < 0.2) | (xyz[:, 0] > 0.8)
    towards_left = (xyz[:, 2] > 0.8) | (xyz[:, 1] < 0.2) | (xyz[:, 0] < 0.2)
    assert shown in (set(np.flatnonzero(towards)), set(np.flatnonzero(towards_left)))
    assert len(np.unique(surface.light.round(6))) == 3


@pytest.mark.parametrize("front", [0, 1])
def test_what_is_nearer_to_the_eye_hides_what_is_behind(front):
    box = generate("box", nx=1, ny=3, nz=1)
    # two slabs with a gap between them; the one at y = 0 stands before the other
    table = box.map("cells->nodes").table
    table = table[np.argsort(box.coordinates[table].mean(axis=1)[:, 1])][[0, 2]]
    if front == 1:
        table = table[::-1]
    sets = [ElementSet("cells", 2, box.sets["cells"].cell_type), box.sets["nodes"]]
    maps = [SetMap("cells->nodes", "cells", "nodes", np.ascontiguousarray(table))]
    slabs = Mesh(sets, maps, [Dat("coordinates", "nodes", box.coordinates)])
    surface, _ = views_of(place(slabs, "cells"))
    # the middles of the triangles of the slab before, of which none is hidden
    own = surface.pieces.element == front
    middles = surface.pieces.corners[own].mean(axis=1)
    assert (_shown(surface, middles) == front).all()
    behind = surface.pieces.corners[~own].mean(axis=1)
    assert (_shown(surface, behind) == front).any()


def test_a_curved_surface_of_triangles_is_seen_from_outside():
    mesh = generate("delaunay2d", cells=100)
    xyz = np.column_stack([mesh.coordinates, mesh.coordinates[:, 0] ** 2])
    bent = Mesh(mesh.sets.values(), mesh.maps.values(), [Dat("coordinates", "nodes", xyz)])
    (view,) = views_of(place(bent, "cells"))
    assert view.name == "surface"
    assert view.count_elements() == 100


def test_edges_that_a_file_holds_are_found_by_their_nodes():
    mesh = derive(generate("box", nx=5, ny=4, nz=1, type="quad"), ["edges->nodes"])
    turn = Ordering.from_new_to_old(RANDOM.permutation(mesh.size("edges")), "edges")
    turned = mesh.renumber({"edges": turn})
    bare = Mesh(
        [ElementSet(s.name, s.size) for s in mesh.sets.values() if s.name != "line"],
        [m for m in turned.maps.values() if m.from_set != "line"],
        [mesh.dat("coordinates", "nodes")],
    )
    (plain,) = views_of(place(generate("box", nx=5, ny=4, nz=1, type="quad"), "edges"))
    (view,) = views_of(place(bare, "edges"))
    assert (view.pieces.element == turn.old_to_new[plain.pieces.element]).all()


@pytest.mark.parametrize(
    ("change", "over", "said"),
    [
        ("no coordinates", "cells", "no coordinates"),
        ("no cells", "edges", "no map cells->nodes"),
        ("", "wheels", "where the elements of 'wheels' lie"),
        ("not finite", "cells", "no numbers"),
    ],
)
def test_what_cannot_be_placed_is_said(change, over, said):
    mesh = generate("box", nx=2, ny=2, nz=1, type="quad")
    xyz = mesh.coordinates.copy()
    if change == "not finite":
        xyz[0, 0] = np.nan
    dats = [] if change == "no coordinates" else [Dat("coordinates", "nodes", xyz)]
    if change == "no cells":
        table = np.zeros((3, 2), np.int32)
        sets = [ElementSet("edges", 3), mesh.sets["nodes"]]
        mesh = Mesh(sets, [SetMap("edges->nodes", "edges", "nodes", table)], dats)
    else:
        mesh = Mesh(mesh.sets.values(), mesh.maps.values(), dats)
    with pytest.raises(MeshprepError, match=said):
        place(mesh, over)


def test_neighbouring_blocks_differ_in_colour():
    mesh = generate("delaunay2d", cells=900)
    (view,) = views_of(place(mesh, "cells"))
    table = mesh.map("cells->nodes").table
    xy = mesh.coordinates[table].mean(axis=1)
    block = (np.floor(xy[:, 0] * 7) + 7 * np.floor(xy[:, 1] * 7)).astype(np.int32)
    rgb = by_group(view, block, 49)
    assert len(np.unique(rgb, axis=0)) <= len(LIGHT)
    colour = {int(e): tuple(c) for e, c in zip(view.pieces.element, rgb, strict=True)}
    ends = derive(mesh, ["edges->cells"]).map("edges->cells").table
    borders = [(a, b) for a, b in ends.tolist() if block[a] != block[b]]
    assert len(borders) > 100
    assert all(colour[a] != colour[b] for a, b in borders)
    # elements of a block have one colour
    assert len({(block[e], c) for e, c in colour.items()}) == 49


@pytest.mark.parametrize("count", [1, 7, 8, 60, 500])
def test_numbers_have_colours_however_many(count):
    mesh = generate("delaunay2d", cells=900)
    (view,) = views_of(place(mesh, "cells"))
    number = (np.arange(mesh.size("cells")) % count).astype(np.int32)
    rgb = by_number(view, number, count)
    assert ((rgb >= 0) & (rgb <= 1)).all()
    assert (rgb == palette_of(count)[number[view.pieces.element]]).all()
    assert len(np.unique(palette_of(count), axis=0)) == min(count, 256)


def test_what_is_no_element_of_the_loop_is_pale():
    mesh = generate("delaunay2d", cells=100)
    (view,) = views_of(place(mesh, "boundary_edges", ["boundary_edges->cells"]))
    inner = view.pieces.element == NO_ELEMENT
    number = np.zeros(mesh.size("cells"), np.int32)
    rgb = by_number(view, number, 1)
    assert (rgb[inner] == np.array([0xB8, 0xBC, 0xC2]) / 255).all()
    assert (rgb[~inner] == palette_of(1)).all()
    assert 0 < inner.sum() < inner.size


def test_dots_of_a_map():
    table = RANDOM.integers(0, 30, (50, 3)).astype(np.int32)
    rows, columns = table.ravel(), np.repeat(np.arange(50), 3)
    expected = np.zeros((30, 50), bool)
    expected[rows, columns] = True
    assert ((count_entries(rows, columns, (30, 50), (30, 50)) > 0) == expected).all()
    assert count_entries(rows, columns, (30, 50), (6, 10)).max() > 1


def test_dots_of_a_matrix(monkeypatch):
    rows, columns = RANDOM.integers(0, 40, 90), RANDOM.integers(0, 20, 90)
    expected = np.zeros((40, 20), bool)
    expected[rows, columns] = True
    monkeypatch.setattr(sys.modules["meshprep.reporting.draw.dots"], "CHUNK", 16)
    assert ((count_entries(rows, columns, (40, 20), (100, 100)) > 0) == expected).all()
    small = count_entries(rows, columns, (40, 20), (10, 5))
    blocks = expected.reshape(10, 4, 5, 4).any(axis=(1, 3))
    assert ((small > 0) == blocks).all()
    assert not count_entries(rows[:0], columns[:0], (40, 20), (10, 5)).any()
