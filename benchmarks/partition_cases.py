"""The loops that the partitioners are held against, in the locality order of the pipeline."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from common import mesh_of
from mesher import mesher_file
from numpy.typing import NDArray

from meshprep.io import read
from meshprep.io.generate import generate
from meshprep.mesh import Mesh
from meshprep.mesh.assemble import Block, assemble
from meshprep.mesh.geometry import centroids
from meshprep.ordering import LocalityProblem, from_set_order, locality_order
from meshprep.partitioning import BlockProblem
from meshprep.topology import derive

# How fast the layers of a graded mesh grow: the lowest is e^5 = 148 times as thin as the highest,
# of a steep one e^11 = 60,000 times.
GRADING, STEEP = 5.0, 11.0
# Bodies along each axis, and how thick a ring of triangles is, by the power of e.
BODIES, RING = 3, 5.0


@dataclass(frozen=True, eq=False)
class Start:
    """A loop in a locality order, which every partitioner starts from, and where its points are."""

    problem: BlockProblem
    points: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Case:
    """One loop: its map, where things are, and the bars that hold for it.

    ``kind`` is the cell type of a loop over cells, ``"facets"`` for a loop over facets, empty where
    no bar of its own holds. ``slow`` lets peers cut it that take minutes on larger meshes.
    """

    name: str
    table: NDArray[np.int32]
    points: NDArray[np.float64]
    elements: NDArray[np.float64]
    block_size: int
    kind: str
    slow: bool

    def ordered(self, method: str) -> Start:
        """The loop with points in a locality order, and elements in that of their points."""
        known = LocalityProblem(self.table, len(self.points), self.points)
        order = locality_order(known, method).ordering
        table = order.old_to_new[self.table]
        rows = from_set_order(table)
        table, where = np.ascontiguousarray(table[rows]), self.elements[rows]
        problem = BlockProblem(table, len(self.points), self.block_size, coordinates=where)
        return Start(problem, self.points[order.new_to_old])


@dataclass(frozen=True)
class Source:
    """How a mesh is made for a scale, and the loops that are cut: name -> (S, kind)."""

    make: Callable[[float], Mesh]
    loops: dict[str, tuple[int, str]]
    slow: bool = False


def _airfoil(scale: float) -> Mesh:
    side = scale**0.5
    return generate("airfoil", i=max(3, round(800 * side)), j=max(3, round(1200 * side)))


def _box(cell_type: str, side: int) -> Callable[[float], Mesh]:
    def make(scale: float) -> Mesh:
        m = max(4, round(side * scale ** (1 / 3)))
        return generate("box", nx=m, ny=m, nz=m, type=cell_type)

    return make


def _of_mesher(shape: str, cells: int = 1_000_000) -> Callable[[float], Mesh]:
    return lambda scale: read(mesher_file(shape, round(cells * scale)))


def _delaunay(d: int) -> Callable[[float], Mesh]:
    return lambda scale: mesh_of(f"delaunay{d}d", round(1_000_000 * scale))


def _moved(
    make: Callable[[float], Mesh],
    move: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> Callable[[float], Mesh]:
    """The mesh with its nodes at other places."""

    def moved(scale: float) -> Mesh:
        mesh = make(scale)
        place = mesh.dat("coordinates", "nodes")
        assert place is not None
        values = move(place.values.copy())
        dats = [replace(d, values=values) if d is place else d for d in mesh.dats]
        sets, maps = mesh.sets.values(), mesh.maps.values()
        return Mesh(sets, maps, dats, mesh.tags, mesh.lists, mesh.extras)

    return moved


def _graded(
    make: Callable[[float], Mesh], grading: float = GRADING
) -> Callable[[float], Mesh]:
    """The mesh with layers that are thin at the bottom of its last axis and grow smoothly."""

    def graded(values: NDArray[np.float64]) -> NDArray[np.float64]:
        axis = int(np.flatnonzero(np.ptp(values, axis=0) > 0)[-1])
        values[:, axis] = np.expm1(grading * values[:, axis]) / np.expm1(grading)
        return values

    return _moved(make, graded)


def _ring(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The unit square as a ring so thin that a block is bent by far more than it is thick."""
    radius, turn = 1 + 1e-3 * np.expm1(RING * values[:, 1]), 2 * np.pi * values[:, 0]
    values[:, 0], values[:, 1] = radius * np.cos(turn), radius * np.sin(turn)
    return values


