"""Plans and parts that were changed and sealed anew: in C, refused in one line, or safe to run."""

import hashlib
import json
import os
import random
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from c_builds import LOOPS, STRICT
from sealing import seal
from test_c import MATRIX

from meshprep import Options, prepare, read_requests
from meshprep.distribute.job.run import SplitJob, run
from meshprep.io.generate import generate
from meshprep.loops.requests import simple_request
from meshprep.pipeline import workflow
from meshprep.topology import derive
from meshprep_runtime import MeshprepError, Plan, PlanError
from meshprep_runtime.plan import ranges
from meshprep_runtime.plan.file.seal import check_parts_seal, check_seal, seal_parts
from meshprep_runtime.plan.file.store import VERSIONS
from meshprep_runtime.plan.parts import load_part

pytestmark = pytest.mark.slow

# The datasets that the program reads.
OF_PLANS = re.compile("(?!about|options|metrics)")
OF_PARTS = re.compile(
    "parts/3/(offset|d|sets/(cells|edges)/|maps/edges->cells|.*/block_o|coord|tags/cells)"
)
# What it looks at in each of three parts: Python proves all of a part.
USED_OF_PARTS = re.compile(
    "parts/3/(offset|d|sets/cells/(counts|send|receive)|maps/edges->cells|loops/flux|coord|tags)"
)
# Files that are changed, how many are refused at least, and for how many reasons; more in CI.
FILES, REFUSED, REASONS = (
    (150, 60, 16) if "MESHPREP_REQUIRE_C" in os.environ else (60, 15, 8)
)
WORDS = ["cells", "edges", "edges->cells", "s16", "", "no", "x" * 3000]


def numbers(values, chance):
    """Numbers that indices, offsets and sizes must not be, and some that they may."""
    beside = int(values.flat[0]) if values.size else 0
    edges = [
        -1,
        0,
        1,
        values.size,
        values.size + 1,
        beside + 1,
        255,
        65535,
        2**31 - 1,
        -(2**31),
    ]
    return chance.choice([*edges, 2**40, -(2**63), 2**63 - 1])


def one_entry(file, name, values, chance):
    if values.size and values.dtype.kind in "iu":
        flat, info = values.reshape(-1), np.iinfo(values.dtype)
        found = min(max(numbers(values, chance), info.min), info.max)
        flat[chance.randrange(flat.size)] = found
        file[name][...] = flat.reshape(values.shape)


def every_entry(file, name, values, chance):
    if values.size and values.dtype.kind in "iu":
        most = chance.choice([2, 20, 200])
        file[name][...] = np.array([chance.randrange(most) for _ in values.flat]).reshape(
            values.shape
        )


def anew(file, name, **how):
    del file[name]
    file.create_dataset(name, **how)


def other_length(file, name, values, chance):
    if values.ndim:
        axis, n = chance.randrange(values.ndim), chance.choice([0, 1, 5])
        kept = chance.choice([values.take(range(min(n, values.shape[axis])), axis)])
        anew(file, name, data=chance.choice([kept, np.concatenate([values, kept], axis)]))


def other_shape(file, name, values, chance):
    shapes = [values.ravel(), values.T, values[..., None], np.zeros((), "i8")]
    anew(file, name, data=chance.choice(shapes))


def other_type(file, name, values, chance):
    if values.dtype.kind in "iu":
        anew(file, name, data=values.astype(chance.choice(["i8", "f8", "u1", "S5", "i2"])))
    else:
        anew(file, name, data=chance.choice([7, "of any length", b"1 one\nx"]))


def other_text(file, name, values, chance):
    """One character of what a text holds is another, or it ends there."""
    if values.dtype.kind == "S":
        text, at = bytes(values[()]), chance.randrange(values.dtype.itemsize)
        change = chance.choice([b"", b'"', b"{", b"}", b"\\", b"[", b":"])
        anew(
            file,
            name,
            data=np.bytes_(text[:at] + change + (text[at + 1 :] if change else b"")),
        )


