"""What becomes of everything in a case that refers to cells, faces or points."""

import gzip
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from foam_files import (
    STYLES,
    Style,
    boxes,
    header,
    listed,
    put,
    read_mesh,
    values_after,
    write_everything,
    write_field,
    write_mesh,
)

from meshprep import Ordering, io
from meshprep.io.foam.case import read_case
from meshprep.io.foam.entries import entries
from meshprep_runtime import MeshprepError

TEXT = Style()
# Of boxes(3, 2, 2): 12 cells, 52 faces of which 20 are inside, 36 points.
SIZE = (3, 2, 2)
ORDER = np.random.default_rng(5).permutation(12).astype(np.int32)


def renumbered(case, target, region=None):
    """Write the case in ORDER; which files were left out."""
    mesh = io.read(case, region=region)
    made = mesh.renumber({"cells": Ordering.from_new_to_old(ORDER)})
    told = io.write(made, target, format="openfoam", drop=True)
    return [text for text in told if text != "the order of the faces"]


def roles(case, region=""):
    return {
        entry.place.as_posix(): entry.role for entry in entries(read_case(case, region))
    }


def labels(name, size, style=TEXT, kind="labelList"):
    return header(kind, name, style) + listed(np.arange(size), style) + b"\n"


def dictionary(text):
    return header("dictionary", "d", TEXT) + text.encode()


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_fields_in_folders_that_are_no_times_follow(style, tmp_path):
    case, new = tmp_path / "case", tmp_path / "new"
    write_mesh(poly := boxes(*SIZE), case, style)
    places = ("0.orig", "0.org", "0.save", "backup", "backup/older", "0.orig/include")
    for place in places:
        write_field(case, "T", "volScalarField", np.arange(12.0), style, time=place)
        write_field(case, "U", "volVectorField", np.ones((12, 3)), style, time=place)
        inner = np.arange(20) + 1.0
        write_field(case, "phi", "surfaceScalarField", inner, style, True, place)
        write_field(case, "x", "pointVectorField", poly.points, style, time=place)
        # of another mesh, with other sizes
        write_field(case, "other", "volScalarField", np.arange(5.0), style, time=place)
    assert renumbered(case, new) == []
    moved = read_mesh(new)
    end = ".gz" if style.gz else ""
    for place in places:
        found = values_after(new / place / "T", "internalField", "scalar")
        assert found.tolist() == ORDER.tolist()
        points = values_after(new / place / "x", "internalField", "scalar", 3)
        assert (points == moved.points).all()
        phi = values_after(new / place / "phi", "internalField", "scalar")
        for f, value in enumerate(phi.tolist()):
            old = int(abs(value)) - 1
            sides = [poly.owner[old], poly.neighbour[old]]
            ends = [int(ORDER[moved.owner[f]]), int(ORDER[moved.neighbour[f]])]
            assert ends == (sides[::-1] if value < 0 else sides)
        same = f"{place}/other{end}"
        assert (new / same).read_bytes() == (case / same).read_bytes()


def test_fields_of_a_region_follow_that_region_alone(tmp_path):
    case, new = tmp_path / "case", tmp_path / "new"
    write_mesh(boxes(*SIZE), tmp_path / "plain", TEXT)
    for region in ("air", "rock"):
        shutil.copytree(tmp_path / "plain/constant", case / "constant" / region)
        for place in (f"0.orig/{region}", f"backup/{region}"):
            write_field(case, "T", "volScalarField", np.arange(12.0), TEXT, time=place)
        text = dictionary("SIMPLE { pRefCell 7; }\n")
        put(case / "system" / region / "fvSolution", text, TEXT)
    write_field(case, "T", "volScalarField", np.arange(12.0), TEXT, time="0.orig")
    renumbered(case, new, region="air")
    for place in ("0.orig", "backup"):
        found = values_after(new / place / "air/T", "internalField", "scalar")
        assert found.tolist() == ORDER.tolist()
    for same in ("0.orig/rock/T", "backup/rock/T", "0.orig/T", "system/rock/fvSolution"):
        assert (new / same).read_bytes() == (case / same).read_bytes()
    said = (new / "system/air/fvSolution").read_text()
    assert f"pRefCell {ORDER.tolist().index(7)};" in said


