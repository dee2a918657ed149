"""The Python on the page about chains, run as it stands."""

import re
import tomllib

import pytest
from pages import DOCS, blocks

from meshprep_runtime.types.loops import loop_from_dict


@pytest.mark.long
def test_the_program_of_the_page(slow, tmp_path, monkeypatch, capsys):
    (toml,) = blocks("solvers/chains.md", "toml")
    described = tomllib.loads(toml)["loop"]
    loops = [loop_from_dict(name, words, "heat.toml") for name, words in described.items()]
    assert [a.full for a in loops[1].args] == [False, False, True, False]
    grid = slow.quads(36, 32)
    slow.plan(grid.sizes, grid.tables, loops, (128,)).save(tmp_path / "square.plan.h5")
    monkeypatch.chdir(tmp_path)
    scope = {}
    exec("\n".join(blocks("solvers/chains.md", "python")), scope)
    told = capsys.readouterr().out.splitlines()
    assert 0 < float(told[0]) < 1
    assert re.fullmatch(r"peak 0\.9\d{5}", told[1])
    assert told[2] == "True True"
    said = re.findall(
        r"`(\d [a-z]+ \(.*?\) \d+)`", (DOCS / "solvers/chains.md").read_text()
    )
    assert told[3:] == said
