"""A program killed and started again: stopped_program.py FOLDER STEPS TIMES SECONDS [KIND]."""

import json
import os
import random
import signal
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

from meshprep_runtime import Access, Arg, DistributedPlan, Loop, Plan, Program

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


def begin(plan, path, **options):
    """A program with its dats, what it sums, and its loops."""
    program = Program(plan, checkpoint=path, **options)
    on_ranks = isinstance(plan, DistributedPlan)
    own = plan.numbers("cells") if on_ranks else np.arange(plan.sizes["cells"])
    q = program.dat("cells", 1, "i8", values=own % 17)
    dats = [q, *(program.dat("cells", 1, "i8") for _ in range(3))]
    loops = [program.loop(k, k.__name__, strategy="sequential") for k in (gather, take)]
    return program, dats, program.reduced(0, 1, "i8"), loops


def run(plan, path, steps, stop=None, **options):
    """The state after some steps; as a program does it that knows nothing of checkpoints."""
    _, (q, res, old, some), total, loops = begin(plan, path, **options)
    for step in range(steps):
        if step == stop:
            return None
        loops[0](q=q, res=res)
        loops[1](res=res, q=q, old=old, some=some, total=total)
        # what happens depends on a global
        if total.value[0] % 2:
            loops[0](q=q, res=res)
    return [d.values().ravel().tolist() for d in (q, res, old, some)] + total.value.tolist()


def chain_of(program, kind, old, res):
    """Two loops that wait, or run in tiles of a kind."""
    options = {
        "loops": {},
        "tiles": {"tile_size": 4, "dropped": [old], "zero": [res]},
        "auto": {"tile_size": "auto"},
    }
    return program.chain(2, **options[kind])


def run_chain(kind, plan, path, steps, stop=None, **options):
    """As :func:`run`, with another condition; ``res`` is zero between the steps, but not before."""
    program, (q, res, old, some), total, loops = begin(plan, path, **options)
    res.values(write=True)[:] = 1
    given = {"res": res, "q": q, "old": old, "some": some, "total": total}
    loops[1](**given)
    with chain_of(program, kind, old, res) as chain:
        for step in range(steps):
            if step == stop:
                return None
            total.set(total.value % 1000)
            loops[0](q=q, res=res)
            loops[1](**given)
            if total.value[0] % 2:
                loops[1](**given)
                chain.flush()
    loops[1](**given)
    return [d.values().ravel().tolist() for d in (q, res, old, some)] + total.value.tolist()


def program_of(kind):
    """The program that runs a chain of a kind, or no chain."""
    return run if kind is None else partial(run_chain, kind)


def finish(folder, steps, kind):
    """Run to the end, and keep the state."""
    state = program_of(kind)(
        Plan.load(folder / "plan.h5"), folder / "run.h5", steps, every=0.0
    )
    (folder / "state.json").write_text(json.dumps(state))


def kill(folder, steps, times, longest, kind=None):
    """Start the program again and again, and end it at random moments.

    Every second time not before it has saved something. Returns how often it was killed, and its
    states where it was faster; it begins anew then.
    """
    rng = random.Random(7)
    states, killed = [], 0
    for n in range(times):
        child = os.fork()
        if child == 0:
            finish(folder, steps, kind)
            os._exit(0)
        for _ in range(20_000 * (n % 2)):
            if (folder / "run.h5").exists():
                break
            time.sleep(0.001)
        time.sleep(longest * rng.random())
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed += os.WIFSIGNALED(status)
        if os.WIFEXITED(status):
            states.append(json.loads((folder / "state.json").read_text()))
            for path in folder.glob("run.h5*"):
                path.unlink()
    finish(folder, steps, kind)
    return killed, [*states, json.loads((folder / "state.json").read_text())]


if __name__ == "__main__":
    place, number, *rest = Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[5:]
    # compiled here, so that what is killed is what matters
    program_of(*rest or [None])(Plan.load(place / "plan.h5"), None, 2)
    found = kill(place, number, int(sys.argv[3]), float(sys.argv[4]), *rest)
    sys.stdout.write(json.dumps(found))
