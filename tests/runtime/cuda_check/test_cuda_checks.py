"""Plans and texts broken on purpose: each is found by the check that is there for it."""

from dataclasses import replace

import numpy as np
import pytest
from cuda_loops import BODY, LAYOUT, SUMS, arrays, expected, laid_out

from meshprep_cuda_check import checked
from meshprep_cuda_check.checked import CheckError, run_checked
from meshprep_runtime.cuda import program

BARRIER = "MP_BARRIER();\n"
RACE, BETWEEN = "race inside a block", "race between blocks"
UNSET, OUTSIDE = "uninitialised shared memory", "out of bounds"
# Columns of what a block is told.
COUNT, COLOURS = 1, 2
PARTED, WRONG = "divergent barrier", "wrong plan"
pytestmark = pytest.mark.usefixtures("needs_gxx")
# Other tests build without the optimiser.
FLAGS_OF_USERS = checked.FLAGS


@pytest.fixture(autouse=True)
def built_as_for_users(monkeypatch):
    """What is checked stays so under the optimiser."""
    monkeypatch.setattr(checked, "FLAGS", FLAGS_OF_USERS)


def run(plan, made):
    """What the sums are, laid out as the program has them."""
    ours = laid_out(arrays(plan), LAYOUT)
    run_checked(made, **ours)
    return ours


def write(plan, strategy="hierarchical", commit="colours"):
    return program(BODY, plan, strategy, commit=commit, layout=LAYOUT, threads=32)


def caught(plan, made, *checks):
    with pytest.raises(CheckError) as found:
        run(plan, made)
    assert found.value.check in checks


def changed(made, name, change):
    """The program with one array of the plan changed in place by ``change``."""
    array = made.arrays[name].copy()
    change(array)
    return replace(made, arrays={**made.arrays, name: array})


def put(where, value):
    def change(array):
        array[where] = value

    return change


def sharing(plan):
    """Two elements of the first block that add to one point."""
    points = plan.maps["elements->points"].table[:8, :2]
    return next(
        (e, f) for e in range(8) for f in range(e) if set(points[e]) & set(points[f])
    )


def test_equal_thread_colours(plan):
    made = changed(write(plan), "thread_colour", put(slice(None), 0))
    caught(plan, changed(made, "blocks", put((slice(None), COLOURS), 1)), RACE)


def test_one_wrong_thread_colour(plan):
    e, f = sharing(plan)
    colour = plan.variant().thread_colour
    assert colour[e] != colour[f]
    made = changed(write(plan), "thread_colour", put(e, colour[f]))
    caught(plan, made, RACE)


def test_too_few_thread_colours(plan):
    caught(plan, changed(write(plan), "blocks", put((0, COLOURS), 0)), WRONG)


@pytest.mark.parametrize("strategy", ["hierarchical", "hierarchical-inc", "staged-gather"])
def test_block_colours_ignored(strategy, plan):
    made = write(plan, strategy)
    both = replace(
        made.launches[0], blocks=made.launches[0].blocks + made.launches[1].blocks
    )
    caught(plan, replace(made, launches=(both, *made.launches[2:])), BETWEEN)


def test_one_block_twice(plan):
    made = write(plan)
    caught(plan, changed(made, "blocks", put(1, made.arrays["blocks"][0])), BETWEEN)


@pytest.mark.parametrize("point", [-1, 60, 10**6])
def test_points_that_do_not_exist(point, plan):
    caught(plan, changed(write(plan), "points0", put(3, point)), OUTSIDE)


def test_a_local_index_past_the_staging_list(plan):
    caught(plan, changed(write(plan), "local0", put((3, 0), 65535)), OUTSIDE)


@pytest.mark.parametrize("strategy", ["hierarchical-inc", "shared-atomics"])
def test_a_wrong_local_index(strategy, plan):
    """Where it meets no other thread's, only the sums tell."""
    made = write(plan, strategy)
    local = made.arrays["local0"]
    theirs = laid_out(expected(plan, arrays(plan)), LAYOUT)
    found = set()
    for wrong in range(int(plan.variant().staging["points"].point_offset[1])):
        if wrong != local[3, 0]:
            found.add(outcome(plan, changed(made, "local0", put((3, 0), wrong)), theirs))
    assert "wrong sums" in found
    assert found <= {"wrong sums", *({RACE} if strategy == "hierarchical-inc" else ())}


