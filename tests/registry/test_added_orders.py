"""Orders of other packages: the story of CONTRIBUTING.md, and what is refused."""

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

import meshprep
from meshprep.io.generate import generate
from meshprep.ordering import METHODS, LocalityProblem, locality_order
from meshprep_cli.main import main
from meshprep_runtime import MeshprepError, Plan

PATH = np.array([[0, 3], [3, 1], [1, 2]], np.int32)

ORDER = """\
from meshprep.ordering import Method

def order(problem):
    {body}

MINE = Method(order, "a test", {needs})
"""


def test_the_story_of_the_guide_ends_with_a_proved_plan(
    install, story, entry_points_text, tmp_path, capsys
):
    (module,), declared = story("Add an order in 30 lines")
    written = [line for line in f"{module}{declared}".splitlines() if line.strip()]
    assert len(written) <= 30
    install("my-orders", "my_orders", module, entry_points_text(declared))
    mesh = tmp_path / "wing.msh"
    meshprep.write(generate("delaunay2d", cells=300, seed=2), mesh)
    assert main(["reorder", str(mesh), "--method", "mine", "-q"]) == 0, capsys.readouterr()

    plan = Plan.load(tmp_path / "wing.plan.h5")
    assert plan.verify() == []
    assert main(["check", str(tmp_path / "wing.plan.h5"), "--mesh", str(mesh)]) == 0
    assert plan.options["method"] == "mine"
    (found,) = plan.metrics.orders
    assert (found.asked, found.method, found.applied) == ("mine", "mine", True)

    # the bandwidth of the order that scipy gives for pairs of cells that share an edge
    cells = meshprep.derive(meshprep.read(mesh), ["edges->cells"]).map("edges->cells").table
    n = int(cells.max()) + 1
    ends = (
        np.concatenate([cells[:, 0], cells[:, 1]]),
        np.concatenate([cells[:, 1], cells[:, 0]]),
    )
    matrix = coo_array((np.ones(ends[0].size), ends), shape=(n, n)).tocsr()
    order = reverse_cuthill_mckee(matrix, symmetric_mode=True)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    assert found.after.bandwidth == np.abs(place[cells[:, 0]] - place[cells[:, 1]]).max()
    capsys.readouterr()

    assert main(["reorder", "--help"]) == 0
    assert "Of other packages: mine." in " ".join(capsys.readouterr().out.split())


def test_auto_tries_the_orders_of_meshprep_alone(install):
    text = ORDER.format(body="raise SystemExit(1)", needs=False)
    install("my-orders", "own_order", text, "[meshprep.orders]\nmine = own_order:MINE\n")
    tried = {
        one.method for one in locality_order(LocalityProblem(PATH, 4), "auto").candidates
    }
    assert "mine" in METHODS
    assert tried == {"rcm", "gps", "sloan", "hilbert"}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return [0, 1, 2]", r"gave an array of shape \(3,\)"),
        ("return [0, 1, 2, 2]", "3 is missing"),
        ("return [0, 1, 2, 4]", "a number outside 0..3"),
        ("return [0.5, 1, 2, 3]", "order 'mine' of package my-orders: "),
        (
            "return 1 / 0",
            "failed: ZeroDivisionError: division by zero: choose another order",
        ),
    ],
)
def test_what_is_no_order_is_refused_in_one_line(install, body, said):
    text = ORDER.format(body=body, needs=False)
    install("my-orders", "own_order", text, "[meshprep.orders]\nmine = own_order:MINE\n")
    with pytest.raises(MeshprepError, match=said) as refused:
        locality_order(LocalityProblem(PATH, 4), "mine")
    assert str(refused.value).startswith("order 'mine' of package my-orders")
    assert "\n" not in str(refused.value)


def test_an_order_that_needs_coordinates_says_so(install):
    text = ORDER.format(body="return problem.coordinates[:, 0].argsort()", needs=True)
    install("my-orders", "own_order", text, "[meshprep.orders]\nmine = own_order:MINE\n")
    with pytest.raises(MeshprepError, match="needs coordinates: use gps or rcm"):
        locality_order(LocalityProblem(PATH, 4), "mine")
    places = np.array([[0.0], [2.0], [3.0], [1.0]])
    found = locality_order(LocalityProblem(PATH, 4, places), "mine")
    assert found.ordering.new_to_old.tolist() == [0, 3, 1, 2]
