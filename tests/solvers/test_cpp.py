"""par_loop in C++: the sums of NumPy on processors, and on a GPU that g++ emulates under checks."""

import os
import subprocess
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import effort
import numpy as np
import pytest
from pages import steps

from airfoil import prepared_airfoil
from meshprep import LoopRequest, Options, prepare, read_requests
from meshprep.io.generate import generate
from meshprep.mesh import ElementSet, Mesh, SetMap
from meshprep.topology import derive
from meshprep_runtime.plan.ranges import ranges_for

ROOT = Path(__file__).parents[2]
HERE, EXAMPLE = Path(__file__).parent, ROOT / "examples" / "cpp"
INCLUDE = f"-I{ROOT / 'include' / 'meshprep'}"
STRICT = ["-Wall", "-Wextra", "-Werror", INCLUDE]
HOST = [*STRICT, "-std=c++17", "-fopenmp"]
CHECK = f"-I{ROOT / 'cuda-check' / 'meshprep_cuda_check'}"
# Of the blocks below some have as many elements, some more.
CHECKED = [*STRICT, "-std=c++20", "-DCHECKED", "-DMESHPREP_THREADS=32", CHECK]
THREADS = {"OMP_NUM_THREADS": "2"}
LOOPS = """\
[loop.mix]
over = "edges"
args = [
  { dat = "q",    map = "edges->cells", dim = 2, dtype = "i8", access = "read" },
  { dat = "w",    dim = 3, dtype = "i8", access = "read" },
  { dat = "res",  map = "edges->cells", dim = 5, dtype = "i8", access = "inc" },
  { dat = "seen", dtype = "i4", access = "write" },
  { global = "scale", dim = 2, dtype = "i8", access = "read" },
  { global = "total", dim = 2, dtype = "i8", access = "inc" },
  { global = "low",   dtype = "i8", access = "min" },
  { global = "high",  dtype = "i4", access = "max" },
]

[loop.push]
over = "edges"
args = [
  { dat = "q",   map = "edges->cells", index = [0], dim = 2, dtype = "i8", access = "read" },
  { dat = "sum", map = "edges->cells", index = [1], dtype = "f4", access = "inc" },
  { global = "worst", access = "max" },
]

[loop.largest]
over = "edges"
args = [
  { dat = "w",   dim = 3, dtype = "i8", access = "read" },
  { dat = "top", map = "edges->cells", dtype = "i8", access = "rw" },
]
"""


def run(*words):
    """What a program prints, and what it complains of."""
    ran = subprocess.run(
        [str(w) for w in words], capture_output=True, text=True, env=os.environ | THREADS
    )
    return ran.returncode, ran.stdout, ran.stderr


# Of a plan: why a loop is refused, or the groups of boundary edges.
LOOK = """\
#define MESHPREP_PLAN_IMPLEMENTATION
#include "meshprep.hpp"
#include <cstdio>
int main(int argc, char** argv) try {
  meshprep::Plan plan(argv[1]);
  if (argc == 2) {
    plan.loop("stiffness");
    return 0;
  }
  for (auto group : plan.tag("boundary_edges", argv[2])) std::printf("%d ", int(group));
  for (int i = 3; i < argc; i++)
    std::printf("%d ", int(plan.group("boundary_edges", argv[2], argv[i])));
  if (argc == 3)
    for (auto edge : plan.members("boundary_edges", argv[2], 4)) std::printf("%d ", int(edge));
} catch (const meshprep::Error& error) {
  std::puts(error.what());
}
"""


@pytest.fixture(scope="module")
def look(compile_program, tmp_path_factory):
    folder = tmp_path_factory.mktemp("look")
    (folder / "look.cpp").write_text(LOOK)
    flags = [*STRICT, "-std=c++17"]
    compile_program("g++", flags, folder / "look.cpp", folder / "look")
    return folder / "look"


@pytest.mark.slow
def test_loops_that_add_to_matrices_are_refused(look, tmp_path):
    words = {"mat": "K", "rows": "cells->nodes", "columns": "cells->nodes", "access": "inc"}
    request = LoopRequest("stiffness", {"over": "cells", "args": [words]}, "test")
    prepare(generate("delaunay2d", cells=50), [request]).plan.save(tmp_path / "a.plan.h5")
    code, out, _ = run(look, tmp_path / "a.plan.h5")
    assert (code, "par_loop has no matrices" in out) == (0, True)


