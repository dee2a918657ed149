"""Plans, splits and generated meshes are what they were, bit for bit: digests recorded once.

A last digit that differs seldom changes a plan, so what decides about one has digests of its own:
places, metrics, directions, draws, schedules.

A kernel may be rewritten to be compiled or to run faster, but not to give another plan. After a
change that is meant to give other plans: ``python tests/test_recorded_plans.py``. With ``--check``
the same command makes those that test_processors.py asks for, and prints the names of the wrong
ones.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from effort import some

from meshprep.distribute.job.split import SplitOptions, split
from meshprep.distribute.subject import subject_of_mesh
from meshprep.io.generate import generate
from meshprep.kernels import arithmetic
from meshprep.loops.request_maps import plan_request_maps
from meshprep.mesh import Dat, ElementSet, Mesh, SetMap
from meshprep.mesh.geometry import mean_of_rows
from meshprep.partitioning.connectivity import distinct_rows
from meshprep.partitioning.multilevel.coarsening.levels import (
    coarsen,
    element_level,
    stand_in_places,
)
from meshprep.partitioning.multilevel.initial.bisection import bisect, point_positions
from meshprep.partitioning.multilevel.initial.geometry import rotated
from meshprep.partitioning.multilevel.refinement.annealing import phases
from meshprep.partitioning.multilevel.refinement.centroids import (
    block_metrics,
    squared_radius,
)
from meshprep.partitioning.multilevel.refinement.sweep import acceptance_thresholds
from meshprep.partitioning.multilevel.tuning import SearchTuning
from meshprep.partitioning.neighbourhood import facet_graph
from meshprep.pipeline.steps import Options, prepare
from meshprep.registry.orders import ORDERS
from meshprep_runtime.types.maps import read_only

RECORD = Path(__file__).with_name("recorded_plans.json")

MESHES = {
    "triangles": ("delaunay2d", {"cells": 1200}),
    "tetrahedra": ("delaunay3d", {"cells": 900}),
    "large": ("delaunay2d", {"cells": 32_000}),
    "grid": ("box", {"nx": 24, "ny": 24, "nz": 0, "type": "quad"}),
    "bricks": ("box", {"nx": 8, "ny": 8, "nz": 8, "type": "hexahedron"}),
    "mixed2d": ("mixed2d", {"nx": 20, "ny": 20, "shuffle": True}),
    "mixed3d": ("mixed3d", {"nx": 6, "ny": 6, "nz": 6, "shuffle": True}),
    "airfoil": ("airfoil", {"cells": 1200, "shuffle": True}),
    **{
        f"shuffled {kind}": (
            "box",
            {"nx": 20, "ny": 20, "nz": 0, "type": kind, "shuffle": True},
        )
        for kind in ("triangle", "quad")
    },
    **{
        f"shuffled {kind}": (
            "box",
            {"nx": 7, "ny": 7, "nz": 7, "type": kind, "shuffle": True},
        )
        for kind in ("tetra", "hexahedron", "wedge", "pyramid")
    },
}
# Meshes that look the same from several sides, so that nothing but a rule decides between these.
SYMMETRIC = ("fan", "fan, no places", "ring", "ring, no places")
ONE_TYPE = ("triangles", "tetrahedra", "shuffled hexahedron", "airfoil")
BLOCKS = {
    "fast": {"effort": "fast"},
    "strong": {"effort": "strong"},
    "staged bytes": {"staged_bytes": 1400},
}


def cases():
    """Name -> (mesh, loops, options, whether the mesh keeps its order)."""
    small = {"block_size": 64}
    found = {}
    for mesh in MESHES:
        found[mesh] = (mesh, [], small, False)
        found[f"{mesh}, target cpu"] = (
            mesh,
            [],
            {"target": "cpu", "block_size": 128},
            False,
        )
        found[f"{mesh}, kept"] = (mesh, [], small | {"sort_by_colour": True}, True)
    for mesh in ONE_TYPE:
        for method in ORDERS.built_in:
            for target in ("gpu", "cpu"):
                options = {"method": method, "target": target} | small
                found[f"{mesh}, {method}, {target}"] = (mesh, [], options, False)
        for name, given in BLOCKS.items():
            options = small | {"partition": "blocks", "partition_options": given, "seed": 5}
            found[f"{mesh}, blocks, {name}"] = (mesh, [], options, False)
        for name in ("metis", "contiguous"):
            options = small | {"partition": name, "sort_by_colour": True}
            found[f"{mesh}, {name}, sorted"] = (mesh, [], options, False)
        several = ["cells->nodes", "edges->nodes"]
        found[f"{mesh}, several loops"] = (mesh, several, small, False)
    for mesh in ("grid", "bricks"):
        found[f"{mesh}, cells->nodes"] = (mesh, ["cells->nodes"], small, False)
    for mesh in ("no places", "bytes"):
        found[mesh] = (mesh, ["e->p"], small, False)
        found[f"{mesh}, metis"] = (mesh, ["e->p"], small | {"partition": "metis"}, False)
    for mesh in SYMMETRIC:
        for target in ("gpu", "cpu"):
            found[f"{mesh}, {target}"] = (
                mesh,
                ["e->nodes"],
                small | {"target": target},
                False,
            )
        contiguous = small | {"partition": "contiguous"}
        found[f"{mesh}, contiguous"] = (mesh, ["e->nodes"], contiguous, False)
    for mesh in ("triangles", "tetrahedra", "bricks"):
        found[f"{mesh}, auto"] = (mesh, [], small | {"method": "auto"}, False)
        found[f"{mesh}, second order"] = (mesh, ["cells->dofs2"], small, False)
        found[f"{mesh}, long"] = (mesh, [], small | {"effort": "4.5"}, False)
    return found


def splits():
    """Name -> (mesh, loops, parts, how to split)."""
    found = {}
    for mesh in ("triangles", "tetrahedra", "grid", "bricks"):
        for cut in ("annealed", "refined", "rcb", "curve"):
            how = SplitOptions(cut, increments="auto")
            found[f"split {mesh}, {cut}"] = (mesh, ["cells->nodes"], 5, how)
    for mesh in (*SYMMETRIC, "no places", "bytes"):
        loop = "e->nodes" if mesh in SYMMETRIC else "e->p"
        how = SplitOptions("annealed", weights=(0.4, 0.3, 0.2, 0.1))
        found[f"split {mesh}, unequal"] = (mesh, [loop], 4, how)
    return found


def numbers():
    """Name -> a function that gives arrays of what decides."""
    found = {"arithmetic": _arithmetic, "schedules": _schedules}
    for mesh in (*SYMMETRIC, "triangles", "tetrahedra", "no places"):
        found[f"places of {mesh}"] = partial(_places, mesh)
    for mesh in ("fan", "ring", "triangles", "tetrahedra", "bricks"):
        found[f"metrics of {mesh}"] = partial(_metrics, mesh)
    return {f"numbers: {name}": function for name, function in found.items()}


def _arithmetic():
    random = np.random.default_rng(11)
    x, roots = random.random(2000).tolist(), random.random((40, 6, 6)) - 0.5
    squares = roots[:, :, None, :] * roots[:, None, :, :]
    moments = sum(squares[..., k] for k in range(6))
    yield "logarithms", [arithmetic.log(100.0 * a) for a in x]
    yield "exponentials", [arithmetic.exp(20.0 * a - 10.0) for a in x]
    yield "powers", [arithmetic.power(100.0 * a, b) for a, b in pairwise(x)]
    turns = [arithmetic.cosine_and_sine(3.0 * a - 1.5) for a in x]
    yield "angles", turns
    yield "half angles", [arithmetic.half_angle(*turn) for turn in turns]
    yield "draws", acceptance_thresholds()
    yield "frames", [rotated(3, a) for a in x]
    yield "random frames", [arithmetic.random_frame(k, 3) for k in range(99)]
    yield "axes", [arithmetic.principal_axes(m) for m in moments]
    yield "inverses", arithmetic.inverses(np.ascontiguousarray(moments[:, :3, :3]))


def _schedules():
    """Sweeps and temperatures of all levels of two meshes, in a short and in a long search."""
    for mesh, d in (("triangles", 2), ("tetrahedra", 3)):
        table, graph, where = _elements(mesh)
        levels = [element_level(table, graph, where)]
        for size in (4, 16):
            levels.append(coarsen(levels[-1], int(table.max()) + 1, size)[0])
        for effort in (0.3, *(1 + k / 7 for k in range(90))):
            made = [phase for _, phase in phases(levels, d, SearchTuning.of(effort), 1111)]
            yield f"{mesh} {effort}", [(p.sweeps, *p.temperature) for p in made]


def _places(mesh):
    yield "stand in", stand_in_places(_elements(mesh)[1])


def _metrics(mesh):
    table, _, where = _elements(mesh)
    n, block = len(table), (np.arange(len(table)) // 50).astype(np.int32)
    position = point_positions(table, int(table.max()) + 1, where)
    own = read_only(np.arange(n, dtype=np.int32)), read_only(block)
    metric = block_metrics(table, position, where, *own, int(block[-1]) + 1, 1e-6)
    yield "metric", metric
    yield "radius", squared_radius(where, read_only(np.ones(n, np.int32)), own[1], metric)
    yield "blocks", bisect(table, position, where, rotated(where.shape[1], 0.4), n // 30)


def _elements(mesh):
    """The table of a mesh, the neighbours of its elements, and their places where it has any."""
    made = _mesh(mesh)
    m = made.maps["cells->nodes" if mesh in MESHES else next(iter(made.maps))]
    table = read_only(distinct_rows(m.table))
    where = (
        None
        if made.coordinates is None
        else read_only(mean_of_rows(made.coordinates, m.table))
    )
    return table, facet_graph(table, made.size(m.to_set)), where


def names():
    """Everything that is recorded."""
    return [*cases(), *splits(), *numbers(), *(f"mesh {name}" for name in MESHES)]


def elsewhere():
    """What is made under the settings of other processors, too: all but METIS's, and large ones."""
    left_out = (
        "metis",
        "shuffled",
        "mixed",
        "kept",
        "target cpu",
        "sorted",
        "large,",
        "airfoil,",
    )
    of_meshes = {f"mesh {name}" for name in MESHES}
    return [n for n in names() if n in of_meshes or not any(part in n for part in left_out)]


