"""Fields in files by the numbers of the mesh, from ranks to ranks; what such files may be."""

import errno

import h5py
import numpy as np
from rank_programs import refused

from meshprep_runtime import DistributedPlan, run_ranks
from meshprep_runtime.plan.parts import parts_table
from meshprep_runtime.program import fields


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


def test_a_disk_that_is_full(airfoil_parts, tmp_path, monkeypatch):
    def full(file, *_):
        if file is not None:
            raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "full.h5"

    def main(comm):
        plan = DistributedPlan.load(airfoil_parts("exec"), comm)
        dat = plan.dat("cells", 4)
        return refused(comm, lambda _: plan.write_fields(path, {"q": dat}))

    monkeypatch.setattr(fields, "ELEMENTS_AT_ONCE", 100)
    monkeypatch.setattr(fields, "_write_run", full)
    told = run_ranks(4, main)
    assert set(told) == {"rank 0 of 4: OSError: [Errno 28] No space left on device"}
    assert not path.exists()
