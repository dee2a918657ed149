"""Small Gmsh files, written by hand, and what tests do with all of them."""

import struct

import numpy as np

from meshprep.mesh import Dat, IndexList, Tag, assemble
from meshprep.mesh.assemble import Block, GroupTable

MSH2 = """$MeshFormat
2.2 0 8
$EndMeshFormat
$Comments
made by hand
$EndComments
$PhysicalNames
3
1 7 "left side"
2 5 "fluid 'inner'"
2 6 "whole"
$EndPhysicalNames
$Nodes
5
10 0 0 0
20 1 0 0
30 1 1 0.1
5 0 1 1e-3
99 7 7 7
$EndNodes
$Elements
5
1 1 2 7 3 5 10
2 2 2 5 1 10 20 30
4 2 4 5 2 1 1 10 30 5
8 2 2 6 1 10 20 30
9 15 2 0 4 20
$EndElements
$Periodic
1
1 3 4
Affine 1 0 0 1 0 1 0 0 0 0 1 0 0 0 0 1
2
20 10
30 5
$EndPeriodic
$NodeData
1
"pressure"
1
0.5
3
2
1
5
10 1
20 2
30 3.25
5 -4e-5
99 0
$EndNodeData
$ElementData
2
"flux"
"scheme"
0
4
0
3
1
77
8 1 2 3
$EndElementData
"""
# Behind MSH2; what no mesh of ours holds.
CORNERS = """$ElementNodeData
1
"corner"
1
0
3
0
1
2
2 3 1 2 3
4 3 4 5 6
$EndElementNodeData
"""

MSH4 = """$MeshFormat
4.1 0 8
$EndMeshFormat
$PhysicalNames
2
1 7 "wall"
2 5 "fluid"
$EndPhysicalNames
$Entities
1 2 2 0
1 0 0 0 0
3 0 0 0 1 0 0 2 7 -8 2 1 -2
4 0 0 0 1 0 0 0 0
1 0 0 0 1 1 0 1 5 1 -3
2 0 0 0 1 1 0 0 2 3 4
$EndEntities
$Nodes
4 5 1 50
0 1 0 1
50
0 0 0
1 3 0 2
2
4
1 0 0
1 1 0
2 1 0 0
2 1 0 2
3
1
0 1 0
9 9 9
$EndNodes
$Elements
4 4 1 9
0 1 15 1
9 50
1 3 1 1
1 50 2
2 1 2 1
3 50 2 4
2 2 2 1
2 50 4 3
$EndElements
$Periodic
1
1 3 4
0
1
2 50
$EndPeriodic
$NodeData
1
"u"
1
0
3
0
3
2
2 1 2 3
50 nan inf -inf
$EndNodeData
"""


def text_of(version):
    """The hand-written file of this version."""
    return MSH2 if version == "2.2" else MSH4


