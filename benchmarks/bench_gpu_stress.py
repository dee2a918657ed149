"""LULESH's integrate_stress on a GPU: shapes against blocks, and texts of fewer registers.

    python benchmarks/bench_gpu_stress.py [--side N]
    python benchmarks/bench_gpu_stress.py --emulate --side 8 [--arch sm_90]

The second runs under g++ and shows no times; with ``--arch`` it compiles for a GPU and shows the
registers.

Two tables, of a grid of ``side``^3 hexahedra in one numbering, that of our blocks. The kernels: in
our blocks the generated texts, with one and two elements a thread, and with 80 registers at most;
then texts of this file that hold fewer values at a time. ``components`` computes the force along x,
then along y and z: it loads coordinates twice and holds a third of the forces. ``faces`` computes a
face at a time when the thread's colour is up, and adds at once: it holds no forces. ``points`` has
a thread for each point, which computes the three faces of each of its elements again: it holds the
force of one point, and needs no colours. The shapes: lines, rectangles and bricks by hand [S19
3.1.6] beside our blocks, METIS's and the order as generated, by the best generated strategies.
Every sum is compared with that of a CPU; commits are by atomics, launches are replayed as a graph.
"""

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from bench_gpu import COPY_BYTES, copy_bandwidth, useful_bytes
from common import table
from gpu_cases import CASES, values_of
from gpu_timing import check_off, device_or_exit, device_seconds, report_gpu, taken

import meshprep
from meshprep.io.generate import generate
from meshprep.mesh.cells import shape_of
from meshprep.mesh.geometry import centroids
from meshprep_cuda_check.emulated import EmulatedDevice
from meshprep_runtime import LoopPlan, ParLoop, Plan
from meshprep_runtime.cuda import CudaProgram, program
from meshprep_runtime.cuda.arrays import DeviceBinder
from meshprep_runtime.cuda.device import Device, use
from meshprep_runtime.cuda.executor import Launcher
from meshprep_runtime.cuda.occupancy import by_registers
from meshprep_runtime.cuda.source.parameters import Parameter
from meshprep_runtime.matrix.cuda_text import kernel_text
from shapes import blocks_of_shape

CASE = next(case for case in CASES if case.loop == "integrate_stress")
SIDE, SAMPLES, TOLERANCE = 128, 7, 1e-11
SIZES = (128, 256)
STAGED = ("hierarchical", "staged-gather")
PERMUTED = "block-permute"
# What the kernel takes by itself, and is given.
USUAL, REGISTERS = 94, 80
# What suffices for a face at a time.
OF_FACES = 64
# Sites along x, y and z.
SHAPES = {
    "bricks 8x4x4": (8, 4, 4),
    "bricks 8x8x4": (8, 8, 4),
    "rectangles 16x8x1": (16, 8, 1),
    "lines 128x1x1": (128, 1, 1),
}
# The corners of the six faces, in the order of examples/kernels/lulesh.py.
FACES = shape_of("hexahedron").faces
Row = dict[str, Any]
# A row of shared memory: coordinates, forces, and one more, so that neighbours do not meet
# in the same banks.
ROW, FORCE = 7, 3


@dataclass(frozen=True, eq=False)
class Bounded(CudaProgram):
    """A program that the compiler gives so few registers that ``resident`` blocks fit."""

    resident: int = 1

    @property
    def cuda(self) -> str:
        """The text, which has the last word on the blocks of a multiprocessor."""
        return f"#undef MP_RESIDENT\n#define MP_RESIDENT {self.resident}\n{super().cuda}"


def by_hand(
    made: CudaProgram, name: str, body: list[str], shared_bytes: int
) -> CudaProgram:
    """A program with the arrays of another, and a text of this file."""
    text = kernel_text(
        name=name,
        most_threads=made.threads,
        slots=tuple(slot.name for slot in made.slots),
        parameters=[p.text for p in made.parameters],
        body=body,
    )
    return replace(made, name=name, text=text, kernel=None, shared_bytes=shared_bytes)


def most_points(plan: LoopPlan) -> int:
    """Points that the largest block stages."""
    return int(np.diff(plan.variant().staging["nodes"].point_offset).max())


