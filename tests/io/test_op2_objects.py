"""OP2's files: what meshprep need not understand comes back as it was."""

import h5py
import numpy as np
import pytest
from op2_files import c_mesh, write_hdf5
from texts import refusal

from meshprep import io
from meshprep_runtime import MeshprepError, Ordering


def written(path):
    """What a file becomes whose cells have another order."""
    mesh, new = io.read(path), path.with_name("new.h5")
    order = np.random.default_rng(0).permutation(mesh.size("cells"))
    io.write(mesh.renumber({"cells": Ordering.from_new_to_old(order)}), new)
    return order, new


def test_objects_of_every_kind_stay(tmp_path):
    """Types with names, texts of any length, records, and packed and empty datasets."""
    old_path = tmp_path / "grid.h5"
    write_hdf5(old_path, c_mesh(), 0)
    record = np.dtype([("n", "<i2"), ("x", "<f8")], align=True)
    with h5py.File(old_path, "a") as file:
        file["kind"] = np.dtype(">i4")
        file["kind"].attrs["unit"] = "m"
        file["texts"] = np.array(["a", "long text"], dtype=h5py.string_dtype())
        file["records"] = np.array([(1, 2.5), (3, 4.5)], record)
        file["nothing"] = h5py.Empty("f4")
        file.create_dataset(
            "packed", data=np.arange(500), chunks=(100,), compression="gzip"
        )
    _, new_path = written(old_path)
    with h5py.File(new_path) as new:
        assert new["kind"].dtype == np.dtype(">i4")
        assert new["kind"].attrs["unit"] == "m"
        assert new["texts"].asstr()[()].tolist() == ["a", "long text"]
        assert new["records"][()].tolist() == [(1, 2.5), (3, 4.5)]
        assert new["nothing"][()] == h5py.Empty("f4")
        assert (new["packed"].compression, new["packed"].chunks) == ("gzip", (100,))
        assert new["packed"][()].tolist() == list(range(500))


@pytest.mark.parametrize("kind", ["external", "virtual", "link"])
def test_values_in_other_files_are_refused(kind, tmp_path):
    """Raw external storage may be any file of the machine, and was copied."""
    path = tmp_path / "grid.h5"
    write_hdf5(path, c_mesh(), 0)
    layout = h5py.VirtualLayout((7,), "<f8")
    layout[:] = h5py.VirtualSource("other.h5", "x", shape=(7,))
    with h5py.File(path, "a") as file:
        if kind == "external":
            file.create_dataset("more", (5,), "<f8", external=[("secret", 0, 40)])
        elif kind == "virtual":
            file.create_virtual_dataset("more", layout)
        else:
            file["more"] = h5py.ExternalLink("other.h5", "/x")
    refusal(path, "the values of 'more' are in other files|'more' leads into another file")


def test_a_dataset_that_is_not_there_is_refused_before_it_takes_memory(tmp_path):
    path = tmp_path / "grid.h5"
    write_hdf5(path, c_mesh(), 0)
    with h5py.File(path, "a") as file:
        file.create_dataset("more", (10**9,), "<f8", chunks=(1 << 20,), fillvalue=1)
    refusal(path, "'more' declares 8000000000 bytes that are not there")


def test_attributes_that_refer_to_objects_are_told(tmp_path):
    """Dimension scales, as netCDF writes them, and references in records; lists stay."""
    path, new = tmp_path / "grid.h5", tmp_path / "new.h5"
    write_hdf5(path, c_mesh(), 0)
    record = np.dtype([("n", "<i4"), ("to", h5py.ref_dtype)])
    with h5py.File(path, "a") as file:
        file["p_adt"].make_scale("cell")
        file["p_q"].dims[0].attach_scale(file["p_adt"])
        file["gam"].attrs.create("see", np.array([(3, file["p_q"].ref)], record))
        file["gam"].attrs["rows"] = file["p_q"].regionref[2:5]
        file.attrs["lists"] = np.array([np.arange(3), np.arange(2)], h5py.vlen_dtype("i4"))
    said = ["'see' of 'gam'", "'rows' of 'gam'", "'REFERENCE_LIST' of 'p_adt'"]
    said.append("'DIMENSION_LIST' of 'p_q'")
    mesh = io.read(path)
    for text in said:
        with pytest.raises(MeshprepError, match=f"attribute {text}, which refers.*--drop"):
            io.write(mesh, new)
    assert len(io.write(mesh, new, drop=True)) == len(said)
    with h5py.File(new) as file:
        assert [one.tolist() for one in file.attrs["lists"]] == [[0, 1, 2], [0, 1]]
        assert "see" not in file["gam"].attrs


def test_references_that_cannot_be_kept_are_refused(tmp_path):
    path = tmp_path / "grid.h5"
    write_hdf5(path, c_mesh(), 0)
    with h5py.File(path, "a") as file:
        file["to"] = np.array([file["gam"].ref], h5py.ref_dtype)
    refusal(path, "dataset 'to' holds references")


def test_dats_of_records_and_of_arrays_move_and_keep_their_type(tmp_path):
    path, record = tmp_path / "grid.h5", np.dtype([("n", "<i2"), ("x", "<f8")])
    n = write_hdf5(path, c_mesh(), 0)["cells"]
    records = np.zeros(n, record)
    records["n"], records["x"] = np.arange(n), np.arange(n) / 2
    records["x"][3] = np.nan
    pairs = np.arange(2.0 * n).reshape(n, 2)
    with h5py.File(path, "a") as file:
        file["records"] = records
        file["big"] = np.arange(n, dtype=">f8")
        for name, shape in (("alone", (n,)), ("column", (n, 1))):
            file.create_dataset(name, shape, np.dtype(("<f8", (2,))))[...] = pairs.reshape(
                *shape, 2
            )
    order, new_path = written(path)
    assert io.read(path).dat("big", "cells").values.dtype.isnative
    with h5py.File(path) as old, h5py.File(new_path) as new:
        for name in ("big", "records", "alone", "column"):
            assert new[name].id.get_type() == old[name].id.get_type()
            assert new[name].shape == old[name].shape
            assert new[name][()].tobytes() == old[name][()][order].tobytes()
