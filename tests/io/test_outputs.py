import errno
import os
import threading

import pytest

from meshprep.io.outputs import check_targets, together
from meshprep_runtime import MeshprepError


def test_all_outputs_appear_together(tmp_path):
    a, b = tmp_path / "a.msh", tmp_path / "b.h5"
    with together([a, b]) as staged:
        for path in staged:
            path.write_text(path.name)
        assert not a.exists()
    assert a.read_text() == "a.msh"
    assert sorted(os.listdir(tmp_path)) == ["a.msh", "b.h5"]


@pytest.mark.parametrize("stop", [ValueError, KeyboardInterrupt])
def test_nothing_is_left_when_the_work_stops(tmp_path, stop):
    def half():
        with together([tmp_path / "a", tmp_path / "b"]) as staged:
            staged[0].write_text("half")
            raise stop

    with pytest.raises(stop):
        half()
    assert os.listdir(tmp_path) == []


def test_targets_are_refused_before_any_work(tmp_path):
    old = tmp_path / "old.msh"
    old.write_text("kept")
    with pytest.raises(MeshprepError, match="use --force"):
        check_targets([old], overwrite=False)
    check_targets([old], overwrite=True)
    with pytest.raises(MeshprepError, match="is the input itself"):
        check_targets([old], overwrite=True, inputs=[tmp_path / "x" / ".." / "old.msh"])
    with pytest.raises(MeshprepError, match="does not exist"):
        check_targets([tmp_path / "none" / "a.msh"], overwrite=False)
    with pytest.raises(MeshprepError, match="is a directory"):
        check_targets([tmp_path], overwrite=True)
    with pytest.raises(MeshprepError, match="two outputs"):
        check_targets([tmp_path / "a", tmp_path / "a"], overwrite=False)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs a list of open files")
def test_a_large_file_that_is_replaced_is_let_go(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x" * (5 << 20))
    with together([path]) as (staged,):
        staged.write_text("new")
    assert path.read_text() == "new"
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    held = [os.readlink(f"/proc/self/fd/{f}") for f in os.listdir("/proc/self/fd") if is_open(f)]
    assert not [name for name in held if name.startswith(str(tmp_path))]


def is_open(number: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{number}")


def test_nothing_is_left_when_an_output_cannot_be_put_in_place(tmp_path):
    (tmp_path / "b").mkdir()

    def both():
        with together([tmp_path / "a", tmp_path / "b"]) as staged:
            for path in staged:
                path.write_text("whole")

    with pytest.raises(IsADirectoryError):
        both()
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]
    assert os.listdir(tmp_path / "b") == []


def test_a_folder_that_takes_no_files_is_named(tmp_path, monkeypatch):
    def refuse(**_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("meshprep.io.outputs.tempfile.mkdtemp", refuse)
    with (
        pytest.raises(MeshprepError, match=r"cannot write .*a: its folder takes no new files"),
        together([tmp_path / "a"]),
    ):
        pass
    assert os.listdir(tmp_path) == []
