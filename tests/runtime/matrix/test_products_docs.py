"""What the page about matrices says of products and solvers, run as it stands."""

import re
from pathlib import Path

import numpy as np
import pytest
from matrices import ITERATIONS

import poisson

DOCS = Path(__file__).parents[3] / "docs"


def block(words):
    text = (DOCS / "solvers" / "matrices.md").read_text(encoding="utf-8")
    found = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return next(b for b in found if words in b)


def test_products_and_solvers():
    problem = poisson.integrate(poisson.square(8, 2))
    scope = {"K": problem.csr(), "load": problem.load()}
    exec(block("import Product\n"), scope)
    np.testing.assert_allclose(scope["y"], scope["K"].to_scipy() @ np.ones(225), atol=1e-12)
    exec(block("import ColouredSsor"), scope)
    assert scope["found"].iterations == pytest.approx(53, abs=1)
    exec(block("import ProductTuner"), scope)
    assert len(scope["tuner"].trials) == 1


def test_the_table_of_iterations_is_the_one_that_is_tested():
    text = (DOCS / "solvers" / "matrices.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d) \| (\d+) x \d+ \| (.*) \|$", text, re.MULTILINE)
    assert len(rows) == 4
    for degree, n, rest in rows:
        unknowns, iterations, colours, error = ITERATIONS[int(degree), int(n)]
        own = [f"{unknowns:,}", *map(str, iterations), str(colours), f"{error:.2e}"]
        assert rest.split(" | ") == own
