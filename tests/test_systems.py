"""The program where what Linux alone has is missing, and files are as on Windows.

A process takes away what Windows lacks before it imports meshprep. It refuses to replace or remove
a file that is open, to flush one that is open for reading alone, to link, and to open text in
whatever encoding the system prefers.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

from meshprep import io
from meshprep.io.generate import generate

WINDOWS = '''
import ctypes, errno, os, pathlib, shutil, signal, subprocess, sys, tempfile, warnings
import h5py, jinja2, meshio, netCDF4, numba, numpy, rich.console, scipy.sparse, typer

readlink = os.readlink

for name in ("fcntl", "resource", "grp", "pwd", "termios", "posix", "pymetis"):
    sys.modules[name] = None
LACKS = (
    "fork", "pread", "pwrite", "preadv", "sched_getaffinity", "sched_setaffinity", "getuid",
    "geteuid", "getgid", "sysconf", "mkfifo", "register_at_fork", "uname", "fchmod", "fchown",
    "chown", "statvfs", "nice", "killpg", "setsid", "getpgid", "posix_fallocate",
    "posix_fadvise", "sendfile", "getloadavg", "O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY",
    "O_CLOEXEC",
)
for name in LACKS:
    if hasattr(os, name):
        delattr(os, name)
# trees are removed by names there: Python 3.13 opens folders with O_NONBLOCK elsewhere
shutil._use_fd_functions = False
for name in ("SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGPIPE", "SIGQUIT"):
    delattr(signal, name)

flush, dlopen = os.fsync, ctypes.CDLL

def in_use(path):
    """Whether this process has a file open, or mapped into its memory."""
    path = os.path.realpath(path)
    handles = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            handles.add(readlink(f"/proc/self/fd/{name}"))
        except OSError:
            pass
    with open("/proc/self/maps", "rb") as maps:
        return path in handles or any(l.rstrip().endswith(b" " + os.fsencode(path)) for l in maps)

def refuse(function, *where):
    def checked(*paths, **more):
        for path in (paths[i] for i in where):
            if not isinstance(path, int) and "dir_fd" not in more and in_use(path):
                raise PermissionError(errno.EACCES, "used by another process", str(path))
        return function(*paths, **more)
    return checked

os.replace, os.rename = refuse(os.replace, 0, 1), refuse(os.rename, 0, 1)
os.unlink, os.remove = refuse(os.unlink, 0), refuse(os.remove, 0)

def link(source, target, *, follow_symlinks=True, **more):
    raise NotImplementedError("link: follow_symlinks unavailable on this platform")

def fsync(handle):
    with open(f"/proc/self/fdinfo/{handle}", "rb") as info:
        fields = dict(line.split(b":") for line in info.read().splitlines() if b":" in line)
    # folders are flushed under POSIX alone
    folder = os.path.isdir(readlink(f"/proc/self/fd/{handle}"))
    if int(fields[b"flags"], 8) & 3 == 0 and not folder:
        raise OSError(errno.EBADF, "Bad file descriptor")
    flush(handle)

def library(name, *rest, **more):
    if name is None:
        raise TypeError("bad argument type for built-in operation")
    return dlopen(name, *rest, **more)

os.link, os.fsync, ctypes.CDLL = link, fsync, library
warnings.filterwarnings("error", category=EncodingWarning, module="meshprep")
'''

RUN = f"""{WINDOWS}
import shlex
from meshprep_cli.main import main
for line in sys.argv[1].splitlines():
    code = main(shlex.split(line))
    assert code == 0, (line, code)
"""
COMMANDS = """
generate delaunay2d --cells 200 -o other.msh
info wing.msh
loops wing.msh
reorder wing.msh --permutation new.txt
reorder wing.msh --force -q
check wing.plan.h5 --mesh wing.msh
plan wing.msh -o kept.plan.h5
report wing.plan.h5 kept.plan.h5 --html report.html --full
report wing.plan.h5 --json
sweep wing.msh --block-sizes 64,128 --html sweep.html
split wing.msh --parts 2,4
split wing.msh --parts 2,4 --force --slices
split wing.parts.h5 --parts 3
split wing.parts.h5 --parts 3 --force
check wing.parts.h5 --mesh wing.msh
info wing.parts.h5
report wing.parts.h5
reorder wing.msh -o wing.vtu --drop --force -q
reorder wing.msh -o wing.h5 --drop --force -q
reorder wing.vtu -o wing.e --drop --force -q
apply wing.plan.h5 values.npy -o there.npy
restore wing.plan.h5 there.npy -o back.npy
tune wing.plan.h5 --kernel kernels.py:add --runs 1 --strategies sequential --layouts aos
warm-up
--version
--help
split --help
"""
KERNELS = """
def add(a, b):
    a[0] += 1.0
    b[0] += 2.0
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs a list of open files")
def test_every_command_runs_without_what_linux_alone_has(tmp_path):
    mesh = generate("delaunay2d", cells=300)
    io.write(mesh, tmp_path / "wing.msh")
    np.save(tmp_path / "values.npy", np.arange(mesh.sizes["cells"]))
    (tmp_path / "kernels.py").write_text(KERNELS)
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252:strict", "PYTHONUTF8": "0"}
    words = [sys.executable, "-X", "warn_default_encoding", "-c", RUN, COMMANDS.strip()]
    done = subprocess.run(words, capture_output=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr.decode("cp1252")[-3000:]
    assert np.array_equal(np.load(tmp_path / "back.npy"), np.load(tmp_path / "values.npy"))
    assert not list(tmp_path.glob(".meshprep-*"))
