"""Files that are no plans, or damaged, or unsafe: refused in one line."""

import os
from dataclasses import replace

import h5py
import numpy as np
import pytest
from plan_files import at, one_line
from sealing import seal

from meshprep_runtime import MeshprepError, Plan, PlanError
from meshprep_runtime.plan.file.store import save


@pytest.fixture
def path(tmp_path):
    return tmp_path / "wing.plan.h5"


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (lambda p: None, ["does not exist"]),
        (lambda p: p.mkdir(), ["is a directory"]),
        pytest.param(
            getattr(os, "mkfifo", None),
            ["is no regular file"],
            marks=pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes"),
        ),
        (lambda p: p.write_bytes(b""), ["is empty"]),
        (lambda p: p.write_text("$MeshFormat\n4.1 0 8\n"), ["no plan", "plan.h5"]),
        (lambda p: h5py.File(p, "w").close(), ["HDF5 file, but no plan"]),
        (lambda p: p.write_bytes(b"meshprep-plan 1\n" + bytes(5000)), ["damaged"]),
        (lambda p: (p.write_bytes(bytes(600)), seal(p, 1)), ["damaged"]),
    ],
)
def test_not_a_plan(path, make, parts):
    make(path)
    with pytest.raises(PlanError) as error:
        Plan.load(path)
    one_line(error, str(path), *parts)


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() == 0, reason="root may read everything"
)
def test_no_permission(airfoil, path):
    airfoil.save(path)
    path.chmod(0)
    with pytest.raises(PlanError, match="no permission"):
        Plan.load(path)


@pytest.mark.parametrize("target", ["missing/x.h5", "", "/dev/null"])
def test_where_nothing_can_be_written(airfoil, tmp_path, target):
    with pytest.raises(MeshprepError) as error:
        airfoil.save(tmp_path / target, overwrite=True)
    one_line(error, "cannot write")


def test_truncated_anywhere(airfoil, path):
    airfoil.save(path)
    data = path.read_bytes()
    for size in range(0, len(data), 997):
        path.write_bytes(data[:size])
        with pytest.raises(PlanError) as error:
            Plan.load(path)
        one_line(error, str(path))


def test_any_flipped_byte_is_refused(airfoil, path):
    airfoil.save(path)
    data = bytearray(path.read_bytes())
    rng = np.random.default_rng(1)
    for place in [*range(128), *rng.choice(len(data), 300, replace=False)]:
        old = data[place]
        data[place] ^= int(rng.integers(1, 256))
        path.write_bytes(data)
        data[place] = old
        with pytest.raises(PlanError) as error:
            Plan.load(path)
        one_line(error, str(path))


def test_a_plan_that_a_program_writes(airfoil, path):
    airfoil.save(path)
    with h5py.File(path, "r+"):
        with pytest.raises(PlanError) as error:
            Plan.load(path)
        one_line(error, "does not match its checksum")
    assert Plan.load(path).sizes == airfoil.sizes
    with h5py.File(path, "r"):
        Plan.load(path)
    path.write_bytes(path.read_bytes() + b"0")
    with (
        h5py.File(path, "r"),
        pytest.raises(PlanError, match="does not match its checksum"),
    ):
        Plan.load(path)


def test_what_is_added_or_cut_off_is_refused(airfoil, path):
    airfoil.save(path)
    data = path.read_bytes()
    for other in (data + b"\0", data[:-1]):
        path.write_bytes(other)
        with pytest.raises(PlanError, match="does not match its checksum"):
            Plan.load(path)


@pytest.mark.parametrize("version", [0, 5, 99])
def test_other_versions_are_refused(airfoil, path, version):
    airfoil.save(path)
    seal(path, version)
    with pytest.raises(PlanError) as error:
        Plan.load(path)
    one_line(
        error, f"version {version}", "reads version 1, 2, 3 and 4", "make the plan anew"
    )


def shadow(file, name, **kwargs):
    del file[name]
    return file.create_dataset(name, **kwargs)