HEAD = [
    "int head[8];",
    "MP_LOAD(4, head + 0, blocks, MP_AT(first + MP_BLOCK, 8) + 0);",
    "MP_LOAD(4, head + 4, blocks, MP_AT(first + MP_BLOCK, 8) + 4);",
    "const Index begin = head[0], from = head[3];",
    "const int count = (int)head[1], many = (int)head[4];",
]
# Coordinates, and the forces of points that no other block adds to.
STAGE = [
    f"MP_SHARED(double, h, 0, {ROW} * many);",
    "MP_LOOP for (int i = MP_THREAD; i < many; i += MP_THREADS) {",
    "  const Index p = points0[from + i];",
    "  const bool own = role0[from + i] == 1;",
    "  for (int k = 0; k < 3; ++k) {",
    f"    h[MP_AT(i, {ROW}) + k] = s0[MP_AT(p, 3) + k];",
    f"    h[MP_AT(i, {ROW}) + {FORCE} + k] = own ? s3[MP_AT(p, 3) + k] : 0.0;",
    "  }",
    "}",
    "MP_BARRIER();",
]
COMMIT = [
    "MP_LOOP for (int i = MP_THREAD; i < many; i += MP_THREADS) {",
    "  const Index p = points0[from + i];",
    "  const int role = role0[from + i];",
    "  for (int k = 0; k < 3; ++k) {",
    f"    const double sum = h[MP_AT(i, {ROW}) + {FORCE} + k];",
    "    if (role == 1) s3[MP_AT(p, 3) + k] = sum;",
    "    if (role == 2) MP_ADD(s3, MP_AT(p, 3) + k, sum);",
    "  }",
    "}",
]


def at(corner: int, component: int) -> str:
    """A value of a corner in shared memory: a coordinate, or from ``FORCE`` on a force."""
    return f"h[MP_AT(l[{corner}], {ROW}) + {component}]"


def volume_lines(load: Callable[[int, int], str]) -> list[str]:
    """Eight times the determinant at the centre; ``load`` gives a coordinate of a corner."""
    sides = {"a": (0, 3, 4, 7, 1, 2, 5, 6), "b": (0, 1, 4, 5, 3, 2, 7, 6)}
    sides["c"] = (0, 1, 2, 3, 4, 5, 6, 7)
    lines = []
    for name, (*low, e, f, g, h) in sides.items():
        for k in range(3):
            plus = " + ".join(load(corner, k) for corner in (e, f, g, h))
            minus = " - ".join(load(corner, k) for corner in low)
            lines.append(f"const double {name}{k} = 0.25 * ({plus} - {minus});")
    terms = [
        f"a{k} * (b{i} * c{j} - b{j} * c{i})"
        for k, i, j in ((0, 1, 2), (1, 2, 0), (2, 0, 1))
    ]
    return [*lines, f"s2[e] = {' + '.join(terms)};"]


def force_of_face(face: tuple[int, ...], k: int, load: Callable[[int, int], str]) -> str:
    """A component of what a face adds to each of its corners."""
    a, b, c, d = face
    i, j = (k + 1) % 3, (k + 2) % 3

    def along(end: int, start: int, component: int) -> str:
        return f"({load(end, component)} - {load(start, component)})"

    return (
        f"-0.125 * stress{k} * ({along(c, a, i)} * {along(d, b, j)}"
        f" - {along(c, a, j)} * {along(d, b, i)})"
    )


# An element of a round: what it loads before it computes.
ELEMENT = [
    "const int k0 = round + MP_THREAD;",
    "const bool active = k0 < count;",
    "const Index place = active ? begin + k0 : begin;",
    "unsigned short l[8];",
    "MP_LOAD(8, l, local0, MP_AT(place, 8));",
    "const int colour = active ? (int)thread_colour[place] : -1;",
]
STRESS = [f"const double stress{k} = s1[MP_AT(e, 3) + {k}];" for k in range(3)]


def in_rounds(lines: list[str]) -> list[str]:
    """Lines for each element of a thread, which take all threads through all barriers."""
    return [
        "MP_LOOP for (int round = 0; round < count; round += MP_THREADS) {",
        *(f"  {line}" for line in lines),
        "}",
    ]


