"""OP2's files: every value at its new place, everything else as it was."""

import itertools
import re

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from io_meshes import plain_meshes
from op2_files import attribute_text, c_mesh, put_dat, put_map, write_hdf5, write_text

from meshprep import io
from meshprep.mesh import Dat, ElementSet, Mesh, SetMap
from meshprep_runtime import MeshprepError, Ordering

MAPS = {
    "pedge": ("edges", "nodes"),
    "pecell": ("edges", "cells"),
    "pbedge": ("bedges", "nodes"),
    "pbecell": ("bedges", "cells"),
    "pcell": ("cells", "nodes"),
}
DATS = {
    **dict.fromkeys(("p_q", "p_qold", "p_res", "p_adt", "flags"), "cells"),
    **{"p_bound": "bedges", "p_x": "nodes", "p_single": "edges"},
}


def shuffles(sizes, seed=0):
    random = np.random.default_rng(seed)
    return {s: Ordering.from_new_to_old(random.permutation(n)) for s, n in sizes.items()}


def attributes(item):
    """Name, bytes of the value and exact type of every attribute."""
    out = {}
    for name in item.attrs:
        found = item.attrs.get_id(name)
        raw = np.empty(found.shape, dtype=found.dtype)
        if found.dtype.kind != "O":
            found.read(raw, mtype=found.get_type())
        else:
            raw = np.array(str(item.attrs[name]))
        out[name] = (raw.tobytes(), found.get_type().encode(), found.shape)
    return out


@pytest.mark.parametrize(("base", "dtype"), [(0, "<i4"), (1, "<i4"), (0, "<i8")])
def test_every_value_moves_and_the_rest_stays(tmp_path, base, dtype):
    old_path, new_path = tmp_path / "grid.h5", tmp_path / "new.h5"
    sizes = write_hdf5(old_path, c_mesh(), base, dtype)
    order = shuffles(sizes)
    mesh = io.read(old_path)
    assert io.write(mesh.renumber(order), new_path) == []
    with h5py.File(old_path) as old, h5py.File(new_path) as new:
        assert sorted(old) == sorted(new)
        for name, (source, target) in MAPS.items():
            moved = [
                [order[target].old_to_new[p - base] + base for p in old[name][e]]
                for e in order[source].new_to_old
            ]
            assert new[name][()].tolist() == [[int(i) for i in row] for row in moved]
            assert new[name].dtype == np.dtype(dtype)
        for name, on in DATS.items():
            assert new[name][()].tobytes() == old[name][()][order[on].new_to_old].tobytes()
        for name in ("nodes", "edges", "bedges", "cells", "gam", "qinf", "big_endian"):
            assert new[name][()].tobytes() == old[name][()].tobytes()
            assert new[name].dtype == old[name].dtype
        assert new["group/author"][()] == b"someone"
        assert new["group"].attrs["year"] == 2019
        assert new.attrs["title"] == "airfoil"
        assert new.get("link", getlink=True).path == "/p_q"
        for name in (*MAPS, "gam", "flags", *DATS):
            before, after = attributes(old[name]), attributes(new[name])
            assert after == before
            assert new[name].chunks is None
    declared = {name: "->".join(pair) for name, pair in MAPS.items()} | {"base": str(base)}
    assert io.read(new_path, sets=declared).content_hash() == mesh.renumber(order).content_hash()


def test_a_loop_over_the_renumbered_file_gives_the_same_sums(tmp_path):
    old_path, new_path = tmp_path / "grid.h5", tmp_path / "new.h5"
    sizes = write_hdf5(old_path, c_mesh(), 0)
    order = shuffles(sizes, 3)
    io.write(io.read(old_path).renumber(order), new_path)

    def residual(path):
        with h5py.File(path) as file:
            res, q, x = np.zeros(file["cells"][0]), file["p_q"][:, 0], file["p_x"][:, 0]
            pairs = zip(file["pecell"][()], file["pedge"][()], strict=True)
            for (one, other), (a, b) in pairs:
                flux = round(1e6 * (q[one] - q[other]) * (x[a] + x[b]))
                res[one] += flux
                res[other] -= flux
        return res

    assert np.array_equal(residual(new_path), order["cells"].apply(residual(old_path)))


