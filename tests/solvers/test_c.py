"""The C example, built with the compiler of this machine: the numbers of the Python runtime."""

import os
import re
import shutil
import subprocess
from dataclasses import replace

import effort
import numpy as np
import pytest
import scipy.sparse
from c_builds import BUILDS, FOLDER, INCLUDE, LOOPS, STRICT

from meshprep import Options, prepare, read_requests
from meshprep.io.generate import generate
from meshprep.topology import derive
from meshprep_runtime import ParLoop, __version__
from meshprep_runtime.plan import ranges


@pytest.fixture(scope="module", params=effort.first(["ranges", "lists"]))
def plan(tmp_path_factory, request):
    """A plan of several blocks and colours, and its file."""
    folder = tmp_path_factory.mktemp("plan")
    (folder / "heat.toml").write_text(LOOPS)
    mesh = derive(generate("delaunay2d", cells=600, seed=2), ["edges->cells"])
    lists = request.param == "lists"
    options = Options(block_size=32, partition="metis" if lists else None)
    loops = read_requests(folder / "heat.toml")
    made = prepare(mesh, loops, options, keep_order=lists).plan
    assert (made["flux"].variant().elements is not None) == lists
    made.save(folder / "heat.plan.h5")
    return made, folder / "heat.plan.h5"


def python_result(plan, steps):
    def flux(t1, t2, r1, r2):
        f = t2[0] - t1[0]
        r1[0] += f
        r2[0] -= f

    cells = plan.ordering["cells"]
    t = cells.apply((np.arange(cells.size) * 37 % 101).astype(float))
    r = np.zeros_like(t)
    loop = ParLoop(flux, plan["flux"], strategy="sequential")
    for _ in range(steps):
        loop(t=t, r=r)
        t += 0.125 * r
        r[:] = 0
    return cells.restore(t)


@pytest.mark.parametrize("language", effort.first(BUILDS))
def test_the_numbers_of_the_runtime(build, language, plan, tmp_path):
    program = build(language, tmp_path)
    made, path = plan
    assert made["flux"].variant().n_block_colours > 1
    # Ten steps of eighths are exact in doubles, so that no order of adding can differ.
    for steps, exact in ((10, True), (200, False)):
        result = tmp_path / "t.bin"
        words = [str(program), str(path), str(steps), str(result)]
        ran = subprocess.run(words, capture_output=True, text=True)
        assert (ran.returncode, ran.stderr) == (0, "")
        found, expected = np.fromfile(result), python_result(made, steps)
        if exact:
            assert found.tobytes() == expected.tobytes()
        assert np.allclose(found, expected, rtol=1e-12, atol=0)
        total, peak = map(float, ran.stdout.split()[1::2])
        assert total == pytest.approx(expected.sum(), rel=1e-13)
        assert peak == found.max()


def test_what_is_wrong_is_said_in_one_line(build, plan, tmp_path):
    program = build("C99", tmp_path)
    whole = plan[1].read_bytes()
    cases = {
        "another version": re.sub(rb"plan \d\n", b"plan 5\n", whole, count=1),
        "does not match its checksum": whole[:-1] + bytes([whole[-1] ^ 1]),
        "no plan": b"\x89HDF\r\n\x1a\n" + whole,
        "cannot be read": None,
    }
    for message, content in cases.items():
        path = tmp_path / "bad.plan.h5"
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        ran = subprocess.run([str(program), str(path), "1"], capture_output=True, text=True)
        assert ran.returncode == 2
        assert message in ran.stderr
        assert ran.stderr.count("\n") == 1


VARIANT = """\
#define MESHPREP_PLAN_IMPLEMENTATION
#include "meshprep_plan.h"
int main(int n, char **words)
{
    char error[MP_ERROR] = "";
    mp_plan *plan = mp_open(words[n - 2], error);
    mp_loop *loop = mp_read_loop(plan, "flux", words[n - 1], error);
    puts(loop == NULL ? error : "read");
    mp_free_loop(loop);
    mp_close(plan);
}
"""