def plate(n=4, seed=0):
    """A plate of triangles with its border lines; nodes shuffled, without any tag."""
    rng = np.random.default_rng(seed)
    m = n + 1
    x, y = np.meshgrid(np.arange(m) / 3, np.arange(m) / 7)
    points = np.stack([x.ravel(), y.ravel(), rng.random(m * m)], axis=1)
    i = (np.arange(n * n) // n) * m + np.arange(n * n) % n
    triangles = np.concatenate(
        [np.stack([i, i + 1, i + m + 1], axis=1), np.stack([i, i + m + 1, i + m], axis=1)]
    )
    lines = np.stack([np.arange(n), np.arange(1, m)], axis=1)
    order = rng.permutation(m * m)
    moved = np.empty_like(points)
    moved[order] = points
    return moved, order[triangles], order[lines]


def decorated(seed=0):
    """A mesh with everything that a Gmsh file can carry, in a random order."""
    rng = np.random.default_rng(seed)
    points, triangles, lines = plate(3, seed)
    n, k = len(points), len(triangles)
    table = GroupTable(
        rng.integers(0, 4, k).astype(np.int32),
        np.array([0, 0, 1, 3, 4]),
        np.array([5, 5, 6, -9]),
    )
    parts = rng.integers(0, 3, k)
    blocks = [
        Block(
            "line",
            lines,
            rng.permutation(len(lines)) + 100,
            {"entity": np.arange(len(lines))},
        ),
        Block(
            "triangle",
            triangles,
            rng.permutation(k) * 3 + 500,
            {"entity": rng.integers(0, 3, k), "physical": table, "partition": parts},
        ),
    ]
    some = np.sort(rng.permutation(n)[: n // 2]).astype(np.int32)
    dats = [
        Dat("p", "nodes", rng.random(n)),
        Dat(
            "p", "nodes", rng.random(n), None, {"gmsh:reals": (1.5,), "gmsh:integers": (3,)}
        ),
        Dat("part", "nodes", rng.random((some.size, 2)), some),
        Dat("stress", "cells", rng.random((k, 3, 3)).astype(np.float32)),
        Dat("count", "cells", rng.integers(-(2**53), 2**53, k)),
        Dat("flag", "line", rng.random(len(lines)) < 0.5),
        Dat("wide", "line", rng.random((len(lines), 11))),
        Dat("one", "cells", rng.random((k, 1))),
        Dat("corner", "cells", rng.random((k, 3, 2))),
    ]
    pairs = np.stack([rng.permutation(n)[:3], rng.permutation(n)[:3]], axis=1).astype(
        np.int32
    )
    attrs = {"dim": 1, "slave": 2, "master": 1, "affine": tuple(np.eye(4).ravel().tolist())}
    mesh, _ = assemble.assemble(
        points,
        blocks,
        node_label=rng.permutation(n) * 2 + 7,
        tag_names={("physical", 2): {5: "a b", 6: "c'd", -9: "é"}},
        dats=dats,
        lists=[IndexList("gmsh:periodic", "nodes", pairs, attrs)],
    )
    ref = Tag.from_ids(
        "medit:ref", "nodes", rng.integers(0, 3, n), {1: "corner", 2: "rest"}
    )
    other = Tag.from_ids("zone", "cells", rng.integers(-1, 3, k), {2: "two"})
    return mesh.with_(tags=[ref, other])


def binary4():
    """A square of two triangles in MSH 4.1 binary, packed by hand."""

    def pack(layout, *values):
        return struct.pack(f"<{layout.replace('z', 'Q')}", *values)

    entities = pack("4z", 0, 0, 1, 0) + pack(
        "i6dz2izi", 3, 0, 0, 0, 1, 1, 0, 2, 5, -6, 1, -9
    )
    nodes = pack("4z", 2, 4, 1, 9)
    nodes += pack("3iz2z6d", 2, 3, 0, 2, 9, 1, 0, 0, 0, 1, 0, 0)
    nodes += pack("3iz2z6d", 2, 4, 0, 2, 4, 5, 1, 1, 0, 0, 1, 0.125)
    elements = pack("4z", 1, 2, 1, 2) + pack("3iz8z", 2, 3, 2, 2, 1, 9, 1, 4, 2, 9, 4, 5)
    periodic = pack("z3izdzzz", 1, 1, 3, 4, 1, 2.5, 1, 9, 5)
    data = pack("id", 5, 1.5) + pack("id", 9, -2.5)
    return b"".join(
        (
            b"$MeshFormat\n4.1 1 8\n" + pack("i", 1) + b"\n$EndMeshFormat\n",
            b'$PhysicalNames\n1\n2 5 "plate"\n$EndPhysicalNames\n',
            b"$Entities\n" + entities + b"\n$EndEntities\n",
            b"$Nodes\n" + nodes + b"\n$EndNodes\n",
            b"$Elements\n" + elements + b"\n$EndElements\n",
            b"$Periodic\n" + periodic + b"\n$EndPeriodic\n",
            b'$NodeData\n1\n"t"\n1\n0\n3\n0\n1\n2\n' + data + b"\n$EndNodeData\n",
        )
    )


def binary2():
    """A triangle in two groups, and a line, in MSH 2.2 binary, packed by hand."""

    def pack(layout, *values):
        return struct.pack(f"<{layout}", *values)

    nodes = b"".join(pack("i3d", i, i, i * i, 0.5) for i in (3, 1, 2))
    elements = (
        pack("3i", 2, 2, 2) + pack("6i", 1, 7, 1, 1, 2, 3) + pack("6i", 2, 8, 1, 1, 2, 3)
    )
    elements += pack("3i", 1, 1, 4) + pack("7i", 3, 9, 2, 1, 5, 1, 2)
    return b"".join(
        (
            b"$MeshFormat\n2.2 1 8\n" + pack("i", 1) + b"\n$EndMeshFormat\n",
            b"$Nodes\n3\n" + nodes + b"\n$EndNodes\n",
            b"$Elements\n3\n" + elements + b"\n$EndElements\n",
        )
    )


KINDS = tuple((version, binary) for version in ("2.2", "4.1") for binary in (False, True))


def groups(mesh, name, set_name):
    """The groups of every element."""
    tag = mesh.tag(name, set_name)
    return [tag.groups(row) for row in tag.values]


def section(path, name):
    """The lines of a section of a text file."""
    body = path.read_text().split(f"${name}\n")[1].split(f"$End{name}")[0]
    return [line.split() for line in body.splitlines()]
