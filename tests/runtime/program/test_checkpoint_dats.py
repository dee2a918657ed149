"""Checkpoints and dats that a program makes or changes outside of its loops."""

import numpy as np
import pytest

from meshprep_runtime import Access, Arg, Loop, MeshprepError, Program


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.h5"


@pytest.mark.parametrize(
    "other",
    [(("old", "q"), "aos", (3, 2)), (("q", "old"), "soa", (2, 3))],
    ids=["order", "layout"],
)
def test_other_dats_are_refused(slow, path, other):
    """Dats go by the order in which they are made: others would get each other's values."""
    loop = Loop("swap", "cells", (Arg("q", Access.RW, 2), Arg("old", Access.RW, 2)))
    plan = slow.plan({"cells": 3}, {}, [loop])

    def go_on(names, layout, shape):
        program = Program(plan, checkpoint=path, every=1000.0)
        dats = {
            n: program.dat("cells", 2, values=np.full(shape, v), layout=layout)
            for n, v in ((n, {"q": 1.0, "old": 5.0}[n]) for n in names)
        }
        run = program.loop(advance, "swap", strategy="sequential")
        for n in range(4):
            if n == 2:
                program.checkpoint_here()
            run(**dats)
        return dats["q"].values().reshape(-1)[0], dats["old"].values().reshape(-1)[0]

    expected = go_on(("q", "old"), "aos", (3, 2))
    assert path.exists()
    assert go_on(("q", "old"), "aos", (3, 2)) == expected
    with pytest.raises(
        MeshprepError, match=r"call 1 is of loop 'swap', .* or other dats: remove"
    ):
        go_on(*other)


def change_by_values(q, factor):
    q.values(write=True)[:] *= factor


def change_by_another_array(q, factor):
    q.array = q.array * factor


def change_by_touch(q, factor):
    q.array[:] *= factor
    q.touch()


@pytest.mark.parametrize(
    "change",
    [change_by_values, change_by_another_array, change_by_touch],
    ids=lambda f: f.__name__,
)
def test_what_the_program_changes_itself_is_changed_once(slow, path, change):
    """Between the entry of a checkpoint and the loop that meets the dat; another is never met."""
    read = Arg("w", Access.READ)
    loops = [
        Loop("first", "cells", (Arg("p", Access.RW),)),
        Loop("second", "cells", (Arg("q", Access.RW), read)),
    ]
    plan = slow.plan({"cells": 3}, {}, loops)

    def steps(stop, checkpoint):
        program = Program(plan, checkpoint=checkpoint, every=1000.0)
        p, q, w = (program.dat("cells", values=np.full(3, v)) for v in (1.0, 2.0, 3.0))
        first, second = (
            program.loop(k, name, strategy="sequential")
            for k, name in ((grow, "first"), (add_to, "second"))
        )
        for n in range(6):
            if n == stop:
                return None
            if n == 3 and checkpoint:
                program.checkpoint_here()
            first(p=p)
            change(q, 3.0)
            w.values(write=True)[:] += q.values()
            second(q=q, w=w)
        return [dat.values().tolist() for dat in (p, q, w)]

    expected = steps(None, None)
    assert steps(5, path) is None
    assert path.exists()
    assert steps(None, path) == expected


def grow(p):
    p[0] += 1.0


def add_to(q, w):
    q[0] += w[0]


def advance(q, old):
    for k in range(2):
        q[k] = 2.0 * q[k] + old[k]
        old[k] += 1.0


def grow_to(p, limit):
    if p[0] >= limit[0]:
        raise ValueError("too large")
    p[0] += 1.0


def test_a_program_that_catches_exceptions_of_its_loops_goes_on_where_it_was(slow, path):
    """A loop that raised is not in a checkpoint: a new run would hand out the next one for it."""
    limit = Arg("limit", Access.READ, is_global=True)
    plan = slow.plan(
        {"cells": 3}, {}, [Loop("grow", "cells", (Arg("p", Access.RW), limit))]
    )

    def steps(stop, checkpoint):
        program = Program(plan, checkpoint=checkpoint, every=0.0)
        p = program.dat("cells", values=np.zeros(3))
        loop = program.loop(grow_to, "grow", strategy="sequential")
        for n in range(10):
            if n == stop:
                return None
            try:
                loop(p=p, limit=3.0)
            except ValueError:
                p.values(write=True)[:] = 1.0
        return p.values().tolist()

    expected = steps(None, None)
    for stop in (2, 6, 9):
        assert steps(stop, path) is None
    assert path.exists()
    assert steps(None, path) == expected
