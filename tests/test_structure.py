"""The rules of the house that a program can check: rooms, directions, names, parameters."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from meshprep.registry.formats import FORMATS
from meshprep.registry.orders import ORDERS
from meshprep.registry.partitioners import PARTITIONERS

ROOT = Path(__file__).parents[1]
FOLDERS = {
    "meshprep_runtime": ROOT / "runtime",
    "meshprep": ROOT,
    "meshprep_cli": ROOT / "cli",
    "meshprep_cuda_check": ROOT / "cuda-check",
}
MOST_ENTRIES = 16
MOST_MODULES = 16


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
                target = (
                    inner if inner in sources() and not gives(base, alias.name) else base
                )
                if target in sources() and target != name:
                    yield target


@cache
def gives(package: str, name: str) -> bool:
    """True where a package's ``__init__`` takes this name from one of its modules."""
    return package in sources() and any(
        isinstance(node, ast.ImportFrom)
        and node.module
        and name in {a.name for a in node.names}
        for node in sources()[package][1][0].body
    )


@pytest.mark.parametrize("top", ["meshprep", "meshprep_runtime"])
def test_few_names_at_the_top(top):
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


# Which rooms of meshprep may import which others of it: those further up in this table alone.
ROOMS = {
    "registry": "",
    "kernels": "",
    "mesh": "kernels",
    "topology": "kernels mesh",
    "loops": "kernels mesh registry topology",
    "io": "kernels loops mesh registry topology",
    "ordering": "kernels mesh registry",
    "partitioning": "kernels mesh registry ordering",
    "colouring": "kernels mesh",
    "metrics": "colouring kernels loops",
    "staging": (
        "colouring io kernels loops mesh metrics partitioning ordering registry topology"
    ),
    "distribute": (
        "colouring io kernels loops mesh partitioning ordering registry staging topology"
    ),
    "arrays": "colouring distribute kernels loops mesh ordering partitioning registry",
    "pipeline": (
        "colouring distribute io kernels loops mesh metrics partitioning registry ordering "
        "staging topology"
    ),
    "reporting": "colouring io kernels loops mesh metrics partitioning pipeline topology",
    "commands": "distribute io loops mesh pipeline reporting",
}


def rooms_imported() -> dict[str, set[str]]:
    """The rooms of meshprep that each room imports."""
    rooms = defaultdict(set)
    for name in sources():
        for other in imported(name):
            (top, *here), (there, *rest) = name.split("."), other.split(".")
            if top == there == "meshprep" and here and rest and here[0] != rest[0]:
                rooms[here[0]].add(rest[0])
    return rooms


def test_rooms_import_what_they_may():
    wrong = set()
    for room, others in rooms_imported().items():
        for other in others - set(ROOMS[room].split()):
            wrong.add(f"{room} imports {other}")
    assert wrong == set()


def test_the_rooms_stand_on_each_other_without_circles():
    names = list(ROOMS)
    for room, others in ROOMS.items():
        above = names[: names.index(room)]
        assert set(others.split()) <= set(above), room


def test_only_commands_reports_and_the_front_door_know_the_pipeline():
    known = set()
    for name in sources():
        if any(other.startswith("meshprep.pipeline") for other in imported(name)):
            known.add(".".join(name.split(".")[:2]))
    assert {name for name in known if not name.startswith("meshprep_cli")} == {
        "meshprep",
        "meshprep.commands",
        "meshprep.pipeline",
        "meshprep.reporting",
    }


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


def test_every_class_has_a_name_of_its_own():
    where = defaultdict(list)
    for name, (_, nodes) in sources().items():
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                where[node.name].append(name)
    assert {c: names for c, names in where.items() if len(names) > 1} == {}


