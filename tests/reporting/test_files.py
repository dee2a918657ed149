"""Pages, pictures and ParaView files of plans, and the errors on the way."""

import json
import os
import re
from dataclasses import replace

import meshio
import numpy as np
import pytest

from meshprep import LoopRequest, Options, io, prepare
from meshprep.io.generate import generate
from meshprep.io.source import MeshSource
from meshprep.mesh.assemble import Block, assemble
from meshprep.mesh.original import with_type_order
from meshprep.reporting import compare
from meshprep.reporting.describe import describe
from meshprep.reporting.files import ReportFiles, paraview_mesh, write_files
from meshprep.reporting.html.page import html_report, sections_of
from meshprep.reporting.meshes import NamedMesh, block_values, mesh_of, scene_of
from meshprep.topology import derive
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.metrics import Metrics
from meshprep_runtime.plan.records import from_json, to_json

KINDS = {
    "triangles": ("delaunay2d", {"cells": 300}, ["edges->cells"]),
    "cells": ("delaunay2d", {"cells": 300}, ["cells->nodes"]),
    "boundary": ("delaunay2d", {"cells": 300}, ["boundary_edges->cells"]),
    "tets": ("delaunay3d", {"cells": 300}, ["faces->cells"]),
    "edges in space": ("delaunay3d", {"cells": 200}, ["edges->nodes"]),
    "mixed": ("mixed3d", {"nx": 4, "ny": 4, "nz": 4}, ["faces->cells"]),
    "mixed cells": ("mixed2d", {"nx": 6, "ny": 6}, ["quad->nodes"]),
    "lists": ("delaunay2d", {"cells": 300}, ["cells->nodes"]),
}


# Others differ in what is counted, not in how files are made.
EVERY_DAY = ("triangles", "edges in space", "mixed", "lists")
PARAMS = [pytest.param(k, marks=[pytest.mark.slow] * (k not in EVERY_DAY)) for k in KINDS]


@pytest.fixture(scope="module", params=PARAMS)
def prepared(request):
    kind, options, loops = KINDS[request.param]
    mesh = generate(kind, **options)
    lists = request.param == "lists"
    asked = Options(block_size=32, partition="metis" if lists else None)
    return mesh, prepare(mesh, loops, asked, keep_order=lists), loops[0]


def _slow_values(plan, loop):
    """What a plan says of each element, in the input's numbering, element by element."""
    variant = plan[loop].variant()
    order = plan.ordering[plan[loop].loop.over]
    found = {}
    colour_of = {}
    for c in range(variant.n_block_colours):
        start, stop = variant.block_colour_offset[c : c + 2]
        colour_of |= {int(b): c for b in variant.block_order[start:stop]}
    for b in range(variant.n_blocks):
        places = range(variant.block_offset[b], variant.block_offset[b + 1])
        rows = (
            list(places) if variant.elements is None else variant.elements[places].tolist()
        )
        for place, new in zip(places, rows, strict=True):
            points = [
                {(m.to_set, int(p)) for e in rows for p in m.table[e]}
                for m in plan[loop].maps.values()
            ]
            accesses = sum(len(rows) * m.arity for m in plan[loop].maps.values())
            reuse = accesses / len(set().union(*points))
            colours = (colour_of[b], int(variant.thread_colour[place]))
            found[int(order.new_to_old[new])] = (b, *colours, new, reuse)
    return found


def test_a_paraview_file_holds_every_element_with_its_values(prepared, tmp_path):
    mesh, done, loop = prepared
    path = tmp_path / "a.vtu"
    io.write(paraview_mesh(done.plan, loop, NamedMesh("x", mesh)), path)
    found = meshio.read(path)
    over = done.plan[loop].loop.over
    parts = [f"{p}->nodes" for p in ("triangle_faces", "quad_faces")]
    names = (
        parts if over == "faces" and "cells->nodes" not in mesh.maps else [f"{over}->nodes"]
    )
    full = derive(mesh, [*(m for m in done.plan.maps if m.startswith(over)), *names])
    corners = [set(row) for name in names for row in full.map(name).table.tolist()]
    rows = [set(row) for block in found.cells for row in block.data.tolist()]
    data = {k: np.concatenate(v) for k, v in found.cell_data.items()}
    slow = _slow_values(done.plan, loop)
    assert len(rows) == len(slow) == len(corners)
    for i, row in enumerate(rows):
        old = int(data["original_id"][i])
        assert row == corners[old]
        names = ("block", "block_colour", "thread_colour", "plan_id")
        assert tuple(int(data[n][i]) for n in names) == slow[old][:4]
        assert data["reuse"][i] == pytest.approx(slow[old][4])
        assert data["input_block"][i] == old // 32
    assert np.allclose(found.points[:, : mesh.coordinates.shape[1]], mesh.coordinates)