@pytest.mark.parametrize("plan", ["ranges"], indirect=True)
def test_no_other_blocks_are_taken_for_those_that_are_named(
    compile_program, plan, tmp_path
):
    made, path = plan
    source, program = tmp_path / "variant.c", tmp_path / "variant"
    source.write_text(VARIANT)
    compile_program("cc", ["-std=c99", *STRICT], source, program)

    def told(variant):
        return subprocess.run(
            [program, path, variant], capture_output=True, text=True
        ).stdout

    assert told(made["flux"].default) == "read\n"
    assert "there are no such blocks" in told("s7")
    assert "there are no such blocks" in told("")
    assert "a name in it is too long" in told("s" * 2000)


@pytest.mark.slow
@pytest.mark.parametrize("plan", ["ranges"], indirect=True)
def test_the_makefile_builds_the_example(build, plan, tmp_path):
    build("C99", tmp_path)
    folder = tmp_path / "examples" / "c"
    folder.mkdir(parents=True)
    for name in ("heat.c", "part.c", "stiffness.c", "Makefile"):
        shutil.copy(FOLDER / name, folder)
    shutil.copytree(INCLUDE, tmp_path / "include" / "meshprep")
    subprocess.run(["make", "-C", str(folder)], check=True, capture_output=True)
    ran = subprocess.run([str(folder / "heat"), str(plan[1]), "1"], capture_output=True)
    assert ran.returncode == 0