@pytest.mark.slow
def test_groups_of_boundary_edges(look, tmp_path):
    plan = prepare(generate("delaunay2d", cells=50), ["boundary_edges->cells"]).plan
    plan.save(tmp_path / "a.plan.h5")
    wanted = plan.tags["boundary_edges"]["physical"].tolist()
    assert len(set(wanted)) > 1
    assert run(look, tmp_path / "a.plan.h5", "physical") == (
        0,
        "".join(f"{n} " for n in [*wanted, *plan.group("boundary_edges", "top")]),
        "",
    )
    _, out, _ = run(look, tmp_path / "a.plan.h5", "physical", "top", "left", "roof")
    assert out.endswith(" 4 1 roof: is not the name of a group\n")
    _, out, _ = run(look, tmp_path / "a.plan.h5", "marker")
    assert out.endswith("/tags/boundary_edges/marker: is not in the plan\n")
    shared = {"boundary_edges": {"physical": {1: "left", 3: "wall", 4: "wall"}}}
    replace(plan, group_names=shared).save(tmp_path / "b.plan.h5")
    _, out, _ = run(look, tmp_path / "b.plan.h5", "physical", "left", "wall")
    assert out.endswith(" 1 wall: is the name of several groups: compare their numbers\n")


@pytest.fixture(scope="module")
def on_host(compile_program, tmp_path_factory):
    program = tmp_path_factory.mktemp("host") / "loops"
    assert compile_program("g++", [*HOST, "-O0"], HERE / "loops.cpp", program) == ""
    return program


@pytest.fixture(scope="module")
def under_checks(compile_program, tmp_path_factory):
    program = tmp_path_factory.mktemp("checked") / "loops"
    assert compile_program("g++", CHECKED, HERE / "loops.cpp", program) == ""
    return program


@pytest.fixture(
    scope="module", params=effort.first(["ranges", "lists", "several elements a thread"])
)
def plan(tmp_path_factory, request):
    """A plan of several blocks and colours, and its file."""
    folder = tmp_path_factory.mktemp("plan")
    (folder / "loops.toml").write_text(LOOPS)
    mesh = derive(generate("delaunay2d", cells=600, seed=2), ["edges->cells"])
    lists = request.param == "lists"
    size = 90 if request.param.startswith("several") else 32
    options = Options(block_size=size, partition="blocks" if lists else None)
    made = prepare(
        mesh, read_requests(folder / "loops.toml"), options, keep_order=lists
    ).plan
    for name in ("mix", "push", "largest"):
        variant = made[name].variant()
        assert (variant.elements is not None) == lists
        assert variant.n_block_colours > 1
    made.save(folder / "loops.plan.h5")
    return made, folder / "loops.plan.h5"


def expected(plan):
    """The same loops with NumPy: ``numbers`` of loops.cpp, then sums without any order."""
    table = plan.maps["edges->cells"].table
    left, right = table.T
    cells, edges = plan.sizes["cells"], plan.sizes["edges"]
    q = (np.arange(2 * cells) * 37 % 101).reshape(-1, 2)
    w = (np.arange(3 * edges) * 53 % 997).reshape(-1, 3)
    res = (np.arange(5 * cells) % 7).reshape(-1, 5)
    many, third = np.arange(5) % 2, np.arange(5) % 3
    np.add.at(res, left, 3 * q[right][:, many] + w[:, third])
    np.subtract.at(res, right, 5 * q[left][:, many])
    sums, top = np.zeros(cells, int), np.zeros(cells, int)
    np.add.at(sums, right, q[left, 0])
    np.maximum.at(top, table, w[:, :1])
    total = [11 + w[:, 0].sum(), q[left, 1].sum()]
    low = min(400, (q[right, 0] - w[:, 1]).min())
    high = max(1000000, w[:, 2].max())
    # elements that do not write leave what was there
    seen = np.where(w[:, 0] % 3 != 0, q[left, 0] + w[:, 0], -7)
    ends = [*total, low, high, (q[left, 0] == 50).any()]
    return np.concatenate([res.ravel(), seen, sums, top, ends])


ON_HOST = ("sequential", "simple", "chunk", "openmp", "one thread")


