"""Loops on arrays of a GPU, on a device that runs kernels under g++ with checks."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from cuda_loops import BODY, LAYOUT, arrays, expected, laid_out, random_plan
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep_runtime import Access, Arg, Loop, MeshprepError, ParLoop, PlanError
from meshprep_runtime.cuda import DeviceFunction, program
from meshprep_runtime.cuda.arrays import DeviceBinder
from meshprep_runtime.cuda.auto import choose, staged_bytes
from meshprep_runtime.cuda.device import use
from meshprep_runtime.cuda.emulated import EmulatedDevice, Stream
from meshprep_runtime.cuda.launcher import Launcher
from meshprep_runtime.tuned import Machine, Trial, Tuned

pytestmark = pytest.mark.usefixtures("needs_gxx")
GLOBALS = ("c", "total", "least", "most")


@pytest.fixture(scope="module")
def plan(slow):
    """Eleven blocks of 8 elements and one of 2; several block colours."""
    return random_plan(slow, 90, 60, 8, 5)


@pytest.fixture
def device():
    with use(EmulatedDevice()) as made:
        yield made


def uploaded(device, given, leave=()):
    return {k: v if k in leave else device.array(v) for k, v in given.items()}


def fetched(given):
    return {k: v if isinstance(v, np.ndarray) else v.get() for k, v in given.items()}


def check(found, theirs):
    for name, value in fetched(found).items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)


def loop_of(plan, **options):
    return ParLoop(BODY, plan, **{"strategy": "hierarchical", "layout": LAYOUT, **options})


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize(
    ("strategy", "commit"),
    [
        ("hierarchical", "colours"),
        ("staged-gather", "atomics"),
        ("full-permute", "colours"),
        ("two-step", "colours"),
    ],
)
@pytest.mark.parametrize("leave", [(), GLOBALS], ids=["all on the device", "globals on the host"])
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


@settings(max_examples=25, deadline=None)
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


def test_an_empty_set(slow, device):
    plan = random_plan(slow, 0, 5, 8, 0)
    ours = uploaded(device, laid_out(arrays(plan), LAYOUT), ("most",))
    before = fetched(ours)
    loop_of(plan, strategy="global-atomics")(**ours)
    check(ours, before)
    assert device.launched == 0


def test_one_function_for_both(plan, device):
    """NumPy arrays run the Python kernel, others the CUDA text; integers agree exactly."""

    def body(w, d, x2, x0, c, a0, a1, b, total, least, most):
        d[0] += w[0]
        d[1] = 2 * d[0]
        for k in range(3):
            a0[k] += (k + 1) * x2[0] * c[0]
            a1[k] -= x0[1] + w[0]
        b[0] += w[0] * c[0]
        total[0] += w[0]
        total[1] -= 2
        least[0] = min(least[0], x2[1] - w[0])
        most[0] = max(most[0], w[0])

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
    with pytest.raises(MeshprepError, match="block_order: 0x1 is no address of the device"):
        device.synchronize()


# --- What is refused, by name ---


def view(**told):
    """A change of what an array tells of itself."""

    def change(device, array):
        array.told = told
        return array

    return change


def on_host(device, array):
    return array.get()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("w", on_host, "'w' lies in the memory of the host, but others on a GPU: pass a CuPy arr"),
        ("w", lambda device, array: [1], "'w' is a list, must be an array on the GPU"),
        ("w", lambda device, array: 1.0, "'w' is a float, must be an array on the GPU"),
        ("w", view(typestr="<f4"), "'w' has dtype float32, must be int32"),
        ("w", view(shape=(45, 2)), "'w' has shape (45, 2), must be (90, 1) or (90,), one row an"),
        ("x", view(shape=(60, 2)), "'x' has shape (60, 2), must be (2, 60), one column an element"),
        ("x", view(strides=(4, 8)), "'x' is not contiguous: pass cupy.ascontiguousarray of it"),
        ("d", view(mask=1), "'d' has a mask, which loops do not look at: pass it without"),
        ("c", view(shape=(2,)), "'c' has shape (2,), must be (1,)"),
        ("total", lambda device, array: 5, "'total' is a int, must be a NumPy array"),
    ],
)
def test_what_does_not_fit(name, change, message, plan, device):
    ours = uploaded(device, laid_out(arrays(plan), LAYOUT))
    ours[name] = change(device, ours[name])
    with pytest.raises(MeshprepError) as error:
        loop_of(plan)(**ours)
    assert str(error.value).startswith("loop 'sums': argument ")
    assert message in str(error.value)
    assert device.loaded == []


def test_read_only_and_misplaced(plan, device):
    ours = uploaded(device, laid_out(arrays(plan), LAYOUT))
    loop = loop_of(plan)

    def refused(name, message, **told):
        before, ours[name].told = ours[name].told, told
        with pytest.raises(MeshprepError, match=message):
            loop(**ours)
        ours[name].told = before

    pointer = ours["a"].memory.pointer
    refused("a", r"'a' is read-only, but the loop changes it \(inc\)", data=(pointer, True))
    refused("a", "'a' is not contiguous", data=(pointer + 4, False))
    host = np.zeros((3, 60))
    refused("a", "'a' calls itself an array of CUDA but lies on no GPU", data=(host.ctypes.data, 0))
    refused("b", "'a' and 'b' share memory and 'a' is written", data=(pointer + 8, False))
    # Only read: it may be.
    refused("x", "'a' and 'x' share memory and 'a' is written", data=(pointer + 1000, True))
    assert not loop._gpu._launchers
    loop(**ours)


def test_arrays_that_lie_askew(plan, device):
    """Pairs of i8 are moved in one piece of 16 bytes; an array that begins 8 bytes later is not."""
    given = arrays(plan)
    ours = uploaded(device, given)
    aligned = ours["d"]
    longer = device.array(np.concatenate([[0], given["d"].ravel()]))
    ours["d"] = device.array(given["d"])
    ours["d"].memory, ours["d"].told = longer.memory, {"data": (longer.memory.pointer + 8, False)}
    loop = loop_of(plan, layout={})
    loop(**ours)
    theirs = expected(plan, given)
    found = longer.get()
    assert found[0] == 0
    assert np.array_equal(found[1:].reshape(-1, 2), theirs["d"])
    loop(**{**ours, "d": aligned})
    theirs = expected(plan, theirs | {"d": given["d"]})
    check({**ours, "d": aligned}, theirs)
    assert device.loaded.count("meshprep_loop") == 2
    launcher = Launcher(program(BODY, plan, layout={}), device)
    bound = DeviceBinder(plan.loop, loop._slots)(ours, device)
    with pytest.raises(MeshprepError, match="'d' does not begin at a multiple of 16 bytes, which"):
        launcher(bound)


def test_arrays_of_another_device(plan, device):
    other = EmulatedDevice(number=1)
    ours = uploaded(other, laid_out(arrays(plan), LAYOUT))
    other_home = SimpleNamespace(home=other.home)
    device.home = other_home.home
    with pytest.raises(MeshprepError, match="'w' lies on GPU 1, but GPU 0 is the current one: cal"):
        loop_of(plan)(**ours)


def test_an_array_that_moves_is_seen_again(plan, device):
    """Other libraries give an object new memory; what was bound before no longer holds."""
    loop, given = loop_of(plan), arrays(plan)
    ours = uploaded(device, laid_out(given, LAYOUT))
    loop(**ours)
    device.synchronize()
    ours["w"].memory = device.array(2 * given["w"]).memory
    loop(**ours)
    theirs = expected(plan, {**expected(plan, given), "w": 2 * given["w"]})
    check(ours, laid_out(theirs, LAYOUT))
    ours["w"].told = {"typestr": "<f4"}
    with pytest.raises(MeshprepError, match="'w' has dtype float32"):
        loop(**ours)


def test_dlpack_without_the_interface(plan, device):
    given = arrays(plan)
    ours = uploaded(device, laid_out(given, LAYOUT))
    ours["w"] = SimpleNamespace(
        __dlpack_device__=lambda: (2, 0), __dlpack__=lambda array=ours["w"]: array
    )
    loop_of(plan)(**ours)
    check({k: v for k, v in ours.items() if k != "w"}, laid_out(expected(plan, given), LAYOUT))


class Refusing:
    """As a tensor of which gradients are wanted."""

    def __dlpack_device__(self):
        return (2, 0)

    @property
    def __cuda_array_interface__(self):
        raise RuntimeError("use detach() first")


def test_a_library_that_refuses(plan, device):
    ours = uploaded(device, laid_out(arrays(plan), LAYOUT)) | {"w": Refusing()}
    with pytest.raises(MeshprepError, match=r"'w' cannot be seen by CUDA: use detach\(\) first"):
        loop_of(plan)(**ours)


def test_words_for_one_side_only(plan, device):
    ours = uploaded(device, laid_out(arrays(plan), LAYOUT))

    def sums(w, d, x2, x0, c, a0, a1, b, total, least, most):
        pass

    with pytest.raises(MeshprepError, match="'sequential' is not for a GPU: use auto, hierarchic"):
        loop_of(plan, strategy="sequential")
    with pytest.raises(MeshprepError, match="'sequential' is not for a GPU: use auto, h"):
        ParLoop(sums, plan, strategy="sequential", layout=LAYOUT, cuda=BODY)(**ours)
    with pytest.raises(MeshprepError, match="its kernel is in CUDA C, for a GPU, but no ar"):
        loop_of(plan)(**laid_out(arrays(plan), LAYOUT))
    with pytest.raises(MeshprepError, match="strategy 'staged-gather' is for a GPU, but no argume"):
        ParLoop(sums, plan, strategy="staged-gather")(**arrays(plan))
    with pytest.raises(MeshprepError, match="boundscheck is for a CPU: pass NumPy arrays, or run"):
        loop_of(plan, boundscheck=True)(**ours)
    with pytest.raises(MeshprepError, match="cuda is a str, must be a DeviceFunction"):
        ParLoop(sums, plan, cuda=BODY.text)
    with pytest.raises(MeshprepError, match="commit 'now' is unknown: use colours, atomics"):
        loop_of(plan, commit="now")
    with pytest.raises(MeshprepError, match="or on a GPU hierarchical-inc, "):
        ParLoop(sums, plan, strategy="warp")


# --- What "auto" takes ---


def chosen(plan, layout=LAYOUT, most_shared=227 * 1024, **asked):
    loop = ParLoop(BODY, plan, layout=layout)
    return choose(plan, loop._slots, most_shared, **asked)


def test_auto_stages_what_is_read_twice(slow, plan):
    """Elements of `plan` share points with few others; those of the second all have the same."""
    assert chosen(plan).strategy == "hierarchical-inc"
    dense = random_plan(slow, 90, 8, 32, 5)
    found = chosen(dense)
    assert (found.strategy, found.variant, found.commit) == ("hierarchical", "s32", "colours")
    need = program(BODY, dense, "hierarchical", layout=LAYOUT).shared_bytes
    slots = loop_of(dense)._slots
    assert staged_bytes(dense, slots, dense.variant()) == need
    only = program(BODY, dense, "hierarchical-inc", layout=LAYOUT).shared_bytes
    increments = staged_bytes(dense, slots, dense.variant(), reads=False)
    # Reductions take eight bytes a thread, after the increments.
    assert max(increments, 32 * 8) == only
    assert chosen(dense, most_shared=need - 1).strategy == "hierarchical-inc"
    assert chosen(dense, most_shared=increments - 1).strategy == "global-atomics"


def test_auto_takes_blocks_for_a_gpu(slow):
    plan = random_plan(slow, 90, 8, 32, 5)
    (large,) = plan.variants.values()
    cpu = replace(large, name="s4096", block_size=4096, target="cpu")
    both = replace(plan, variants={"s4096": cpu, "s32": large}, default="s4096")
    assert chosen(both).variant == "s32"
    only = replace(plan, variants={"s4096": cpu}, default="s4096")
    assert chosen(only) == chosen(replace(plan, variants={}, default=""))
    assert chosen(only).strategy == "global-atomics"
    assert chosen(both, strategy="global-colouring").variant is None


def test_auto_takes_what_was_tuned_on_this_device(slow, device):
    plan = random_plan(slow, 90, 8, 32, 5)
    soa = tuple(LAYOUT)

    def tuned(name, kernel, *best):
        trials = (Trial(*best, soa, 1e-5, 1e-5, 0.0, 9),)
        return Tuned(Machine("gpu", name), kernel, True, trials)

    known = replace(
        plan,
        tuned=(
            tuned("emulated", "body", "staged-gather", "s32"),
            tuned("emulated", "other", "shared-atomics", "s32"),
            tuned("another", "body", "global-atomics", ""),
        ),
    )
    assert loop_of(known, strategy="auto").on_gpu.strategy == "staged-gather"
    assert chosen(known, device="another", kernel="body").strategy == "global-atomics"
    assert chosen(known, device="another", kernel="body").variant is None
    assert chosen(known, device="unknown", kernel="body") == chosen(plan)
    assert chosen(known, layout="aos", device="emulated") == chosen(plan, layout="aos")
    foreign = replace(plan, tuned=(tuned("emulated", "", "warps", ""),))
    with pytest.raises(PlanError, match="tuned for strategy 'warps', which is unknown here: name"):
        chosen(foreign, device="emulated")


def test_auto_without_writes_through_maps(slow, device):
    args = (
        Arg("x", Access.READ, 1, "f8", "elements->points", (0, 1)),
        Arg("mean", Access.WRITE, 1, "f8"),
    )
    table = np.random.default_rng(0).integers(0, 20, (50, 2))
    loop = Loop("mean", "elements", args)
    plan = slow.plan({"elements": 50, "points": 20}, {"elements->points": table}, [loop])["mean"]
    text = "__device__ void f(const double* a, const double* b, double* m) "
    text += "{ m[0] = 0.5 * (a[0] + b[0]); }"
    run = ParLoop(DeviceFunction("f", text), plan)
    x, mean = device.array(np.arange(20.0)), device.array(np.zeros(50))
    run(x=x, mean=mean)
    assert np.array_equal(mean.get(), table.mean(axis=1))
    assert run.on_gpu.strategy == "global-atomics"