def _bodies(scale: float) -> Mesh:
    """Cubes of tetrahedra that touch but share no node."""
    mesh, count = _delaunay(3)(scale / BODIES**3), BODIES**3
    table, points = mesh.map("cells->nodes").table, mesh.coordinates
    assert points is not None
    corner = np.stack(np.unravel_index(np.arange(count), (BODIES,) * 3), axis=1)
    cells = np.concatenate([table + k * len(points) for k in range(count)])
    places = np.concatenate([points + off for off in corner])
    return assemble(places, [Block("tetra", cells.astype(np.int32))])[0]


def _porous(scale: float) -> Mesh:
    """Hexahedra of a box where round pores leave walls of a few elements."""
    mesh = _box("hexahedron", 110)(scale)
    table, points = mesh.map("cells->nodes").table, mesh.coordinates
    assert points is not None
    steps = points[table].mean(axis=1) * round(len(table) ** (1 / 3))
    kept = table[np.linalg.norm(steps % 11 - 5.5, axis=1) > 5.3]
    used, cells = np.unique(kept, return_inverse=True)
    return assemble(
        points[used], [Block("hexahedron", cells.reshape(kept.shape).astype(np.int32))]
    )[0]


TRIANGLES = {"cells->nodes": (256, "triangles"), "edges->cells": (320, "facets")}
TETRAHEDRA = {"cells->nodes": (256, "tetrahedra"), "faces->cells": (256, "facets")}
MESHES: dict[str, Source] = {
    "airfoil": Source(_airfoil, {"edges->cells": (448, "facets")}),
    "hexes 70^3": Source(_box("hexahedron", 70), {"cells->nodes": (320, "hexahedra")}),
    "hexes 50^3": Source(_box("hexahedron", 50), {"faces->cells": (384, "facets")}),
    "triangles": Source(_of_mesher("airfoil-triangles"), TRIANGLES),
    "tetrahedra": Source(_of_mesher("holes-tetrahedra"), TETRAHEDRA),
    "delaunay2d": Source(_delaunay(2), TRIANGLES),
    "delaunay3d": Source(_delaunay(3), TETRAHEDRA),
    # Held out: nothing is tuned on these.
    "layered triangles": Source(
        _graded(_delaunay(2)), {"cells->nodes": (256, "triangles")}
    ),
    "layered tetrahedra": Source(_graded(_box("tetra", 48)), TETRAHEDRA),
    "layered wedges": Source(_graded(_box("wedge", 64)), {"cells->nodes": (256, "")}),
    # Where coordinates, or lines of a grid, say little about what is a good block.
    "hard steep tetrahedra": Source(_graded(_delaunay(3), STEEP), TETRAHEDRA),
    "hard ring triangles": Source(_moved(_delaunay(2), _ring), TRIANGLES),
    "hard bodies": Source(_bodies, TETRAHEDRA),
    "hard porous hexes": Source(_porous, {"cells->nodes": (256, "")}),
    # Sizes that take the slowest peers a minute.
    "small triangles": Source(
        _of_mesher("airfoil-triangles", 100_000), TRIANGLES, slow=True
    ),
    "small tetrahedra": Source(
        _of_mesher("holes-tetrahedra", 100_000), TETRAHEDRA, slow=True
    ),
}


def cases(scale: float, chosen: str = "") -> Iterator[Case]:
    """The cases whose name holds ``chosen``, with meshes of ``scale`` times the elements.

    Points and elements are shuffled.
    """
    for mesh_name, source in MESHES.items():
        wanted = {
            m: loop for m, loop in source.loops.items() if chosen in f"{mesh_name} {m}"
        }
        if not wanted:
            continue
        mesh = derive(source.make(scale), wanted)
        for map_name, (block_size, kind) in wanted.items():
            name = f"{mesh_name} {map_name}"
            yield shuffled(name, mesh, map_name, block_size, kind, source.slow)


def shuffled(
    name: str,
    mesh: Mesh,
    map_name: str,
    block_size: int,
    kind: str = "",
    slow: bool = False,
) -> Case:
    """The loop over a map of a mesh, with points and elements shuffled."""
    from_set, _, to_set = map_name.partition("->")
    points, elements = centroids(mesh, to_set), centroids(mesh, from_set)
    assert points is not None
    assert elements is not None
    random = np.random.default_rng(1)
    number = random.permutation(len(points)).astype(np.int32)
    old, rows = np.argsort(number), random.permutation(len(elements))
    table = np.ascontiguousarray(number[mesh.map(map_name).table[rows]])
    return Case(name, table, points[old], elements[rows], block_size, kind, slow)