def outcome(plan, made, theirs):
    try:
        ours = run(plan, made)
    except CheckError as error:
        return error.check
    return "right" if np.array_equal(ours["a"], theirs["a"]) else "wrong sums"


@pytest.mark.parametrize("strategy", ["hierarchical", "shared-atomics", "staged-gather"])
def test_a_shared_point_called_exclusive(strategy, plan):
    made = write(plan, strategy, "atomics")
    role, points = made.arrays["role0"], made.arrays["points0"]
    assert (role == 1).any()
    by_two = np.flatnonzero(np.bincount(points[role == 2]) > 1)
    place = np.flatnonzero((points == by_two[0]) & (role == 2))[0]
    caught(plan, changed(made, "role0", put(place, 1)), BETWEEN)


def test_a_point_that_its_block_only_reads(slow):
    """Adding zero to it would be a race, too: here all blocks have one colour."""
    element = np.arange(24)
    points = np.column_stack([2 * element, 2 * element + 1, 0 * element])
    tables = {"elements->points": points, "elements->parents": element[:, None]}
    sizes = {"elements": 24, "points": 48, "parents": 24}
    plan = slow.plan(sizes, tables, [SUMS], (8,))["sums"]
    assert plan.variant().n_block_colours == 1
    made = write(plan)
    theirs = laid_out(expected(plan, arrays(plan)), LAYOUT)
    assert np.array_equal(run(plan, made)["a"], theirs["a"])
    caught(plan, changed(made, "role0", put(slice(None), 1)), BETWEEN)


def test_a_place_to_gather_that_no_thread_has(plan):
    made = write(plan, "staged-gather")
    caught(plan, changed(made, "gather4", put(0, 65535)), OUTSIDE)


def test_elements_of_two_colours_in_one_launch(plan):
    made = write(plan, "global-colouring")
    first, second, *rest = made.launches
    both = replace(first, blocks=3, last=second.last)
    caught(
        plan,
        replace(made, launches=(both, *rest)),
        RACE,
        BETWEEN,
    )


def test_too_many_elements_for_the_threads(plan):
    caught(plan, changed(write(plan), "blocks", put((0, COUNT), 90)), WRONG)


def test_too_little_shared_memory(plan):
    made = write(plan)
    caught(plan, replace(made, shared_bytes=made.shared_bytes - 1), OUTSIDE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "old", "new", "checks"),
    [
        (
            "hierarchical",
            f"  }}\n  {BARRIER}  if (active)",
            "  }\n  if (active)",
            {RACE, UNSET},
        ),
        ("hierarchical", f"    {BARRIER}  }}\n", "  }\n", {RACE}),
        ("shared-atomics", f"  {BARRIER}  MP_LOOP for", "  MP_LOOP for", {RACE}),
        ("staged-gather", f"  {BARRIER}", "", {RACE, UNSET}),
        (
            "hierarchical",
            "if (active) {\n",
            f"if (active) {{\n    {BARRIER}",
            {PARTED},
        ),
        ("hierarchical", "] = v4[0];", "] = h4[1];", {UNSET}),
        ("global-atomics", "MP_ADD(s5, p1_0, r7[0])", "s5[p1_0] += r7[0]", {RACE}),
        (
            "hierarchical",
            "int shared0 = 0",
            "int shared0 = 4",
            {"misaligned shared memory"},
        ),
    ],
    ids=["staging", "colours", "atomics", "gather", "diverge", "unset", "plain", "askew"],
)
def test_broken_texts(strategy, old, new, checks, plan):
    made = write(plan, strategy)
    assert old in made.text
    caught(plan, replace(made, text=made.text.replace(old, new, 1)), *checks)
