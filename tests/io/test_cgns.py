"""CGNS: trees of other programs, what is written, and what is refused."""

import random
import shutil
import subprocess
from dataclasses import replace
from itertools import pairwise

import cgns_files
import effort
import h5py
import numpy as np
import pytest
from cgns_files import Seen, at, node, points, section, zone
from damage import read_damaged
from hypothesis import given, settings
from hypothesis import strategies as st
from io_meshes import plain_meshes

import meshprep
from meshprep import io
from meshprep.io.compare import difference
from meshprep.mesh import Tag
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.ordering import Ordering

pytestmark = pytest.mark.usefixtures("read_here")

# A row of two cubes of six tetrahedra each.
GRID = np.arange(12).reshape(3, 2, 2)
XYZ = (
    np.stack(np.meshgrid([0, 1, 2], [0, 1], [0, 1], indexing="ij"), -1).reshape(-1, 3)
    + 0.25
)
ROUND = ((1, 2), (2, 3), (3, 7), (7, 4), (4, 5), (5, 1))


def corners(i):
    """The nodes of a cube in the order of a hexahedron, from 1."""
    a, b = (GRID[i + j].ravel() + 1 for j in (0, 1))
    return [int(n) for n in (a[0], b[0], b[2], a[2], a[1], b[1], b[3], a[3])]


TETS = [[c[j] for j in (0, a, b, 6)] for c in map(corners, (0, 1)) for a, b in ROUND]
_SIDES = [tuple(sorted(t[:i] + t[i + 1 :])) for t in TETS for i in range(4)]
SKIN = [list(s) for s in _SIDES if _SIDES.count(s) == 1]
LEFT = [s for s in SKIN if max(s) <= 4]
RIGHT = [s for s in SKIN if min(s) > 8]


def tree(*, mixed=False, offset=False, kind="PointList"):
    """Names with blanks, families, a solution on each place, a node list and a region."""
    at_end = len(TETS)
    cells = section("Grid: fluid", 10, 1, TETS)
    if mixed:
        starts = list(range(0, 5 * at_end + 1, 5)) if offset else None
        cells = section("Grid: fluid", 20, 1, [[10, *t] for t in TETS], offset=starts)
    walls = section("wall left", 5, at_end + 1, LEFT)
    right = section("Out", 5, at_end + 3, RIGHT)
    family = node("FamilyName", "FamilyName_t", "solid walls")
    bcs = [
        node(
            "wall left",
            "BC_t",
            "BCWallViscous",
            points([at_end + 1, at_end + 2]),
            family,
            at("FaceCenter"),
        ),
        node(
            "Out",
            "BC_t",
            "BCOutflow",
            at("FaceCenter"),
            node("PointRange", "IndexRange_t", [[at_end + 3], [at_end + 4]]),
        ),
        node(
            "both",
            "BC_t",
            "FamilySpecified",
            points([at_end + 4, at_end + 1]),
            at("FaceCenter"),
        ),
        node("held nodes", "BC_t", "BCDirichlet", points([5, 1, 7])),
    ]
    if kind == "ElementList":
        bcs[0] = node(
            "wall left",
            "BC_t",
            "BCWallViscous",
            family,
            node("ElementList", "IndexArray_t", [[at_end + 1], [at_end + 2]]),
        )
    solutions = [
        node(
            "Start",
            "FlowSolution_t",
            None,
            node(
                "Pressure",
                "DataArray_t",
                np.arange(len(XYZ)) * 1.5,
                node("DimensionalExponents", "DimensionalExponents_t", np.ones(5)),
            ),
        ),
        node(
            "Later",
            "FlowSolution_t",
            None,
            at("Vertex"),
            node("Pressure", "DataArray_t", np.arange(len(XYZ)) * 2.5),
        ),
        node(
            "Cells",
            "FlowSolution_t",
            None,
            at("CellCenter"),
            node("rank", "DataArray_t", list(range(at_end))),
            node("T", "DataArray_t", np.arange(at_end, dtype=np.float32)),
        ),
    ]
    region = node("porous", "ZoneSubRegion_t", [3], points([2, 5, 6]), at("CellCenter"))
    body = zone(
        "Zone 1",
        XYZ,
        at_end,
        walls,
        right,
        cells,
        node("ZoneBC", "ZoneBC_t", None, *bcs),
        *solutions,
        region,
    )
    walls = node("solid walls", "Family_t", None, node("FamilyBC", "FamilyBC_t", "BCWall"))
    state = node(
        "ReferenceState", "ReferenceState_t", None, node("Mach", "DataArray_t", np.ones(1))
    )
    return node("the base", "CGNSBase_t", np.array([3, 3], np.int32), walls, state, body)


