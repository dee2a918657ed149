"""What the way into existing solvers costs: OP2's files, and values into another order.

Peers, in the same run: h5py and NumPy doing the bare minimum without checks or read-back. The mesh
has Airfoil's sets, maps and dats (720,000 cells, shuffled).
"""

import tempfile
from pathlib import Path

import h5py
import numpy as np
from common import best, report

from meshprep import io
from meshprep.mesh import Dat, ElementSet, Mesh, SetMap
from meshprep_runtime import Ordering

SIZES = {"nodes": 721_801, "cells": 720_000, "edges": 1_438_600, "bedges": 2_800}
MAPS = {"cells->nodes": 4, "edges->nodes": 2, "edges->cells": 2, "bedges->nodes": 2}
MAPS |= {"bedges->cells": 1}


def main() -> None:
    """Print and save the table."""
    random = np.random.default_rng(1)
    mesh = _mesh(random)
    order = {n: Ordering.from_new_to_old(random.permutation(s)) for n, s in SIZES.items()}
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            *_hdf5(mesh, Path(folder, "grid.h5")),
            *_text(mesh, Path(folder, "grid.dat")),
        ]
    report("solvers", [*rows, *_orders(order["cells"], random)])


def _mesh(random: np.random.Generator) -> Mesh:
    maps = []
    for name, arity in MAPS.items():
        source, _, target = name.partition("->")
        table = random.integers(0, SIZES[target], (SIZES[source], arity)).astype(np.int32)
        # Every element is reached, as in a mesh: so the sets can be told.
        table.flat[:2] = 0, SIZES[target] - 1
        maps.append(SetMap(name, source, target, table))
    points = np.round(random.random((SIZES["nodes"], 2)), 6)
    bound = random.integers(1, 3, SIZES["bedges"]).astype(np.int32)
    dats = [Dat("coordinates", "nodes", points), Dat("bound", "bedges", bound)]
    sets = [ElementSet(name, size) for name, size in SIZES.items()]
    return Mesh(sets, maps, dats, extras={"op2-grid:decimals": 6})


def _row(
    what: str, ours: float, peer: float | None, peer_name: str | None
) -> dict[str, object]:
    times = None if peer is None else ours / peer
    return {"what": what, "s": ours, "peer s": peer, "times": times, "peer": peer_name}


def _hdf5(mesh: Mesh, path: Path) -> list[dict[str, object]]:
    states = [
        Dat(n, "cells", np.ones((SIZES["cells"], 4))) for n in ("p_q", "p_qold", "p_res")
    ]
    mesh = mesh.with_(dats=states)
    write = best(lambda: io.write(mesh, path, overwrite=True))
    read = best(lambda: io.read(path))
    arrays = {m.name: m.table for m in mesh.maps.values()} | {
        d.name: d.values for d in mesh.dats
    }

    def bare_write() -> None:
        with h5py.File(path.with_name("bare.h5"), "w") as file:
            for name, values in arrays.items():
                file[name] = values

    def bare_read() -> list[np.ndarray]:
        with h5py.File(path, "r") as file:
            return [file[name][()] for name in arrays]

    return [
        _row(
            "write an OP2 HDF5 mesh, read it back, compare",
            write,
            best(bare_write),
            "h5py write",
        ),
        _row("read an OP2 HDF5 mesh", read, best(bare_read), "h5py read"),
    ]


def _text(mesh: Mesh, path: Path) -> list[dict[str, object]]:
    write = best(lambda: io.write(mesh, path, overwrite=True))
    read = best(lambda: io.read(path))
    peer = best(lambda: np.fromstring(path.read_bytes(), sep=" "))
    return [
        _row(
            "write a text grid, read it back, compare",
            write,
            peer,
            "np.fromstring, read only",
        ),
        _row("read a text grid", read, peer, "np.fromstring"),
    ]


def _orders(order: Ordering, random: np.random.Generator) -> list[dict[str, object]]:
    out = []
    for dim, axis in ((1, 0), (4, 0), (4, 1)):
        shape = (dim, order.size) if axis else (order.size, dim)
        values = random.random(shape)
        ours = best(lambda: order.apply(values, axis))  # noqa: B023
        index = (slice(None), order.new_to_old) if axis else order.new_to_old
        peer = best(lambda: values[index])  # noqa: B023
        out.append(_row(f"Ordering.apply, {shape}", ours, peer, "values[new_to_old]"))
    still = Ordering.identity(order.size)
    values = random.random((order.size, 4))
    out.append(
        _row("the same where nothing moves", best(lambda: still.apply(values)), None, None)
    )
    return out


if __name__ == "__main__":
    main()
