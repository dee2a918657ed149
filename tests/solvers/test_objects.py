"""Meshes of meshio and scikit-fem: in, renumbered, and out."""

import numpy as np
import pytest

import meshprep
from meshprep import io
from meshprep.io.compare import difference
from meshprep.io.generate import generate
from meshprep_runtime import MeshprepError, Ordering


def shuffled(mesh, seed=0):
    """The mesh in a random order, and that order."""
    random = np.random.default_rng(seed)
    order = {
        s.name: Ordering.from_new_to_old(random.permutation(s.size))
        for s in mesh.sets.values()
        if not s.parts
    }
    return mesh.renumber(order), order


GMSH = """$MeshFormat
4.1 0 8
$EndMeshFormat
$PhysicalNames
2
1 3 "wall"
2 4 "all"
$EndPhysicalNames
$Entities
0 1 1 0
17 0 0 0 1 0 0 1 3 2 21 -22
5 0 0 0 1 1 0 1 4 2 17 18
$EndEntities
$Nodes
1 3 1 3
2 5 0 3
1
2
3
0 0 0
1 0 0
0 1 0
$EndNodes
$Elements
2 2 1 2
1 17 1 1
1 1 2
2 5 2 1
2 1 2 3
$EndElements
"""


class TestMeshio:
    def build(self):
        meshio = pytest.importorskip("meshio")
        points = np.array([[x, y, 0.0] for y in range(3) for x in range(3)])
        blocks = [
            ("quad", np.array([[0, 1, 4, 3]])),
            ("triangle", np.array([[1, 2, 5], [1, 5, 4]])),
            ("quad", np.array([[3, 4, 7, 6]])),
            ("line", np.array([[0, 1], [1, 2]])),
        ]
        return meshio.Mesh(
            points,
            blocks,
            point_data={"t": np.arange(9.0), "v": np.arange(18.0).reshape(9, 2)},
            cell_data={
                "q": [
                    np.array([1.0]),
                    np.array([2.0, 3.0]),
                    np.array([4.0]),
                    np.array([5.0, 6.0]),
                ],
                "gmsh:physical": [np.array(a) for a in ([1], [1, 2], [2], [7, 8])],
            },
            field_data={"wall": np.array([7, 1])},
            point_sets={"corner": np.array([0, 8])},
        )

    def test_the_mesh_has_arrays_of_its_own(self):
        source = self.build()
        source.cells[3].data = source.cells[3].data.astype(np.int32)
        mesh, before = meshprep.from_meshio(source), meshprep.from_meshio(self.build())
        arrays = (
            *source.point_data.values(),
            *(c.data for c in source.cells),
            source.points,
        )
        for array in (
            *arrays,
            *(v for blocks in source.cell_data.values() for v in blocks),
        ):
            array[:] = 0
        assert difference(before, mesh) is None

    def test_what_meshio_reads_from_gmsh(self, tmp_path):
        """Among its sets of cells are numbers of entities, which were taken for cells."""
        meshio = pytest.importorskip("meshio")
        (tmp_path / "a.msh").write_text(GMSH)
        source = meshio.read(tmp_path / "a.msh")
        assert "gmsh:bounding_entities" in source.cell_sets
        mesh = meshprep.from_meshio(source)
        lists = {(i.name, i.set): i.index.tolist() for i in mesh.lists}
        assert lists == {("wall", "line"): [0], ("all", "cells"): [0]}
        assert "unread" not in mesh.extras
        assert io.losses(mesh, io.FORMATS["medit"]) == [
            "the names of the groups 'physical' on 'line'",
            *(f"the list '{name}' of '{s}'" for name, s in lists),
        ]
        source.gmsh_periodic = [[1, (1, 2), None, np.array([[0, 1]])]]
        assert meshprep.from_meshio(source).extras["unread"] == ("periodic pairs of nodes",)

    def test_every_value_follows_its_element(self):
        source = self.build()
        before = {k: v.copy() for k, v in source.point_data.items()}
        mesh = meshprep.from_meshio(source)
        new, order = shuffled(mesh)
        made = meshprep.to_meshio(new)
        nodes = order["nodes"]
        assert np.array_equal(made.points, source.points[nodes.new_to_old])
        assert np.array_equal(
            made.point_data["t"], source.point_data["t"][nodes.new_to_old]
        )
        assert made.point_sets["corner"].tolist() == nodes.old_to_new[[0, 8]].tolist()
        assert made.field_data["wall"].tolist() == [7, 1]
        # The blocks of quads are one: cells by their old nodes and their values.
        found = {}
        for block, q, group in zip(
            made.cells, made.cell_data["q"], made.cell_data["gmsh:physical"], strict=True
        ):
            for cell, value, g in zip(block.data, q, group, strict=True):
                found[tuple(nodes.new_to_old[cell].tolist())] = (float(value), int(g))
        assert found == {
            (0, 1, 4, 3): (1.0, 1),
            (3, 4, 7, 6): (4.0, 2),
            (1, 2, 5): (2.0, 1),
            (1, 5, 4): (3.0, 2),
            (0, 1): (5.0, 7),
            (1, 2): (6.0, 8),
        }
        assert all(np.array_equal(source.point_data[k], v) for k, v in before.items())

    def test_out_and_in_again_is_the_same(self):
        mesh = meshprep.from_meshio(self.build())
        assert difference(mesh, meshprep.from_meshio(meshprep.to_meshio(mesh))) is None

    def test_what_has_no_place_is_named(self):
        mesh = meshprep.from_meshio(self.build())
        pairs = meshprep.IndexList("pairs", "nodes", np.array([[0, 1]]))
        more = meshprep.Mesh(
            mesh.sets.values(), mesh.maps.values(), mesh.dats, mesh.tags, [pairs]
        )
        with pytest.raises(MeshprepError, match="no place for the list 'pairs'"):
            meshprep.to_meshio(more)
        assert len(meshprep.to_meshio(more, drop=True).points) == 9

    def test_what_meshprep_cannot_hold_is_refused(self):
        meshio = pytest.importorskip("meshio")
        twice = meshio.Mesh(np.eye(3), [("triangle", np.array([[0, 1, 2], [2, 1, 0]]))])
        with pytest.raises(MeshprepError, match="have the same nodes"):
            meshprep.from_meshio(twice)


