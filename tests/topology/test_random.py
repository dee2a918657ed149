"""Random meshes of every type against dictionaries."""

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.mesh.assemble import Block, assemble
from meshprep.mesh.cells import SHAPES
from meshprep.topology import derivable, derive, unattached
from meshprep.topology.match import first_slots, number_in_place
from meshprep.topology.slots import plain_part, slots_of
from meshprep_runtime.errors import MeshprepError

TYPES = {2: ("triangle", "quad"), 3: ("tetra", "pyramid", "wedge", "hexahedron")}
FACES = {2: "edges", 3: "faces"}


@st.composite
def meshes(draw):
    """Cells of random nodes, dense enough that facets meet, with random cells below them."""
    dim = draw(st.sampled_from([2, 3]))
    types = draw(st.lists(st.sampled_from(TYPES[dim]), min_size=1, max_size=4, unique=True))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_nodes = draw(st.integers(8, 40))
    lower = draw(
        st.sampled_from([[], ["line"], ["line", "triangle", "quad"][: 2 * dim - 3]])
    )
    blocks = []
    for t in [*types, *lower]:
        n = draw(st.integers(1, 40))
        corners = SHAPES[t].n_corners
        nodes = np.array(
            [random.permutation(n_nodes)[:corners] for _ in range(n)], np.int32
        )
        tags = {"physical": random.integers(0, 4, n)} if t in lower else {}
        blocks.append(Block(t, nodes, tags=tags))
    return assemble(np.zeros((n_nodes, dim)), blocks)[0]


def top(mesh):
    return mesh.sets["cells"].parts or ("cells",)


def slow_entities(mesh, kind):
    """{number of corners: {sorted corners: [(cell, place, corners), ...]}} in order."""
    out = {}
    cell = 0
    for name in top(mesh):
        shape = SHAPES[mesh.sets[name].cell_type]
        for row in mesh.map(f"{name}->nodes").table.tolist():
            for place, local in enumerate(getattr(shape, kind)):
                corners = [row[i] for i in local]
                same = out.setdefault(len(local), {}).setdefault(tuple(sorted(corners)), [])
                same.append((cell, place, corners))
            cell += 1
    return {arity: out[arity] for arity in sorted(out)}


def chosen(found, cells):
    return [s for same in found.values() for s in same.values() if cells in (None, len(s))]


def nodes_of(out, entity, prefix=""):
    parts = out.sets[f"{prefix}{entity}"].parts or (f"{prefix}{entity}",)
    return [r for p in parts for r in out.map(f"{p}->nodes").table.tolist()]


def names(mesh, entity, prefix=""):
    wanted = [n for n in derivable(mesh) if n.endswith(f"{entity}->nodes")]
    return [n for n in wanted if n.startswith("boundary_") == bool(prefix)]


def check_tags(mesh, out, set_name, entities, dim):
    """Every tag of cells below lands on the entity with the same nodes."""
    lower = [s for s in mesh.cell_sets if s.name not in top(mesh)]
    lower = [s for s in lower if SHAPES[s.cell_type].dim == dim]
    want = [set() for _ in entities]
    where = {tuple(sorted(e[0][2])): i for i, e in enumerate(entities)}
    for s in lower:
        tag = mesh.tag("physical", s.name)
        for row, v in zip(
            mesh.map(f"{s.name}->nodes").table.tolist(), tag.values, strict=True
        ):
            if tuple(sorted(row)) in where:
                want[where[tuple(sorted(row))]] |= set(tag.groups(v))
    tag = out.tag("physical", set_name)
    got = (
        [set()] * len(entities) if tag is None else [set(tag.groups(v)) for v in tag.values]
    )
    assert got == want


@settings(deadline=None, max_examples=effort.examples(80))
@given(meshes())
def test_all_facets_and_their_boundary(mesh):
    dim = SHAPES[mesh.sets[top(mesh)[0]].cell_type].dim
    entity = FACES[dim]
    slow = slow_entities(mesh, entity)
    wanted = [
        *names(mesh, entity),
        *names(mesh, entity, "boundary_"),
        f"boundary_{entity}->cells",
    ]
    out = derive(mesh, wanted)
    every, boundary = chosen(slow, None), chosen(slow, 1)
    assert nodes_of(out, entity) == [s[0][2] for s in every]
    assert nodes_of(out, entity, "boundary_") == [s[0][2] for s in boundary]
    assert out.map(f"boundary_{entity}->cells").table.tolist() == [
        [s[0][0]] for s in boundary
    ]
    check_tags(mesh, out, entity, every, dim - 1)
    check_tags(mesh, out, f"boundary_{entity}", boundary, dim - 1)