CMAKE = """\
cmake_minimum_required(VERSION 3.18)
project(heat C)
find_package(meshprep REQUIRED)
add_executable(heat heat.c)
target_link_libraries(heat meshprep::meshprep)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["cmake", "pkg-config"])
@pytest.mark.parametrize("plan", ["ranges"], indirect=True)
def test_the_folder_of_headers_is_a_package(build, plan, tmp_path, how):
    build("C99", tmp_path)
    if shutil.which(how) is None:
        pytest.skip(f"no {how} on this machine")
    shutil.copy(FOLDER / "heat.c", tmp_path)
    if how == "cmake":
        (tmp_path / "CMakeLists.txt").write_text(CMAKE)
        words = [["cmake", f"-Dmeshprep_DIR={INCLUDE}", "-B", ".", "-S", "."], ["make"]]
    else:
        words = [["sh", "-c", "cc heat.c -o heat $(pkg-config --cflags --libs meshprep)"]]
    (tmp_path / "heat").unlink()
    found = os.environ | {"PKG_CONFIG_PATH": str(INCLUDE)}
    for line in words:
        subprocess.run(line, cwd=tmp_path, env=found, check=True, capture_output=True)
    ran = subprocess.run([str(tmp_path / "heat"), str(plan[1]), "1"], capture_output=True)
    assert ran.returncode == 0


def test_the_packages_have_the_version_of_the_product():
    assert f"Version: {__version__}\n" in (INCLUDE / "meshprep.pc").read_text()


MATRIX = """\
[loop.stiffness]
over = "cells"
args = [
  { dat = "x", map = "cells->nodes", dim = 2 },
  { mat = "K", rows = "cells->dofs1", columns = "cells->dofs1", access = "inc", fixed = ["left"] },
]
"""


@pytest.mark.parametrize("language", effort.first(BUILDS))
def test_a_matrix_in_c(build, language, tmp_path):
    """The entries of all triangles, added up by scipy."""
    program = build(language, tmp_path, "stiffness")
    (tmp_path / "K.toml").write_text(MATRIX)
    mesh, file = generate("delaunay2d", cells=600, seed=2), tmp_path / "K.plan.h5"
    plan = prepare(mesh, read_requests(tmp_path / "K.toml"), Options(block_size=32)).plan
    plan.save(file)
    nodes, values = tmp_path / "x.bin", tmp_path / "K.bin"
    mesh.coordinates.astype(float).tofile(nodes)
    ran = subprocess.run([program, file, nodes, values], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    matrix, wanted = plan.matrices["K"], triangles_by_scipy(plan, mesh)
    found = scipy.sparse.csr_array(
        (np.fromfile(values), matrix.columns, matrix.row_ptr), matrix.shape
    )
    assert abs(found - wanted).max() < 1e-13 * abs(wanted).max()
    told = dict(zip(*[iter(ran.stdout.split())] * 2, strict=True))
    assert (int(told["rows"]), int(told["nonzeros"])) == (
        matrix.shape[0],
        matrix.columns.size,
    )
    assert float(told["diagonal"]) == pytest.approx(wanted.trace(), rel=1e-13)
    assert float(told["sum"]) == pytest.approx(wanted.sum(), rel=1e-10)
    nodes.write_bytes(nodes.read_bytes()[:-8])
    ran = subprocess.run([program, file, nodes], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "x.bin: does not hold two doubles a node" in ran.stderr


def triangles_by_scipy(plan, mesh):
    x = plan.ordering["nodes"].apply(mesh.coordinates)[plan.maps["cells->nodes"].table]
    area = np.cross(*(np.c_[x[:, i] - x[:, 0], np.zeros(len(x))] for i in (1, 2)))[:, 2]
    turned = np.stack([x[:, (i + 2) % 3] - x[:, (i + 1) % 3] for i in range(3)], axis=1)
    local = np.einsum("eik,ejk->eij", turned, turned) / (2 * abs(area))[:, None, None]
    dofs = plan.matrices["K"].row_of[plan.maps["cells->dofs1"].table]
    r, c = np.repeat(dofs, 3, axis=1), np.tile(dofs, (1, 3))
    kept = (r >= 0) & (c >= 0)
    entries = local.reshape(-1, 9)[kept], (r[kept], c[kept])
    return scipy.sparse.coo_array(entries, plan.matrices["K"].shape).tocsr()


EVERYTHING = """\
#define MESHPREP_PLAN_IMPLEMENTATION
#include "meshprep_plan.h"
static FILE *out;
static void put(const void *values, int64_t n, size_t bytes)
{
    fwrite(values, bytes, (size_t)n, out);
}
int main(int n, char **words)
{
    char error[MP_ERROR] = "", *loop = words[3], *matrix = words[4], *set = words[5];
    const char *map = words[6];
    int64_t tagged = 0, members = 0, located = 0, dim = 0;
    mp_plan *plan = mp_open(words[1], error);
    mp_set *s = mp_read_set(plan, set, error);
    mp_map *m = mp_read_map(plan, map, error);
    double *x = mp_read_coordinates(plan, set, &located, &dim, error);
    mp_ranges *r = mp_read_ranges(plan, loop, error);
    int64_t *tag = mp_read_tag(plan, set, "physical", &tagged, error);
    int64_t *in = mp_read_members(plan, set, "physical", 1, &members, error);
    mp_loop *l = mp_read_loop(plan, loop, NULL, error);
    mp_staging *g = mp_read_staging(plan, loop, NULL, set, error);
    uint16_t *local = mp_read_local(plan, loop, NULL, map, error);
    mp_matrix *k = mp_read_matrix(plan, matrix, error);
    mp_places *p = mp_read_places(plan, matrix, "stiffness", error);
    char *text = mp_read_text(plan, "loops", loop, "default", error);
    int all = n == 7 && s && m && x && r && tag && in && l && g && local && k && p && text;
    if (all && (out = fopen(words[2], "wb")) != NULL) {
        put(s->new_to_old, s->size, 4), put(s->old_to_new, s->size, 4);
        put(m->table, m->size * m->arity, 4), put(tag, tagged, 8);
        put(in, members, 8), put(x, located * dim, 8);
        put(r->offset, r->n_ranges + 1, 8), put(r->order, r->n_ranges, 4);
        put(r->wait_offset, r->n_ranges + 1, 8), put(r->waits, r->wait_offset[r->n_ranges], 4);
        put(l->block_offset, l->n_blocks + 1, 8);
        put(l->block_colour_offset, l->n_block_colours + 1, 8);
        put(l->block_order, l->n_blocks, 4), put(l->thread_colour, l->size, 2);
        put(l->thread_colours, l->n_blocks, 4);
        for (int64_t i = 0; i < l->size; i++) {
            int64_t element = mp_element(l, i);
            put(&element, 1, 8);
        }
        put(g->point_offset, g->n_blocks + 1, 8), put(g->points, g->loads, 4);
        put(g->exclusive, g->loads, 1), put(local, m->arity * l->size, 2);
        put(k->row_ptr, k->n_rows + 1, 8), put(k->columns, k->n_nonzeros, 4);
        put(k->row_of, k->row_set_size, 4), put(k->column_of, k->column_set_size, 4);
        put(p->table, p->size * p->entries, 4), put(text, (int64_t)strlen(text), 1);
        fclose(out);
    } else
        puts(error);
    free(tag), free(in), free(local), free(text), free(x), mp_free_ranges(r);
    mp_free_set(s), mp_free_map(m), mp_free_loop(l), mp_free_staging(g);
    mp_free_matrix(k), mp_free_places(p), mp_close(plan);
    return all ? 0 : 2;
}
"""


def all_arrays(plan):
    """What the program writes, by the Python runtime."""
    loop, matrix = plan["flux"], plan.matrices["K"]
    v, cells = loop.variant(), plan.ordering["cells"]
    n = v.thread_colour.size
    lists = np.arange(n) if v.elements is None else v.elements
    staging = v.staging["cells"]
    return [
        *(cells.new_to_old.astype("i4"), cells.old_to_new.astype("i4")),
        *(plan.maps["edges->cells"].table.astype("i4"), plan.tags["cells"]["physical"]),
        *(plan.group("cells", "one"), plan.coordinates["cells"]),
        *(
            loop.ranges.offset,
            loop.ranges.order,
            loop.ranges.wait_offset,
            loop.ranges.waits,
        ),
        *(v.block_offset, v.block_colour_offset, v.block_order.astype("i4")),
        *(v.thread_colour.astype("u2"), v.thread_colours.astype("i4"), lists.astype("i8")),
        *(
            staging.point_offset,
            staging.points.astype("i4"),
            staging.exclusive.astype("u1"),
        ),
        *(v.local["edges->cells"].astype("u2"), matrix.row_ptr, matrix.columns),
        *(matrix.row_of, matrix.column_of, matrix.place["stiffness"].astype("i4")),
        np.frombuffer(loop.default.encode(), "u1"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("lists", [False, True], ids=["ranges", "lists"])
def test_all_that_a_plan_holds(compile_program, tmp_path, lists, monkeypatch):
    """Nothing is lost, and nothing read or freed that is not there, whatever is missing."""
    monkeypatch.setattr(ranges, "LEAST", 16)
    monkeypatch.setattr(ranges, "MOST", 16)
    source, program, file = (tmp_path / name for name in ("all.c", "all", "all.plan.h5"))
    source.write_text(EVERYTHING)
    flags = ["-std=c99", *STRICT]
    compile_program("cc", flags, source, program, checked=True)
    (tmp_path / "all.toml").write_text(LOOPS + MATRIX)
    mesh = derive(generate("delaunay2d", cells=80, seed=2), ["edges->cells"])
    options = Options(block_size=16, partition="metis" if lists else None)
    made = prepare(
        mesh, read_requests(tmp_path / "all.toml"), options, keep_order=lists
    ).plan
    tags = {"cells": {"physical": np.arange(80, dtype=np.int64) % 3}}
    further = {"cells": {"physical": np.array([[2, 1], [2, 5], [3, 5], [77, 1]])}}
    named = {"cells": {"physical": {1: "one"}}}
    others = {
        "tags": tags,
        "group_names": named,
        "further_groups": further if lists else {},
    }
    where = {"cells": np.random.default_rng(3).random((80, 2 + lists))}
    plan = replace(made, **others, coordinates=where)
    assert plan["flux"].ranges.waits.size > 2
    assert plan.group("cells", "one").size == 27 + 2 * lists
    plan.save(file)
    assert (plan["flux"].variant().elements is not None) == lists

    def ask(*names):
        words = [program, file, tmp_path / "all.bin", *names]
        ran = subprocess.run(words, capture_output=True, text=True)
        assert ran.stderr == ""
        return ran.returncode, ran.stdout

    names = ["flux", "K", "cells", "edges->cells"]
    assert ask(*names) == (0, "")
    expected = b"".join(a.tobytes() for a in all_arrays(plan))
    assert (tmp_path / "all.bin").read_bytes() == expected
    for i in range(4):
        for wrong in ("no", "x" * 2000):
            code, told = ask(*names[:i], wrong, *names[i + 1 :])
            assert (code, told.count("\n")) == (2, 1)
            assert ("too long" in told) == (len(wrong) > 2)
