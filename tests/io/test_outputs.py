import os
import subprocess
import sys

import pytest

from meshprep.io.outputs import check_targets
from meshprep_runtime import MeshprepError


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
    os.mkfifo(tmp_path / "pipe.msh")
    (tmp_path / "link.msh").symlink_to(tmp_path / "pipe.msh")
    for name in ("pipe.msh", "link.msh"):
        with pytest.raises(MeshprepError, match=rf"{name}: it is a device or a pipe"):
            check_targets([tmp_path / name], overwrite=True)
    with pytest.raises(MeshprepError, match="two outputs"):
        check_targets([tmp_path / "a", tmp_path / "a"], overwrite=False)


FULL_DISK = """
import resource, sys
from pathlib import Path
from meshprep import io
from meshprep.io.generate import generate
from meshprep_runtime import MeshprepError
mesh, free = generate("delaunay2d", cells=3000), resource.RLIM_INFINITY
for name, one in io.FORMATS.items():
    if one.write is None or not one.cells:
        continue
    path = Path(sys.argv[1], f"mesh-{name}{one.extensions[0]}")
    io.write(mesh, path, format=name, drop=True)
    size = path.stat().st_size
    for limit in (0, size // 2, size - 1):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, free))
        try:
            io.write(mesh, path, format=name, drop=True, overwrite=True)
        except MeshprepError as error:
            assert "\\n" not in str(error), error
        else:
            sys.exit(f"{name}: wrote past {limit}")
        resource.setrlimit(resource.RLIMIT_FSIZE, (free, free))
    assert path.stat().st_size == size
"""


def test_a_full_disk_is_one_line_in_every_format(tmp_path):
    """A limit on the size of files stands for it; nothing is printed at exit either."""
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, tmp_path], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not list(tmp_path.glob(".*"))
    assert len(list(tmp_path.iterdir())) > 10
