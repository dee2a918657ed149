"""Dofs against a slow version: two of them are one exactly where their points coincide."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

from meshprep.io.generate import generate
from meshprep.mesh import Tag
from meshprep.mesh.assemble import Block, assemble
from meshprep.mesh.geometry import CENTROID
from meshprep.topology import constrained_points, derive
from meshprep_runtime.errors import MeshprepError

# Corners of the cells that fill a square or a cube, by the corners of these in binary: x, y, z.
SPLITS = {
    "line": [(0, 1)],
    "triangle": [(0, 1, 3), (0, 3, 2)],
    "quad": [(0, 1, 3, 2)],
    "tetra": [(0, 1 << a, (1 << a) + (1 << b), 7) for a, b in permutations(range(3), 2)],
    "hexahedron": [(0, 1, 3, 2, 4, 5, 7, 6)],
}
DIM = {"line": 1, "triangle": 2, "quad": 2, "tetra": 3, "hexahedron": 3}
CUBE = {
    "quad": [(0, 0), (1, 0), (1, 1), (0, 1)],
    "hexahedron": [(x, y, z) for z in (0, 1) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))],
}
# Ends of edges, and corners of faces, in the order that the documentation promises.
EDGES = {
    "line": [],
    "triangle": [(0, 1), (1, 2), (2, 0)],
    "quad": [(0, 1), (1, 2), (2, 3), (3, 0)],
    "tetra": [(0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)],
    "hexahedron": [
        *[(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4)],
        *[(0, 4), (1, 5), (2, 6), (3, 7)],
    ],
}
FACES = {
    "tetra": [(0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)],
    "hexahedron": [
        *[(0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4)],
        *[(1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)],
    ],
}


def random_mesh(kind, cells_a_side, seed):
    """A perturbed grid: nodes in random order, corners of each cell turned and mirrored."""
    rng, dim, n = np.random.default_rng(seed), DIM[kind], cells_a_side + 1
    number = rng.permutation(n**dim).reshape((n,) * dim)
    points = np.zeros((n**dim, 3))
    for at in np.ndindex(*number.shape):
        points[number[at], :dim] = np.array(at) + rng.uniform(-0.2, 0.2, dim)
    cells = []
    for at in np.ndindex(*(cells_a_side,) * dim):
        for split in SPLITS[kind]:
            steps = [[(c >> a) & 1 for a in range(dim)] for c in split]
            corners = [number[tuple(np.add(at, s))] for s in steps]
            cells.append([corners[i] for i in rng.choice(symmetries(kind))])
    order = rng.permutation(len(cells))
    return assemble(points, [Block(kind, np.array(cells, np.int32)[order])])[0]


def symmetries(kind):
    """Every order of a cell's corners in which it is still a cell of this kind."""
    if kind not in CUBE:
        return list(permutations(range(DIM[kind] + 1)))
    corners, found = CUBE[kind], []
    for axes in permutations(range(DIM[kind])):
        for flips in product((0, 1), repeat=DIM[kind]):
            seen = [
                tuple(c[a] ^ f for a, f in zip(axes, flips, strict=True)) for c in corners
            ]
            found.append([corners.index(c) for c in seen])
    return found


def points_of(kind, degree, xyz):
    """The points of one cell by its corners, one by one, in the documented order."""
    p, steps, tensor = degree, range(1, degree), kind in CUBE
    found = list(xyz)
    found += [((p - i) * xyz[a] + i * xyz[b]) / p for a, b in EDGES[kind] for i in steps]
    for face in FACES.get(kind, []):
        found += inside([xyz[c] for c in face], p, tensor)
    return np.array(found + inside(list(xyz), p, tensor))