VARIANTS = [
    ({}, 3.3, np.int32),
    ({}, 3.4, np.int64),
    ({"mixed": True}, 3.1, np.int32),
    ({"mixed": True, "offset": True}, 4.2, np.int64),
    ({"kind": "ElementList"}, 2.5, np.int32),
]


def shuffled(mesh, seed=0):
    """The mesh with nodes and cells in another order."""
    r = np.random.default_rng(seed)
    names = ["nodes", *(mesh.sets["cells"].parts or ("cells",))]
    return mesh.renumber(
        {n: Ordering.from_new_to_old(r.permutation(mesh.size(n))) for n in names}
    )


@pytest.mark.parametrize(("how", "version", "integer"), VARIANTS)
def test_a_reordered_file_holds_the_same_at_the_same_places(
    how, version, integer, tmp_path
):
    old, new = tmp_path / "a.cgns", tmp_path / "b.cgns"
    cgns_files.save(old, tree(**how), version=version, integer=integer)
    mesh = io.read(old)
    assert {s.name: s.size for s in mesh.sets.values()} == {
        "nodes": 12,
        "cells": 12,
        "triangle": 4,
    }
    assert io.write(shuffled(mesh), new) == []
    if "kind" in how:
        # lists of elements say nothing of their place in old files
        cgns_files.save(old, tree())
    before, after = Seen(old), Seen(new)
    assert after.families == before.families
    assert after.zones == before.zones
    with h5py.File(new) as file:
        assert file["the base/ReferenceState/Mach/ data"][()] == 1
        units = file["the base/Zone 1/Start/Pressure/DimensionalExponents/ data"][()]
        assert units.tolist() == [1] * 5


FACES = [(0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)]


def polyhedra(*, parents=True, cells=True, offset=True, inward=False):
    """Two cubes, the second cut into two prisms, as NGON_n and NFACE_n."""
    one, two = corners(0), corners(1)
    cut = [
        [two[i] for i in side]
        for side in ((0, 1, 2), (4, 6, 5), (0, 2, 6, 4), FACES[2], FACES[3])
    ]
    rest = [[two[i] for i in side] for side in ((0, 2, 3), (4, 7, 6), FACES[4], FACES[5])]
    solids = [[[one[i] for i in f] for f in FACES], cut, [*rest, cut[2][::-1]]]
    faces, beside = [], []
    for number, solid in enumerate(solids):
        for face in solid:
            same = [i for i, f in enumerate(faces) if set(f) == set(face)]
            if same:
                beside[same[0]][1] = number
            else:
                faces.append(face)
                beside.append([number, -1])
    first, n = 1, len(faces)
    solids = [[], [], []]
    for i, (left, right) in enumerate(beside, first):
        solids[left].append(i)
        if right >= 0:
            solids[right].append(-i)
    number = np.array(beside) + n + 1
    number[np.array(beside) < 0] = 0
    if inward:
        faces[0], number[0] = faces[0][::-1], number[0, ::-1]
        solids[0][0] *= -1
    more = [node("ParentElements", "DataArray_t", number.T.tolist())] if parents else []
    parts = [listed("Faces", 22, 1, faces, offset, *more)]
    parts += [listed("Solids", 23, n + 1, solids, offset)] if cells else []
    wall = [i for i, f in enumerate(faces, 1) if max(f) <= 4]
    wall = node("a wall", "BC_t", "BCWall", points(wall), at("FaceCenter"))
    values = node("q", "DataArray_t", np.array([10.0, 20.0, 30.0]))
    values = node("Sol", "FlowSolution_t", None, at("CellCenter"), values)
    body = zone("Z", XYZ, 3, *parts, node("ZoneBC", "ZoneBC_t", None, wall), values)
    return node("B", "CGNSBase_t", np.array([3, 3], np.int32), body)


def listed(name, kind, first, rows, offset, *more):
    ends = np.cumsum([0, *map(len, rows)]).tolist()
    if offset:
        return section(name, kind, first, rows, *more, offset=ends)
    made = section(name, kind, first, [[len(r), *r] for r in rows], *more)
    return made