def test_what_fits_several_sets_is_asked_for_and_can_be_declared(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        for name in ("cells", "points"):
            file[name] = np.array([4], "<i4")
        file["edges"] = np.array([5], "<i4")
        put_map(file, "link", [[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])
        put_dat(file, "q", np.arange(4.0)[:, None], "double")
        file["mystery"] = np.arange(4)
    with pytest.raises(MeshprepError) as error:
        io.read(path)
    assert "q (cells or points)" in str(error.value)
    assert "mystery (cells or points)" in str(error.value)
    assert "cells 4, edges 5, points 4" in str(error.value)
    assert "--sets 'link=edges->SET mystery=SET q=SET'" in str(error.value)
    mesh = io.read(path, sets={"link": "edges->points", "q": "points", "mystery": "none"})
    assert mesh.maps["edges->points"].table.shape == (5, 2)
    assert mesh.dat("q", "points").values.shape == (4, 1)
    assert mesh.dat("mystery", "points") is None
    for wrong, message in (
        ({"link": "edges->walls"}, "there is no set 'walls'"),
        ({"lonk": "edges->cells"}, "there is no dataset 'lonk'"),
        ({"link": "cells->points", "q": "cells", "mystery": "none"}, "has 5 rows, but set 'cells'"),
    ):
        with pytest.raises(MeshprepError, match=message):
            io.read(path, sets=wrong)


@pytest.fixture(scope="module")
def shuffled(tmp_path_factory):
    """OP2's Airfoil in an order in which sizes and ranges do not tell where pbedge leads."""
    folder = tmp_path_factory.mktemp("shuffled")
    sizes = write_hdf5(folder / "grid.h5", c_mesh(10, 8))
    io.write(io.read(folder / "grid.h5").renumber(shuffles(sizes)), folder / "new.h5")
    return folder / "new.h5"


def test_what_is_asked_for_holds_no_guess(shuffled):
    with pytest.raises(MeshprepError) as error:
        io.read(shuffled)
    assert "pbedge (bedges->edges or nodes)" in str(error.value)
    assert "bedges 56, cells 240, edges 452, nodes 279" in str(error.value)
    assert "--sets 'pbecell=bedges->SET pbedge=bedges->SET'" in str(error.value)
    right = io.read(shuffled, sets="pbecell=bedges->cells pbedge=bedges->nodes")
    assert right.maps["bedges->nodes"].arity == 2


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("pbedge=bedges->edges", "declared as bedges->edges, but the other maps of 'bedges' say"),
        ("pbedge=bedges->edges", "its rows hold nodes: declare bedges->nodes"),
        ("pbecell=bedges->edges", "its name says bedges->cells"),
        ("pecell=edges->nodes", "its name says edges->cells"),
        ("pedge=edges->edges", "its rows hold nodes: declare edges->nodes"),
    ],
)
def test_maps_that_are_not_what_they_are_declared_as(shuffled, wrong, said):
    right = ["pbecell=bedges->cells", "pbedge=bedges->nodes"]
    name = wrong.partition("=")[0]
    with pytest.raises(MeshprepError, match=said):
        io.read(shuffled, sets=[wrong, *(r for r in right if not r.startswith(f"{name}="))])


def test_names_of_other_programs_are_held_against_nobody(tmp_path, shuffled):
    path = tmp_path / "a.h5"
    with h5py.File(shuffled) as old, h5py.File(path, "w") as file:
        file["nodes"], file["edges"] = old["nodes"][()], old["edges"][()]
        file["wall_edges"] = old["pbedge"][()]
        file["cell"] = old["pcell"][()]
    mesh = io.read(path, sets={"wall_edges": "wall->nodes", "cell": "cells->nodes"})
    assert list(mesh.maps) == ["cells->nodes", "wall->nodes"]


def test_numbers_that_are_no_indices(tmp_path):
    path = tmp_path / "a.h5"
    flags = np.array([[0, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 1]] * 40)
    with h5py.File(path, "w") as file:
        file["nodes"], file["cells"] = np.array([200], "<i4"), np.array([120], "<i4")
        file["flags"] = flags
        put_map(file, "corners", np.arange(480).reshape(120, 4) % 200)
    with pytest.raises(MeshprepError, match=r"flags.* 120 of its 120 rows hold an index twice"):
        io.read(path, sets="flags=cells->nodes")
    # Collapsed quads are quads.
    corners = np.arange(480).reshape(120, 4) % 200
    corners[:50, 3] = corners[:50, 2]
    with h5py.File(path, "w") as file:
        file["nodes"], file["cells"] = np.array([200], "<i4"), np.array([120], "<i4")
        put_map(file, "corners", corners)
    assert io.read(path, sets="corners=cells->nodes").maps["cells->nodes"].arity == 4