def missing(file, name, values, chance):
    del file[name]


def claims_more(file, name, values, chance):
    shape = chance.choice([(2**40,), (2**33, 2**31), (2, 2**45), (2**62, 4), (2**20,)])
    anew(file, name, shape=shape, dtype="i4")


def stored_elsewhere(file, name, values, chance):
    if chance.random() < 0.5 and values.ndim and values.size:
        anew(file, name, data=values, chunks=True)
        return
    del file[name]
    links = [h5py.SoftLink("/maps"), h5py.SoftLink("/no"), h5py.ExternalLink("x.h5", "/")]
    file[name] = chance.choice(links)


def attribute(file, name, values, chance):
    """Of a group: a number, a text, a list or nothing."""
    groups = [file[n] for n in _names(file, h5py.Group) if len(file[n].attrs)]
    if groups:
        group = chance.choice(groups)
        key = chance.choice(sorted(group.attrs))
        number = chance.choice([-1, 0, 7, 10**6, 2**62])
        some = [
            number,
            number,
            chance.choice(WORDS),
            np.arange(400),
            1.5,
            np.bytes_("cells"),
        ]
        group.attrs.create(key, chance.choice(some))


CHANGES = [one_entry] * 5 + [every_entry, other_length, other_shape, other_type, missing]
CHANGES += [claims_more, stored_elsewhere, attribute, attribute, other_text, other_text]


def _names(file, kind):
    found = []
    file.visititems(lambda name, one: found.append(name) if isinstance(one, kind) else None)
    return found


def changed(path, read, chance):
    """Change one thing in an HDF5 file, in what is read of it; what and where."""
    with h5py.File(path, "r+") as file:
        name = chance.choice([n for n in _names(file, h5py.Dataset) if read.match(n)])
        change = chance.choice(CHANGES)
        change(
            file,
            name,
            file[name][()] if file[name].shape else np.array(file[name][()]),
            chance,
        )
    return f"{change.__name__} {name}"


def reseal_parts(path, names, begin, end):
    """A new seal, and new digests where the tables still say what is to be digested."""
    with h5py.File(path, "r+") as file:
        split = file["parts/3"]
        found = [split.get(name) for name in (*names, "offset", "digest")]
        if all(isinstance(d, h5py.Dataset) and d.ndim and d.nbytes < 10**6 for d in found):
            *arrays, offset, digest = (d[()] for d in found)
            if offset.dtype.kind == "i" and offset.shape == (len(names), 4):
                for p in range(min(len(digest), 3)):
                    digest[p] = digest_of(arrays, offset[:, p], offset[:, p + 1])[
                        : digest[p].size
                    ]
                split["digest"][...] = digest
    seal_parts(path, begin, end)


def digest_of(arrays, first, stop):
    slices = (a[b:e].tobytes() for a, b, e in zip(arrays, first, stop, strict=True))
    return np.frombuffer(hashlib.sha256(b"".join(slices)).digest(), "u1")


@pytest.fixture(scope="module")
def program(compile_program, tmp_path_factory):
    found = tmp_path_factory.mktemp("touched") / "touched"
    flags = [*STRICT, "-std=c++17"]
    compile_program(
        "g++", flags, Path(__file__).parent / "touched.cpp", found, checked=True
    )
    return found


