"""Files of values that cannot be moved: one line, and nothing is written."""

import numpy as np
import pytest
from field_files import make_plan, npy, npz

from meshprep.io.fields import move_files
from meshprep_runtime import MeshprepError


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npy", b"rubbish", "not a readable NumPy file"),
        ("a.npz", b"PK\x03\x04", "not a readable NumPy file"),
        ("a.h5", b"rubbish", "not a readable HDF5 file"),
        ("a.h5", b"meshprep-plan 1\n", "is a plan"),
        (
            "a.h5",
            b"meshprep-parts 1\n",
            "is a mesh in parts: name the file with the values",
        ),
        ("a.npy", 2 * npy(np.arange(7)), "holds more than one array"),
        ("a.npz", npz(("q.npy", 7), ("q", 5)), "has two members of one name"),
        ("a.doc", b"x", "cannot tell the format.* use .npy .npz .h5"),
    ],
)
def test_bad_files(tmp_path, name, content, message):
    plan, _ = make_plan(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(MeshprepError, match=f"{name}.*{message}"):
        move_files(plan, [tmp_path / name])
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, "a.plan.h5"])


def test_arrays_of_python_objects_are_not_unpacked(tmp_path):
    plan, _ = make_plan(tmp_path)
    np.save(tmp_path / "a.npy", np.array([{}] * 7, dtype=object), allow_pickle=True)
    with pytest.raises(MeshprepError, match="not a readable NumPy file"):
        move_files(plan, [tmp_path / "a.npy"])


def test_damaged_arrays_are_refused_in_one_line(tmp_path):
    plan, _ = make_plan(tmp_path)
    np.save(tmp_path / "a.npy", np.arange(7.0))
    whole = (tmp_path / "a.npy").read_bytes()
    random = np.random.default_rng(0)
    refused = []
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[random.integers(6, 70)] = random.integers(256)
        (tmp_path / "a.npy").write_bytes(damaged)
        try:
            move_files(plan, [tmp_path / "a.npy"], overwrite=True)
        except MeshprepError as error:
            refused.append(str(error))
    assert len(refused) > 20
    assert not any("\n" in text for text in refused)
