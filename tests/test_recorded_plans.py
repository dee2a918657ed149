"""Plans are what they were, bit for bit: digests of every array, recorded once.

A kernel may be rewritten to be compiled or to run faster, but not to give another plan. After a
change that is meant to give other plans: ``python tests/test_recorded_plans.py``.
"""

import hashlib
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from meshprep.io.generate import generate
from meshprep.mesh import ElementSet, Mesh, SetMap
from meshprep.pipeline.steps import Options, prepare

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
        f"shuffled {kind}": ("box", {"nx": 20, "ny": 20, "nz": 0, "type": kind, "shuffle": True})
        for kind in ("triangle", "quad")
    },
    **{
        f"shuffled {kind}": ("box", {"nx": 7, "ny": 7, "nz": 7, "type": kind, "shuffle": True})
        for kind in ("tetra", "hexahedron", "wedge", "pyramid")
    },
}
METHODS = ("gps", "rcm", "sloan", "hilbert", "morton", "rcb", "none")
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
        found[f"{mesh}, target cpu"] = (mesh, [], {"target": "cpu", "block_size": 128}, False)
        found[f"{mesh}, kept"] = (mesh, [], small | {"sort_by_colour": True}, True)
    for mesh in ONE_TYPE:
        for method in METHODS:
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
        for shape in ("line", "rectangle"):
            given = {"partition": "structured", "partition_options": {"shape": shape}}
            found[f"{mesh}, structured, {shape}"] = (mesh, [], small | given, False)
    for mesh in ("no places", "bytes"):
        found[mesh] = (mesh, ["e->p"], small, False)
        found[f"{mesh}, metis"] = (mesh, ["e->p"], small | {"partition": "metis"}, False)
    return found


def digest(plan):
    """Every array of a plan, by name, as one digest."""
    arrays = {f"order of {name}": o.new_to_old for name, o in plan.ordering.items()}
    arrays |= {f"map {name}": m.table for name, m in plan.maps.items()}
    for loop in plan.loops.values():
        v = loop.variant()
        own = {"offset": v.block_offset, "order": v.block_order, "colours": v.thread_colours}
        own |= {"block colours": v.block_colour_offset, "colour": v.thread_colour}
        own |= {f"local {name}": table for name, table in v.local.items()}
        for name, s in v.staging.items():
            own |= {f"{name} offset": s.point_offset, f"{name} points": s.points}
            own |= {f"{name} exclusive": s.exclusive}
        arrays |= {f"{loop.loop.name} {name}": values for name, values in own.items()}
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
    # A map without coordinates; for "bytes" with points named twice, and one that many name.
    random = np.random.default_rng(7)
    where = np.sort(random.integers(0, 700, (1500, 3)), axis=0)
    table = (where + random.integers(0, 9, where.shape)).astype(np.int32)
    if name == "bytes":
        table[::7, 2] = table[::7, 0]
        table[::3, 1] = 350
    table = table[random.permutation(len(table))]
    return Mesh([ElementSet("p", 709), ElementSet("e", 1500)], [SetMap("e->p", "e", "p", table)])


@pytest.mark.parametrize("name", cases())
def test_the_plan_is_the_recorded_one(name):
    assert digest(plan_of(*cases()[name])) == json.loads(RECORD.read_text())[name]


if __name__ == "__main__":
    found = {name: digest(plan_of(*case)) for name, case in cases().items()}
    RECORD.write_text(json.dumps(found, indent=1) + "\n")
