"""Hidden folders of programs that were killed, which the next one removes."""

import os
import subprocess
import sys
import time

import pytest

from meshprep_runtime.plan.file import hidden
from meshprep_runtime.plan.file.atomic import together

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs locks of files")
WRITES = """
import sys
from pathlib import Path
from meshprep_runtime.plan.file.atomic import together
with together([Path(sys.argv[1])], overwrite=True) as (staged,):
    staged.write_bytes(b"half")
    print("ready", flush=True)
    sys.stdin.read()
"""


def writing(path):
    """A process that has begun to write a file."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITES, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    return process


def write(path):
    with together([path], overwrite=True) as (staged,):
        staged.write_text("whole")


def test_the_next_program_removes_what_a_killed_one_left(tmp_path):
    living = writing(tmp_path / "living")
    killed = writing(tmp_path / "killed")
    killed.kill()
    killed.communicate()
    folders = [p for p in tmp_path.iterdir() if p.name.startswith(hidden.PREFIX)]
    assert len(folders) == 2
    write(tmp_path / "next")
    left = [p.name for p in tmp_path.iterdir()]
    assert len(left) == 2
    assert "next" in left
    # that of the living program goes with it, and the file appears
    living.communicate("")
    assert living.returncode == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["living", "next"]
    assert (tmp_path / "living").read_bytes() == b"half"


def test_a_folder_that_is_not_locked_yet_stays_for_a_while(tmp_path):
    for name, content in (("empty", None), ("locked", hidden.LOCK), ("of-others", "x")):
        folder = tmp_path / f"{hidden.NEW}{name}"
        folder.mkdir()
        if content:
            (folder / content).touch()
    (tmp_path / f"{hidden.PREFIX}mine").mkdir()
    (tmp_path / f"{hidden.PREFIX}file").touch()
    everything = sorted(p.name for p in tmp_path.iterdir())
    hidden.remove_abandoned(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == everything
    old = time.time() - 2 * hidden.SECONDS
    for path in tmp_path.iterdir():
        os.utime(path, (old, old))
    hidden.remove_abandoned(tmp_path)
    left = [".meshprep-file", ".meshprep-mine", ".meshprep-new-of-others"]
    assert sorted(p.name for p in tmp_path.iterdir()) == left


def test_a_folder_that_was_to_be_replaced_is_put_back(tmp_path):
    """The program was killed after the old case had gone, and before the new one had come."""
    abandoned = tmp_path / f"{hidden.PREFIX}abc"
    for name in ("case", "other"):
        (abandoned / hidden.BEFORE / name).mkdir(parents=True)
        (abandoned / hidden.BEFORE / name / "mine").write_text("old")
    (abandoned / hidden.LOCK).touch()
    (tmp_path / "other").mkdir()
    write(tmp_path / "next")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["case", "next", "other"]
    assert (tmp_path / "case/mine").read_text() == "old"
    assert list((tmp_path / "other").iterdir()) == []


def test_a_case_is_replaced_whatever_its_name(tmp_path):
    name = "n" * 255
    (tmp_path / name).mkdir()
    (tmp_path / name / "old").touch()
    with together([tmp_path / name], overwrite=True) as (staged,):
        staged.mkdir()
        (staged / "new").touch()
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert [p.name for p in (tmp_path / name).iterdir()] == ["new"]
