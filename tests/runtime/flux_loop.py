"""A loop over edges, and what tuning it may have found."""

from dataclasses import replace

from meshprep_runtime import Access, Arg
from meshprep_runtime.plan.tuned import CPU, GPU, Machine, Trial, Tuned

READ, INC = Access.READ, Access.INC
FLUX = (
    Arg("x", READ, 2, "f8", "edges->nodes", (0, 1)),
    Arg("q", READ, 3, "f8", "edges->cells", (0, 1)),
    Arg("w", READ, 1, "f8"),
    Arg("res", INC, 3, "f8", "edges->cells", (0, 1)),
)


def flux(x1, x2, q1, q2, w, res1, res2):
    for k in range(3):
        f = w[0] * (x1[0] - x2[1]) * (q1[k] + q2[k])
        res1[k] += f
        res2[k] -= f


def trial(strategy="sequential", variant="", soa=(), seconds=1.0):
    return Trial(strategy, variant, soa, seconds, seconds, 0.0, 3)


def entry(machine, *trials, kernel="flux", measured=True):
    return Tuned(machine, kernel, measured, trials, "2026-01-01T00:00:00+00:00")


A, B = Machine(CPU, "a", 2), Machine(GPU, "b")


def with_tuned(plan, *entries):
    return replace(plan, tuned=entries)
