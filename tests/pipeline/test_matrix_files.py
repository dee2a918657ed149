"""Matrices in plans: wrong ones are found by the proof, and files keep them whole."""

from dataclasses import replace

import h5py
import numpy as np
import pytest
from matrix_loops import stiffness
from sealing import seal

from meshprep.loops.requests import LoopRequest
from meshprep.pipeline.steps import Options, prepare
from meshprep_runtime import Plan, PlanError
from meshprep_runtime.plan.checks.verify import verify
from meshprep_runtime.plan.file.seal import check_seal
from meshprep_runtime.plan.file.store import VERSIONS


def with_matrix(plan, **changes):
    """The plan with other arrays of its matrix, its loop included."""
    matrices = {"K": replace(plan.matrices["K"], **changes)}
    loops = {n: replace(p, matrices=matrices) for n, p in plan.loops.items()}
    return replace(plan, matrices=matrices, loops=loops)


def moved(values, at, to):
    values = values.copy()
    values[at] = to
    return values


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda m: {"columns": moved(m.columns, [0, 1], m.columns[[1, 0]])},
            "do not ascend",
        ),
        (lambda m: {"columns": moved(m.columns, 0, m.shape[1])}, "outside 0.."),
        (lambda m: {"row_of": moved(m.row_of, m.row_of.argmax(), -1)}, "row_ptr"),
        (lambda m: {"row_of": m.row_of[::-1]}, "does not count up from 0"),
        (
            lambda m: {"row_of": moved(m.row_of, m.row_of.argmin(), -2)},
            "does not count up from 0",
        ),
        (lambda m: {"row_of": m.row_of.astype("i8")}, "row_of is int64 of shape"),
        (
            lambda m: {"row_of": np.append(m.row_of, -1).astype("i4")},
            "row_of is int32 of shape",
        ),
        (
            lambda m: {"row_ptr": moved(m.row_ptr, 1, m.row_ptr[1] + 1)},
            "is added at nonzero",
        ),
        (
            lambda m: {"place": {"stiffness": moved(m.place["stiffness"], (5, 7), -1)}},
            "element 5, local row 1, column 1 is added at nonzero -1, not at row",
        ),
        (
            lambda m: {"place": {"stiffness": moved(m.place["stiffness"], 3, -2)}},
            "outside -1..",
        ),
        (
            lambda m: {"place": {"stiffness": m.place["stiffness"][::-1].copy()}},
            "is added at nonzero",
        ),
        (
            lambda m: {"place": {"stiffness": m.place["stiffness"][:, 1:].copy()}},
            "of shape",
        ),
        (
            lambda m: {"place": {"stiffness": m.place["stiffness"] + np.int32(1)}},
            "outside -1..",
        ),
        (lambda m: {"row_ptr": m.row_ptr + 1}, "row_ptr does not go from 0 to"),
        (lambda m: {"row_ptr": m.row_ptr.astype("i4")}, "row_ptr is int32 of shape"),
        (lambda m: {"columns": m.columns.astype("i8")}, "columns is int64 of shape"),
        (lambda m: {"place": {}}, "no places for this loop"),
        (
            lambda m: {"place": {**m.place, "mass": m.place["stiffness"]}},
            "loops that the plan has not",
        ),
        (lambda m: {"row_set": "cells"}, "its maps do not lead to its rows and columns"),
        (lambda m: {"name": "M"}, "another name"),
    ],
)
def test_a_wrong_matrix_is_found(plan, change, words):
    """row_of and column_of are one array, so that both change."""
    changed = change(plan.matrices["K"])
    if "row_of" in changed:
        changed |= {"column_of": changed["row_of"]}
    findings = verify(with_matrix(plan, **changed))
    assert findings
    assert words in " ".join(findings)


@pytest.mark.parametrize(
    ("matrices", "words"),
    [
        (lambda m: {}, "loop 'stiffness' adds to matrix 'K', which the plan has not"),
        (
            lambda m: {"K": replace(m)},
            "loop 'stiffness' has a matrix 'K' that differs from the pl",
        ),
    ],
)
def test_a_loop_adds_to_the_matrix_of_its_plan(plan, matrices, words):
    loop_plan = replace(plan["stiffness"], matrices=matrices(plan.matrices["K"]))
    (finding,) = verify(replace(plan, loops={"stiffness": loop_plan}))
    assert finding.startswith(words)


@pytest.mark.parametrize("changes", [{"dim": 5}, {"index": (1, 0, 2, 3, 4, 5)}])
def test_a_loop_adds_as_many_values_as_its_maps_have_columns(plan, changes):
    loop_plan = plan["stiffness"]
    args = tuple(replace(a, **changes) if a.name == "K" else a for a in loop_plan.loop.args)
    wrong = replace(loop_plan, loop=replace(loop_plan.loop, args=args))
    (finding,) = verify(replace(plan, loops={"stiffness": wrong}))
    assert "values an element, but its maps have 6 and 6 columns" in finding


