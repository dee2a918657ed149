"""Fields in files by the numbers of the mesh, from ranks to ranks; what such files may be."""

import errno

import h5py
import numpy as np
import pytest
from rank_programs import refused

from meshprep_runtime import DistributedPlan, run_ranks
from meshprep_runtime.plan.parts import parts_table
from meshprep_runtime.program import fields
from meshprep_runtime.program.mpi import open_shared


def test_fields_by_the_numbers_of_the_mesh(airfoil_parts, tmp_path):
    """Written by four ranks, read by seven and by one; fetched on one."""
    path = tmp_path / "fields.h5"
    cells = np.arange(
        parts_table(airfoil_parts("exec"), 4).description["sets"]["cells"] * 2.0
    )
    cells = cells.reshape(-1, 2)

    def write(comm):
        plan = DistributedPlan.load(airfoil_parts("exec"), comm)
        n = plan.sizes["nodes"]
        q = plan.dat("cells", 2, values=cells[plan.numbers("cells")])
        own = np.ascontiguousarray(cells[plan.numbers("cells")].T)
        soa = plan.dat("cells", 2, values=own, layout="soa")
        ids = plan.dat(
            "nodes", 1, "i4", values=np.arange(n, dtype="i4")[plan.numbers("nodes")]
        )
        plan.write_fields(path, {"q": q, "ids": ids, "soa": soa})
        told = refused(comm, lambda _: plan.write_fields(path, {"q": q}))
        return plan.fetch(q, root=1), told

    found = run_ranks(4, write)
    np.testing.assert_array_equal(found[1][0], cells)
    assert found[0][0] is None
    assert all("exists" in told for _, told in found)
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["q"][:], cells)
        np.testing.assert_array_equal(file["soa"][:], cells)
        nodes = file["ids"][:, 0]
        np.testing.assert_array_equal(nodes, np.arange(nodes.size))

    def again(comm):
        plan = DistributedPlan.load(airfoil_parts("exec"), comm)
        q, soa = plan.dat("cells", 2), plan.dat("cells", 2, layout="soa")
        plan.read_fields(path, {"q": q, "soa": soa})
        np.testing.assert_array_equal(q.array, soa.array.T)
        own = plan.set_part("cells")
        np.testing.assert_array_equal(q.values(), cells[own.original])
        return (
            refused(comm, lambda _: plan.read_fields(path, {"p": q})),
            refused(comm, lambda _: plan.read_fields(path, {"ids": q})),
        )

    for ranks in (1, 7):
        for missing, misfit in run_ranks(ranks, again):
            assert "has no dataset 'p'" in missing
            assert "dataset 'ids' has shape" in misfit


def test_fields_come_from_any_dataset(airfoil_parts, tmp_path, monkeypatch):
    """In chunks, filtered, or behind a user block as in files of MATLAB; run after run."""
    path = tmp_path / "fields.h5"
    monkeypatch.setattr(fields, "ELEMENTS_AT_ONCE", 7)
    with h5py.File(path, "w", userblock_size=512) as file:
        n = parts_table(airfoil_parts("exec"), 4).description["sets"]["cells"]
        file["whole"] = np.arange(float(n))
        file.create_dataset(
            "chunks", data=np.arange(float(n)), chunks=(5,), compression="gzip"
        )
        file.create_group("group")

    def read_them(comm):
        plan = DistributedPlan.load(airfoil_parts("exec"), comm)
        for name in ("whole", "chunks"):
            q = plan.dat("cells")
            plan.read_fields(path, {name: q})
            np.testing.assert_array_equal(q.values(), plan.numbers("cells"))
        return refused(comm, lambda _: plan.read_fields(path, {"group": q}))

    assert all(
        "'group' is a group, must be a dataset" in told for told in run_ranks(4, read_them)
    )


class FullDisk:
    """A file on a disk that takes no more."""

    def __init__(self, file):
        self.file = file
        self.close = file.close

    def write(self, start, values):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_disk_that_is_full_on_one_rank(airfoil_parts, tmp_path, monkeypatch):
    path = tmp_path / "full.h5"
    path.write_text("the file of before")

    def open_file(comm, staged):
        file = open_shared(comm, staged)
        return FullDisk(file) if comm.rank == 2 else file

    def main(comm):
        plan = DistributedPlan.load(airfoil_parts("exec"), comm)
        fields = {"q": plan.dat("cells", 4)}
        return refused(comm, lambda _: plan.write_fields(path, fields, overwrite=True))

    monkeypatch.setattr(fields, "ELEMENTS_AT_ONCE", 100)
    monkeypatch.setattr(fields, "open_shared", open_file)
    (told,) = set(run_ranks(4, main))
    assert told == f"rank 2 of 4: {path}: cannot write: No space left on device"
    # The file of before stays, and nothing lies beside it.
    assert path.read_text() == "the file of before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_one_rank_does_not_see(airfoil_parts, tmp_path, monkeypatch):
    def open_file(comm, staged):
        return open_shared(comm, staged / "elsewhere" if comm.rank == 3 else staged)

    def main(comm):
        plan = DistributedPlan.load(airfoil_parts("exec"), comm)
        fields = {"q": plan.dat("cells")}
        return refused(comm, lambda _: plan.write_fields(tmp_path / "q.h5", fields))

    monkeypatch.setattr(fields, "open_shared", open_file)
    (told,) = set(run_ranks(4, main))
    assert told.startswith(
        f"rank 3 of 4: {tmp_path / 'q.h5'}: this rank cannot write to it"
    )
    assert told.endswith("choose a folder that all of them see")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_files_do_not_depend_on_ranks(airfoil_parts, tmp_path, monkeypatch, at_once):
    """To the byte: written by one, four and seven ranks, in slices of several sizes."""
    monkeypatch.setattr(fields, "ELEMENTS_AT_ONCE", at_once)
    n = parts_table(airfoil_parts("exec"), 4).description["sets"]["cells"]
    values = np.random.default_rng(0).random((n, 3))
    counts = np.arange(n, dtype="i4") ** 2

    def write(comm):
        plan = DistributedPlan.load(airfoil_parts("exec"), comm)
        numbers = plan.numbers("cells")
        q = plan.dat("cells", 3, values=values[numbers])
        squares = plan.dat("cells", 1, "i4", values=counts[numbers])
        path = tmp_path / f"{comm.size}.h5"
        plan.write_fields(path, {"flow/q": q, "squares": squares})

    for ranks in (1, 4, 7):
        run_ranks(ranks, write)
    with h5py.File(tmp_path / "1.h5") as file:
        np.testing.assert_array_equal(file["flow/q"][:], values)
        np.testing.assert_array_equal(file["squares"][:, 0], counts)
    (content,) = {path.read_bytes() for path in tmp_path.iterdir()}
    assert len(content) < values.nbytes + counts.nbytes + 8192
