"""Loops on arrays of a GPU, on a device that runs kernels under g++ with checks."""

from contextlib import nullcontext

import effort
import numpy as np
import pytest
from cuda_loops import (
    BODY,
    LAYOUT,
    arrays,
    body,
    check,
    expected,
    fetched,
    laid_out,
    loop_of,
    random_plan,
    uploaded,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep_cuda_check.emulated import EmulatedDevice, Stream
from meshprep_runtime import MeshprepError, ParLoop
from meshprep_runtime.cuda import program
from meshprep_runtime.cuda.device import use

pytestmark = pytest.mark.usefixtures("needs_gxx")
GLOBALS = ("c", "total", "least", "most")


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize(
    ("strategy", "commit"),
    effort.first(
        [
            ("hierarchical", "colours"),
            ("staged-gather", "atomics"),
            ("full-permute", "colours"),
            ("two-step", "colours"),
        ]
    ),
)
@pytest.mark.parametrize(
    "leave", [(), GLOBALS], ids=["all on the device", "globals on the host"]
)
def test_exactly_the_sums_of_numpy(strategy, commit, graph, leave, plan, device):
    loop = loop_of(plan, strategy=strategy, commit=commit, graph=graph, threads=32)
    given = arrays(plan)
    ours = uploaded(device, laid_out(given, LAYOUT), leave)
    theirs = given
    for _ in range(2):
        loop(**ours)
        theirs = expected(plan, theirs)
    check(ours, laid_out(theirs, LAYOUT))
    # The loop's launches, and one for each reduction; a graph replays the first call's.
    made = program(BODY, plan, strategy, commit=commit, layout=LAYOUT, threads=32)
    launches = sum(len(one.launches) for one in (made, *made.then))
    assert device.launched == (0 if graph else 2 * (launches + 3))
    names = ["meshprep_loop", *["meshprep_sum"] * len(made.then), *["meshprep_join"] * 3]
    assert device.loaded == names
    assert len(made.then) == (2 if strategy == "two-step" else 0)


def test_other_arrays_and_the_first_again(plan, device):
    """Each set of arrays has its launches."""
    loop = loop_of(plan, graph=True)
    first, second = arrays(plan, 1), arrays(plan, 2)
    one = uploaded(device, laid_out(first, LAYOUT))
    two = uploaded(device, laid_out(second, LAYOUT), GLOBALS)
    for ours in (one, two, one):
        loop(**ours)
    check(one, laid_out(expected(plan, expected(plan, first)), LAYOUT))
    check(two, laid_out(expected(plan, second), LAYOUT))
    assert device.loaded.count("meshprep_loop") == 1


def test_more_sets_of_arrays_than_are_kept(plan, device):
    loop, given = loop_of(plan), arrays(plan)
    many = [uploaded(device, laid_out(given, LAYOUT)) for _ in range(10)]
    for ours in many:
        loop(**ours)
    for ours in many:
        check(ours, laid_out(expected(plan, given), LAYOUT))


def test_a_constant_of_the_host_that_changes(plan, device):
    """Also in place, in the array that was given before."""
    loop, given = loop_of(plan, graph=True), arrays(plan)
    c = given["c"].copy()
    ours = uploaded(device, laid_out(given, LAYOUT)) | {"c": c}
    theirs = given
    for value in (3, 7, 7, -2):
        c[0] = value
        loop(**ours)
        theirs = expected(plan, {**theirs, "c": np.array([value], "i4")})
    for value in (4, 5):
        loop(**{**ours, "c": value})
        theirs = expected(plan, {**theirs, "c": np.array([value], "i4")})
    check({k: v for k, v in ours.items() if k != "c"}, laid_out(theirs, LAYOUT))


def test_one_loop_on_two_streams(plan, device):
    """The second stream waits for the first, whose sums of blocks lie in the same place."""
    loop, given = loop_of(plan), arrays(plan)
    ours = [uploaded(device, laid_out(given, LAYOUT)) for _ in range(2)]
    other = Stream()
    loop(**ours[0])
    with device.on(other):
        loop(**ours[1])
        for one in ours:
            check(one, laid_out(expected(plan, given), LAYOUT))
    assert not device.stream().waiting


CALL = st.tuples(
    st.integers(0, 2),  # Which set of arrays.
    st.sets(st.sampled_from(GLOBALS)),  # Which globals are the host's.
    st.booleans(),  # On the second stream.
    st.integers(-3, 3),  # The constant.
)


@settings(max_examples=effort.examples(25), deadline=None)
@given(calls=st.lists(CALL, min_size=1, max_size=8), graph=st.booleans())
def test_any_order_of_calls(calls, graph, plan):
    """Arrays, streams, constants and the place of globals change from call to call."""
    device, other = EmulatedDevice(), Stream()
    with use(device):
        loop = loop_of(plan, graph=graph)
        theirs = [arrays(plan, seed) for seed in range(3)]
        here = [laid_out(given, LAYOUT) for given in theirs]
        there = [uploaded(device, given) for given in here]
        for i, leave, second, c in calls:
            # Globals have two places; the one that is used gets what the other holds.
            values = fetched({name: there[i][name] for name in GLOBALS})
            ours = dict(there[i])
            for name in GLOBALS:
                now = np.array([c], "i4") if name == "c" else values[name]
                there[i][name].set(now)
                here[i][name][...] = now
                if name in leave:
                    ours[name] = here[i][name]
            device.synchronize()
            theirs[i] = expected(plan, theirs[i] | {"c": np.array([c], "i4")})
            with device.on(other) if second else nullcontext():
                loop(**ours)
            # Arrays of the device are looked at on the stream that comes last.
            with device.on(other if second else device.stream()):
                for name in set(leave) - {"c"}:
                    there[i][name].set(here[i][name])
                device.synchronize()
        for found, wanted in zip(there, theirs, strict=True):
            check(found, laid_out(wanted, LAYOUT))


def test_nothing_waits_for_the_device_without_need(plan, device):
    ours = uploaded(device, laid_out(arrays(plan), LAYOUT), ("c",))
    loop = loop_of(plan)
    loop(**ours)
    assert device.stream().waiting
    least = np.array([1e9], "f4")
    loop(**{**ours, "least": least})
    assert not device.stream().waiting
    assert least[0] < 1e9


def test_a_plain_call_of_use_is_refused(plan, device):
    ours = uploaded(device, laid_out(arrays(plan), LAYOUT))
    use(EmulatedDevice())
    with pytest.raises(
        MeshprepError, match=r"does nothing by itself: write 'with use\(device\):'"
    ):
        loop_of(plan)(**ours)
    loop_of(plan)(**ours)


def test_an_empty_set(slow, device):
    plan = random_plan(slow, 0, 5, 8, 0)
    ours = uploaded(device, laid_out(arrays(plan), LAYOUT), ("most",))
    before = fetched(ours)
    loop_of(plan, strategy="global-atomics")(**ours)
    check(ours, before)
    assert device.launched == 0


def test_one_function_for_both(plan, device):
    """NumPy arrays run the Python kernel, others the CUDA text; integers agree exactly."""
    loop = ParLoop(body, plan, strategy="hierarchical", layout=LAYOUT, cuda=BODY)
    given = laid_out(arrays(plan), LAYOUT)
    host, there = {k: v.copy() for k, v in given.items()}, uploaded(device, given)
    loop(**host)
    loop(**there)
    check(there, host)
    assert loop.on_gpu.variant == "s8"


def test_too_much_shared_memory(plan):
    need = program(BODY, plan, layout=LAYOUT).shared_bytes
    with use(EmulatedDevice(most_shared=need - 1)) as device:
        ours = uploaded(device, laid_out(arrays(plan), LAYOUT))
        with pytest.raises(MeshprepError) as error:
            loop_of(plan)(**ours)
    assert str(error.value).startswith(
        f"loop 'sums': its largest block takes {need} bytes of shared memory, but GPU 0 (emulated) "
        f"has at most {need - 1} for a block: take a variant with smaller blocks"
    )


def test_a_wrong_argument_is_no_address(plan, device):
    """The device itself finds arguments out of order."""
    made = program(BODY, plan, layout=LAYOUT)
    kernel = device.load(made)
    device.run([kernel.prepare(1, list(range(1, len(made.parameters) + 1)))])
    with pytest.raises(MeshprepError, match="blocks: 0x1 is no address of the device"):
        device.synchronize()
