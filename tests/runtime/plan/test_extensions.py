"""What version 4 lets a file hold besides: coordinates, and extensions that no reader needs."""

from dataclasses import replace

import h5py
import numpy as np
import pytest
from plan_files import one_line
from sealing import seal

from meshprep_runtime import Plan, PlanError
from meshprep_runtime.plan.file.tree import Tree


@pytest.fixture
def path(tmp_path):
    return tmp_path / "wing.plan.h5"


def extension(**datasets):
    tree = Tree({"/": {"version": 3, "made by": "tests"}, "/inner": {}})
    tree.datasets |= {"/rows": np.arange(4.0), "/inner/note": "kept", **datasets}
    return tree


def test_an_unknown_extension_is_kept_as_it_is(airfoil, path):
    replace(airfoil, extensions={"org.example.filter": extension()}).save(path)
    assert path.read_bytes().startswith(b"meshprep-plan 4\n")
    again = path.with_name("again.plan.h5")
    Plan.load(path).save(again)
    for file in (path, again):
        with h5py.File(file) as opened:
            group = opened["extensions/org.example.filter"]
            assert dict(group.attrs) == {"version": 3, "made by": b"tests"}
            assert group["rows"][()].tolist() == [0.0, 1.0, 2.0, 3.0]
            assert group["inner/note"][()] == b"kept"
    assert Plan.load(again).extensions.keys() == {"org.example.filter"}
    assert Plan.load(again).verify() == []


def test_names_that_begin_alike_are_kept_apart(airfoil, path):
    both = {"a": extension(), "ab": extension(**{"/other": np.arange(2)})}
    replace(airfoil, extensions=both).save(path)
    found = Plan.load(path).extensions
    assert {name: set(tree.datasets) for name, tree in found.items()} == {
        "a": {"/rows", "/inner/note"},
        "ab": {"/rows", "/inner/note", "/other"},
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda: Tree(), "has no attribute 'version' that is a whole number from 1"),
        (lambda: Tree({"/": {"version": "one"}}), "has no attribute 'version'"),
        (
            lambda: extension(**{"/x": np.zeros(2, "c16")}),
            "/x has the type complex128, which no",
        ),
    ],
)
def test_extensions_that_a_file_cannot_hold_are_refused(airfoil, path, change, said):
    with pytest.raises(PlanError) as error:
        replace(airfoil, extensions={"mine": change()}).save(path)
    one_line(error, "extension 'mine'", said)
    assert not path.exists()


def test_an_extension_without_a_version_is_not_loaded(airfoil, path):
    replace(airfoil, extensions={"mine": extension()}).save(path)
    with h5py.File(path, "r+") as file:
        del file["extensions/mine"].attrs["version"]
    seal(path, 4)
    with pytest.raises(PlanError) as error:
        Plan.load(path)
    one_line(error, "extension 'mine' has no attribute 'version'")


@pytest.mark.parametrize("columns", [2, 3])
def test_coordinates_come_back(airfoil, path, columns):
    where = np.random.default_rng(1).random((35, columns))
    replace(airfoil, coordinates={"nodes": where}).save(path)
    assert path.read_bytes().startswith(b"meshprep-plan 4\n")
    found = Plan.load(path).coordinates["nodes"]
    assert np.array_equal(found, where)
    assert not found.flags.writeable


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (
            {"nodes": np.zeros((34, 2))},
            "is float64 of shape (34, 2), must be float64 of shape (35",
        ),
        ({"nodes": np.zeros((35, 4))}, "must be float64 of shape (35, 3)"),
        ({"nodes": np.zeros(35)}, "must be float64 of shape (35, 3)"),
        (
            {"nodes": np.zeros((35, 2), "f4")},
            "is float32 of shape (35, 2), must be float64",
        ),
        (
            {"rims": np.zeros((35, 2))},
            "coordinates names set 'rims', which the plan does not have",
        ),
    ],
)
def test_coordinates_that_do_not_fit_are_refused(airfoil, path, where, said):
    with pytest.raises(PlanError) as error:
        replace(airfoil, coordinates=where).save(path)
    one_line(error, "coordinates", said)
