"""Files of values: every value at its new place, and back to the bit."""

import json
import zipfile
from io import BytesIO

import effort
import h5py
import numpy as np
import pytest
from field_files import SIZES, make_plan, npz, there_and_back
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from meshprep import io
from meshprep.io.declared import ANY
from meshprep.io.fields import move_files
from meshprep.io.generate import generate
from meshprep.mesh import Dat
from meshprep_cli.main import main
from meshprep_runtime import MeshprepError, Ordering, Plan

DTYPES = ("f8", "f4", "i4", "i8", "u1", "c16", "S3", "?", ">f8")


def any_array(draw, rows):
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = (rows, *draw(st.sampled_from([(), (1,), (3,), (2, 2)])))
    if dtype.kind in "S?":
        return draw(hnp.arrays(dtype, shape))
    bits = draw(hnp.arrays(np.uint8, (int(np.prod(shape)) * dtype.itemsize,)))
    return np.frombuffer(bits.tobytes(), dtype).reshape(shape).copy()


@settings(deadline=None, max_examples=effort.examples(30))
@given(st.data())
def test_random_bits_come_back(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("fields")
    plan, order = make_plan(folder)
    on = data.draw(st.sampled_from(["nodes", "edges"]))
    values = any_array(data.draw, SIZES[on])
    if data.draw(st.booleans()):
        values = np.asfortranarray(values)
    expected = values[order[on].new_to_old].tobytes()
    np.save(folder / "a.npy", values)
    there, back = there_and_back(plan, folder / "a.npy")
    assert np.load(there).tobytes() == expected
    assert back.read_bytes() == (folder / "a.npy").read_bytes()
    save = np.savez_compressed if data.draw(st.booleans()) else np.savez
    save(folder / "a.npz", q=values, other=np.arange(3), scalar=1.5)
    there, back = there_and_back(plan, folder / "a.npz")
    with np.load(back) as found, np.load(there) as moved:
        assert found["q"].tobytes() == values.tobytes()
        assert found["q"].dtype == values.dtype
        assert moved["q"].tobytes() == expected
        assert found["other"].tolist() == [0, 1, 2]
        assert found["scalar"] == 1.5
    kinds = [
        {i.compress_type for i in zipfile.ZipFile(p).infolist()}
        for p in (folder / "a.npz", back)
    ]
    assert kinds[0] == kinds[1]
    with h5py.File(folder / "a.h5", "w") as file:
        chunks = None if data.draw(st.booleans()) else (2, *values.shape[1:])
        item = file.create_dataset("deep/q", data=values, chunks=chunks)
        item.attrs["unit"] = "K"
        file["other"] = np.arange(3)
    there, back = there_and_back(plan, folder / "a.h5")
    with h5py.File(there) as moved, h5py.File(back) as found:
        native = values.astype(values.dtype.newbyteorder("="))
        assert moved["deep/q"][()].tobytes() == expected
        assert found["deep/q"][()].astype(native.dtype).tobytes() == native.tobytes()
        assert found["deep/q"].dtype == values.dtype
        assert found["deep/q"].attrs["unit"] == "K"
        assert found["deep/q"].chunks == chunks
        assert found["other"][()].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("dtype", "fits"),
    [
        ("i1", 127),
        *(pytest.param(*w, marks=pytest.mark.slow) for w in (("u1", 255), ("u2", 299))),
    ],
)
def test_indices_of_few_bits_are_refused_before_they_wrap(tmp_path, dtype, fits):
    plan, order = make_plan(tmp_path, {"edges": 1, "cells": 300})
    path, declared = tmp_path / "a.npy", {ANY: "edges->cells"}
    for old in range(100):
        np.save(path, np.array([[old]], dtype))
        new = order["cells"].old_to_new[old]
        if new <= fits:
            there, back = there_and_back(plan, path, declared=declared)
            assert np.load(there).tolist() == [[new]]
            assert back.read_bytes() == path.read_bytes()
            continue
        with pytest.raises(
            MeshprepError, match=r"holds u?int8, which has no room for its new index"
        ):
            there_and_back(plan, path, declared=declared)


