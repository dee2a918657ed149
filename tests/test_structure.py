"""The rules of the house that a program can check: rooms, directions, names, parameters."""

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {
    "meshprep_runtime": ROOT / "runtime",
    "meshprep": ROOT,
    "meshprep_cli": ROOT / "cli",
    "meshprep_cuda_check": ROOT / "cuda-check",
}
MOST_ENTRIES, MOST_PARAMETERS = 12, 8


@cache
def sources() -> dict[str, tuple[bool, list[ast.AST]]]:
    """Every module: whether it is a package, and all nodes of its tree."""
    found = {}
    for top, folder in FOLDERS.items():
        for path in sorted((folder / top).rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            package = parts[-1] == "__init__"
            text = path.read_text(encoding="utf-8")
            name = ".".join(parts[:-1] if package else parts)
            found[name] = package, [*ast.walk(ast.parse(text))]
    return found


def imported(name: str) -> Iterator[str]:
    """The modules that a module imports, lazily and for types included."""
    package, nodes = sources()[name]
    here = name.split(".") if package else name.split(".")[:-1]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in sources())
        elif isinstance(node, ast.ImportFrom):
            start = here[: len(here) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                # a package may give a function the name of the module that defines it
                target = inner if inner in sources() and not gives(base, alias.name) else base
                if target in sources() and target != name:
                    yield target


@cache
def gives(package: str, name: str) -> bool:
    """True where a package's ``__init__`` takes this name from one of its modules."""
    return package in sources() and any(
        isinstance(node, ast.ImportFrom) and node.module and name in {a.name for a in node.names}
        for node in sources()[package][1][0].body
    )


def parameters() -> Iterator[tuple[str, int]]:
    """Every function with its number of parameters, ``self`` apart."""
    for name, (_, nodes) in sources().items():
        for node in nodes:
            if isinstance(node, ast.FunctionDef):
                args = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                yield f"{name}.{node.name}", sum(a.arg not in ("self", "cls") for a in args)


@pytest.mark.parametrize("top", ["meshprep", "meshprep_runtime"])
def test_a_dozen_names_at_the_top(top):
    entries = {name.split(".")[1] for name in sources() if name.startswith(f"{top}.")}
    assert len(entries) <= MOST_ENTRIES, sorted(entries)


def test_imports_point_one_way():
    layer = {top: i for i, top in enumerate(FOLDERS)}
    wrong = [
        f"{name} imports {other}"
        for name in sources()
        for other in imported(name)
        if layer[other.split(".")[0]] > layer[name.split(".")[0]]
    ]
    assert not wrong


# Which rooms of meshprep may import which others of it.
ROOMS = {
    "kernels": "",
    "mesh": "kernels",
    "loops": "mesh io topology",
    "io": "kernels mesh loops topology",
    "topology": "kernels mesh",
    "reorder": "kernels mesh",
    "partition": "kernels loops mesh reorder",
    "colour": "kernels mesh",
    "metrics": "colour kernels loops",
    "distribute": "colour io kernels loops mesh partition pipeline reorder topology",
    "pipeline": "colour distribute io kernels loops mesh metrics partition reorder report topology",
    "report": "io kernels loops mesh metrics partition pipeline topology",
}


def test_rooms_import_what_they_may():
    wrong = set()
    for name in sources():
        for other in imported(name):
            (top, *here), (there, *rest) = name.split("."), other.split(".")
            if top == there == "meshprep" and here and rest and here[0] != rest[0]:
                wrong |= {f"{here[0]} imports {rest[0]}"} - {
                    f"{here[0]} imports {one}" for one in ROOMS[here[0]].split()
                }
    assert wrong == set()


def test_the_architecture_describes_every_room():
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    assert [room for room in ROOMS if f"\n- `{room}`: " not in page] == []


def test_no_module_imports_itself_by_way_of_others():
    rest = {name: set(imported(name)) for name in sources()}
    while free := [name for name, others in rest.items() if not others]:
        for name in free:
            del rest[name]
        for others in rest.values():
            others.difference_update(free)
    # What nothing in a circle imports is not part of one.
    while outside := set(rest) - {o for others in rest.values() for o in others}:
        for name in outside:
            del rest[name]
    assert not rest


# Which rooms and modules of partition/blocks may import which others of it.
BLOCKS = {
    "tuning": "",
    "bisect": "",
    "levels": "bisect tuning",
    "counts": "",
    "grouping": "levels",
    "grids": "bisect",
    "mend": "bisect grouping levels",
    "anneal": "bisect counts grouping levels mend tuning",
    "search": "anneal bisect grouping levels mend tuning",
    "partitioner": "anneal bisect grids levels mend search tuning",
}


def test_rooms_of_blocks_import_in_one_direction():
    top = "meshprep.partition.blocks."
    found = {room: set() for room in BLOCKS}
    for name in (n for n in sources() if n.startswith(top)):
        room = name.removeprefix(top).split(".")[0]
        others = {o.removeprefix(top).split(".")[0] for o in imported(name) if o.startswith(top)}
        found[room] |= others - {room}
    assert found == {room: set(others.split()) for room, others in BLOCKS.items()}


def test_every_class_has_a_name_of_its_own():
    where = defaultdict(list)
    for name, (_, nodes) in sources().items():
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                where[node.name].append(name)
    assert {c: names for c, names in where.items() if len(names) > 1} == {}


def test_lists_of_parameters_are_short():
    assert [name for name, count in parameters() if count > MOST_PARAMETERS] == []


# Rooms that decide about plans, and what has other last digits on other processors: BLAS, LAPACK,
# libm, and vector instructions that NumPy finds at run time. Matrices of integers are exact.
DECIDE = (
    *("partition", "colour", "distribute", "reorder", "mesh", "topology", "pipeline", "loops"),
    "io.generate",
)
ROUNDED = {
    "np": "linalg dot vdot inner matmul tensordot einsum exp expm1 log log1p log2 log10 power sin "
    "cos tan arcsin arccos arctan arctan2 hypot cbrt sinh cosh tanh float_power polyfit interp",
    "math": "exp expm1 log log1p log2 log10 pow sin cos tan asin acos atan atan2 hypot cbrt dist",
    "random": "normal standard_normal exponential uniform",
}


def rounded(node: ast.AST) -> bool:
    """Whether a node asks for what is rounded in a way of its own on some processors."""
    match node:
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return name == "dot" or name in ROUNDED.get(module, "").split()
        case ast.ImportFrom(module="math", names=names):
            return any(one.name in ROUNDED["math"].split() for one in names)
        case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=float()) | ast.BinOp(op=ast.Div())):
            return True
    return isinstance(node, ast.keyword) and node.arg == "fastmath"


