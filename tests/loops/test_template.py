"""``meshprep loops``: a loops.toml that is valid as it is printed."""

import tomllib

import numpy as np
import pytest

from meshprep import prepare, read_requests
from meshprep.io.declared import from_toml, parse
from meshprep.io.generate import generate
from meshprep.loops.requests import resolve
from meshprep.loops.template import template
from meshprep.mesh import Dat, ElementSet, Mesh, SetMap
from meshprep.topology import derive
from meshprep_runtime import MeshprepError

MESHES = {
    "triangles": lambda: generate("delaunay2d", cells=30),
    "hexes": lambda: generate("box", nx=2, ny=2, nz=2),
    "mixed plane": lambda: generate("mixed2d", nx=3, ny=3),
    "mixed solid": lambda: generate("mixed3d", nx=4, ny=4, nz=4),
}


def loops_of(mesh, tmp_path):
    path = tmp_path / "loops.toml"
    path.write_text(template(mesh, "a.msh"), encoding="utf-8")
    requests = read_requests(path)
    full = derive(mesh, dict.fromkeys(m for r in requests for m in r.maps))
    return full, [s.loop for s in resolve(requests, full)]


@pytest.mark.parametrize("kind", MESHES)
def test_every_loop_of_the_template_fits_the_mesh(kind, tmp_path):
    mesh = MESHES[kind]()
    full, loops = loops_of(mesh, tmp_path)
    assert loops[0].over == ("edges" if "plane" in kind or kind == "triangles" else "faces")
    assert loops[0].leading_map == f"{loops[0].over}->cells"
    assert {loop.over for loop in loops} == {m.from_set for m in full.maps.values()}
    for loop in loops:
        for arg in loop.args:
            if arg.map is not None:
                assert arg.index == tuple(range(full.map(arg.map).arity))


def test_boundary_loops_read_the_groups_that_the_plan_will_have(tmp_path):
    mesh = generate("mixed3d", nx=4, ny=4, nz=4)
    assert "group" not in template(Mesh(mesh.sets.values(), mesh.maps.values()), "a.msh")
    _, loops = loops_of(mesh, tmp_path)
    held = [loop.over for loop in loops if any(a.name == "group" for a in loop.args)]
    plan = prepare(mesh, read_requests(tmp_path / "loops.toml")).plan
    assert set(held) == plan.tags.keys()
    for over in held:
        line = f'access = "read" }},  # plan.tags["{over}"]["physical"]\n'
        assert line in (tmp_path / "loops.toml").read_text()
        assert "physical" in plan.tags[over]


def test_what_gmsh_notes_of_nodes_is_no_value_of_a_solver(tmp_path):
    mesh = generate("delaunay2d", cells=30)
    nodes = np.zeros(mesh.size("nodes"), np.int32)
    noted = [Dat(f"gmsh:entity_{what}", "nodes", nodes) for what in ("dim", "tag")]
    assert template(mesh.with_(dats=noted), "a.msh") == template(mesh, "a.msh")


def test_values_are_listed_with_their_types_and_odd_names(tmp_path):
    sets = [ElementSet("edges", 3), ElementSet("odd name", 2)]
    maps = [SetMap("edges->odd name", "edges", "odd name", np.zeros((3, 2), np.int32))]
    dats = [
        Dat('say "x"', "odd name", np.zeros((2, 3), np.float32)),
        Dat("count", "edges", np.zeros(3, np.int64)),
        Dat("text", "edges", np.zeros(3, "S4")),
    ]
    _, (loop,) = loops_of(Mesh(sets, maps, dats), tmp_path)
    assert [(a.name, a.dim, a.dtype, a.map) for a in loop.args[:2]] == [
        ("count", 1, "i8", None),
        ('say "x"', 3, "f4", "edges->odd name"),
    ]
    assert str(loop.args[2].access) == "inc"


def test_what_was_found_out_is_written_down(tmp_path):
    maps = [SetMap("e->n", "e", "n", np.zeros((3, 2), np.int32))]
    found = {"op2:inferred": ("deep/ends=e->n", "q=n", "base=1")}
    mesh = Mesh([ElementSet("e", 3), ElementSet("n", 2)], maps, extras=found)
    path = tmp_path / "loops.toml"
    path.write_text(template(mesh, "a.h5"))
    expected = {"deep/ends": "e->n", "q": "n", "base": "1"}
    assert from_toml(path) == expected
    assert parse(["deep/ends=e->n q=n", "base=1"]) == expected
    assert [r.name for r in read_requests(path)] == ["over_e"]
    assert tomllib.loads(path.read_text())["sets"]["base"] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q=", "must read NAME=SET"),
        ("=cells", "must read NAME=SET"),
        ("q=a->b->c", "must read SET or SET->SET"),
        ("q=->b", "must read SET or SET->SET"),
        ("base=2", "begin at 0 or 1"),
        ("q=a q=b", "declared twice"),
    ],
)
def test_declarations_that_say_nothing(text, message):
    with pytest.raises(MeshprepError, match=message):
        parse([text])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sets = 3", "must hold NAME"),
        ("[sets]\nq = 3", "q is 3, must be the name of a set"),
        ("[sets", "not valid TOML"),
    ],
)
def test_tables_that_say_nothing(text, message, tmp_path):
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(MeshprepError, match=message):
        from_toml(tmp_path / "a.toml")
    with pytest.raises(MeshprepError, match="cannot be read"):
        from_toml(tmp_path / "none.toml")