def components(plan: LoopPlan, threads: int) -> CudaProgram:
    """Forces along x, then along y, then along z: a third of them at a time."""
    made = generated(plan, "hierarchical", threads)
    passes = []
    for k in range(3):
        passes += ["{", "  double f[8] = {};", "  if (active) {"]
        for face in FACES:
            corners = " ".join(f"f[{corner}] += g;" for corner in face)
            passes.append(
                f"    {{ const double g = {force_of_face(face, k, at)}; {corners} }}"
            )
        passes += [
            "  }",
            "  MP_LOOP for (int c = 0; c < (int)head[2]; ++c) {",
            "    if (colour == c) {",
            *(f"      {at(corner, FORCE + k)} += f[{corner}];" for corner in range(8)),
            "    }",
            "    MP_BARRIER();",
            "  }",
            "}",
        ]
    element = [
        *ELEMENT,
        "const Index e = place;",
        *STRESS,
        "if (active) {",
        *(f"  {line}" for line in volume_lines(at)),
        "}",
        *passes,
    ]
    body = [*HEAD, *STAGE, *in_rounds(element), *COMMIT]
    return by_hand(made, "stress_components", body, 8 * ROW * most_points(plan))


def faces(plan: LoopPlan, threads: int) -> CudaProgram:
    """A face at a time, added at once: elements lie by colour, so that warps have few.

    Rows are a parameter apart: if the compiler knew that forces do not lie where coordinates do,
    it would keep all of these, in 96 registers.
    """
    made = generated(plan, PERMUTED, threads)
    made = replace(
        made,
        sizes=dict(made.sizes) | {"stride": ROW},
        parameters=(*made.parameters, Parameter("stride", "size")),
    )

    def there(corner: int, component: int) -> str:
        return f"h[l[{corner}] * stride + {component}]"

    turn = []
    for face in FACES:
        turn.append("{")
        turn += [
            f"  const double g{k} = {force_of_face(face, k, there)};" for k in range(3)
        ]
        turn += [
            f"  {there(corner, FORCE + k)} += g{k};" for corner in face for k in range(3)
        ]
        turn.append("}")
    element = [
        *ELEMENT,
        "const Index e = order[place];",
        *STRESS,
        "if (active) {",
        *(f"  {line}" for line in volume_lines(at)),
        "}",
        "MP_LOOP for (int c = 0; c < (int)head[2]; ++c) {",
        "  if (colour == c) {",
        *(f"    {line}" for line in turn),
        "  }",
        "  MP_BARRIER();",
        "}",
    ]
    body = [*HEAD, *STAGE, *in_rounds(element), *COMMIT]
    made = by_hand(made, "stress_faces", body, 8 * ROW * most_points(plan))
    return Bounded(**vars(made), resident=by_registers(OF_FACES, made.threads))


