"""The program as one of several ranks, which keeps what it cost.

mpiexec -n R python -m mpi4py benchmarks/one_rank.py FOLDER WORDS
"""

import json
import resource
import sys
from pathlib import Path

from mpi4py import MPI

from meshprep_cli.main import main

if __name__ == "__main__":
    code = main(sys.argv[2:])
    used = resource.getrusage(resource.RUSAGE_SELF)
    found = {"peak MB": used.ru_maxrss / 1024, "processor s": used.ru_utime + used.ru_stime}
    Path(sys.argv[1], f"{MPI.COMM_WORLD.rank}.json").write_text(json.dumps(found))
    sys.exit(code)
