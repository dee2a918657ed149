"""Files of Gmsh's own meshes, reordered: Gmsh hands the cells out in the order of the plan."""

from contextlib import contextmanager

import meshio
import numpy as np
import other_readers
import pytest
from gmsh_meshes import KINDS

import meshprep
from meshprep import io
from meshprep.io.gmsh.layout import ENTITY_DIM, ENTITY_TAG
from meshprep.io.gmsh.types import NUMBER_OF, TO_FILE
from meshprep.io.sliced import scan
from meshprep.mesh.assemble import Block, assemble

every = pytest.mark.parametrize(("version", "binary"), KINDS)


@contextmanager
def gmsh_model():
    gmsh = other_readers.package("gmsh")
    gmsh.initialize()
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        yield gmsh
    finally:
        gmsh.finalize()


def boxes(gmsh):
    """Two volumes side by side, with a group on each of them and on some of what bounds them."""
    occ = gmsh.model.occ
    occ.fragment([(3, occ.addBox(0, 0, 0, 1, 1, 1))], [(3, occ.addBox(1, 0, 0, 1, 1, 1))])
    occ.synchronize()
    gmsh.model.addPhysicalGroup(3, [2], 4, "right")
    gmsh.model.addPhysicalGroup(3, [1], 9, "left")
    gmsh.model.addPhysicalGroup(2, [3, 1], 2, "wall")
    gmsh.model.addPhysicalGroup(1, [5], 7, "edge")
    gmsh.model.addPhysicalGroup(0, [1], 1, "corner")
    return 3


def plates(gmsh):
    """Three rectangles in a row; the one in the middle has quadrilaterals."""
    occ = gmsh.model.occ
    for x in range(3):
        occ.addRectangle(x, 0, 0, 1, 1)
    occ.fragment([(2, 1)], [(2, 2), (2, 3)])
    occ.synchronize()
    gmsh.model.mesh.setRecombine(2, 2)
    for tag in (1, 2, 3):
        gmsh.model.addPhysicalGroup(2, [tag], name=f"plate {tag}")
    gmsh.model.addPhysicalGroup(1, [1, 2], name="side")
    return 2


