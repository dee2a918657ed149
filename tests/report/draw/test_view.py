"""Pictures of meshes against slow searches for the element at each pixel."""

import sys

import numpy as np
import pytest

from meshprep.io.generate import generate
from meshprep.mesh import Dat, ElementSet, Mesh, SetMap
from meshprep.report.draw import draw_views, place, spy
from meshprep.report.draw.colours import LIGHT, apart, categories
from meshprep.report.draw.paint import by_group, by_number, count_shown
from meshprep.report.draw.raster import NO_ELEMENT, OUTSIDE
from meshprep.topology import derive
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.ordering import Ordering

RANDOM = np.random.default_rng(5)


def _centres(picture):
    """Where the centres of the pixels lie in the mesh."""
    height, width = picture.element.shape
    x = picture.x[0] + (np.arange(width) + 0.5) / width * (picture.x[1] - picture.x[0])
    y = picture.y[1] - (np.arange(height) + 0.5) / height * (picture.y[1] - picture.y[0])
    return np.stack(np.meshgrid(x, y), axis=-1)


def _weights(corners, point):
    """Barycentric coordinates of a point in a simplex."""
    edges = (corners[1:] - corners[0]).T
    rest = np.linalg.solve(edges, point - corners[0])
    return np.append(1 - rest.sum(), rest)


def _cell_at(xyz, table, point):
    """The cells whose simplex holds the point, with its coordinates in the first of them."""
    found = [(c, _weights(xyz[row], point)) for c, row in enumerate(table)]
    return [(c, w) for c, w in found if w.min() >= -1e-9]


def _sample(picture, count=60):
    height, width = picture.element.shape
    return zip(RANDOM.integers(0, height, count), RANDOM.integers(0, width, count), strict=True)


def test_every_pixel_shows_the_triangle_it_lies_in():
    mesh = generate("delaunay2d", cells=60, seed=3)
    (picture,) = draw_views(place(mesh, "cells"), 120)
    xyz, table = mesh.coordinates, mesh.map("cells->nodes").table
    centres = _centres(picture)
    for row, column in _sample(picture, 150):
        inside = [c for c, _ in _cell_at(xyz, table, centres[row, column])]
        shown = picture.element[row, column]
        assert shown in (inside or [OUTSIDE])
    assert count_shown(picture.element) == len(np.unique(picture.element)) - 1


@pytest.mark.parametrize("kind", ["delaunay2d", "delaunay3d"])
@pytest.mark.parametrize(("scale", "beside"), [(1e-320, 0.0), (0.0, 1e16), (1.0, 1e16), (0.0, 0.0)])
def test_meshes_that_are_a_point_to_the_eye_have_a_picture(kind, scale, beside):
    mesh = generate(kind, cells=60)
    points = Dat("coordinates", "nodes", scale * mesh.coordinates + beside)
    rest = [d for d in mesh.dats if d.name != "coordinates"]
    mesh = Mesh(mesh.sets.values(), mesh.maps.values(), [points, *rest])
    with np.errstate(all="raise", under="ignore"):
        pictures = draw_views(place(mesh, "cells"), 40, part=0.5)
    assert len(pictures) == 2
    assert all(p.x[0] < p.x[1] and p.y[0] < p.y[1] for p in pictures)


@pytest.mark.parametrize("maps", [("edges->cells",), ("edges->nodes",)])
def test_pixels_show_the_edge_of_their_third_of_a_triangle(maps):
    mesh = generate("delaunay2d", cells=40, seed=2)
    (picture,) = draw_views(place(mesh, "edges", maps), 150)
    full = derive(mesh, ["edges->nodes", *(m for m in maps if m != "edges->nodes")])
    ends = {frozenset(row): e for e, row in enumerate(full.map("edges->nodes").table.tolist())}
    xyz, table = mesh.coordinates, mesh.map("cells->nodes").table
    centres = _centres(picture)
    seen = set()
    for row, column in _sample(picture, 300):
        found = _cell_at(xyz, table, centres[row, column])
        shown = picture.element[row, column]
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


