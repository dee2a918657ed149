"""Airfoil whole: the mesh, the plan, the five loops, two stages an iteration.

    python examples/airfoil.py --cells 720000 --iterations 1000
    python examples/airfoil.py --device gpu
    python examples/airfoil.py new_grid.dat

The mesh is generated, or a file: OP2's text grid or HDF5 mesh of Airfoil, or quads with groups of
boundary edges of which 1 is the wall. The flow starts as the free stream. Prints the root mean
square of the change every 100 iterations, and the time of each loop.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from kernels import airfoil as kernels
from meshprep.io import read
from meshprep.io.generate import generate
from meshprep.loops import read_requests
from meshprep.mesh import Dat, ElementSet, Mesh, SetMap, Tag
from meshprep.pipeline.steps import Options, Prepared, prepare
from meshprep_runtime import MeshprepError, ParLoop
from meshprep_runtime.cuda import DeviceFunction
from meshprep_runtime.cuda.device import current
from meshprep_runtime.cuda.protocols import Device

KERNELS = Path(__file__).parent / "kernels"
LOOPS = ("save_soln", "adt_calc", "res_calc", "bres_calc", "update")


class Airfoil:
    """The state of the flow, in the numbering of a plan, and the loops that move it on.

    With a device the arrays lie there, and the loops run their CUDA C (``kernels/airfoil.cu``).
    """

    def __init__(
        self,
        prepared: Prepared,
        strategy: str = "auto",
        device: Device | None = None,
        graph: bool = False,
    ) -> None:
        plan = prepared.plan
        n = plan.sizes["cells"]
        self.n = n
        dats = {
            "x": coordinates(prepared),
            "q": np.tile(kernels.FREE_STREAM, (n, 1)),
            "qold": np.zeros((n, 4)),
            "adt": np.zeros(n),
            "res": np.zeros((n, 4)),
            "bound": bound(prepared),
        }
        put = np.asarray if device is None else device.array
        self.dats: dict[str, Any] = {name: put(values) for name, values in dats.items()}
        # The program looks at it after every stage, so it stays on the host.
        self.dats["rms"] = np.zeros(1)
        text = (KERNELS / "airfoil.cu").read_text(encoding="utf-8")
        self.loops = {
            name: ParLoop(
                getattr(kernels, name),
                plan[name],
                strategy=strategy,
                cuda=DeviceFunction(name, text),
                graph=graph,
            )
            for name in LOOPS
        }
        self._device = device
        self._marks: list[tuple[str, Any, Any]] = []
        self.seconds = dict.fromkeys(LOOPS, 0.0)
        self._given = {
            name: {a.name: self.dats[a.name] for a in plan[name].loop.args} for name in LOOPS
        }

    def steps(self, iterations: int) -> Iterator[float]:
        """Move on; yields the root mean square of the second stage's change after each."""
        for _ in range(iterations):
            self._run("save_soln")
            for _ in range(2):
                self.dats["rms"][0] = 0.0
                for name in LOOPS[1:]:
                    self._run(name)
            self._add_up()
            yield float(np.sqrt(self.dats["rms"][0] / self.n))

    def _run(self, name: str) -> None:
        if self._device is not None:
            start = self._device.mark()
            self.loops[name](**self._given[name])
            self._marks.append((name, start, self._device.mark()))
            return
        begin = time.perf_counter()
        self.loops[name](**self._given[name])
        self.seconds[name] += time.perf_counter() - begin

    def _add_up(self) -> None:
        """What the device's clock says of the loops since the last time."""
        for name, start, end in self._marks:
            self.seconds[name] += self._device.seconds(start, end)
        self._marks.clear()


def coordinates(prepared: Prepared) -> np.ndarray:
    """Node coordinates to six decimals, as OP2's mesh file has them: its sums depend on it."""
    return np.round(prepared.mesh.coordinates[:, :2], 6)


def bound(prepared: Prepared) -> np.ndarray:
    """The group of each boundary edge, where these are derived and where they are in the file."""
    derived = prepared.plan.tags.get("boundary_edges", {})
    tag = prepared.mesh.tag("physical", "boundary_edges")
    if tag is None and "physical" not in derived:
        raise MeshprepError("the mesh has no groups of boundary edges: group 1 is to be the wall")
    return derived["physical"] if tag is None else tag.first_ids()


def read_airfoil(path: Path, sets: list[str] | None = None) -> Mesh:
    """A mesh file of Airfoil; OP2's under the names that derived edges have.

    ``sets`` declares what an HDF5 file does not say, as ``meshprep reorder --sets`` does.
    """
    mesh = read(path, sets=sets)
    if "bedges" not in mesh.sets:
        return mesh
    x = mesh.dat("coordinates", "nodes") or mesh.dat("p_x", "nodes")
    groups = mesh.dat("bound", "bedges") or mesh.dat("p_bound", "bedges")
    if x is None or groups is None:
        raise MeshprepError(f"{path}: has no coordinates, or no bounds: give a mesh of Airfoil")
    names = {"bedges": "boundary_edges"}
    maps = []
    for m in mesh.maps.values():
        source = names.get(m.from_set, m.from_set)
        # OP2's kernels take the nodes of an edge the other way round than derived edges have them.
        turn = m.to_set == "nodes" and m.from_set != "cells"
        table = np.ascontiguousarray(m.table[:, ::-1]) if turn else m.table
        maps.append(SetMap(f"{source}->{m.to_set}", source, m.to_set, table))
    sets_of = [ElementSet(names.get(s.name, s.name), s.size) for s in mesh.sets.values()]
    tag = Tag.from_ids("physical", "boundary_edges", groups.values.reshape(-1))
    return Mesh(sets_of, maps, [Dat("coordinates", "nodes", x.values)], [tag])


def prepared_airfoil(
    cells: int, block_size: int = 4096, target: str = "cpu", mesh: Mesh | None = None
) -> Prepared:
    """The mesh, generated unless given, in a better order, with the plan of all five loops."""
    loops = read_requests(KERNELS / "airfoil.toml")
    mesh = mesh or generate("airfoil", cells=cells)
    return prepare(mesh, loops, Options(block_size=block_size, target=target))


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("mesh", type=Path, nargs="?", help="default: a generated one")
    parser.add_argument("--sets", nargs="+", help="what the file does not say, as for meshprep")
    parser.add_argument("--cells", type=int, default=720_000)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--block-size", type=int, help="default: 4096 on a CPU, 256 on a GPU")
    given = parser.parse_args()
    gpu = given.device == "gpu"
    size = given.block_size or (256 if gpu else 4096)
    try:
        device = current() if gpu else None
        mesh = read_airfoil(given.mesh, given.sets) if given.mesh else None
        prepared = prepared_airfoil(given.cells, size, "gpu" if gpu else "cpu", mesh)
        flow = Airfoil(prepared, given.strategy, device)
    except MeshprepError as error:
        sys.exit(f"error: {error}")
    for i, rms in enumerate(flow.steps(given.iterations), start=1):
        if i % 100 == 0:
            print(f"{i:6} {rms:.5e}", flush=True)
    for name, seconds in flow.seconds.items():
        print(f"{name:<10} {seconds:8.3f} s")


if __name__ == "__main__":
    main()