def test_what_was_found_by_sizes_is_checked_too(tmp_path, shuffled):
    """The last node of the boundary happens to have the number of the last cell."""
    path = tmp_path / "a.h5"
    mesh = io.read(shuffled, sets="pbecell=bedges->cells pbedge=bedges->nodes")
    boundary = np.unique(mesh.maps["bedges->nodes"].table)
    inner = np.setdiff1d(np.arange(279), boundary)
    before = 240 - boundary.size
    new = np.concatenate([inner[:before], boundary, inner[before:]])
    order = {"nodes": Ordering.from_new_to_old(new)}
    io.write(mesh.renumber(order), path)
    with pytest.raises(
        MeshprepError, match=r"'pbedge' is taken for bedges->cells.*rows hold nodes"
    ):
        io.read(path, sets="pbecell=bedges->cells")


@pytest.mark.parametrize(
    "sets",
    [
        {"pbecell": "bedges->cells", "pbedge": "bedges->nodes"},
        ["pbecell=bedges->cells", "pbedge=bedges->nodes"],
        "pbecell=bedges->cells, pbedge=bedges->nodes",
    ],
)
def test_declarations_in_python_read_as_in_the_command(shuffled, sets):
    assert list(io.read(shuffled, sets=sets).maps)[:2] == ["bedges->cells", "bedges->nodes"]


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        ([3], "give a dict of name to set, or texts such as 'p_q=cells'"),
        (3, "give a dict of name to set"),
        (["pbecell="], "must read NAME=SET"),
        ({"pbecell": "a->b->c"}, "must read SET or SET->SET"),
    ],
)
def test_declarations_that_are_none(shuffled, sets, said):
    with pytest.raises(MeshprepError, match=said):
        io.read(shuffled, sets=sets)