def test_what_decides_about_plans_is_rounded_alike_everywhere():
    rooms = tuple(f"meshprep.{room}." for room in DECIDE)
    wrong = [
        f"{name}:{node.lineno}"
        for name, (_, nodes) in sources().items()
        for node in nodes
        if f"{name}.".startswith(rooms) and rounded(node)
    ]
    assert wrong == []
    for text in ("np.linalg.inv(a)", "math.log(x)", "x ** 0.5", "x ** (1 / 3)", "a.dot(b)"):
        assert any(map(rounded, ast.walk(ast.parse(text)))), text


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import meshprep_runtime", "h5py numba scipy meshprep_runtime.cuda"),
        (
            "from meshprep_runtime import ParLoop, Plan",
            (
                "cupy h5py meshprep_runtime.cuda meshprep_runtime.matrix "
                "meshprep_runtime.program.chains meshprep_runtime.plan.matrices "
                "meshprep_runtime.plan.parts"
            ),
        ),
        (
            "import meshprep_cli.main, meshprep.pipeline.workflow, meshprep.report",
            "meshprep.report.html meshprep.report.draw meshprep.report.sweep",
        ),
        ("import meshprep", "numpy numba h5py scipy meshprep_runtime.plan"),
        # all that help, completion and --version need
        (
            "import meshprep_cli.main, meshprep_cli.commands",
            "numpy numba h5py scipy rich jinja2 importlib.metadata",
        ),
    ],
)
def test_what_is_not_loaded_before_it_is_needed(code, absent):
    asked = f"{code}; import sys; print(*({{*{absent.split()!r}}} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


