"""Arrays that do not fit are refused before anything runs, by the argument's name."""

import copy

import numpy as np
import pytest

from meshprep_runtime import Access, Arg, Loop, MeshprepError, ParLoop
from meshprep_runtime.kernel.bind import holds

READ, WRITE, RW, INC = Access.READ, Access.WRITE, Access.RW, Access.INC


def res_calc(x1, x2, q1, q2, adt1, adt2, res1, res2):
    res1[0] += q1[0]
    res2[0] += q2[0]


@pytest.fixture
def loop(airfoil):
    return ParLoop(res_calc, airfoil["res_calc"], strategy="sequential")


@pytest.fixture
def arrays():
    return {
        "x": np.ones((35, 2)),
        "q": np.ones((24, 4)),
        "adt": np.ones(24),
        "res": np.zeros((24, 4)),
    }


def read_only(array):
    array.flags.writeable = False
    return array


def unaligned(shape):
    raw = np.zeros(np.prod(shape) * 8 + 1, dtype=np.uint8)
    return raw[1:].view(np.float64).reshape(shape)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"q": np.ones((23, 4))},
            "'q' has shape (23, 4), must be (24, 4), one row an element of 'cells'",
        ),
        ({"q": np.ones((4, 24))}, "'q' has shape (4, 24), must be (24, 4)"),
        ({"q": np.ones(96)}, "'q' has shape (96,), must be (24, 4)"),
        ({"adt": np.ones(25)}, "'adt' has shape (25,), must be (24, 1) or (24,)"),
        ({"adt": np.ones((1, 24))}, "'adt' has shape (1, 24), must be (24, 1) or (24,)"),
        ({"q": np.ones((24, 4), dtype="f4")}, "'q' has dtype float32, must be float64"),
        ({"q": np.ones((24, 4), dtype=">f8")}, "'q' has dtype >f8, must be float64"),
        ({"q": np.ones((24, 4), dtype="i8")}, "'q' has dtype int64, must be float64"),
        (
            {"q": np.ones((24, 8))[:, ::2]},
            "'q' is not contiguous: pass np.ascontiguousarray of it",
        ),
        ({"q": np.ones((4, 24)).T}, "'q' is not contiguous"),
        ({"q": unaligned((24, 4))}, "'q' is not contiguous"),
        (
            {"res": read_only(np.zeros((24, 4)))},
            "'res' is read-only, but the loop changes it (inc)",
        ),
        ({"q": [[1.0] * 4] * 24}, "'q' is a list, must be a NumPy array"),
        ({"q": np.ma.ones((24, 4))}, "'q' is a MaskedArray, must be a NumPy array"),
        ({"q": 1.0}, "'q' is a float, must be a NumPy array"),
        ({"extra": 1.0}, "no argument 'extra': it takes x, q, adt, res"),
    ],
)
def test_what_does_not_fit(loop, arrays, change, message):
    with pytest.raises(MeshprepError) as error:
        loop(**{**arrays, **change})
    text = str(error.value)
    assert text.startswith("loop 'res_calc': ")
    assert message in text
    assert "\n" not in text
    assert not arrays["res"].any()


def test_missing_argument(loop, arrays):
    del arrays["adt"]
    with pytest.raises(
        MeshprepError, match="argument 'adt' is missing: it takes x, q, adt, res"
    ):
        loop(**arrays)


def test_both_shapes_of_one_component(loop, arrays):
    loop(**arrays)
    once = arrays["res"].copy()
    arrays["res"][:] = 0
    loop(**{**arrays, "adt": arrays["adt"].reshape(24, 1)})
    assert np.array_equal(arrays["res"], once)


def test_what_is_only_read_may_be_read_only(loop, arrays, tmp_path):
    read_only(arrays["q"])
    np.save(tmp_path / "x.npy", arrays["x"])
    loop(**{**arrays, "x": np.load(tmp_path / "x.npy", mmap_mode="r")})
    assert arrays["res"][:, 0].sum() == 2 * 38
    assert arrays["x"].flags.writeable


def test_shared_memory(loop, arrays):
    with pytest.raises(MeshprepError) as error:
        loop(**{**arrays, "res": arrays["q"]})
    assert str(error.value) == (
        "loop 'res_calc': arguments 'res' and 'q' share memory and 'res' is written: "
        "pass separate arrays"
    )
    memory = np.zeros((30, 4))
    with pytest.raises(MeshprepError, match="'res' and 'q' share memory"):
        loop(**{**arrays, "q": memory[:24], "res": memory[6:]})
    # Beside each other, or both only read, is fine.
    memory = np.zeros((48, 4))
    loop(**{**arrays, "q": memory[:24], "res": memory[24:]})
    both = np.ones(24 * 4)
    loop(**{**arrays, "q": both.reshape(24, 4), "adt": both[:24]})


