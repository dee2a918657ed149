"""Files of parts that are sealed, and yet none that meshprep wrote: refused in one line."""

import shutil

import h5py
import numpy as np
import pytest

from meshprep import MeshprepError, Options, read_requests
from meshprep.distribute.job.run import SplitJob, run
from meshprep.pipeline import workflow
from meshprep_runtime.plan.file.seal import check_parts_seal, seal_parts
from meshprep_runtime.plan.parts import store

LOOP = """\
[loop.flux]
over = "edges"
args = [
  { dat = "t", map = "edges->cells", access = "read" },
  { dat = "r", map = "edges->cells", access = "inc" },
]
"""
NOT_AS_WRITTEN = [
    b"no JSON",
    b"[1, 2]",
    b'"text"',
    b"7",
    b"null",
    b"",
    b"{}",
    b"\xff\xfe",
    b"[{}]",
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    workflow.generate("delaunay2d", folder / "a.msh", values={"cells": 60})
    (folder / "heat.toml").write_text(LOOP)
    requests = read_requests(folder / "heat.toml")
    path = folder / "whole.parts.h5"
    run(SplitJob(folder / "a.msh", path, (2,), requests, options=Options(block_size=16)))
    return path


def all_that_is_read(path):
    """Everything that a file of parts is asked for; the MeshprepError that refused it, or None."""
    try:
        store.about(path)
        for parts in store.kept(path):
            for part in range(parts):
                store.load_part(path, parts, part)
    except MeshprepError as error:
        return str(error)
    return None


def with_another(whole, path, name, value):
    """A copy with another dataset or none, under a new seal."""
    ends = check_parts_seal(whole)
    shutil.copy(whole, path)
    with h5py.File(path, "r+") as file:
        del file[name]
        if value is not None:
            file.create_dataset(name, data=value)
    seal_parts(path, *ends)
    return path


def test_the_whole_file_is_read(whole):
    assert all_that_is_read(whole) is None


@pytest.mark.parametrize("name", ["about", "parts/2/description", "parts/2/datasets"])
@pytest.mark.parametrize("text", NOT_AS_WRITTEN)
def test_a_text_that_is_not_as_written(whole, tmp_path, name, text):
    if (name, text) == ("about", b"{}"):
        pytest.skip("says nothing, and is asked for nothing")
    path = with_another(whole, tmp_path / "a.parts.h5", name, np.bytes_(text))
    message = all_that_is_read(path)
    assert message is not None
    assert message.startswith(f"{path}: ")
    assert "\n" not in message


def test_any_dataset_that_is_missing_or_of_another_kind(whole, tmp_path):
    names = []
    with h5py.File(whole) as file:
        file.visititems(
            lambda name, one: names.append(name) if hasattr(one, "shape") else None
        )
    values = [None, np.float64(2.5), np.zeros(3, "i8"), np.zeros((2, 2, 2), "u1"), b"text"]
    assert len(names) > 20
    for i, name in enumerate(names):
        path = tmp_path / f"{i}.parts.h5"
        message = all_that_is_read(with_another(whole, path, name, values[i % len(values)]))
        assert message is not None, name
        assert "\n" not in message