def told(program, files):
    """What the program prints of each file; all that it reads or frees wrongly ends it."""
    limits = "allocator_may_return_null=1:max_allocation_size_mb=200"
    environment = os.environ | {"ASAN_OPTIONS": limits, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run([program, *files], capture_output=True, text=True, env=environment)
    lines = ran.stdout.splitlines()
    assert (ran.returncode, ran.stderr) == (0, ""), (files[len(lines)], ran.stderr[-4000:])
    assert len(lines) == len(files)
    return lines


def written_plan(folder, lists):
    (folder / "all.toml").write_text(LOOPS + MATRIX)
    mesh = derive(generate("delaunay2d", cells=80, seed=2), ["edges->cells"])
    options = Options(block_size=16, partition="metis" if lists else None)
    made = prepare(mesh, read_requests(folder / "all.toml"), options, keep_order=lists).plan
    tags = {"cells": {"physical": np.arange(80, dtype=np.int64) % 3}}
    further = {"cells": {"physical": np.array([[2, 1], [2, 5], [77, 1]])}}
    named = {"cells": {"physical": {1: "one"}}}
    path = folder / "whole.plan.h5"
    where = {"cells": np.random.default_rng(3).random((80, 2))}
    others = {"group_names": named, "further_groups": further, "coordinates": where}
    replace(made, tags=tags, **others).save(path)
    return path


@pytest.mark.parametrize("lists", [False, True], ids=["ranges", "lists"])
def test_plans_that_are_sealed_anew(program, tmp_path, lists, monkeypatch):
    monkeypatch.setattr(ranges, "LEAST", 16)
    monkeypatch.setattr(ranges, "MOST", 16)
    whole, chance = written_plan(tmp_path, lists), random.Random(7 + lists)
    version, files, changes = check_seal(whole, VERSIONS), [whole], []
    for i in range(FILES):
        path = tmp_path / f"{i}.plan.h5"
        shutil.copy(whole, path)
        changes.append(changed(path, OF_PLANS, chance))
        seal(path, version)
        files.append(path)
    first, *lines = told(program, files)
    assert first.startswith("used ")
    refused = Counter(
        line.split(": ", 1)[-1] for line in lines if not line.startswith("used")
    )
    for path, line, change in zip(files[1:], lines, changes, strict=True):
        try:
            Plan.load(path)
        except MeshprepError:
            continue
        # what Python takes, C takes
        assert line.startswith("used"), (change, line)
    # most arrays are read, and few changes are none
    assert refused.total() > REFUSED, list(zip(changes, lines, strict=True))
    assert len(refused) >= REASONS


def put(name, place, value):
    """A change of one entry."""

    def change(file, variant):
        file[name.format(variant=variant)][place] = value

    return change


def of_type(name, dtype):
    """A change of the type alone."""

    def change(file, variant):
        path = name.format(variant=variant)
        values = file[path][()].astype(dtype)
        anew(file, path, data=values)

    return change


def smaller_cap(file, variant):
    file[variant].attrs["block_size"] = np.int64(3)


def no_cap(file, variant):
    file[variant].attrs["block_size"] = np.int64(0)


def cut_a_block(file, variant):
    file["loops/flux/ranges/offset"][1] += 1


# Each breaks one line of the list in docs/plan-format.md.
DAMAGES = {
    "coordinates NaN": put("mesh/cells/coordinates", (3, 1), np.nan),
    "coordinates infinite": put("mesh/cells/coordinates", (0, 0), -np.inf),
    "index past its set": put("maps/edges->cells/table", (0, 1), 80),
    "new_to_old": put("ordering/cells/new_to_old", 0, -1),
    "block_offset falls": put("{variant}/block_offset", 1, 10**6),
    "block_size below a block": smaller_cap,
    "block_size 0": no_cap,
    "block_order": put("{variant}/block_order", 0, 1000),
    "thread_colour past its block": put("{variant}/thread_colour", 0, 200),
    "thread_colours above block_size": put("{variant}/thread_colours", 0, 17),
    "thread_colours negative": put("{variant}/thread_colours", 0, -1),
    "points": put("{variant}/staging/cells/points", 0, 80),
    "point_offset": put("{variant}/staging/cells/point_offset", 0, 1),
    "exclusive": put("{variant}/staging/cells/exclusive", 0, 2),
    "local": put("{variant}/local/edges->cells", (0, 0), 65535),
    "range in a block": cut_a_block,
    "ranges order": put("loops/flux/ranges/order", 0, 1),
    "waits for itself": put("loops/flux/ranges/waits", 0, 10**6),
    "further group past its set": put("further_groups/cells/physical", (2, 0), 80),
    "further groups fall": put("further_groups/cells/physical", (0, 0), 77),
    "table of eight bytes": of_type("maps/edges->cells/table", "i8"),
    "table of the other order": of_type("maps/edges->cells/table", ">i4"),
    "table of floats": of_type("maps/edges->cells/table", "f4"),
    "local of one byte": of_type("{variant}/local/edges->cells", "u1"),
    "colours with a sign": of_type("{variant}/thread_colour", "i2"),
    "coordinates of four bytes": of_type("mesh/cells/coordinates", "f4"),
}


def test_python_and_c_refuse_the_same_plans(program, tmp_path, monkeypatch):
    monkeypatch.setattr(ranges, "LEAST", 16)
    monkeypatch.setattr(ranges, "MOST", 16)
    whole = written_plan(tmp_path, lists=False)
    version = check_seal(whole, VERSIONS)
    loop = Plan.load(whole)["flux"]
    files = [whole]
    for i, change in enumerate(DAMAGES.values()):
        path = tmp_path / f"{i}.plan.h5"
        shutil.copy(whole, path)
        with h5py.File(path, "r+") as file:
            change(file, f"loops/flux/{loop.default}")
        seal(path, version)
        files.append(path)
    first, *lines = told(program, files)
    assert first.startswith("used ")
    taken_in_c = [
        n for n, line in zip(DAMAGES, lines, strict=True) if line.startswith("used")
    ]
    taken_in_python, messages = [], []
    for name, path in zip(DAMAGES, files[1:], strict=True):
        try:
            Plan.load(path)
            taken_in_python.append(name)
        except PlanError as error:
            messages.append(str(error))
    assert all("\n" not in message for message in messages)
    assert (taken_in_c, taken_in_python) == ([], [])


def test_parts_that_are_sealed_anew(program, tmp_path):
    mesh, whole, chance = tmp_path / "a.msh", tmp_path / "whole.parts.h5", random.Random(9)
    workflow.generate("delaunay2d", mesh, values={"cells": 120})
    (tmp_path / "heat.toml").write_text(LOOPS)
    requests = *read_requests(tmp_path / "heat.toml"), simple_request("cells->nodes")
    run(SplitJob(mesh, whole, (3,), requests, options=Options(block_size=16)))
    ends, files, changes = check_parts_seal(whole), [whole], []
    with h5py.File(whole) as file:
        names = json.loads(file["parts/3/datasets"][()])
    for i in range(FILES):
        path = tmp_path / f"{i}.parts.h5"
        shutil.copy(whole, path)
        changes.append(changed(path, OF_PARTS, chance))
        reseal_parts(path, names, *ends)
        files.append(path)
    first, *lines = told(program, files)
    assert first.startswith("used ")
    refused = Counter(
        line.split(": ", 1)[-1] for line in lines if not line.startswith("used")
    )
    compared = 0
    for path, line, change in zip(files[1:], lines, changes, strict=True):
        taken, said = line.startswith("used"), said_in_python(path)
        # what Python takes, C takes, and of what both look at the other way round
        assert taken or said, (change, line)
        # C knows the bytes of a row alone: (n, 1) is the same to it as (n,)
        same_bytes = change.startswith("other_shape")
        if USED_OF_PARTS.match(change.partition(" ")[2]) and not same_bytes:
            assert taken == (not said), (change, line, said)
            compared += 1
    assert compared > FILES // 3
    assert refused.total() > REFUSED, list(zip(changes, lines, strict=True))
    assert len(refused) > REASONS // 2


def said_in_python(path):
    """Why Python refuses one of the three parts of a file; empty where it takes all."""
    try:
        for part in range(3):
            load_part(path, 3, part)
    except MeshprepError as error:
        return str(error)
    return ""
