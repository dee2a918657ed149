"""Cases that are read, renumbered and written, looked at with the tests' own reader."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
import other_readers
from foam_files import (
    STYLES,
    Poly,
    Style,
    boxes,
    header,
    listed,
    merged,
    put,
    read_mesh,
    values_after,
    write_everything,
    write_field,
    write_mesh,
)

import meshprep
from meshprep import Ordering, io
from meshprep_cli.main import main
from meshprep_runtime import MeshprepError, Plan


def renumbered(case, target, seed):
    """The case written with its cells in a random order."""
    mesh = io.read(case)
    order = np.random.default_rng(seed).permutation(mesh.size("cells"))
    made = mesh.renumber({"cells": Ordering.from_new_to_old(order.astype(np.int32))})
    io.write(made, target, drop=True, format="openfoam")
    return order


def cycle(points):
    """The points of a face from the least one on."""
    rows = [tuple(p) for p in points]
    at = rows.index(min(rows))
    return [*rows[at:], *rows[:at]]


def check_moved(poly, case, target, chosen, flips):
    """Every list of the new case says the same of the same cells, faces and points."""
    new, folder = read_mesh(target), target / "constant" / "polyMesh"
    n = len(poly.neighbour)
    cells = (values_after(target / "0/id", "internalField", "scalar") - 0.5).astype(int)
    sides = list(zip(new.owner, new.neighbour, strict=False))
    assert sides == sorted(sides)
    assert all(a < b for a, b in sides)
    phi = values_after(target / "0/phi", "internalField", "scalar")
    flat = values_after(target / "0/flat", "internalField", "scalar")
    assert (abs(phi) == flat).all()
    faces = [*(flat.astype(int) - 1).tolist(), *range(n, len(poly.faces))]
    assert sorted(faces) == list(range(len(poly.faces)))
    turned = [*(phi < 0).tolist(), *[False] * (len(faces) - n)]
    for f, old in enumerate(faces):
        points = new.points[new.faces[f]]
        before = poly.points[poly.faces[old]]
        assert points[0].tolist() == before[0].tolist()
        assert cycle(points) == cycle(before[::-1] if turned[f] else before)
        ends = [cells[new.owner[f]], *([cells[new.neighbour[f]]] if f < n else [])]
        was = [poly.owner[old], *([poly.neighbour[old]] if f < n else [])]
        assert ends == (was[::-1] if turned[f] else was)
    used = [p for face in new.faces for p in face]
    met = list(dict.fromkeys(used))
    assert met == list(range(len(met)))
    assert (
        values_after(target / "0/place", "internalField", "scalar", 3) == new.points
    ).all()
    three = values_after(target / "0/three", "internalField", "scalar", 3)
    assert (three[:, 0] == 3 * cells - 7).all()
    points = values_after(folder / "pointLevel", "")
    assert (poly.points[points] == new.points).all()
    assert (values_after(folder / "cellLevel", "") == cells).all()
    old = {"cell": cells, "face": np.array(faces), "point": points}
    for kind, numbers in old.items():
        labels = values_after(folder / f"{kind}Zones", f"{kind}Labels")
        assert set(numbers[labels].tolist()) == chosen[kind]
        labels = values_after(folder / "sets" / f"some{kind}", "", text=True)
        assert set(numbers[labels].tolist()) == chosen[kind]
    zone = values_after(folder / "faceZones", "faceLabels")
    flipped = values_after(folder / "faceZones", "flipMap", "bool")
    for f, value in zip(zone.tolist(), flipped.tolist(), strict=True):
        assert value == flips[faces[f]] ^ turned[f]


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_everything_on_a_case_follows(style, tmp_path):
    poly = boxes(3, 4, 2)
    told = write_everything(poly, tmp_path / "case", style)
    renumbered(tmp_path / "case", tmp_path / "new", 1)
    check_moved(poly, tmp_path / "case", tmp_path / "new", *told)
    names = {p.relative_to(tmp_path / "case") for p in (tmp_path / "case").rglob("*")}
    assert names == {p.relative_to(tmp_path / "new") for p in (tmp_path / "new").rglob("*")}
    old, new = (io.read(tmp_path / name) for name in ("case", "new"))
    assert old.sizes == new.sizes == {"cells": 24, "faces": 46, "inlet": 8, "walls": 44}


@settings(max_examples=effort.examples(30))
@given(data=st.data())
def test_random_polyhedra(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("poly")
    size = [data.draw(st.integers(1, 3)) for _ in range(3)]
    count = int(np.prod(size))
    group = data.draw(st.lists(st.integers(0, 5), min_size=count, max_size=count))
    poly = merged(boxes(*size), group)
    told = write_everything(
        poly, folder / "case", data.draw(st.sampled_from([*STYLES.values()]))
    )
    renumbered(folder / "case", folder / "new", data.draw(st.integers(0, 9)))
    check_moved(poly, folder / "case", folder / "new", *told)


@pytest.mark.parametrize("style", ["text", "binary 64", "packed binary"])
def test_vtk_reads_what_was_written(style, tmp_path):
    other_readers.package("vtkmodules")
    from vtkmodules.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkIOGeometry import vtkOpenFOAMReader

    write_everything(boxes(3, 4, 2), tmp_path / "case", STYLES[style])
    put(tmp_path / "case/system/controlDict", CONTROL, Style())
    order = renumbered(tmp_path / "case", tmp_path / "new", 2)
    (tmp_path / "new" / "a.foam").touch()
    reader = vtkOpenFOAMReader()
    reader.SetFileName(str(tmp_path / "new" / "a.foam"))
    reader.SetUse64BitLabels(STYLES[style].label == 64)
    reader.SkipZeroTimeOff()
    reader.Update()
    grid = reader.GetOutput().GetBlock(0)
    assert grid.GetNumberOfCells() == 24
    values = vtk_to_numpy(grid.GetCellData().GetArray("id"))
    assert values.tolist() == (order + 0.5).tolist()
    for c, old in enumerate(order.tolist()):
        low = grid.GetCell(c).GetBounds()[::2]
        assert low == (old % 3, old // 3 % 4, old // 12)


CONTROL = b"""FoamFile { version 2.0; format ascii; class dictionary; object controlDict; }
startFrom startTime; startTime 0; stopAt endTime; endTime 0; deltaT 1; writeControl timeStep;
writeInterval 1;
"""


def test_the_sets_and_maps_of_a_case(tmp_path):
    poly = boxes(2, 2, 1)
    write_mesh(poly, tmp_path / "case", Style())
    mesh = io.read(tmp_path / "case")
    assert mesh.map("faces->cells").table.tolist() == [[0, 1], [0, 2], [1, 3], [2, 3]]
    assert mesh.map("inlet->cells").table.tolist() == [[0], [2]]
    assert (
        mesh.content_hash() == io.read(tmp_path / "case/constant/polyMesh").content_hash()
    )
    (tmp_path / "case" / "x.foam").touch()
    assert mesh.content_hash() == io.read(tmp_path / "case/x.foam").content_hash()


def test_a_plan_and_the_case_in_its_order(tmp_path):
    told = write_everything(poly := boxes(6, 5, 4), tmp_path / "case", Style())
    mesh = io.read(tmp_path / "case")
    for chosen in ({"target": "cpu"}, {}, {"method": "hilbert"}, {"partition": "blocks"}):
        made = meshprep.prepare(mesh, ["faces->cells", "walls->cells"], **chosen)
        assert (np.diff(made.plan.maps["faces->cells"].table, axis=1) > 0).all()
        io.write(made.mesh, tmp_path / "new", overwrite=True, format="openfoam")
        again = io.read(tmp_path / "new")
        assert again.content_hash() == made.plan.mesh_hash
        assert made.plan.source_hash == mesh.content_hash()
        own = made.plan.maps["faces->cells"].table
        assert again.map("faces->cells").table.tolist() == own.tolist()
        check_moved(poly, tmp_path / "case", tmp_path / "new", *told)


def test_one_cell_and_a_case_without_interior_faces(tmp_path):
    poly = boxes(1, 1, 1)
    write_mesh(poly, tmp_path / "case", Style())
    owner = tmp_path / "case/constant/polyMesh/owner"
    owner.write_bytes(owner.read_bytes().replace(b"6\n(\n0\n0\n0\n0\n0\n0\n)", b"6{0}"))
    neighbour = tmp_path / "case/constant/polyMesh/neighbour"
    neighbour.write_bytes(neighbour.read_bytes().replace(b"\n(\n)", b"()"))
    mesh = io.read(tmp_path / "case")
    assert mesh.sizes == {"cells": 1, "faces": 0, "inlet": 1, "walls": 5}
    io.write(mesh, tmp_path / "new", format="openfoam")
    assert read_mesh(tmp_path / "new").faces == [[0, 1, 2, 3], *poly_renamed(poly)]


def poly_renamed(poly):
    """The further faces with their points numbered as they are met."""
    number = {}
    every = [[number.setdefault(p, len(number)) for p in face] for face in poly.faces]
    return every[1:]


def test_values_that_are_all_the_same(tmp_path):
    case = tmp_path / "case"
    write_mesh(boxes(2, 1, 1), case, Style())
    write_field(case, "phi", FIELD, [0.0], Style(), oriented=True)
    path, levels = case / "0/phi", case / "constant/polyMesh/cellLevel"
    path.write_text(path.read_text().replace("\n1\n(\n0.0\n)", "1{0}"))
    put(levels, header("labelList", "cellLevel", Style()) + b"2{7}\n", Style())
    renumbered(case, tmp_path / "new", 1)
    assert (tmp_path / "new/0/phi").read_bytes() == path.read_bytes()
    assert (
        tmp_path / "new/constant/polyMesh/cellLevel"
    ).read_bytes() == levels.read_bytes()
    for old, new in (("1{0}", "1{2}"), ("nonuniform List<scalar> 1{2}", "uniform 2")):
        path.write_text(path.read_text().replace(old, new))
        mesh = io.read(case).renumber({"cells": Ordering.from_new_to_old(np.array([1, 0]))})
        with pytest.raises(MeshprepError, match="cannot be turned: write each"):
            io.write(mesh, tmp_path / "other", format="openfoam")


def write_parts(root):
    """Two processor folders of a box that was cut across x, and what decomposePar adds."""
    whole = boxes(4, 2, 2)
    for rank in range(2):
        part = boxes(2, 2, 2)
        move = [2.0 * rank, 0, 0]
        n = len(part.neighbour)
        shared = [
            f
            for f in range(n, len(part.faces))
            if set(part.points[part.faces[f]][:, 0]) == {0 if rank else 2}
        ]
        others = [f for f in range(n, len(part.faces)) if f not in shared]
        order = [*range(n), *others, *shared]
        patches = [
            ("walls", "wall", len(others)),
            (f"procBoundary{rank}to{1 - rank}", "processor", 4),
        ]
        poly = Poly(
            part.points + move,
            [part.faces[f] for f in order],
            [part.owner[f] for f in order],
            part.neighbour,
            patches,
        )
        case = root / f"processor{rank}"
        told = write_everything(poly, case, Style())
        cells = [
            i + 2 * rank + 4 * (j + 2 * k)
            for k in range(2)
            for j in range(2)
            for i in range(2)
        ]
        folder = case / "constant" / "polyMesh"
        for name, values in (
            ("cellProcAddressing", cells),
            ("faceProcAddressing", [*range(1, n + 1), *[7] * len(shared + others)]),
        ):
            put(
                folder / name,
                header("labelList", name, Style()) + listed(values, Style()),
                Style(),
            )
        yield poly, cells, told, len(whole.faces)


def test_processor_folders_are_one_mesh_and_stay_apart(tmp_path):
    parts = list(write_parts(tmp_path / "case"))
    put(tmp_path / "case/system/controlDict", b"FoamFile { format ascii; }\n", Style())
    mesh = io.read(tmp_path / "case")
    assert mesh.size("cells") == 16
    assert mesh.size("procBoundary0to1") == mesh.size("procBoundary1to0") == 4
    made = meshprep.prepare(mesh, target="cpu")
    cells = made.plan.ordering["cells"].new_to_old
    assert set(cells[:8].tolist()) == set(range(8))
    io.write(made.mesh, tmp_path / "new", format="openfoam")
    assert (tmp_path / "new/system/controlDict").exists()
    for rank, (poly, addresses, told, _) in enumerate(parts):
        new = tmp_path / "new" / f"processor{rank}"
        check_moved(poly, None, new, *told)
        own = cells[8 * rank : 8 * rank + 8] - 8 * rank
        found = values_after(new / "constant/polyMesh/cellProcAddressing", "")
        assert found.tolist() == [addresses[c] for c in own]
        signed = values_after(new / "constant/polyMesh/faceProcAddressing", "")
        phi = values_after(new / "0/phi", "internalField", "scalar")
        assert signed[: phi.size].tolist() == phi.tolist()
        again = read_mesh(new)
        places = [again.points[f].tolist() for f in again.faces[-4:]]
        assert places == [poly.points[f].tolist() for f in poly.faces[-4:]]
    mixed = mesh.renumber(
        {"cells": Ordering.from_new_to_old(np.arange(16, dtype=np.int32)[::-1])}
    )
    with pytest.raises(MeshprepError, match="processor folder"):
        io.write(mixed, tmp_path / "other", format="openfoam", drop=True)


def test_a_cell_map_from_the_command(tmp_path, capsys):
    write_mesh(boxes(5, 4, 3), tmp_path / "case", Style())
    write_mesh(boxes(2, 1, 1), tmp_path / "parts/processor0", Style())
    write_mesh(boxes(2, 1, 1), tmp_path / "parts/processor1", Style())
    (tmp_path / "parts/constant").mkdir()
    assert main(["reorder", str(tmp_path / "case"), "--cell-map", "-q"]) == 0
    plan = Plan.load(tmp_path / "case.plan.h5")
    found = values_after(tmp_path / "case/constant/cellMap", "")
    assert found.tolist() == plan.ordering["cells"].new_to_old.tolist()
    assert not (tmp_path / "case-reordered").exists()
    capsys.readouterr()
    for words, told in (
        (["case", "--cell-map", "-o", str(tmp_path / "x")], "leave --output out"),
        (["parts", "--cell-map"], "name one of the processor folders"),
        (["case.plan.h5", "--cell-map"], "a cell map is for OpenFOAM"),
    ):
        assert main(["reorder", str(tmp_path / words[0]), *words[1:], "-q", "--force"]) != 0
        assert told in capsys.readouterr().err


def test_a_region_moves_alone(tmp_path):
    told = write_everything(poly := boxes(3, 2, 2), tmp_path / "plain", Style())
    case, new, back = (tmp_path / name for name in ("case", "new", "back"))
    shutil.copytree(tmp_path / "plain/constant", case / "constant/air")
    shutil.copytree(tmp_path / "plain/0", case / "0/air")
    write_everything(poly, case, Style())
    renumbered(case / "constant/air/polyMesh", new, 3)
    shutil.copytree(new / "constant/air", back / "constant")
    shutil.copytree(new / "0/air", back / "0")
    check_moved(poly, None, back, *told)
    for name in ("0/id", "constant/polyMesh/owner", "constant/polyMesh/cellZones"):
        assert (new / name).read_bytes() == (case / name).read_bytes()


def test_addressing_of_regions_follows_the_region_and_not_the_whole_mesh(tmp_path):
    """As splitMeshRegions leaves a case: the region tells where it was in the whole mesh."""
    write_everything(poly := boxes(3, 2, 2), tmp_path / "plain", Style())
    case, new, whole = (tmp_path / name for name in ("case", "new", "whole"))
    shutil.copytree(tmp_path / "plain/constant", case / "constant/air")
    shutil.copytree(tmp_path / "plain/0", case / "0/air")
    write_everything(poly, case, Style())
    folder, faces = case / "constant/air/polyMesh", [*range(1, len(poly.faces) + 1)]
    numbers = {"cell": [*range(12)], "face": faces, "point": [*range(len(poly.points))]}
    for kind, values in (*numbers.items(), ("boundary", [0])):
        head = header("labelList", name := f"{kind}RegionAddressing", Style())
        put(folder / name, head + listed(values, Style()), Style())
    head = header("labelList", "cellToRegion", Style())
    put(case / "constant/cellToRegion", head + listed([*range(12)], Style()), Style())
    put(case / "0/cellToRegion", (case / "0/id").read_bytes(), Style())
    renumbered(folder, new, 3)
    moved = new / "constant/air/polyMesh"
    cells = values_after(moved / "cellLevel", "")
    assert (values_after(moved / "cellRegionAddressing", "") == cells).all()
    assert (cells != numbers["cell"]).any()
    points = values_after(moved / "pointRegionAddressing", "")
    assert (points == values_after(moved / "pointLevel", "")).all()
    signed = values_after(moved / "faceRegionAddressing", "")
    phi = values_after(new / "0/air/phi", "internalField", "scalar")
    assert signed[: phi.size].tolist() == phi.tolist()
    mesh = io.read(case)
    lost = r"written without constant/air/polyMesh/cellR\w+, \S*faceR\w+, \S*pointR\w+ \(in the old"
    with pytest.raises(MeshprepError, match=lost):
        io.write(mesh, whole, format="openfoam")
    renumbered(case, whole, 3)
    kept = {p.name for p in folder.iterdir()} - {
        f"{kind}RegionAddressing" for kind in numbers
    }
    assert {p.name for p in (whole / "constant/air/polyMesh").iterdir()} == kept
    cells = values_after(whole / "constant/polyMesh/cellLevel", "")
    assert (values_after(whole / "constant/cellToRegion", "") == cells).all()
    assert (whole / "0/cellToRegion").read_bytes() == (whole / "0/id").read_bytes()


def test_packed_points_that_moved(tmp_path):
    told = write_everything(poly := boxes(3, 2, 2), tmp_path / "case", Style(gz=True))
    (later := tmp_path / "case/2.5/polyMesh").mkdir(parents=True)
    shutil.copy(tmp_path / "case/constant/polyMesh/points.gz", later)
    io.write(io.read(tmp_path / "case"), tmp_path / "same", format="openfoam")
    renumbered(tmp_path / "case", tmp_path / "new", 4)
    check_moved(poly, None, tmp_path / "new", *told)
    new = [tmp_path / "new" / place / "polyMesh/points.gz" for place in ("constant", "2.5")]
    assert new[0].read_bytes() == new[1].read_bytes()


def test_points_that_moved_and_what_is_hidden(tmp_path):
    told = write_everything(poly := boxes(3, 2, 2), tmp_path / "case", Style())
    later = tmp_path / "case/2.5/polyMesh"
    later.mkdir(parents=True)
    shutil.copy(tmp_path / "case/constant/polyMesh/points", later)
    put(tmp_path / "case/0/id", b"an older one", Style(gz=True))
    assert (tmp_path / "case/0/id").exists()
    mesh = io.read(tmp_path / "case")
    with pytest.raises(MeshprepError, match=r"written without 0/id\.gz \(in the old"):
        io.write(mesh, tmp_path / "new", format="openfoam")
    (tmp_path / "case/0/id.gz").unlink()
    renumbered(tmp_path / "case", tmp_path / "new", 4)
    check_moved(poly, None, tmp_path / "new", *told)
    new = [tmp_path / "new" / place / "polyMesh/points" for place in ("constant", "2.5")]
    assert new[0].read_bytes() == new[1].read_bytes()
    put(later / "faces", b"", Style())
    with pytest.raises(MeshprepError, match=r"written without 2\.5/polyMesh \(in the old"):
        io.write(mesh, tmp_path / "other", format="openfoam")


def test_what_would_be_wrong_in_another_order_is_a_loss(tmp_path):
    case = tmp_path / "case"
    write_mesh(boxes(2, 1, 1), case, Style())
    for name in (
        "constant/polyMesh/refinementHistory",
        "0/lagrangian/cloud",
        "processor0/a",
    ):
        put(case / name, b"x", Style())
    for name in ("log", "0/notes", "constant/g", "system/controlDict"):
        put(case / name, b"kept", Style())
    mesh = io.read(case)
    with pytest.raises(MeshprepError) as caught:
        io.write(mesh, tmp_path / "new", format="openfoam")
    files = "0/lagrangian/cloud, constant/polyMesh/refinementHistory, processor0"
    lost = f"{files} (in the old numbering)"
    assert lost in str(caught.value)
    assert not (tmp_path / "new").exists()
    assert io.write(mesh, tmp_path / "new", format="openfoam", drop=True) == [lost]
    assert (tmp_path / "new/log").read_bytes() == b"kept"
    assert not (tmp_path / "new/processor0").exists()
    values = meshprep.Dat("more", "cells", np.zeros(2))
    with pytest.raises(MeshprepError, match="values 'more' on 'cells'"):
        io.write(mesh.with_(dats=[values]), tmp_path / "other", format="openfoam")
    with pytest.raises(MeshprepError, match="points, zones, sets and fields"):
        io.write(mesh, tmp_path / "a.h5")
    turned = mesh.renumber(
        {"walls": Ordering.from_new_to_old(np.arange(9, dtype=np.int32)[::-1])}
    )
    with pytest.raises(MeshprepError, match="another order than in the case"):
        io.write(turned, tmp_path / "other", format="openfoam")


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    write_mesh(boxes(2, 1, 1), tmp_path / "case", Style())
    mesh = io.read(tmp_path / "case")
    io.write(mesh, tmp_path / "new", format="openfoam")
    (tmp_path / "new" / "mine").touch()
    with pytest.raises(MeshprepError, match="exists already"):
        io.write(mesh, tmp_path / "new", format="openfoam")
    io.write(mesh, tmp_path / "new", format="openfoam", overwrite=True)
    assert not (tmp_path / "new" / "mine").exists()
    (tmp_path / "other").mkdir()
    with pytest.raises(MeshprepError, match="is a directory"):
        io.write(mesh, tmp_path / "other", format="openfoam", overwrite=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["case", "new", "other"]


FIELD = "surfaceScalarField"


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("dimensions [0 3 -1 0 0 0 0];", -1),
        ("dimensions [1 0 -1 0 0];", -1),
        ("dimensions [0 1 -1 0 0 0 0];", 1),
        ("dimensions [0 3 -1 0 0 0 0];\noriented unoriented;", 1),
        ("dimensions [0 1 0 0 0 0 0];\noriented oriented;", -1),
    ],
)
def test_which_fields_change_their_sign(text, sign, tmp_path):
    write_mesh(boxes(2, 1, 1), tmp_path / "case", Style())
    write_field(tmp_path / "case", "phi", FIELD, [2.5], Style())
    path = tmp_path / "case/0/phi"
    path.write_text(path.read_text().replace("dimensions      [0 0 0 0 0 0 0];", text))
    mesh = io.read(tmp_path / "case")
    made = mesh.renumber({"cells": Ordering.from_new_to_old(np.array([1, 0], np.int32))})
    io.write(made, tmp_path / "new", format="openfoam")
    assert values_after(tmp_path / "new/0/phi", "internalField", "scalar").tolist() == [
        sign * 2.5
    ]


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("List<scalar>", "List<thing>", "0/id: line 16: a list of thing is unknown"),
        (
            "\n2\n(",
            "\n3\n(",
            "0/id: line 16: must hold 2 values, one for each of the cells",
        ),
        ("0.5\n", "0.5x\n", "0/id: line 19: expected a number"),
        ("internalField", "internalF", "0/id: line 1: has no inner values, but lists"),
        (
            "class       volS",
            "class       volX",
            r"written without 0/id \(in the old numbering\)",
        ),
        ("1.5\n)", "1.5\n", "0/id: line .*: expected a number|a list does not end"),
    ],
)
def test_damaged_fields_are_refused(old, new, match, tmp_path):
    write_mesh(boxes(2, 1, 1), tmp_path / "case", Style())
    write_field(tmp_path / "case", "id", "volScalarField", [0.5, 1.5], Style())
    path = tmp_path / "case/0/id"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(MeshprepError, match=match):
        io.write(io.read(tmp_path / "case"), tmp_path / "new", format="openfoam")
    assert not (tmp_path / "new").exists()


def test_a_case_in_no_order_is_put_in_order(tmp_path):
    poly = boxes(3, 1, 1)
    other = replace(poly, owner=[2, 0, *poly.owner[2:]], neighbour=[1, 1])
    faces = [poly.faces[1][::-1], poly.faces[0], *poly.faces[2:]]
    write_mesh(replace(other, faces=faces), tmp_path / "case", Style())
    io.write(io.read(tmp_path / "case"), tmp_path / "new", format="openfoam")
    new = read_mesh(tmp_path / "new")
    assert [*zip(new.owner, new.neighbour, strict=False)] == [(0, 1), (1, 2)]
