"""Loops on ranks of one process: whole numbers bit-equal to one rank, whatever the owners."""

import effort
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from integer_loops import CC, DIMS, INC, LOOPS, READ, REVERSIBLE, SETS, dat, mark
from rank_programs import (
    KERNELS,
    PROGRAM,
    extremes_on,
    on_one_rank,
    on_ranks,
    random_mesh,
    start_values,
)
from slow_parts import World

from meshprep.distribute.build.figures import batch_figures, split_figures
from meshprep.distribute.halos import ghosts as halos
from meshprep.distribute.job.split import SplitOptions, split_by_owners
from meshprep.distribute.subject import SplitSubject
from meshprep.loops.options import Options
from meshprep.loops.requests import LoopSpec
from meshprep_runtime import DistributedPlan, Loop, Program, SetMap, run_ranks
from meshprep_runtime.program import classes
from meshprep_runtime.program.ranks import HEAD, RankGroup


def compare(seed, cells, parts, names, slow, strategy="sequential", device=None, **options):
    rng = np.random.default_rng(seed)
    sizes, tables = random_mesh(rng, cells)
    values = start_values(rng, sizes)
    owner = {s: rng.integers(0, parts, n) for s, n in sizes.items()}
    world = World(sizes, tables, list(LOOPS.values()), owner, parts, **options)
    made = [world.part(p, slow.variant) for p in range(parts)]
    expected, sums = on_one_rank(sizes, tables, values, names)
    ours, reduced, timings = on_ranks(made, values, names, strategy, seed, device)
    assert ours == expected
    assert all(one == sums for one in reduced)
    return timings


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    monkeypatch.setattr(classes, "LEAST_ELEMENTS", 2)
    monkeypatch.setattr(classes, "LEAST_BLOCKS", 1)


@pytest.mark.parametrize("strategy", ["auto", "sequential", "hierarchical"])
@pytest.mark.parametrize("parts", effort.first([3, 1, 2, 9]))
def test_all_loops(slow, parts, strategy):
    compare(parts, 20, parts, PROGRAM, slow, strategy)
    compare(
        parts,
        20,
        parts,
        PROGRAM,
        slow,
        strategy,
        increments=dict.fromkeys(REVERSIBLE, "reverse"),
    )
    compare(
        parts, 20, parts, PROGRAM, slow, strategy, partial=("bedges->cells", "edges->nodes")
    )


def test_more_ranks_than_elements(slow):
    compare(0, 5, 9, PROGRAM, slow)
    compare(1, 7, 9, PROGRAM, slow, increments={"flux": "reverse"})


@pytest.mark.slow
def test_64_ranks(slow):
    compare(64, 100, 64, ["flux", "update", "areas", "spread", "flux", "mark"], slow)


def split_mesh(parts, loops, increments):
    """The builder of a random mesh in parts, and values of the dats of the whole."""
    rng = np.random.default_rng(parts)
    sizes, tables = random_mesh(rng, 30)
    values = start_values(rng, sizes)
    owners = {s: rng.integers(0, parts, n).astype(np.int32) for s, n in sizes.items()}
    maps = {m: SetMap(m, *m.split("->"), t) for m, t in tables.items()}
    subject = SplitSubject(sizes, maps, tuple(map(LoopSpec, loops)))
    how = SplitOptions(increments=increments)
    builder = split_by_owners(subject, owners, parts, how, Options(block_size=4)).builder
    return builder, values, (sizes, tables)


@pytest.mark.parametrize("increments", ["exec", "reverse", "auto"])
@pytest.mark.parametrize("parts", effort.first([5, 2]))
def test_parts_that_split_makes(parts, increments):
    # what it writes cannot be sent back
    left_out = {"mark"} if increments == "reverse" else set()
    loops = [loop for loop in LOOPS.values() if loop.name not in left_out]
    names = [name for name in PROGRAM if name not in left_out]
    builder, values, whole = split_mesh(parts, loops, increments)
    made = [builder.build(p) for p in range(parts)]
    expected, sums = on_one_rank(*whole, values, names)
    ours, reduced, _ = on_ranks(made, values, names, "hierarchical")
    assert ours == expected
    assert all(one == sums for one in reduced)


