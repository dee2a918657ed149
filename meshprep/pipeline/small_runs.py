"""Every stage of a job on a small mesh, with the types of arguments that any mesh gives.

Who runs these compiles the kernels that any mesh needs; see :mod:`warm_up`.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from meshprep_runtime.program.chains.inspect import with_maps
from meshprep_runtime.program.chains.numbers import number
from meshprep_runtime.program.chains.tiles import Kept
from meshprep_runtime.program.chains.tiling import cut as cut_into_tiles
from meshprep_runtime.types.loops import Access, Arg

from .. import io
from ..io.generate import generate
from ..kernels import Float64s, Int32s
from ..loops.options import Options
from ..loops.requests import LoopRequest, LoopSpec, default_request, resolve, simple_request
from ..mesh import Dat, ElementSet, Mesh, SetMap
from ..mesh.incidence import Csr
from ..metrics.measures import variant_metrics
from ..partition.blocks.anneal.centroids import middles
from ..partition.blocks.mend.reconnect import reconnect_groups
from ..partition.blocks.tuning import PRESETS
from ..partition.repair import repair
from ..reorder import FOLLOW, propagate
from ..reorder.by_component import by_component
from .blocks import colour, cut
from .matrices import build_matrices
from .measure import measure
from .numbering import Numbering
from .order import locality_metrics, order_for_locality
from .steps import plan_request_maps, prepare

SMALL = 64
MOVES = [("read", "f8"), ("inc", "f8"), ("read", "f4"), ("inc", "f4")]


def run_task(task: str) -> None:
    """Run one stage in this process; it is named with its choices, as in ``order gps gpu``."""
    stage, *choices = task.split()
    _STAGES[stage](*choices)


def _order(method: str, target: str) -> None:
    mesh, spec, options = _small(method=method, target=target)
    numbering = Numbering(mesh)
    leads = order_for_locality(numbering, [(spec.loop, options)])
    # as once blocks are cut: nodes follow by touch
    propagate(mesh, {"cells": numbering.present_ordering("cells")}, FOLLOW[target])
    locality_metrics(numbering, leads)
    # two components whose vertices alternate are renumbered, as are those of large meshes
    graph = Csr(np.arange(5, dtype=np.int64), np.array([2, 3, 0, 1], np.int32))
    by_component(graph, lambda offset, *rest: np.arange(offset.size - 1, dtype=np.uint32))


def _rows() -> None:
    """Cells follow their nodes: rows of more than two points."""
    mesh = _small()[0]
    for follow in FOLLOW.values():
        follow(mesh.map("cells->nodes").table.copy())


def _blocks(partitioner: str, target: str) -> None:
    mesh, spec, options = _small(partition=partitioner, target=target)
    if partitioner == "structured":
        mesh = generate("box", nx=12, ny=12, nz=0, type="quad")
        mesh, (spec,) = plan_request_maps(mesh, [default_request(mesh)])
    with _as_if_large():
        cut(Numbering(mesh), spec, options)
    if partitioner == "blocks":
        # of several groups, as those of large meshes
        middles(np.ones((200, 3)), np.ones(200, np.int32), np.zeros(200, np.int32), 3)


@contextmanager
def _as_if_large() -> Iterator[None]:
    """Cut as meshes of many elements are: those of few nearly always need repairs, too."""
    before = dict(PRESETS)
    for name, tuning in before.items():
        PRESETS[name] = replace(tuning, lone_group=0, lone_group_of_many=0)
    try:
        yield
    finally:
        PRESETS.update(before)


def _repairs() -> None:
    """Mending blocks in pieces, and over the cap: few large meshes need it."""
    row = np.arange(200, dtype=np.int32)
    table, block = np.column_stack([row, row + 1]), row % 3
    groups, weight = np.zeros(3, np.int32), np.ones(201, np.int32)
    everywhere = np.ones(3, np.bool_)
    reconnect_groups(table, weight, block, groups, 100, everywhere, everywhere)
    repair(table, 201, np.zeros(200, np.int32), 4, 50)


def _colours(lists: str = "") -> None:
    """Colours, staging and figures, and with ``lists`` those of blocks that list their elements."""
    mesh, spec, options = _small(partition="contiguous")
    numbering = Numbering(mesh)
    blocks = cut(numbering, spec, options)
    numbering.finish({})
    variant = colour(numbering, spec.loop, blocks, options)
    sizes = {s.name: s.size for s in mesh.sets.values()}
    maps = {name: numbering.map(name) for name in spec.loop.maps}
    variant_metrics(spec.loop, maps, sizes, variant)
    if lists:
        kept = Options(partition="contiguous", own_blocks=True, block_size=SMALL)
        cut(Numbering(mesh, ["edges"]), spec, kept)
        listed = replace(variant, elements=np.arange(sizes["edges"], dtype=np.int32))
        direct = replace(spec.loop, args=(*spec.loop.args, Arg("direct", Access.READ)))
        variant_metrics(direct, maps, sizes, listed)


def _split(cut: str = "annealed") -> None:
    """Owners, halos, orders and parts; what these take of orders and blocks has its own tasks."""
    from ..distribute.steps import SplitOptions, split
    from ..distribute.subject import subject_of_mesh

    mesh, _, options = _small(partition="contiguous")
    specs = resolve(map(simple_request, ("edges->cells", "cells->nodes")), mesh)
    made = split(subject_of_mesh(mesh, mesh, specs), 3, SplitOptions(cut), options)
    for part in range(3):
        made.builder.build(part)


def _files(format: str) -> None:
    """Write a mesh and read it back, and derive what loops need of it."""
    text = format == "gmsh-ascii"
    name = "gmsh" if text else format
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / f"mesh{io.FORMATS[name].extensions[0]}"
        # one long block of cells is read in another way than many short ones
        boxes = (generate("box", nx=n, ny=n, nz=0, type="triangle") for n in (12, 55))
        for mesh in (_small()[0], *boxes):
            options = {"binary": False} if text else {}
            io.write(mesh, path, format=name, drop=True, overwrite=True, **options)
            found = io.read(path, format=name)
    if found.cell_sets:
        plan_request_maps(found, [default_request(found)])


def _matrices() -> None:
    """Dofs, constraints, and the pattern and places of a matrix."""
    matrix = {"mat": "K", "rows": "cells->dofs2", "columns": "cells->dofs2", "access": "inc"}
    values = {"over": "cells", "args": [matrix | {"fixed": "boundary"}]}
    full, specs = plan_request_maps(_small()[0], [LoopRequest("matrix", values, "warm-up")])
    build_matrices(Numbering(full, full.sets), specs)


def _chains() -> None:
    """Tiles of a chain, and their local maps."""
    through = {"map": "edges->cells"}
    flux = [{"dat": "t", "access": "read"} | through, {"dat": "r", "access": "inc"} | through]
    loops = {"flux": {"over": "edges", "args": flux}}
    loops["step"] = {"over": "cells", "args": [{"dat": d, "access": "rw"} for d in ("t", "r")]}
    options = Options(method="none", partition="contiguous", block_size=SMALL)
    plan = prepare(_small()[0], loops, options).plan
    plans = [*plan.loops.values()]
    chain = number([one.loop for one in plans], plan.sizes, plan.maps)
    with_maps(cut_into_tiles(chain, plans, SMALL, Kept()), plan.maps, plan.sizes)


def _measure() -> None:
    """The moves of floats and doubles."""
    mesh, _, options = _small(partition="contiguous", method="none")
    args = [{"dat": a + t, "map": "edges->cells", "access": a, "dtype": t} for a, t in MOVES]
    made = prepare(
        mesh, [LoopRequest("moves", {"over": "edges", "args": args}, "warm-up")], options
    )
    measure(made.plan)


def _pictures() -> None:
    """Cells of a plane and of space by block."""
    from ..report.draw import draw_views, place
    from ..report.draw.paint import by_group

    for kind in ("delaunay2d", "delaunay3d"):
        mesh = generate(kind, cells=300)
        n = mesh.size("cells")
        for view in draw_views(place(mesh, "cells"), 100):
            by_group(view, np.arange(n, dtype=np.int32) % 2, 2)


def _small(**options: Any) -> tuple[Mesh, LoopSpec, Options]:
    """A square of triangles with its edges, a loop over these, and options."""
    random = np.random.default_rng(0)
    where, cells = _triangles(random, 30)
    ends = np.sort(cells[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2))
    edges, own, count = np.unique(ends, axis=0, return_inverse=True, return_counts=True)
    cell = np.argsort(own.ravel(), kind="stable") // 3
    first = (np.cumsum(count) - count)[count == 2]
    sets = ElementSet("nodes", len(where)), ElementSet("cells", len(cells), "triangle")
    maps = (
        SetMap("cells->nodes", "cells", "nodes", cells),
        SetMap("edges->cells", "edges", "cells", np.stack([cell[first], cell[first + 1]], axis=1)),
        SetMap("edges->nodes", "edges", "nodes", edges[count == 2]),
    )
    places = [Dat("coordinates", "nodes", where)]
    mesh = Mesh([*sets, ElementSet("edges", len(first))], maps, places)
    (spec,) = resolve([simple_request("edges->cells")], mesh)
    return mesh, spec, Options(block_size=SMALL, **options)


def _triangles(random: np.random.Generator, side: int) -> tuple[Float64s, Int32s]:
    """Nodes near a grid and shuffled triangles; scipy would take longer than most tasks."""
    node = random.permutation(side * side).astype(np.int32).reshape(side, side)
    where = np.empty((side * side, 2))
    where[node] = np.moveaxis(np.indices(node.shape), 0, -1) + 0.6 * random.random((side, side, 2))
    a, b, c, d = (node[k : side - 1 + k, j : side - 1 + j].ravel() for k in (0, 1) for j in (0, 1))
    turned = random.random(a.size) < 0.5
    low = np.where(turned, [a, b, c], [a, b, d])
    high = np.where(turned, [b, d, c], [a, d, c])
    return where, random.permutation(np.concatenate([low, high], axis=1).T)


# By the first word of a task.
_STAGES: dict[str, Callable[..., None]] = {
    one.__name__[1:]: one
    for one in (_order, _blocks, _repairs, _colours, _rows, _split, _matrices, _chains, _measure)
} | {"files": _files, "pictures": _pictures}
