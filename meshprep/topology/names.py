"""Which maps a mesh can give, and why not the others."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from meshprep_runtime.errors import MeshprepError

from ..mesh import Mesh
from .layout import FACE_TYPES, Layout, layout_of

ENTITY_DIM = {"edges": 1, "faces": 2}


def derivable(mesh: Mesh) -> tuple[str, ...]:
    """The names that :func:`derive` can add; empty for a mesh without cells of known types."""
    try:
        layout = layout_of(mesh)
    except MeshprepError:
        return ()
    return tuple(n for n in _possible(layout) if n not in mesh.maps)


def check_names(mesh: Mesh, layout: Layout, wanted: Sequence[str]) -> None:
    """Raise MeshprepError for the first name that cannot be had, and for two that exclude."""
    possible = _possible(layout)
    for name in wanted:
        if name not in possible:
            raise MeshprepError(_why_not(mesh, layout, name, possible))
        source, _, to = name.partition("->")
        made = to if source == "cells" else source
        if made in mesh.sets:
            raise MeshprepError(
                f"map '{name}' cannot be added to the set '{made}' that the mesh has already: "
                f"ask for all maps of '{made}' at once"
            )
    entity = layout.facet_entity
    if f"{entity}->cells" in wanted and f"cells->{entity}" in wanted:
        raise MeshprepError(
            f"'{entity}->cells' is over the interior {entity} and 'cells->{entity}' needs all of "
            "them: ask for one of the two"
        )


def any_mesh_loop(mesh: Mesh, layout: Layout) -> str:
    """A loop that this mesh can have, whatever meets whatever in it; over all cells if possible."""
    if "cells->nodes" in mesh.maps:
        return "cells->nodes"
    if "edges->nodes" in mesh.maps or "edges" not in mesh.sets:
        return "edges->nodes"
    return f"{layout.parts[0].name}->nodes"


def entity_of(name: str) -> str:
    """``edges`` or ``faces``: what a derivable map is about."""
    return "faces" if "faces" in name else "edges"


def are_between_cells(set_name: str, maps: Iterable[str]) -> bool:
    """Whether a set holds the facets of two cells alone: a map leads on to cells."""
    start = f"{entity_of(set_name)}->cells"
    on = (m == start or m.startswith(f"{start}->") for m in maps)
    return not set_name.startswith("boundary_") and any(on)


def steps_of(name: str) -> tuple[str, ...]:
    """The maps that a name asks to go along: ``a->b->c`` is ``a->b``, then ``b->c``."""
    sets = name.split("->")
    return (name,) if len(sets) < 3 else tuple(map("->".join, pairwise(sets)))


def part_names(layout: Layout, entity: str, prefix: str) -> tuple[str, ...]:
    """Sets that make up the union, where faces have several types; else empty."""
    arities = layout.arities(ENTITY_DIM[entity])
    if len(arities) < 2:
        return ()
    return tuple(f"{prefix}{FACE_TYPES[a]}_{entity}" for a in arities)


def _possible(layout: Layout) -> list[str]:
    out: list[str] = []
    for entity, dim in ENTITY_DIM.items():
        if dim >= layout.dim:
            continue
        facet = entity == layout.facet_entity
        for prefix in ("", "boundary_") if facet else ("",):
            union = f"{prefix}{entity}"
            names = part_names(layout, entity, prefix) or (union,)
            out += [f"{union}->cells"] * facet + [f"{n}->nodes" for n in names]
        if layout.fixed_count(dim) is not None:
            out.append(f"cells->{entity}")
    return out


def _why_not(mesh: Mesh, layout: Layout, name: str, possible: Sequence[str]) -> str:
    source, _, to = name.partition("->")
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
    names = [*mesh.maps, *(n for n in possible if n not in mesh.maps)]
    choice = ", ".join(f"'{n}'" for n in names)
    dofs = " (and cells->dofs1 to cells->dofs4)" if source == "cells" else ""
    return f"this mesh cannot give map '{name}': choose {choice}{dofs}"