def both(q, q1, near1):
    near1[0] += q[0] + q1[1]


def twice(a1, a2, near1, near2):
    near1[0] += a2[0]
    near2[0] += a1[0]


# A dat that is read directly and through a map, and one that is added to by two arguments.
MORE = {
    both: Loop(
        "both", "cells", (dat("q", READ), dat("q", READ, CC, 1), dat("near", INC, CC, 0))
    ),
    twice: Loop(
        "twice",
        "cells",
        (dat("a", READ, CC, 0, 1), dat("near", INC, CC, 0), dat("near", INC, CC, 1)),
    ),
}


@pytest.mark.parametrize("increments", ["exec", "reverse"])
@pytest.mark.parametrize("partial", [0, 10])
def test_a_call_sends_what_the_figures_of_a_split_say(increments, partial, monkeypatch):
    """Every dat has changed since; a message begins with a head."""
    monkeypatch.setattr(halos, "PARTIAL", partial)
    loops = {**LOOPS, **MORE}
    kernels = {
        loop.name: k for k, loop in loops.items() if (k, increments) != (mark, "reverse")
    }
    builder, values, _ = split_mesh(3, [loops[k] for k in kernels.values()], increments)
    parts = [builder.build(p) for p in range(3)]

    def main(comm):
        plan = DistributedPlan(parts[comm.rank], comm)
        program, sent = Program(plan), {}
        for name, kernel in kernels.items():
            args = {a.name: a for a in loops[kernel].args}
            on = {n: SETS.get(n, "cells") for n, a in args.items() if not a.is_global}
            dats = {
                n: program.dat(s, DIMS[n], "i8", values=values[n][plan.numbers(s)])
                for n, s in on.items()
            }
            for one in dats.values():
                one.fresh.clear()
            loop = program.loop(kernel, name, strategy="sequential")
            loop(
                **dats, **{n: np.zeros(a.dim, "i8") for n, a in args.items() if a.is_global}
            )
            sent[name] = loop.times.messages, loop.times.sent_bytes
        return sent

    found = run_ranks(3, main)
    said = split_figures([batch_figures(builder.batch(range(3)))])["loops"]
    for name in kernels:
        messages, total = np.sum([one[name] for one in found], axis=0).tolist()
        assert total - HEAD * messages == said[name]["bytes"], name


@pytest.mark.slow
@pytest.mark.parametrize("increments", ["exec", "reverse"])
def test_dats_on_a_gpu(slow, device, needs_gxx, increments):
    """Ranks 0 and 2 have theirs on a GPU, rank 1 on the host; partial lists, too."""
    names = ["flux", "update", "flux", "mark", "spread", "flux"]
    options = {"increments": {"flux": increments}, "partial": ("bedges->cells",)}
    compare(3, 9, 3, names, slow, "auto", device, **options)


@settings(
    max_examples=effort.examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(3, 14),
    st.integers(1, 6),
    st.lists(st.sampled_from(list(KERNELS)), min_size=1, max_size=8),
    st.sets(st.sampled_from(REVERSIBLE)),
    st.sets(
        st.sampled_from(["edges->cells", "edges->nodes", "bedges->cells", "cells->nodes"])
    ),
    st.sampled_from(["auto", "sequential", "hierarchical"]),
)
def test_any_program(slow, seed, cells, parts, names, back, partial, strategy):
    increments = dict.fromkeys(back, "reverse")
    options = {"increments": increments, "partial": tuple(partial)}
    compare(seed, cells, parts, names, slow, strategy, **options)


def test_least_and_largest_floats_are_numpys():
    assert run_ranks(3, extremes_on) == [True] * 3


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_each_rank_gets_what_every_rank_has_for_it(ranks):
    def main(comm):
        group = RankGroup(comm, None, "the test")
        return group.alltoall([(comm.rank, other, "x" * other) for other in range(ranks)])

    found = run_ranks(ranks, main)
    for rank, received in enumerate(found):
        assert received == [(sender, rank, "x" * rank) for sender in range(ranks)]