@pytest.mark.parametrize(
    "how", effort.first([*ON_HOST, "hierarchical", "atomics"], len(ON_HOST))
)
def test_the_sums_of_numpy(how, plan, request, tmp_path):
    program = request.getfixturevalue("on_host" if how in ON_HOST else "under_checks")
    made, path = plan
    assert run(program, path, how, tmp_path / "result") == (0, "", "")
    np.testing.assert_array_equal(
        np.fromfile(tmp_path / "result", np.int64), expected(made)
    )


ROUNDED = """\
[loop.rounded]
over = "edges"
args = [
  { dat = "q",    map = "edges->cells", dim = 3, access = "read" },
  { dat = "w",    dim = 2, access = "read" },
  { dat = "sum",  map = "edges->cells", dim = 3, access = "inc" },
  { global = "total", access = "inc" },
  { global = "low",   access = "min" },
]

[loop.fractions]
over = "edges"
args = [
  { dat = "count",  map = "edges->cells", dim = 2, dtype = "i4", access = "inc" },
  { dat = "weight", map = "edges->cells", access = "inc" },
]

[loop.corners]
over = "edges"
args = [
  { dat = "c", map = "edges->cells", access = "inc" },
  { dat = "n", map = "edges->nodes", index = [1], access = "inc" },
]

[loop.apart]
over = "cells"
args = [
  { dat = "n", map = "cells->nodes", access = "read" },
  { dat = "c", access = "write" },
]
"""


@pytest.fixture(scope="module", params=["ranges", "lists"])
def large_plan(tmp_path_factory, request):
    """A plan of several ranges, and its file."""
    folder = tmp_path_factory.mktemp("large")
    (folder / "loops.toml").write_text(ROUNDED)
    maps = ["edges->cells", "edges->nodes"]
    mesh = derive(generate("delaunay2d", cells=20_000, seed=2), maps)
    lists = request.param == "lists"
    options = Options(block_size=96, partition="blocks" if lists else None)
    made = prepare(
        mesh, read_requests(folder / "loops.toml"), options, keep_order=lists
    ).plan
    assert (made["rounded"].variant().elements is not None) == lists
    made.save(folder / "large.plan.h5")
    return made, folder / "large.plan.h5"


# Without the optimiser; and as solvers are compiled, where products and sums are contracted if the
# compiler likes.
OPTIMISED = {
    "-O0": ["-O0"],
    "-O3": ["-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math"],
}


@pytest.fixture(scope="module")
def rounded(compile_program, tmp_path_factory):
    """The program of rounded.cpp by the optimisation of its compiler."""
    folder = tmp_path_factory.mktemp("rounded")
    for name, flags in OPTIMISED.items():
        said = compile_program("g++", [*HOST, *flags], HERE / "rounded.cpp", folder / name)
        assert said == ""
    return {name: folder / name for name in OPTIMISED}


@pytest.mark.slow
def test_forms_and_threads_give_the_same_bits(rounded, large_plan):
    for program in rounded.values():
        assert run(program, large_plan[1]) == (0, "", "")


def test_fractions_are_cut_off_where_a_plain_loop_cuts_them_off(on_host, large_plan):
    assert run(on_host, large_plan[1], "fractions") == (0, "", "")


@pytest.mark.slow
def test_ranges_are_those_of_python(on_host, large_plan):
    made, path = large_plan
    code, said, _ = run(on_host, path, "ranges", *made.loops)
    wanted = [ranges_for(loop) for loop in made.loops.values()]
    assert wanted[0].order.size > 1
    assert "others" not in said
    lines = [[int(n) for n in line.split()] for line in said.splitlines()]
    arrays = [a for r in wanted for a in (r.offset, r.order, r.wait_offset, r.waits)]
    assert (code, lines) == (0, [a.tolist() for a in arrays])


@pytest.mark.slow
def test_ranges_of_a_set_without_locality_grow(on_host, tmp_path):
    """Every point is in most ranges: so there are fewer, larger ones."""
    random = np.random.default_rng(1)
    table = random.integers(0, 3000, (300_000, 2)).astype(np.int32)
    sets = [ElementSet("edges", 300_000), ElementSet("cells", 3000)]
    mesh = Mesh(sets, [SetMap("edges->cells", "edges", "cells", table)])
    args = [{"dat": "r", "map": "edges->cells", "access": "inc"}]
    options = Options(method="none", partition="contiguous", block_size=256)
    made = prepare(mesh, {"f": {"over": "edges", "args": args}}, options).plan
    made.save(tmp_path / "a.plan.h5")
    wanted = ranges_for(made["f"])
    code, said, _ = run(on_host, tmp_path / "a.plan.h5", "ranges", "f")
    assert (code, wanted.order.size) == (0, 19)
    arrays = [wanted.offset, wanted.order, wanted.wait_offset, wanted.waits]
    assert [np.fromstring(line, int, sep=" ").tolist() for line in said.splitlines()] == [
        a.tolist() for a in arrays
    ]