def test_names_of_arrays_may_end_like_files(tmp_path):
    plan, order = make_plan(tmp_path)
    (tmp_path / "a.npz").write_bytes(npz(("q.npy", 7), ("q.npy.npy", 11), ("w.npy", 5)))
    there, _ = there_and_back(plan, tmp_path / "a.npz", declared={"w": "cells"})
    with zipfile.ZipFile(there) as archive:
        for name, on in (("q.npy", "nodes"), ("q.npy.npy", "edges"), ("w.npy", "cells")):
            found = np.load(BytesIO(archive.read(name)))
            assert found.tolist() == order[on].new_to_old.tolist()
        assert archive.comment == b"of a run"


def test_other_files_in_an_archive_stay(tmp_path):
    plan, order = make_plan(tmp_path)
    path = tmp_path / "a.npz"
    np.savez(path, x=np.arange(7))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("about.txt", "seven nodes")
    there, _ = there_and_back(plan, path)
    with np.load(there) as found:
        assert found["x"].tolist() == order["nodes"].new_to_old.tolist()
        assert found["about.txt"] == b"seven nodes"
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("y.npy", "rubbish")
    with pytest.raises(MeshprepError, match=r"a\.npz: member 'y\.npy' is no array"):
        move_files(plan, [path], overwrite=True)


def test_values_in_another_hdf5_file_are_not_left_behind(tmp_path):
    plan, _ = make_plan(tmp_path)
    for name in ("values", "a"):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["t"] = np.arange(7.0)
    with h5py.File(tmp_path / "a.h5", "a") as file:
        file["more/u"] = h5py.ExternalLink("values.h5", "t")
    with pytest.raises(
        MeshprepError, match=r"a\.h5: link 'more/u' leads into another file"
    ):
        move_files(plan, [tmp_path / "a.h5"])


def test_maps_in_hdf5_by_declaration(tmp_path):
    plan, order = make_plan(tmp_path)
    table = np.random.default_rng(1).integers(0, 5, (11, 2))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["owner"], file["q"] = table + 1, np.arange(5.0)
    declared = {"owner": "edges->cells", "q": "twins", "base": "1"}
    there, back = there_and_back(plan, tmp_path / "a.h5", declared=declared)
    with h5py.File(there) as file:
        new = order["cells"].old_to_new[table[order["edges"].new_to_old]] + 1
        assert np.array_equal(file["owner"][()], new)
        assert file["q"][()].tolist() == order["twins"].new_to_old.tolist()
    assert back.read_bytes() == (tmp_path / "a.h5").read_bytes()
    (tmp_path / "loops.toml").write_text(
        '[sets]\nbase = 1\nowner = "edges->cells"\nq = "twins"\n'
    )
    words = [
        "apply",
        plan,
        tmp_path / "a.h5",
        "--loops",
        tmp_path / "loops.toml",
        "--force",
    ]
    before = there.read_bytes()
    assert main([str(w) for w in words]) == 0
    assert there.read_bytes() == before


def test_what_was_declared_for_the_mesh_holds_for_datasets_that_still_fit(tmp_path):
    _, order = make_plan(tmp_path)
    known = {"owner": "edges->cells", "q": "twins", "base": "1"}
    plan = tmp_path / "known.plan.h5"
    Plan(SIZES, order, {}, {}, "", "", options={"sets": known}).save(plan)
    owner = np.arange(11) % 4 + 1
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["owner"], file["q"] = owner, np.arange(6.0)
    there, _ = there_and_back(plan, tmp_path / "a.h5")
    with h5py.File(there) as file:
        new = order["cells"].old_to_new[owner[order["edges"].new_to_old] - 1] + 1
        assert file["owner"][()].tolist() == new.tolist()
        assert file["q"][()].tolist() == list(range(6))
    with pytest.raises(MeshprepError, match="there is no dataset 'owners'"):
        there_and_back(plan, tmp_path / "a.h5", declared={"owners": "edges->cells"})


