"""File, reorder, file: the same mesh as a set of cells with their tags, fields and coordinates."""

import re
from pathlib import Path

import numpy as np
import pytest

from meshprep import io
from meshprep.io.generate import generate
from meshprep.mesh import Dat, Mesh
from meshprep_cli.main import main
from meshprep_runtime import MeshprepError, Plan

pytestmark = pytest.mark.usefixtures("read_here")

REAL = Path(__file__).parents[3] / "shared" / "data" / "meshes"
KINDS = {
    "triangles": ("delaunay2d", {"cells": 300}),
    "tets": ("delaunay3d", {"cells": 300}),
    "hexes": ("box", {"nx": 4, "ny": 3, "nz": 5}),
    "wedges": ("box", {"nx": 3, "ny": 3, "nz": 3, "type": "wedge"}),
    "pyramids": ("box", {"nx": 2, "ny": 2, "nz": 2, "type": "pyramid"}),
    "mixed2d": ("mixed2d", {"nx": 6, "ny": 6}),
    "mixed3d": ("mixed3d", {"nx": 4, "ny": 4, "nz": 4}),
}
# What a reordered file has that the file before had not, or otherwise.
NEW = ("label", "original_id")
# Formats that carry original_id, on nodes and on cells.
WITH_IDS = dict.fromkeys(("vtu", "vtk", "xdmf", "med", "exo", "msh"), 2)
WITH_IDS |= {"nodes alone": 1}


def cells_of(mesh):
    """Every cell as its set, the coordinates of its nodes in order, its groups and its values."""
    out = []
    for s in mesh.cell_sets:
        xyz = mesh.coordinates[mesh.cell_map(s.name).table]
        tags = sorted((t for t in mesh.tags if t.set == s.name), key=lambda t: t.name)
        dats = [
            d
            for d in mesh.dats
            if d.set == s.name and d.name not in NEW and d.index is None
        ]
        for i, corners in enumerate(xyz):
            groups = tuple((t.name, tuple(sorted(t.groups(t.values[i])))) for t in tags)
            values = tuple((d.name, d.values[i].tobytes()) for d in dats)
            out.append((s.name, corners.tobytes(), groups, values))
    return sorted(out)


def nodes_of(mesh):
    """Every node, used or not, as its coordinates and values."""
    dats = [
        d for d in mesh.dats if d.set == "nodes" and d.name not in NEW and d.index is None
    ]
    return sorted(
        tuple(d.values[i].tobytes() for d in dats) for i in range(mesh.size("nodes"))
    )


def names_of(mesh):
    return sorted((t.name, t.set, g, n) for t in mesh.tags for g, n in t.names.items())


def with_fields(mesh):
    random = np.random.default_rng(3)
    points = Dat("temperature", "nodes", random.random(mesh.size("nodes")))
    cells = [Dat("velocity", s.name, random.random((s.size, 3))) for s in mesh.cell_sets]
    return mesh.with_(dats=[points, *cells])


def write_or_why_not(mesh, path):
    try:
        io.write(mesh, path)
    except MeshprepError as error:
        return str(error)
    return ""


def same_but_renumbered(before, after):
    assert {s.name: s.size for s in before.sets.values()} == {
        s.name: s.size for s in after.sets.values()
    }
    assert cells_of(before) == cells_of(after)
    assert nodes_of(before) == nodes_of(after)
    assert names_of(before) == names_of(after)


def ids_on_disk(after, plan, ending):
    """The values original_id lead back, wherever the format can carry them."""
    found = [d for d in after.dats if d.name == "original_id"]
    wanted = {"nodes": 1, **{s.name: 2 for s in after.cell_sets}}
    carried = {name for name, level in wanted.items() if level <= WITH_IDS.get(ending, 0)}
    assert {d.set for d in found} == carried
    for d in found:
        np.testing.assert_array_equal(d.values, plan.ordering[d.set].new_to_old)


