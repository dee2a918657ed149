"""Matrices at the command line: made, proved, shown, tuned, and refused where they cannot be."""

import json
import re
import shutil

from meshprep_runtime import Plan

TOML = """
[loop.stiffness]
over = "cells"
args = [
  { dat = "x", map = "cells:nodes", dim = 2 },
  { mat = "K", rows = "cells:dofs2", columns = "cells:dofs2", access = "inc", fixed = ["left"] },
]
"""


def test_a_plan_with_a_matrix(cli, shows, fails, mesh_file):
    loops, plan = mesh_file.with_name("loops.toml"), mesh_file.with_name("wing.plan.h5")
    loops.write_text(TOML)
    assert cli("reorder", mesh_file, "--loops", loops, "-q")[0] == 0
    for mesh in (mesh_file, mesh_file.with_name("wing-reordered.msh")):
        assert "right and fits" in shows("check", plan, "--mesh", mesh, "-q")
    (shown,) = json.loads(cli("info", plan, "--json")[1])["matrices"]
    matrix = Plan.load(plan).matrices["K"]
    assert shown["rows"] == shown["columns"] == matrix.shape[0]
    assert shown["constrained"] == matrix.row_of.size - matrix.shape[0] > 0
    assert shown["nonzeros"] == matrix.columns.size
    assert "stiffness" in cli("info", plan)[1]
    stores = json.loads(cli("info", plan, "--json")[1])["stores"]
    names = ["csr", "ellpack", "lazy-ellpack", "local", "local, half"]
    assert [s["store"] for s in stores] == names
    assert stores[3]["bytes of assembly"] < stores[0]["bytes of assembly"]
    page = mesh_file.with_name("report.html")
    assert "bytes of a product" in shows("report", plan, "--html", page, "-q", "--full")
    assert page.read_text().count('id="plan1-matrix-k-') == 2
    other = plan.with_name("other.plan.h5")
    shutil.copy(plan, other)
    values = json.loads(cli("report", plan, other, "--json", "-q")[1])["plans"]
    assert [v["matrices"] for v in values] == [[shown]] * 2
    assert [v["stores"] for v in values] == [stores] * 2
    out = cli("report", plan, other, "-q", "--full")[1]
    assert re.search(r"^other\.plan\.h5 +K +dofs2 ", out, re.MULTILINE)
    err = fails("split", mesh_file, "--loops", loops, "--parts", 2, "-q")
    assert "matrix 'K' has fixed dofs, which a mesh in parts does not keep" in err
