"""Outputs appear together or not at all."""

import errno
import os
import threading
from contextlib import nullcontext

import pytest

from meshprep_runtime import MeshprepError
from meshprep_runtime.plan.file.atomic import together
from meshprep_runtime.plan.file.hidden import BEFORE


def test_all_outputs_appear_together(tmp_path):
    a, b = tmp_path / "a.msh", tmp_path / "b.h5"
    with together([a, b], overwrite=False) as staged:
        for path in staged:
            path.write_text(path.name)
        assert not a.exists()
    assert a.read_text() == "a.msh"
    assert sorted(os.listdir(tmp_path)) == ["a.msh", "b.h5"]


@pytest.mark.parametrize("stop", [ValueError, KeyboardInterrupt])
def test_nothing_is_left_when_the_work_stops(tmp_path, stop):
    def half():
        with together([tmp_path / "a", tmp_path / "b"], overwrite=False) as staged:
            staged[0].write_text("half")
            raise stop

    with pytest.raises(stop):
        half()
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs a list of open files")
def test_a_large_file_that_is_replaced_is_let_go(tmp_path):
    path, before = tmp_path / "a", threading.enumerate()
    path.write_bytes(b"x" * (5 << 20))
    with together([path], overwrite=True) as (staged,):
        staged.write_text("new")
    assert path.read_text() == "new"
    for thread in set(threading.enumerate()) - {*before}:
        thread.join()
    held = [
        os.readlink(f"/proc/self/fd/{f}") for f in os.listdir("/proc/self/fd") if is_open(f)
    ]
    assert not [name for name in held if name.startswith(str(tmp_path))]


def is_open(number: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{number}")


def both(folder, overwrite=False, meanwhile=lambda: None):
    """Write a and b into a folder; ``meanwhile`` happens when both are ready."""
    with together([folder / "a", folder / "b"], overwrite=overwrite) as staged:
        for path in staged:
            path.write_text("ours")
        meanwhile()


@pytest.mark.parametrize("first", ["a", "b"])
def test_what_appears_meanwhile_is_not_replaced(tmp_path, first):
    theirs = tmp_path / first
    with pytest.raises(MeshprepError, match=f"{first}: has come to exist meanwhile"):
        both(tmp_path, meanwhile=lambda: theirs.write_text("theirs"))
    assert os.listdir(tmp_path) == [first]
    assert theirs.read_text() == "theirs"
    both(tmp_path, overwrite=True)
    assert theirs.read_text() == "ours"


@pytest.mark.parametrize("old", [None, "old"])
def test_when_one_output_cannot_be_put_in_place_none_is(tmp_path, old):
    (tmp_path / "b").mkdir()
    if old:
        (tmp_path / "a").write_text(old)
    with pytest.raises(MeshprepError, match="b: cannot write: Is a directory"):
        both(tmp_path, overwrite=True)
    assert sorted(os.listdir(tmp_path)) == (["a", "b"] if old else ["b"])
    if old:
        assert (tmp_path / "a").read_text() == old
    assert os.listdir(tmp_path / "b") == []


@pytest.mark.parametrize(
    "error",
    [
        lambda path: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        lambda path: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)),
        lambda path: OSError(f"write failed, filename = '{path}', No space left on device"),
        lambda path: MeshprepError(f"{path}: No space left on device"),
    ],
)
def test_a_full_disk_names_the_output(tmp_path, error):
    def full():
        with together([tmp_path / "a.msh"], overwrite=False) as (staged,):
            raise error(staged)

    with pytest.raises(
        MeshprepError, match=r"/a\.msh: .*No space left on device"
    ) as raised:
        full()
    assert ".meshprep-" not in str(raised.value)


def test_files_that_are_read_keep_their_names(tmp_path):
    def reads():
        with together([tmp_path / "a"], overwrite=False):
            (tmp_path / "mesh").read_text()

    with pytest.raises(FileNotFoundError, match="mesh"):
        reads()


def test_a_folder_that_takes_no_files_is_named(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("meshprep_runtime.plan.file.hidden.tempfile.mkdtemp", refuse)
    with (
        pytest.raises(MeshprepError, match=r"a: its folder takes no new files"),
        together([tmp_path / "a"], overwrite=False),
    ):
        pass
    assert os.listdir(tmp_path) == []


def test_pipes_stay_and_links_lead_to_what_is_replaced(tmp_path):
    pipe, old, link = tmp_path / "pipe", tmp_path / "old", tmp_path / "link"
    os.mkfifo(pipe)
    old.write_text("old")
    link.symlink_to(old)
    with (
        pytest.raises(MeshprepError, match="pipe: it is a device or a pipe"),
        together([pipe], overwrite=True),
    ):
        pass
    assert pipe.is_fifo()
    with together([link], overwrite=True) as (staged,):
        staged.write_text("new")
    assert link.is_symlink()
    assert old.read_text() == "new"


def folder_of(path, text):
    path.mkdir()
    (path / "inside").write_text(text)
    return path


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("failing", ["", "rename of the folder", "name of the file"])
def test_a_folder_has_its_name_as_a_whole_or_not_at_all(
    tmp_path, monkeypatch, old, failing
):
    case, plan = tmp_path / "case", tmp_path / "a.h5"
    if old:
        folder_of(case, "old")
    if failing == "name of the file":
        folder_of(plan, "in the way")
    rename = os.rename

    def broken(a, b):
        back = a.parent.name == BEFORE
        if failing == "rename of the folder" and b == case and not back:
            raise OSError(errno.EIO, "broken")
        rename(a, b)

    monkeypatch.setattr(os, "rename", broken)
    fails = failing and (old or failing == "name of the file")
    stops = pytest.raises((MeshprepError, OSError)) if fails else nullcontext()
    with stops, together([case, plan], overwrite=old) as (a, b):
        folder_of(a, "new")
        b.touch()
    monkeypatch.undo()
    if fails and not old:
        assert not case.exists()
    else:
        assert (case / "inside").read_text() == ("old" if fails else "new")
    assert not list(tmp_path.glob(".*"))
