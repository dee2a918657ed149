"""What a person is told while waiting."""

import re

import pytest
from numba.core import event

from meshprep_cli import console

COMPILE = "numba:compile"


def compile_twice():
    """As numba tells it, a kernel that calls another."""
    for _ in range(2):
        event.start_event(COMPILE)
        event.start_event(COMPILE)
        event.end_event(COMPILE)
        event.end_event(COMPILE)


def test_stages_have_a_line_and_say_when_they_compile(capsys):
    with console.progress(quiet=False) as report:
        report(0, 2, "reading")
        report(0.5, 2, "reading")
        report(0, 2, "reading")
        compile_twice()
        report(1, 2, "writing")
        compile_twice()
    compile_twice()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "meshprep: [1/2] reading",
        "meshprep: compiling kernels for 'reading': in first runs only, half a minute or so",
        "meshprep: [2/2] writing",
        "meshprep: compiling kernels for 'writing'",
    ]


def test_the_bar_says_when_a_stage_compiles(monkeypatch):
    def update(self, task, **values):
        shown.append(values["description"])

    shown = []
    monkeypatch.setattr("rich.progress.Progress.update", update)
    monkeypatch.setattr(console.sys, "stderr", Terminal())
    with console.progress(quiet=False) as report:
        report(1, 2, "writing")
        event.start_event(COMPILE)
        event.end_event(COMPILE)
    with console.waiting("reading wing.msh"):
        pass
    assert shown == ["writing", "writing: compiling kernels", "writing", "reading wing.msh"]


class Terminal:
    def isatty(self):
        return True

    def write(self, text):
        return len(text)

    def flush(self):
        pass


def test_quiet_is_quiet(capsys):
    with console.progress(quiet=True) as report:
        report(0, 2, "reading")
        compile_twice()
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("words", "stages"),
    [
        (
            ("reorder", "wing.msh"),
            [
                "[1/9] reading",
                "[8/9] writing wing-reordered.msh and reading it back",
                "[9/9] writing wing.plan.h5",
            ],
        ),
        (("plan", "wing.msh"), ["[8/8] writing wing.plan.h5"]),
        (
            ("generate", "mixed2d", "-o", "a.msh"),
            ["[1/2] generating mixed2d", "[2/2] writing a.msh and reading it back"],
        ),
    ],
)
def test_every_wait_has_a_name(cli, mesh_file, monkeypatch, words, stages):
    monkeypatch.chdir(mesh_file.parent)
    code, _, err = cli(*words)
    assert code == 0
    told = [line.removeprefix("meshprep: ") for line in err.splitlines()]
    assert [line for line in told if line in stages] == stages


SMALL = ("--block-size", "64")
LOOPS = ("--loop", "edges->cells", "--loop", "cells->nodes")


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (
            ("reorder", "wing.msh", *LOOPS, "--permutation", "p.txt", "--blocks", "b.txt"),
            11,
        ),
        (("reorder", "wing.msh", "--no-proof"), 8),
        (("plan", "wing.msh", *LOOPS, "--own-blocks", "--partition", "blocks"), 8),
        (("split", "wing.msh", *LOOPS, "--parts", "2,3"), 7),
        (("split", "wing.msh", "--parts", "2", "--no-proof"), 4),
        (("check", "made.parts.h5"), 2),
        (("check", "made.parts.h5", "--mesh", "wing.msh"), 3),
        (("check", "made.plan.h5"), 2),
        (("check", "made.plan.h5", "--mesh", "wing.msh"), 4),
        (("sweep", "wing.msh", "--partitioners", "metis", "--html", "sweep.html"), 8),
        (("report", "made.plan.h5", "--html", "one.html"), 1),
        (("report", "made.plan.h5", "--mesh", "wing.msh", "--html", "two.html"), 2),
    ],
)
def test_stages_are_numbered_one_after_the_other(cli, mesh_file, monkeypatch, words, count):
    monkeypatch.chdir(mesh_file.parent)
    if "made" in words[1]:
        made = (*LOOPS, *SMALL, "-q", "-o", words[1])
        more = ("split", "--parts", "2,3") if "parts" in words[1] else ("plan",)
        assert cli(more[0], "wing.msh", *more[1:], *made)[0] == 0
    code, _, err = cli(*words)
    assert code == 0, err
    told = re.findall(r"\[(\d+)/(\d+)\] (?!compiling)", err)
    assert told == [(str(1 + i), str(count)) for i in range(count)]
