"""``meshprep tune --stores``: what it prints, keeps and refuses."""

import json

from pages import blocks

from meshprep_runtime import Plan

STORES = ["csr", "ellpack", "lazy-ellpack", "local", "local, half"]
LOOPS = """
[loop.stiffness]
over = "cells"
args = [{ mat = "K", rows = "cells->nodes", columns = "cells->nodes", access = "inc" }]
[loop.flux]
over = "edges"
args = [{ dat = "value", map = "edges->nodes", access = "inc" }]
"""


def test_the_command(cli, shows, fails, mesh_file):
    loops, path = mesh_file.with_name("loops.toml"), mesh_file.with_name("wing.plan.h5")
    loops.write_text(LOOPS)
    assert cli("plan", mesh_file, "--loops", loops, "-q")[0] == 0
    words = ("tune", path, "--stores", "--runs", 1, "--threads", 1, "-q")
    out = shows(*words, "--loop", "stiffness")
    assert "products with matrix K, timed on" in out
    names = [line.split("  ")[0].strip() for line in out.splitlines()]
    assert sorted(set(names) & set(STORES)) == STORES
    # The commands of the pages.
    for page in ("solvers/tuning.md", "solvers/products.md"):
        (command,) = [block for block in blocks(page) if "--stores" in block]
        _, *asked = command.split()
        asked[asked.index("wing.plan.h5")] = path
        assert "products with matrix K" in shows(*asked, "--runs", 1, "-q")
    found = json.loads(shows(*words, "--loop", "stiffness", "--json"))
    assert sorted(trial["store"] for trial in found["trials"]) == STORES
    assert Plan.load(path).matrices["K"].tuned == []
    err = fails(*words, "--loop", "flux")
    assert "loop 'flux' adds to 0 matrices: --stores times the product" in err
    err = fails(*words, "--loop", "stiffness", "--kernel", "json:dumps")
    assert "--stores goes without --kernel" in err
