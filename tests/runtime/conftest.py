"""Plans made the slow and obvious way, one element at a time, for the tests of the runtime."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from meshprep_cuda_check.emulated import EmulatedDevice
from meshprep_runtime import (
    Access,
    Arg,
    Loop,
    LoopPlan,
    MeshprepError,
    Ordering,
    Plan,
    SetMap,
    Staging,
    Variant,
)
from meshprep_runtime.cpu.pool import Team
from meshprep_runtime.cuda.device import current, use
from meshprep_runtime.plan import ranges
from meshprep_runtime.plan.metrics import Metrics

# For the loops that tests of this folder share.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _several_threads(monkeypatch):
    """Small loops of tests run on several threads, too, as if one had taken a second for a call."""

    def always(team):
        team._took[0].append(1.0)
        return True

    monkeypatch.setattr(Team, "_takes_several", always)


@pytest.fixture(autouse=True)
def _several_ranges(monkeypatch):
    """Small sets of tests are cut into several ranges, which wait for each other."""
    monkeypatch.setattr(ranges, "LEAST", 4)


def first_free(taken: set[int]) -> int:
    colour = 0
    while colour in taken:
        colour += 1
    return colour


def written_points(
    loop: Loop, maps: Mapping[str, SetMap], element: int
) -> set[tuple[str, int]]:
    """The (to-set, point) pairs that an element writes through maps."""
    return {
        (maps[name].to_set, int(maps[name].table[element, k]))
        for name, columns in loop.conflict_columns.items()
        for k in columns
    }


def colour(things: Sequence[set]) -> list[int]:
    """Greedy: things that share a member get different colours."""
    colours: list[int] = []
    for thing in things:
        taken = {c for other, c in zip(things, colours, strict=False) if other & thing}
        colours.append(first_free(taken))
    return colours


def slow_staging(maps: Sequence[SetMap], blocks: list[range]) -> Staging:
    lists = [sorted({int(p) for m in maps for p in m.table[b].ravel()}) for b in blocks]
    points = [p for points in lists for p in points]
    return Staging(
        np.cumsum([0, *(len(points) for points in lists)], dtype=np.int64),
        np.array(points, dtype=np.int32),
        np.array([points.count(p) == 1 for p in points], dtype=np.bool_),
    )


def listed(
    loop: Loop, maps: Mapping[str, SetMap], n: int, block_size: int, elements: np.ndarray
) -> Variant:
    """Blocks that list their elements: the blocks of maps whose rows stand in that order."""
    rows = {name: replace(m, table=m.table[elements]) for name, m in maps.items()}
    variant = slow_variant(loop, rows, n, block_size)
    return replace(variant, elements=np.array(elements, dtype=np.int32))


def slow_variant(
    loop: Loop, maps: Mapping[str, SetMap], n: int, block_size: int, target: str = "gpu"
) -> Variant:
    blocks = [range(i, min(i + block_size, n)) for i in range(0, n, block_size)]
    written = [written_points(loop, maps, e) for e in range(n)]
    thread = [colour([written[e] for e in b]) for b in blocks]
    block_colour = colour([set().union(*(written[e] for e in b)) for b in blocks])
    n_colours = max(block_colour, default=-1) + 1
    order = [
        b for c in range(n_colours) for b in range(len(blocks)) if block_colour[b] == c
    ]
    sizes = [block_colour.count(c) for c in range(n_colours)]
    staging, local = {}, {}
    for name in loop.maps:
        m = maps[name]
        into = [maps[other] for other in loop.maps if maps[other].to_set == m.to_set]
        staging[m.to_set] = s = slow_staging(into, blocks)
        local[name] = np.zeros((m.arity, n), dtype=np.uint16)
        for b, elements in enumerate(blocks):
            points = list(s.points[s.point_offset[b] : s.point_offset[b + 1]])
            for e in elements:
                local[name][:, e] = [points.index(p) for p in m.table[e]]
    return Variant(
        name=f"s{block_size}",
        block_size=block_size,
        target=target,
        partitioner="contiguous",
        sorted_by_colour=False,
        block_offset=np.array([0, *(b.stop for b in blocks)], dtype=np.int64),
        block_colour_offset=np.cumsum([0, *sizes], dtype=np.int64),
        block_order=np.array(order, dtype=np.int32),
        thread_colour=np.array([c for t in thread for c in t], dtype=np.uint8),
        thread_colours=np.array([max(t) + 1 for t in thread], dtype=np.int32),
        staging=staging,
        local=local,
    )


def make_plan(
    sizes: Mapping[str, int],
    tables: Mapping[str, np.ndarray],
    loops: Sequence[Loop],
    block_sizes: Sequence[int] = (4,),
    seed: int = 0,
    *,
    lists: bool = False,
) -> Plan:
    """``lists``: blocks of elements by chance, instead of runs."""
    rng = np.random.default_rng(seed)
    maps = {name: SetMap(name, *name.split("->"), table) for name, table in tables.items()}
    plans = {}
    for loop in loops:
        own = {name: maps[name] for name in loop.maps}
        n = sizes[loop.over]
        variants = [
            listed(loop, own, n, size, rng.permutation(n))
            if lists
            else slow_variant(loop, own, n, size)
            for size in block_sizes
        ]
        named = {v.name: v for v in variants}
        plans[loop.name] = LoopPlan(loop, sizes, own, named, next(iter(named), ""))
    ordering = {
        name: Ordering.from_new_to_old(rng.permutation(size), name)
        for name, size in sizes.items()
    }
    return Plan(
        sizes=sizes,
        ordering=ordering,
        maps=maps,
        loops=plans,
        source_hash="12ab",
        mesh_hash="34cd",
        metrics=Metrics(seconds={"all": 3.5}, other={"of a later version": [1, 2]}),
        options={"seed": seed},
        about={"creator": "tests"},
        tags={"cells": {"physical": np.arange(sizes["cells"], dtype=np.int64) - 1}}
        if "cells" in sizes
        else {},
    )


@dataclass(frozen=True)
class Quads:
    """A grid of quads: inner edges with their two cells and two nodes."""

    sizes: dict[str, int]
    tables: dict[str, np.ndarray]


def quads(nx: int, ny: int) -> Quads:
    cell = np.arange(nx * ny).reshape(ny, nx)
    node = np.arange((nx + 1) * (ny + 1)).reshape(ny + 1, nx + 1)
    cells = np.concatenate(
        [
            np.column_stack([cell[:, :-1].ravel(), cell[:, 1:].ravel()]),
            np.column_stack([cell[:-1].ravel(), cell[1:].ravel()]),
        ]
    )
    nodes = np.concatenate(
        [
            np.column_stack([node[:-1, 1:-1].ravel(), node[1:, 1:-1].ravel()]),
            np.column_stack([node[1:-1, :-1].ravel(), node[1:-1, 1:].ravel()]),
        ]
    )
    # By cell, so that blocks of consecutive edges lie close together.
    order = np.argsort(cells[:, 0], kind="stable")
    sizes = {"edges": len(order), "cells": cell.size, "nodes": node.size}
    return Quads(sizes, {"edges->nodes": nodes[order], "edges->cells": cells[order]})


RES_CALC = Loop(
    "res_calc",
    "edges",
    (
        Arg("x", Access.READ, 2, "f8", "edges->nodes", (0, 1)),
        Arg("q", Access.READ, 4, "f8", "edges->cells", (0, 1)),
        Arg("adt", Access.READ, 1, "f8", "edges->cells", (0, 1)),
        Arg("res", Access.INC, 4, "f8", "edges->cells", (0, 1)),
    ),
)


@pytest.fixture(scope="session")
def slow() -> SimpleNamespace:
    """The slow builders: ``plan``, ``variant``, ``listed``, ``quads``; and ``res_calc``."""
    return SimpleNamespace(
        plan=make_plan, variant=slow_variant, listed=listed, quads=quads, res_calc=RES_CALC
    )


@pytest.fixture(scope="session")
def airfoil() -> Plan:
    """24 quads, 38 inner edges, one loop in blocks of 8 and of 16."""
    grid = quads(6, 4)
    return make_plan(grid.sizes, grid.tables, [RES_CALC], (8, 16))


@pytest.fixture(scope="session")
def plan(slow) -> LoopPlan:
    """The loop of cuda_loops: eleven blocks of 8 elements and one of 2; several block colours."""
    from cuda_loops import random_plan

    made = random_plan(slow, 90, 60, 8, 5)
    assert made.variant().n_block_colours > 1
    return made


@pytest.fixture(scope="module")
def gpu():
    """The current GPU: see test_on_gpu.py."""
    wanted = os.environ.get("MESHPREP_GPU", "")
    if wanted == "emulated":
        with use(EmulatedDevice()) as made:
            yield made
        return
    try:
        found = current()
    except MeshprepError as error:
        if wanted == "required":
            raise
        pytest.skip(str(error))
    yield found


@pytest.fixture
def device():
    """What stands for a GPU, for all loops of a test."""
    with use(EmulatedDevice()) as made:
        yield made


@pytest.fixture(scope="module")
def flow():
    rng = np.random.default_rng(7)
    shapes = {"x": (35, 2), "q": (24, 4), "adt": (24,), "res": (24, 4)}
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}
