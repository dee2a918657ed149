"""The locality order of the leading points, which every other set follows, and its figures."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from meshprep_runtime.loops import Loop

from .geometry import centroids
from .metrics import indirect_dats
from .numbering import Numbering
from .options import Options
from .reorder import (
    FOLLOW,
    METHODS,
    Candidate,
    LocalityProblem,
    figures,
    keep_parts,
    locality_order,
    propagate,
)


def order_for_locality(numbering: Numbering, loop: Loop, options: Options) -> dict[str, Any] | None:
    """Order the points of the leading map, and let every other set follow.

    Returns
    -------
    dict or None
        What a report shows, as JSON values: the method, the figures before and after, and every
        candidate with its seconds and figures. None where no order was looked for: the loop
        reaches nothing, or only sets that have their order already.
    """
    if loop.leading_map is None:
        return None
    points = numbering.mesh.map(loop.leading_map).to_set
    follow = FOLLOW[options.target]
    if numbering.is_settled(points):
        numbering.follow(propagate(numbering.mesh, numbering.settled(), follow))
        return None
    problem = _problem(numbering, loop, options)
    found = locality_order(problem, options.method, seconds=options.order_time)
    parts = [numbering.mesh.size(p) for p in numbering.leaves(points)]
    numbering.move(points, keep_parts(found.ordering.new_to_old, parts), settle=False)
    known = {leaf: numbering.ordering(leaf) for leaf in numbering.leaves(points)}
    numbering.follow(propagate(numbering.mesh, known | numbering.settled(), follow))
    return {
        "set": points,
        "target": options.target,
        "asked": options.method,
        "method": found.method,
        "applied": found.applied,
        "reason": found.reason,
        "before": asdict(found.before),
        "after": asdict(found.after),
        "candidates": [_row(c) for c in found.candidates],
    }


def final_figures(numbering: Numbering, loop: Loop, options: Options) -> dict[str, Any]:
    """The figures of the leading map as the plan has it, after blocks and grouping."""
    return asdict(figures(_problem(numbering, loop, options)))


def _problem(numbering: Numbering, loop: Loop, options: Options) -> LocalityProblem:
    """The leading map in its present numbering, and what the loop moves for one of its points."""
    assert loop.leading_map is not None
    leading = numbering.map(loop.leading_map)
    points, mesh = leading.to_set, numbering.mesh
    known = METHODS.get(options.method)
    needed = known is None or known.needs_coordinates
    where = centroids(mesh, points) if needed else None
    dats = indirect_dats(loop, {m: mesh.map(m) for m in loop.maps})
    return LocalityProblem(
        table=leading.table,
        n_points=mesh.size(points),
        coordinates=None if where is None else numbering.ordering(points).apply(where),
        target=options.target,
        block_size=options.block_elements,
        point_bytes=sum(dim * size for (_, to), (dim, size) in dats.items() if to == points),
    )


def _row(candidate: Candidate) -> dict[str, Any]:
    values = {} if candidate.figures is None else asdict(candidate.figures)
    told = {"note": candidate.note} if candidate.note else {}
    return {"method": candidate.method, "seconds": candidate.seconds} | values | told