def test_a_reordered_mesh_serves_as_well(prepared):
    mesh, done, loop = prepared
    named = [NamedMesh("new", done.mesh), NamedMesh("old", mesh)]
    back = mesh_of(done.plan, named[:1])
    assert back.name == "new"
    assert back.mesh.content_hash() == mesh.content_hash()
    one, two = (paraview_mesh(done.plan, loop, mesh_of(done.plan, [n])) for n in named)
    for name in one.maps:
        assert (one.map(name).table == two.map(name).table).all()
    pages = [html_report(compare_one(done.plan), [n]) for n in named]
    pictures = [re.findall(r"base64,([^\"]+)", page) for page in pages]
    assert pictures[0] == pictures[1]
    assert len(pictures[0]) >= 5


def test_a_mesh_whose_cell_types_stand_otherwise_serves_as_well():
    mesh = generate("mixed2d", nx=4, ny=4)
    plan = prepare(mesh, ["edges->cells"], Options(block_size=8)).plan
    turned = with_type_order(mesh, reversed(mesh.sets["cells"].parts))
    assert turned.sets["cells"].parts == ("triangle", "quad")
    back = mesh_of(plan, [NamedMesh("turned", turned)]).mesh
    assert back.sets["cells"].parts == ("quad", "triangle")
    one, two = (derive(m, ["edges->cells"]).map("edges->cells").table for m in (mesh, back))
    assert (one == two).all()


def compare_one(plan):
    from meshprep.reporting.compare import Comparison

    return Comparison(("a.plan.h5",), (plan,))


def test_nodes_carry_the_values_of_a_loop_over_nodes(tmp_path):
    mesh = generate("delaunay2d", cells=200)
    table = derive(mesh, ["edges->nodes"]).map("edges->nodes").table
    from meshprep.mesh import SetMap

    ring = np.stack([np.roll(table[:, 0], 1)[: mesh.size("nodes")]], axis=1)
    own = mesh.with_(
        maps=[SetMap("nodes->cells", "nodes", "cells", ring % mesh.size("cells"))]
    )
    plan = prepare(own, ["nodes->cells"], Options(block_size=16)).plan
    made = paraview_mesh(plan, "nodes->cells", NamedMesh("x", own))
    path = tmp_path / "n.vtu"
    io.write(made, path)
    found = meshio.read(path).point_data
    values = block_values(plan, "nodes->cells")
    assert (found["block"] == values.block).all()
    assert (found["plan_id"] == plan.ordering["nodes"].old_to_new).all()


def test_a_type_of_faces_that_the_loop_has_none_of_is_left_out(tmp_path):
    points = np.array(
        [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, -1]], float
    )
    pyramids = np.array([[0, 1, 2, 3, 4], [0, 3, 2, 1, 5]])
    mesh, _ = assemble(points, [Block("pyramid", pyramids)])
    for loop, sizes in (
        ("faces->cells", {"quad": 1}),
        ("boundary_faces->cells", {"triangle": 8}),
    ):
        plan = prepare(mesh, [loop]).plan
        path = tmp_path / f"{loop}.vtu"
        io.write(paraview_mesh(plan, loop, NamedMesh("x", mesh)), path)
        assert {c.type: len(c.data) for c in meshio.read(path).cells} == sizes