def name_groups(file, text):
    data = np.array(text, h5py.string_dtype("utf-8", len(text)))
    file.create_dataset("group_names/cells/physical", data=data)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (
            lambda f: shadow(f, "options", shape=(10**6, 10**6), dtype="<i4"),
            "more than the file",
        ),
        (
            lambda f: shadow(f, "about", shape=(2**58,), dtype="<i8"),
            "more than the file has",
        ),
        (
            lambda f: shadow(f, "about", data=np.arange(9), chunks=(3,)),
            "not stored in one piece",
        ),
        (lambda f: shadow(f, "about", data=np.zeros(3, "f2")), "type that no plan has"),
        (lambda f: f.attrs.create("extra", [1, 2]), "is no scalar"),
        (lambda f: f.attrs.create("extra", 1.5), "neither short text nor int64"),
        (lambda f: f.__setitem__("extra", h5py.SoftLink("/maps")), "is a link"),
        (lambda f: f.__setitem__("extra", h5py.ExternalLink("x.h5", "/")), "is a link"),
        (lambda f: f["maps"].__setitem__("extra", f["/"]), "linked twice"),
        (lambda f: f.__delitem__("about"), "/about is missing"),
        (
            lambda f: name_groups(f, b"1 wall\nlid"),
            "/group_names/cells is not a line for each",
        ),
        (
            lambda f: name_groups(f, b"9223372036854775808 lid"),
            "is not a line for each group",
        ),
        (
            lambda f: f["loops/res_calc/s8/staging/cells/exclusive"].__setitem__(0, 2),
            "exclusive holds something else than 0 and 1",
        ),
    ],
)
def test_foreign_content_is_refused(airfoil, path, change, part):
    airfoil.save(path)
    with h5py.File(path, "r+") as file:
        change(file)
    seal(path, 1)  # as a writer in bad faith would
    with pytest.raises(PlanError) as error:
        Plan.load(path)
    one_line(error, part)


def broken(plan: Plan, **changes) -> Plan:
    loop_plan = plan["res_calc"]
    variant = replace(loop_plan.variant(), **changes)
    return replace(
        plan, loops={"res_calc": replace(loop_plan, variants={variant.name: variant})}
    )


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (
            lambda v: {"block_offset": at(v.block_offset, 1, 20)},
            "block_offset falls after entry 1",
        ),
        (
            lambda v: {"block_offset": at(v.block_offset, -1, 37)},
            "does not go from 0 to 38",
        ),
        (lambda v: {"block_offset": v.block_offset.astype("i4")}, "must be int64"),
        (lambda v: {"block_order": at(v.block_order, 2, 5)}, "entry 2 is 5, outside 0..4"),
        (
            lambda v: {"block_order": at(v.block_order, 2, -1)},
            "entry 2 is -1, outside 0..4",
        ),
        (lambda v: {"thread_colour": v.thread_colour[1:]}, "shape (37,), must be uint8"),
        (lambda v: {"thread_colour": v.thread_colour.astype("i8")}, "must be u1 or u2"),
        (
            lambda v: {
                "local": {**v.local, "edges->cells": at(v.local["edges->cells"], 3, 99)}
            },
            "element 3, column 0 is 99",
        ),
        (lambda v: {"local": {}}, "stages nothing for map 'edges->nodes'"),
        (
            lambda v: {
                "staging": {
                    **v.staging,
                    "cells": replace(
                        v.staging["cells"], points=at(v.staging["cells"].points, 0, 24)
                    ),
                }
            },
            "entry 0 is 24, outside 0..23",
        ),
    ],
)
def test_unsafe_plans_are_neither_saved_nor_loaded(
    airfoil, path, monkeypatch, change, part
):
    bad = broken(airfoil, **change(airfoil["res_calc"].variant()))
    with pytest.raises(PlanError) as error:
        bad.save(path)
    one_line(error, part)
    assert bad.verify() == [str(error.value)]
    # A file with a right checksum all the same, from another writer.
    monkeypatch.setattr("meshprep_runtime.plan.file.store.check_plan", lambda plan: None)
    try:
        save(bad, path)
    except KeyError:
        return
    monkeypatch.undo()
    with pytest.raises(PlanError):
        Plan.load(path)


def test_maps_must_be_the_plans(airfoil, path):
    loop_plan = airfoil["res_calc"]
    m = loop_plan.maps["edges->cells"]
    other = replace(m, table=at(m.table, 0, 5))
    maps = {**loop_plan.maps, "edges->cells": other}
    bad = replace(airfoil, loops={"res_calc": replace(loop_plan, maps=maps)})
    with pytest.raises(PlanError, match="differs from the plan's"):
        bad.save(path)