def test_values_of_a_set_without_an_order_stay(tmp_path):
    order = {"nodes": Ordering.from_new_to_old(np.array([2, 0, 1]))}
    Plan({"nodes": 3, "walls": 2}, order, {}, {}, "", "").save(tmp_path / "a.plan.h5")
    np.savez(tmp_path / "a.npz", x=np.arange(3), wall=np.arange(2))
    there, _ = there_and_back(tmp_path / "a.plan.h5", tmp_path / "a.npz")
    with np.load(there) as found:
        assert (found["x"].tolist(), found["wall"].tolist()) == ([2, 0, 1], [0, 1])


def test_records_with_texts_move(tmp_path):
    plan, order = make_plan(tmp_path)
    record = np.dtype([("n", "<i4"), ("name", h5py.string_dtype())])
    rows = [(i, f"edge {i}") for i in range(11)]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["q"] = np.array(rows, record)
    there, _ = there_and_back(plan, tmp_path / "a.h5")
    with h5py.File(there) as file:
        found = [(n, text.decode()) for n, text in file["q"][()].tolist()]
    assert found == [rows[i] for i in order["edges"].new_to_old]


def test_rows_of_variable_length_do_not_stay_behind(tmp_path):
    plan, order = make_plan(tmp_path)
    path, names = tmp_path / "a.h5", np.array([f"edge {i}" for i in range(11)], object)
    with h5py.File(path, "w") as file:
        file["q"] = np.arange(11.0)
        file.create_dataset("name", data=names, dtype=h5py.string_dtype())
    with pytest.raises(MeshprepError, match="--sets 'name=edges', or 'name=none'"):
        move_files(plan, [path])
    there, _ = there_and_back(plan, path, declared={"name": "edges"})
    with h5py.File(there) as file:
        found = file["name"].asstr()[()].tolist()
    assert found == names[order["edges"].new_to_old].tolist()
    with h5py.File(path, "a") as file:
        lists = file.create_dataset("lists", 11, h5py.vlen_dtype("i4"))
        lists[0] = [1, 2]
    with pytest.raises(MeshprepError, match="'lists' holds lists or references"):
        move_files(
            plan, [path], declared={"name": "edges", "lists": "edges"}, overwrite=True
        )


def test_a_mesh_with_its_values(tmp_path):
    mesh = generate("mixed2d", nx=5, ny=4)
    random = np.random.default_rng(5)
    parts = [s for s in mesh.cell_sets if s.name in mesh.sets["cells"].parts]
    dats = [Dat("t", "nodes", random.random(mesh.size("nodes")))]
    dats += [Dat("v", s.name, random.random((s.size, 3))) for s in mesh.cell_sets]
    mesh = mesh.with_(dats=dats)
    io.write(mesh, tmp_path / "a.vtu", drop=True)
    mesh = io.read(tmp_path / "a.vtu")
    leaves = {s.name: s.size for s in mesh.sets.values() if not s.parts}
    _, order = make_plan(tmp_path, leaves)
    order["cells"] = Ordering.from_new_to_old(
        np.concatenate(
            [order[p.name].new_to_old + i * parts[0].size for i, p in enumerate(parts)]
        )
    )
    new = mesh.renumber(order)
    hashes = mesh.content_hash(), new.content_hash()
    sizes = {s.name: s.size for s in mesh.sets.values()}
    Plan(sizes, order, {}, {}, *hashes).save(tmp_path / "b.plan.h5")
    there, back = there_and_back(tmp_path / "b.plan.h5", tmp_path / "a.vtu")
    found = io.read(there)
    assert np.array_equal(
        found.dat("t", "nodes").values, order["nodes"].apply(dats[0].values)
    )
    returned = io.read(back)
    assert returned.content_hash() == hashes[0]
    for d in mesh.dats:
        assert returned.dat(d.name, d.set).values.tobytes() == d.values.tobytes()
    with pytest.raises(MeshprepError, match="is in the order of the plan already"):
        move_files(tmp_path / "b.plan.h5", [there])
    io.write(generate("mixed2d", nx=4, ny=4), tmp_path / "other.vtu", drop=True)
    with pytest.raises(MeshprepError, match="holds another mesh"):
        move_files(tmp_path / "b.plan.h5", [tmp_path / "other.vtu"])


