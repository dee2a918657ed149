"""Files of plans whose blocks list their elements, and of those whose blocks do not."""

from dataclasses import replace

import h5py
import numpy as np
import pytest
from plan_files import one_line
from sealing import seal

from meshprep_runtime import Plan, PlanError

DATASET = "loops/res_calc/s8/elements"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "wing.plan.h5"


@pytest.fixture(scope="module")
def lists(slow):
    grid = slow.quads(6, 4)
    return slow.plan(grid.sizes, grid.tables, [slow.res_calc], (8, 16), lists=True)


def version(path):
    return path.read_bytes()[:16]


def test_lists_come_back_as_they_went(lists, path):
    lists.save(path)
    assert version(path) == b"meshprep-plan 2\n"
    again = Plan.load(path)
    assert again.verify() == []
    for name, variant in again["res_calc"].variants.items():
        before = lists["res_calc"].variant(name).elements
        assert variant.elements.dtype == np.int32
        assert np.array_equal(variant.elements, before)
        assert not variant.elements.flags.writeable
    first = path.read_bytes()
    again.save(path, overwrite=True)
    assert path.read_bytes() == first


def test_one_variant_with_a_list_makes_a_file_of_version_2(lists, airfoil, path):
    both = {**airfoil["res_calc"].variants, "s16": lists["res_calc"].variant("s16")}
    loops = {"res_calc": replace(airfoil["res_calc"], variants=both)}
    replace(airfoil, loops=loops).save(path)
    assert version(path) == b"meshprep-plan 2\n"
    found = Plan.load(path)["res_calc"].variants
    assert [v.elements is None for v in found.values()] == [True, False]


def test_plans_without_lists_are_those_of_version_1(airfoil, path):
    """Readers of the first version take them, and find nothing that they do not know."""
    airfoil.save(path)
    assert version(path) == b"meshprep-plan 1\n"
    with h5py.File(path) as file:
        assert sorted(file["loops/res_calc/s8"]) == [
            "block_colour_offset",
            "block_offset",
            "block_order",
            "local",
            "staging",
            "thread_colour",
            "thread_colours",
        ]
    assert Plan.load(path)["res_calc"].variant().elements is None


def test_the_version_must_be_that_of_the_content(lists, airfoil, path):
    """A list that readers of version 1 would not see, and the other way round."""
    for plan, wrong, right in ((lists, 1, 2), (airfoil, 2, 1), (airfoil, 3, 1)):
        plan.save(path, overwrite=True)
        seal(path, wrong)
        with pytest.raises(PlanError) as error:
            Plan.load(path)
        one_line(error, f"version {wrong}, but it holds what version {right} does")


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda e: e[1:], "shape (37,), must be int32 of shape (38,)"),
        (lambda e: e.astype("i8"), "holds <i8 of shape (38,), must be <i4"),
        (lambda e: np.where(e == 3, 38, e), "is 38, outside 0..37"),
        (lambda e: np.where(e == 3, -1, e), "is -1, outside 0..37"),
        (lambda e: e[:, None], "holds <i4 of shape (38, 1), must be <i4 of 1 dimensions"),
    ],
)
def test_unsafe_lists_are_not_loaded(lists, path, change, part):
    lists.save(path)
    with h5py.File(path, "r+") as file:
        values = change(file[DATASET][...])
        del file[DATASET]
        file[DATASET] = values
    seal(path, 2)
    with pytest.raises(PlanError) as error:
        Plan.load(path)
    one_line(error, "elements", part)


def test_an_element_named_twice_is_found_by_the_proof(lists, path):
    lists.save(path)
    with h5py.File(path, "r+") as file:
        file[DATASET][4] = file[DATASET][5]
        twice = int(file[DATASET][5])
    seal(path, 2)
    (finding,) = Plan.load(path).verify()
    where = "loop 'res_calc', variant 's8': elements is no permutation: element "
    assert finding.startswith(where)
    assert f"element {twice} stands 2 times" in finding or "stands 0 times" in finding