def inside(xyz, p, tensor):
    """The points inside a shape, by multilinear or barycentric weights; the first axis is fast."""
    axes = {2: 1, 4: 2, 8: 3}[len(xyz)] if tensor else len(xyz) - 1
    found = []
    for index in product(range(1, p), repeat=axes):
        steps = index[::-1]
        if tensor:
            found.append(multilinear(xyz, [i / p for i in steps]))
        elif sum(steps) < p:
            weights = (p - sum(steps), *steps)
            found.append(sum(w / p * x for w, x in zip(weights, xyz, strict=True)))
    return found


def multilinear(xyz, at):
    if len(at) == 1:
        return (1 - at[0]) * xyz[0] + at[0] * xyz[1]
    if len(at) == 2:
        low, high = multilinear(xyz[:2], at[:1]), multilinear([xyz[3], xyz[2]], at[:1])
        return (1 - at[1]) * low + at[1] * high
    low, high = multilinear(xyz[:4], at[:2]), multilinear(xyz[4:], at[:2])
    return (1 - at[2]) * low + at[2] * high


CASES = [(kind, degree) for kind in SPLITS for degree in (1, 2, 3, 4)]
SIDE = {"line": 9, "triangle": 5, "quad": 6, "tetra": 2, "hexahedron": 3}


def slow_positions(mesh, kind, degree):
    """(cells, local dofs, 3): where each local dof of each cell lies."""
    corners = mesh.coordinates[mesh.map("cells->nodes").table]
    return np.array([points_of(kind, degree, xyz) for xyz in corners])


@pytest.mark.parametrize(("kind", "degree"), CASES)
def test_dofs_are_one_where_their_points_are(kind, degree):
    mesh = derive(random_mesh(kind, SIDE[kind], degree), [f"cells->dofs{degree}"])
    m = mesh.map(f"cells->dofs{degree}")
    where = slow_positions(mesh, kind, degree)
    assert m.table.shape == where.shape[:2]
    # Every point has one number and every number one point, and no number is left out.
    rounded = np.round(where.reshape(-1, 3), 9) + 0.0
    _, point = np.unique(rounded, axis=0, return_inverse=True)
    pairs = np.unique(np.column_stack([m.table.reshape(-1), point.reshape(-1)]), axis=0)
    n = mesh.size(m.to_set)
    assert len(pairs) == n == point.max() + 1
    assert pairs[:, 0].tolist() == list(range(n))
    known = mesh.dat(CENTROID, m.to_set).values
    assert np.abs(known[m.table] - where).max() < 1e-12


@pytest.mark.parametrize(("kind", "degree"), [c for c in CASES if c[0] != "line"])
def test_dofs_on_the_boundary_lie_on_it(kind, degree):
    mesh = derive(random_mesh(kind, SIDE[kind], 7), [f"cells->dofs{degree}"])
    flagged = constrained_points(mesh, f"cells->dofs{degree}", ["boundary"])
    # The grid without perturbation, in which the boundary is where a coordinate is an end.
    grid = np.round(mesh.coordinates)
    corners = grid[mesh.map("cells->nodes").table]
    where = np.empty((flagged.size, 3))
    table = mesh.map(f"cells->dofs{degree}").table
    where[table] = [points_of(kind, degree, xyz) for xyz in corners]
    where = where[:, : DIM[kind]]
    outside = (np.abs(where) < 1e-9) | (np.abs(where - SIDE[kind]) < 1e-9)
    assert np.array_equal(flagged, outside.any(axis=1))


