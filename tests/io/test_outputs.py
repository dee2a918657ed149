import os

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