def points(plan: LoopPlan, threads: int) -> CudaProgram:
    """A thread a point, which computes three faces of each of its elements again."""
    gathers = generated(plan, "staged-gather", threads)
    staged = generated(plan, "hierarchical", threads)
    # The faces of each corner, four corners each.
    of_corner = [[face for face in FACES if corner in face] for corner in range(8)]
    arrays = dict(gathers.arrays) | {"local0": staged.arrays["local0"]}
    del arrays["map0"], arrays["map1"]
    arrays["corner_faces"] = np.array(of_corner, np.uint8).reshape(-1)
    kinds = {p.name: p for p in (*gathers.parameters, *staged.parameters)}
    listed = [kinds.get(name, Parameter(name, "in", "unsigned char")) for name in arrays]
    listed += [
        p for p in gathers.parameters if p.access == "size" or p.name.startswith("s")
    ]

    def corner(number: int, component: int) -> str:
        return f"h[MP_AT(l[{number}], 3) + {component}]"

    def row_of(place: str) -> str:
        return "{" + ", ".join(f"h[MP_AT({place}, 3) + {k}]" for k in range(3)) + "}"

    def of_face(number: int, component: int) -> str:
        return f"q{number}[{component}]"

    add = [f"t[{k}] += {force_of_face((0, 1, 2, 3), k, of_face)};" for k in range(3)]
    body = [
        *HEAD,
        "const int block = (int)head[2];",
        "MP_SHARED(double, h, 0, 3 * many);",
        "MP_LOOP for (int i = MP_THREAD; i < many; i += MP_THREADS) {",
        "  const Index p = points0[from + i];",
        "  for (int k = 0; k < 3; ++k) h[MP_AT(i, 3) + k] = s0[MP_AT(p, 3) + k];",
        "}",
        "MP_BARRIER();",
        "MP_LOOP for (int k0 = MP_THREAD; k0 < count; k0 += MP_THREADS) {",
        "  const Index e = begin + k0;",
        "  unsigned short l[8];",
        "  MP_LOAD(8, l, local0, MP_AT(e, 8));",
        *(f"  {line}" for line in volume_lines(corner)),
        "}",
        "MP_LOOP for (int i = MP_THREAD; i < many; i += MP_THREADS) {",
        "  const Index p = points0[from + i];",
        "  double t[3] = {};",
        "  const Index row = from + block + i;",
        "  const int end = gather_offset3[row + 1];",
        "  MP_LOOP for (int g = gather_offset3[row]; g < end; ++g) {",
        "    const int left = gather3[begin * 8 + g];",
        "    const int own = left / count;",
        "    const Index e = begin + (left - own * count);",
        *(f"    {line}" for line in STRESS),
        "    MP_LOOP for (int f = 0; f < 3; ++f) {",
        "      const int at = 12 * own + 4 * f;",
        *(
            f"      const int l{n} = local0[MP_AT(e, 8) + (int)corner_faces[at + {n}]];"
            for n in range(4)
        ),
        *(f"      const double q{n}[3] = {row_of(f'l{n}')};" for n in range(4)),
        *(f"      {line}" for line in add),
        "    }",
        "  }",
        "  const int role = role0[from + i];",
        "  for (int k = 0; k < 3; ++k) {",
        "    if (role == 1) s3[MP_AT(p, 3) + k] += t[k];",
        "    if (role == 2) MP_ADD(s3, MP_AT(p, 3) + k, t[k]);",
        "  }",
        "}",
    ]
    made = replace(gathers, parameters=tuple(listed), arrays=arrays)
    return by_hand(made, "stress_points", body, 8 * 3 * most_points(plan))


BY_HAND = {"components": components, "faces": faces, "points": points}


