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
    with pytest.raises(MeshprepError, match="two outputs"):
        check_targets([tmp_path / "a", tmp_path / "a"], overwrite=False)
