"""Small meshes of every kind for the tests of reading and writing."""

from functools import cache

import numpy as np

from meshprep.mesh import Dat, IndexList, Mesh, Tag
from meshprep.mesh.assemble import Block, assemble
from meshprep.mesh.cells import shape_of

# Irregular, so that nothing is exact in few digits and no cell is flat.
_RANDOM = np.random.default_rng(7)
PLANE = np.array(
    [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1], [0, 2], [1, 2], [2, 2]], float
)
PLANE = PLANE + 0.1 * _RANDOM.random(PLANE.shape)
CUBE = np.array([[i & 1, i >> 1 & 1, i >> 2] for i in range(8)], float)
CUBE = np.vstack([CUBE, CUBE[4:] + np.array([0, 0, 1]), [[0.5, 0.5, -1]]])
SPACE = CUBE + 0.05 * _RANDOM.random(CUBE.shape)

TRIANGLES = [[0, 1, 4], [0, 4, 3], [1, 2, 5], [1, 5, 4]]
QUADS = [[3, 4, 7, 6], [4, 5, 8, 7]]
BORDER = [[0, 1], [1, 2], [2, 5], [5, 8]]
TETS = [[0, 1, 2, 4], [1, 3, 2, 7], [1, 2, 7, 4], [1, 7, 5, 4], [2, 6, 7, 4]]
SKIN = [[0, 2, 1], [0, 1, 4], [0, 4, 2]]
HEX = [[0, 1, 3, 2, 4, 5, 7, 6]]
HEXES = [*HEX, [4, 5, 7, 6, 8, 9, 11, 10]]
WEDGES = [[4, 5, 6, 8, 9, 10], [5, 7, 6, 9, 11, 10]]
PYRAMID = [[0, 2, 3, 1, 12]]


def _mesh(points: np.ndarray, *cells: tuple[str, list], **more: object) -> Mesh:
    blocks = [Block(t, np.array(nodes)) for t, nodes in cells]
    return assemble(points, blocks, **more)[0]  # type: ignore[arg-type]


def _second_order(cell_type: str, count: int) -> Mesh:
    shape = shape_of(cell_type)
    n = int(cell_type[len(shape.name) :])
    points = _RANDOM.random((n * count, 2 if shape.dim == 2 else 3))
    return _mesh(points, (cell_type, np.arange(n * count).reshape(count, n)))


@cache
def plain_meshes() -> dict[str, Mesh]:
    """Coordinates and cells alone."""
    surface = np.column_stack([PLANE, PLANE[:, 0] ** 2])
    return {
        "triangles": _mesh(PLANE, ("triangle", TRIANGLES)),
        "quads": _mesh(PLANE, ("quad", QUADS)),
        "mixed plane": _mesh(PLANE, ("triangle", TRIANGLES), ("quad", QUADS)),
        "mixed plane, turned": _mesh(PLANE, ("quad", QUADS), ("triangle", TRIANGLES)),
        "with border": _mesh(
            PLANE, ("line", BORDER), ("triangle", TRIANGLES), ("quad", QUADS)
        ),
        "surface": _mesh(surface, ("triangle", TRIANGLES), ("quad", QUADS)),
        "surface of triangles": _mesh(surface, ("triangle", TRIANGLES)),
        "lines": _mesh(PLANE, ("line", BORDER)),
        "tets": _mesh(SPACE, ("tetra", TETS)),
        "tets with skin": _mesh(SPACE, ("tetra", TETS), ("triangle", SKIN)),
        "tets, skin, edges": _mesh(
            SPACE,
            ("line", [[0, 1]]),
            ("triangle", SKIN),
            ("tetra", TETS),
            ("vertex", [[0], [2]]),
        ),
        "hexes": _mesh(SPACE, ("hexahedron", HEXES)),
        "hexes with skin": _mesh(SPACE, ("quad", [[0, 2, 3, 1]]), ("hexahedron", HEXES)),
        "mixed solid": _mesh(
            SPACE, ("hexahedron", HEX), ("wedge", WEDGES), ("pyramid", PYRAMID)
        ),
        "mixed solid, turned": _mesh(
            SPACE, ("pyramid", PYRAMID), ("wedge", WEDGES), ("hexahedron", HEX)
        ),
        "wedges": _mesh(SPACE, ("wedge", WEDGES)),
        **{
            t: _second_order(t, 2)
            for t in (
                *("triangle6", "quad8", "quad9", "tetra10", "pyramid13", "wedge15"),
                *("hexahedron20", "hexahedron27", "line3"),
            )
        },
    }


def decorated(mesh: Mesh, what: str) -> Mesh:
    """The mesh with one more thing on it: see DECORATIONS."""
    dats, tags, lists = DECORATIONS[what](mesh)
    return Mesh(
        mesh.sets.values(),
        mesh.maps.values(),
        [*mesh.dats, *dats],
        [*mesh.tags, *tags],
        [*mesh.lists, *lists],
        mesh.extras,
    )


