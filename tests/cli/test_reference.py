"""What completes commands in a shell, and the page of all commands."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from meshprep_cli.commands import commands

page = runpy.run_path(str(Path(__file__).parents[2] / ".ci" / "commands.py"))["page"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["re"], ["reorder", "report", "restore"]),
        (["warm"], ["warm-up"]),
        (["reorder", "--new"], ["--new-to-old"]),
        (["reorder", "a.msh", "--method", "r"], ["rcm"]),
        (["split", "a.msh", "--target", ""], ["gpu", "cpu"]),
        (["check", "--meth"], []),
        (["reorder", "a"], []),
    ],
)
def test_bash_completes(words, found):
    words = ["meshprep", *words]
    told = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    environment = os.environ | told | {"_MESHPREP_COMPLETE": "complete_bash"}
    call = [sys.executable, "-m", "meshprep_cli"]
    done = subprocess.run(call, capture_output=True, text=True, env=environment)
    assert done.stdout.split() == found


@pytest.mark.parametrize("name", list(commands().commands))
def test_the_page_has_every_option(name):
    text = page(commands())
    part = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    for param in commands().commands[name].params:
        said = param.opts if param.param_type_name == "option" else [param.metavar]
        assert all(f"`{word}" in part for word in said), param.name
        assert (param.help or "").replace("|", "\\|").replace("<", "&lt;") in part