@pytest.mark.slow
def test_colours_that_are_wrong_are_a_race(under_checks, plan, tmp_path):
    """The checks see what the kernels do: with one colour for all, threads and blocks meet."""
    made, _ = plan
    for part, said in (
        ("thread_colour", "inside a block"),
        ("block_order", "between blocks"),
    ):
        path = tmp_path / f"{part}.plan.h5"
        spoilt(made, part).save(path)
        code, _, complaint = run(under_checks, path, "hierarchical", tmp_path / "result")
        assert code == 2
        assert complaint.startswith(f"race {said}")


def spoilt(plan, part):
    """A plan whose loop "mix" has one colour of threads, or of blocks."""
    variant = plan["mix"].variant()
    if part == "thread_colour":
        changed = {
            "thread_colour": np.zeros_like(variant.thread_colour),
            "thread_colours": np.ones_like(variant.thread_colours),
        }
    else:
        blocks = np.arange(variant.n_blocks, dtype=variant.block_order.dtype)
        offset = np.array([0, variant.n_blocks], variant.block_colour_offset.dtype)
        changed = {"block_order": blocks, "block_colour_offset": offset}
    loop = plan["mix"]
    cut = replace(loop, variants={variant.name: replace(variant, **changed)})
    return replace(plan, loops={**plan.loops, "mix": cut})


LOOPS_OF_AIRFOIL = ("save_soln", "adt_calc", "res_calc", "bres_calc", "update")
WRONG = [
    "nothing is wrong",
    "/loops/none: is not in the plan",
    "loop 'largest': the number of arguments is '2', but '3' in the plan",
    "loop 'largest', argument 1: the name is 'q', but 'w' in the plan",
    "loop 'largest', argument 2 ('top'): the column is '1', but '0' in the plan",
    "loop 'largest', argument 2 ('top'): the map is 'cells->nodes', but 'edges->cells' in the plan",
    "loop 'largest', argument 2 ('top'): the access is 'inc', but 'rw' in the plan",
    "loop 'largest', argument 2 ('top'): the type is 'i4', but 'i8' in the plan",
    "loop 'largest', argument 2 ('top'): the dim is '2', but '1' in the plan",
    "loop 'largest', argument 2 ('top'): the number of values is '{few}', but '{all}' in the plan",
    "loop 'largest', argument 2 ('top'): the kind is 'global', but 'dat' in the plan",
    "loop 'largest': argument 'top' stands twice, with two arrays: give one",
    (
        "loop 'largest': arguments 'top' and 'w' share memory and 'top' is written: "
        "give separate arrays"
    ),
]


def test_what_does_not_fit_is_said_in_one_line(on_host, plan):
    made, path = plan
    cells = made.sizes["cells"]
    code, said, _ = run(on_host, path, "wrong")
    assert code == 0
    assert said.splitlines() == [line.format(all=cells, few=cells - 1) for line in WRONG]


def prepared_files(folder):
    """Airfoil's input, as the example's own script writes it."""
    spec = spec_from_file_location("prepare_airfoil", EXAMPLE / "prepare.py")
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    script.write(prepared_airfoil(1200, 128), str(folder / "small"))
    return folder / "small"


@pytest.mark.slow
def test_airfoil(compile_program, tmp_path):
    """The number that examples/airfoil.py gives on this mesh."""
    program, prefix = tmp_path / "airfoil", prepared_files(tmp_path)
    compile_program("g++", HOST, EXAMPLE / "airfoil.cpp", program)
    code, said, _ = run(program, prefix, 100)
    assert (code, said.splitlines()[0].split()) == (0, ["100", "1.44069e-04"])
    assert [line.split()[0] for line in said.splitlines()[1:]] == sorted(LOOPS_OF_AIRFOIL)
    assert "GPU" not in said
    prefix.with_suffix(".x.bin").write_bytes(b"short")
    code, _, complaint = run(program, prefix, 1)
    assert code == 2
    assert complaint.count("\n") == 1
    assert "small.x.bin: must hold" in complaint


