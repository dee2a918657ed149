"""Run by mpiexec: one rank fails, or does something else, while the others wait for it."""

import os
import signal
import sys
import time

from mpi4py import MPI

from meshprep_runtime import DistributedPlan, Program

timeout = 3.0 if sys.argv[2] in ("absent", "late") else None
if sys.argv[2] == "absent" and MPI.COMM_WORLD.rank == 1:
    time.sleep(20)
plan = DistributedPlan.load(sys.argv[1], timeout=timeout)
program = Program(plan)
dat = program.dat("cells")
if sys.argv[2] in ("exit", "late", "other"):
    if plan.comm.rank == 1:
        if sys.argv[2] == "exit":
            sys.exit(0)
        if sys.argv[2] == "other":
            program.timings()
        time.sleep(20)
    plan.fetch(dat)
if plan.comm.rank == 1:
    if sys.argv[2] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise ValueError("no such cell")
plan.comm.Barrier()
time.sleep(600)