@pytest.mark.parametrize("other", ["faces->cells", "faces->cells->nodes"])
def test_one_type_of_inner_faces_is_shown_as_the_plan_has_it(other):
    mesh = generate("box", type="wedge", nx=2, ny=2, nz=2)
    loop = "triangle_faces->nodes"
    path = LoopRequest(
        other, {"over": "faces", "args": [{"dat": "x", "map": other}]}, other
    )
    plan = prepare(mesh, [loop, path]).plan
    named = NamedMesh("x", mesh)
    full = derive(mesh, [loop, "faces->cells"])
    shown = paraview_mesh(plan, loop, named).map("cells->nodes").table
    assert shown.tolist() == full.map(loop).table.tolist()
    owners = [c.owner for c in scene_of(plan, loop, named).cells]
    on_sides = np.unique(np.concatenate([o[o >= 0] for o in owners]), return_counts=True)
    assert on_sides[0].tolist() == list(range(plan.sizes["triangle_faces"]))
    assert set(on_sides[1].tolist()) == {2}


def test_a_loop_without_elements_has_no_paraview_file():
    mesh, _ = assemble(np.eye(4, 3), [Block("tetra", np.arange(4).reshape(1, 4))])
    plan = prepare(mesh, ["faces->cells"]).plan
    with pytest.raises(MeshprepError, match="there are no elements of 'faces'"):
        paraview_mesh(plan, "faces->cells", NamedMesh("x", mesh))


def test_all_files_at_once_or_none(prepared, tmp_path):
    mesh, done, _ = prepared
    plan, source = tmp_path / "a.plan.h5", tmp_path / "a.vtk"
    done.plan.save(plan)
    bare = [d for d in mesh.dats if d.name == "coordinates"]
    kept = type(mesh)(mesh.sets.values(), mesh.maps.values(), bare)
    meshio.write(source, _as_meshio(kept))
    targets = [tmp_path / f"out.{kind}" for kind in ("html", "png", "vtu")]
    files = ReportFiles(*targets, meshes=(source,))
    files.check([plan])
    steps = []
    written = write_files(compare([plan]), files, lambda *step: steps.append(step))
    assert written == targets
    assert [s[0] for s in steps] == [0, 1, 2, 3]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        ["a.plan.h5", "a.vtk", "out.html", "out.png", "out.vtu"]
    )
    before = [t.read_bytes() for t in targets]
    other = tmp_path / "other.vtk"
    meshio.write(other, _as_meshio(generate("box", nx=2, ny=2, nz=2)))
    wrong = ReportFiles(*targets, meshes=(other,), overwrite=True)
    with pytest.raises(MeshprepError, match="another mesh than"):
        write_files(compare([plan]), wrong)
    assert [t.read_bytes() for t in targets] == before
    with pytest.raises(MeshprepError, match="exists already"):
        files.check([plan])


def _as_meshio(mesh):
    parts = mesh.sets["cells"].parts or ("cells",)
    cells = [(mesh.sets[p].cell_type, mesh.cell_map(p).table) for p in parts]
    xyz = mesh.coordinates
    if xyz.shape[1] == 2:
        xyz = np.column_stack([xyz, np.zeros(len(xyz))])
    return meshio.Mesh(xyz, cells)


def test_reports_say_that_blocks_list_their_elements(tmp_path):
    mesh = generate("delaunay2d", cells=300)
    told = {}
    for lists in (True, False):
        options = Options(block_size=32, partition="blocks")
        plan = prepare(mesh, ["cells->nodes"], options, keep_order=lists).plan
        page = html_report(compare_one(plan), [NamedMesh("x", mesh)])
        plan.save(tmp_path / "a.plan.h5", overwrite=True)
        (record,) = describe(MeshSource(tmp_path / "a.plan.h5")).values["loops"]
        told[lists] = (
            "blocks list their elements, whose numbers stay." in page,
            "Map cells-&gt;nodes in the order of the blocks" in page,
            "at most, which list them"
            in " ".join(t.title for t in compare_one(plan).tables()),
            record["elements"],
        )
    assert told == {
        True: (True, True, True, "lists"),
        False: (False, False, False, "ranges"),
    }


def test_a_page_without_the_mesh_says_so():
    plan = prepare(generate("delaunay2d", cells=100), ["edges->cells"]).plan
    page = html_report(compare_one(plan))
    assert "name its mesh with --mesh" in page
    ids = re.findall(r'id="([^"]+)"', page)
    assert len(set(ids)) == len(ids)
    other = [NamedMesh("box.msh", generate("box", nx=2, ny=2, nz=2))]
    assert "made from another mesh than box.msh" in html_report(compare_one(plan), other)


