"""The maps that can be derived for a mesh, and the reasons why others cannot."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from meshprep_runtime.errors import MeshprepError

from ..mesh import Mesh
from .layout import FACE_TYPES, Layout, layout_of

# The dimension of the entities that are derived.
ENTITY_DIM = {"edges": 1, "faces": 2}


def derivable(mesh: Mesh) -> tuple[str, ...]:
    """The maps that :func:`derive` can add; none without cells of known types."""
    try:
        layout = layout_of(mesh)
    except MeshprepError:
        return ()
    return tuple(name for name in _possible_maps(layout) if name not in mesh.maps)


def check_names(mesh: Mesh, layout: Layout, wanted: Sequence[str]) -> None:
    """Raise MeshprepError for a map that cannot be derived, and for two that exclude."""
    # Each map by itself.
    possible = _possible_maps(layout)
    for name in wanted:
        if name not in possible:
            raise MeshprepError(
                _why_not(mesh=mesh, layout=layout, name=name, possible=possible)
            )
        source, _, to = name.partition("->")
        new_set = to if source == "cells" else source
        if new_set in mesh.sets:
            raise MeshprepError(
                f"map '{name}' cannot be added to the set '{new_set}' "
                f"that the mesh has already: ask for all maps of '{new_set}' at once"
            )

    # Two maps together: a set holds the facets inside or all facets.
    entity = layout.facet_entity
    if f"{entity}->cells" in wanted and f"cells->{entity}" in wanted:
        raise MeshprepError(
            f"'{entity}->cells' is over the interior {entity} and 'cells->{entity}' "
            "needs all of them: ask for one of the two"
        )


def any_mesh_loop(mesh: Mesh, layout: Layout) -> str:
    """A loop that this mesh can have for certain, over all cells if possible."""
    if "cells->nodes" in mesh.maps:
        return "cells->nodes"
    if "edges->nodes" in mesh.maps or "edges" not in mesh.sets:
        return "edges->nodes"
    return f"{layout.parts[0].name}->nodes"


def entity_of(name: str) -> str:
    """The entity that a derivable map leads from or to: ``edges`` or ``faces``."""
    if "faces" in name:
        return "faces"
    return "edges"


def are_between_cells(set_name: str, maps: Iterable[str]) -> bool:
    """Whether a set holds only facets between two cells: one of its maps leads to cells."""
    if set_name.startswith("boundary_"):
        return False
    start = f"{entity_of(set_name)}->cells"
    return any(m == start or m.startswith(f"{start}->") for m in maps)


def steps_of(name: str) -> tuple[str, ...]:
    """The maps that a name is made of: ``a->b->c`` is ``a->b``, then ``b->c``."""
    sets = name.split("->")
    if len(sets) < 3:
        return (name,)
    return tuple(f"{source}->{to}" for source, to in pairwise(sets))


def part_names(layout: Layout, entity: str, prefix: str) -> tuple[str, ...]:
    """The parts of the set of an entity where faces have several types; else none."""
    arities = layout.arities(ENTITY_DIM[entity])
    if len(arities) < 2:
        return ()
    return tuple(f"{prefix}{FACE_TYPES[a]}_{entity}" for a in arities)


def _possible_maps(layout: Layout) -> list[str]:
    """The maps that can be derived for cells of this layout."""
    out: list[str] = []
    for entity, dim in ENTITY_DIM.items():
        if dim >= layout.dim:
            continue
        # Facets alone have a boundary, and cells on either side.
        are_facets = entity == layout.facet_entity
        prefixes = ["", "boundary_"] if are_facets else [""]
        for prefix in prefixes:
            union = f"{prefix}{entity}"
            names = part_names(layout, entity, prefix) or (union,)
            if are_facets:
                out.append(f"{union}->cells")
            out += [f"{name}->nodes" for name in names]
        # A map from cells needs as many entities on each cell.
        if layout.fixed_count(dim) is not None:
            out.append(f"cells->{entity}")
    return out


def _why_not(
    mesh: Mesh,
    layout: Layout,
    name: str,
    possible: Sequence[str],
) -> str:
    """The message for a map that cannot be derived, with a loop to use instead."""
    source, _, to = name.partition("->")
    # Rows of unlike lengths: name the maps of each type instead.
    if name == "cells->nodes":
        maps = ", ".join(f"'{p.name}->nodes'" for p in layout.parts)
        other = any_mesh_loop(mesh, layout)
        return f"map '{name}': the cells are of several types: use {maps}, or '{other}'"
    if name in ("faces->nodes", "boundary_faces->nodes") and layout.dim == 3:
        parts = part_names(layout, "faces", source.removesuffix("faces"))
        maps = " and ".join(f"'{p}->nodes'" for p in parts)
        return f"map '{name}': the faces have 3 or 4 nodes: use {maps}"
    if source == "cells" and ENTITY_DIM.get(to, 3) < layout.dim:
        other = any_mesh_loop(mesh, layout)
        what = f"the cells are of types with different numbers of {to}"
        return f"map '{name}': {what}: use another loop, for example '{other}'"
    # The name is unknown: list those that there are, and could be.
    names = [*mesh.maps, *(n for n in possible if n not in mesh.maps)]
    choice = ", ".join(f"'{n}'" for n in names)
    if source == "cells":
        choice += " (and cells->dofs1 to cells->dofs4)"
    return f"this mesh cannot give map '{name}': choose {choice}"
