"""What a person is told while waiting."""

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
        compile_twice()
        report(1, 2, "writing")
        compile_twice()
    compile_twice()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "meshprep: [1/2] reading",
        "meshprep: compiling kernels for 'reading': in first runs only, a minute or two in all",
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
                "[1/10] reading",
                "[9/10] writing wing-reordered.msh and reading it back",
                "[10/10] writing wing.plan.h5",
            ],
        ),
        (("plan", "wing.msh"), ["[9/9] writing wing.plan.h5"]),
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