DIRECT = {"over": "cells", "args": [{"dat": "q", "dim": 4, "access": "rw"}]}


@pytest.mark.parametrize(
    ("mesh", "loops", "options", "figures"),
    [
        ("squares", [LoopRequest("save", DIRECT, "here")], {}, 6),
        ("squares", ["edges->cells"], {"target": "cpu"}, 9),
        ("one square", ["cells->nodes"], {}, 9),
        ("one square", ["edges->cells"], {}, 0),
        ("one cube", ["cells->nodes"], {}, 11),
        ("one cube", ["faces->cells"], {}, 0),
    ],
)
def test_pages_of_odd_plans(mesh, loops, options, figures):
    made = {
        "squares": {"nx": 9, "ny": 9, "type": "quad"},
        "one square": {"nx": 1, "ny": 1, "type": "quad"},
        "one cube": {"nx": 1, "ny": 1, "nz": 1},
    }
    mesh = generate("box", **made[mesh])
    plan = prepare(mesh, loops, Options(**options)).plan
    page = html_report(compare_one(plan), [NamedMesh("x", mesh)])
    assert page.count("<figure") == figures
    assert "nan" not in re.sub(r"base64,[^\"]+", "", page).lower().split()


def test_plans_without_block_figures_have_a_page_without_them():
    plan = prepare(generate("delaunay2d", cells=100), ["edges->cells"]).plan
    stored = json.loads(json.dumps(to_json(plan.metrics)))
    for side in stored["loops"]["edges->cells"]["s256"].values():
        for name in ("histograms", "block_colour_sizes", "warp_efficiency", "traffic"):
            del side[name]
    old = replace(plan, metrics=from_json(Metrics, stored, "metrics"))
    page = html_report(compare_one(old))
    # where the mesh would stand, and the map before and after
    assert page.count("<figure") == 3


def test_names_from_files_cannot_break_the_page():
    from meshprep.reporting.compare import Comparison

    plan = prepare(generate("delaunay2d", cells=100), ["edges->cells"]).plan
    page = html_report(Comparison(('<script>alert("x")</script>.plan.h5',), (plan,)))
    assert "<script" not in page
    assert not re.search(r"https?://", page)


def test_a_page_of_a_plan_whose_name_is_no_utf_8(tmp_path):
    plan = tmp_path / os.fsdecode(b"wing\xff.plan.h5")
    prepare(generate("delaunay2d", cells=100), ["edges->cells"]).plan.save(plan)
    (page,) = write_files(compare([plan]), ReportFiles(tmp_path / "a.html"))
    assert "wing\\udcff" in page.read_text(encoding="utf-8")


def test_loops_whose_names_differ_in_signs_have_figures_of_their_own():
    """Ids have neither signs nor capitals."""
    loops = {
        name: {
            "over": "edges",
            "args": [{"dat": "r", "map": "edges->cells", "access": "inc"}],
        }
        for name in ("flux<1>", "Flux(1)", "flux 1-2", "\u03b1", "\u03b2")
    }
    plan = prepare(generate("delaunay2d", cells=200), loops, Options(block_size=32)).plan
    from meshprep.reporting.compare import Comparison

    comparison = Comparison(("a.plan.h5",), (plan,))
    sections = sections_of(comparison)
    ids = [one.id for s in sections for one in (s, *s.figures)]
    assert len(ids) == len(set(ids))
    wanted = ["plan1-flux-1-s32-section", "plan1-flux-1-s32-section-2"]
    assert [s.id for s in sections if not s.folded][:2] == wanted


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"html": "a.txt"}, r"name it \*.html or \*.htm, so"),
        ({"picture": "a.html"}, r"name it \*.png or \*.pdf or \*.svg, so"),
        ({"vtu": "a.vtk"}, r"name it \*.vtu"),
        ({"picture": "a.png"}, "name its mesh with --mesh"),
        ({"html": "no/such/a.html"}, "does not exist"),
    ],
)
def test_bad_targets_are_refused_before_any_work(values, said, tmp_path):
    files = ReportFiles(**{k: tmp_path / v for k, v in values.items()})
    with pytest.raises(MeshprepError, match=said):
        files.check()