def _floats(mesh: Mesh) -> tuple[list, list, list]:
    r = np.random.default_rng(3)
    n = mesh.size("nodes")
    dats = [Dat("p", "nodes", r.random(n)), Dat("u", "nodes", r.random((n, 3)))]
    for s in mesh.cell_sets:
        dats += [
            Dat("q", s.name, r.random(s.size)),
            Dat("w", s.name, r.random((s.size, 2))),
        ]
    return dats, [], []


def _one_name(mesh: Mesh) -> tuple[list, list, list]:
    """Values of the same name on nodes and on cells."""
    sets = ["nodes", *(s.name for s in mesh.cell_sets)]
    return [Dat("v", name, np.arange(mesh.size(name)) + 0.5) for name in sets], [], []


def _single(mesh: Mesh) -> tuple[list, list, list]:
    r = np.random.default_rng(4)
    dats = [Dat("p4", "nodes", r.random(mesh.size("nodes")).astype("f4"))]
    dats += [Dat("q4", s.name, r.random(s.size).astype("f4")) for s in mesh.cell_sets]
    return dats, [], []


def _integers(mesh: Mesh) -> tuple[list, list, list]:
    dats = [Dat("rank", "nodes", np.arange(mesh.size("nodes"), dtype="i4") - 3)]
    for kind in ("i8", "u1", "i2"):
        dats += [
            Dat(f"n{kind}", s.name, np.arange(s.size).astype(kind)) for s in mesh.cell_sets
        ]
    return dats, [], []


def _partial(mesh: Mesh) -> tuple[list, list, list]:
    last = mesh.cell_sets[-1]
    return (
        [
            Dat("some", "nodes", np.array([1.5, 2.5]), np.array([0, 2])),
            Dat("top", last.name, np.arange(last.size) + 0.5),
            Dat("few", last.name, np.array([7]), np.array([0])),
        ],
        [],
        [],
    )


def _text(mesh: Mesh) -> tuple[list, list, list]:
    return (
        [
            Dat(
                "word",
                "nodes",
                np.array(["a", "bc"] * mesh.size("nodes"))[: mesh.size("nodes")],
            )
        ],
        [],
        [],
    )


def _labels(mesh: Mesh) -> tuple[list, list, list]:
    return (
        [
            Dat("label", s, np.arange(mesh.size(s)) * 3 + 10)
            for s in ("nodes", mesh.cell_sets[0].name)
        ],
        [],
        [],
    )


def _named_groups(mesh: Mesh) -> tuple[list, list, list]:
    tags = []
    for s in mesh.cell_sets:
        names = {5: f"wall of {s.cell_type}", 9: f"in {s.cell_type}"}
        tags.append(
            Tag.from_ids("physical", s.name, np.where(np.arange(s.size) % 2, 5, 9), names)
        )
    return [], tags, []


def _groups(mesh: Mesh) -> tuple[list, list, list]:
    tags = [
        Tag.from_ids("medit:ref", s.name, np.arange(s.size) % 3) for s in mesh.cell_sets
    ]
    tags.append(Tag.from_ids("medit:ref", "nodes", np.arange(mesh.size("nodes")) % 2 * 4))
    return [], tags, []


def _two_tags(mesh: Mesh) -> tuple[list, list, list]:
    tags = [Tag.from_ids("physical", s.name, np.full(s.size, 2)) for s in mesh.cell_sets]
    tags += [
        Tag.from_ids("zone of mine", s.name, np.arange(s.size) + 1) for s in mesh.cell_sets
    ]
    return [], tags, []


def _several_groups(mesh: Mesh) -> tuple[list, list, list]:
    s = mesh.cell_sets[0]
    values = np.arange(s.size, dtype=np.int32) % 2
    return (
        [],
        [Tag("physical", s.name, values, np.array([0, 2, 3]), np.array([1, 2, 3]))],
        [],
    )


def _border_groups(mesh: Mesh) -> tuple[list, list, list]:
    top = mesh.sets["cells"].parts or ("cells",)
    tags = [
        Tag.from_ids(
            "su2:tag", s.name, np.arange(s.size) % 2 + 1, {1: "inlet", 2: "outer wall"}
        )
        for s in mesh.cell_sets
        if s.name not in top
    ]
    return [], tags, []


def _lists(mesh: Mesh) -> tuple[list, list, list]:
    last = mesh.cell_sets[-1]
    return (
        [],
        [],
        [
            IndexList("fixed", "nodes", np.array([3, 1, 2]), {"kind": "point_set"}),
            IndexList("few", last.name, np.array([last.size - 1]), {"kind": "cell_set"}),
            IndexList("pairs", "nodes", np.array([[0, 1]]), {"kind": "periodic"}),
        ],
    )


DECORATIONS = {
    "floats": _floats,
    "one name": _one_name,
    "single": _single,
    "integers": _integers,
    "partial": _partial,
    "text": _text,
    "labels": _labels,
    "named groups": _named_groups,
    "groups": _groups,
    "two tags": _two_tags,
    "several groups": _several_groups,
    "border groups": _border_groups,
    "lists": _lists,
}