# Lines of every room, with its blank lines and docstrings. A feature makes room first, or changes
# its number in a commit of its own that says why.
BUDGETS = {
    "meshprep_runtime": 713,
    "meshprep_runtime/cpu": 2327,
    "meshprep_runtime/cuda": 3494,
    "meshprep_runtime/kernel": 1579,
    "meshprep_runtime/matrix": 2081,
    "meshprep_runtime/plan": 4996,
    "meshprep_runtime/program": 5605,
    "meshprep_runtime/tuning": 909,
    "meshprep_runtime/types": 843,
    "meshprep": 101,
    "meshprep/colour": 854,
    "meshprep/distribute": 4714,
    "meshprep/io": 14418,
    "meshprep/kernels": 829,
    "meshprep/loops": 768,
    "meshprep/mesh": 1611,
    "meshprep/metrics": 482,
    "meshprep/partition": 5303,
    "meshprep/pipeline": 2836,
    "meshprep/reorder": 1608,
    "meshprep/report": 3646,
    "meshprep/topology": 1288,
    "meshprep_cli": 1049,
    "meshprep_cli/commands": 1203,
    "meshprep_cuda_check": 872,
    "include": 3926,
}
HEADERS = ROOT / "include"
MOST_MODULES = 16


def lines_of_rooms() -> dict[str, int]:
    """By folder of each package, and of what C, C++ and Fortran include."""
    found: dict[str, int] = defaultdict(int)
    for top, folder in FOLDERS.items():
        for path in sorted([*(folder / top).rglob("*.py"), *(folder / top).rglob("*.hpp")]):
            inside = path.relative_to(folder).parts[:-1]
            found["/".join(inside[:2])] += len(path.read_text(encoding="utf-8").splitlines())
    for path in sorted([*HEADERS.rglob("*.h*"), *HEADERS.rglob("*.f90")]):
        found["include"] += len(path.read_text(encoding="utf-8").splitlines())
    return dict(found)


def test_rooms_keep_to_their_budgets():
    assert {r: n for r, n in lines_of_rooms().items() if n > BUDGETS.get(r, 0)} == {}


def test_folders_hold_what_can_be_looked_over():
    crowded = {}
    for top, folder in FOLDERS.items():
        for inside in (p for p in (folder / top).rglob("*") if p.is_dir()):
            modules = [
                p for p in inside.glob("*.py") if p.name not in ("__init__.py", "__main__.py")
            ]
            if len(modules) > MOST_MODULES:
                crowded[str(inside.relative_to(folder))] = len(modules)
    assert crowded == {}


def test_every_module_has_a_caller():
    used = {other for name in sources() for other in imported(name)}
    modules = {name for name, (package, _) in sources().items() if not package}
    assert modules - used == FOR_USERS


# A program, and what solvers and tests of kernels import themselves.
FOR_USERS = {
    "meshprep_cli.__main__",
    "meshprep_cuda_check.emulated",
}


def test_what_a_solver_loads():
    """Modules of the runtime, before the first call."""
    code = (
        "import sys; from meshprep_runtime import ParLoop, Plan; "
        "print(sum(m.startswith('meshprep_runtime') for m in sys.modules))"
    )
    loaded = int(subprocess.check_output([sys.executable, "-c", code], text=True))
    assert loaded <= MOST_LOADED


MOST_LOADED = 21
