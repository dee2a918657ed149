import os
import tomllib

import numpy as np
import pytest

from meshprep.io.generate import generate
from meshprep.loops.requests import (
    LoopRequest,
    as_requests,
    default_request,
    read_requests,
    resolve,
    simple_request,
)
from meshprep.mesh import ElementSet, Mesh, SetMap
from meshprep.pipeline.steps import prepare
from meshprep.topology import derive
from meshprep_runtime import Access, Arg, Loop, MeshprepError
from meshprep_runtime.errors import check_choice

TOML = """
[loop.res]
over = "edges"
block_size = 64
args = [
  { dat = "x", map = "edges->nodes", index = [1], dim = 2, access = "read" },
  { dat = "r", map = "edges->nodes", dim = 4, dtype = "f4", access = "inc" },
  { dat = "w", access = "write" },
  { global = "rms", access = "inc" },
]
"""


def mesh():
    table = np.array([[0, 1], [1, 2]])
    return Mesh(
        [ElementSet("nodes", 3), ElementSet("edges", 2)],
        [SetMap("edges->nodes", "edges", "nodes", table)],
    )


def test_a_file_of_loops(tmp_path):
    (tmp_path / "loops.toml").write_text(TOML)
    requests = read_requests(tmp_path / "loops.toml")
    assert requests[0].maps == ("edges->nodes",)
    (spec,) = resolve(requests, mesh())
    assert spec.options == {"block_size": 64}
    x, r, w, rms = spec.loop.args
    assert (x.index, x.dim, x.dtype, x.access) == ((1,), 2, "f8", Access.READ)
    assert (r.index, r.nbytes, r.conflicts) == ((0, 1), 16, True)
    assert w.map is None
    assert rms.is_global
    assert spec.loop.conflict_columns == {"edges->nodes": (0, 1)}
    assert spec.loop.leading_map == "edges->nodes"


def test_a_dat_that_is_read_and_added_to_is_refused_before_the_mesh_is_read(tmp_path):
    (tmp_path / "loops.toml").write_text(TOML.replace('"r", map', '"x", map'))
    with pytest.raises(
        MeshprepError, match="'x' stands twice, with different dtypes or dims"
    ):
        read_requests(tmp_path / "loops.toml")
    alike = TOML.replace(
        '"r", map = "edges->nodes", dim = 4, dtype = "f4"', '"x", map = "edges:p"'
    )
    (tmp_path / "loops.toml").write_text(alike.replace("dim = 2, ", ""))
    with pytest.raises(
        MeshprepError, match=r"loop 'res': .*conflict \(read and inc\): use an"
    ):
        read_requests(tmp_path / "loops.toml")


def test_a_dict_of_loops_is_the_file_of_them(tmp_path):
    (tmp_path / "loops.toml").write_text(TOML)
    (of_file,) = resolve(read_requests(tmp_path / "loops.toml"), mesh())
    (spec,) = resolve(as_requests(tomllib.loads(TOML)["loop"], mesh()), mesh())
    assert (spec.loop, spec.options) == (of_file.loop, of_file.options)
    with pytest.raises(MeshprepError, match=r"^loop 'res': needs over = "):
        prepare(mesh(), {"res": "edges->nodes"})
    assert as_requests({}, mesh()) == [default_request(mesh())]


def test_a_colon_stands_for_the_arrow(tmp_path):
    (tmp_path / "loops.toml").write_text(TOML.replace("edges->nodes", "edges:nodes"))
    (spec,) = resolve(read_requests(tmp_path / "loops.toml"), mesh())
    assert spec.loop.maps == ("edges->nodes",)
    assert simple_request("edges:nodes") == simple_request("edges->nodes")
    # Of several maps between two sets, OP2 files have one with a name.
    assert simple_request("edges->nodes:pedge").name == "edges->nodes:pedge"
    assert simple_request("edges:nodes:pedge").name == "edges->nodes:pedge"


def test_a_map_of_a_map_as_a_loop():
    """As in loops.toml: all nodes of both cells of an edge."""
    box = generate("box", nx=3, ny=2, type="triangle")
    plan = prepare(box, ["edges->cells->nodes"], keep_order=True).plan
    (loop,) = plan.loops.values()
    assert (loop.loop.over, loop.loop.maps) == ("edges", ("edges->cells->nodes",))
    cells = derive(box, ["edges->cells"]).map("edges->cells").table
    nodes = box.map("cells->nodes").table[cells].reshape(-1, 6)
    row = plan.ordering["edges"].new_to_old
    assert np.array_equal(plan.maps["edges->cells->nodes"].table, nodes[row])


def test_what_the_shell_leaves_of_a_loop_is_explained():
    with pytest.raises(MeshprepError, match=r"the shell took > .*or write cells:"):
        simple_request("cells-")


def test_a_map_alone_stands_for_one_increment():
    (spec,) = resolve([simple_request(" edges -> nodes ")], mesh())
    assert spec.loop == Loop(
        "edges->nodes",
        "edges",
        (Arg("value", Access.INC, 1, "f8", "edges->nodes", (0, 1)),),
    )


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (["tetra"], "faces->cells"),
        (["triangle"], "edges->cells"),
        (["line"], "cells->nodes"),
    ],
)
def test_default_loops(types, expected):
    size = {"tetra": 4, "triangle": 3, "line": 2}[types[0]]
    made = Mesh(
        [ElementSet("nodes", 4), ElementSet("cells", 1, types[0])],
        [SetMap("cells->nodes", "cells", "nodes", np.arange(size)[None])],
    )
    assert default_request(made).name == expected


