"""What other programs see in the files that meshprep writes: VTK and ParaView, Gmsh, meshio."""

from functools import cache

import numpy as np
import other_readers
import pytest
from io_meshes import plain_meshes

import meshprep
from meshprep import io
from meshprep.io.format.names import array_of_group
from meshprep.io.original_ids import with_original_ids
from meshprep.mesh import Dat, Mesh, Tag
from meshprep.mesh.assemble import Block, assemble
from meshprep.mesh.cells import shape_of

pytestmark = pytest.mark.usefixtures("read_here")

FIRST = (
    "triangles",
    "quads",
    "with border",
    "tets with skin",
    "mixed solid",
    "hexes with skin",
)
FIRST += ("wedges", "lines", "surface of triangles")
SECOND = (
    "line3",
    "triangle6",
    "quad8",
    "quad9",
    "tetra10",
    "pyramid13",
    "wedge15",
    "wedge18",
)
SECOND += ("hexahedron20", "hexahedron27", "hexahedron24", "wedge12", "triangle7")


def of_type(cell_type):
    """Two cells of this type that share no node."""
    n = int(cell_type.removeprefix(shape_of(cell_type).name))
    dim = 2 if shape_of(cell_type).dim == 2 else 3
    points = np.random.default_rng(n).random((2 * n, dim))
    nodes = np.random.default_rng(1).permutation(2 * n).reshape(2, n)
    return assemble(points, [Block(cell_type, nodes)])[0]


def with_values(mesh, limit):
    """Every kind of number on nodes and cells, at the ends of its range, and named groups."""
    random = np.random.default_rng(5)
    dats = []
    for name in ("nodes", *(s.name for s in mesh.cell_sets)):
        n = mesh.size(name)
        dats += [Dat("p", name, random.random(n)), Dat("u", name, random.random((n, 3)))]
        dats += [Dat("single", name, random.random(n).astype("f4"))]
        for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
            low, high = np.iinfo(kind).min, np.iinfo(kind).max
            ends = [max(low, -limit), min(high, limit), 1, 7]
            dats.append(
                Dat(f"{kind} of mine", name, random.choice(np.array(ends, kind), n))
            )
    dats = [d if d.set == "nodes" else Dat(f"{d.name}_c", d.set, d.values) for d in dats]
    tags = []
    dims = {s.name: shape_of(s.cell_type).dim for s in mesh.cell_sets}
    for s in mesh.cell_sets:
        left = 10 * dims[s.name] + 1
        names = {left: f"left of {left}"}
        if any(o.size > 1 and dims[o.name] == dims[s.name] for o in mesh.cell_sets):
            names[left + 1] = f"right of {left}"
        tags.append(Tag.from_ids("physical", s.name, left + np.arange(s.size) % 2, names))
    return mesh.with_(dats=dats, tags=tags)


def used_alone(mesh):
    """The mesh without the nodes that no cell has, which some readers leave out."""
    tables = {s.cell_type: mesh.cell_map(s.name).table for s in mesh.cell_sets}
    used = np.unique(np.concatenate([t.ravel() for t in tables.values()]))
    blocks = [Block(cell_type, np.searchsorted(used, t)) for cell_type, t in tables.items()]
    return assemble(mesh.coordinates[used], blocks)[0]


# Cells of one type and of several, of first and second order.
MESHES = {name: used_alone(plain_meshes()[name]) for name in FIRST}
MESHES |= {cell_type: of_type(cell_type) for cell_type in SECOND}


@cache
def prepared(kind, limit):
    """A mesh and its plan; values of whole numbers up to ``limit``, none at all for 0."""
    mesh = MESHES[kind]
    mesh = with_values(mesh, limit) if limit else mesh
    chosen = meshprep.Options(method="rcm", partition="contiguous", block_size=2)
    return meshprep.prepare(mesh, [f"{s.name}->nodes" for s in mesh.cell_sets], chosen)


# Readers that go by doubles know no whole numbers beyond these.
LIMITS = {"vtk": 2**64, "vtu": 2**64}


def written(kind, name, path, values=True, **options):
    """Write a mesh as ``meshprep reorder`` does: renumbered, with its values and original_id.

    Returns what the format carries of it; None where it has no place for the cells.
    """
    done = prepared(kind, LIMITS.get(name, 2**53) if values else 0)
    target, mesh = io.FORMATS[name], from_version(done.mesh, options)
    try:
        mesh = with_original_ids(mesh, done.plan.ordering, target)[0]
        lost = io.write(mesh, path, format=name, drop=True, **options)
    except meshprep.MeshprepError as error:
        if "use another format" not in str(error):
            raise
        return None
    assert not any("original_id" in text for text in lost)
    return mesh if target.reduce is None else target.reduce(mesh)


