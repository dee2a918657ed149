"""What a split is asked for: owners from a file, weights, and what it refuses."""

import h5py
import numpy as np
import pytest
from parts_by_hand import mesh_subject

from meshprep.distribute.job.split import SplitOptions, split
from meshprep.distribute.subject import SplitSubject
from meshprep.loops.options import Options
from meshprep_runtime.errors import MeshprepError


def test_bytes_that_blocks_of_parts_may_not_keep_are_refused():
    """Blocks at the border staged copies besides, and more than was allowed."""
    subject = mesh_subject("delaunay2d", ["edges->cells"], cells=200)
    for options in (
        Options(staged_bytes=160),
        Options(partition_options={"staged_bytes": "160"}),
    ):
        with pytest.raises(MeshprepError, match="leave staged_bytes out"):
            split(subject, 3, SplitOptions("metis"), options)


def test_what_cannot_be_split_is_said():
    subject = mesh_subject("delaunay2d", ["edges->cells"], cells=100)
    with pytest.raises(MeshprepError, match="cut 'metiss' is unknown"):
        SplitOptions("metiss")
    for how, message in [
        (SplitOptions(weights=(1.0,)), "there are 1 weights for 2 parts"),
        (SplitOptions(weights=(1.0, -1.0)), "from 0"),
        (SplitOptions("file:/nowhere.npy"), "/nowhere.npy: does not exist"),
    ]:
        with pytest.raises(MeshprepError, match=message):
            split(subject, 2, how, Options())
    bare = SplitSubject(subject.sizes, subject.maps, subject.specs)
    with pytest.raises(MeshprepError, match="'rcb' needs coordinates"):
        split(bare, 2, SplitOptions("rcb"), Options())


def test_parts_from_a_file(tmp_path):
    subject = mesh_subject("delaunay2d", ["edges->cells"], cells=60)
    n = subject.sizes["cells"]
    own, path = np.arange(n) % 3, tmp_path / "parts.npy"
    np.save(path, own)
    made = split(subject, 3, SplitOptions(f"file:{path}"), Options()).builder
    for p in range(3):
        assert (
            sorted(made.build(p).sets["cells"].original)
            == np.flatnonzero(own == p).tolist()
        )
    np.save(path, own[1:])
    with pytest.raises(MeshprepError, match=f"'cells' has {n} elements"):
        split(subject, 3, SplitOptions(f"file:{path}"), Options())
    np.save(path, own + 1)
    with pytest.raises(MeshprepError, match=r"element 2 is in part 3, outside 0\.\.2"):
        split(subject, 3, SplitOptions(f"file:{path}"), Options())
    np.save(path, own)
    with pytest.raises(MeshprepError, match=r"parts 0\.\.2, but 4 parts .* ask for 3, or"):
        split(subject, 4, SplitOptions(f"file:{path}"), Options())
    with pytest.raises(MeshprepError, match="leave weights out"):
        SplitOptions(f"file:{path}", (1.0, 2.0, 3.0))


def test_parts_of_another_set_than_the_leading_one(tmp_path):
    """Cells as METIS's programs write them; nodes go where most of their cells are."""
    subject = mesh_subject("delaunay2d", ["cells->nodes"], cells=60)
    table = subject.maps["cells->nodes"].table
    own, path = np.arange(len(table)) // 25 % 3, tmp_path / "mesh.epart.3"
    path.write_text("".join(f"{one}\n" for one in own))
    made = split(subject, 3, SplitOptions(f"file:{path}"), Options()).builder
    counts = np.zeros((subject.sizes["nodes"], 3), int)
    np.add.at(counts, (table.ravel(), np.repeat(own, 3)), 1)
    for p in range(3):
        sets = made.build(p).sets
        assert sorted(sets["cells"].original) == np.flatnonzero(own == p).tolist()
        assert (
            sorted(sets["nodes"].original) == np.flatnonzero(counts.argmax(1) == p).tolist()
        )
    path.write_text("0\n1.5\n")
    with pytest.raises(
        MeshprepError, match=r"epart.3: is neither \.npy nor text with whole"
    ):
        split(subject, 3, SplitOptions(f"file:{path}"), Options())
    path.write_text("0 1\n")
    with pytest.raises(MeshprepError, match=r"another set \(cells 60"):
        split(subject, 3, SplitOptions(f"file:{path}"), Options())


def test_parts_have_blocks_of_their_own():
    subject = mesh_subject("delaunay2d", ["edges->cells"], cells=60)
    given = Options(partition=np.zeros(subject.sizes["edges"], int))
    with pytest.raises(MeshprepError, match="parts have blocks of their own"):
        split(subject, 2, SplitOptions("rcb"), given)


def test_parts_from_hdf5(tmp_path):
    subject = mesh_subject("delaunay2d", ["edges->cells"], cells=60)
    own = np.arange(subject.sizes["cells"]) % 3
    with h5py.File(tmp_path / "own.h5", "w") as file:
        file["part_2"] = (own[:, None] > 0).astype("i4")
        file["part_3"] = own[:, None].astype("i4")
    cut = SplitOptions(f"file:{tmp_path / 'own.h5'}:part_3")
    made = split(subject, 3, cut, Options()).builder
    for p in range(3):
        found = sorted(made.build(p).sets["cells"].original)
        assert found == np.flatnonzero(own == p).tolist()
