"""The five kernels of [S19] at its sizes: meshes, plans, values, and the sums to expect.

What to expect is computed by NumPy in double precision from the numbering of the input mesh: the
kernel itself runs on whole arrays in place of rows, and ``bincount`` adds up. So numbering,
blocks, colours, staging and generated code are all left out of it.
"""

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from common import EXAMPLES
from numpy.typing import NDArray

from meshprep import Options, prepare
from meshprep.io.generate import generate
from meshprep.loops.request_maps import plan_request_maps
from meshprep.loops.requests import LoopRequest, read_requests
from meshprep.mesh import Mesh
from meshprep.staging.build_variant import baseline_variant
from meshprep.staging.recut import with_loop, with_sizes
from meshprep_runtime import Access, LoopPlan, Ordering, Plan

# Elements that NumPy works on at a time.
CHUNK = 200_000
ORDERS = ("ours", "metis", "input")
Arrays = dict[str, NDArray]


@dataclass(frozen=True)
class Case:
    """A kernel, the mesh it runs on, the block size of the paper and what is aimed at.

    ``aim`` is the share of the device's copy bandwidth. ``disorder`` says that the mesh is
    generated in no order, so that what others would run is the order that GPS leaves.
    """

    program: str
    loop: str
    mesh: str
    size: dict[str, int]
    block_size: int
    aim: float
    mesh_options: dict[str, str] = field(default_factory=dict)
    disorder: bool = False

    @cached_property
    def kernel(self) -> Callable[..., None]:
        """The Python function."""
        found: Callable[..., None] = getattr(
            import_module(f"kernels.{self.program}"), self.loop
        )
        return found

    @property
    def request(self) -> LoopRequest:
        """The loop of the example's file."""
        found = read_requests(EXAMPLES / "kernels" / f"{self.program}.toml")
        return next(r for r in found if r.name == self.loop)


CASES = (
    Case("airfoil", "res_calc", "airfoil", {"i": 800, "j": 1200}, 448, 0.60),
    Case(
        *("volna", "space_discretization", "delaunay2d", {"cells": 2_400_000}, 320, 0.65),
        disorder=True,
    ),
    Case(
        *("bookleaf", "getacc_scatter", "box", {"nx": 2000, "ny": 2000}, 256, 0.85),
        mesh_options={"type": "quad"},
    ),
    Case("lulesh", "integrate_stress", "box", {"nx": 170, "ny": 170, "nz": 170}, 320, 0.50),
    Case(
        "miniaero", "compute_face_flux", "box", {"nx": 128, "ny": 128, "nz": 128}, 128, 0.45
    ),
)


def mesh_of(case: Case, scale: float) -> Mesh:
    """The mesh with about this share of the elements."""
    factor = scale ** (1 / len(case.size))
    size = {name: max(4, round(count * factor)) for name, count in case.size.items()}
    return generate(case.mesh, **size, **case.mesh_options)


def plan_of(case: Case, mesh: Mesh, order: str, sizes: tuple[int, ...] = ()) -> Plan:
    """Our blocks (cut to further sizes, too), those of METIS, or blocks of the input order."""
    if order == "input" and not case.disorder:
        return _as_it_is(case, mesh)
    ways: dict[str, dict[str, Any]] = {
        "ours": {},
        "metis": {"partition": "metis"},
        "input": {"partition": "contiguous", "target": "cpu"},
    }
    options = Options(block_size=case.block_size, **ways[order])
    plan = prepare(mesh, [case.request], options).plan
    widened, _ = with_sizes(plan[case.loop], sizes)
    return with_loop(plan, widened)


def _as_it_is(case: Case, mesh: Mesh) -> Plan:
    full, (spec,) = plan_request_maps(mesh, [case.request])
    sizes = {name: s.size for name, s in full.sets.items()}
    maps = {name: full.map(name) for name in spec.loop.maps}
    variant = baseline_variant(spec.loop, maps, sizes, case.block_size)
    loop = LoopPlan(spec.loop, sizes, maps, {variant.name: variant}, variant.name)
    ordering = {name: Ordering.identity(n) for name, n in sizes.items()}
    text = mesh.content_hash()
    return Plan(sizes, ordering, maps, {case.loop: loop}, text, text)


