"""Run by mpiexec: one rank fails while the others wait for it."""

import os
import signal
import sys
import time

from meshprep_runtime import DistributedPlan

plan = DistributedPlan.load(sys.argv[1])
if plan.comm.rank == 1:
    if sys.argv[2] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise ValueError("no such cell")
plan.comm.Barrier()
time.sleep(60)
