"""What formats may leave out without being asked: it tells a solver nothing."""

import numpy as np

from ..mesh import Dat, Mesh, Tag
from ..mesh.cells import shape_of
from .gmsh.info import ENTITY_DIM, ENTITY_TAG, PARAMETRIC

_OF_GMSH = (ENTITY_DIM, ENTITY_TAG, PARAMETRIC)


def notes(mesh: Mesh) -> list[Dat | Tag]:
    """What only Gmsh has a use for, and a group that all cells are in.

    Gmsh notes the entity of its geometry that each node and cell lies on. Those of cells are no
    notes where there are no physical groups: they are the only groups then. A physical group of all
    cells of the highest dimension separates nothing; Gmsh wants one to save the cells. O(size).
    """
    dats = [d for d in mesh.dats if d.set == "nodes" and d.name in _OF_GMSH]
    physical = [t for t in mesh.tags if t.name == "physical" and t.set != "nodes"]
    entities = [t for t in mesh.tags if t.name == "entity" and physical]
    return [*dats, *entities, *_of_all(mesh, physical)]


def _of_all(mesh: Mesh, physical: list[Tag]) -> list[Tag]:
    """The tags of the cells of the highest dimension where these are all in one and one group."""
    dims = {s.name: shape_of(str(s.cell_type)).dim for s in mesh.cell_sets if s.size}
    top = {name for name, dim in dims.items() if dim == max(dims.values())}
    tags = [t for t in physical if t.set in top]
    groups = {i for t in tags for i in (*t.group_id.tolist(), *t.names)}
    single = all((np.diff(t.group_offset)[t.values] == 1).all() for t in tags)
    return tags if single and len(groups) == 1 and len(tags) == len(top) else []
