"""What a file lost is said: each part of a mesh changed alone, or left out."""

from dataclasses import replace

import numpy as np
import pytest

from meshprep.io.compare import difference
from meshprep.mesh import Dat, ElementSet, IndexList, Mesh, SetMap, Tag

POINTS = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1], [2, 0.5]])
TABLES = {
    "triangle": np.array([[1, 4, 2], [4, 1, 0]]),
    "quad": np.array([[0, 1, 2, 3]]),
    "line": np.array([[0, 1], [1, 4]]),
}


def mesh(points=POINTS, order=("triangle", "quad"), skip=(), tables=TABLES, **parts):
    """Two triangles and a quad with two lines, values, groups and a list."""
    sizes = {name: len(table) for name, table in tables.items() if name not in skip}
    names = [name for name in order if name in sizes]
    sets = [ElementSet("nodes", len(points)), *(ElementSet(n, sizes[n], n) for n in names)]
    sets += [ElementSet("line", sizes["line"], "line")] if "line" in sizes else []
    sets.append(ElementSet("cells", sum(sizes[n] for n in names), parts=tuple(names)))
    maps = [SetMap(f"{n}->nodes", n, "nodes", tables[n]) for n in sizes]
    given = {
        "dats": [Dat("t", "nodes", np.arange(5.0)), Dat("n", "triangle", np.array([7, 8]))],
        "tags": [Tag.from_ids("physical", "triangle", np.array([5, 0]), {5: "wall"})],
        "lists": [IndexList("pairs", "nodes", np.array([[0, 1]]))],
    }
    held = {s.name for s in sets}
    given = {k: [one for one in v if one.set in held] for k, v in (given | parts).items()}
    if "coordinates" not in skip:
        given["dats"].append(Dat("coordinates", "nodes", points))
    return Mesh(sets, maps, **given)


def moved(values, at, to):
    values = np.array(values)
    values[at] = to
    return values


def with_table(name, table):
    return mesh(tables={**TABLES, name: np.array(table)})


T, N, _ = mesh().dats
LATER = replace(N, attrs={"time": np.array([1.0])})
PHYSICAL, PAIRS = mesh().tags[0], mesh().lists[0]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (mesh(points=np.vstack([POINTS, [[3, 3]]]), dats=[N]), "5 nodes became 6"),
        (mesh(skip=["line"]), "set 'line' is missing"),
        (
            mesh(order=("quad", "triangle")),
            "the cell types stand in another order (quad and tri",
        ),
        (with_table("quad", [[0, 1, 2, 4]]), "cell 1 of set 'quad' changed its nodes"),
        (
            with_table("triangle", [[1, 4, 2], [4, 0, 1]]),
            "cell 2 of set 'triangle' changed its n",
        ),
        (with_table("line", [[0, 1]]), "set 'line' of (2, 2) nodes became (1, 2)"),
        (mesh(points=moved(POINTS, (3, 1), 1 + 1e-15)), "node 4 moved"),
        (mesh(points=moved(POINTS, (4, 0), np.nan)), "node 5 moved"),
        (mesh(skip=["coordinates"]), "the coordinates are missing"),
        (mesh(dats=[N]), "values 't' on 'nodes' are missing"),
        (mesh(dats=[T, N, Dat("u", "quad", np.ones(1))]), "values 'u' on 'quad' are new"),
        (mesh(dats=[T, N, LATER]), "values 'n' on 'triangle' are new"),
        (
            mesh(dats=[T, replace(N, values=np.array([7.0, 8]))]),
            "changed from int64 to float64",
        ),
        (
            mesh(dats=[replace(T, values=np.ones((5, 2))), N]),
            "changed shape from (5,) to (5, 2)",
        ),
        (
            mesh(dats=[replace(T, values=np.arange(5.0)[::-1]), N]),
            "'nodes' changed at element 1",
        ),
        (
            mesh(dats=[T, replace(N, values=np.array([7, 9]))]),
            "'triangle' changed at element 2",
        ),
        (
            mesh(dats=[T, Dat("n", "triangle", np.array([7]), np.array([0]))]),
            "values 'n' on 'triangle' changed at element 2",
        ),
        (mesh(tags=[]), "groups 'physical' on 'triangle' are missing"),
        (
            mesh(tags=[PHYSICAL, Tag.from_ids("new", "quad", np.array([1]))]),
            "groups 'new' on 'quad' are new",
        ),
        (
            mesh(
                tags=[Tag.from_ids("physical", "triangle", np.array([5, 5]), {5: "wall"})]
            ),
            "groups 'physical' on 'triangle' changed at element 2",
        ),
        (
            mesh(
                tags=[Tag.from_ids("physical", "triangle", np.array([6, 0]), {5: "wall"})]
            ),
            "groups 'physical' on 'triangle' changed at element 1",
        ),
        (
            mesh(tags=[replace(PHYSICAL, names={5: "Wall"})]),
            "groups 'physical' on 'triangle' changed their names",
        ),
        (mesh(lists=[]), "index list 'pairs' on 'nodes' is missing"),
        (mesh(lists=[PAIRS, PAIRS]), "index list 'pairs' on 'nodes' is new"),
        (
            mesh(lists=[replace(PAIRS, index=np.array([[1, 0]]))]),
            "'pairs' on 'nodes' changed",
        ),
    ],
)
def test_each_part_counts(found, said):
    assert said in difference(mesh(), found)
    assert difference(found, mesh()) is not None
    assert difference(found, found) is None