LISTS = [
    # fields and lists of other names
    ("constant/values", labels("values", 12, kind="scalarField"), "lost"),
    ("constant/values", labels("values", 11, kind="scalarField"), "copied"),
    ("constant/mine", labels("mine", 5), "lost"),
    ("constant/mine", labels("mine", 0), "copied"),
    ("constant/cellMap", labels("cellMap", 12), "lost"),
    ("0.orig/pointMap", labels("pointMap", 36), "lost"),
    ("constant/cellDecomposition", labels("cellDecomposition", 12), "labels"),
    ("0.orig/cellToRegion", labels("cellToRegion", 12), "labels"),
    ("system/parts", labels("parts", 12), "lost"),
    # lists that a field includes
    ("0.orig/include/T", b"nonuniform List<scalar> 12(" + b"0 " * 12 + b");", "lost"),
    ("0.orig/include/T", b"12\n(" + b"0 " * 12 + b")", "lost"),
    ("0.orig/include/T", b"nonuniform List<scalar> 5(0 0 0 0 0);", "copied"),
    ("0.orig/include/T", dictionary("a nonuniform List<vector> 36(...);"), "lost"),
    ("0.orig/T", header("volXField", "T", TEXT) + b"a List<scalar> 12(...);", "lost"),
    # in polyMesh
    ("constant/polyMesh/cellLevel", labels("cellLevel", 12), "labels"),
    ("constant/polyMesh/cellLevel", labels("cellLevel", 7), "lost"),
    ("constant/polyMesh/surfaceIndex", labels("surfaceIndex", 52), "labels"),
    ("constant/polyMesh/points0", labels("points0", 36), "points"),
    ("constant/polyMesh/unknown", labels("unknown", 7, kind="things"), "lost"),
    ("constant/polyMesh/blockMeshDict", dictionary("vertices ((0 0 0));"), "copied"),
    ("constant/polyMesh/blockMeshDict.m4", b"define(x, 1)\n", "copied"),
    ("constant/polyMesh/boundary~", labels("b", 12, kind="polyBoundaryMesh"), "copied"),
    ("constant/polyMesh/refinementHistory", b"x", "lost"),
    ("constant/polyMesh/meshModifiers", b"x", "lost"),
    ("constant/polyMesh/sets/mine", labels("mine", 3, kind="cellSet"), "set"),
    ("constant/polyMesh/old/points", b"x", "lost"),
    ("0.5/polyMesh/sets/mine", labels("mine", 3, kind="cellSet"), "set"),
    ("0.5/polyMesh/cellZones", labels("cellZones", 0, kind="regIOobject"), "zones"),
    # particles name cells
    ("0.orig/lagrangian/cloud/positions", b"x", "lost"),
    ("0.5/uniform/lagrangian/cloud/cloudProperties", dictionary("a 1;"), "copied"),
    # numbers of their own
    ("constant/boundaryData/inlet/points", labels("points", 36), "copied"),
    ("constant/triSurface/a.eMesh", labels("a", 36, kind="featureEdgeMesh"), "copied"),
    ("0.5/areas", labels("areas", 12, kind="areaScalarField"), "copied"),
    ("system/faMesh/faceLabels", labels("faceLabels", 12), "copied"),
    # no numbers
    ("system/controlDict", dictionary("a (1 2 3);"), "copied"),
    ("postProcessing/probes/0/T", b"# 12\n0 1 2\n", "copied"),
    ("system/topoSetDict", dictionary("labelToCell { value (1 2); }"), "dictionary"),
    ("system/topoSetDict", dictionary("// labelToCell { value (1 2); }"), "copied"),
]


@pytest.mark.parametrize(("place", "content", "role"), LISTS)
def test_what_becomes_of_a_file(place, content, role, tmp_path):
    case = tmp_path / "case"
    write_mesh(boxes(*SIZE), case, TEXT)
    put(case / place, content, TEXT)
    assert roles(case)[place] == role
    if role == "lost":
        told = renumbered(case, tmp_path / "new")
        assert told == [f"{place} (in the old numbering)"]
        assert not (tmp_path / "new" / place).exists()
    (case / place).unlink()
    put(case / place, content, Style(gz=True))
    assert roles(case)[place + ".gz"] == role


