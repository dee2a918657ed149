"""One random combination of mesh, loops and options: planned, proved twice, and run."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from random_meshes import random_mesh
from sum_loops import FACTORS, KERNELS

from meshprep.loops.options import Options
from meshprep.loops.requests import LoopRequest
from meshprep.mesh import Mesh
from meshprep.pipeline.steps import Prepared, prepare
from meshprep.registry.orders import ORDERS
from meshprep.registry.partitioners import PARTITIONERS as REGISTRY
from meshprep.topology import derivable, derive
from meshprep_runtime import LoopPlan, MeshprepError, ParLoop, Plan, Variant
from meshprep_runtime.plan.checks.verify import compare_maps, verify

METHODS = ORDERS.built_in
# The partitioner of the target twice as often as each other one.
PARTITIONERS = (None, None, *REGISTRY.built_in)
ACCESSES = ("read", "inc", "inc", "rw", "write")


@dataclass(frozen=True)
class Case:
    """What :func:`prepare` is asked for."""

    mesh: Mesh
    requests: tuple[LoopRequest, ...]
    options: Options
    keep_order: bool


def random_case(seed: int) -> Case:
    """The combination of this number: the same in every process."""
    rng = np.random.default_rng(seed)
    mesh = random_mesh(rng)
    names = [*mesh.maps, *derivable(mesh)]
    count = int(rng.integers(1, 5))
    requests = tuple(_request(rng, f"loop{i}", names, mesh) for i in range(count))
    lists = np.random.default_rng([seed, 1])
    requests = tuple(_with_partitioner(lists, request) for request in requests)
    options = Options(
        method=str(rng.choice(METHODS)),
        partition=PARTITIONERS[rng.integers(len(PARTITIONERS))],
        block_size=int(rng.choice([1, 2, 3, 5, 8, 16, 64])),
        target=str(rng.choice(["gpu", "gpu", "cpu"])),
        sort_by_colour=bool(rng.random() < 0.3),
        own_blocks=bool(lists.random() < 0.3),
        seed=int(rng.integers(5)),
        proof=False,
    )
    return Case(mesh, requests, options, bool(rng.random() < 0.2))


def _request(
    rng: np.random.Generator, name: str, maps: Sequence[str], mesh: Mesh
) -> LoopRequest:
    """A loop over a random set: mostly one increment, often several arguments, or none."""
    args: list[dict[str, Any]] = [{"dat": "v", "dtype": "i8"}]
    more: dict[str, Any] = {}
    if rng.random() < 0.3:
        more["block_size"] = int(rng.choice([2, 4, 7, 32]))
    if rng.random() < 0.2:
        more["target"] = str(rng.choice(["gpu", "cpu"]))
    if not maps or rng.random() < 0.05:
        over = str(rng.choice(list(mesh.sets)))
        return LoopRequest(name, {"over": over, "args": args, **more}, name)
    through = str(rng.choice(list(maps)))
    over = through.partition("->")[0]
    args.append({"dat": "sum", "map": through, "access": "inc", "dtype": "i8"})
    beside = [m for m in maps if m.startswith(f"{over}->")]
    for extra in range(int(rng.integers(0, 3)) if rng.random() < 0.4 else 0):
        another = {"dat": f"x{extra}", "map": str(rng.choice(beside)), "dtype": "f8"}
        args.append(
            another | {"access": str(rng.choice(ACCESSES)), "dim": int(rng.integers(1, 4))}
        )
    return LoopRequest(name, {"over": over, "args": args, **more}, name)


def _with_partitioner(rng: np.random.Generator, request: LoopRequest) -> LoopRequest:
    """Sometimes a partitioner of its own, so that blocks list their elements."""
    if rng.random() < 0.7:
        return request
    name = str(rng.choice(["blocks", "metis", "contiguous"]))
    return LoopRequest(request.name, {**request.values, "partition": name}, request.where)


def run_case(case: Case, strategies: Sequence[str] = ()) -> str:
    """Plan, prove in two ways and run; "right", or why the combination was refused.

    Raises
    ------
    AssertionError
        Where anything that came out is wrong.
    """
    try:
        made = prepare(case.mesh, case.requests, case.options, keep_order=case.keep_order)
    except MeshprepError as error:
        return one_line(error)
    check_plan(case.mesh, made)
    for request in case.requests:
        _check_sums(case.mesh, made.plan, request.name, strategies)
    return "right"


def one_line(error: MeshprepError, start: str = "") -> str:
    """The text of an error, which must be one line and begin so."""
    text = str(error)
    assert "\n" not in text
    assert text.startswith(start), text
    return text


def check_plan(mesh: Mesh, made: Prepared) -> None:
    """The plan is right by the proof, by the slow proof, and for both meshes."""
    plan = made.plan
    assert verify(plan) == []
    for loop_plan in plan.loops.values():
        for variant in loop_plan.variants.values():
            slow_proof(loop_plan, variant)
    assert compare_maps(plan, derive(mesh, plan.maps).maps) == []
    assert (mesh.content_hash(), made.mesh.content_hash()) == (
        plan.source_hash,
        plan.mesh_hash,
    )
    back = {name: plan.ordering[name].inverse for name in mesh.sets}
    assert compare_maps(plan, derive(made.mesh.renumber(back), plan.maps).maps) == []


def slow_proof(loop_plan: LoopPlan, variant: Variant) -> None:
    """Every property of a variant, one element at a time."""
    loop = loop_plan.loop
    ends = variant.block_offset.tolist()
    assert ends[0] == 0
    assert ends[-1] == loop_plan.sizes[loop.over]
    assert all(0 < stop - start <= variant.block_size for start, stop in pairwise(ends))
    colour_of = {}
    colours = pairwise(variant.block_colour_offset.tolist())
    for colour, (start, stop) in enumerate(colours):
        for b in variant.block_order[start:stop].tolist():
            assert b not in colour_of
            colour_of[b] = colour
    assert len(colour_of) == variant.n_blocks
    listed = variant.elements
    elements = list(range(ends[-1])) if listed is None else listed.tolist()
    assert sorted(elements) == list(range(ends[-1]))
    by_element: dict[tuple[int, int, str, int], int] = {}
    by_block: dict[tuple[int, str, int], int] = {}
    blocks_of: dict[tuple[str, int], set[int]] = {}
    for b, (start, stop) in enumerate(pairwise(ends)):
        touched: dict[str, set[int]] = {name: set() for name in variant.staging}
        for place in range(start, stop):
            e = elements[place]
            for name in loop.maps:
                m = loop_plan.maps[name]
                staging = variant.staging[m.to_set]
                base = int(staging.point_offset[b])
                for k, point in enumerate(m.table[e].tolist()):
                    touched[m.to_set].add(point)
                    assert (
                        staging.points[base + int(variant.local[name][k, place])] == point
                    )
                    if k in loop.conflict_columns.get(name, ()):
                        thread = (b, int(variant.thread_colour[place]), m.to_set, point)
                        assert by_element.setdefault(thread, e) == e
                        assert by_block.setdefault((colour_of[b], m.to_set, point), b) == b
        for to_set, points in touched.items():
            staging = variant.staging[to_set]
            low, high = staging.point_offset[b], staging.point_offset[b + 1]
            assert staging.points[low:high].tolist() == sorted(points)
            for point in points:
                blocks_of.setdefault((to_set, point), set()).add(b)
    for to_set, staging in variant.staging.items():
        alone = [len(blocks_of[to_set, p]) == 1 for p in staging.points.tolist()]
        assert staging.exclusive.tolist() == alone


def _check_sums(mesh: Mesh, plan: Plan, name: str, strategies: Sequence[str]) -> None:
    """A loop with one increment gives the sums of ``np.add.at`` in the numbering of the input."""
    loop_plan = plan[name]
    loop = loop_plan.loop
    if [a.name for a in loop.args] != ["v", "sum"]:
        return
    m = (
        derive(mesh, [loop.maps[0]]).map(loop.maps[0])
        if loop.maps[0] not in mesh.maps
        else None
    )
    m = m or mesh.map(loop.maps[0])
    if m.arity not in KERNELS or m.size != plan.sizes[loop.over]:
        return
    value = np.arange(1, m.size + 1)
    expected = np.zeros(plan.sizes[m.to_set], np.int64)
    for column, factor in zip(m.table.T, FACTORS, strict=False):
        np.add.at(expected, column, factor * value)
    for strategy in strategies:
        total = np.zeros_like(expected)
        run = ParLoop(KERNELS[m.arity], loop_plan, strategy=strategy)
        run(v=plan.ordering[loop.over].apply(value), sum=total)
        np.testing.assert_array_equal(plan.ordering[m.to_set].restore(total), expected)
