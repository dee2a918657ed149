"""Two runs that write one file: the later one fails, and nothing of it stays."""

import os

import numpy as np
import pytest

from meshprep_runtime import Plan
from meshprep_runtime.plan.file import atomic
from meshprep_runtime.plan.file.hidden import PREFIX

WRITE = {
    "reorder": ("reorder", "wing.msh", "-o", "new.msh", "--plan", "new.h5"),
    "plan": ("plan", "wing.msh", "--plan", "new.h5"),
    "loops": ("loops", "wing.msh", "-o", "new.toml"),
    "generate": ("generate", "mixed2d", "-o", "new.msh"),
    "apply": ("apply", "wing.plan.h5", "q.npy", "r.npy"),
    "report": (
        "report",
        "wing.plan.h5",
        "--mesh",
        "wing.msh",
        "--html",
        "n.html",
        "--picture",
        "n.png",
    ),
    "sweep": ("sweep", "wing.msh", "--block-sizes", 64, "--html", "new.html"),
}


@pytest.fixture
def folder(cli, mesh_file, monkeypatch):
    monkeypatch.chdir(mesh_file.parent)
    assert cli("plan", "wing.msh", "-q")[0] == 0
    cells = Plan.load("wing.plan.h5").sizes["cells"]
    for name in ("q.npy", "r.npy"):
        np.save(name, np.arange(cells))
    return mesh_file.parent


@pytest.mark.parametrize("command", WRITE)
def test_the_later_of_two_runs_fails(cli, folder, monkeypatch, command):
    def late(staged, overwrite):
        # The other run was faster with the last of the outputs.
        last = list(staged.values())[-1]
        if PREFIX not in str(last):
            theirs.append(last)
            last.write_text("theirs")
        publish(staged, overwrite)

    theirs = []
    publish = atomic._publish
    before = set(os.listdir())
    monkeypatch.setattr(atomic, "_publish", late)
    code, out, err = cli(*WRITE[command])
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == (
        f"meshprep: error: {theirs[0]}: has come to exist meanwhile, nothing was written: "
        "choose another name, or allow overwriting it"
    )
    assert set(os.listdir()) - before == {theirs[0].name}
    assert theirs[0].read_text() == "theirs"