def seen_polyhedra(path):
    """Each cell as its value and its faces, outward, each from its least place on."""
    with h5py.File(path) as file:
        z = file["B/Z"]
        xyz = np.stack([z[f"GridCoordinates/Coordinate{a}/ data"][()] for a in "XYZ"], 1)
        first = {}
        for kind in ("Faces", "Solids"):
            s = z[kind] if kind in z else z["NFACE_n"]
            low, high = s["ElementRange/ data"][()].tolist()
            ends, values = (
                s["ElementStartOffset/ data"][()],
                s["ElementConnectivity/ data"][()],
            )
            lists = [values[a:b].tolist() for a, b in pairwise(ends)]
            assert len(lists) == high - low + 1
            first[kind] = dict(zip(range(low, high + 1), lists, strict=True))
        parents = z["Faces/ParentElements/ data"][()].T.tolist()
        values = dict(zip(first["Solids"], z["Sol/q/ data"][()].tolist(), strict=True))
        cells = {}
        for cell, faces in first["Solids"].items():
            sides = [first["Faces"][abs(f)][:: 1 if f > 0 else -1] for f in faces]
            cells[values[cell]] = sorted(
                ring([tuple(xyz[n - 1]) for n in side]) for side in sides
            )
            for f in faces:
                assert parents[abs(f) - 1][0 if f > 0 else 1] == cell
        listed = (
            z[
                "ZoneBC/a wall/PointList/ data"
                if "PointList" in z["ZoneBC/a wall"]
                else "ZoneBC/a wall/PointRange/ data"
            ][()]
            .ravel()
            .tolist()
        )
        return cells, [
            ring([tuple(xyz[n - 1]) for n in first["Faces"][f]]) for f in {*listed}
        ]


def ring(places):
    least = places.index(min(places))
    return places[least:] + places[:least]


@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize(("parents", "cells"), [(True, True), (False, True)])
@pytest.mark.parametrize("inward", [False, True])
def test_polyhedra_are_sets_and_maps(offset, parents, cells, inward, tmp_path):
    path = tmp_path / "a.cgns"
    cgns_files.save(
        path, polyhedra(parents=parents, cells=cells, offset=offset, inward=inward)
    )
    mesh = io.read(path)
    assert {n: s.size for n, s in mesh.sets.items()} == {
        "nodes": 12,
        "faces": 2,
        "boundary_faces": 12,
        "cells": 3,
    }
    assert mesh.map("faces->cells").table.tolist() == [[0, 2], [1, 2]]
    assert mesh.tag("cgns:bc", "boundary_faces").first_ids().sum() == 1
    sets = ("nodes", "faces", "boundary_faces", "cells")
    r = np.random.default_rng(1)
    order = {s: Ordering.from_new_to_old(r.permutation(mesh.size(s))) for s in sets}
    assert io.write(mesh.renumber(order), tmp_path / "b.cgns") == []
    cgns_files.save(path, polyhedra())
    assert seen_polyhedra(tmp_path / "b.cgns") == seen_polyhedra(path)


def test_polyhedra_without_a_section_of_cells_are_refused(tmp_path):
    cgns_files.save(tmp_path / "a.cgns", polyhedra(parents=True, cells=False))
    with pytest.raises(MeshprepError, match=r"has the faces of cells .*: write NFACE_n"):
        io.read(tmp_path / "a.cgns")


def test_loops_run_over_the_faces_of_polyhedra(tmp_path):
    cgns_files.save(tmp_path / "a.cgns", polyhedra())
    mesh = io.read(tmp_path / "a.cgns")
    plan = meshprep.prepare(mesh, ["faces->cells", "boundary_faces->cells"]).plan
    assert sorted(plan.ordering["cells"].new_to_old.tolist()) == [0, 1, 2]
    with pytest.raises(MeshprepError, match="there are no cells to write"):
        io.write(mesh, tmp_path / "a.vtu", drop=True)


def two_zones():
    """A zone of all tetrahedra and one of two, elsewhere, with a link between them."""

    def one(name, move, tets):
        wall = node("wall", "BC_t", "BCWall", points([len(tets) + 1]), at("FaceCenter"))
        body = [
            section("Tets", 10, 1, tets),
            section("Skin", 5, len(tets) + 1, [tets[0][:3]]),
        ]
        return zone(
            name, XYZ + move, len(tets), *body, node("ZoneBC", "ZoneBC_t", None, wall)
        )

    there = one("there", 5, TETS[:2])
    link = node("To", "GridConnectivity_t", "here", points([1, 2]))
    there = (
        *there[:3],
        (*there[3], node("ZoneGridConnectivity", "ZoneGridConnectivity_t", None, link)),
    )
    return node("B", "CGNSBase_t", np.array([3, 3], np.int32), one("here", 0, TETS), there)


