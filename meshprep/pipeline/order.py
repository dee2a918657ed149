"""The locality order of the leading points, which every other set follows, and its figures."""

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
from ..reorder import (
    FOLLOW,
    METHODS,
    LocalityProblem,
    figures,
    followers,
    locality_order,
    propagate,
)
from ..reorder.lexicographic import from_set_order
from .numbering import Numbering


class Lead(NamedTuple):
    """A loop whose points were ordered first, and what a report shows of them."""

    loop: Loop
    options: Options
    metrics: OrderMetrics


def order_for_locality(
    numbering: Numbering, loops: Sequence[tuple[Loop, Options]]
) -> tuple[Numbering, tuple[Lead, ...]]:
    """Order the points of the leading map, and let every other set follow.

    The first loop with maps leads. Where no chain of maps ties the points of a further loop to sets
    that have an order (two meshes in one file), that loop leads its part. Gives the loops that
    lead, the first one first; none where every set keeps its order.
    """
    mesh, known = numbering.mesh, numbering.known()
    follow = FOLLOW[loops[0][1].target]
    leads: list[Lead] = []
    followed: dict[str, Int32s] = {}
    for loop, options in loops:
        if loop.leading_map is None:
            continue
        points = mesh.map(loop.leading_map).to_set
        if points in followers(mesh, known):
            continue
        problem = locality_problem(numbering, loop, options)
        found = locality_order(problem, options.method, seconds=options.order_time)
        metrics = OrderMetrics(
            set=points,
            target=options.target,
            asked=options.method,
            method=found.method,
            applied=found.applied,
            reason=found.reason,
            before=found.before,
            after=found.after,
            candidates=tuple(
                TriedOrder(
                    *(one.method, one.seconds),
                    **asdict(one.figures) if one.figures else {},
                    note=one.note or None,
                )
                for one in found.candidates
            ),
        )
        leads.append(Lead(loop, options, metrics))
        order = numbering.in_runs(points, found.ordering.new_to_old)
        numbering = numbering.moved(points, order)
        # parts that stay apart are not in the order that was found
        whole = len(numbering.leaves(points)) == 1
        if found.rows is not None and whole and options.target == loops[0][1].target:
            followed[loop.leading_map] = found.rows
        known |= {leaf: numbering.orders[leaf] for leaf in numbering.leaves(points)}
    # what no loop reaches follows once blocks are cut
    wanted = reached_leaves(numbering, [loop for loop, _ in loops])
    orders = propagate(mesh, known, follow, followed, wanted, numbering.in_runs)
    return numbering.following(orders), tuple(leads)


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

    The mesh has the rows of the map ``name`` turned whose first cell becomes the upper one.
    O(size).
    """
    mesh = numbering.mesh
    m = mesh.map(name)
    new = numbering.ordering(m.to_set).old_to_new[m.table]
    sides = rows_turned(m.table, new[:, 0] > new[:, 1])
    made = replace(mesh, maps={**mesh.maps, name: replace(m, table=sides)})
    kept = {s: Ordering.identity(size) for s, size in mesh.sizes.items() if s != m.to_set}
    faces = ordering_of(from_set_order(new), m.from_set)
    orders = numbering.following(kept | {m.from_set: faces}).orders
    return replace(Numbering.of(made, made.sets, numbering.runs), orders=orders)


def locality_metrics(numbering: Numbering, leads: Sequence[Lead]) -> OrderMetrics | None:
    """The figures of all leads, with those of the numbering as the plan has it.

    Those of further leads are ``more`` of the first; None without leads.
    """
    found = [
        replace(lead.metrics, final=figures(locality_problem(numbering, lead.loop, lead.options)))
        for lead in leads
    ]
    return replace(found[0], more=tuple(found[1:])) if found else None


def locality_problem(numbering: Numbering, loop: Loop, options: Options) -> LocalityProblem:
    """The leading map in its present numbering, and what the loop moves for one of its points."""
    assert loop.leading_map is not None
    leading = numbering.map(loop.leading_map)
    points, mesh = leading.to_set, numbering.mesh
    known = METHODS.get(options.method)
    needed = known is None or known.needs_coordinates
    where = centroids(mesh, points) if needed else None
    dats = indirect_dats(loop, mesh.maps)
    # an element of a map into its own set stands among its points
    own = leading.from_set == points
    itself = np.arange(leading.size, dtype=np.int32)
    return LocalityProblem(
        table=np.column_stack([itself, leading.table]) if own else leading.table,
        rows_are_points=own,
        n_points=mesh.size(points),
        coordinates=None if where is None else numbering.ordering(points).apply(where),
        target=options.target,
        block_size=options.block_elements,
        point_bytes=sum(dim * size for (_, to), (dim, size) in dats.items() if to == points),
    )
