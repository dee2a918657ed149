"""Names of groups, values and files are any text: none of it steers a terminal or a page."""

import pytest

from meshprep_cli.main import main
from meshprep_runtime.errors import MeshprepError, printable

NAME = "x\x1b[2J\x07\u202ey"
SHOWN = r"x\u001b[2J\u0007\u202ey"
MESH = f"""$MeshFormat
2.2 0 8
$EndMeshFormat
$PhysicalNames
2
1 7 "{NAME}"
2 5 "inner"
$EndPhysicalNames
$Nodes
4
1 0 0 0
2 1 0 0
3 1 1 0
4 0 1 0
$EndNodes
$Elements
3
1 2 2 5 1 1 2 3
2 2 2 5 1 1 3 4
3 1 2 7 1 1 2
$EndElements
$NodeData
1
"{NAME}"
1
0
3
0
1
4
1 1
2 2
3 3
4 4
$EndNodeData
"""


@pytest.fixture
def mesh(tmp_path):
    path = tmp_path / f"{NAME}.msh"
    path.write_text(MESH)
    return path


@pytest.mark.parametrize("command", ["info", "info --full", "loops", "plan", "reorder"])
def test_nothing_that_a_file_holds_steers_the_terminal(cli, mesh, command):
    _, out, err = cli(*command.split()[:1], mesh, *command.split()[1:])
    assert (out + err).replace("\n", "").isprintable()
    assert SHOWN in out + err


def test_a_page_holds_printable_text(mesh, tmp_path):
    assert main(["plan", str(mesh), "-q"]) == 0
    page = tmp_path / "a.html"
    plan = mesh.with_name(f"{NAME}.plan.h5")
    assert main(["report", str(plan), "--html", str(page), "--mesh", str(mesh), "-q"]) == 0
    text = page.read_text(encoding="utf-8")
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert SHOWN in text


def test_names_are_texts_of_toml(mesh, tmp_path):
    out = tmp_path / "loops.toml"
    assert main(["loops", str(mesh), "-o", str(out), "-q"]) == 0
    assert f'dat = "{SHOWN}"' in out.read_text(encoding="utf-8")
    assert main(["plan", str(mesh), "--loops", str(out), "-q"]) == 0


def test_errors_are_printable():
    assert str(MeshprepError("a\x1b[31mb\udc80c")) == r"a\u001b[31mb\udc80c"
    assert printable("é\n日本 x") == "é\n日本 x"
    assert printable("\U000e0001") == r"\U000e0001"
