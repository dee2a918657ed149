"""Run by mpiexec on four ranks: one matrix on one, two and four of them."""

import json
import sys

from matrix_of_ranks import same_on
from mpi4py import MPI

world = MPI.COMM_WORLD
found = {}
for ranks in (1, 2, 4):
    comm = world.Split(world.rank >= ranks, world.rank)
    if world.rank < ranks:
        found[ranks] = same_on(comm)
every = world.gather(found)
if world.rank == 0:
    sys.stdout.write(json.dumps({n: [f[n] for f in every if n in f] for n in (1, 2, 4)}))
