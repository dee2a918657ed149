"""The public API: every name on its page, every parameter described, every example run."""

import doctest
import enum
import importlib
import inspect
import re
import runpy
import sys
from pathlib import Path

import pytest

import meshprep
import meshprep_runtime
from meshprep_runtime import matrix

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^(\w[\w ]*)\n-+$", re.MULTILINE)


def exported():
    """Every exported object once, under the package it is documented in."""
    names = dict.fromkeys(meshprep.__all__, "meshprep")
    names |= dict.fromkeys(meshprep_runtime.__all__, "meshprep_runtime")
    names |= dict.fromkeys(matrix.__all__, "meshprep_runtime.matrix")
    return {
        f"{home}.{name}": getattr(importlib.import_module(home), name)
        for name, home in names.items()
    }


API = exported()


def callables():
    """Functions, classes and their public methods, by name."""
    out = {}
    for name, thing in API.items():
        if inspect.isfunction(thing) or not issubclass(thing, (enum.Enum, Exception)):
            out[name] = thing
        if inspect.isclass(thing):
            for key, member in vars(thing).items():
                inner = getattr(member, "__func__", member)
                if inspect.isfunction(inner) and not key.startswith("_"):
                    out[f"{name}.{key}"] = inner
    return out


CALLABLES = callables()


def sections(text):
    """The numpydoc sections of a docstring, by title."""
    parts = SECTION.split(text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def described(text):
    """The names under ``Parameters``; ``a, b : int`` describes two."""
    lines = re.findall(r"^(\S[^:\n]*?)(?: :.*)?$", text, re.MULTILINE)
    return {name.strip(" *") for line in lines for name in line.split(",")}


def names(parameter, thing):
    """What users write for a parameter: its name, or the names that a TypedDict gives."""
    if parameter.name in ("self", "cls"):
        return set()
    unpacked = re.search(r"\bUnpack\[(?:\w+\.)*(\w+)\]$", str(parameter.annotation))
    if unpacked is None:
        return {parameter.name}
    return set(vars(sys.modules[thing.__module__])[unpacked[1]].__annotations__)


def test_the_page_has_every_name():
    assert sorted(re.findall(r"^::: (\S+)$", PAGE, re.MULTILINE)) == sorted(API)


def test_the_overviews_have_the_first_sentences():
    with_tables = runpy.run_path(str(ROOT / ".ci" / "api.py"))["with_tables"]
    assert with_tables(PAGE) == PAGE, "python .ci/api.py brings them up to date"


# Functions whose signatures show the fields of Options.
SHOW_OPTIONS = {
    f"meshprep.{name}" for name in ("prepare", "reorder", "plan", "split", "sweep")
}


@pytest.mark.parametrize("name", CALLABLES)
def test_every_parameter_is_described(name):
    thing = CALLABLES[name]
    found = sections(inspect.getdoc(thing) or "")
    signature = inspect.signature(thing)
    taken = set().union(*(names(one, thing) for one in signature.parameters.values()))
    if name in SHOW_OPTIONS:
        # each has its line at Options
        taken = taken - set(vars(meshprep.Options())) | {"chosen"}
    # fields of a tuple are told as what it has
    kinds = ("Parameters", "Other Parameters", "Attributes")
    told = (described(found.get(kind, "")) for kind in kinds)
    assert set().union(*told) >= taken
    if inspect.isfunction(thing) and signature.return_annotation not in ("None", None):
        assert "Returns" in found


def test_what_describes_nothing_is_found():
    parameters = "Parameters\n----------\na, b : int\n*more\n    c : no"
    text = f"A line.\n\n{parameters}\n\nReturns\n-------\nint"
    assert described(sections(text)["Parameters"]) == {"a", "b", "more"}
    assert set(sections(text)) == {"Parameters", "Returns"}


@pytest.mark.parametrize("module", sorted({thing.__module__ for thing in API.values()}))
def test_examples_say_what_happens(module):
    failed, _ = doctest.testmod(importlib.import_module(module))
    assert failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    modules = {importlib.import_module(thing.__module__) for thing in API.values()}
    assert sum(len(t.examples) for m in modules for t in finder.find(m)) >= 20