class Stress:
    """The loop on one grid: its values, the sums to expect, and rows of both tables."""

    def __init__(self, device: Device, side: int, copy: float, arch: str) -> None:
        self.device, self.copy, self.arch = device, copy, arch
        self.mesh = generate("box", nx=side, ny=side, nz=side, type="hexahedron")
        self.given: dict[str, np.ndarray] = {}
        self.wanted: dict[str, np.ndarray] = {}

    def plan(self, block_size: int, partition: Any = "blocks") -> Plan:
        """The loop in blocks of a size, by a partitioner or given as an array."""
        made = meshprep.reorder(
            self.mesh, [CASE.request], block_size=block_size, partition=partition
        ).plan
        # The first plan gives values and sums, in the numbering of the mesh.
        if not self.wanted:
            loop_plan = made[CASE.loop]
            self.given = values_of(loop_plan)
            host = self._moved(made, self.given, "apply")
            ParLoop(CASE.kernel, loop_plan, strategy="sequential")(**host)
            self.wanted = self._moved(made, host, "restore")
        return made

    def _moved(
        self, plan: Plan, values: dict[str, np.ndarray], way: str
    ) -> dict[str, np.ndarray]:
        """Values between the numbering of the mesh and that of a plan."""
        moved = {}
        for arg in plan[CASE.loop].loop.args:
            rows = "cells" if arg.map is None else "nodes"
            moved[arg.name] = getattr(plan.ordering[rows], way)(values[arg.name])
        return moved

    def row(self, plan: Plan, made: CudaProgram, what: str) -> dict[str, Any]:
        """Run, check, compile and time a program."""
        launcher = Launcher(made, self.device, graph=True)
        host = self._moved(plan, self.given, "apply")
        arrays = {name: self.device.array(values) for name, values in host.items()}
        bound = DeviceBinder(made.loop, made.slots)(arrays, self.device)
        launcher(bound)
        sums = self._moved(plan, {n: a.get() for n, a in arrays.items()}, "restore")
        for name in ("force", "volume"):
            check_off(sums[name], self.wanted[name], TOLERANCE, f"{what}: '{name}'")
        seconds = min(device_seconds(self.device, partial(launcher, bound), SAMPLES))
        share = None
        if self.copy:
            share = useful_bytes(plan[CASE.loop]) / seconds / 1e9 / self.copy
        return {
            **taken(made, self.arch),
            "shared bytes": made.shared_bytes,
            "us": 1e6 * seconds,
            "share of copy": share,
        }

    def kernel_rows(self) -> Iterator[dict[str, Any]]:
        """Generated texts and those of this file, in our blocks; two elements a thread, too."""
        for block_size in SIZES:
            plan = self.plan(block_size)
            for name, made in texts(plan[CASE.loop]):
                yield {
                    "text": name,
                    "block size": block_size,
                    "threads": made.threads,
                    **self.row(plan, made, name),
                }

    def shape_rows(self) -> Iterator[dict[str, Any]]:
        """The best generated texts in blocks by hand, ours, METIS's, and as generated."""
        centre = centroids(self.mesh, "cells")
        asked: list[tuple[str, int, Any]] = [
            (name, math.prod(shape), blocks_of_shape(centre, shape, layers=1))
            for name, shape in SHAPES.items()
        ]
        for name in ("blocks", "contiguous", "metis"):
            asked += [(name, block_size, name) for block_size in SIZES]
        for name, block_size, partition in asked:
            plan = self.plan(block_size, partition)
            figures = plan.metrics.loops[CASE.loop].variants[f"s{block_size}"].after
            for strategy, threads in product(STAGED, (block_size, block_size // 2)):
                made = generated(plan[CASE.loop], strategy, threads)
                yield {
                    "blocks": name,
                    "block size": block_size,
                    "reuse": figures.reuse,
                    "strategy": strategy,
                    "threads": made.threads,
                    **self.row(plan, made, f"{name}, {strategy}"),
                }


def generated(plan: LoopPlan, strategy: str, threads: int) -> CudaProgram:
    """The text of a strategy, with commit by atomics."""
    return program(CASE.kernel, plan, strategy, commit="atomics", threads=threads)


def texts(plan: LoopPlan) -> Iterator[tuple[str, CudaProgram]]:
    """Every text for the blocks of a plan: those of this file first."""
    block_size = plan.variant().block_size
    for threads in (block_size, block_size // 2):
        for name, text_of in BY_HAND.items():
            yield name, text_of(plan, threads)
    for threads, strategy in product((block_size, block_size // 2), (*STAGED, PERMUTED)):
        made = generated(plan, strategy, threads)
        yield strategy, made
        # Where the registers that are saved make room for a block more.
        resident = by_registers(REGISTERS, made.threads)
        if resident > by_registers(USUAL, made.threads):
            yield (
                f"{strategy}, {REGISTERS} registers",
                Bounded(**vars(made), resident=resident),
            )


def tables(device: Device, side: int, arch: str) -> Iterator[tuple[str, Iterator[Row]]]:
    """Both tables, whose rows are made when they are asked for."""
    copy = 0.0 if isinstance(device, EmulatedDevice) else copy_bandwidth(device, COPY_BYTES)
    stress = Stress(device, side, copy, arch)
    yield "rows", stress.kernel_rows()
    yield "shapes", stress.shape_rows()


def main(arguments: Sequence[str] | None = None) -> None:
    """Print and save the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--side", type=int, default=SIDE, help="cells along a side")
    parser.add_argument("--emulate", action="store_true", help="under g++, without times")
    parser.add_argument("--arch", default="", help="compile for it, with --emulate")
    given = parser.parse_args(arguments)
    device = device_or_exit(given.emulate)
    with use(device):
        arch = given.arch if given.emulate else device.arch
        found = {name: list(rows) for name, rows in tables(device, given.side, arch)}
    if given.emulate:
        # Times of g++ say nothing.
        for rows in found.values():
            table([row | {"us": None} for row in rows])
        return
    table(found["shapes"])
    report_gpu("-stress", device, **found)


if __name__ == "__main__":
    main()
