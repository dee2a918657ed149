"""OP2's files: what meshprep need not understand comes back as it was."""

import h5py
import numpy as np
from op2_files import c_mesh, write_hdf5

from meshprep import io
from meshprep_runtime import Ordering


def test_objects_of_every_kind_stay(tmp_path):
    """Types with names, texts of any length, records, and packed and empty datasets."""
    old_path, new_path = tmp_path / "grid.h5", tmp_path / "new.h5"
    write_hdf5(old_path, c_mesh(), 0)
    record = np.dtype([("n", "<i2"), ("x", "<f8")], align=True)
    with h5py.File(old_path, "a") as file:
        file["kind"] = np.dtype(">i4")
        file["kind"].attrs["unit"] = "m"
        file["texts"] = np.array(["a", "long text"], dtype=h5py.string_dtype())
        file["records"] = np.array([(1, 2.5), (3, 4.5)], record)
        file["nothing"] = h5py.Empty("f4")
        file.create_dataset("packed", data=np.arange(500), chunks=(100,), compression="gzip")
    mesh = io.read(old_path)
    order = np.random.default_rng(0).permutation(mesh.size("cells"))
    io.write(mesh.renumber({"cells": Ordering.from_new_to_old(order)}), new_path)
    with h5py.File(new_path) as new:
        assert new["kind"].dtype == np.dtype(">i4")
        assert new["kind"].attrs["unit"] == "m"
        assert new["texts"].asstr()[()].tolist() == ["a", "long text"]
        assert new["records"][()].tolist() == [(1, 2.5), (3, 4.5)]
        assert new["nothing"][()] == h5py.Empty("f4")
        assert (new["packed"].compression, new["packed"].chunks) == ("gzip", (100,))
        assert new["packed"][()].tolist() == list(range(500))
