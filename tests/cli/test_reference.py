"""What completes commands in a shell, and the page of all commands."""

import shutil
import subprocess

import pytest

from meshprep_cli.commands import commands
from meshprep_cli.reference import completion, page

TRY = """
COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _meshprep; printf '%s\\n' "${COMPREPLY[@]}"
"""


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
def test_bash_completes(cli, words, found):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no shell 'bash' on this machine")
    code, script, _ = cli("--completion", "bash")
    assert code == 0
    call = [bash, "-c", f"{script}\n{TRY}", "bash", "meshprep", *words]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    assert done.stdout.split() == found


def test_zsh_takes_what_bash_takes():
    bash, zsh = (completion(commands(), shell) for shell in ("bash", "zsh"))
    assert zsh == f"autoload -U +X bashcompinit && bashcompinit\n{bash}"


def test_fish_has_a_line_for_every_option():
    lines = completion(commands(), "fish").splitlines()
    of = [line for line in lines if "'__fish_seen_subcommand_from reorder'" in line]
    assert any(" -l target -x -a 'gpu cpu' -d " in line for line in of)
    assert any(" -s q -d " in line for line in of)
    assert sum("__fish_use_subcommand" in line for line in lines) == len(commands().commands)
    assert not [line for line in lines if line.replace("\\'", "").count("'") % 2]


def test_another_shell_is_refused(fails):
    assert "--completion 'ksh' is unknown: use bash, zsh, fish" in fails("--completion", "ksh")


@pytest.mark.parametrize("name", list(commands().commands))
def test_the_page_has_every_option(name):
    text = page(commands())
    part = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    for param in commands().commands[name].params:
        said = param.opts if param.param_type_name == "option" else [param.metavar]
        assert all(f"`{word}" in part for word in said), param.name
        assert (param.help or "").replace("|", "\\|").replace("<", "&lt;") in part
