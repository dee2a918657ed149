"""Signs of code that is packed for the writer: none of them stands in the product.

A sentence that a reader has to take apart costs more than the lines that it saves.
"""

import ast
import re
import tokenize
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TREES = (ROOT / "meshprep", ROOT / "runtime" / "meshprep_runtime", ROOT / "cli")
FILES = sorted(path for tree in TREES for path in tree.rglob("*.py"))
MOST_COLUMNS = 92
# Names that say nothing about what they hold. A life of a few lines needs no better one.
EMPTY_NAMES = {
    "found",
    "one",
    "own",
    "made",
    "given",
    "known",
    "kept",
    "wanted",
    "told",
    "place",
    "at",
    "here",
    "there",
    "some",
    "more",
    "every",
    "asked",
    "said",
    "these",
    "what",
    "how",
    "rest",
    "taken",
    "seen",
}
SHORT_LIFE = 4
# Private functions whose names say neither what they do nor by what.
VAGUE_FUNCTIONS = {
    "_read",
    "_write",
    "_names",
    "_numbers",
    "_pieces",
    "_joined",
    "_places",
    "_groups",
    "_cut",
    "_values",
    "_rows",
    "_points",
    "_lists",
    "_cells",
    "_blocks",
}


def is_packed(node):
    """``a, b = x, y`` of values that have nothing to do with each other.

    Swaps and rotations, whose values read the targets, and constants that are set together
    are one thought.
    """
    if not (isinstance(node, ast.Assign) and len(node.targets) == 1):
        return False
    target = node.targets[0]
    value = node.value
    if not (isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)):
        return False
    if all(isinstance(item, ast.Constant) for item in value.elts):
        return False
    assigned = {ast.unparse(item) for item in target.elts}
    read = {ast.unparse(inner) for item in value.elts for inner in ast.walk(item)}
    return not assigned & read


def is_spread(node):
    """``{**{"a": 1}}`` or ``f(*(a, b))``: a literal taken apart at once."""
    if isinstance(node, ast.Dict):
        entries = zip(node.keys, node.values, strict=True)
        return any(key is None and isinstance(value, ast.Dict) for key, value in entries)
    return isinstance(node, ast.Starred) and isinstance(node.value, ast.Tuple | ast.List)


def is_truth(node):
    """Whether an expression is a comparison, or cast to a truth value."""
    called = getattr(getattr(node, "func", None), "id", "")
    return isinstance(node, ast.Compare) or called in ("bool", "any", "all")


def is_times_a_condition(node):
    """``[x] * (a > b)`` or ``"text" * bool(a)`` in place of an ``if``."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        return False
    for display, factor in ((node.left, node.right), (node.right, node.left)):
        is_text = isinstance(display, ast.Constant) and isinstance(display.value, str)
        if (is_text or isinstance(display, ast.List)) and is_truth(factor):
            return True
    return False


def is_chosen_function(node):
    """``(f if a else g)(x)``."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.IfExp)


def is_loop_over_the_first(node):
    """``for x in wrong[:1]: raise ...`` in place of an ``if``."""
    if not (isinstance(node, ast.For) and isinstance(node.iter, ast.Subscript)):
        return False
    cut = node.iter.slice
    if not (isinstance(cut, ast.Slice) and isinstance(cut.upper, ast.Constant)):
        return False
    return cut.upper.value == 1 and any(isinstance(n, ast.Raise) for n in ast.walk(node))


SIGNS = [
    is_packed,
    is_spread,
    is_times_a_condition,
    is_chosen_function,
    is_loop_over_the_first,
]


@cache
def nodes_of_all_files():
    """The file and node of every piece of syntax."""
    return [
        (path, node)
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    ]


@pytest.mark.parametrize("sign", SIGNS, ids=lambda sign: sign.__name__)
def test_nothing_is_packed(sign):
    places = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, node in nodes_of_all_files()
        if sign(node)
    ]
    assert places == []


@pytest.mark.parametrize(
    ("sign", "code"),
    [
        (is_packed, "a, b = f(x), g(y)"),
        (is_spread, "d = {**{'a': 1}, 'b': 2}"),
        (is_spread, "f(*(a, b))"),
        (is_times_a_condition, "a = [x] * (n > 1)"),
        (is_times_a_condition, "a = ' more' * bool(n)"),
        (is_chosen_function, "(f if a else g)(x)"),
        (is_loop_over_the_first, "for i in wrong[:1]:\n    raise ValueError(i)"),
    ],
)
def test_the_signs_are_seen(sign, code):
    assert any(sign(node) for node in ast.walk(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "a, b = b, a",
        "low, high = 0, 1",
        "a, b = b, a + b",
        "a, b = f(x)",
        "x[i], c = c, x[i]",
    ],
)
def test_swaps_and_constants_are_one_thought(code):
    assert not any(is_packed(node) for node in ast.walk(ast.parse(code)))


def empty_names(tree):
    """Names of :data:`EMPTY_NAMES` that live longer than a few lines, with their line."""
    for scope in ast.walk(tree):
        if not isinstance(scope, ast.FunctionDef):
            continue
        used = defaultdict(list)
        for node in ast.walk(scope):
            if isinstance(node, ast.Name):
                used[node.id].append(node)
        for name in EMPTY_NAMES & set(used):
            lines = [node.lineno for node in used[name]]
            is_stored = any(isinstance(node.ctx, ast.Store) for node in used[name])
            if is_stored and max(lines) - min(lines) > SHORT_LIFE:
                yield min(lines), name


def test_names_that_live_long_say_what_they_hold():
    places = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in FILES
        for line, name in empty_names(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert places == []


def test_vague_names_of_functions_do_not_repeat():
    modules = defaultdict(list)
    for path in FILES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name in VAGUE_FUNCTIONS:
                modules[node.name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in modules.items() if len(paths) > 1} == {}


def test_lines_fit_beside_each_other():
    """Two files stand beside each other on a screen; the formatter cannot break comments."""
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in FILES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > MOST_COLUMNS
    ]
    assert long == []


def test_the_formatter_is_nowhere_switched_off():
    skips = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in FILES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"#\s*fmt:\s*(skip|off)", line)
    ]
    assert skips == []


def words_of_code(path):
    """Every identifier in the code of a file, and the words of its texts."""
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type == tokenize.NAME:
                yield token.string
            elif token.type == tokenize.STRING and not token.string.startswith('"""'):
                yield from re.findall(r"\w+", token.string)


def test_docstrings_name_what_exists():
    """Names between backticks in docstrings: of functions, classes, modules and arguments."""
    existing = {word for path in FILES for word in words_of_code(path)}
    for path in FILES:
        existing.update(path.with_suffix("").parts)
    stale = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                continue
            text = ast.get_docstring(node) or ""
            for name in re.findall(
                r"(?<![`\w])(?::\w+:)?`~?\.*([A-Za-z_][\w.]*)`(?!`)", text
            ):
                unknown = [word for word in name.split(".") if word not in existing]
                if unknown:
                    line = getattr(node, "lineno", 1)
                    stale.append(f"{path.relative_to(ROOT)}:{line}: {name}")
    assert stale == []