def digest_of(name):
    if name.startswith("mesh "):
        mesh = _mesh(name.removeprefix("mesh "))
        arrays = {f"dat {d.name} {d.set}": d.values for d in mesh.dats}
        return _digest(arrays | {f"map {m.name}": m.table for m in mesh.maps.values()})
    if name in numbers():
        return _digest({key: np.asarray(values) for key, values in numbers()[name]()})
    if name in splits():
        return _digest(dict(_split_arrays(*splits()[name])))
    return digest(plan_of(*cases()[name]))


def _split_arrays(mesh, loops, parts, how) -> Iterator[tuple[str, np.ndarray]]:
    full, specs = plan_request_maps(_mesh(mesh), loops)
    subject = subject_of_mesh(_mesh(mesh), full, specs)
    made = split(subject, parts, how, Options(block_size=64)).builder
    yield from made.batch(range(parts)).arrays.items()


def digest(plan):
    """Every array of a plan, by name, as one digest."""
    arrays = {f"order of {name}": o.new_to_old for name, o in plan.ordering.items()}
    arrays |= {f"map {name}": m.table for name, m in plan.maps.items()}
    for loop in plan.loops.values():
        v = loop.variant()
        own = {
            "offset": v.block_offset,
            "order": v.block_order,
            "colours": v.thread_colours,
        }
        own |= {"block colours": v.block_colour_offset, "colour": v.thread_colour}
        own |= {f"local {name}": table for name, table in v.local.items()}
        for name, s in v.staging.items():
            own |= {f"{name} offset": s.point_offset, f"{name} points": s.points}
            own |= {f"{name} exclusive": s.exclusive}
        own |= {f"ranges {name}": values for name, values in vars(loop.ranges).items()}
        arrays |= {f"{loop.loop.name} {name}": values for name, values in own.items()}
    return _digest(arrays)