def test_a_loop_that_adds_to_two_matrices(mesh):
    """Of other dofs, so that each is wrong in the place of the other."""
    values = stiffness().values
    mass = {"mat": "M", "rows": "cells->dofs1", "columns": "cells->dofs1", "access": "inc"}
    request = LoopRequest("both", {**values, "args": [*values["args"], mass]}, "test")
    plan = prepare(mesh, [request], Options(block_size=64)).plan
    assert plan.matrices["K"].shape > plan.matrices["M"].shape
    assert verify(plan) == []
    wrong = {"both": moved(plan.matrices["M"].place["both"], (5, 7), -1)}
    wrong = replace(plan.matrices["M"], place=wrong)
    matrices = {**plan.matrices, "M": wrong}
    loops = {"both": replace(plan["both"], matrices=matrices)}
    (finding,) = verify(replace(plan, matrices=matrices, loops=loops))
    assert "matrix 'M': element 5, local row 2, column 1 is added at nonzero -1" in finding


def test_nonzeros_that_nothing_is_added_to_are_found(plan):
    """One more column at the end of the last row."""
    m = plan.matrices["K"]
    last = m.columns[m.row_ptr[-2] :]
    free = int(np.setdiff1d(np.arange(m.shape[1]), last)[0])
    place = int(np.searchsorted(last, free)) + m.row_ptr[-2]
    shifted = m.place["stiffness"] + (m.place["stiffness"] >= place).astype(np.int32)
    wrong = with_matrix(
        plan,
        columns=np.insert(m.columns, place, free).astype(np.int32),
        row_ptr=moved(m.row_ptr, -1, m.row_ptr[-1] + 1),
        place={"stiffness": shifted},
    )
    assert verify(wrong) == [
        f"matrix 'K': nothing is added at row {m.shape[0] - 1}, column {free}"
    ]


def without_ranges(plan):
    """The plan as it was before there were ranges."""
    loops = {name: replace(one, ranges=None) for name, one in plan.loops.items()}
    return replace(plan, loops=loops)


def test_a_file_of_version_3_has_the_same_matrix(plan, mesh, tmp_path):
    path = tmp_path / "K.plan.h5"
    plan.save(path)
    assert check_seal(path, VERSIONS) == 4
    without_ranges(plan).save(path, overwrite=True)
    assert check_seal(path, VERSIONS) == 3
    found = Plan.load(path)
    assert found.verify() == []
    assert found["stiffness"].loop == plan["stiffness"].loop
    for name, own in vars(plan.matrices["K"]).items():
        if isinstance(own, np.ndarray):
            kept = getattr(found.matrices["K"], name)
            assert np.array_equal(own, kept)
            assert own.dtype == kept.dtype
    assert np.array_equal(
        found["stiffness"].matrices["K"].place["stiffness"],
        plan.matrices["K"].place["stiffness"],
    )
    found.save(tmp_path / "again.plan.h5")
    assert path.read_bytes() == (tmp_path / "again.plan.h5").read_bytes()
    other = prepare(mesh, [stiffness("cells->dofs1", "cells->dofs2")]).plan
    other.save(path, overwrite=True)
    assert Plan.load(path).verify() == []
    with pytest.raises(PlanError, match="adds to matrix 'K', which the plan has not"):
        replace(plan, matrices={}).save(path, overwrite=True)


def findings_in(path):
    """What is wrong with a plan file, a line each."""
    try:
        found = Plan.load(path).verify()
    except PlanError as error:
        found = [str(error)]
    assert not any("\n" in line for line in found)
    return found


DATASETS = ["row_of", "row_ptr", "columns", "place/stiffness"]


@pytest.mark.parametrize("name", DATASETS)
def test_no_wrong_number_in_a_file_is_believed(plan, tmp_path, name):
    """One number is changed under a right seal: loading refuses, or the proof finds it."""
    path, rng = tmp_path / "K.plan.h5", np.random.default_rng(0)
    plan.save(path)
    for _ in range(12):
        with h5py.File(path, "r+") as file:
            values = file[f"matrices/K/{name}"]
            at = tuple(rng.integers(0, values.shape))
            right = values[at]
            values[at] = rng.choice([-7, -1, 0, 1, 2**31 - 1, right - 1, right + 1])
            changed = values[at] != right
        seal(path, 3)
        assert bool(findings_in(path)) == changed
        with h5py.File(path, "r+") as file:
            file[f"matrices/K/{name}"][at] = right


@pytest.mark.parametrize("name", [*DATASETS, "place", ""])
def test_what_a_file_lacks_is_said(plan, tmp_path, name):
    path = tmp_path / "K.plan.h5"
    plan.save(path)
    with h5py.File(path, "r+") as file:
        del file[f"matrices/K/{name}".rstrip("/")]
    seal(path, 3)
    with pytest.raises(PlanError):
        Plan.load(path)