def test_pixels_show_the_nearest_corner_of_a_square():
    mesh = generate("box", nx=3, ny=2, nz=1, type="quad")
    (picture,) = draw_views(place(mesh, "nodes"), 200)
    centres = _centres(picture)
    for row, column in _sample(picture, 200):
        if picture.element[row, column] == OUTSIDE:
            continue
        # halves of the triangles about a square's middle: its corners' quarters
        distance = np.abs(mesh.coordinates - centres[row, column])
        order = np.argsort((distance / [1 / 3, 1 / 2]).max(axis=1))
        assert picture.element[row, column] == order[0]


def test_one_part_of_a_mixed_mesh():
    mesh = generate("mixed2d", nx=6, ny=6)
    (picture,) = draw_views(place(mesh, "triangle"), 90)
    (whole,) = draw_views(place(mesh, "cells"), 90)
    start = 0 if mesh.sets["cells"].parts[0] == "triangle" else mesh.size("quad")
    own = (whole.element >= start) & (whole.element < start + mesh.size("triangle"))
    assert (picture.element[own] == whole.element[own] - start).all()
    assert (picture.element[~own & (whole.element >= 0)] == NO_ELEMENT).all()


def test_the_middle_of_a_mesh_holds_its_share_of_nodes():
    mesh = generate("airfoil", cells=2000)
    whole, part = draw_views(place(mesh, "cells"), 100, 0.25)
    xy = mesh.coordinates[:, :2]
    inside = ((xy > [part.x[0], part.y[0]]) & (xy < [part.x[1], part.y[1]])).all(axis=1)
    assert inside.mean() == pytest.approx(0.25, abs=0.02)
    assert whole.x[0] < part.x[0] < part.x[1] < whole.x[1]


def test_a_cut_shows_the_tetrahedron_at_each_place():
    mesh = generate("delaunay3d", cells=150, seed=1)
    surface, cut = draw_views(place(mesh, "cells"), 60)
    assert (surface.name, cut.name) == ("surface", "cut")
    axis, value = cut.at.split(" = ")
    xyz, table = mesh.coordinates, mesh.map("cells->nodes").table
    # as exactly as the view has it, not as the caption tells it
    k = "xyz".index(axis)
    exact = np.median(xyz[:, k]) + 1.7e-3 * np.ptp(xyz[:, k])
    assert float(value) == pytest.approx(exact, rel=1e-3)
    centres = _centres(cut)
    for row, column in _sample(cut, 120):
        point = np.insert(centres[row, column], k, exact)
        inside = [c for c, _ in _cell_at(xyz, table, point)]
        assert cut.element[row, column] in (inside or [OUTSIDE])


@pytest.mark.parametrize("over", ["faces", "edges", "nodes"])
def test_a_cut_through_tetrahedra_shows_their_faces_edges_and_nodes(over):
    mesh = generate("delaunay3d", cells=80, seed=4)
    maps = {"faces": ["faces->cells", "faces->nodes"], "edges": ["edges->nodes"], "nodes": []}[over]
    _, cut = draw_views(place(mesh, over, maps), 50)
    _, cells = draw_views(place(mesh, "cells"), 50)
    table = mesh.map("cells->nodes").table
    full = derive(mesh, maps)
    for row, column in _sample(cut, 200):
        cell, shown = cells.element[row, column], cut.element[row, column]
        if cell < 0 or shown < 0:
            assert (cell == OUTSIDE) == (shown == OUTSIDE)
            continue
        corners = set(table[cell].tolist())
        own = {shown} if over == "nodes" else set(full.map(f"{over}->nodes").table[shown].tolist())
        assert own <= corners
    outer = (cells.element >= 0) & (cut.element == NO_ELEMENT)
    assert outer.any() == (over == "faces")


def test_a_surface_shows_cells_with_an_outer_face():
    mesh = generate("box", nx=4, ny=4, nz=4)
    surface, _ = draw_views(place(mesh, "cells"), 80)
    full = derive(mesh, ["boundary_faces->cells"])
    outer = set(full.map("boundary_faces->cells").table[:, 0].tolist())
    shown = set(np.unique(surface.element[surface.element >= 0]).tolist())
    assert shown <= outer
    # three sides of a cube of 4 x 4 x 4: those towards the eye
    xyz = mesh.coordinates[mesh.map("cells->nodes").table].mean(axis=1)
    towards = (xyz[:, 2] > 0.8) | (xyz[:, 1] < 0.2) | (xyz[:, 0] > 0.8)
    towards_left = (xyz[:, 2] > 0.8) | (xyz[:, 1] < 0.2) | (xyz[:, 0] < 0.2)
    assert shown in (set(np.flatnonzero(towards)), set(np.flatnonzero(towards_left)))
    assert len(np.unique(surface.shade[surface.element >= 0])) >= 2


