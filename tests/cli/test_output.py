"""Standard output holds results and nothing else, whatever libraries print."""

import json
import re
import subprocess
import sys

import pytest

NOISY = """
import ctypes, sys
import meshprep.pipeline.workflow
from meshprep_cli.main import main
real = meshprep.pipeline.workflow.run
def noisy(*words, **more):
    libc = ctypes.CDLL(None)
    libc.puts(b"a remark of a library")
    libc.fflush(None)
    return real(*words, **more)
meshprep.pipeline.workflow.run = noisy
sys.exit(main())
"""


def start(*words, **more):
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


@pytest.mark.slow
def test_what_a_library_in_c_prints_goes_to_stderr(mesh_file):
    process = start("-c", NOISY, "reorder", mesh_file, "--json", "-q")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0
    assert json.loads(out)["written"]
    assert err == "a remark of a library\n"


@pytest.mark.slow
@pytest.mark.parametrize("words", [("--help",), ("generate",)])
def test_a_reader_that_goes_away(words):
    process = start(
        "-c", "from meshprep_cli.main import main; raise SystemExit(main())", *words
    )
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")


@pytest.mark.slow
def test_without_standard_error(mesh_file):
    """As `2>&-` leaves it."""
    run = (
        "import os, sys; os.close(2); from meshprep_cli.main import main; sys.exit(main())"
    )
    process = start("-c", run, "info", mesh_file)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "cells" in out


def test_help_names_arguments_as_people_write_them(shows):
    usage = {
        "report": "report [OPTIONS] PLANS...",
        "generate": "generate [OPTIONS] [KIND]",
        "tune": "tune [OPTIONS] PLAN",
    }
    for command, wanted in usage.items():
        text = shows(command, "--help")
        assert wanted in text.splitlines()[0]
        # no braces, no types of Python
        assert not re.search(r"[{}]|<\w", text)