def test_zones_become_regions_of_one(tmp_path):
    cgns_files.save(tmp_path / "a.cgns", two_zones())
    mesh = io.read(tmp_path / "a.cgns")
    assert mesh.extras["unread"] == ("'ZoneGridConnectivity' of zone 'there'",)
    assert np.bincount(mesh.tag("cgns:region", "cells").first_ids()).tolist() == [0, 12, 2]
    assert dict(mesh.tag("cgns:region", "cells").names) == {1: "here", 2: "there"}
    assert mesh.tag("cgns:bc", "triangle").first_ids().tolist() == [1, 1]
    told = io.write(shuffled(mesh), tmp_path / "b.cgns", drop=True)
    assert told == [f"{mesh.extras['unread'][0]} (not read)"]
    with h5py.File(tmp_path / "b.cgns") as file:
        assert [n for n, _ in cgns_files.of_label(file["B"], "Zone_t")] == ["here"]
        assert file["B/here/ data"][()].ravel().tolist() == [24, 14, 0]
    before, after = (Seen(tmp_path / f"{name}.cgns").zones for name in "ab")
    for name, (sections, *_) in before.items():
        found = after["here"][1][name][1]
        assert sorted(map(tuple, found)) == sorted(map(tuple, sections["Tets"]))


def test_sections_that_an_order_mixes_become_regions(tmp_path):
    cells = [section("a", 10, 1, TETS[:5]), section("b", 10, 6, TETS[5:])]
    body = zone("Z", XYZ, 12, *cells)
    cgns_files.save(tmp_path / "a.cgns", node("B", "CGNSBase_t", [3, 3], body))
    mesh = io.read(tmp_path / "a.cgns")
    assert io.write(mesh, tmp_path / "b.cgns") == []
    assert Seen(tmp_path / "b.cgns").zones == Seen(tmp_path / "a.cgns").zones
    assert io.write(shuffled(mesh), tmp_path / "c.cgns") == []
    sections, groups, _ = Seen(tmp_path / "c.cgns").zones["Z"]
    before = Seen(tmp_path / "a.cgns").zones["Z"][0]
    assert list(sections) == ["TETRA_4"]
    assert {n: [list(e) for e in found] for n, (_, found) in groups.items()} == before


def damaged(change):
    """The tree in memory after a change: dictionaries of name to [label, data, children]."""

    def as_dict(one):
        name, label, data, children = one
        return name, [label, data, dict(map(as_dict, children))]

    def as_node(name, found):
        return node(name, found[0], found[1], *(as_node(n, f) for n, f in found[2].items()))

    name, made = as_dict(tree())
    change(made[2]["Zone 1"][2])
    return as_node(name, made)


REFUSED = [
    (
        lambda z: z.update(ZoneType=["ZoneType_t", "Structured", {}]),
        r"zone 'Zone 1' is structured: convert it to cells of their own first",
    ),
    (
        lambda z: z["Grid: fluid"][2]["ElementConnectivity"][1].__setitem__(3, 13),
        r"section 'Grid: fluid' names node 13 of 12: the file is damaged",
    ),
    (
        lambda z: z["Grid: fluid"].__setitem__(1, [39, 0]),
        r"section 'Grid: fluid': elements of CGNS's type 39 are not supported",
    ),
    (
        lambda z: z["Grid: fluid"].__setitem__(1, [17, 0]),
        r"12 elements of type HEXA_8 have 48 nodes, not 96: the file is damaged",
    ),
    (
        lambda z: z["Out"][2]["ElementRange"].__setitem__(1, [14, 15]),
        r"sections 'wall left' and 'Out' have the same element 14",
    ),
    (
        lambda z: z["ZoneBC"][2]["both"][2]["PointList"].__setitem__(1, [[13], [17]]),
        r"'both' of zone 'Zone 1' names element 17, which is in no section",
    ),
    (
        lambda z: z["ZoneBC"][2]["held nodes"][2]["PointList"].__setitem__(1, [[0]]),
        r"'held nodes' names node 0 of 12",
    ),
    (
        lambda z: z["GridCoordinates"][2].pop("CoordinateY"),
        r"has the coordinates CoordinateX, CoordinateZ: write",
    ),
    (
        lambda z: z["GridCoordinates"][2].update(
            CoordinateR=["DataArray_t", np.ones(12), {}]
        ),
        r"write CoordinateX, CoordinateY and CoordinateZ",
    ),
]


