"""The locality order of the leading points, which every other set follows."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import NamedTuple

import numpy as np

from meshprep_runtime.plan.metrics import OrderMetrics, TriedOrder
from meshprep_runtime.types.loops import Loop
from meshprep_runtime.types.ordering import Ordering

from ..kernels import Int32s
from ..loops.options import Options
from ..loops.reach import indirect_dats
from ..mesh.geometry import centroids
from ..mesh.model import rows_turned
from ..mesh.orderings import ordering_of
from ..ordering import (
    FOLLOW,
    METHODS,
    LocalityProblem,
    figures,
    followers,
    locality_order,
    propagate,
)
from ..ordering.choose import LocalityResult
from ..ordering.lexicographic import from_set_order
from .numbering import Numbering


class Lead(NamedTuple):
    """A loop whose points were ordered first, and the figures of their order."""

    loop: Loop
    options: Options
    metrics: OrderMetrics


def order_for_locality(
    numbering: Numbering, loops: Sequence[tuple[Loop, Options]]
) -> tuple[Numbering, tuple[Lead, ...]]:
    """Order the points of the leading map, and let every other set follow.

    The first loop with maps leads. Where no chain of maps ties the points of a further loop
    to sets that have an order (two meshes in one file), that loop leads its part. Gives the
    loops that lead, the first one first; none where every set keeps its order.
    """
    mesh = numbering.mesh
    ordered = numbering.known()
    target = loops[0][1].target
    leads: list[Lead] = []
    followed: dict[str, Int32s] = {}
    for loop, options in loops:
        if loop.leading_map is None:
            continue
        points = mesh.map(loop.leading_map).to_set
        if points in followers(mesh, ordered):
            continue

        # Order the points of this loop, in which its elements follow.
        problem = locality_problem(numbering, loop, options)
        result = locality_order(problem, options.method, seconds=options.order_time)
        leads.append(Lead(loop, options, _metrics_of_order(points, options, result)))
        order = numbering.together(points, result.ordering.new_to_old)
        numbering = numbering.moved(points, order)

        # The elements' order is known already, unless parts of the set that stay apart
        # changed the order that was found.
        whole = len(numbering.leaves(points)) == 1 or problem.group is not None
        if result.rows is not None and whole and options.target == target:
            followed[loop.leading_map] = result.rows
        for leaf in numbering.leaves(points):
            ordered[leaf] = numbering.orders[leaf]

    # All other sets that loops reach follow; what no loop reaches follows once blocks are
    # cut.
    orders = propagate(
        mesh=mesh,
        known=ordered,
        follow=FOLLOW[target],
        followed=followed,
        wanted=reached_leaves(numbering, [loop for loop, _ in loops]),
        keep=numbering.kept,
    )
    return numbering.following(orders), tuple(leads)


def _metrics_of_order(
    points: str, options: Options, result: LocalityResult
) -> OrderMetrics:
    """The figures of the order that was found for a set of points."""
    # Of each method that was tried; one that was not finished has no figures.
    tried = []
    for candidate in result.candidates:
        figures_tried = {}
        if candidate.figures is not None:
            figures_tried = asdict(candidate.figures)
        order_tried = TriedOrder(
            method=candidate.method,
            seconds=candidate.seconds,
            note=candidate.note or None,
            **figures_tried,
        )
        tried.append(order_tried)
    return OrderMetrics(
        set=points,
        target=options.target,
        asked=options.method,
        method=result.method,
        applied=result.applied,
        reason=result.reason,
        before=result.before,
        after=result.after,
        candidates=tuple(tried),
    )


def reached_leaves(numbering: Numbering, loops: Sequence[Loop]) -> set[str]:
    """The sets that loops run over or reach, unions as their parts."""
    reached = set[str]()
    for loop in loops:
        reached.update(numbering.leaves(loop.over))
        for name in loop.maps:
            reached.update(numbering.leaves(numbering.mesh.map(name).to_set))
    return reached


def go_by_cells(numbering: Numbering, name: str) -> Numbering:
    """All sets frozen in the order of a case whose interior faces go by their cells.

    ``name`` is the map from these faces to their two cells. A row of it is turned where the
    first cell has the higher number now. Faces are ordered by their cells, cells keep the
    order that they have, and all other sets that of the mesh. O(size).
    """
    # Turn the faces whose first cell has the higher number now.
    mesh = numbering.mesh
    cells_of_face = mesh.map(name)
    cells = cells_of_face.to_set
    faces = cells_of_face.from_set
    numbers = numbering.ordering(cells).old_to_new[cells_of_face.table]
    is_turned = numbers[:, 0] > numbers[:, 1]
    turned = replace(cells_of_face, table=rows_turned(cells_of_face.table, is_turned))
    new_mesh = replace(mesh, maps={**mesh.maps, name: turned})

    # Order the faces by their cells; cells stay as they are, all else as in the mesh.
    orders = {}
    for set_name, size in mesh.sizes.items():
        if set_name != cells:
            orders[set_name] = Ordering.identity(size)
    orders[faces] = ordering_of(from_set_order(numbers), faces)
    orders_now = numbering.following(orders).orders
    return replace(Numbering.of(new_mesh, new_mesh.sets), orders=orders_now)


def locality_metrics(numbering: Numbering, leads: Sequence[Lead]) -> OrderMetrics | None:
    """The figures of all leads, with those of the numbering as the plan has it.

    Those of further leads are ``more`` of the first; None without leads.
    """
    metrics = []
    for lead in leads:
        problem = locality_problem(numbering, lead.loop, lead.options)
        metrics.append(replace(lead.metrics, final=figures(problem)))
    if not metrics:
        return None
    return replace(metrics[0], more=tuple(metrics[1:]))


def locality_problem(numbering: Numbering, loop: Loop, options: Options) -> LocalityProblem:
    """The leading map in its present numbering, and the bytes moved for each point."""
    assert loop.leading_map is not None
    leading = numbering.map(loop.leading_map)
    points = leading.to_set
    mesh = numbering.mesh

    # An element of a map into its own set stands among its points.
    rows_are_points = leading.from_set == points
    table = leading.table
    if rows_are_points:
        itself = np.arange(leading.size, dtype=np.int32)
        table = np.column_stack([itself, table])

    # Centroids cost time; only some orders look at them. `auto` tries these as well.
    method = METHODS.get(options.method)
    coordinates = None
    if method is None or method.needs_coordinates:
        coordinates = centroids(mesh, points)
        if coordinates is not None:
            coordinates = numbering.ordering(points).apply(coordinates)

    # Bytes that the loop moves for a point, in all dats on it.
    point_bytes = 0
    for (_, to_set), (dim, nbytes) in indirect_dats(loop, mesh.maps).items():
        if to_set == points:
            point_bytes += dim * nbytes
    return LocalityProblem(
        table=table,
        rows_are_points=rows_are_points,
        n_points=mesh.size(points),
        coordinates=coordinates,
        group=numbering.group_numbers(points),
        target=options.target,
        block_size=options.block_elements,
        point_bytes=point_bytes,
    )