def order_on_disk(before, after, plan):
    for m in before.maps.values():
        rows, values = plan.ordering[m.from_set], plan.ordering[m.to_set]
        np.testing.assert_array_equal(
            after.map(m.name).table, values.old_to_new[rows.apply(m.table)]
        )
    expected = plan.ordering["nodes"].apply(before.coordinates)
    np.testing.assert_array_equal(after.coordinates, expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [
        {"version": "4.1", "binary": True},
        {"version": "4.1", "binary": False},
        {"version": "2.2", "binary": True},
        {"version": "2.2", "binary": False},
    ],
    ids=["4.1-binary", "4.1-ascii", "2.2-binary", "2.2-ascii"],
)
def test_gmsh(tmp_path, kind, options):
    name, values = KINDS[kind]
    io.write(
        with_fields(generate(name, shuffle=True, **values)), tmp_path / "a.msh", **options
    )
    assert main(["reorder", str(tmp_path / "a.msh"), "-q", "--block-size", "32"]) == 0
    before, after = io.read(tmp_path / "a.msh"), io.read(tmp_path / "a-reordered.msh")
    plan = Plan.load(tmp_path / "a.plan.h5")
    assert not plan.ordering["nodes"].is_identity
    same_but_renumbered(before, after)
    order_on_disk(before, after, plan)
    # meshio reads no values on cells of several types in MSH 2.2.
    alone = options["version"] == "4.1" or len(after.cell_sets) == 1
    ids_on_disk(after, plan, "msh" if alone else "nodes alone")
    first = (tmp_path / "a-reordered.msh").read_bytes()[:30]
    assert (
        first[: first.index(b"\n", 13)]
        == (tmp_path / "a.msh").read_bytes()[: first.index(b"\n", 13)]
    )


# Triangles take longest, over a second each: in CI alone.
@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[pytest.mark.slow] * (k == "triangles")) for k in KINDS]
)
@pytest.mark.parametrize(
    "ending",
    ["vtu", "vtk", "xdmf", "su2", "mesh", "exo", "inp", "med"],
)
def test_other_formats(tmp_path, kind, ending):
    """Whatever a format can carry survives; what it cannot is refused by name."""
    name, values = KINDS[kind]
    mesh = generate(name, shuffle=True, **values)
    bare = Mesh(mesh.sets.values(), mesh.maps.values(), mesh.dats)
    path = tmp_path / f"a.{ending}"
    refusal = write_or_why_not(bare, path)
    if refusal:
        assert re.search("written without|are not written to this format", refusal)
        assert not path.exists()
        return
    loop = "cells->nodes" if len(bare.sets["cells"].parts) == 0 else None
    words = ["reorder", str(path), "-q", "--block-size", "32"]
    assert main(words + (["--loop", loop] if loop else [])) == 0
    before, after = io.read(path), io.read(tmp_path / f"a-reordered.{ending}")
    same_but_renumbered(before, after)
    ids_on_disk(after, Plan.load(tmp_path / "a.plan.h5"), ending)


@pytest.mark.skipif(not REAL.is_dir(), reason="the folder of real meshes is not there")
@pytest.mark.parametrize(
    "name",
    [
        "cuubat_sets.msh",
        "indheat_b41.msh",
        "mixedtriquad.msh",
        "tgv_hex.msh",
        "torus_p3.msh",
        "surf3d_nonman_b41.msh",
        "cylheat_mix.su2",
        "brick_prism.su2",
        "octopus_tet.mesh",
        "notch_hexwedge.vtk",
    ],
)
def test_real_meshes(tmp_path, name):
    loop = ["--loop", "cells->nodes"] if name.startswith("surf3d") else []
    output, plan = tmp_path / name, tmp_path / "a.plan.h5"
    words = [
        "reorder",
        str(REAL / name),
        "-q",
        "-o",
        str(output),
        "--plan",
        str(plan),
        *loop,
    ]
    assert main(words) == 0
    before, after = io.read(REAL / name), io.read(output)
    same_but_renumbered(before, after)
    if not name.endswith(".su2"):  # boundary elements stand marker by marker there
        order_on_disk(before, after, Plan.load(plan))