@pytest.mark.parametrize(("change", "said"), REFUSED)
def test_what_is_refused_says_where_and_what_to_do(change, said, tmp_path):
    cgns_files.save(tmp_path / "a.cgns", damaged(change))
    with pytest.raises(MeshprepError, match=said) as error:
        io.read(tmp_path / "a.cgns")
    assert str(error.value).startswith(f"{tmp_path / 'a.cgns'}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "first",
    [b"\xc0\xa8\xa3\xa9ADF Database Version B02012", b"@(#)ADF Database Version A01010>"],
)
def test_both_kinds_of_adf_file_name_what_converts_them(first, tmp_path):
    (tmp_path / "a.cgns").write_bytes(first)
    with pytest.raises(
        MeshprepError, match=r"in ADF, the older kind: convert it by adf2hdf a.cgns"
    ):
        io.read(tmp_path / "a.cgns")


def test_other_kinds_of_file_name_what_converts_them(tmp_path):
    cgns_files.save(tmp_path / "b.cgns", tree(), version=3.0)
    with pytest.raises(MeshprepError, match=r"of version 3.0, .* cgnsupdate"):
        io.read(tmp_path / "b.cgns")
    cgns_files.save(tmp_path / "c.cgns", tree())
    with h5py.File(tmp_path / "c.cgns", "a") as file:
        del file["the base/Zone 1/GridCoordinates"]
        file["the base/Zone 1/GridCoordinates"] = h5py.ExternalLink("grid.cgns", "/B/Z/G")
    with pytest.raises(
        MeshprepError, match=r"GridCoordinates' is a link .* cgnsconvert -h -f -l"
    ):
        io.read(tmp_path / "c.cgns")


def test_what_is_not_read_is_named(tmp_path):
    def change(z):
        z["Out"][2]["ParentElements"] = ["DataArray_t", [[1, 2], [0, 0]], {}]
        z["Later"][2]["Rind"] = ["Rind_t", [0, 0], {}]
        z["ZoneBC"][2]["both"][2]["InwardNormalList"] = [
            "IndexArray_t",
            np.ones((2, 3)),
            {},
        ]
        z["Motion"] = [
            "ArbitraryGridMotion_t",
            None,
            {"v": ["DataArray_t", np.ones(12), {}]},
        ]

    cgns_files.save(tmp_path / "a.cgns", damaged(change))
    mesh = io.read(tmp_path / "a.cgns")
    assert mesh.extras["unread"] == tuple(
        f"{what} of zone 'Zone 1'"
        for what in (
            "the parents of section 'Out'",
            "solution 'Later' (Vertex)",
            "'InwardNormalList' of boundary condition 'both'",
            "'Motion'",
        )
    )
    assert len(io.write(mesh, tmp_path / "b.cgns", drop=True)) == 4


def with_values(kind):
    """Faces in an order of their own, with values of one and of three numbers each."""
    order = [15, 13, 16, 14]
    each = np.array([50.0, 30, 60, 40])
    listed = node("PointList", "IndexArray_t", [[n] for n in order])
    vectors = np.stack([each, each + 1, each + 2], 1)
    data = node("DirichletData", "BCData_t", None, node("V", "DataArray_t", each))
    beside = {
        "dataset": node("inflow", "BCDataSet_t", "BCInflow", data),
        "own": node("own", "UserDefinedData_t", None, node("V", "DataArray_t", each)),
        "vectors": node(
            "own", "UserDefinedData_t", None, node("V", "DataArray_t", vectors)
        ),
    }
    if kind in beside:
        bc = node("in", "BC_t", "BCInflow", listed, at("FaceCenter"), beside[kind])
        more = [node("ZoneBC", "ZoneBC_t", None, bc)]
    elif kind == "region":
        values = node("V", "DataArray_t", each)
        more = [node("r", "ZoneSubRegion_t", [2], listed, at("FaceCenter"), values)]
    else:
        bc = node("in", "BC_t", "BCInflow", listed, at("FaceCenter"))
        name = node("BCRegionName", "Descriptor_t", "in")
        values = node("V", "DataArray_t", each)
        more = [
            node("ZoneBC", "ZoneBC_t", None, bc),
            node("r", "ZoneSubRegion_t", [2], name, values),
        ]
    cells = section("Tets", 10, 1, TETS)
    skin = section("Skin", 5, 13, SKIN)
    body = zone("Z", XYZ, len(TETS), cells, skin, *more)
    return node("B", "CGNSBase_t", np.array([3, 3], np.int32), body)