@pytest.mark.slow
def test_airfoil_on_what_stands_for_a_gpu(compile_program, tmp_path):
    """The example as for nvcc, under checks, by fewer threads than blocks have elements."""
    program, prefix = tmp_path / "airfoil", prepared_files(tmp_path)
    flags = [*CHECKED, "-D__CUDACC__", "-include", str(HERE / "cuda_checked.hpp")]
    compile_program("g++", flags, EXAMPLE / "airfoil.cpp", program)
    code, said, complaint = run(program, prefix, 3, 3)
    assert (code, complaint) == (0, "")
    rms, *times = said.splitlines()
    # What examples/airfoil.py gives after three iterations.
    assert rms.split() == ["3", "5.27605e-03"]
    # The host calls and waits; here it does what the GPU would.
    words = [line.replace(",", "").split() for line in times]
    assert [w[0] for w in words] == sorted(LOOPS_OF_AIRFOIL)
    assert all(w[2:4] == ["s", w[3]] and w[4:] == ["s", "on", "the", "GPU"] for w in words)
    assert all(0 < float(w[3]) <= float(w[1]) + 1e-4 for w in words)


@pytest.mark.slow
@pytest.mark.parametrize("source", [HERE / "loops.cpp", EXAMPLE / "airfoil.cpp"])
def test_clang_takes_it(compile_program, source, tmp_path):
    flags = [*STRICT, "-std=c++17"]
    compile_program("clang++", flags, source, tmp_path / "program", optional=True)


# Compiles what a page shows, in the versions of C++ that solvers are written in.
PAGES = {"solvers/c.md": "author.cpp", "tutorials/finite-volume.md": "flow.cpp"}


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("page", PAGES)
def test_the_programs_of_the_pages_are_of_both_versions(
    compile_program, compiler, page, tmp_path
):
    source = tmp_path / PAGES[page]
    source.write_text(dict(steps(page))[PAGES[page]])
    # test_tutorials.py builds and runs them
    for version in ("-std=c++17", "-std=c++20"):
        flags = [*STRICT, version]
        optional = compiler != "g++"
        assert compile_program(compiler, flags, source, optional=optional) == ""


# Rows as par_loop hands them out: side by side, and with other elements between components.
ROWS = """\
#define MESHPREP_PLAN_IMPLEMENTATION
#include "meshprep.hpp"
#include <cstdio>
int main() {
  const double aos[3] = {1, 2, 3};
  double lanes[3 * meshprep::lanes] = {};
  const meshprep::Lane<double> row{lanes};
  meshprep::store(row, aos);
  const double more[2] = {10, 20};
  meshprep::add(row, more);
  const double* const pointer = aos;
  const auto of_pointer = meshprep::load<3>(pointer);
  const auto of_row = meshprep::load<2>(row);
  const double *one = of_pointer, *other = of_row;
  std::printf("%g %g %g %g %g %g", one[0], one[1], one[2], other[0], other[1], row[2]);
  for (double value : lanes) std::printf(" %g", value);
}
"""


@pytest.mark.slow
def test_rows_are_loaded_added_to_and_stored(compile_program, tmp_path):
    (tmp_path / "rows.cpp").write_text(ROWS)
    flags = [*STRICT, "-std=c++17", "-O0"]
    compile_program("g++", flags, tmp_path / "rows.cpp", tmp_path / "rows")
    numbers = [float(word) for word in run(tmp_path / "rows")[1].split()]
    assert numbers[:6] == [1, 2, 3, 11, 22, 3]
    lanes = np.array(numbers[6:]).reshape(3, -1)
    assert lanes[:, 0].tolist() == [11, 22, 3]
    assert not lanes[:, 1:].any()


@pytest.mark.slow
def test_nvcc_makes_kernels_without_spills(compile_program, tmp_path):
    flags = ["-x", "cu", "-std=c++17", "-arch=sm_90", "-Xptxas", "-v", "-c", INCLUDE]
    source = EXAMPLE / "airfoil.cpp"
    said = compile_program("nvcc", flags, source, tmp_path / "airfoil.o", optional=True)
    spills = said.count("0 bytes spill stores, 0 bytes spill loads")
    assert spills == said.count("spill stores") == 5
