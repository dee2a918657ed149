"""Thread blocks with fewer threads than elements: each thread runs several, round by round."""

from dataclasses import replace

import effort
import numpy as np
import pytest
from cuda_loops import (
    BODY,
    LAYOUT,
    WAYS,
    arrays,
    check,
    expected,
    laid_out,
    loop_of,
    random_plan,
    run_and_check,
    uploaded,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cuda_turns import arrays as turns_arrays
from test_cuda_turns import body as turns_body
from test_cuda_turns import expected as turns_expected
from test_cuda_turns import turns_plan

from meshprep_cuda_check.checked import CheckError, run_checked
from meshprep_runtime import MeshprepError
from meshprep_runtime.cuda import STRATEGIES, program
from meshprep_runtime.plan.tuned import GPU, Machine, Trial, Tuned

# Neither a divisor of the block sizes nor a whole warp.
THREADS = 5
IN_BLOCKS = [(s, c) for s, c in WAYS if STRATEGIES[s].blocks]
# How sums of a block reach memory has nothing to do with rounds.
SOME = [(s, c) for s, c in IN_BLOCKS if c == "colours" or s == "hierarchical"]
REST = [pytest.param(*way, marks=pytest.mark.long) for way in IN_BLOCKS if way not in SOME]


@pytest.fixture(scope="module")
def plan(slow):
    """Blocks of 16 elements, the last of 10: four rounds of five threads."""
    return random_plan(slow, 90, 60, 16, 3)


def broken(made, old, new):
    assert made.text.count(old) == 1
    return replace(made, text=made.text.replace(old, new))


@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize(("strategy", "commit"), [*effort.first(SOME), *REST])
def test_exactly_the_sums_of_numpy(strategy, commit, slow):
    texts = set()

    @settings(max_examples=effort.examples(12), deadline=None)
    @given(
        n=st.integers(1, 90),
        n_points=st.integers(1, 60),
        block_size=st.integers(THREADS + 1, 32),
        seed=st.integers(0, 99),
    )
    def run(n, n_points, block_size, seed):
        plan = random_plan(slow, n, n_points, block_size, seed)
        made = program(BODY, plan, strategy, commit=commit, layout=LAYOUT, threads=THREADS)
        assert made.threads == THREADS
        run_and_check(made, plan, seed=seed)
        texts.add(made.text)

    run()
    assert len(texts) == 1
    assert "done += 5" in texts.pop()


@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.slow
@pytest.mark.parametrize("layout", [{}, dict.fromkeys("dxa", "soa")], ids=["aos", "soa"])
def test_layouts_and_lists_of_elements(layout, slow):
    plan = random_plan(slow, 70, 40, 16, 3, lists=True)
    made = program(BODY, plan, "hierarchical", layout=layout, threads=THREADS)
    run_and_check(made, plan, layout)


@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize("strategy", ["hierarchical", "block-permute"])
def test_elements_see_what_those_of_earlier_rounds_wrote(strategy, slow):
    plan = turns_plan(slow, 80, 40, 16, 2)
    ours = turns_arrays(plan, 1)
    theirs = turns_expected(plan, ours)
    run_checked(program(turns_body, plan, strategy, threads=THREADS), **ours)
    check(ours, theirs)


@pytest.mark.usefixtures("needs_gxx")
def test_races_of_a_round_are_found(plan):
    """Colours that are all the same, and colours and rounds that do not wait for each other."""
    made = program(BODY, plan, "hierarchical", layout=LAYOUT, threads=THREADS)
    same = {**made.arrays, "thread_colour": np.zeros_like(made.arrays["thread_colour"])}
    with pytest.raises(CheckError, match="race inside a block"):
        run_and_check(replace(made, arrays=same), plan)
    hasty = broken(made, "      }\n      MP_BARRIER();\n", "      }\n")
    with pytest.raises(CheckError, match="race inside a block"):
        run_and_check(hasty, plan)


@pytest.mark.usefixtures("needs_gxx")
def test_what_threads_leave_is_summed_after_the_last_round(plan):
    made = program(BODY, plan, "staged-gather", layout=LAYOUT, threads=THREADS)
    hasty = broken(
        made, "  }\n  MP_BARRIER();\n  MP_LOOP for (int i", "  }\n  MP_LOOP for (int i"
    )
    with pytest.raises(CheckError, match="uninitialised shared memory"):
        run_and_check(hasty, plan)


def test_sorted_elements_take_the_colours_of_their_round(plan):
    made = program(BODY, plan, "block-permute", layout=LAYOUT, threads=THREADS)
    assert "for (int c = thread_colour[begin + done]; c <= last; ++c)" in made.text
    others = program(BODY, plan, "hierarchical", layout=LAYOUT, threads=THREADS)
    assert "for (int c = 0; c < colours; ++c)" in others.text


def test_more_threads_than_elements_do_nothing(plan):
    usual = program(BODY, plan, "hierarchical", layout=LAYOUT)
    assert (usual.threads, "done" in usual.text) == (32, False)
    for threads in (32, 1024):
        made = program(BODY, plan, "hierarchical", layout=LAYOUT, threads=threads)
        assert (made.threads, made.text) == (32, usual.text)
    assert program(BODY, plan, "global-atomics").threads == 256
    with pytest.raises(MeshprepError, match="threads is 0, must be 1 to 1024"):
        program(BODY, plan, "hierarchical", threads=0)


@pytest.mark.usefixtures("needs_gxx")
@pytest.mark.parametrize("graph", [False, True])
def test_a_loop_on_a_gpu_by_fewer_threads(graph, plan, device):
    given = arrays(plan)
    ours = uploaded(device, laid_out(given, LAYOUT))
    loop = loop_of(plan, threads=THREADS, graph=graph)
    assert loop.on_gpu.threads == THREADS
    loop(**ours)
    check(ours, laid_out(expected(plan, given), LAYOUT))


@pytest.mark.usefixtures("needs_gxx")
def test_auto_takes_the_threads_that_were_tuned(plan, device):
    trial = Trial("hierarchical", "s16", tuple(LAYOUT), 1e-5, 1e-5, 0.0, 9, threads=THREADS)
    tuned = Tuned(Machine(GPU, "emulated"), "body", True, (trial,))
    known = replace(plan, tuned=(tuned,))
    given = arrays(plan)
    ours = uploaded(device, laid_out(given, LAYOUT))
    loop = loop_of(known, strategy="auto")
    assert (loop.on_gpu.strategy, loop.on_gpu.threads) == ("hierarchical", THREADS)
    loop(**ours)
    check(ours, laid_out(expected(plan, given), LAYOUT))
    assert loop_of(known, strategy="auto", threads=8).on_gpu.threads == 8
    assert loop_of(plan, strategy="auto").on_gpu.threads is None


@pytest.mark.parametrize(("strategy", "commit"), effort.first(IN_BLOCKS))
def test_compiles_without_spills(strategy, commit, plan, compiled):
    made = program(BODY, plan, strategy, commit=commit, layout=LAYOUT, threads=8)
    found = compiled(made)
    assert 0 < found.registers <= 128
    assert found.spilled == 0


@pytest.mark.long
@pytest.mark.parametrize("layout", [{}, LAYOUT], ids=["aos", "mixed"])
@pytest.mark.parametrize("arch", ["sm_75", "sm_80"])
def test_older_devices(arch, layout, plan, compiled):
    for strategy, commit in IN_BLOCKS:
        made = program(BODY, plan, strategy, commit=commit, layout=layout, threads=8)
        assert compiled(made, arch).spilled == 0, (strategy, commit)
