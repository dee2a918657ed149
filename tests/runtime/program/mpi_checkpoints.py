"""Run by mpiexec: mpi_checkpoints.py PARTS FOLDER WHAT, which is kill or finish.

A program runs to its end; then again with checkpoints, and rank 1 is killed while it gives one of
them its name. Later it goes on from there, and compares its state with that of the first run.
"""

import json
import os
import signal
import sys
from pathlib import Path

from stopped_program import program_of

from meshprep_runtime import DistributedPlan

STEPS, NAMES = 12, 6


def killed_later():
    """Have this process killed when it renames a file for the sixth time."""
    replace, left = os.replace, [NAMES]

    def killed(*files):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(*files)

    os.replace = killed


def main(parts, folder, what):
    run, plan = program_of(None), DistributedPlan.load(parts)
    state = folder / f"state{plan.comm.rank}.json"
    if what == "kill":
        state.write_text(json.dumps(run(plan, None, STEPS)))
        plan.comm.Barrier()
        if plan.comm.rank == 1:
            killed_later()
    found = run(plan, folder / "run.h5", STEPS, every=0.0)
    same = plan.comm.allgather(found == json.loads(state.read_text()))
    if plan.comm.rank == 0:
        sys.stdout.write(json.dumps(same))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
