"""Medit's files: what mmg says of vertices, edges and triangles by number moves with them."""

import numpy as np
import pytest
from texts import read, refused

from meshprep import io
from meshprep.mesh import Tag
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.ordering import Ordering

MMG = """MeshVersionFormatted 2

Dimension 3

Vertices
5
0 0 0 1
1 0 0 2
0 1 0 3
0 0 1 4
1 1 1 5

Edges
3
1 2 10
2 3 11
3 4 12

Triangles
2
1 2 3 20
2 3 4 21

Tetrahedra
2
1 2 3 4 30
2 3 4 5 31

Corners
2
1
5

RequiredVertices
1
3

Ridges
2
1
3

RequiredEdges
1
2

RequiredTriangles
1
2

RequiredTetrahedra
1
2

Normals
3
1 0 0
0 1 0
0 0 1

NormalAtVertices
2
5 3
2 1

Tangents
1
0.5 0.25 0

TangentAtVertices
1
4 1

End
"""
LISTS = {
    "Corners": [(0.0, 0.0, 0.0), (1.0, 1.0, 1.0)],
    "RequiredVertices": [(0.0, 1.0, 0.0)],
    "Ridges": [10, 12],
    "RequiredEdges": [11],
    "RequiredTriangles": [21],
    "RequiredTetrahedra": [31],
}


def told(mesh):
    """Lists and vectors by place of the vertices, and by group of the cells."""
    points = [tuple(p) for p in mesh.coordinates.tolist()]
    lists = {}
    for i in mesh.lists:
        if i.set == "nodes":
            lists[i.name] = sorted(points[n] for n in i.index)
        else:
            groups = mesh.tag("medit:ref", i.set).first_ids()
            lists[i.name] = sorted(groups[i.index].tolist())
    vectors = {}
    for name in ("medit:normal", "medit:tangent"):
        values = mesh.dat(name, "nodes").values
        rows = np.flatnonzero(~np.isnan(values[:, 0]))
        vectors[name] = {points[r]: values[r].tolist() for r in rows}
    return lists, vectors


@pytest.mark.parametrize("ending", [".mesh", ".meshb"])
def test_what_is_required_follows_its_vertices_and_edges(ending, tmp_path):
    mesh = read(MMG, tmp_path / "a.mesh")
    orders = {
        "nodes": Ordering.from_new_to_old(np.array([4, 2, 0, 3, 1])),
        "line": Ordering.from_new_to_old(np.array([2, 0, 1])),
        "triangle": Ordering.from_new_to_old(np.array([1, 0])),
        "cells": Ordering.from_new_to_old(np.array([1, 0])),
    }
    assert io.write(mesh.renumber(orders), tmp_path / f"b{ending}") == []
    lists, vectors = told(io.read(tmp_path / f"b{ending}"))
    assert lists == LISTS
    assert vectors["medit:normal"] == {(1, 1, 1): [0, 0, 1], (1, 0, 0): [1, 0, 0]}
    assert vectors["medit:tangent"] == {(0, 0, 1): [0.5, 0.25, 0]}


def test_sections_of_a_text_are_written_as_mmg_reads_them(tmp_path):
    io.write(read(MMG, tmp_path / "a.mesh"), tmp_path / "b.mesh")
    text = (tmp_path / "b.mesh").read_text()
    for section in (
        "Corners\n2\n1\n5\n",
        "Ridges\n2\n1\n3\n",
        "RequiredEdges\n1\n2\n",
        "NormalAtVertices\n2\n2 1\n5 2\n",
        "Edges\n3\n1 2 10\n2 3 11\n3 4 12\n",
        "Vertices\n5\n0 0 0 1\n1 0 0 2\n",
    ):
        assert f"\n{section}" in text
    assert text.endswith("\nEnd\n")


def test_a_binary_file_is_laid_out_as_libmeshb_wants(tmp_path):
    """Each keyword says where the next one begins, the last one 0."""
    io.write(read(MMG, tmp_path / "a.mesh"), tmp_path / "b.meshb")
    data = (tmp_path / "b.meshb").read_bytes()
    assert np.frombuffer(data, "<i4", 2).tolist() == [1, 2]
    at, keywords = 8, {}
    while at:
        key, after, count = np.frombuffer(data[at:].ljust(12, b"\0"), "<i4", 3).tolist()
        keywords[key] = at, count
        at = after
    assert list(keywords)[:5] == [3, 4, 5, 6, 8]
    assert list(keywords)[-1] == 54
    at, count = keywords[14]
    assert np.frombuffer(data, "<i4", count, at + 12).tolist() == [1, 3]


