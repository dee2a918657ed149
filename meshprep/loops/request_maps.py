"""The maps that loops ask for, and which loop is taken where nobody named one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from meshprep_runtime.errors import MeshprepError, listed

from ..mesh import Mesh
from ..topology import derive, steps_of
from ..topology.facets import ManyCellsError
from .requests import (
    LoopRequest,
    Loops,
    LoopSpec,
    as_requests,
    default_request,
    finite_element_requests,
    no_elements,
    resolve,
)

T = TypeVar("T")


def plan_request_maps(mesh: Mesh, loops: Loops) -> tuple[Mesh, list[LoopSpec]]:
    """The mesh with every map the loops need, and the loops checked against it.

    Where nobody named a loop, it is the one that :func:`fit_default_loop` finds.
    """
    requests = as_requests(loops, mesh)
    if loops:
        return maps_of_requests(mesh, requests)
    # Without loops take the facets between cells, or the cells where none are shared.
    return fit_default_loop(
        mesh,
        n_cells=sum(s.size for s in mesh.cell_sets),
        attempt=lambda requests, note: maps_of_requests(mesh, requests, note),
        sizes=lambda found: found[0].sizes,
    )


def fit_default_loop(
    mesh: Mesh,
    n_cells: int,
    attempt: Callable[[Sequence[LoopRequest], str], T],
    sizes: Callable[[T], Mapping[str, int]],
) -> T:
    """The result of ``attempt(loops, note)`` for the default loop, or for its replacement.

    The default loop goes over the facets between two cells. Where no two cells share a
    facet, or one belongs to more than two, as where three shells meet, the loop of finite
    elements takes its place: over the cells, of each type. The note for the user is empty
    for the default loop. ``sizes`` are those of the sets in what was found.
    """
    # Without cells there is nothing to take the place of the default loop.
    usual = default_request(mesh)
    if n_cells:
        others = finite_element_requests(mesh)
    else:
        others = []
    if others in ([], [usual]):
        return attempt([usual], "")

    # Try the default loop; it is the one if it has elements.
    try:
        result = attempt([usual], "")
        over = usual.values["over"]
        if sizes(result)[over]:
            return result
        fact = no_elements(over, [usual.name])
    except ManyCellsError as error:
        fact = error.fact

    # Take the loops of finite elements, and say why.
    names = listed(one.name for one in others)
    if len(others) == 1:
        loop = f"the loop is {names}, that"
    else:
        loop = f"the loops are {names}, those"
    return attempt(others, f"{fact}: {loop} of finite elements, in place of {usual.name}")


def maps_of_requests(
    mesh: Mesh, requests: Sequence[LoopRequest], note: str = ""
) -> tuple[Mesh, list[LoopSpec]]:
    """The mesh with every map that these loops need, and the loops with this note."""
    names: dict[str, None] = {}
    for request in requests:
        names |= dict.fromkeys(request.maps)
    steps = set[str]().union(*map(steps_of, names))
    # A solver that loops over interior facets needs the boundary ones too, in the same
    # numbering.
    for facets in ("faces", "edges"):
        if f"{facets}->cells" in steps - mesh.maps.keys():
            names[f"boundary_{facets}->cells"] = None
    try:
        full = derive(mesh, names)
    except ManyCellsError:
        raise
    except MeshprepError as error:
        raise MeshprepError(f"{_first_asking(requests, str(error))}{error}") from error
    return full, [replace(spec, note=note) for spec in resolve(requests, full)]


def _first_asking(requests: Sequence[LoopRequest], message: str) -> str:
    """The first loop that asks for a map which a message names, to begin the message."""
    for request in requests:
        for name in request.maps:
            if any(f"map '{step}'" in message for step in steps_of(name)):
                return f"{request.where}: "
    return ""


def notes_of(specs: Sequence[LoopSpec]) -> list[str]:
    """What a user should know of loops that took the place of the default one."""
    return list(dict.fromkeys(spec.note for spec in specs if spec.note))