MODELS = {"boxes": (boxes, 0.4, 1), "plates": (plates, 0.15, 1), "curved": (boxes, 0.6, 2)}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Each model in every version and mode, as Gmsh saves it."""
    folder = tmp_path_factory.mktemp("models")
    for name, (make, size, order) in MODELS.items():
        with gmsh_model() as gmsh:
            dim = make(gmsh)
            gmsh.option.setNumber("Mesh.MeshSizeMax", size)
            gmsh.model.mesh.generate(dim)
            gmsh.model.mesh.setOrder(order)
            gmsh.option.setNumber("Mesh.SaveAll", 1)
            for version, binary in KINDS:
                gmsh.option.setNumber("Mesh.MshFileVersion", float(version))
                gmsh.option.setNumber("Mesh.Binary", int(binary))
                gmsh.write(str(folder / f"{name}-{version}-{int(binary)}.msh"))
    return folder


def blocks_of(path):
    """How many blocks of nodes and of elements a text file of MSH 4.1 has."""
    text = path.read_text()
    return [
        int(text.partition(f"${name}\n")[2].split()[0]) for name in ("Nodes", "Elements")
    ]


def reordered(source, folder, loop):
    prepared = meshprep.prepare(meshprep.read(source), [loop], block_size=32)
    path = folder / "new.msh"
    meshprep.write(prepared.mesh, path, overwrite=True)
    return prepared, path


def groups_in_gmsh(gmsh, path):
    """Dimension, number, name and entities of each group, as Gmsh sees them."""
    gmsh.clear()
    gmsh.open(str(path))
    model, found = gmsh.model, []
    for dim, number in model.getPhysicalGroups():
        entities = model.getEntitiesForPhysicalGroup(dim, number).tolist()
        found.append((dim, number, model.getPhysicalName(dim, number), sorted(entities)))
    return found


@every
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("loop", ["cells->nodes", "facets->cells"])
def test_gmsh_hands_cells_out_in_the_order_of_the_plan(
    models, tmp_path, version, binary, name, loop
):
    if name == "plates":
        loop = loop.replace("cells->nodes", "triangle->nodes").replace("facets", "edges")
    source = models / f"{name}-{version}-{int(binary)}.msh"
    prepared, path = reordered(source, tmp_path, loop.replace("facets", "faces"))
    mesh, n = prepared.mesh, 0
    with gmsh_model() as gmsh:
        before = groups_in_gmsh(gmsh, source)
        # what has no group in the input has none in the output
        assert groups_in_gmsh(gmsh, path) == before
        assert version == "2.2" or len(before) >= 4
        for s in mesh.cell_sets:
            tags, nodes = gmsh.model.mesh.getElementsByType(NUMBER_OF[s.cell_type])
            columns = TO_FILE.get(s.cell_type, slice(None))
            table = mesh.cell_map(s.name).table[:, columns]
            np.testing.assert_array_equal(nodes.reshape(table.shape), table + 1)
            np.testing.assert_array_equal(tags, np.arange(n + 1, n + s.size + 1))
            n += s.size
        tags, points, _ = gmsh.model.mesh.getNodes()
        places = points.reshape(-1, 3)[np.argsort(tags)]
        np.testing.assert_allclose(places, mesh.coordinates, rtol=0, atol=1e-15)
    assert prepared.plan.mesh_hash == io.read(path).content_hash()
    if (version, binary) == ("4.1", False):
        assert blocks_of(path) == blocks_of(source)


def test_a_file_that_nothing_moved_in_is_nearly_the_text_of_gmsh(models, tmp_path):
    """Numbers may have a digit less where that reads back the same."""
    for name in ("boxes", "plates"):
        source, again = models / f"{name}-4.1-0.msh", tmp_path / "again.msh"
        io.write(io.read(source), again, overwrite=True)
        ours, theirs = again.read_text().split("\n"), source.read_text().split("\n")
        if name == "plates":
            # a surface with both types stands type by type; so do the numbers of cells
            ours, theirs = sorted(ours), sorted(theirs)
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert one == other or list(map(float, one.split())) == pytest.approx(
                list(map(float, other.split())), rel=0, abs=1e-15
            )


class Lines:
    """A text file of MSH 4.1 read as solvers do: a record is a line, and nothing else is."""

    def __init__(self, path):
        self.lines = path.read_text().splitlines()
        self.at = 0

    def words(self, count=None):
        found = self.lines[self.at].split()
        self.at += 1
        assert found, f"line {self.at} is empty"
        assert count is None or len(found) == count, (
            f"line {self.at} has {len(found)} words"
        )
        return found

    def ints(self, count=None):
        return [int(word) for word in self.words(count)]

    def entity(self, dim, in_parts):
        """Number and groups; the line must end where its last list does."""
        words = self.words()
        at = 1
        if in_parts:
            at += 2
            at += 1 + int(words[at])
        box = [float(word) for word in words[at : at + (6 if dim else 3)]]
        at += len(box)
        groups = words[at + 1 : at + 1 + int(words[at])]
        at += 1 + int(words[at])
        if dim:
            at += 1 + int(words[at])
        assert at == len(words), f"line {self.at} has {len(words)} words, not {at}"
        return int(words[0]), [int(group) for group in groups]

    def entities(self, in_parts=False):
        if in_parts:
            self.ints(1)
            assert self.ints(1) == [0]
        counts = self.ints(4)
        found = {}
        for dim, count in enumerate(counts):
            for _ in range(count):
                tag, groups = self.entity(dim, in_parts)
                found[dim, tag] = groups
        return found

    def nodes(self):
        n_blocks, n, *_ = self.ints(4)
        found = {}
        for _ in range(n_blocks):
            _, _, flag, count = self.ints(4)
            assert flag == 0
            tags = [self.ints(1)[0] for _ in range(count)]
            for tag in tags:
                found[tag] = [float(word) for word in self.words(3)]
        assert len(found) == n
        return found

    def elements(self):
        n_blocks, n, *_ = self.ints(4)
        found = []
        for _ in range(n_blocks):
            dim, entity, kind, count = self.ints(4)
            found += [(dim, entity, kind, self.ints()) for _ in range(count)]
        assert len(found) == n
        return found

    def read(self):
        """All sections by name; those that solvers do not know are passed over."""
        readers = {
            "$Entities": self.entities,
            "$PartitionedEntities": lambda: self.entities(in_parts=True),
            "$Nodes": self.nodes,
            "$Elements": self.elements,
        }
        found = {}
        while self.at < len(self.lines):
            (name,) = self.words(1)
            end = name.replace("$", "$End")
            if name in readers:
                found[name] = readers[name]()
            else:
                self.at = self.lines.index(end, self.at)
            assert self.words(1) == [end]
        return found


def test_a_record_is_a_line(models, tmp_path):
    for name in MODELS:
        loop = "edges->cells" if name == "plates" else "cells->nodes"
        _, path = reordered(models / f"{name}-4.1-0.msh", tmp_path, loop)
        found, mesh = Lines(path).read(), io.read(path)
        before = Lines(models / f"{name}-4.1-0.msh").read()
        assert found["$Entities"] == before["$Entities"]
        points = [found["$Nodes"][i + 1] for i in range(mesh.size("nodes"))]
        np.testing.assert_array_equal(points, mesh.coordinates)
        numbers = [row[0] for _, _, _, row in found["$Elements"]]
        assert numbers == list(range(1, len(numbers) + 1))
        assert {(dim, tag) for dim, tag, _, _ in found["$Elements"]} <= set(
            found["$Entities"]
        )


def test_meshio_reads_what_it_read_before(tmp_path):
    """Every cell has a group; meshio takes nodes and blocks as they stand in the file."""
    with gmsh_model() as gmsh:
        dim = boxes(gmsh)
        gmsh.option.setNumber("Mesh.MeshSizeMax", 0.4)
        gmsh.model.mesh.generate(dim)
        gmsh.write(str(tmp_path / "old.msh"))
    prepared, path = reordered(tmp_path / "old.msh", tmp_path, "faces->cells")
    seen = meshio.read(path)
    assert len(seen.cells) == len(meshio.read(tmp_path / "old.msh").cells)
    tetra = np.concatenate([c.data for c in seen.cells if c.type == "tetra"])
    mesh = prepared.mesh
    np.testing.assert_array_equal(
        seen.points[tetra], mesh.coordinates[mesh.cell_map("cells").table]
    )
    groups = np.concatenate(
        [
            g
            for c, g in zip(seen.cells, seen.cell_data["gmsh:physical"], strict=True)
            if c.type == "tetra"
        ]
    )
    np.testing.assert_array_equal(groups, mesh.tag("physical", "cells").first_ids())


def test_nodes_go_by_their_numbers_after_gmsh_saved_the_file_again(models, tmp_path):
    prepared, path = reordered(models / "boxes-4.1-1.msh", tmp_path, "cells->nodes")
    with gmsh_model() as gmsh:
        gmsh.open(str(path))
        gmsh.option.setNumber("Mesh.SaveAll", 1)
        gmsh.write(str(tmp_path / "saved.msh"))
    saved = io.read(tmp_path / "saved.msh")
    np.testing.assert_allclose(saved.coordinates, prepared.mesh.coordinates, atol=1e-15)
    assert saved.content_hash() == prepared.plan.mesh_hash


def test_slices_have_the_nodes_by_their_numbers(models, tmp_path):
    prepared, path = reordered(models / "boxes-4.1-1.msh", tmp_path, "cells->nodes")
    found = scan(path)
    assert found.content_hash == prepared.plan.mesh_hash
    points, n = found.coordinates, prepared.mesh.size("nodes")
    for begin, end in ((0, n), (3, 40), (n - 1, n), (7, 7)):
        np.testing.assert_array_equal(
            points.read(begin, end), prepared.mesh.coordinates[begin:end]
        )


def test_numbers_that_a_mesh_brings_along_stay_where_they_are(tmp_path):
    """A permutation of 1, 2, ..., n too, which would otherwise be the order of the nodes."""
    points = np.random.default_rng(0).random((6, 3))
    cells = np.array([[0, 1, 2], [3, 4, 5], [1, 2, 3]])
    mesh, _ = assemble(
        points, [Block("triangle", cells)], node_label=np.array([3, 1, 2, 6, 5, 4])
    )
    io.write(mesh, tmp_path / "a.msh", version="4.1")
    found = io.read(tmp_path / "a.msh")
    np.testing.assert_array_equal(found.coordinates, points)
    assert found.dat("label", "nodes").values.tolist() == [3, 1, 2, 6, 5, 4]


@pytest.mark.parametrize("binary", [False, True])
def test_partitions_of_entities_are_kept(tmp_path, binary):
    with gmsh_model() as gmsh:
        dim = plates(gmsh)
        gmsh.option.setNumber("Mesh.MeshSizeMax", 0.2)
        gmsh.model.mesh.generate(dim)
        gmsh.model.mesh.partition(3)
        gmsh.option.setNumber("Mesh.Binary", int(binary))
        gmsh.write(str(tmp_path / "old.msh"))
    _, path = reordered(tmp_path / "old.msh", tmp_path, "edges->cells")
    seen = []
    for one in (tmp_path / "old.msh", path):
        with gmsh_model() as gmsh:
            gmsh.open(str(one))
            parts = {
                (dim, tag): (
                    gmsh.model.getParent(dim, tag),
                    sorted(gmsh.model.getPartitions(dim, tag)),
                    len(gmsh.model.mesh.getElements(dim, tag)[1]),
                )
                for dim, tag in gmsh.model.getEntities()
            }
            seen.append(parts)
            assert not gmsh.view.getTags().size
    assert seen[0] == seen[1]
    assert len({part for _, parts, _ in seen[1].values() for part in parts}) == 3
    if not binary:
        assert set(Lines(path).read()) >= {"$PartitionedEntities", "$Entities"}


def test_partitions_that_are_not_those_of_entities_become_values(tmp_path):
    with gmsh_model() as gmsh:
        dim = plates(gmsh)
        gmsh.option.setNumber("Mesh.MeshSizeMax", 0.4)
        gmsh.model.mesh.generate(dim)
        gmsh.model.mesh.partition(2)
        gmsh.write(str(tmp_path / "old.msh"))
    mesh = io.read(tmp_path / "old.msh")
    other = [t for t in mesh.tags if t.name != "partition"]
    own = np.arange(1, mesh.size("triangle") + 1)
    changed = meshprep.Mesh(
        mesh.sets.values(),
        mesh.maps.values(),
        mesh.dats,
        [*other, meshprep.Tag.from_ids("partition", "triangle", own)],
        mesh.lists,
        mesh.extras,
    )
    io.write(changed, tmp_path / "new.msh")
    assert "$PartitionedEntities" not in (tmp_path / "new.msh").read_text()
    found = io.read(tmp_path / "new.msh").tag("partition", "triangle")
    np.testing.assert_array_equal(found.first_ids(), own)


@every
def test_places_of_nodes_on_their_entities_are_kept(tmp_path, version, binary):
    with gmsh_model() as gmsh:
        dim = boxes(gmsh)
        gmsh.option.setNumber("Mesh.MeshSizeMax", 0.5)
        gmsh.model.mesh.generate(dim)
        for name, value in (("SaveAll", 1), ("SaveParametric", 1), ("Binary", int(binary))):
            gmsh.option.setNumber(f"Mesh.{name}", value)
        gmsh.option.setNumber("Mesh.MshFileVersion", float(version))
        gmsh.write(str(tmp_path / "old.msh"))
    prepared, path = reordered(tmp_path / "old.msh", tmp_path, "cells->nodes")
    places = []
    for one in (tmp_path / "old.msh", path):
        mesh = io.read(one)
        dim, tag = (mesh.dat(name, "nodes").values for name in (ENTITY_DIM, ENTITY_TAG))
        found = mesh.dat("gmsh:parametric", "nodes")
        assert np.isin(dim[found.index], (1, 2)).all()
        held = mesh.coordinates[found.index], dim[found.index, None], tag[found.index, None]
        rows = np.hstack([*held, found.values])
        places.append(rows[np.lexsort(rows.T)])
    np.testing.assert_array_equal(*places)
    assert places[1][:, :-1].any(axis=0).all()
    with gmsh_model() as gmsh:
        gmsh.open(str(path))
        tags, _, on_it = gmsh.model.mesh.getNodes(2, 1)
        assert on_it.size == 2 * tags.size > 0
    assert prepared.plan.mesh_hash == io.read(path).content_hash()


def test_names_of_msh_2_0_have_no_dimension(tmp_path):
    text = """$MeshFormat