def from_version(mesh, options):
    """The mesh as if it came from a Gmsh file of this version."""
    extras = {"gmsh": options} if "version" in options else {}
    return Mesh(mesh.sets.values(), mesh.maps.values(), mesh.dats, mesh.tags, (), extras)


# What VTK calls the one number that a cell of these formats has.
GROUPS = {"exodus:block": "ObjectId"}


def check(seen, expected, *, exact=True, turned=False):
    """Nodes, cells type by type in their order, and each value on them.

    ``exact``: numbers keep all digits; ``turned``: which end of a volume comes first is not told.
    """
    points = np.zeros((expected.size("nodes"), 3))
    points[:, : expected.coordinates.shape[1]] = expected.coordinates
    seen_points = np.pad(seen.points, ((0, 0), (0, 3 - seen.points.shape[1])))
    same(seen_points, points, exact)
    types = [cell_type for cell_type, _ in seen.cells]
    assert len(types) == sum(s.size for s in expected.cell_sets)
    for s in expected.cell_sets:
        rows = [nodes for cell_type, nodes in seen.cells if cell_type == s.cell_type]
        table = expected.cell_map(s.name).table
        rows, table = (np.sort(t, axis=1) if turned else t for t in (np.array(rows), table))
        np.testing.assert_array_equal(rows, table)
    check_values(seen, expected, types, exact)


def check_values(seen, expected, types, exact):
    for d in expected.dats:
        if d.set == "nodes" and d.name != "coordinates":
            same(seen.node_values[d.name], d.values, exact)
        elif d.set != "nodes":
            # MED's fields of nodes and cells cannot share a name.
            both = f"{d.name} of cells"
            values = seen.cell_values[both if both in seen.cell_values else d.name]
            same(of_set(values, types, expected, d.set), d.values, exact)
    for t in expected.tags:
        array = GROUPS.get(t.name, array_of_group(t.name))
        found = of_set(seen.cell_values[array], types, expected, t.set)
        np.testing.assert_array_equal(found, t.first_ids())


def of_set(values, types, expected, name):
    """The values of the cells of one type."""
    return values[[t == expected.sets[name].cell_type for t in types]]


def same(found, wanted, exact):
    found = np.reshape(found, wanted.shape)
    if exact:
        assert found.dtype.kind.replace("u", "i") == wanted.dtype.kind.replace("u", "i")
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(found, wanted, rtol=2e-7, atol=2e-7)


# VTK reads these into single precision.
SINGLE = ("exodus",)


@pytest.mark.parametrize("name", other_readers._VTK_READERS)
def test_vtk_sees_what_was_written(name, tmp_path):
    other_readers.package("vtkmodules")
    read = 0
    for kind in MESHES:
        path = tmp_path / f"{kind}{io.FORMATS[name].extensions[0]}"
        expected = written(kind, name, path)
        # VTK has no quadratic pyramids in CGNS files
        if expected is None or (name, kind) == ("cgns", "pyramid13"):
            continue
        seen = other_readers.vtk(path, name)
        expected = highest_alone(expected) if name == "cgns" else expected
        check(seen, expected, exact=name not in SINGLE)
        read += 1
    assert read >= {"vtk": 22, "vtu": 22, "exodus": 16, "xdmf": 9, "cgns": 18}.get(name, 1)


def highest_alone(mesh):
    """The cells of the highest dimension, which VTK reads of a CGNS file, without groups."""
    top = mesh.sets["cells"].parts or ("cells",)
    blocks = [Block(mesh.sets[s].cell_type, mesh.cell_map(s).table) for s in top]
    made = assemble(mesh.coordinates, blocks)[0]
    dats = (d for d in mesh.dats if d.set in (*top, "nodes") and d.name != "coordinates")
    return made.with_(dats=dats)


@pytest.mark.parametrize("name", ["vtk", "vtu"])
def test_vtk_knows_every_type_and_name(name, tmp_path):
    """VTK drops all values of a legacy file where it does not know the type of one."""
    other_readers.package("vtkmodules")
    expected = written("mixed solid", name, tmp_path / f"a.{name}")
    seen = other_readers.vtk(tmp_path / f"a.{name}", name)
    for values, on in ((seen.node_values, "nodes"), (seen.cell_values, "hexahedron")):
        wanted = {d.name: d.values.dtype for d in expected.dats if d.set == on}
        wanted |= {
            array_of_group(t.name): np.dtype("i8") for t in expected.tags if t.set == on
        }
        wanted.pop("coordinates", None)
        if name == "vtk":
            # whole numbers are written wider, since meshio knows no short ones
            widest = {"i": np.dtype("i8"), "u": np.dtype("u8")}
            wanted = {key: widest.get(t.kind, t) for key, t in wanted.items()}
        assert {key: array.dtype for key, array in values.items()} == wanted
        assert "original_id" in wanted