def test_plane_meshes_have_plane_normals(tmp_path):
    text = "MeshVersionFormatted 2\nDimension\n2\nVertices\n3\n0 0 1\n1 0 1\n0 1 1\nTriangles\n"
    text += "1\n1 2 3 7\nNormals\n1\n0.6 0.8\nNormalAtVertices\n1\n2 1\nEnd\n"
    mesh = read(text, tmp_path / "a.mesh")
    assert io.write(mesh, tmp_path / "b.meshb") == []
    found = io.read(tmp_path / "b.meshb").dat("medit:normal", "nodes").values
    np.testing.assert_array_equal(found, [[np.nan] * 2, [0.6, 0.8], [np.nan] * 2])


def test_what_refers_by_number_and_is_not_moved_is_named(tmp_path):
    more = "NormalAtTriangleVertices\n1\n1 2 1\nSubDomainFromMesh\n1\n3 1 1 0\nEnd\n"
    mesh = read(MMG.replace("End\n", more), tmp_path / "a.mesh")
    assert mesh.extras["unread"] == ("NormalAtTriangleVertices", "SubDomainFromMesh")
    twice = MMG.replace("NormalAtVertices\n2\n5 3\n2 1", "NormalAtVertices\n2\n5 3\n5 1")
    assert read(twice, tmp_path / "a.mesh").extras["unread"] == ("NormalAtVertices",)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "Corners\n2\n1\n5",
            "Corners\n2\n1\n6",
            "section Corners names vertex 6, but there are 5",
        ),
        (
            "Ridges\n2\n1\n3",
            "Ridges\n2\n0\n3",
            "section Ridges names cell 0, but there are 3",
        ),
        (
            "Ridges\n2\n1\n3",
            "Ridges\n2\n1",
            "declares 2 Ridges of 1 numbers each, but has 1",
        ),
        ("\n5 3\n2 1", "\n5 4\n2 1", "section NormalAtVertices names vector 4"),
        (
            "\n1 2 3 20",
            "\n1 2 3.5 20",
            "section Triangles holds a number that is not whole",
        ),
        ("\n1 2 3 20", "\n1 2 x 20", "section Triangles holds something that is no number"),
    ],
)
def test_numbers_that_name_nothing_are_refused(old, new, message, tmp_path):
    refused(MMG.replace(old, new), tmp_path / "a.mesh", message)


@pytest.mark.parametrize("ending", [".mesh", ".meshb"])
def test_groups_of_more_than_32_bits_are_kept(ending, tmp_path):
    mesh = read(MMG, tmp_path / "a.mesh")
    tag = Tag.from_ids("medit:ref", "cells", np.array([3_000_000_000, -5]))
    others = [t for t in mesh.tags if t.set != "cells"]
    made = type(mesh)(
        mesh.sets.values(), mesh.maps.values(), mesh.dats, [*others, tag], mesh.lists
    )
    assert io.write(made, tmp_path / f"b{ending}") == []
    back = io.read(tmp_path / f"b{ending}").tag("medit:ref", "cells")
    assert back.first_ids().tolist() == [3_000_000_000, -5]


def test_lists_of_other_names_are_not_written_to_medit(tmp_path):
    mesh = read(MMG.replace("Corners", "RequiredVertices2"), tmp_path / "a.mesh")
    assert mesh.extras["unread"] == ("RequiredVertices2",)
    text = "*NODE\n1, 0., 0.\n2, 1., 0.\n3, 0., 1.\n*ELEMENT, TYPE=CPS3\n1, 1, 2, 3\n"
    sets = read(text + "*NSET, NSET=left\n1, 3\n", tmp_path / "a.inp")
    with pytest.raises(MeshprepError, match="the list 'left' of 'nodes'"):
        io.write(sets, tmp_path / "b.mesh")


def test_other_files_of_this_ending_are_told(tmp_path):
    mfem = "MFEM mesh v1.0\n\ndimension\n2\n\nelements\n1\n1 2 0 1 2\n\nvertices\n3\n2\n"
    refused(mfem, tmp_path / "a.mesh", "is a mesh of MFEM, not of Medit: save it as .vtk")
    hermes = "vertices = [\n[0, 0],\n[1, 0],\n[0, 1]\n]\nelements = [\n[0, 1, 2, 0]\n]\n"
    refused(
        hermes, tmp_path / "b.mesh", "no MeshVersionFormatted: this is no mesh of Medit"
    )
