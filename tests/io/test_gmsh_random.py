"""Any groups, numbers and values: the Gmsh writer keeps them or names what it loses."""

import effort
import numpy as np
from gmsh_meshes import KINDS, plate
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.io.compare import difference
from meshprep.io.gmsh import losses, read, write
from meshprep.io.gmsh.layout import UNFIT
from meshprep.mesh import Dat
from meshprep.mesh.assemble import Block, GroupTable, assemble

ids = st.one_of(st.integers(-3, 3), st.sampled_from([2**31 - 1, -(2**31), 2**40]))


@st.composite
def meshes(draw):
    """Any groups, numbers and values on a few lines and triangles."""
    seed = draw(st.integers(0, 10**6))
    r = np.random.default_rng(seed)
    points, triangles, lines = plate(2, seed)
    blocks = []
    for kind, table in (("line", lines), ("triangle", triangles)):
        tags = {}
        for name in draw(
            st.sets(st.sampled_from(["entity", "physical", "partition", "zone"]))
        ):
            rows = draw(st.lists(st.lists(ids, max_size=3), min_size=1, max_size=4))
            offset = np.concatenate([[0], np.cumsum([len(x) for x in rows])])
            flat = np.array([i for x in rows for i in x], dtype=np.int64)
            values = r.integers(0, len(rows), len(table)).astype(np.int32)
            tags[name] = GroupTable(values, offset.astype(np.int64), flat)
        label = r.permutation(len(table)) + draw(st.integers(0, 30))
        blocks.append(Block(kind, table, label if draw(st.booleans()) else None, tags))
    if draw(st.booleans()):
        blocks.reverse()
    names = draw(
        st.dictionaries(st.integers(-4, 4), st.text("a \"'é", max_size=4), max_size=3)
    )
    entity = draw(st.sampled_from([(), (2, 1), (1, 5)]))
    dats = []
    if entity:
        dats = [
            Dat("gmsh:entity_dim", "nodes", r.integers(0, entity[0] + 1, 9)),
            Dat("gmsh:entity_tag", "nodes", r.integers(1, entity[1] + 1, 9)),
        ]
    shape = draw(st.lists(st.integers(0, 3), max_size=2))
    dtype = draw(st.sampled_from(["f8", "f4", "i4", "u1", "?"]))
    values = (r.random((9, *shape)) * 100).astype(dtype)
    index = np.sort(r.permutation(9)[: draw(st.integers(1, 9))])
    dats.append(
        Dat(draw(st.sampled_from(["v", "label x", '"q"'])), "nodes", values[index], index)
    )
    return assemble(
        points,
        blocks,
        node_label=r.permutation(9) * 7 if draw(st.booleans()) else None,
        tag_names={("physical", 2): names, ("zone", 1): names},
        dats=dats,
    )[0]


@settings(deadline=None, max_examples=effort.examples(150))
@given(meshes(), st.sampled_from(KINDS))
def test_whatever_is_not_named_as_lost_comes_back(tmp_path_factory, mesh, kind):
    path = tmp_path_factory.getbasetemp() / "any.msh"
    version, binary = kind
    lost = losses(mesh, version=version)
    write(mesh, path, version=version, binary=binary)
    found = difference(mesh, read(path), partial=bool(lost))
    if not lost:
        assert found is None
    assert all("numbers" in text or UNFIT in text or "several" in text for text in lost)
