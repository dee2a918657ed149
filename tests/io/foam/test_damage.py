"""Files of a case with some of their bytes changed: one line of error, or a case that holds."""

import gzip
import os
import random
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from damage import spoiled
from foam_files import STYLES, boxes, merged, write_everything
from random_cases import one_line

from meshprep import Ordering, io
from meshprep_runtime import MeshprepError

TIMES = int(os.environ.get("MESHPREP_FOAM_DAMAGE", "60"))


def try_case(case, target):
    """Read and write a case whose files may be damaged; what happened."""
    try:
        mesh = io.read(case)
    except MeshprepError as error:
        return one_line(error, f"{case}: ")
    turned = np.arange(mesh.size("cells"), dtype=np.int32)[::-1]
    made = mesh.renumber({"cells": Ordering.from_new_to_old(turned)})
    try:
        io.write(made, target, format="openfoam", drop=True, overwrite=True)
    except MeshprepError as error:
        return one_line(error, f"{target}: ")
    assert io.read(target).sizes == mesh.sizes
    return "read"


FIRST, *REST = STYLES


@pytest.mark.parametrize(
    "style", [FIRST, *(pytest.param(one, marks=pytest.mark.slow) for one in REST)]
)
def test_bytes_that_are_changed(style, tmp_path):
    chance = random.Random(len(style))
    case = tmp_path / "case"
    write_everything(
        merged(boxes(3, 2, 2), [0, 1, 1, 2, 3, 4, 4, 4, 5, 6, 7, 7]), case, STYLES[style]
    )
    assert try_case(case, tmp_path / "new") == "read"
    files = sorted(p for p in case.rglob("*") if p.is_file())
    told = set()
    for k in range(TIMES):
        path = files[k % len(files)]
        good = path.read_bytes()
        # what is packed is spoiled inside, too, as checksums would find all else
        inside = path.suffix == ".gz" and k // len(files) % 2
        bad = (
            gzip.compress(spoiled(gzip.decompress(good), chance))
            if inside
            else spoiled(good, chance)
        )
        path.write_bytes(bad)
        told.add(try_case(case, tmp_path / "new"))
        path.write_bytes(good)
    assert len(told) > 3


@pytest.mark.parametrize(
    ("name", "old", "new", "match"),
    [
        ("owner", "\n0\n", "\n99\n", "owner: value 1 is 99, outside 0..39"),
        ("owner", "\n0\n", "\n-1\n", "owner: value 1 is -1"),
        ("owner", "(\n0\n", "(\n1\n", "owner: face 0 has cell 1 on both sides"),
        (
            "owner",
            "\n20\n",
            "\n19\n",
            "owner: line .*: a list does not end where it should",
        ),
        (
            "owner",
            "\n20\n",
            "\n999999999999\n",
            "owner: line .*: expected the size of at most 20",
        ),
        (
            "owner",
            "ascii",
            "asci",
            "owner: line 1: format 'asci' is neither ascii nor binary",
        ),
        ("owner", "FoamFile", "Foamfile", "owner: line 1: it has no header"),
        ("faces", "4(", "3(", "faces: line .*: expected a face|list does not end"),
        ("faces", "20\n(", "20000000\n(", "faces: line .*: expected the size of at most"),
        (
            "faces",
            "4(1 4 1",
            "4(1 1 1",
            "faces: face 0 has too few points, or one of them twice",
        ),
        ("points", "(0.0 0.0 0.0)", "(0.0 nan 0.0)", "points: point 0 is"),
        (
            "points",
            "(0.0 0.0 0.0)",
            "(0.0 x 0.0)",
            "points: line .*: expected numbers, found 'x'",
        ),
        ("neighbour", "\n4\n", "\n5\n", "neighbour: line"),
        (
            "boundary",
            "startFace 4",
            "startFace 5",
            "patch 'inlet' begins at face 5, must begin at 4",
        ),
        (
            "boundary",
            "nFaces   2",
            "nFaces   3",
            "patch 'walls' begins at face 6, must begin at 7",
        ),
        ("boundary", "nFaces   2;", "", "patch 'inlet' needs one entry nFaces"),
        ("boundary", "2\n(", "3\n(", "boundary: has 2 patches"),
    ],
)
def test_what_is_said_of_damage(name, old, new, match, tmp_path):
    write_everything(boxes(2, 2, 1), tmp_path / "case", STYLES["text"])
    path = tmp_path / "case/constant/polyMesh" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(MeshprepError, match=match) as caught:
        io.read(tmp_path / "case")
    one_line(caught.value, f"{tmp_path / 'case'}: constant/polyMesh/{name}: ")


def test_what_is_missing(tmp_path):
    write_everything(boxes(2, 2, 1), tmp_path / "case", STYLES["text"])
    (tmp_path / "case/constant/polyMesh/points").unlink()
    with pytest.raises(MeshprepError, match="constant/polyMesh/points is missing"):
        io.read(tmp_path / "case")
    with pytest.raises(MeshprepError, match="name a file in it, or the folder of a case"):
        io.read(tmp_path)
