"""The C example, built with the compiler of this machine: the numbers of the Python runtime."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from meshprep import Options, prepare, read_requests
from meshprep.distribute.job import SplitJob, run
from meshprep.distribute.steps import SplitOptions
from meshprep.io.generate import generate
from meshprep.pipeline import workflow
from meshprep.topology import derive
from meshprep_runtime import ParLoop
from meshprep_runtime.plan.parts import load_part, parts_table

FOLDER = Path(__file__).parents[2] / "examples" / "c"
LOOPS = """\
[loop.flux]
over = "edges"
args = [
  { dat = "t", map = "edges->cells", access = "read" },
  { dat = "r", map = "edges->cells", access = "inc" },
]
"""
STRICT = ["-O2", "-Wall", "-Wextra", "-Werror", "-fopenmp"]
BUILDS = {"C99": ("cc", "c"), "C++11": ("c++", "c++")}


@pytest.fixture
def build(compile_program):
    """A function that compiles the example into a folder."""

    def build(language, folder, example="heat"):
        compiler, kind = BUILDS[language]
        flags, program = ["-x", kind, f"-std={language.lower()}", *STRICT], folder / example
        checked = language == "C99"
        compile_program(compiler, flags, FOLDER / f"{example}.c", program, checked=checked)
        return folder / example

    return build


@pytest.fixture(scope="module", params=["ranges", "lists"])
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


@pytest.mark.parametrize("language", BUILDS)
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
        "another version": re.sub(rb"plan \d\n", b"plan 4\n", whole, count=1),
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
def test_no_other_blocks_are_taken_for_those_that_are_named(compile_program, plan, tmp_path):
    made, path = plan
    source, program = tmp_path / "variant.c", tmp_path / "variant"
    source.write_text(VARIANT)
    compile_program("cc", ["-std=c99", *STRICT, f"-I{FOLDER}"], source, program)

    def told(variant):
        return subprocess.run([program, path, variant], capture_output=True, text=True).stdout

    assert told(made["flux"].default) == "read\n"
    assert "there are no such blocks" in told("s7")
    assert "there are no such blocks" in told("")
    assert "a name in it is too long" in told("s" * 2000)


@pytest.mark.parametrize("plan", ["ranges"], indirect=True)
def test_the_makefile_builds_the_example(build, plan, tmp_path):
    build("C99", tmp_path)
    sources = (f"{name}.c" for name in ("heat", "part", "stiffness"))
    for name in (*sources, "meshprep_plan.h", "meshprep_parts.h", "Makefile"):
        shutil.copy(FOLDER / name, tmp_path)
    (tmp_path / "heat").unlink()
    subprocess.run(["make", "-C", str(tmp_path)], check=True, capture_output=True)
    ran = subprocess.run([str(tmp_path / "heat"), str(plan[1]), "1"], capture_output=True)
    assert ran.returncode == 0


MATRIX = """\
[loop.stiffness]
over = "cells"
args = [
  { dat = "x", map = "cells->nodes", dim = 2 },
  { mat = "K", rows = "cells->dofs1", columns = "cells->dofs1", access = "inc", fixed = ["left"] },
]
"""


@pytest.mark.parametrize("language", BUILDS)
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
    assert (int(told["rows"]), int(told["nonzeros"])) == (matrix.shape[0], matrix.columns.size)
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


def told_of(part, name):
    """What the example prints of a set."""
    one = part.sets[name]
    runs = ("first", one.owned_start), ("core", one.core), ("owned", one.owned)
    lines = [" ".join(f"{k} {v}" for k, v in (*runs, ("exec", one.exec), ("halo", one.halo)))]
    for kind in ("send_exec", "send_halo", "receive_exec", "receive_halo"):
        messages = getattr(one, kind)
        rows = messages.rows
        if kind.startswith("receive") and rows.size:
            rows = rows - rows[0]
        for i, other in enumerate(messages.parts):
            these = rows[messages.offset[i] : messages.offset[i + 1]]
            lines.append(f"{kind} {other} rows {these.size} sum {these.sum()}")
    return lines


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
    int64_t tagged = 0;
    mp_plan *plan = mp_open(words[1], error);
    mp_set *s = mp_read_set(plan, set, error);
    mp_map *m = mp_read_map(plan, map, error);
    int64_t *tag = mp_read_tag(plan, set, "physical", &tagged, error);
    mp_loop *l = mp_read_loop(plan, loop, NULL, error);
    mp_staging *g = mp_read_staging(plan, loop, NULL, set, error);
    uint16_t *local = mp_read_local(plan, loop, NULL, map, error);
    mp_matrix *k = mp_read_matrix(plan, matrix, error);
    mp_places *p = mp_read_places(plan, matrix, "stiffness", error);
    char *text = mp_read_text(plan, "loops", loop, "default", error);
    int all = n == 7 && s && m && tag && l && g && local && k && p && text;
    if (all && (out = fopen(words[2], "wb")) != NULL) {
        put(s->new_to_old, s->size, 4), put(s->old_to_new, s->size, 4);
        put(m->table, m->size * m->arity, 4), put(tag, tagged, 8);
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
    free(tag), free(local), free(text);
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
        *(v.block_offset, v.block_colour_offset, v.block_order.astype("i4")),
        *(v.thread_colour.astype("u2"), v.thread_colours.astype("i4"), lists.astype("i8")),
        *(staging.point_offset, staging.points.astype("i4"), staging.exclusive.astype("u1")),
        *(v.local["edges->cells"].astype("u2"), matrix.row_ptr, matrix.columns),
        *(matrix.row_of, matrix.column_of, matrix.place["stiffness"].astype("i4")),
        np.frombuffer(loop.default.encode(), "u1"),
    ]


@pytest.mark.parametrize("lists", [False, True], ids=["ranges", "lists"])
def test_all_that_a_plan_holds(compile_program, tmp_path, lists):
    """Nothing is lost, and nothing read or freed that is not there, whatever is missing."""
    source, program, file = (tmp_path / name for name in ("all.c", "all", "all.plan.h5"))
    source.write_text(EVERYTHING)
    flags = ["-std=c99", *STRICT, f"-I{FOLDER}"]
    compile_program("cc", flags, source, program, checked=True)
    (tmp_path / "all.toml").write_text(LOOPS + MATRIX)
    mesh = derive(generate("delaunay2d", cells=80, seed=2), ["edges->cells"])
    options = Options(block_size=16, partition="metis" if lists else None)
    made = prepare(mesh, read_requests(tmp_path / "all.toml"), options, keep_order=lists).plan
    tags = {"cells": {"physical": np.arange(80, dtype=np.int64) % 3}}
    plan = replace(made, tags=tags)
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


def test_copies_in_c_by_mpi(compile_program, tmp_path):
    """Every copy gets the number that the file gives it, from the rank that owns it."""
    folder = Path(sys.executable).parent
    compiler, launcher = (
        shutil.which(name, path=f"{folder}{os.pathsep}{os.environ['PATH']}")
        for name in ("mpicc", "mpiexec.hydra")
    )
    if compiler is None or launcher is None:
        pytest.skip("no MPICH on this machine")
    program = tmp_path / "halo"
    compile_program(compiler, ["-std=c99", *STRICT], FOLDER / "halo.c", program, optional=True)
    mesh, file = tmp_path / "square.msh", tmp_path / "square.parts.h5"
    workflow.generate("delaunay2d", mesh, values={"cells": 300})
    (tmp_path / "heat.toml").write_text(LOOPS)
    run(SplitJob(mesh, file, (3,), read_requests(tmp_path / "heat.toml")))
    assert all(load_part(file, 3, p).sets["cells"].copies.size for p in range(3))

    def ask(ranks):
        words = [launcher, "-n", str(ranks), program, file, "cells"]
        return subprocess.run(words, capture_output=True, text=True, timeout=60)

    assert ask(3).stdout == "3 ranks: 0 copies are wrong\n"
    assert "is not split into so many parts" in ask(2).stderr


@pytest.mark.parametrize("language", BUILDS)
def test_a_part_in_c(build, language, tmp_path):
    program = build(language, tmp_path, "part")
    mesh, file = tmp_path / "square.msh", tmp_path / "square.parts.h5"
    workflow.generate("delaunay2d", mesh, values={"cells": 300})
    # names are escaped in the list of the arrays
    more = r'[loop."fl\u00fcss \"\\\U0001F600\""]'
    (tmp_path / "heat.toml").write_text(LOOPS + LOOPS.replace("[loop.flux]", more))
    requests = read_requests(tmp_path / "heat.toml")
    run(SplitJob(mesh, file, (3, 5), requests, SplitOptions(), Options(block_size=16)))

    def ask(path, *words):
        return subprocess.run([program, path, *words], capture_output=True, text=True)

    for part in range(3):
        for name in ("cells", "edges"):
            done = ask(file, "3", str(part), name)
            assert done.stdout.splitlines() == told_of(load_part(file, 3, part), name)
    whole, table = file.read_bytes(), parts_table(file, 5)
    (at, size), other = table.extent(1, 2), table.extent(1, 3)[0]
    bad = tmp_path / "bad.parts.h5"
    cases = {
        (at + size - 1, "2"): "damaged: the part does not match its checksum",
        (600, "2"): "damaged: its tables do not match",
        (0, "2"): "no parts",
        # white space for the end of a line, and behind the text
        (16, "2"): "damaged: its tables do not match",
        (300, "2"): "damaged: its tables do not match",
        (other, "5"): "is not split into so many parts, or has no such part",
    }
    for (flipped, part), message in cases.items():
        bad.write_bytes(whole[:flipped] + bytes([whole[flipped] ^ 1]) + whole[flipped + 1 :])
        done = ask(bad, "5", part, "cells")
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr
    for left in (len(whole) - 1, len(whole) // 2, 700):
        bad.write_bytes(whole[:left])
        done = ask(bad, "5", "2", "cells")
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    # what is another part's is not read
    bad.write_bytes(whole[:other] + bytes([whole[other] ^ 1]) + whole[other + 1 :])
    assert ask(bad, "5", "2", "cells").returncode == 0
    assert "is not in the part" in ask(file, "3", "0", "sides").stderr
