"""OP2's files: every value at its new place, everything else as it was."""

import effort
import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from io_meshes import plain_meshes
from op2_files import attribute_text, c_mesh, put_dat, put_map, shuffles, write_hdf5
from texts import refusal, refused

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
    assert (
        io.read(new_path, sets=declared).content_hash()
        == mesh.renumber(order).content_hash()
    )


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


def test_any_hdf5_file_whose_datasets_are_declared(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["mesh/connectivity"] = np.array([[0, 1, 2], [1, 3, 2]], "<u4")
        file["mesh/xyz"] = np.arange(12.0).reshape(4, 3)
        file["mesh/apex"] = np.array([2, 3])
        file["result/t"] = np.arange(2.0)
    sets = {
        "mesh/connectivity": "cells->nodes",
        "mesh/xyz": "nodes",
        "coordinates": "mesh/xyz",
    }
    sets |= {"mesh/apex": "cells->nodes", "result/t": "cells"}
    mesh = io.read(path, sets=sets)
    assert mesh.coordinates.shape == (4, 3)
    order = {
        "cells": Ordering.from_new_to_old(np.array([1, 0])),
        "nodes": Ordering.from_new_to_old(np.array([2, 0, 3, 1])),
    }
    io.write(mesh.renumber(order), tmp_path / "b.h5")
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["mesh/connectivity"][()].tolist() == [[3, 2, 0], [1, 3, 0]]
        assert file["mesh/connectivity"].dtype == np.dtype("<u4")
        assert file["mesh/apex"][()].tolist() == [2, 0]
        assert file["mesh/xyz"][:, 0].tolist() == [6, 0, 9, 3]
        assert file["result/t"][()].tolist() == [1, 0]


@settings(deadline=None, max_examples=effort.examples(25))
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
        dats.append(Dat(f"some/dat{k}", name, values))
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
    with pytest.raises(
        MeshprepError,
        match=r"'op2' would be written without the types of the cells \(tetra\)",
    ):
        io.write(tets, tmp_path / "a.h5")
    assert io.write(tets, tmp_path / "a.h5", drop=True)
    back = io.read(tmp_path / "a.h5", sets={"cells->nodes": "cells->nodes", "base": "0"})
    assert np.array_equal(back.coordinates, tets.coordinates)
    assert np.array_equal(back.maps["cells->nodes"].table, tets.maps["cells->nodes"].table)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x89HDF\r\n\x1a\nrubbish", "not a readable HDF5 file"),
        (b"text", "not a readable HDF5"),
    ],
)
def test_damaged_files(tmp_path, content, message):
    path = tmp_path / "a.h5"
    refused(content, path, message)


def test_hostile_files(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["nodes"] = np.array([1 << 30], "<i4")
        file.create_dataset("x", (1 << 30, 4), "f8", chunks=(1 << 20, 4))
        attribute_text(file["x"], "type", "double", 6)
        file["x"].attrs["dim"] = file["x"].attrs["size"] = np.array([1], "<i4")
        put_map(file, "m", [[0]])
    refusal(path, "'x' declares 34359738368 bytes that are not there")
    with h5py.File(path, "w") as file:
        file["a/b"] = 1
        file["a/loop"] = file["a"]
    refusal(path, "linked into itself")


def test_a_plan_is_no_mesh(tmp_path):
    path = tmp_path / "a.plan.h5"
    refused(b"meshprep-plan 1\n", path, "is a plan: meshprep info")
    refused(b"meshprep-parts 1\n", path, "is a mesh in parts: meshprep info")
