"""A program with checkpoints, to be killed and started again: python stopped_program.py FOLDER."""

import json
import sys
from pathlib import Path

import numpy as np

from meshprep_runtime import Access, Arg, Loop, Plan, Program

READ, WRITE, RW, INC = Access.READ, Access.WRITE, Access.RW, Access.INC
LOOPS = (
    Loop(
        "gather",
        "edges",
        (
            Arg("q", READ, 1, "i8", "edges->cells", (0, 1)),
            Arg("res", INC, 1, "i8", "edges->cells", (0, 1)),
        ),
    ),
    Loop(
        "take",
        "cells",
        (
            Arg("res", RW, 1, "i8"),
            Arg("q", RW, 1, "i8"),
            Arg("old", WRITE, 1, "i8", full=True),
            Arg("some", WRITE, 1, "i8"),
            Arg("total", INC, 1, "i8", is_global=True),
        ),
    ),
)


def gather(q1, q2, res1, res2):
    res1[0] += q2[0]
    res2[0] += q1[0]


def take(res, q, old, some, total):
    old[0] = q[0]
    if q[0] % 7 == 0:
        some[0] = q[0] + 1
    q[0] = (q[0] + res[0]) % 101
    res[0] = 0
    total[0] += q[0]


def run(plan, path, steps, stop=None, **options):
    """The state after some steps; as a program does it that knows nothing of checkpoints."""
    program = Program(plan, checkpoint=path, **options)
    n = plan.sizes["cells"]
    q = program.dat("cells", 1, "i8", values=np.arange(n) % 17)
    res, old, some = (program.dat("cells", 1, "i8") for _ in range(3))
    total = program.reduced(0, 1, "i8")
    loops = [program.loop(k, k.__name__, strategy="sequential") for k in (gather, take)]
    for step in range(steps):
        if step == stop:
            return None
        loops[0](q=q, res=res)
        loops[1](res=res, q=q, old=old, some=some, total=total)
        # what happens depends on a global
        if total.value[0] % 2:
            loops[0](q=q, res=res)
    return [d.values().ravel().tolist() for d in (q, res, old, some)] + total.value.tolist()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    state = run(Plan.load(folder / "plan.h5"), folder / "run.h5", int(sys.argv[2]), every=0.0)
    (folder / "state.json").write_text(json.dumps(state))
