"""The splits that tests of files of parts make, and their parts read back."""

from meshprep.distribute.job.run import SplitJob
from meshprep.loops.options import Options
from meshprep.loops.requests import simple_request
from meshprep_runtime.plan.parts import parts_table, read_part

LOOPS = tuple(map(simple_request, ("edges->cells", "cells->nodes")))
SMALL = Options(block_size=64)


def job(mesh, output, parts, **values):
    return SplitJob(mesh, output, parts, LOOPS, options=SMALL, **values)


def all_parts(path, count):
    table = parts_table(path, count)
    return [read_part(path, table, p) for p in range(count)], table.description["sets"]