def test_a_map_into_the_first_nodes_is_not_taken_for_one_into_its_own_set(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        for name, size in (("nodes", 9), ("walls", 4)):
            file[name] = np.array([size], "<i4")
        put_map(file, "ends", [[0, 1], [1, 2], [2, 3], [3, 0]])
    with pytest.raises(MeshprepError, match=r"ends \(walls->nodes or walls\)"):
        io.read(path)


def test_files_without_a_zero_index_are_asked_about(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["nodes"], file["edges"] = np.array([9], "<i4"), np.array([2], "<i4")
        put_map(file, "ends", [[1, 2], [2, 5]])
    with pytest.raises(MeshprepError, match="--sets base=0"):
        io.read(path)
    mesh = io.read(path, sets={"base": "1"})
    assert mesh.maps["edges->nodes"].table.tolist() == [[0, 1], [1, 4]]


def test_attributes_that_op2_wants_are_completed(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["nodes"], file["edges"] = np.array([9], "<i4"), np.array([2], "<i4")
        put_map(file, "ends", [[0, 2], [2, 8]])
        put_dat(file, "x", np.zeros((9, 2)), "double")
        put_dat(file, "plain", np.zeros((9, 2)), "double")
        del file["ends"].attrs["type"]
        del file["x"].attrs["size"]
        for name in ("size", "dim", "type"):
            del file["plain"].attrs[name]
    places = {"ends": "edges->nodes", "x": "nodes"}
    io.write(io.read(path, sets=places), tmp_path / "b.h5")
    with h5py.File(tmp_path / "b.h5") as file:
        assert attributes(file["ends"])["type"][0] == b"int".ljust(10, b"\0")
        assert file["x"].attrs["size"].tolist() == [16]
        assert len(file["plain"].attrs) == 0


def test_small_integer_dats_are_no_maps(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["nodes"], file["edges"] = np.array([9], "<i4"), np.array([4], "<i4")
        put_map(file, "ends", [[0, 1], [1, 2], [2, 8], [3, 0]])
        put_dat(file, "bound", np.ones((4, 1), "<i4"), "int")
    mesh = io.read(path)
    assert list(mesh.maps) == ["edges->nodes"]
    assert mesh.dat("bound", "edges").values.tolist() == [[1]] * 4


def test_any_hdf5_file_whose_datasets_are_declared(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["mesh/connectivity"] = np.array([[0, 1, 2], [1, 3, 2]], "<u4")
        file["mesh/xyz"] = np.arange(12.0).reshape(4, 3)
        file["result/t"] = np.arange(2.0)
    sets = {"mesh/connectivity": "cells->nodes", "mesh/xyz": "nodes", "coordinates": "mesh/xyz"}
    mesh = io.read(path, sets=sets | {"result/t": "cells"})
    assert mesh.coordinates.shape == (4, 3)
    order = {
        "cells": Ordering.from_new_to_old(np.array([1, 0])),
        "nodes": Ordering.from_new_to_old(np.array([2, 0, 3, 1])),
    }
    io.write(mesh.renumber(order), tmp_path / "b.h5")
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["mesh/connectivity"][()].tolist() == [[3, 2, 0], [1, 3, 0]]
        assert file["mesh/connectivity"].dtype == np.dtype("<u4")
        assert file["mesh/xyz"][:, 0].tolist() == [6, 0, 9, 3]
        assert file["result/t"][()].tolist() == [1, 0]


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_random_sets_maps_and_dats(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("op2") / "a.h5"
    sizes = {n: data.draw(st.integers(1, 6)) for n in ("a", "b", "c")}
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    maps, dats = [], []
    for k, (one, other) in enumerate([("a", "b"), ("a", "b"), ("c", "c"), ("b", "a")]):
        table = random.integers(0, sizes[other], (sizes[one], 1 + k % 3))
        maps.append(SetMap(f"map{k}", one, other, table))
    for k, (name, dtype) in enumerate([("a", "f8"), ("b", "f4"), ("c", "i8"), ("c", "u1")]):
        values = random.integers(0, 100, (sizes[name], 1 + k)).astype(dtype)
        dats.append(Dat(f"dat{k}", name, values))
    mesh = Mesh([ElementSet(n, s) for n, s in sizes.items()], maps, dats)
    order = shuffles(sizes)
    assert io.write(mesh.renumber(order), path) == []
    with h5py.File(path) as file:
        for m in maps:
            new = file[m.name][()]
            for e in range(m.size):
                old = m.table[order[m.from_set].new_to_old[e]]
                assert new[e].tolist() == order[m.to_set].old_to_new[old].tolist()
            assert file[m.name].attrs["size"].tolist() == [m.size]
            assert file[m.name].attrs["dim"].tolist() == [m.arity]
        for d in dats:
            assert np.array_equal(file[d.name][()], d.values[order[d.set].new_to_old])


def test_losses_have_names(tmp_path):
    write_hdf5(tmp_path / "grid.h5", c_mesh())
    mesh = io.read(tmp_path / "grid.h5")
    with pytest.raises(MeshprepError, match="no cells to write"):
        io.write(mesh, tmp_path / "a.vtu")
    with pytest.raises(MeshprepError, match="a grid of Airfoil needs two coordinates"):
        io.write(mesh, tmp_path / "a.dat", format="op2-grid")
    tets = plain_meshes()["tets"]
    with pytest.raises(MeshprepError, match=r"'op2' cannot carry the types of the cells \(tetra\)"):
        io.write(tets, tmp_path / "a.h5")
    assert io.write(tets, tmp_path / "a.h5", drop=True)
    back = io.read(tmp_path / "a.h5", sets={"cells->nodes": "cells->nodes", "base": "0"})
    assert np.array_equal(back.coordinates, tets.coordinates)
    assert np.array_equal(back.maps["cells->nodes"].table, tets.maps["cells->nodes"].table)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\x89HDF\r\n\x1a\nrubbish", "not a readable HDF5 file"), (b"text", "not a readable HDF5")],
)
def test_damaged_files(tmp_path, content, message):
    path = tmp_path / "a.h5"
    path.write_bytes(content)
    with pytest.raises(MeshprepError, match=message):
        io.read(path)


def test_hostile_files(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["nodes"] = np.array([1 << 30], "<i4")
        file.create_dataset("x", (1 << 30, 4), "f8", chunks=(1 << 20, 4))
        attribute_text(file["x"], "type", "double", 6)
        file["x"].attrs["dim"] = file["x"].attrs["size"] = np.array([1], "<i4")
        put_map(file, "m", [[0]])
    with pytest.raises(MeshprepError, match="has 1 rows, which is the size of no set"):
        io.read(path)
    with pytest.raises(MeshprepError, match="claims 34359738368 bytes"):
        io.read(path, sets={"m": "one->nodes"})
    with h5py.File(path, "w") as file:
        file["a/b"] = 1
        file["a/loop"] = file["a"]
    with pytest.raises(MeshprepError, match="linked into itself"):
        io.read(path)


def test_a_plan_is_no_mesh(tmp_path):
    path = tmp_path / "a.plan.h5"
    path.write_bytes(b"meshprep-plan 1\n")
    with pytest.raises(MeshprepError, match="is a plan, not a mesh"):
        io.read(path)


def test_the_text_grid_keeps_every_digit(tmp_path):
    mesh = c_mesh()
    write_text(tmp_path / "new_grid.dat", mesh)
    read = io.read(tmp_path / "new_grid.dat")
    order = shuffles({s.name: s.size for s in read.sets.values()})
    assert io.write(read.renumber(order), tmp_path / "new.dat") == []
    old, new = (
        [line.split() for line in (tmp_path / n).read_text().splitlines()]
        for n in ("new_grid.dat", "new.dat")
    )
    assert old[0] == new[0]
    n, e, b = (order[s] for s in ("nodes", "edges", "bedges"))
    cells = order["cells"]
    first = [1]
    for s in (n, cells, e, b):
        first.append(first[-1] + s.size)
    text = [new[a:z] for a, z in itertools.pairwise(first)]
    before = [old[a:z] for a, z in itertools.pairwise(first)]
    assert text[0] == [before[0][i] for i in n.new_to_old]
    moved = lambda order, words: [str(order.old_to_new[int(w)]) for w in words]  # noqa: E731
    assert text[1] == [moved(n, before[1][i]) for i in cells.new_to_old]
    assert text[2] == [
        moved(n, before[2][i][:2]) + moved(cells, before[2][i][2:]) for i in e.new_to_old
    ]
    assert text[3] == [
        moved(n, row[:2]) + moved(cells, row[2:3]) + row[3:]
        for row in (before[3][i] for i in b.new_to_old)
    ]


def test_text_grids_of_other_digits_keep_their_values(tmp_path):
    x, *tables = c_mesh()
    path = tmp_path / "grid.dat"
    write_text(path, (x, *tables))
    lines = path.read_text().splitlines()
    lines[3] = "1e-3 0.12345678901234567"
    path.write_text("\n".join(lines))
    mesh = io.read(path)
    io.write(mesh, tmp_path / "b.dat")
    assert np.array_equal(io.read(tmp_path / "b.dat").coordinates, mesh.coordinates)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t[:-6], "the file ends before boundary edges"),
        (lambda t: t + "1\n", "more in the file than its first line says"),
        (lambda t: re.sub(r"\n.*\n", "\nnan nan\n", t, count=1), "finite"),
        (lambda t: t.replace(" ", " x", 5), "expected"),
        (lambda t: "9" + t, "declares"),
        (lambda t: t.replace("\n1 2 15 14\n", "\n1 2 99 14\n", 1), "index 99"),
    ],
)
def test_damaged_text_grids(tmp_path, change, message):
    path = tmp_path / "grid.dat"
    write_text(path, c_mesh())
    path.write_text(change(path.read_text()))
    with pytest.raises(MeshprepError, match=message):
        io.read(path, format="op2-grid")


def test_other_dat_files_are_tecplot(tmp_path):
    io.write(plain_meshes()["triangles"], tmp_path / "a.dat")
    assert (tmp_path / "a.dat").read_text().lstrip().startswith(("TITLE", "VARIABLES"))
    assert io.read(tmp_path / "a.dat").size("cells") == plain_meshes()["triangles"].size("cells")
    with pytest.raises(MeshprepError, match="has no option for reading 'sets'"):
        io.read(tmp_path / "a.dat", sets={"a": "b"})