def values_by_face(path):
    """The numbers that stand beside each face of the list, by the places of its nodes."""
    with h5py.File(path) as file:
        names = []
        file.visit(names.append)
        zone = file["B/Z"]
        xyz = np.stack([zone[f"GridCoordinates/Coordinate{a}/ data"][()] for a in "XYZ"], 1)
        rows = zone["Skin/ElementConnectivity/ data"][()].reshape(-1, 3)
        first = zone["Skin/ElementRange/ data"][0]
        place = next(n for n in names if n.endswith("/PointList"))
        faces = file[place][" data"][()].ravel()
        (values,) = (file[n][" data"][()] for n in names if n.endswith("/V"))
    nodes = [frozenset(map(tuple, xyz[row - 1])) for row in rows[faces - first]]
    return dict(zip(nodes, np.reshape(values, (len(nodes), -1)).tolist(), strict=True))


@pytest.mark.parametrize("kind", ["dataset", "own", "vectors", "region", "by name"])
def test_values_of_a_condition_stay_on_their_faces(kind, tmp_path):
    """The faces got another order, and the values stayed where they were."""
    cgns_files.save(tmp_path / "a.cgns", with_values(kind))
    mesh = io.read(tmp_path / "a.cgns")
    assert "unread" not in mesh.extras
    chance = np.random.default_rng(2)
    orders = {n: chance.permutation(mesh.size(n)) for n in ("nodes", "cells", "triangle")}
    turned = {n: Ordering.from_new_to_old(order) for n, order in orders.items()}
    assert io.write(mesh.renumber(turned), tmp_path / "b.cgns") == []
    old = values_by_face(tmp_path / "a.cgns")
    assert len(old) == 4
    assert values_by_face(tmp_path / "b.cgns") == old
    with h5py.File(tmp_path / "b.cgns") as file:
        assert (file["B/Z/Skin/ElementConnectivity/ data"].size) == 3 * len(SKIN)


def test_values_of_a_condition_that_has_other_faces_now_are_lost_by_name(tmp_path):
    cgns_files.save(tmp_path / "a.cgns", with_values("dataset"))
    mesh = io.read(tmp_path / "a.cgns")
    tag = mesh.tag("cgns:bc", "triangle")
    ids = tag.first_ids()
    ids[4] = ids.max()
    other = Tag.from_ids("cgns:bc", "triangle", ids, tag.names)
    kept = tuple(t for t in mesh.tags if t is not tag)
    changed = replace(mesh, tags=(*kept, other))
    with pytest.raises(
        MeshprepError, match="the values of 'in', whose elements are others"
    ):
        io.write(changed, tmp_path / "b.cgns")
    io.write(changed, tmp_path / "b.cgns", drop=True)
    with h5py.File(tmp_path / "b.cgns") as file:
        assert "inflow" not in file["B/Z/ZoneBC/in"]


def test_what_may_go_by_elements_is_named_in_a_small_mesh_too(tmp_path):
    def change(z):
        own = {"x": ["DataArray_t", np.ones(12), {}]}
        z["Grid: fluid"][2]["own"] = ["UserDefinedData_t", None, own]
        z["mine"] = ["UserDefinedData_t", None, {"x": ["DataArray_t", np.ones(2), {}]}]
        z["all"] = ["UserDefinedData_t", None, {"x": ["DataArray_t", np.ones(1), {}]}]

    cgns_files.save(tmp_path / "a.cgns", damaged(change))
    assert io.read(tmp_path / "a.cgns").extras["unread"] == (
        "'own' of section 'Grid: fluid' of zone 'Zone 1'",
        "'mine' of zone 'Zone 1'",
    )


def test_what_zones_say_otherwise_is_named(tmp_path):
    base = two_zones()
    zones = []
    for one, speed in zip(base[3], (1.0, 2.0), strict=True):
        own = node(
            "mine", "UserDefinedData_t", None, node("u", "DataArray_t", np.full(1, speed))
        )
        zones.append((*one[:3], (*one[3], own)))
    cgns_files.save(tmp_path / "a.cgns", (*base[:3], tuple(zones)))
    told = "'mine/u', of which another zone has another of zone 'there'"
    assert told in io.read(tmp_path / "a.cgns").extras["unread"]