class TestScikitFem:
    KINDS = ("MeshLine", "MeshTri", "MeshQuad", "MeshTet", "MeshHex", "MeshWedge1")

    def build(self, kind):
        skfem = pytest.importorskip("skfem")
        mesh = getattr(skfem, kind)()
        if kind != "MeshWedge1":
            mesh = mesh.refined(2)
        low = mesh.facets_satisfying(lambda x: np.isclose(x[0], 0))
        made = mesh.with_boundaries({"left": low})
        return made.with_subdomains({"half": lambda x: x[0] < 0.5})

    @pytest.mark.parametrize("kind", KINDS)
    def test_boundaries_subdomains_and_cells(self, kind):
        old = self.build(kind)
        if kind == "MeshTri":
            around = old.facets_around(old.subdomains["half"])
            old = old.with_boundaries({"around": around})
        mesh = meshprep.from_skfem(old)
        renumbered, order = shuffled(mesh)
        new = meshprep.to_skfem(renumbered)
        assert type(new) is type(old)
        assert new.is_valid()
        nodes, cells = order["nodes"], order["cells"]
        assert np.array_equal(new.p, old.p[:, nodes.new_to_old])
        back = nodes.new_to_old[new.t]
        expected = old.t[:, cells.new_to_old]
        assert np.array_equal(np.sort(back, 0), np.sort(expected, 0))
        if not old.sort_t:
            assert np.array_equal(back, expected)
        assert (
            cells.new_to_old[new.subdomains["half"]].tolist()
            == old.subdomains["half"].tolist()
        )
        for name in old.boundaries:
            facets = [
                {
                    frozenset(f)
                    for f in number(m.facets[:, np.asarray(m.boundaries[name])].T).tolist()
                }
                for m, number in ((old, lambda t: t), (new, lambda t: nodes.new_to_old[t]))
            ]
            assert facets[0] == facets[1]

    def test_oriented_boundaries_keep_their_side(self):
        old = self.build("MeshTri")
        old = old.with_boundaries({"around": old.facets_around(old.subdomains["half"])})
        renumbered, order = shuffled(meshprep.from_skfem(old), 4)
        new = meshprep.to_skfem(renumbered)
        sides = [
            sorted(
                number(
                    m.f2t[m.boundaries["around"].ori, np.asarray(m.boundaries["around"])]
                )
            )
            for m, number in ((old, list), (new, lambda c: order["cells"].new_to_old[c]))
        ]
        assert sides[0] == sides[1]
        assert set(sides[0]) <= set(old.subdomains["half"])

    @pytest.mark.parametrize("kind", ["MeshTri", "MeshHex"])
    def test_a_solution_is_the_same_after_restoring(self, kind):
        skfem = pytest.importorskip("skfem")
        from skfem.models.poisson import laplace, unit_load

        def solve(mesh):
            element = {"MeshTri1": skfem.ElementTriP1, "MeshHex1": skfem.ElementHex1}
            basis = skfem.Basis(mesh, element[type(mesh).__name__]())
            fixed = basis.get_dofs("left").all()
            return skfem.solve(
                *skfem.condense(laplace.assemble(basis), unit_load.assemble(basis), D=fixed)
            )

        old = self.build(kind)
        done = meshprep.prepare(meshprep.from_skfem(old), ["cells->nodes"])
        new = meshprep.to_skfem(done.mesh)
        found = done.plan.ordering["nodes"].restore(solve(new))
        assert np.allclose(found, solve(old), atol=1e-13)

    def test_a_mesh_goes_to_a_file_or_says_what_cannot(self, tmp_path):
        skfem = pytest.importorskip("skfem")
        meshprep.write(meshprep.from_skfem(skfem.MeshQuad().refined(1)), tmp_path / "a.vtu")
        assert meshprep.read(tmp_path / "a.vtu").size("cells") == 4
        with pytest.raises(
            MeshprepError, match="written without the list 'left' of 'nodes'"
        ):
            meshprep.write(meshprep.from_skfem(self.build("MeshQuad")), tmp_path / "b.vtu")

    def test_a_mesh_from_a_file(self, tmp_path):
        pytest.importorskip("skfem")
        meshprep.write(generate("box", nx=2, ny=3, nz=2), tmp_path / "box.msh")
        mesh = meshprep.to_skfem(meshprep.read(tmp_path / "box.msh"))
        assert mesh.is_valid()
        assert mesh.t.shape == (8, 12)
        names = {
            n for t in generate("box", nx=2, ny=3, nz=2).tags for n in t.names.values()
        }
        assert set(mesh.boundaries) == names - {"domain"}
        assert {n: rows.size for n, rows in mesh.subdomains.items()} == {"domain": 12}
        together = np.sort(np.concatenate(list(mesh.boundaries.values())))
        assert np.array_equal(together, mesh.boundary_facets())

    def test_what_is_not_of_first_order_is_refused(self):
        skfem = pytest.importorskip("skfem")
        with pytest.raises(MeshprepError, match="class MeshTri2 is not supported"):
            meshprep.from_skfem(skfem.MeshTri2())
        with pytest.raises(MeshprepError, match="not several types"):
            meshprep.to_skfem(generate("mixed2d", nx=2, ny=2))