def input_maps(plan: Plan) -> dict[str, NDArray]:
    """The maps of a plan in the numbering of the input mesh."""
    found = {}
    for name, m in plan.maps.items():
        rows, points = plan.ordering[m.from_set], plan.ordering[m.to_set]
        found[name] = points.new_to_old[m.table[rows.old_to_new]]
    return found


def values_of(plan: LoopPlan, seed: int = 1) -> Arrays:
    """Values that every kernel can work on, in the numbering of the input mesh."""
    rng = np.random.default_rng(seed)
    made: Arrays = {}
    for arg in plan.loop.args:
        rows = plan.loop.over if arg.map is None else plan.maps[arg.map].to_set
        values = np.zeros((plan.sizes[rows], arg.dim), arg.dtype)
        if arg.access is Access.READ:
            values = (0.5 + rng.random(values.shape)).astype(arg.dtype)
        made[arg.name] = values
    if "gradient" in made:
        # So flat that no pressure at a face falls below zero.
        made["gradient"] *= 0.01
    if "corner_mass" in made:
        # A corner without a mass takes another way through the kernel.
        made["corner_mass"][::3, 1] = 0.0
    return made


def expected(
    case: Case, plan: LoopPlan, tables: Mapping[str, NDArray], values: Arrays
) -> Arrays:
    """What the written dats are after one call from zero, and ``NAME scale``, what rounds there.

    ``tables`` and ``values`` are in the numbering of the input mesh. The scale is the largest sum
    of absolute increments of a point.
    """
    kernel = whole(case.kernel)
    n, loop = plan.sizes[plan.loop.over], plan.loop
    written = {a.name: a for a in loop.args if a.access is not Access.READ}
    sums = {name: np.zeros(values[name].shape) for name in written}
    sizes = {name: np.zeros(values[name].shape) for name in written}
    for start in range(0, n, CHUNK):
        at = slice(start, min(start + CHUNK, n))
        rows: list[NDArray] = []
        places: list[tuple[str, Any]] = []
        for arg in loop.args:
            for column in arg.index or (None,):
                place = at if column is None else tables[str(arg.map)][at, column]
                places.append((arg.name, place))
                given = values[arg.name][place].T.astype(float)
                rows.append(np.zeros_like(given) if arg.name in written else given)
        kernel(*rows)
        for (name, place), row in zip(places, rows, strict=True):
            if name in written:
                _add(sums[name], place, row)
                _add(sizes[name], place, np.abs(row))
    scales = {f"{name} scale": np.abs(s).max() for name, s in sizes.items()}
    return sums | scales


def _add(total: NDArray, place: Any, row: NDArray) -> None:
    if isinstance(place, slice):
        total[place] += row.T
        return
    # Points of a chunk lie close together: only those between the first and the last are added to.
    low, high = int(place.min()), int(place.max()) + 1
    for k, part in enumerate(row):
        total[low:high, k] += np.bincount(place - low, part, high - low)


def whole(function: Callable[..., None]) -> Callable[..., None]:
    """A kernel that takes arrays of ``(dim, n)`` for rows: its roots and helpers are NumPy's."""
    if function.__name__ == "give":
        return _give
    scope = dict(function.__globals__)
    for name in function.__code__.co_names:
        helper = scope.get(name)
        if isinstance(helper, types.FunctionType):
            scope[name] = whole(helper)
        elif name == "sqrt":
            scope[name] = np.sqrt
    return types.FunctionType(function.__code__, scope, function.__name__)


def _give(
    node: NDArray, i: int, density: NDArray, corner_mass: NDArray, corner_area: NDArray,
    force_x: NDArray, force_y: NDArray,
) -> None:  # fmt: skip
    """BookLeaf's helper, whose condition whole arrays cannot take."""
    none = corner_mass[i] <= 0.0
    node[0] += corner_area[i]
    node[1] += np.where(none, density[0] * corner_area[i], corner_mass[i])
    node[2] += force_x[i]
    node[3] += force_y[i]