def test_points_of_a_group_are_constrained():
    """Two triangles on a square; the lower edge is group 4, named wall, the right one group 5."""
    points = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], float)
    blocks = [
        Block("triangle", np.array([[0, 1, 2], [0, 2, 3]], np.int32)),
        Block("line", np.array([[1, 0], [2, 1]], np.int32)),
    ]
    mesh, _ = assemble(points, blocks)
    mesh = mesh.with_(
        tags=[Tag.from_ids("physical", "line", np.array([4, 5]), {4: "wall"})]
    )
    mesh = derive(mesh, ["cells->dofs2"])
    where = mesh.dat(CENTROID, "dofs2").values
    low = constrained_points(mesh, "cells->dofs2", ["wall"])
    assert np.array_equal(low, where[:, 1] == 0)
    both = constrained_points(mesh, "cells->dofs2", [4, 5])
    assert np.array_equal(both, (where[:, 1] == 0) | (where[:, 0] == 1))
    entity = Tag.from_ids("entity", "line", np.array([5, 4]))  # counted apart by Gmsh
    for group, found in ((4, low), (5, where[:, 0] == 1)):
        again = constrained_points(mesh.with_(tags=[entity]), "cells->dofs2", [group])
        assert np.array_equal(again, found)
    assert constrained_points(mesh, "cells->nodes", ["wall"]).tolist() == [
        True,
        True,
        False,
        False,
    ]
    # Gmsh gives the number of an entity that is in the group the other way round a minus
    turned = [replace(t, group_id=-t.group_id) for t in mesh.tags]
    for group, found in (("wall", low), (4, low)):
        again = constrained_points(
            replace(mesh, tags=tuple(turned)), "cells->dofs2", [group]
        )
        assert np.array_equal(again, found)
    with pytest.raises(MeshprepError, match=r"no group 'roof'.*one of: 5, wall"):
        constrained_points(mesh, "cells->dofs2", ["roof"])


def test_what_dofs_cannot_be_made_for_is_said():
    points = np.zeros((6, 3))
    mixed = [
        Block("triangle", np.array([[0, 1, 2]], np.int32)),
        Block("quad", np.array([[2, 3, 4, 5]], np.int32)),
    ]
    with pytest.raises(MeshprepError, match="use 'triangle->dofs1' and 'quad->dofs1'"):
        derive(assemble(points, mixed)[0], ["cells->dofs1"])
    wedge = [Block("wedge", np.arange(6, dtype=np.int32)[None])]
    with pytest.raises(MeshprepError, match="not wedge"):
        derive(assemble(points, wedge)[0], ["cells->dofs2"])
    with pytest.raises(MeshprepError, match="cells->dofs1 to cells->dofs4"):
        derive(random_mesh("quad", 1, 0), ["cells->dofs5"])
    with pytest.raises(MeshprepError, match="'cells->edges': what lies on the boundary"):
        constrained_points(
            derive(random_mesh("quad", 1, 0), ["cells->edges"]),
            "cells->edges",
            ["boundary"],
        )


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_triangles_and_quads_share_their_dofs(degree):
    """The left half of a grid of quads, the right half of triangles."""
    names = [f"triangle->dofs{degree}", f"quad->dofs{degree}"]
    mesh = derive(generate("mixed2d", nx=6, ny=4, shuffle=True), names)
    where = {}
    for kind, name in zip(("triangle", "quad"), names, strict=True):
        corners = mesh.coordinates[mesh.map(f"{kind}->nodes").table]
        points = np.array([points_of(kind, degree, xyz) for xyz in corners])
        where[name] = np.round(points, 9).reshape(-1, points.shape[2])
    table = np.concatenate([mesh.map(name).table.ravel() for name in names])
    places = np.concatenate([where[name] for name in names])
    _, point = np.unique(places, axis=0, return_inverse=True)
    pairs = np.unique(np.column_stack([table, point.reshape(-1)]), axis=0)
    assert len(pairs) == mesh.size(f"dofs{degree}") == point.max() + 1
    # of both types, whichever map names the dofs
    flagged = [constrained_points(mesh, name, ["boundary"]) for name in names]
    assert np.array_equal(*flagged)
    known = mesh.dat(CENTROID, f"dofs{degree}").values
    ends = places.min(axis=0)[:2], places.max(axis=0)[:2]
    on = [np.abs(known[:, :2] - end) < 1e-9 for end in ends]
    assert np.array_equal(flagged[0], (on[0] | on[1]).any(axis=1))
