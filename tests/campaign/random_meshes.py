"""Random meshes of every kind that a plan can be made for."""

import itertools

import numpy as np

from meshprep.io.generate import generate
from meshprep.mesh import ElementSet, Mesh, SetMap
from meshprep.mesh.assemble import Block, assemble
from meshprep_runtime.types.ordering import Ordering

BOX_TYPES = ("triangle", "quad", "tetra", "hexahedron", "wedge", "pyramid")


def random_mesh(rng: np.random.Generator) -> Mesh:
    """A mesh of some hundred elements at most, nodes and cells in random order."""
    make = (box, mixed2d, mixed3d, delaunay, airfoil, surface, zones, sets_alone)[
        rng.integers(8)
    ]
    return shuffled(rng, make(rng))


def box(rng: np.random.Generator) -> Mesh:
    """A box of one type, often with holes."""
    sizes = {
        f"n{axis}": int(n) for axis, n in zip("xyz", rng.integers(1, 5, 3), strict=True)
    }
    mesh = generate("box", type=str(rng.choice(BOX_TYPES)), **sizes)
    return with_holes(rng, mesh) if rng.random() < 0.5 else mesh


def mixed2d(rng: np.random.Generator) -> Mesh:
    """Quads and triangles."""
    return with_holes(
        rng, generate("mixed2d", nx=int(rng.integers(2, 9)), ny=int(rng.integers(1, 9)))
    )


def mixed3d(rng: np.random.Generator) -> Mesh:
    """Wedges, hexahedra, pyramids and tetrahedra."""
    nx, ny, nz = (int(n) for n in rng.integers((4, 1, 1), (7, 4, 4)))
    return with_holes(rng, generate("mixed3d", nx=nx, ny=ny, nz=nz))


def delaunay(rng: np.random.Generator) -> Mesh:
    """Unstructured triangles or tetrahedra."""
    kind = ("delaunay2d", "delaunay3d")[rng.integers(2)]
    return generate(kind, cells=int(rng.integers(30, 250)), seed=int(rng.integers(1000)))


def airfoil(rng: np.random.Generator) -> Mesh:
    """The C-mesh of quads."""
    return generate("airfoil", i=int(rng.integers(8, 20)) * 2, j=int(rng.integers(2, 8)))


def surface(rng: np.random.Generator) -> Mesh:
    """Sheets of triangles and quads that meet in one line: three or more cells share its edges."""
    sheets, n, m = (int(i) for i in rng.integers((1, 1, 1), (5, 6, 5)))
    points, quads, triangles = [], [], []
    hinge = np.arange(n + 1)
    points.append(np.stack([hinge, 0 * hinge, 0 * hinge], 1).astype(float))
    for sheet in range(sheets):
        angle, rows = 2 * np.pi * sheet / sheets, [hinge]
        for j in range(1, m + 1):
            rows.append(len(np.concatenate(points)) + np.arange(n + 1))
            points.append(
                np.stack(
                    [hinge, 0 * hinge + j * np.cos(angle), 0 * hinge + j * np.sin(angle)], 1
                )
            )
        for low, high in itertools.pairwise(rows):
            for a, b, c, d in zip(low[:-1], low[1:], high[1:], high[:-1], strict=True):
                if rng.random() < 0.5:
                    quads.append((a, b, c, d))
                else:
                    triangles += [(a, b, c), (a, c, d)]
    tables = {"quad": quads, "triangle": triangles}
    cells = [Block(t, np.array(rows, np.int32)) for t, rows in tables.items() if rows]
    return assemble(np.concatenate(points), cells)[0]


def zones(rng: np.random.Generator) -> Mesh:
    """Several bodies that share nothing, of one dimension, each a group of its own."""
    dim = int(rng.integers(2, 4))
    points, blocks, base = [], [], 0
    for zone in range(int(rng.integers(2, 5))):
        kind = str(
            rng.choice([t for t in BOX_TYPES if (t in ("triangle", "quad")) == (dim == 2)])
        )
        nx, ny, nz = (int(n) for n in rng.integers(1, 4, 3))
        mesh = generate("box", type=kind, nx=nx, ny=ny, nz=nz)
        table = mesh.map("cells->nodes").table
        group = np.full(len(table), zone + 1, np.int64)
        blocks.append(Block(kind, table + np.int32(base), tags={"physical": group}))
        points.append(mesh.coordinates + 10.0 * zone)
        base += len(points[-1])
    return assemble(np.concatenate(points), blocks)[0]


def sets_alone(rng: np.random.Generator) -> Mesh:
    """Sets and maps without cells: points named twice, empty sets, a map into its own set."""
    sizes = {name: int(rng.integers(0, 60)) for name in "abc"}
    maps = []
    for source in "abc":
        for to in "abc":
            if sizes[to] and rng.random() < 0.4:
                shape = (sizes[source], int(rng.integers(1, 5)))
                table = rng.integers(0, sizes[to], shape).astype(np.int32)
                maps.append(SetMap(f"{source}->{to}", source, to, table))
    return Mesh([ElementSet(name, size) for name, size in sizes.items()], maps)


def with_holes(rng: np.random.Generator, mesh: Mesh) -> Mesh:
    """The mesh without some of its cells: several pieces, nodes that nothing reaches."""
    share = rng.uniform(0.6, 1.0)
    blocks = []
    for s in mesh.cell_sets:
        table = mesh.cell_map(s.name).table
        kept = rng.random(len(table)) < share
        kept[:1] = True
        blocks.append(Block(str(s.cell_type), table[kept]))
    return assemble(np.asarray(mesh.coordinates), blocks)[0]


def shuffled(rng: np.random.Generator, mesh: Mesh) -> Mesh:
    """Nodes and cells in random order, three times of four."""
    if rng.random() < 0.25:
        return mesh
    names = [s.name for s in mesh.sets.values() if not s.parts]
    return mesh.renumber(
        {n: Ordering.from_new_to_old(rng.permutation(mesh.size(n)), n) for n in names}
    )
