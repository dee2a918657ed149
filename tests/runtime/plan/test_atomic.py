"""Outputs appear together or not at all, and what killed runs left goes."""

import errno
import os
import subprocess
import sys
import threading
from contextlib import nullcontext

import pytest

from meshprep_runtime import MeshprepError
from meshprep_runtime.plan.file import atomic
from meshprep_runtime.plan.file.atomic import together


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
    held = [os.readlink(f"/proc/self/fd/{f}") for f in os.listdir("/proc/self/fd") if is_open(f)]
    assert not [name for name in held if name.startswith(str(tmp_path))]


def is_open(number: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{number}")


def both(folder, overwrite=False, meanwhile=lambda: None):
    """Write a and b into a folder; ``meanwhile`` happens when both are ready."""
    with together([folder / "a", folder / "b"], overwrite=overwrite) as staged:
        for path in staged:
            path.write_text("ours")
        meanwhile()


@pytest.mark.skipif(atomic.fcntl is None, reason="needs locks")
def test_of_two_runs_with_the_same_names_the_last_has_all(tmp_path, monkeypatch):
    """The other run is ready when this one has given its first file its name."""

    def write(text):
        with together([tmp_path / "a", tmp_path / "b"], overwrite=True) as staged:
            for path in staged:
                path.write_text(text)

    def late(hidden_path, path):
        undo = replaced(hidden_path, path)
        if path.name == "a" and path.read_text() == "ours":
            other.start()
            other.join(0.3)
            assert other.is_alive()
        return undo

    other = threading.Thread(target=write, args=("theirs",))
    replaced = atomic._replaced
    monkeypatch.setattr(atomic, "_replaced", late)
    write("ours")
    other.join()
    assert [(tmp_path / name).read_text() for name in "ab"] == ["theirs", "theirs"]
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("first", ["a", "b"])
def test_what_appears_meanwhile_is_not_replaced(tmp_path, no_links, links, first):
    if not links:
        no_links()
    theirs = tmp_path / first
    with pytest.raises(MeshprepError, match=f"{first}: has come to exist meanwhile"):
        both(tmp_path, meanwhile=lambda: theirs.write_text("theirs"))
    assert os.listdir(tmp_path) == [first]
    assert theirs.read_text() == "theirs"
    both(tmp_path, overwrite=True)
    assert theirs.read_text() == "ours"


def test_without_hard_links_outputs_appear(tmp_path, no_links):
    no_links()
    both(tmp_path)
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a": "ours", "b": "ours"}


@pytest.fixture
def no_links(monkeypatch):
    """Make this a file system without hard links."""

    def refuse(*_, **__):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    return lambda: monkeypatch.setattr(atomic.os, "link", refuse)


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

    with pytest.raises(MeshprepError, match=r"/a\.msh: .*No space left on device") as raised:
        full()
    assert ".meshprep-" not in str(raised.value)


def test_files_that_are_read_keep_their_names(tmp_path):
    def reads():
        with together([tmp_path / "a"], overwrite=False):
            (tmp_path / "mesh").read_text()

    with pytest.raises(FileNotFoundError, match="mesh"):
        reads()


KILLED = """
import os, signal, sys
from pathlib import Path
from meshprep_runtime.plan.file.atomic import together
with together([Path(sys.argv[1])], overwrite=False) as (staged,):
    staged.write_text("half")
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path):
    """Another process that is writing a file."""
    words = [sys.executable, "-c", KILLED, str(tmp_path / "theirs")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


def write(path):
    with together([path], overwrite=True) as (staged,):
        staged.write_text("whole")


def left_over(folder):
    return [name for name in os.listdir(folder) if name.startswith(atomic.PREFIX)]


@pytest.mark.skipif(atomic.fcntl is None, reason="needs locks")
def test_what_a_killed_run_left_goes_with_the_next_run(tmp_path, other):
    write(tmp_path / "ours")
    # That of a living process stays.
    assert len(left_over(tmp_path)) == 1
    other.kill()
    other.wait()
    assert len(left_over(tmp_path)) == 1
    write(tmp_path / "ours")
    assert os.listdir(tmp_path) == ["ours"]


def test_folders_of_other_hosts_and_without_a_lock_stay(tmp_path, other, monkeypatch):
    (tmp_path / f"{atomic.PREFIX}unlocked").mkdir()
    other.kill()
    other.wait()
    monkeypatch.setattr(atomic, "_host", lambda: {"elsewhere"})
    write(tmp_path / "ours")
    assert len(left_over(tmp_path)) == 2


def test_without_locks_outputs_appear_and_nothing_is_removed(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(atomic.fcntl, "flock", refuse)
    with together([tmp_path / "a"], overwrite=False) as (staged,):
        staged.write_text("whole")
        write(tmp_path / "b")
        assert len(left_over(tmp_path)) == 1
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_a_folder_that_takes_no_files_is_named(tmp_path, monkeypatch):
    def refuse(**_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("meshprep_runtime.plan.file.atomic.tempfile.mkdtemp", refuse)
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
def test_a_folder_has_its_name_as_a_whole_or_not_at_all(tmp_path, monkeypatch, old, failing):
    case, plan = tmp_path / "case", tmp_path / "a.h5"
    if old:
        folder_of(case, "old")
    if failing == "name of the file":
        folder_of(plan, "in the way")
    rename = os.rename

    def broken(a, b):
        if failing == "rename of the folder" and b == case and a.name == case.name:
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