def test_the_type_of_cells_counts():
    def one(kind):
        sets = [ElementSet("nodes", 4), ElementSet("faces", 1, kind)]
        return Mesh(sets, [SetMap("faces->nodes", "faces", "nodes", [[0, 1, 2, 3]])])

    assert difference(one("quad"), one("tetra")) == "the cells of set 'faces' changed type"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (mesh(skip=["line"], dats=[], tags=[], lists=[]), None),
        (mesh(tags=[replace(PHYSICAL, names={})]), None),
        (mesh(skip=["quad"]), "set 'quad' is missing"),
        (mesh(skip=["triangle"]), "set 'triangle' is missing"),
        (mesh(dats=[T, N, Dat("u", "quad", np.ones(1))]), "values 'u' on 'quad' are new"),
        (mesh(dats=[T, N, LATER]), "values 'n' on 'triangle' are new"),
        (
            mesh(tags=[PHYSICAL, Tag.from_ids("new", "quad", np.array([1]))]),
            "groups 'new' on 'quad' are new",
        ),
        (mesh(lists=[PAIRS, PAIRS]), "index list 'pairs' on 'nodes' is new"),
        (mesh(tags=[replace(PHYSICAL, names={6: "x"})]), "changed their names"),
        (
            mesh(dats=[replace(T, values=np.ones(5))]),
            "values 't' on 'nodes' changed at element 1",
        ),
        (mesh(points=moved(POINTS, (0, 0), 1)), "node 1 moved"),
        (mesh(skip=["coordinates"]), "the coordinates are missing"),
    ],
)
def test_accepted_losses_are_what_is_missing_alone(found, said):
    told = difference(mesh(), found, partial=True)
    assert told is None if said is None else said in told


@pytest.mark.parametrize(
    "found",
    [
        mesh(points=np.pad(POINTS, ((0, 0), (0, 1)))),
        mesh(dats=[T, replace(N, values=np.array([7, 8], np.uint8))]),
        mesh(dats=[N, replace(T, values=T.values[:, None])]),
        mesh(dats=[T, N, Dat("void", "quad", np.array([np.nan]))]),
        mesh(dats=[T, N, Dat("label", "triangle", np.array([1, 2]))]),
        mesh(tags=[PHYSICAL, Tag.from_ids("none", "quad", np.array([0]))]),
        mesh(
            tags=[
                Tag("physical", "triangle", np.array([1, 0]), [0, 0, 1], [5], {5: "wall"})
            ],
        ),
    ],
)
def test_what_says_the_same_is_equal(found):
    assert difference(mesh(), found) is None
    assert difference(found, mesh()) is None


def test_missing_values_are_nan_and_equal():
    part = Dat("t", "nodes", np.array([3.0]), np.array([2]))
    full = Dat("t", "nodes", moved(np.full(5, np.nan), 2, 3.0))
    assert difference(mesh(dats=[part]), mesh(dats=[full])) is None
    whole = Dat("n", "triangle", np.array([7]), np.array([0]))
    assert (
        difference(mesh(dats=[whole]), mesh(dats=[replace(N, values=np.array([7, 0]))]))
        is None
    )
    other = replace(full, values=moved(full.values, 1, 0.0))
    assert "changed at element 2" in difference(mesh(dats=[part]), mesh(dats=[other]))


@pytest.mark.parametrize(("error", "equal"), [(9e-6, True), (1.1e-5, False)])
def test_digits_are_relative(error, equal):
    for scale in (1e-9, 1.0, -1e9):
        found = mesh(points=scale * POINTS * (1 + error))
        assert (difference(mesh(points=scale * POINTS), found, digits=6) is None) == equal
        found = mesh(dats=[replace(T, values=T.values * (1 + error)), N])
        assert (difference(mesh(), found, digits=6) is None) == equal
    # whole numbers keep all digits
    found = mesh(dats=[T, replace(N, values=np.array([7_000_000, 8]))])
    other = mesh(dats=[T, replace(N, values=np.array([7_000_001, 8]))])
    assert "changed at element 1" in difference(found, other, digits=6)


def test_values_on_sets_that_no_file_has_do_not_count():
    values = Dat("t", "sides", np.ones(2))
    known = mesh()
    sets = [*known.sets.values(), ElementSet("sides", 2)]
    found = Mesh(
        sets, list(known.maps.values()), [*known.dats, values], known.tags, known.lists
    )
    assert difference(known, found) is None


def graph(sizes=(2, 3), name="m", to="b", table=((0, 1), (2, 0)), dats=()):
    sets = [ElementSet(n, size) for n, size in zip(("a", "b"), sizes, strict=True)]
    return Mesh(
        [*sets, ElementSet("c", 3)], [SetMap(name, "a", to, np.array(table))], dats=dats
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (graph(sizes=(2, 4)), "set 'b' of 3 elements has 4 now"),
        (graph(name="x"), "map 'm' is missing"),
        (graph(to="c"), "map 'm' changed"),
        (graph(table=((0, 1), (2, 1))), "map 'm' changed"),
        (Mesh([ElementSet("a", 2), ElementSet("b", 3)], []), "set 'c' is missing"),
    ],
)
def test_sets_and_maps_alone(found, said):
    assert difference(graph(), graph()) is None
    assert difference(graph(), graph(dats=[Dat("t", "c", np.ones(3))])) == (
        "values 't' on 'c' are new"
    )
    assert difference(graph(), found) == said
    assert difference(found, graph()) is not None
