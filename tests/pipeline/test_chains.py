"""Chains that are cut ahead, from loops.toml to the page of a report."""

import json
import tomllib
from dataclasses import replace

import pytest

from meshprep import io
from meshprep.io.generate import generate
from meshprep.loops.options import Options
from meshprep.pipeline.chains import plan_chains
from meshprep_cli.main import main
from meshprep_runtime import MeshprepError, Plan
from meshprep_runtime.program.chains.numbers import number
from meshprep_runtime.program.chains.owners import CACHE_BYTES, sizes_to_try, tile_in_cache

TOML = """
[loop.flux]
over = "edges"
args = [
  { dat = "t", map = "edges->cells", access = "read" },
  { dat = "r", map = "edges->cells", access = "inc" },
]

[loop.update]
over = "cells"
args = [
  { dat = "t", access = "rw" },
  { dat = "r", access = "rw" },
  { dat = "old", access = "write", full = true },
  { global = "peak", access = "max" },
]

[chain.step]
loops = ["flux", "update"]
repeat = 2
zero = ["r"]
dropped = ["old"]
tile = 50

[chain.ahead]
loops = ["flux", "update"]
repeat = 2
tile = 50
"""
pytestmark = pytest.mark.slow


def call(capsys, *words):
    code = main([str(w) for w in words])
    return code, *capsys.readouterr()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A mesh, its loops, and the plan with the chain."""
    place = tmp_path_factory.mktemp("chains")
    io.write(generate("delaunay2d", cells=400), place / "square.msh")
    (place / "heat.toml").write_text(TOML)
    words = ["reorder", place / "square.msh", "--loops", place / "heat.toml", "-q"]
    assert main([*map(str, words), "--block-size", "16"]) == 0
    return place


KERNELS = """
def flux(t1, t2, r1, r2):
    r1[0] += 0.1 * (t2[0] - t1[0])
    r2[0] += 0.1 * (t1[0] - t2[0])


def update(t, r, old, peak):
    old[0] = t[0]
    t[0] += r[0]
    r[0] = 0.0
    peak[0] = max(peak[0], t[0])
"""


@pytest.fixture(scope="module")
def plan(folder):
    return Plan.load(folder / "square.plan.h5")


def test_the_plan_has_the_chain(plan):
    chain = plan.chains["step"]
    cells = plan.sizes["cells"]
    assert [loop.name for loop in chain.tiles.loops] == ["flux", "update"] * 2
    assert chain.tile_size == 50
    assert cells / 50 <= chain.tiles.n_tiles <= cells / 25
    assert 1 < chain.tiles.redundancy(plan.sizes) < 2
    assert (chain.tiles.kept.dropped, chain.tiles.kept.zero) == ({"old"}, {"r"})
    assert plan.verify() == []
    assert plan.options["tile"] is None


def test_commands_show_it(folder, capsys):
    path = folder / "square.plan.h5"
    code, out, _ = call(capsys, "info", path, "--json")
    told, ahead = json.loads(out)["chains"]
    assert (code, told["chain"], told["loops"], told["tile size"]) == (0, "step", 4, 50)
    assert ahead["chain"] == "ahead"
    assert 1 < ahead["redundancy"] == told["redundancy"]
    for one in (told, ahead):
        assert one["bytes, tile by tile"] < one["bytes, loop by loop"]
    code, out, _ = call(capsys, "report", path, "--json")
    assert (code, json.loads(out)["plans"][0]["chains"]) == (0, [told, ahead])
    code, out, _ = call(capsys, "report", path, "--full")
    assert (code, "chains in tiles" in out) == (0, True)
    page = folder / "page.html"
    words = ("--html", page, "--mesh", folder / "square.msh", "-q")
    assert call(capsys, "report", path, *words)[0] == 0
    text = page.read_text()
    assert "chains in tiles" in text
    code, out, _ = call(capsys, "check", path, "--mesh", folder / "square.msh")
    assert (code, "right" in out) == (0, True)


def test_tiles_that_fit_into_cache(plan):
    chain = number(plan.chains["step"].tiles.loops, plan.sizes, plan.maps)
    cells, edges = plan.sizes["cells"], plan.sizes["edges"]
    fits = CACHE_BYTES * cells // (3 * 8 * cells + 4 * edges)
    assert tile_in_cache(chain) == fits
    # no size gives more than one tile
    assert cells < fits
    assert sizes_to_try(chain) == [cells]
    for n, times in ((100_000, [1]), (10_000_000, [1, 4, 16])):
        larger = replace(chain, sizes={**chain.sizes, "cells": n})
        fits = CACHE_BYTES * n // (3 * 8 * n + 4 * edges)
        assert sizes_to_try(larger) == [k * fits for k in times]


def test_what_is_refused_before_anything_is_written(folder, capsys):
    wrong = folder / "wrong.toml"
    wrong.write_text(TOML.replace('"flux", "update"]', '"fluxes", "update"]'))
    words = ["reorder", folder / "square.msh", "--loops", wrong, "-o", folder / "new.msh"]
    for more in ((), ("--dry-run",)):
        code, _, err = call(capsys, *words, "--plan", folder / "new.plan.h5", "-q", *more)
        assert (code, "chain 'step': there is no loop 'fluxes'" in err) == (2, True)
    # names are looked up before the mesh is read
    cut = folder / "cut.msh"
    cut.write_bytes((folder / "square.msh").read_bytes()[:200])
    code, _, err = call(capsys, "plan", cut, "--loops", wrong, "--plan", folder / "new.plan.h5")
    assert (code, "chain 'step': there is no loop 'fluxes'" in err) == (2, True)
    assert not (folder / "new.msh").exists()
    code, _, err = call(capsys, "plan", folder / "square.msh", "--tile", 0)
    assert code == 2


def test_a_dat_on_two_sets_is_refused(folder, capsys):
    loops = folder / "two.toml"
    loops.write_text(
        TOML.replace('{ dat = "t", access = "rw" }', '{ dat = "t", map = "cells->nodes" }')
    )
    words = ["plan", folder / "square.msh", "--loops", loops, "-o", folder / "two.plan.h5"]
    assert main([*map(str, words), "-q"]) == 2
    said = "chain 'step': dat 't' is on 'nodes' in loop 'update', and on 'cells' elsewhere"
    assert said in capsys.readouterr().err
    assert not (folder / "two.plan.h5").exists()


def test_a_chain_that_reads_what_it_drops(plan):
    from meshprep.loops.chains import _request

    words = tomllib.loads(TOML)["chain"]["step"] | {"dropped": ["t"]}
    with pytest.raises(MeshprepError, match="here: dat 't' cannot be dropped at the end of the"):
        plan_chains(plan, [_request("step", words, "here")])
    words = tomllib.loads(TOML)["chain"]["step"]
    (chain,) = plan_chains(plan, [_request("step", words | {"tile": None}, "x")], 100).values()
    assert chain.tile_size == 100
    (chain,) = plan_chains(plan, [_request("step", words | {"tile": None}, "x")]).values()
    assert chain.tile_size == tile_in_cache(number(chain.tiles.loops, plan.sizes, plan.maps))
    assert Options(tile=7).tile == 7
    with pytest.raises(MeshprepError, match="here: there is no loop 'gather': use flux, update"):
        plan_chains(plan, [_request("step", words | {"loops": ["flux", "gather"]}, "here")])


def test_options_that_are_gone_say_what_to_do(folder, capsys):
    code, _, err = call(capsys, "tune", folder / "square.plan.h5", "--chain", "step")
    said = "--chain was removed in 0.2: run the program with Program.chain(tile_size='auto')"
    assert (code, said in err) == (2, True), err