# Rooms that decide about plans, and what has other last digits on other processors: BLAS, LAPACK,
# libm, and vector instructions that NumPy finds at run time. Matrices of integers are exact.
DECIDE = (
    *(
        "partitioning",
        "colouring",
        "distribute",
        "ordering",
        "mesh",
        "topology",
        "staging",
        "pipeline",
        "loops",
    ),
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
        case ast.BinOp(
            op=ast.Pow(), right=ast.Constant(value=float()) | ast.BinOp(op=ast.Div())
        ):
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


# The one package that may know the inside of numba; and what is inside: modules, as imports or in
# texts, and attributes of its objects.
DOORS = "meshprep_runtime._numba"
INSIDE = re.compile(
    r"\b(numba\.(core|np|extending|cuda|experimental|config)|llvmlite\.\w+)\b"
)
ATTRIBUTES = (
    "_compile_for_args _getvalue _insert active_code_library cache_hits cache_misses "
    "call_internal_no_propagate entry_point fndesc get_abi_sizeof get_constant "
    "get_data_type get_dummy_value targetoptions"
)


def inside_of_numba(node: ast.AST) -> list[str]:
    """What a node takes from the inside of numba, or of llvmlite, on which it stands."""
    match node:
        case ast.Import(names=names):
            named = [f"{alias.name}.itself" for alias in names]
        case ast.ImportFrom(module=module, level=0, names=names):
            named = [f"{module}.{alias.name}" for alias in names]
        case ast.Constant(value=str(text)):
            named = [text]
        case ast.Attribute(value=owner, attr="config") if "numba" in ast.unparse(owner):
            return ["config"]
        case ast.Attribute(attr=name):
            return [name] if name in ATTRIBUTES.split() else []
        case _:
            return []
    return [name for name in named if INSIDE.search(name)]


def test_one_package_knows_the_inside_of_numba():
    """Whoever updates numba reads one place."""
    wrong = [
        f"{name}:{node.lineno}: {inner}"
        for name, (_, nodes) in sources().items()
        for node in nodes
        for inner in inside_of_numba(node)
        if not f"{name}.".startswith(f"{DOORS}.")
    ]
    assert wrong == []


def test_every_door_says_what_it_is_for():
    doors = {
        f"{name}.{node.name}": ast.get_docstring(node)
        for name, (package, nodes) in sources().items()
        if name.startswith(f"{DOORS}.")
        for node in nodes[0].body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
    assert len(doors) > 30
    assert [door for door, text in doors.items() if not text] == []


@pytest.mark.parametrize(
    ("code", "inside"),
    [
        ("from numba.core import event", True),
        ("from numba import cuda", True),
        ("import numba.np.arrayobj", True),
        ("from llvmlite import ir", True),
        ('import_module("numba.core.cgutils")', True),
        ("dispatcher._insert = print", True),
        ("numba.config.CACHE_DIR", True),
        ("import_numba().config.CACHE_DIR", True),
        ("jax.config.update(1)", False),
        ("from numba import njit, prange, types", False),
        ("numba.get_num_threads()", False),
        ('versions("numba", "llvmlite")', False),
    ],
)
def test_the_inside_of_numba_is_seen(code, inside):
    assert any(map(inside_of_numba, ast.walk(ast.parse(code)))) == inside


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        (
            "import meshprep_runtime",
            "h5py numba scipy meshprep_runtime.cuda meshprep_runtime._numba",
        ),
        (
            "from meshprep_runtime._numba import compiling, installed, messages",
            "numba llvmlite",
        ),
        ("import meshprep_runtime.cpu.build", "meshprep_runtime._numba.device"),
        (
            "from meshprep_runtime import ParLoop, Plan",
            (
                "cupy h5py meshprep_runtime.cuda meshprep_runtime.matrix "
                "meshprep_runtime.program.chains meshprep_runtime.plan.matrices "
                "meshprep_runtime.plan.parts"
            ),
        ),
        (
            "import meshprep_cli.main, meshprep.pipeline.workflow, meshprep.reporting",
            (
                "meshprep.reporting.html meshprep.reporting.draw meshprep.reporting.sweep "
                "matplotlib PIL"
            ),
        ),
        ("import meshprep.reporting.html.page, meshprep.reporting.files", "matplotlib PIL"),
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
    done = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_meshio_is_used_in_one_module_by_its_public_names():
    users = set()
    private = []
    for name, (_, nodes) in sources().items():
        for node in nodes:
            match node:
                case ast.Import(names=names) if "meshio" in {a.name for a in names}:
                    users.add(name)
                case ast.ImportFrom(module=str(module), level=0):
                    if module.partition(".")[0] == "meshio":
                        private.append(f"{name}: from {module} import ...")
                case ast.Attribute(value=ast.Name(id="meshio"), attr=attribute):
                    if attribute.startswith("_"):
                        private.append(f"{name}: meshio.{attribute}")
    assert users == {"meshprep.io.meshio_formats"}
    assert private == []


def test_folders_hold_what_can_be_looked_over():
    crowded = {}
    for top, folder in FOLDERS.items():
        for inside in (p for p in (folder / top).rglob("*") if p.is_dir()):
            modules = [
                p
                for p in inside.glob("*.py")
                if p.name not in ("__init__.py", "__main__.py")
            ]
            if len(modules) > MOST_MODULES:
                crowded[str(inside.relative_to(folder))] = len(modules)
    assert crowded == {}


def test_every_module_has_a_caller():
    used = {other for name in sources() for other in imported(name)}
    # orders, partitioners and formats are imported by the names that the registries hold
    for table in (ORDERS, PARTITIONERS, FORMATS):
        used.update(entry.function.partition(":")[0] for entry in table.entries)
    modules = {name for name, (package, _) in sources().items() if not package}
    assert modules - used == FOR_USERS


# A program, and what solvers and tests of kernels import themselves.
FOR_USERS = {
    # PyVista imports it, by its entry point.
    "meshprep.arrays.pyvista_accessor",
    "meshprep_cli.__main__",
    "meshprep_cuda_check.emulated",
}
