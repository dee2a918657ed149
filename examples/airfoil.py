"""Airfoil whole: the mesh, the plan, the five loops, two stages an iteration.

    python examples/airfoil.py --cells 720000 --iterations 1000
    python examples/airfoil.py --device gpu
    python examples/airfoil.py --tile-size auto
    python examples/airfoil.py --checkpoint run.h5 --every-seconds 60
    python examples/airfoil.py new_grid.dat
    meshprep split airfoil.msh --parts 4 --loops examples/kernels/airfoil.toml
    mpiexec -n 4 python examples/airfoil.py --parts airfoil.parts.h5

The mesh is generated, or a file: OP2's text grid or HDF5 mesh of Airfoil, or quads with groups of
boundary edges of which 1 is the wall. The flow starts as the free stream. Prints the root mean
square of the change every 100 iterations, and the time of each loop.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np

from kernels import airfoil as kernels
from meshprep.io import read
from meshprep.io.generate import generate
from meshprep.loops.requests import read_requests
from meshprep.mesh import Dat, ElementSet, Mesh, SetMap, Tag
from meshprep.pipeline.steps import Options, Prepared, prepare
from meshprep_runtime import DistributedError, DistributedPlan, MeshprepError, Program
from meshprep_runtime.cuda import DeviceFunction
from meshprep_runtime.cuda.device import Device, current
from meshprep_runtime.program.mpi import world

KERNELS = Path(__file__).parent / "kernels"
DATS = {
    "x": ("nodes", 2, "f8"),
    "q": ("cells", 4, "f8"),
    "qold": ("cells", 4, "f8"),
    "adt": ("cells", 1, "f8"),
    "res": ("cells", 4, "f8"),
    "bound": ("boundary_edges", 1, "i8"),
}
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
        checkpoint: Path | None = None,
        every: float = 600.0,
    ) -> None:
        put = np.asarray if device is None else device.array
        n = prepared.plan.sizes["cells"]
        values = start(n, coordinates(prepared), bound(prepared))
        program = Program(prepared.plan, checkpoint=checkpoint, every=every)
        self._set_up(program, {name: put(v) for name, v in values.items()}, strategy, graph)

    @classmethod
    def on_ranks(
        cls,
        plan: DistributedPlan,
        strategy: str = "auto",
        device: Device | None = None,
        **options: Any,
    ) -> "Airfoil":
        """This rank's part of the flow, from its part alone; ``options`` are a Program's.

        With a device the arrays of this rank lie there.
        """
        cells, nodes, edges = map(plan.set_part, ("cells", "nodes", "boundary_edges"))
        x = rounded(plan.coordinates["nodes"])[: nodes.owned]
        groups = plan.tags["boundary_edges"]["physical"][: edges.owned]
        flow = cls.__new__(cls)
        values = start(cells.owned, x, groups)
        flow._set_up(Program(plan, **options), values, strategy, False)
        if device is not None:
            for dat in flow.program_dats.values():
                dat.array = device.array(dat.array)
        return flow

    def _set_up(
        self, program: Program, values: dict[str, Any], strategy: str, graph: bool
    ) -> None:
        self.program = program
        self.n = program.plan.sizes["cells"]
        dats = {
            name: program.dat(on, dim, dtype, values=values[name])
            for name, (on, dim, dtype) in DATS.items()
        }
        self.program_dats = dats
        self.dats: dict[str, Any] = {name: dat.array for name, dat in dats.items()}
        # It stays on the host; asking for its value runs what a chain has queued.
        self.rms = program.reduced()
        self.dats["rms"] = self.rms.array
        text = (KERNELS / "airfoil.cu").read_text(encoding="utf-8")
        self.loops = {
            name: program.loop(
                getattr(kernels, name),
                name,
                strategy=strategy,
                cuda=DeviceFunction(name, text),
                graph=graph,
            )
            for name in LOOPS
        }
        given = {**dats, "rms": self.rms}
        self._given = {
            name: {a.name: given[a.name] for a in loop.loop.args}
            for name, loop in self.loops.items()
        }

    def steps(self, iterations: int) -> Iterator[float]:
        """Move on; yields the root mean square of the second stage's change after each."""
        for _ in range(iterations):
            self._run("save_soln")
            for _ in range(2):
                self.rms.set(0.0)
                for name in LOOPS[1:]:
                    self._run(name)
            yield float(np.sqrt(self.rms.value[0] / self.n))

    def _run(self, name: str) -> None:
        self.loops[name](**self._given[name])

    def reset(self) -> None:
        """Count seconds from here on."""
        self.program.reset()

    @property
    def seconds(self) -> dict[str, float]:
        """What each loop took on this rank; waits for a GPU."""
        return {name: loop.times.seconds for name, loop in self.loops.items()}