@settings(deadline=None, max_examples=effort.examples(80))
@given(meshes())
def test_interior_facets(mesh):
    dim = SHAPES[mesh.sets[top(mesh)[0]].cell_type].dim
    entity = FACES[dim]
    slow = slow_entities(mesh, entity)
    wanted = [f"{entity}->cells", *names(mesh, entity)]
    if any(len(s) > 2 for s in chosen(slow, None)):
        with pytest.raises(MeshprepError, match=r"belongs to \d+ cells"):
            derive(mesh, wanted)
        return
    out = derive(mesh, wanted)
    interior = chosen(slow, 2)
    assert out.map(f"{entity}->cells").table.tolist() == [
        [s[0][0], s[1][0]] for s in interior
    ]
    assert nodes_of(out, entity) == [s[0][2] for s in interior]
    check_tags(mesh, out, entity, interior, dim - 1)


@settings(deadline=None, max_examples=effort.examples(60))
@given(meshes())
def test_edges_of_volumes_and_cells_to_facets(mesh):
    for kind in ("edges", "faces"):
        name = f"cells->{kind}"
        if name not in derivable(mesh):
            continue
        slow = chosen(slow_entities(mesh, kind), None)
        out = derive(mesh, [name, *names(mesh, kind)])
        table = np.full(out.map(name).table.shape, -1)
        for number, same in enumerate(slow):
            for cell, place, _ in same:
                table[cell, place] = number
        assert (out.map(name).table == table).all()
        assert nodes_of(out, kind) == [s[0][2] for s in slow]


@settings(deadline=None, max_examples=effort.examples(60))
@given(meshes())
def test_unattached(mesh):
    for name, rows in unattached(mesh).items():
        shape = SHAPES[mesh.sets[name].cell_type]
        slow = slow_entities(mesh, {1: "edges", 2: "faces"}[shape.dim]).get(
            shape.n_corners, {}
        )
        table = mesh.map(f"{name}->nodes").table.tolist()
        assert rows.tolist() == [
            i for i, r in enumerate(table) if tuple(sorted(r)) not in slow
        ]


@settings(deadline=None, max_examples=effort.examples(60))
@given(
    st.integers(2, 4), st.integers(0, 200), st.integers(5, 12), st.integers(0, 2**32 - 1)
)
def test_first_slots(arity, n, n_nodes, seed):
    random = np.random.default_rng(seed)
    rows = random.integers(0, n_nodes, (n, arity)).astype(np.int32)
    first = first_slots(slots_of([plain_part(rows)], arity), n_nodes)
    seen = {}
    assert first.tolist() == [
        seen.setdefault(tuple(sorted(r)), i) for i, r in enumerate(rows)
    ]
    order = list(dict.fromkeys(first.tolist()))
    expected = [order.index(f) for f in first.tolist()]
    count = number_in_place(first)
    assert first.tolist() == expected
    assert count.tolist() == [min(3, expected.count(f)) for f in range(len(order))]


def test_a_node_that_meets_every_cell_costs_no_more():
    # A wheel of 200,000 triangles: node 0 is the lowest of two edges in three.
    n = 200_000
    rim = np.arange(1, n + 1, dtype=np.int32)
    wheel = np.column_stack([np.zeros(n, np.int32), rim, np.roll(rim, -1)])
    out = derive(
        assemble(np.zeros((n + 1, 2)), [Block("triangle", wheel)])[0], ["edges->cells"]
    )
    assert out.size("edges") == n
    cells = out.map("edges->cells").table
    assert cells[0].tolist() == [0, n - 1]
    assert cells[1:, 0].tolist() == list(range(n - 1))
    assert (np.diff(cells[1:], axis=1) == 1).all()