2.0 0 8
$EndMeshFormat
$PhysicalNames
3
1 "My part"
2"ideal"
 9 nobody
$EndPhysicalNames
$Nodes
4
1 0 0 0
2 1 0 0
3 1 1 0
4 0 1 0
$EndNodes
$Elements
3
1 1 3 2 1 0 1 2
2 2 3 1 1 0 1 2 3
3 2 3 1 1 0 1 3 4
$EndElements
"""
    path = tmp_path / "old.msh"
    path.write_text(text)
    mesh = io.read(path)
    assert mesh.tag("physical", "cells").names == {1: "My part", 9: "nobody"}
    assert mesh.tag("physical", "line").names == {2: "ideal"}
    io.write(mesh, tmp_path / "new.msh")
    written = (tmp_path / "new.msh").read_text()
    assert '1 2 "ideal"\n2 1 "My part"\n2 9 "nobody"\n' in written


def test_cells_that_stand_apart_are_written_together_where_that_is_asked_for(tmp_path):
    """Two plates, whose triangles take turns in the mesh."""
    corners = np.array([[0, 1, 2], [3, 4, 5], [0, 2, 6], [3, 5, 7], [0, 6, 8], [3, 7, 9]])
    points = np.random.default_rng(0).random((10, 2))
    group = np.array([1, 2, 1, 2, 1, 2])
    tags = {"entity": group, "physical": group}
    mesh, _ = assemble(points, [Block("triangle", corners, tags=tags)])
    options = {"version": "4.1", "binary": False}
    apart, together = tmp_path / "apart.msh", tmp_path / "together.msh"
    io.write(mesh, apart, **options)
    io.write(mesh, together, grouped=True, **options)
    assert blocks_of(apart)[1] == 6
    assert blocks_of(together)[1] == 2
    tables = [io.read(path).map("cells->nodes").table for path in (apart, together)]
    assert np.array_equal(tables[0], corners)
    assert np.array_equal(tables[1], corners[[0, 2, 4, 1, 3, 5]])