@pytest.mark.slow
def test_damaged_numbers_give_an_error_or_a_mesh(tmp_path):
    chance = random.Random(3)
    for make in (tree, polyhedra, two_zones):
        cgns_files.save(tmp_path / "sound.cgns", make())
        for _ in range(60):
            path = shutil.copy(tmp_path / "sound.cgns", tmp_path / "a.cgns")
            with h5py.File(path, "r+") as file:
                names = []
                file.visit(names.append)
                name = chance.choice([n for n in names if n.endswith(" data")])
                data = file[name]
                values = data[...]
                change = chance.choice(["one", "short", "gone"])
                if change == "one":
                    i, new = (
                        chance.randrange(values.size),
                        chance.choice([-1, 0, 1, 99, 2**31 - 1]),
                    )
                    values.flat[i] = new if data.dtype.itemsize > 1 else new % 100
                    data[...] = values
                else:
                    kept = values.ravel()[: chance.randrange(values.size)]
                    del file[name]
                    if change == "short":
                        file[name] = kept
            read_damaged(path)


@settings(max_examples=effort.examples(25), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_any_mesh_comes_back_as_it_was_written(seed, tmp_path_factory):
    random_meshes = pytest.importorskip("random_meshes")
    mesh = random_meshes.random_mesh(np.random.default_rng(seed))
    path = tmp_path_factory.mktemp("any") / "a.cgns"
    if not mesh.cell_sets:
        with pytest.raises(MeshprepError, match="there are no cells to write"):
            io.write(mesh, path)
        return
    io.write(mesh, path, drop=True)
    back = io.read(path, dimension=0)
    assert back.content_hash() == mesh.content_hash()
    assert difference(io.FORMATS["cgns"].reduce(mesh), back) is None
    again = io.read(path, dimension=0)
    assert io.write(again, path, overwrite=True) == []
    assert difference(back, io.read(path, dimension=0)) is None


@pytest.mark.skipif(shutil.which("cgnscheck") is None, reason="cgnscheck is not here")
def test_cgns_own_program_finds_nothing_wrong(tmp_path):
    path = tmp_path / "a.cgns"
    made = {"tree": tree(), "polyhedra": polyhedra(), "zones": two_zones()}
    for name, one in made.items():
        cgns_files.save(path, one)
        io.write(io.read(path), tmp_path / f"{name}.cgns", drop=True)
    for name, mesh in plain_meshes().items():
        io.write(mesh, tmp_path / f"{name}.cgns", drop=True, overwrite=True)
    for name in [*made, *plain_meshes()]:
        found = subprocess.run(
            ["cgnscheck", "-w0", str(tmp_path / f"{name}.cgns")],
            capture_output=True,
            text=True,
        )
        assert "ERROR" not in found.stdout + found.stderr, f"{name}: {found.stdout}"
        assert found.returncode == 0


@pytest.mark.skipif(
    shutil.which("aflr3_to_cgns") is None, reason="aflr3_to_cgns is not here"
)
def test_a_file_that_cgns_own_programs_make(tmp_path):
    """Two cubes, whose ends are boundaries of their own, by the library itself."""
    nodes = "".join(f"{x} {y} {z}\n" for x, y, z in XYZ.tolist())
    ends = [[1, 3, 4, 2], [9, 10, 12, 11]]
    rows = [
        " ".join(map(str, row)) + "\n"
        for row in (*ends, ["1"], ["2"], corners(0), corners(1))
    ]
    (tmp_path / "a.ugrid").write_text(f"12 0 2 0 0 0 2\n{nodes}{''.join(rows)}")
    command = ["aflr3_to_cgns", "-f", "a.ugrid", "a.cgns"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    mesh = io.read(tmp_path / "a.cgns")
    assert (mesh.cell_map("cells").table + 1).tolist() == [corners(0), corners(1)]
    assert (mesh.cell_map("quad").table + 1).tolist() == ends
    assert mesh.coordinates.tolist() == XYZ.tolist()
    assert dict(mesh.tag("cgns:bc", "quad").names) == {
        1: "UserDefined 1",
        2: "UserDefined 2",
    }
    assert io.write(mesh, tmp_path / "b.cgns") == []
