"""Arrays and words that loops on a GPU take or refuse, by the name of the argument."""

from types import SimpleNamespace

import numpy as np
import pytest
from cuda_loops import (
    BODY,
    LAYOUT,
    arrays,
    check,
    expected,
    laid_out,
    loop_of,
    uploaded,
)

from meshprep_cuda_check.emulated import EmulatedDevice
from meshprep_runtime import MeshprepError, ParLoop
from meshprep_runtime.cuda import program
from meshprep_runtime.cuda.arrays import DeviceBinder
from meshprep_runtime.cuda.executor import Launcher

pytestmark = pytest.mark.usefixtures("needs_gxx")


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
        (
            "w",
            on_host,
            "'w' lies in the memory of the host, but others on a GPU: pass a CuPy arr",
        ),
        ("w", lambda device, array: [1], "'w' is a list, must be an array on the GPU"),
        ("w", lambda device, array: 1.0, "'w' is a float, must be an array on the GPU"),
        ("w", view(typestr="<f4"), "'w' has dtype float32, must be int32"),
        (
            "w",
            view(shape=(45, 2)),
            "'w' has shape (45, 2), must be (90, 1) or (90,), one row an",
        ),
        (
            "x",
            view(shape=(60, 2)),
            "'x' has shape (60, 2), must be (2, 60), one column an element",
        ),
        (
            "x",
            view(strides=(4, 8)),
            "'x' is not contiguous: pass cupy.ascontiguousarray of it",
        ),
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
    refused(
        "a",
        "'a' calls itself an array of CUDA but lies on no GPU",
        data=(host.ctypes.data, 0),
    )
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
    ours["d"].memory, ours["d"].told = (
        longer.memory,
        {"data": (longer.memory.pointer + 8, False)},
    )
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
    with pytest.raises(
        MeshprepError, match="'d' does not begin at a multiple of 16 bytes, which"
    ):
        launcher(bound)


def test_arrays_of_another_device(plan, device):
    other = EmulatedDevice(number=1)
    ours = uploaded(other, laid_out(arrays(plan), LAYOUT))
    other_home = SimpleNamespace(home=other.home)
    device.home = other_home.home
    with pytest.raises(
        MeshprepError, match="'w' lies on GPU 1, but GPU 0 is the current one: cal"
    ):
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
    check(
        {k: v for k, v in ours.items() if k != "w"}, laid_out(expected(plan, given), LAYOUT)
    )


class Refusing:
    """As a tensor of which gradients are wanted."""

    def __dlpack_device__(self):
        return (2, 0)

    @property
    def __cuda_array_interface__(self):
        raise RuntimeError("use detach() first")


def test_a_library_that_refuses(plan, device):
    ours = uploaded(device, laid_out(arrays(plan), LAYOUT)) | {"w": Refusing()}
    with pytest.raises(
        MeshprepError, match=r"'w' cannot be seen by CUDA: use detach\(\) first"
    ):
        loop_of(plan)(**ours)


def test_words_for_one_side_only(plan, device):
    ours = uploaded(device, laid_out(arrays(plan), LAYOUT))

    def sums(w, d, x2, x0, c, a0, a1, b, total, least, most):
        pass

    with pytest.raises(
        MeshprepError, match="'sequential' is not for a GPU: use auto, hierarchic"
    ):
        loop_of(plan, strategy="sequential")
    with pytest.raises(MeshprepError, match="'sequential' is not for a GPU: use auto, h"):
        ParLoop(sums, plan, strategy="sequential", layout=LAYOUT, cuda=BODY)(**ours)
    with pytest.raises(
        MeshprepError, match="its kernel is in CUDA C, for a GPU, but no ar"
    ):
        loop_of(plan)(**laid_out(arrays(plan), LAYOUT))
    with pytest.raises(
        MeshprepError, match="strategy 'staged-gather' is for a GPU, but no argume"
    ):
        ParLoop(sums, plan, strategy="staged-gather")(**arrays(plan))
    with pytest.raises(
        MeshprepError, match="boundscheck is for a CPU: pass NumPy arrays, or run"
    ):
        loop_of(plan, boundscheck=True)(**ours)
    with pytest.raises(MeshprepError, match="cuda is a str, must be a DeviceFunction"):
        ParLoop(sums, plan, cuda=BODY.text)
    with pytest.raises(
        MeshprepError, match="commit 'now' is unknown: use colours, atomics"
    ):
        loop_of(plan, commit="now")
    with pytest.raises(MeshprepError, match="or on a GPU hierarchical-inc, "):
        ParLoop(sums, plan, strategy="warp")