MSH = [("2.2", True), ("2.2", False), ("4.1", True), ("4.1", False)]


@pytest.mark.parametrize(("version", "binary"), MSH)
def test_gmsh_sees_what_was_written(version, binary, tmp_path):
    other_readers.package("gmsh")
    for kind in MESHES:
        path = tmp_path / f"{kind}.msh"
        expected = written(kind, "gmsh", path, version=version, binary=binary)
        if expected is None:
            assert kind in ("hexahedron24", "wedge12", "triangle7")
            continue
        seen = other_readers.gmsh(path)
        check(seen, in_doubles(expected))
        types = [cell_type for cell_type, _ in seen.cells]
        for t in expected.tags:
            groups = of_set(seen.cell_values["physical"], types, expected, t.set)
            assert groups.tolist() == [
                t.names.get(i, str(i)) for i in t.first_ids().tolist()
            ]


def in_doubles(mesh):
    """The mesh with its values as the doubles that Gmsh has, and without groups."""
    dats = [Dat(d.name, d.set, d.values.astype("f8")) for d in mesh.dats]
    return Mesh(mesh.sets.values(), mesh.maps.values(), dats)


def without_groups(mesh):
    """The mesh without groups, to which meshio gives names of its own."""
    return Mesh(mesh.sets.values(), mesh.maps.values(), mesh.dats)


@pytest.mark.parametrize("name", ["medit", "med", "nastran"])
def test_gmsh_reads_other_formats(name, tmp_path):
    other_readers.package("gmsh")
    read = 0
    for kind in MESHES:
        path = tmp_path / f"{kind}{io.FORMATS[name].extensions[0]}"
        expected = written(kind, name, path)
        # Gmsh knows no wedges and pyramids in Medit's files, and in Nastran's no nodes in the
        # middles of the edges of pyramids.
        unknown = {"wedge", "pyramid"} if name != "nastran" else {"pyramid13"}
        if expected is None or unknown & {s.cell_type for s in expected.cell_sets}:
            continue
        seen = other_readers.gmsh(path)
        check(seen, in_doubles(expected), exact=name in ("medit", "med"))
        read += 1
    assert read >= {"medit": 6, "med": 12, "nastran": 14}[name]


# Where meshio reads what a format means otherwise than the programs that it is for.
UNKNOWN = {
    "exodus": ("pyramid13", "wedge15", "hexahedron20", "hexahedron27"),
    # Pyramids, C3D5, are known to Abaqus alone.
    "abaqus": ("triangle6", "quad8", "mixed solid"),
    "gmsh": ("wedge18",),
}


def blocks_of_meshio(mesh):
    """Whether meshio can make blocks of all types of cells."""
    known = other_readers.package("meshio")._mesh.topological_dimension
    return all(s.cell_type in known for s in mesh.cell_sets)


# meshio reads tetrahedra of one name alone from CGNS files.
ALONE = ("gmsh", "cgns")
OTHERS = [n for n, f in io.FORMATS.items() if f.write and f.cells and n not in ALONE]
WRITTEN = [(n, {}) for n in OTHERS] + [
    ("gmsh", {"version": v, "binary": b}) for v, b in MSH
]


@pytest.mark.parametrize(("name", "options"), WRITTEN)
def test_meshio_reads_what_was_written(name, options, tmp_path):
    read = 0
    for kind in MESHES:
        path = tmp_path / f"{kind}{io.FORMATS[name].extensions[0]}"
        if kind in UNKNOWN.get(name, ()) or not blocks_of_meshio(MESHES[kind]):
            continue
        # Values of the user on cells of several types are another matter than original_id.
        plain = options.get("version") == "2.2" and len(MESHES[kind].cell_sets) > 1
        expected = written(kind, name, path, values=not plain, **options)
        if expected is None:
            continue
        seen = other_readers.meshio(path, name)
        exact = name not in ("nastran", "gmsh")
        expected = in_doubles(expected) if name == "gmsh" else without_groups(expected)
        check(seen, expected, exact=exact, turned=name == "med")
        read += 1
    assert read


@pytest.mark.parametrize("ending", ["msh", "vtu", "vtk", "xdmf", "su2", "mesh", "inp"])
@pytest.mark.parametrize("kind", ["triangles", "tets with skin", "hexes with skin"])
def test_scikit_fem_reads_what_was_written(kind, ending, tmp_path):
    skfem = other_readers.package("skfem")
    path = tmp_path / f"a.{ending}"
    name = {"mesh": "medit", "inp": "abaqus", "msh": "gmsh"}.get(ending, ending)
    expected = written(kind, name, path, values=False)
    with other_readers.quiet():
        found = skfem.Mesh.load(path)
    assert found.nelements == expected.size("cells")
    dim = found.p.shape[0]
    np.testing.assert_array_equal(found.p.T, expected.coordinates[:, :dim])