def test_lists_with_a_number_for_each_face_keep_their_signs_or_not(tmp_path):
    case, new = tmp_path / "case", tmp_path / "new"
    write_mesh(boxes(*SIZE), case, TEXT)
    folder = "constant/polyMesh"
    numbers = header("labelList", "x", TEXT) + listed(np.arange(52) + 1, TEXT)
    put(case / folder / "surfaceIndex", numbers, TEXT)
    put(case / folder / "faceProcAddressing", numbers, TEXT)
    assert renumbered(case, new) == []
    signed = values_after(new / folder / "faceProcAddressing", "")
    assert (signed < 0).any()
    plain = values_after(new / folder / "surfaceIndex", "")
    assert plain.tolist() == abs(signed).tolist()


CHOSEN = """
// labelToCell { value (1 2 3); }
SIMPLE { pRefCell 7; pRefValue 0; } PISO { p_rghRefCell 99; }
actions
(
    { source labelToCell; sourceInfo { value (3 4); } }
    { source boxToCell; box (0 0 0) (1 1 1); }
    { source labelToFace; value List<label> 2(0 51); }
    { source labelToPoint; value 1(35); }
);
"""


def test_numbers_in_dictionaries_follow(tmp_path):
    case, new = tmp_path / "case", tmp_path / "new"
    write_everything(poly := boxes(*SIZE), case, TEXT)
    put(case / "system/topoSetDict", dictionary(CHOSEN), TEXT)
    assert renumbered(case, new) == []
    back = ORDER.tolist().index
    text = (new / "system/topoSetDict").read_text()
    flat = values_after(new / "0/flat", "internalField", "scalar").tolist()
    moved = read_mesh(new).points
    point = int(np.flatnonzero((moved == poly.points[35]).all(axis=1))[0])
    expected = CHOSEN.replace("pRefCell 7;", f"pRefCell {back(7)};")
    expected = expected.replace("(3 4)", f"({back(3)} {back(4)})")
    expected = expected.replace("(0 51)", f"({flat.index(1.0)} 51)")
    expected = expected.replace("(35)", f"({point})")
    assert text == dictionary(expected).decode()


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("a labelToCell; labels $cells;", "topoSetDict: line 15: labelToCell needs its"),
        ("a labelToCell; value (12);", "topoSetDict: value 1 is 12, outside 0..11"),
    ],
)
def test_numbers_that_are_not_understood_are_refused(text, match, tmp_path):
    write_mesh(boxes(*SIZE), tmp_path / "case", TEXT)
    put(tmp_path / "case/system/topoSetDict", dictionary(text), TEXT)
    with pytest.raises(MeshprepError, match=match):
        renumbered(tmp_path / "case", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_reference_cell_of_a_decomposed_case_is_of_the_first_processor(tmp_path):
    case, new = tmp_path / "case", tmp_path / "new"
    for rank in range(2):
        write_mesh(boxes(*SIZE), case / f"processor{rank}", TEXT)
        place = f"processor{rank}/0.orig"
        write_field(case, "T", "volScalarField", np.arange(12.0), TEXT, time=place)
    write_field(case, "T", "volScalarField", np.arange(24.0), TEXT, time="0.orig")
    put(case / "system/fvSolution", dictionary("PISO { pRefCell 7; }"), TEXT)
    other = np.roll(ORDER, 1) + 12
    mesh = io.read(case)
    order = np.concatenate([ORDER, other]).astype(np.int32)
    made = mesh.renumber({"cells": Ordering.from_new_to_old(order)})
    io.write(made, new, format="openfoam", drop=True)
    text = (new / "system/fvSolution").read_text()
    assert f"pRefCell {ORDER.tolist().index(7)};" in text
    for rank, part in enumerate((ORDER, other - 12)):
        path = new / f"processor{rank}/0.orig/T"
        assert values_after(path, "internalField", "scalar").tolist() == part.tolist()
    # the numbering of the whole mesh, which stays
    assert (new / "0.orig/T").read_bytes() == (case / "0.orig/T").read_bytes()


def test_times_from_a_mesh_of_their_own_on_are_lost(tmp_path):
    case, new = tmp_path / "case", tmp_path / "new"
    write_mesh(boxes(*SIZE), case, TEXT)
    write_mesh(boxes(*SIZE), tmp_path / "later", TEXT)
    for time in ("0", "2", "10"):
        write_field(case, "T", "volScalarField", np.arange(12.0), TEXT, time=time)
    shutil.copytree(tmp_path / "later/constant/polyMesh", case / "2/polyMesh")
    assert renumbered(case, new) == ["10/T, 2 (in the old numbering)"]
    found = values_after(new / "0/T", "internalField", "scalar")
    assert found.tolist() == ORDER.tolist()
    assert not (new / "10").exists()


def test_other_meshes_and_cases_inside_of_a_case_stay_as_they_are(tmp_path):
    case, new = tmp_path / "case", tmp_path / "new"
    write_everything(boxes(*SIZE), case, TEXT)
    shutil.copytree(case, tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", case / "old/case")
    shutil.copytree(case / "constant/polyMesh", case / "constant/polyMesh.orig")
    shutil.copytree(case / "constant/polyMesh", case / "0.orig/polyMesh")
    shutil.copy(case / "0/id", case / "0.orig/id")
    assert renumbered(case, new) == []
    for folder in ("old/case", "constant/polyMesh.orig", "0.orig"):
        for path in (case / folder).rglob("*"):
            if path.is_file():
                same = new / path.relative_to(case)
                assert same.read_bytes() == path.read_bytes()


def test_links_stay_where_nothing_moves_behind_them(tmp_path):
    case, new = tmp_path / "case", tmp_path / "new"
    write_mesh(boxes(*SIZE), case, TEXT)
    place = "../elsewhere/fields"
    write_field(case, "T", "volScalarField", np.arange(12.0), TEXT, time=place)
    put(tmp_path / "elsewhere/shapes/a.stl", b"solid a", TEXT)
    (case / "0.orig").symlink_to("../elsewhere/fields")
    (case / "shapes").symlink_to("../elsewhere/shapes")
    (case / "round").symlink_to(".")
    (case / "nowhere").symlink_to("gone")
    (case / "empty").mkdir()
    assert renumbered(case, new) == []
    assert not (new / "0.orig").is_symlink()
    found = values_after(new / "0.orig/T", "internalField", "scalar")
    assert found.tolist() == ORDER.tolist()
    links = {p.name: str(p.readlink()) for p in new.iterdir() if p.is_symlink()}
    assert links == {"shapes": "../elsewhere/shapes", "round": ".", "nowhere": "gone"}
    assert list((new / "empty").iterdir()) == []


def test_a_damaged_packed_file_is_refused_in_use_and_copied_elsewhere(tmp_path):
    case, new = tmp_path / "case", tmp_path / "new"
    write_mesh(boxes(*SIZE), case, TEXT)
    put(case / "logs/log.gz", gzip.compress(b"many words")[:-9], TEXT)
    assert renumbered(case, new) == []
    assert (new / "logs/log.gz").read_bytes() == (case / "logs/log.gz").read_bytes()
    put(case / "0/T.gz", b"no archive", TEXT)
    with pytest.raises(MeshprepError, match="0/T: cannot be unpacked"):
        renumbered(case, tmp_path / "other")


def test_a_neighbour_for_each_face_is_read_as_old_versions_write_it(tmp_path):
    case = tmp_path / "case"
    write_mesh(poly := boxes(*SIZE), case, TEXT)
    usual = io.read(case).content_hash()
    path = case / "constant/polyMesh/neighbour"
    old = [*poly.neighbour, *[-1] * 32]
    put(path, header("labelList", "neighbour", TEXT) + listed(old, TEXT), TEXT)
    assert io.read(case).content_hash() == usual
    renumbered(case, tmp_path / "new")
    assert len(read_mesh(tmp_path / "new").neighbour) == 20
    old[3] = -1
    put(path, header("labelList", "neighbour", TEXT) + listed(old, TEXT), TEXT)
    with pytest.raises(MeshprepError, match="neighbour: value 4 is -1, outside"):
        io.read(case)


def test_a_case_of_regions_names_them(tmp_path):
    case = tmp_path / "case"
    write_mesh(boxes(*SIZE), tmp_path / "plain", TEXT)
    for region in ("solid", "fluid"):
        shutil.copytree(tmp_path / "plain/constant", case / "constant" / region)
    match = (
        r"case: has the regions fluid, solid, each with a mesh of its own: name one, as "
        r"\S*/case/constant/fluid/polyMesh"
    )
    with pytest.raises(MeshprepError, match=match):
        io.read(case)
    # what blockMesh leaves beside regions is no mesh
    (case / "constant/polyMesh").mkdir()
    shutil.copy(tmp_path / "plain/constant/polyMesh/boundary", case / "constant/polyMesh")
    with pytest.raises(MeshprepError, match=match):
        io.read(case)
    assert io.read(case / "constant/solid/polyMesh").sizes["cells"] == 12
    assert io.read(case, region="solid").sizes["cells"] == 12