def test_sets_of_one_size_are_asked_for(tmp_path):
    plan, order = make_plan(tmp_path)
    np.save(tmp_path / "q.npy", np.arange(5))
    with pytest.raises(
        MeshprepError, match="the sets cells and twins: say which with --sets cell"
    ):
        there_and_back(plan, tmp_path / "q.npy")
    there, _ = there_and_back(plan, tmp_path / "q.npy", declared={"*": "twins"})
    assert np.load(there).tolist() == order["twins"].new_to_old.tolist()
    for declared, message in (
        (
            {"*": "nodes"},
            "the array has 5 rows, but set 'nodes' that it is declared on has 7",
        ),
        ({"*": "walls"}, "the array is declared as walls, but the plan has no set 'walls'"),
        ({"*": "none"}, "nothing in it has as many rows"),
    ):
        with pytest.raises(MeshprepError, match=message):
            there_and_back(plan, tmp_path / "q.npy", declared=declared)
    np.save(tmp_path / "two.npy", np.arange(2))
    unlike = {
        n: Ordering.from_new_to_old(np.array(o))
        for n, o in zip("ab", ([0, 1], [1, 0]), strict=True)
    }
    Plan({"a": 2, "b": 2}, unlike, {}, {}, "", "").save(tmp_path / "small.plan.h5")
    with pytest.raises(MeshprepError, match="the sets a and b"):
        there_and_back(tmp_path / "small.plan.h5", tmp_path / "two.npy")
    equal = dict.fromkeys(("cells", "twins"), order["cells"])
    Plan({"cells": 5, "twins": 5}, equal, {}, {}, "", "").save(tmp_path / "same.plan.h5")
    there, _ = there_and_back(tmp_path / "same.plan.h5", tmp_path / "q.npy")
    assert np.load(there).tolist() == order["cells"].new_to_old.tolist()


def test_all_files_or_none(tmp_path, capsys):
    plan, _ = make_plan(tmp_path)
    np.save(tmp_path / "a.npy", np.arange(7))
    np.save(tmp_path / "b.npy", np.arange(6))
    words = ["apply", str(plan), str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]
    assert main(words) == 2
    assert "b.npy: nothing in it" in capsys.readouterr().err
    assert not (tmp_path / "a-reordered.npy").exists()
    assert main([*words[:3], "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert told["moved"] == [{"name": "*", "place": "nodes", "rows": 7}]
    assert main(words[:3]) == 2
    assert "use --force" in capsys.readouterr().err
    assert main(["restore", str(plan), str(tmp_path / "a-reordered.npy")]) == 0
    assert "a-reordered-restored.npy" in capsys.readouterr().out
    restored = np.load(tmp_path / "a-reordered-restored.npy")
    assert restored.tolist() == list(range(7))
    assert main([*words, "-o", "c.npy"]) == 2
    assert main([*words[:3], "-o", str(tmp_path / "c.npz")]) == 2


def test_what_a_mesh_cannot_keep_is_dropped_where_that_is_accepted(tmp_path, capsys):
    io.write(generate("delaunay2d", cells=40), tmp_path / "a.vtk", drop=True)
    assert main(["plan", str(tmp_path / "a.vtk"), "-q", "--loop", "cells:nodes"]) == 0
    data = (tmp_path / "a.vtk").read_bytes()
    units = b"METADATA\nINFORMATION 1\nNAME UNITS_LABEL LOCATION vtkDataArray\nDATA K\n\n"
    (tmp_path / "b.vtk").write_bytes(
        data + b"CELL_DATA 52\nSCALARS T bit\n1234567\n" + units
    )
    words = ["apply", str(tmp_path / "a.plan.h5"), str(tmp_path / "b.vtk"), "-q"]
    assert main(words) == 2
    told = "the note UNITS_LABEL on 'T' (not read)"
    assert f"{told}: use --drop" in capsys.readouterr().err
    assert main([*words, "--drop", "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == f"meshprep: dropped, b-reordered.vtk is written without it: {told}\n"
    assert json.loads(out)[0]["dropped"] == [told]
    assert (
        io.read(tmp_path / "b-reordered.vtk").content_hash()
        == io.read(tmp_path / "a.vtk").content_hash()
    )