def changed_file(folder, before, after):
    """The loops.toml with one text in place of another, or without its last bracket."""
    assert before in TOML
    path = folder / "loops.toml"
    path.write_text(TOML.replace(before, after) if after else TOML.rstrip().rstrip("]"))
    return path


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('edges->nodes", index = [1]', 'edges->nodes", index = [0, 0]', "distinct"),
        ('over = "edges"', 'over = "nodes"', "runs over 'nodes'"),
        ('access = "write"', 'access = "append"', "access 'append' is unknown"),
        ('access = "write"', 'access = "min"', "is for globals"),
        ('dtype = "f4"', 'dtype = "text"', "dtype 'text' is unknown"),
        ("dim = 4", "dim = 0", "dim is 0"),
        ("dim = 4", 'dim = "4"', "must be a whole number"),
        ("block_size = 64", "blocksize = 64", "unknown key 'blocksize'"),
        ("block_size = 64", 'block_size = "64"', "must be int"),
        ("block_size = 64", "block_size = true", "block_size is True, must be int"),
        ("block_size = 64", "own_blocks = 1", "own_blocks is 1, must be bool"),
        ("[loop.res]", "[loops.res]", "unknown table 'loops'"),
        ("[loop.res]", "[[loop]]", r"holds no loops: write a table \[loop.NAME\] for each"),
        ("[loop.res]", "[sets]", "holds no loops"),
        ("[loop.res]", '[loop."a/b"]', "a loop's name must not hold '/'"),
        ('{ dat = "w"', '{ data = "w"', "unknown key 'data'"),
        ('{ dat = "w",', "{", "either 'dat' or 'global'"),
        ("args = [", "args = [ 3,", "argument 0 is not a table"),
        ("]\n", "", "not valid TOML"),
    ],
)
def test_what_is_wrong_is_said_before_a_mesh_is_read(tmp_path, before, after, message):
    path = changed_file(tmp_path, before, after)
    with pytest.raises(MeshprepError, match=message) as error:
        read_requests(path)
    assert "loops.toml" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("access", Access)
def test_an_access_in_words_is_the_member(access):
    """Text that only equals it would be taken for another one by ``is``."""
    assert Arg("q", str(access), is_global=access in ("min", "max")).access is access
    with pytest.raises(
        MeshprepError, match="argument 'q': access 'add' is unknown: use read, wri"
    ):
        Arg("q", "add")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            'edges->nodes", index = [1]',
            'edges->nodes", index = [2]',
            "index 2 is past the last",
        ),
        ('edges->nodes", dim', 'edges->cells", dim', "there is no map 'edges->cells'"),
    ],
)
def test_what_does_not_fit_the_mesh_is_said(tmp_path, before, after, message):
    requests = read_requests(changed_file(tmp_path, before, after))
    with pytest.raises(MeshprepError, match=message) as error:
        resolve(requests, mesh())
    assert "loops.toml" in str(error.value)


@pytest.mark.parametrize("text", ["edges", "->nodes", "a->->c", "a->b->", ""])
def test_no_loop(text):
    with pytest.raises(MeshprepError, match="FROM->TO"):
        simple_request(text)


def test_a_mesh_without_maps_has_no_loop():
    with pytest.raises(MeshprepError, match="no maps: there is no loop to prepare"):
        as_requests([], Mesh([ElementSet("nodes", 4)], []))


def test_a_text_in_place_of_a_list():
    with pytest.raises(MeshprepError, match=r"is a text: give \['edges->nodes'\]"):
        as_requests("edges->nodes", mesh())


def test_what_is_no_loop_is_refused():
    for loops, said in (
        (None, "None is none"),
        ([3], "loop 3 must be a text such as 'a->b'"),
    ):
        with pytest.raises(MeshprepError, match=said):
            as_requests(loops, mesh())
    args = [{"dat": "q", "map": "edges->nodes", "access": "inc"}]
    for values, said in (
        (
            {"over": "edges", "args": args, "block_sise": 8},
            "^here: unknown key 'block_sise'",
        ),
        ({"over": "edges"}, "^here: needs over = "),
    ):
        with pytest.raises(MeshprepError, match=said):
            LoopRequest("a", values, "here")
    with pytest.raises(
        MeshprepError, match=r"options are \{'block_size': 8\}: give Options"
    ):
        prepare(mesh(), ["edges->nodes"], {"block_size": 8})


def test_a_choice_among_none():
    with pytest.raises(MeshprepError, match=r"^matrix 'K' is unknown: there is none$"):
        check_choice("matrix", "K", {})


def test_two_loops_of_one_name():
    request = simple_request("edges->nodes")
    with pytest.raises(MeshprepError, match="two loops"):
        resolve([request, request], mesh())


def test_a_loops_file_that_is_missing(tmp_path):
    with pytest.raises(MeshprepError, match="cannot be read"):
        read_requests(tmp_path / "none.toml")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(
    "make", [lambda p: os.mkfifo(p), lambda p: p.symlink_to("/dev/zero")]
)
def test_what_is_no_regular_file_is_refused_unopened(tmp_path, make):
    make(tmp_path / "loops.toml")
    with pytest.raises(
        MeshprepError, match=r"loops.toml: cannot be read: is no regular file"
    ):
        read_requests(tmp_path / "loops.toml")


def test_a_set_that_only_a_map_makes_needs_one():
    mesh = generate("delaunay2d", cells=100)
    arg = {"dat": "r", "access": "inc"}
    request = LoopRequest("r", {"over": "edges", "args": [arg]})
    told = (
        "loop 'r': needs the map of an argument: the mesh has nodes, line, cells, and 'edges' is "
        'made only by a map, such as map = "edges->nodes"'
    )
    with pytest.raises(MeshprepError, match=told):
        resolve([request], mesh)
    # through a map that makes it
    assert resolve([simple_request("cells->nodes")], mesh)[0].loop.over == "cells"