def test_a_curved_surface_of_triangles_is_seen_from_outside():
    mesh = generate("delaunay2d", cells=100)
    xyz = np.column_stack([mesh.coordinates, mesh.coordinates[:, 0] ** 2])
    bent = Mesh(mesh.sets.values(), mesh.maps.values(), [Dat("coordinates", "nodes", xyz)])
    (picture,) = draw_views(place(bent, "cells"), 80)
    assert picture.name == "surface"
    assert count_shown(picture.element) > 60


def test_edges_that_a_file_holds_are_found_by_their_nodes():
    mesh = derive(generate("box", nx=5, ny=4, nz=1, type="quad"), ["edges->nodes"])
    turn = Ordering.from_new_to_old(RANDOM.permutation(mesh.size("edges")), "edges")
    turned = mesh.renumber({"edges": turn})
    bare = Mesh(
        [ElementSet(s.name, s.size) for s in mesh.sets.values() if s.name != "line"],
        [m for m in turned.maps.values() if m.from_set != "line"],
        [mesh.dat("coordinates", "nodes")],
    )
    (plain,) = draw_views(place(generate("box", nx=5, ny=4, nz=1, type="quad"), "edges"), 90)
    (picture,) = draw_views(place(bare, "edges"), 90)
    inside = plain.element >= 0
    assert (picture.element[inside] == turn.old_to_new[plain.element[inside]]).all()


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
    (picture,) = draw_views(place(mesh, "cells"), 200)
    xy = mesh.coordinates[mesh.map("cells->nodes").table].mean(axis=1)
    block = (np.floor(xy[:, 0] * 7) + 7 * np.floor(xy[:, 1] * 7)).astype(np.int32)
    image = np.where(picture.element >= 0, block[np.maximum(picture.element, 0)], OUTSIDE)
    colour = apart(image.astype(np.int32), 49)
    assert colour.max() < len(LIGHT)
    for a, b in ((image[:, 1:], image[:, :-1]), (image[1:], image[:-1])):
        border = (a != b) & (a >= 0) & (b >= 0)
        assert (colour[a[border]] != colour[b[border]]).all()
    painted = by_group(picture, block, 49)
    # colour and outline do not depend on the palette's transparent first row
    assert (painted.pixels == 0).sum() == (picture.element == OUTSIDE).sum()
    assert painted.on((255, 255, 255)).palette[0].tolist() == [255] * 4


@pytest.mark.parametrize("count", [1, 7, 8, 60, 500])
def test_numbers_have_colours_however_many(count):
    mesh = generate("delaunay2d", cells=900)
    (picture,) = draw_views(place(mesh, "cells"), 60)
    number = (np.arange(mesh.size("cells")) % count).astype(np.int32)
    painted = by_number(picture, number, count)
    assert painted.pixels.max() < len(painted.palette) <= 256
    assert len(np.unique(categories(count), axis=0)) == min(count, 48)


def test_dots_of_a_map():
    table = RANDOM.integers(0, 30, (50, 3)).astype(np.int32)
    rows, columns = table.ravel(), np.repeat(np.arange(50), 3)
    expected = np.zeros((30, 50), bool)
    expected[rows, columns] = True
    assert ((spy(rows, columns, (30, 50), (30, 50)) > 0) == expected).all()
    assert spy(rows, columns, (30, 50), (6, 10)).max() > 1


def test_dots_of_a_matrix(monkeypatch):
    rows, columns = RANDOM.integers(0, 40, 90), RANDOM.integers(0, 20, 90)
    expected = np.zeros((40, 20), bool)
    expected[rows, columns] = True
    monkeypatch.setattr(sys.modules["meshprep.report.draw.raster"], "CHUNK", 16)
    assert ((spy(rows, columns, (40, 20), (100, 100)) > 0) == expected).all()
    small = spy(rows, columns, (40, 20), (10, 5))
    blocks = expected.reshape(10, 4, 5, 4).any(axis=(1, 3))
    assert ((small > 0) == blocks).all()
    assert not spy(rows[:0], columns[:0], (40, 20), (10, 5)).any()