def start(cells: int, x: np.ndarray, groups: np.ndarray) -> dict[str, np.ndarray]:
    """The dats of a flow at rest with the free stream."""
    return {
        "x": x,
        "q": np.tile(kernels.FREE_STREAM, (cells, 1)),
        "qold": np.zeros((cells, 4)),
        "adt": np.zeros(cells),
        "res": np.zeros((cells, 4)),
        "bound": groups,
    }


def coordinates(prepared: Prepared) -> np.ndarray:
    """Node coordinates to six decimals, as OP2's mesh file has them: its sums depend on it."""
    return rounded(prepared.mesh.coordinates)


def rounded(coordinates: np.ndarray) -> np.ndarray:
    """Coordinates as the file of the mesh in OP2's format has them."""
    return np.round(coordinates[:, :2], 6)


def bound(prepared: Prepared) -> np.ndarray:
    """The group of each boundary edge, where these are derived and where they are in the file."""
    derived = prepared.plan.tags.get("boundary_edges", {})
    if "physical" in derived:
        return derived["physical"]
    tag = prepared.mesh.tag("physical", "boundary_edges")
    if tag is None:
        raise MeshprepError(
            "the mesh has no groups of boundary edges: group 1 is to be the wall"
        )
    return tag.first_ids()


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
        raise MeshprepError(
            f"{path}: has no coordinates, or no bounds: give a mesh of Airfoil"
        )
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
    parser.add_argument(
        "--sets", nargs="+", help="what the file does not say, as for meshprep"
    )
    parser.add_argument("--cells", type=int, default=720_000)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument(
        "--every", type=int, default=100, help="iterations between two lines"
    )
    parser.add_argument("--parts", type=Path, help="the mesh in parts: run under mpiexec")
    parser.add_argument("--threads", type=int, default=1, help="of each rank, with --parts")
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument(
        "--block-size", type=int, help="default: 4096 on a CPU, 256 on a GPU"
    )
    parser.add_argument(
        "--tile-size", help="cells of a tile, or 'auto': run iterations in tiles"
    )
    parser.add_argument(
        "--checkpoint", type=Path, help="save the flow here, and go on from it"
    )
    parser.add_argument(
        "--every-seconds", type=float, default=600.0, help="between checkpoints"
    )
    parser.add_argument(
        "--timings", type=Path, help="write here what each loop took, as JSON"
    )
    given = parser.parse_args()
    kept: dict[str, Any] = {"checkpoint": given.checkpoint, "every": given.every_seconds}
    gpu = given.device == "gpu"
    size = given.block_size or (256 if gpu else 4096)
    try:
        device = current() if gpu else None
        if given.parts:
            numba.set_num_threads(given.threads)
            plan = DistributedPlan.load(given.parts)
            flow = Airfoil.on_ranks(plan, given.strategy, **kept)
        else:
            mesh = read_airfoil(given.mesh, given.sets) if given.mesh else None
            prepared = prepared_airfoil(given.cells, size, "gpu" if gpu else "cpu", mesh)
            flow = Airfoil(prepared, given.strategy, device, **kept)
    except MeshprepError as error:
        # What all ranks raise is told by one.
        several = isinstance(error, DistributedError) and error.ranks
        sys.exit(1 if several and world().rank else f"error: {error}")
    first = not given.parts or plan.comm.rank == 0
    for i, rms in enumerate(iterations(flow, given), start=1):
        if first and i % given.every == 0:
            print(f"{i:6} {rms:.5e}", flush=True)
    timings = flow.program.timings()
    # tiles know no times of single loops
    if first and not given.tile_size:
        print(timings)
    if first and given.timings:
        given.timings.write_text(json.dumps(timings.to_json()), encoding="utf-8")


def iterations(flow: Airfoil, given: argparse.Namespace) -> Iterator[float]:
    """The residuals of the iterations, loop by loop or tile by tile."""
    if not given.tile_size:
        yield from flow.steps(given.iterations)
        return
    size = "auto" if given.tile_size == "auto" else int(given.tile_size)
    with flow.program.chain(1 + 2 * len(LOOPS[1:]), tile_size=size):
        yield from flow.steps(given.iterations)


if __name__ == "__main__":
    main()
