"""Chains of loops.toml."""

import pytest

from meshprep.loops.chains import ChainCall, dats_of, read_chains
from meshprep.loops.requests import read_requests
from meshprep_runtime import Access, Arg, Loop, MeshprepError

TOML = """
[chain.step]
loops = ["flux", { loop = "edges:cells", dats = { old = "older" } }]
repeat = 2
zero = ["r"]
dropped = ["older"]
tile = 500

[loop.flux]
over = "cells"
args = [{ dat = "r", access = "inc" }]
"""
LOOPS = (
    Loop("flux", "cells", (Arg("r", Access.INC), Arg("g", Access.INC, is_global=True))),
    Loop("edges->cells", "cells", (Arg("r", Access.RW), Arg("old", Access.WRITE))),
)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "loops.toml"
    path.write_text(TOML)
    return path


def test_a_chain(file):
    (chain,) = read_chains(file)
    calls = (ChainCall("flux", {}), ChainCall("edges->cells", {"old": "older"}))
    assert (chain.name, chain.calls, chain.tile) == ("step", calls * 2, 500)
    assert (chain.dropped, chain.zero) == (("older",), ("r",))
    chain.check(dats_of(LOOPS))
    assert [r.name for r in read_requests(file)] == ["flux"]


def test_a_file_without_chains(file):
    file.write_text("[loop.one]\nover = 'cells'\nargs = []")
    assert read_chains(file) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('loops = ["flux"', 'sizes = ["flux"', 'needs loops = \\["NAME"'),
        ("repeat = 2", "repeat = 0", "repeat is 0, must be a whole number from 1"),
        ("repeat = 2", "repeat = 99999999999", "repeat is 99999999999, must be .* within"),
        ("repeat = 2", "repeat = 2147483647", "loops, at most 64 go together"),
        ("tile = 500", "tile = 3000000000", "tile is 3000000000, must be .* within"),
        ("tile = 500", "tile = true", "tile is True, must be a whole number from 1"),
        ("tile = 500", "size = 500", "unknown key 'size': use loops, repeat, dropped, zero, tile"),
        ("tile = 500", "skewed = true", "skewed was removed in 0.2: leave it out for tiles that"),
        ('zero = ["r"]', "zero = [1]", "must be a list of names of dats"),
        ('zero = ["r"]', 'zero = "r"', "must be a list of names of dats"),
        ('"flux", {', "7, {", "chain 'step', loop 1: must be \"NAME\""),
        ("{ loop =", "{ name =", "chain 'step', loop 2: must be \"NAME\""),
        ('loop = "edges:cells"', "loop = 3", "chain 'step', loop 2: must be \"NAME\""),
        ('{ old = "older" }', "3", "chain 'step', loop 2: must be \"NAME\""),
        ("[chain.step]", '[chain."a/b"]', "a chain's name must not hold '/'"),
        ("[chain.step]", "[[chain]]", r"write a table \[chain.NAME\] for each chain"),
    ],
)
def test_tables_that_are_refused(file, old, new, said):
    file.write_text(TOML.replace(old, new))
    with pytest.raises(MeshprepError, match=said):
        read_chains(file)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"flux", {', '"fluxes", {', "there is no loop 'fluxes': use flux, edges->cells"),
        ("{ old =", "{ g =", "loop 'edges->cells' has no dat 'g': use old, r"),
        ('zero = ["r"]', 'zero = ["old"]', "no loop has a dat 'old': use older, r"),
    ],
)
def test_chains_that_do_not_fit_the_loops(file, old, new, said):
    file.write_text(TOML.replace(old, new))
    (chain,) = read_chains(file)
    with pytest.raises(MeshprepError, match=said):
        chain.check(dats_of(LOOPS))
