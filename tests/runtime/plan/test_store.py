"""Plan files: what goes in comes out, and nothing else is believed."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from plan_files import one_line
from sealing import seal

from meshprep_runtime import Loop, MeshprepError, Plan, PlanError
from meshprep_runtime.plan.file.schema import to_tree
from meshprep_runtime.plan.metrics import Metrics
from meshprep_runtime.types.loops import Access, Arg


@pytest.fixture
def path(tmp_path):
    return tmp_path / "wing.plan.h5"


def assert_equal_plans(a: Plan, b: Plan) -> None:
    left, right = to_tree(a), to_tree(b)
    assert left.groups == right.groups
    assert left.datasets.keys() == right.datasets.keys()
    for name, value in left.datasets.items():
        other = right.datasets[name]
        if isinstance(value, str):
            assert value == other
        else:
            assert value.dtype == other.dtype
            assert np.array_equal(value, other)


def test_schedules_of_chains_in_an_older_plan_are_passed_over(airfoil, path):
    airfoil.save(path)
    with h5py.File(path, "r+") as file:
        file.create_group("chains/two steps")
    seal(path, 1)
    assert_equal_plans(airfoil, Plan.load(path))


def test_round_trip(airfoil, path):
    airfoil.save(path)
    loaded = Plan.load(path)
    assert_equal_plans(airfoil, loaded)
    assert loaded.verify() == []
    assert list(loaded.sizes.items()) == [("edges", 38), ("cells", 24), ("nodes", 35)]
    assert loaded["res_calc"].loop == airfoil["res_calc"].loop
    assert list(loaded["res_calc"].variants) == ["s8", "s16"]
    assert loaded["res_calc"].variant().block_size == 8
    assert loaded["res_calc"].variant().staging["cells"].exclusive.dtype == np.bool_
    assert loaded.metrics == airfoil.metrics
    assert loaded.metrics.seconds == {"all": 3.5}
    assert loaded.metrics.other == {"of a later version": [1, 2]}
    assert loaded.options == {"seed": 0}
    assert loaded.about == {"creator": "tests"}
    assert (loaded.source_hash, loaded.mesh_hash) == ("12ab", "34cd")
    assert loaded.tags["cells"]["physical"].tolist() == list(range(-1, 23))
    values = np.arange(24)
    assert np.array_equal(
        loaded.ordering["cells"].apply(values), airfoil.ordering["cells"].apply(values)
    )


def test_loaded_arrays_are_read_only(airfoil, path):
    airfoil.save(path)
    variant = Plan.load(path)["res_calc"].variant()
    with pytest.raises(ValueError, match="read-only"):
        variant.block_offset[0] = 1


def test_order_of_names_survives(slow, path):
    tables = {f"cells->{s}": np.zeros((3, 1), dtype=np.int32) for s in ("z", "b", "a")}
    loops = [
        Loop(name, "cells", (Arg("v", Access.INC, 1, "i4", m, (0,)),))
        for name, m in (("last", "cells->z"), ("first", "cells->a"))
    ]
    sizes = {"z": 1, "cells": 3, "b": 1, "a": 1}
    slow.plan(sizes, tables, loops, (2, 1)).save(path)
    loaded = Plan.load(path)
    assert list(loaded.sizes) == ["z", "cells", "b", "a"]
    assert list(loaded.maps) == ["cells->z", "cells->b", "cells->a"]
    assert list(loaded.loops) == ["last", "first"]
    assert list(loaded["last"].variants) == ["s2", "s1"]


def test_empty_plan_and_empty_sets(slow, path):
    nothing = Plan({}, {}, {}, {}, "", "")
    nothing.save(path)
    assert_equal_plans(nothing, Plan.load(path))
    loop = Loop("l", "cells", (Arg("v", Access.INC, 1, "i4", "cells->nodes", (0,)),))
    table = np.zeros((0, 3), dtype=np.int32)
    empty = slow.plan({"cells": 0, "nodes": 0}, {"cells->nodes": table}, [loop])
    empty.save(path, overwrite=True)
    assert_equal_plans(empty, Plan.load(path))
    assert Plan.load(path).verify() == []


def test_same_plan_same_bytes(airfoil, tmp_path):
    airfoil.save(tmp_path / "a.h5")
    airfoil.save(tmp_path / "b.h5")
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_numpy_values_in_json(airfoil, path):
    values = {
        "n": np.int64(3),
        "t": (1, np.float32(0.5)),
        "a": np.arange(2),
        "inf": float("inf"),
    }
    replace(airfoil, options=values, metrics=Metrics(other=values)).save(path)
    loaded = Plan.load(path)
    assert loaded.options == {"n": 3, "t": [1, 0.5], "a": [0, 1], "inf": float("inf")}
    assert loaded.metrics.other == loaded.options


def test_options_that_were_removed_stay_in_plans_that_have_them(airfoil, path):
    options = {"partition": "blocks", "partition_options": {"colour_weight": 2.0}}
    replace(airfoil, options=options).save(path)
    assert Plan.load(path).options == options
    assert Plan.load(path).verify() == []


def test_text_of_any_script_and_length(airfoil, path):
    options = {"Flügel ✈": "x" * 300_000}
    variant = replace(airfoil["res_calc"].variant(), partitioner="größe" * 20_000)
    loop_plan = replace(airfoil["res_calc"], variants={"s8": variant})
    replace(airfoil, options=options, loops={"res_calc": loop_plan}).save(path)
    assert Plan.load(path).options == options
    assert Plan.load(path)["res_calc"].variant().partitioner == "größe" * 20_000


def test_a_text_that_hdf5_would_cut_is_refused(airfoil, path):
    variant = replace(airfoil["res_calc"].variant(), partitioner="metis\0 and more")
    loop_plan = replace(airfoil["res_calc"], variants={"s8": variant})
    with pytest.raises(PlanError) as error:
        replace(airfoil, loops={"res_calc": loop_plan}).save(path)
    one_line(error, "cannot hold the text", "which has a zero byte")
    assert not path.exists()


def test_metrics_must_be_json(airfoil, path):
    with pytest.raises(PlanError) as error:
        replace(airfoil, metrics=Metrics(other={"x": object()})).save(path)
    one_line(error, "metrics cannot be stored as JSON")
    assert not path.exists()


@pytest.mark.parametrize("name", ["a/b", "", ".", "a\0b", "\udc80"])
def test_names_a_file_cannot_hold(airfoil, path, name):
    with pytest.raises(PlanError) as error:
        replace(airfoil, sizes={**airfoil.sizes, name: 1}).save(path)
    one_line(error, "cannot hold the name")


def test_existing_file_is_kept_unless_overwritten(airfoil, path):
    path.write_text("mine")
    with pytest.raises(MeshprepError) as error:
        airfoil.save(path)
    one_line(error, "wing.plan.h5 exists")
    assert path.read_text() == "mine"
    airfoil.save(path, overwrite=True)
    assert Plan.load(path).sizes == airfoil.sizes
    assert [p.name for p in path.parent.iterdir()] == ["wing.plan.h5"]


def test_overwriting_follows_a_link(airfoil, path, tmp_path):
    target = tmp_path / "real.h5"
    target.write_text("old")
    path.symlink_to(target)
    airfoil.save(path, overwrite=True)
    assert path.is_symlink()
    assert Plan.load(target).sizes == airfoil.sizes


def test_permissions_follow_the_umask(airfoil, path):
    before = os.umask(0o027)
    try:
        airfoil.save(path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, OSError("No space left"), MemoryError]
)
def test_nothing_is_left_after_a_failure(airfoil, path, monkeypatch, error):
    made = []

    def fail(group, name, **kwargs):
        made.append(name)
        if len(made) == 5:
            raise error
        return original(group, name, **kwargs)

    original = h5py.Group.create_dataset
    monkeypatch.setattr(h5py.Group, "create_dataset", fail)
    with pytest.raises((KeyboardInterrupt, MeshprepError, MemoryError)):
        airfoil.save(path)
    assert len(made) == 5
    assert list(path.parent.iterdir()) == []


def test_full_disk(airfoil, path):
    """A limit on the size of files stands for a full disk: the same error, from the same call."""
    airfoil.save(path)
    size = path.stat().st_size
    code = f"""
import resource, sys
from meshprep_runtime import Plan, MeshprepError
plan = Plan.load({str(path)!r})
for limit in range(0, {size}, {size // 40}):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        plan.save({str(path.parent / "new.h5")!r})
    except MeshprepError as error:
        assert str(error) == {f"{path.parent / 'new.h5'}: cannot write: File too large"!r}, error
    else:
        sys.exit(f"wrote past {{limit}}")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_import_is_lean():
    code = """
import sys
import meshprep_runtime
heavy = {"scipy", "meshio", "pymetis", "numba", "h5py", "cupy"} & set(sys.modules)
assert not heavy, heavy
from meshprep_runtime import ParLoop, Plan
from meshprep_runtime.plan.checks.verify import verify
heavy = {"scipy", "meshio", "pymetis", "numba", "h5py", "cupy"} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_missing_h5py(airfoil, tmp_path):
    code = """
import sys
sys.modules["h5py"] = None
from meshprep_runtime import Plan, MissingPackageError
try:
    Plan.load("x.h5")
except MissingPackageError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "plan files need h5py: pip install h5py\n", done.stderr


def test_path_types(airfoil, path):
    airfoil.save(str(path))
    assert Plan.load(str(path)).sizes == Plan.load(Path(path)).sizes