def _digest(arrays):
    found = hashlib.sha256()
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {values.dtype} {values.shape}".encode())
        found.update(values.tobytes())
    return found.hexdigest()[:16]


def plan_of(mesh, loops, options, keep_order):
    return prepare(_mesh(mesh), loops, Options(**options), keep_order=keep_order).plan


@cache
def _mesh(name):
    if name in MESHES:
        kind, options = MESHES[name]
        return generate(kind, seed=3, **options)
    if name in SYMMETRIC:
        return _symmetric(name.startswith("ring"), places="no places" not in name)
    # A map without coordinates; for "bytes" with points named twice, and one that many name.
    random = np.random.default_rng(7)
    where = np.sort(random.integers(0, 700, (1500, 3)), axis=0)
    table = (where + random.integers(0, 9, where.shape)).astype(np.int32)
    if name == "bytes":
        table[::7, 2] = table[::7, 0]
        table[::3, 1] = 350
    table = table[random.permutation(len(table))]
    return Mesh(
        [ElementSet("p", 709), ElementSet("e", 1500)], [SetMap("e->p", "e", "p", table)]
    )


def _symmetric(ring, *, places):
    """Quads around a hole, or triangles around a point: each quarter is the one before, turned."""
    # places on a quarter of a circle in fractions, whose last digits are the same everywhere
    half = np.arange(60) / 60
    quarter = np.stack([1 - half**2, 2 * half], axis=1) / (1 + half**2)[:, None]
    turned = np.stack([-quarter[:, 1], quarter[:, 0]], axis=1)
    circle = np.concatenate([quarter, turned, -quarter, -turned])
    here = np.arange(len(circle))
    after = np.roll(here, -1)
    if ring:
        rows = [
            np.stack([here, after, after + 240, here + 240], 1) + 240 * k for k in range(6)
        ]
        where = np.concatenate([(8 + k) * circle for k in range(7)])
    else:
        rows, where = (
            [np.stack([here, after, 0 * here + 240], 1)],
            np.append(circle, [[0, 0]], 0),
        )
    table = np.concatenate(rows).astype(np.int32)
    sets = [ElementSet("nodes", len(where)), ElementSet("e", len(table))]
    dats = [Dat("coordinates", "nodes", where)] if places else []
    return Mesh(sets, [SetMap("e->nodes", "e", "nodes", table)], dats)


@pytest.mark.parametrize("name", some(names(), names()[::4]))
def test_what_is_made_is_what_was_recorded(name):
    assert digest_of(name) == json.loads(RECORD.read_text())[name]


if __name__ == "__main__":
    if "--check" in sys.argv:
        known = json.loads(RECORD.read_text())
        wrong = [name for name in elsewhere() if digest_of(name) != known[name]]
        print(json.dumps({"made": len(elsewhere()), "wrong": wrong}))  # noqa: T201
    else:
        found = {name: digest_of(name) for name in names()}
        RECORD.write_text(json.dumps(found, indent=1) + "\n")
