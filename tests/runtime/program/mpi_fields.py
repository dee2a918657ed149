"""Run by mpiexec on four ranks: files that two and four ranks write, and one that they cannot."""

import json
import resource
import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI
from rank_programs import refused

from meshprep_runtime import DistributedPlan
from meshprep_runtime.program import fields
from meshprep_runtime.program.mpi import FileOfMpi


def write(comm, parts, path):
    """Write two fields; returns what rank 0 has fetched, as bytes."""
    plan = DistributedPlan.load(parts, comm)
    numbers = plan.numbers("cells")
    q = plan.dat("cells", 3, values=np.sqrt(numbers[:, None] + np.arange(3.0)))
    squares = plan.dat("cells", 1, "i4", values=(numbers**2).astype("i4"))
    plan.write_fields(path, {"q": q, "squares": squares})
    fetched = [plan.fetch(dat) for dat in (q, squares)]
    if comm.rank == 0:
        for name, values in zip(("q", "squares"), fetched, strict=True):
            np.save(path.with_suffix(f".{name}.npy"), values)
    return type(fields.open_shared(plan.ranks, path)) is FileOfMpi


def write_more_than_allowed(comm, parts, path):
    """What is told where the system lets the last rank write 100 bytes to a file."""
    plan = DistributedPlan.load(parts, comm)
    q = plan.dat("cells", 3)
    if comm.rank == comm.size - 1:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
    return refused(comm, lambda _: plan.write_fields(path, {"q": q}))


def main(parts, folder):
    """Write on two ranks, then on four."""
    fields.ELEMENTS_AT_ONCE = 50
    world = MPI.COMM_WORLD
    by_mpi = []
    for ranks in (2, 4):
        comm = world.Split(0 if world.rank < ranks else MPI.UNDEFINED, world.rank)
        if comm == MPI.COMM_NULL:
            continue
        by_mpi += comm.allgather(write(comm, parts, folder / f"{ranks}.h5"))
        comm.Free()
    told = write_more_than_allowed(world, parts, folder / "full.h5")
    every = world.allgather(told)
    if world.rank == 0:
        sys.stdout.write(json.dumps({"by MPI": by_mpi, "told": every}))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
