"""Blocks from a file on the command line: those of another run, and what is said of wrong ones."""

import numpy as np
from pages import blocks

import meshprep
from meshprep.io.generate import generate
from meshprep.io.original_ids import read_vector

LOOP = "cells->nodes"


def test_blocks_of_one_run_are_those_of_another(tmp_path, cli):
    mesh = tmp_path / "grid.msh"
    given, again = tmp_path / "a.part", tmp_path / "b.part"
    meshprep.write(generate("box", nx=12, ny=8, type="quad", shuffle=True), mesh)
    common = ["--loop", LOOP, "--block-size", 16, "-q"]
    begin = ["reorder", mesh, "--blocks", given, "--no-measure", *common]
    assert cli(*begin)[0] == 0
    plan = ["plan", mesh, "--partition", f"file:{given}", "--blocks", again, *common]
    code, out, _ = cli(*plan, "--force", "--full")
    assert code == 0
    assert "file:a.part" in out
    pairs = np.unique(np.stack([read_vector(given), read_vector(again)]), axis=1)
    assert pairs.shape[1] == read_vector(given).max() + 1 == read_vector(again).max() + 1
    assert cli("check", tmp_path / "grid.plan.h5", "--mesh", mesh)[0] == 0

    # A smaller cap refuses them, and a repair keeps to it.
    plan[plan.index(16)] = 8
    code, _, err = cli(*plan, "--force")
    assert code == 2
    assert err.count("\n") == 1
    assert "more than the block size 8" in err
    assert cli(*plan, "--force", "--repair")[0] == 0
    assert np.bincount(read_vector(again)).max() <= 8


def test_the_commands_of_the_page_give_the_same_blocks_twice(tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    meshprep.write(generate("delaunay2d", cells=900, seed=3), "wing.msh")
    (page,) = blocks("concepts.md", "sh")
    lines = page.splitlines()
    for line in lines:
        assert cli(*line.split()[1:], "-q", "--force")[0] == 0
    given = read_vector(tmp_path / "wing.part")
    variant = meshprep.read("wing.plan.h5")["edges->cells"].variant()
    assert sorted(np.bincount(given)) == sorted(np.diff(variant.block_offset))
    assert lines[0].startswith("meshprep reorder")