def test_arrays_are_checked_again_when_they_change(loop, arrays):
    loop(**arrays)
    once = arrays["res"].copy()
    loop(**arrays)
    assert np.array_equal(arrays["res"], 2 * once)
    # Another array, the same one in another form, and one that shares memory with an old one.
    with pytest.raises(MeshprepError, match="'q' has shape"):
        loop(**{**arrays, "q": np.ones((23, 4))})
    with pytest.raises(MeshprepError, match="'res' and 'q' share memory"):
        loop(**{**arrays, "res": arrays["q"]})
    read_only(arrays["res"])
    with pytest.raises(MeshprepError, match="'res' is read-only"):
        loop(**arrays)
    assert np.array_equal(arrays["res"], 2 * once)


def test_new_arrays_are_used(loop, arrays):
    loop(**arrays)
    other = {**arrays, "q": 3 * arrays["q"], "res": np.zeros((24, 4))}
    loop(**other)
    assert np.array_equal(other["res"], 3 * arrays["res"])


class Foreign:
    """An array of another library."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays_of_other_libraries_are_taken_without_a_copy(loop, arrays):
    res = np.zeros((24, 4))
    loop(**{**arrays, "res": Foreign(res), "q": Foreign(arrays["q"])})
    loop(**arrays)
    assert np.array_equal(res, arrays["res"])
    assert res.any()
    with pytest.raises(MeshprepError, match="'q' cannot be seen by NumPy"):
        loop(**{**arrays, "q": Foreign(np.ones((24, 4), dtype=">f8"))})


def test_memory_that_another_library_puts_under_an_array_is_seen(loop, arrays, tmp_path):
    """As torch does by ``tensor.data = other``: the object stays, and lies elsewhere."""
    first, second = np.zeros((2, 24, 4))
    tensor = Foreign(first)
    loop(**{**arrays, "res": tensor})
    tensor.array = second
    loop(**{**arrays, "res": tensor})
    assert first.any()
    np.testing.assert_array_equal(second, first)
    mapped = np.memmap(tmp_path / "res", "f8", "w+", shape=(24, 4))
    loop(**{**arrays, "res": mapped})
    mapped.flags.writeable = False
    with pytest.raises(MeshprepError, match="'res' is read-only"):
        loop(**{**arrays, "res": mapped})


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("rows", "layout 'rows' is unknown: use aos or soa"),
        ({"q": "soa", "p": "soa"}, "layout names 'p', but its dats are x, x, q"),
    ],
)
def test_layouts_that_are_not(airfoil, layout, message):
    with pytest.raises(MeshprepError) as error:
        ParLoop(res_calc, airfoil["res_calc"], layout=layout)
    assert message.replace("x, x", "x") in str(error.value)


def test_columns_where_components_come_first(airfoil, arrays):
    loop = ParLoop(res_calc, airfoil["res_calc"], layout={"q": "soa"})
    with pytest.raises(MeshprepError) as error:
        loop(**arrays)
    assert (
        "'q' has shape (24, 4), must be (4, 24), one column an element of 'cells'"
        in str(error.value)
    )


@pytest.mark.parametrize("shape", [(24,), (1, 24), (24, 1)])
def test_one_component_has_one_layout(airfoil, arrays, shape):
    results = []
    for layout, own in (("aos", (24,)), ({"adt": "soa"}, shape)):
        given = {
            **arrays,
            "res": np.zeros((24, 4)),
            "adt": np.arange(24.0).reshape(own) + 1,
        }
        ParLoop(res_calc, airfoil["res_calc"], strategy="sequential", layout=layout)(
            **given
        )
        results.append(given["res"])
    assert results[0].any()
    np.testing.assert_array_equal(*results)


def test_the_maps_of_a_solver(airfoil):
    plan = airfoil["res_calc"]
    own = {name: m.table.astype(np.int64) for name, m in plan.maps.items()}
    ParLoop(res_calc, plan, maps=own)
    own["edges->cells"][5] = [1, 2]
    with pytest.raises(
        MeshprepError, match=r"'edges->cells' differs from the plan's at element 5"
    ):
        ParLoop(res_calc, plan, maps=own)
    with pytest.raises(
        MeshprepError, match=r"has shape \(37, 2\), but the plan's has \(38, 2\)"
    ):
        ParLoop(res_calc, plan, maps={"edges->cells": own["edges->cells"][:-1]})
    with pytest.raises(
        MeshprepError, match="has no map 'a->b': it has edges->nodes, edges->cells"
    ):
        ParLoop(res_calc, plan, maps={"a->b": own["edges->cells"]})


def cell_loop(*args):
    return Loop("l", "cells", args)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            (
                Arg("v", READ, 1, "f8", "cells->p", (0,)),
                Arg("v", INC, 1, "f8", "cells->p", (1,)),
            ),
            "argument 'v' stands twice, with accesses that conflict (read and inc): use another",
        ),
        ((Arg("v", READ), Arg("v", WRITE)), "accesses that conflict (read and write)"),
        ((Arg("v", INC), Arg("v", INC)), "accesses that conflict (inc and inc)"),
        (
            (Arg("v", READ), Arg("w", READ), Arg("v", READ, 2)),
            "with different dtypes or dims",
        ),
        (
            (Arg("v", READ), Arg("v", READ, 1, "f4")),
            "'v' stands twice, with different dtypes",
        ),
        (
            (Arg("v", READ), Arg("v", READ, is_global=True)),
            "'v' stands twice, with different",
        ),
    ],
)
def test_loops_whose_arguments_conflict(args, message):
    with pytest.raises(MeshprepError) as error:
        cell_loop(*args)
    assert str(error.value).startswith("loop 'l': argument 'v' stands twice, with ")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            (Arg("v", READ), Arg("v", READ, 1, "f8", "cells->p", (0,))),
            "argument 'v' stands twice, on different sets: they must agree",
        ),
        ((Arg("v", READ, 1, "f2"),), "has dtype f2, but loops run on f4, f8"),
    ],
)
def test_loops_that_cannot_run(slow, args, message):
    def two(a, b):
        pass

    def one(a):
        pass

    table = np.array([[0, 1], [1, 2]])
    plan = slow.plan({"cells": 2, "p": 3}, {"cells->p": table}, [cell_loop(*args)])["l"]
    with pytest.raises(MeshprepError) as error:
        ParLoop(one if len(args) == 1 else two, plan)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.5, "'k' is 1.5, must be int32"),
        (np.array([1, 2], dtype="i4"), "'k' has shape (2,), must be (1,)"),
        (np.array([1]), "'k' has dtype int64, must be int32"),
        (float("nan"), "'k' is nan, must be int32"),
        (2**40, "'k' is 1099511627776, must be int32"),
        (np.str_("1"), "'k' is 1, must be int32"),
        (np.complex128(1 + 2j), "'k' is (1+2j), must be int32"),
        (float("inf"), "'k' is inf, must be int32"),
        (np.float32(2**31), "'k' is 2147483648.0, must be int32"),
    ],
)
def test_constants(slow, value, message):
    loop = cell_loop(Arg("v", RW, 1, "i4"), Arg("k", READ, 1, "i4", is_global=True))
    plan = slow.plan({"cells": 2}, {}, [loop])["l"]

    def times(v, k):
        v[0] *= k[0]

    run = ParLoop(times, plan, strategy="sequential")
    with pytest.raises(MeshprepError) as error:
        run(v=np.ones(2, dtype="i4"), k=value)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("dtype", "number", "fits"),
    [
        ("i8", 2**63 - 1, True),
        ("i8", 2**63, False),
        # rounds to the largest number, compared as a float
        ("i8", np.float64(2**63), False),
        ("u8", 2.0**63, True),
        ("u8", -1, False),
        ("f4", 1e300, False),
        ("f4", float("inf"), True),
        ("f8", 10**30, True),
        ("f8", 10**400, False),
    ],
)
def test_numbers_that_a_dtype_holds(dtype, number, fits):
    assert holds(np.dtype(dtype), number) == fits


def test_a_copied_solver_runs_on_its_own_arrays(loop, arrays):
    loop(**arrays)
    other, theirs = copy.deepcopy((loop, arrays))
    before = arrays["res"].copy()
    other(**theirs)
    assert np.array_equal(arrays["res"], before)
    assert np.array_equal(theirs["res"], 2 * before)
    assert before.any()
