"""The airfoil as OP2's program has it: edges are sets, with OP2's maps, data and constants.

The text grid is what OP2's ``naca0012.m`` writes, and the HDF5 file what its
``convert_mesh`` makes of that.
"""

from math import pi, sqrt
from typing import Any

import numpy as np

from ...mesh import Dat, ElementSet, Mesh, SetMap
from ...topology import derive
from ..op2.grid import DECIMALS, MAPS, SETS
from ..op2.layout import CONSTANTS, NOTES, Op2Notes

# OP2's file has so many digits behind the point, and its sums depend on them.
_DIGITS = 6
_MAP_NAMES = ("pcell", "pedge", "pecell", "pbedge", "pbecell")


def op2_grid(mesh: Mesh) -> Mesh:
    """The four sets of OP2's Airfoil, from :func:`~meshprep.io.generate.airfoil.airfoil`.

    Nodes of an edge stand the other way round than in derived edges: with (dx, dy) from the
    second to the first, (dy, -dx) points out of the first cell, as OP2's kernels want it.
    """
    map_names = [
        "edges->cells",
        "edges->nodes",
        "boundary_edges->cells",
        "boundary_edges->nodes",
    ]
    full = derive(mesh, map_names)
    tag = full.tag("physical", "boundary_edges")
    points = mesh.coordinates
    assert tag is not None
    assert points is not None
    maps = []
    for name in MAPS:
        source, _, target = name.partition("->")
        table = full.map(name.replace("bedges", "boundary_edges")).table
        if target == "nodes" and source != "cells":
            # OP2 takes (dx, dy) from the second node of an edge to the first.
            turned = table[:, ::-1]
        else:
            turned = table
        maps.append(
            SetMap(
                name=name,
                from_set=source,
                to_set=target,
                table=np.ascontiguousarray(turned),
            )
        )
    # Round the coordinates to the digits that the text of a grid has.
    sizes = {m.from_set: m.size for m in maps} | {"nodes": len(points)}
    dats = [
        Dat("coordinates", "nodes", np.round(points[:, :2], _DIGITS) + 0.0),
        Dat("bound", "bedges", tag.first_ids().astype(np.int32)),
    ]
    return Mesh(
        sets=[ElementSet(s, sizes[s]) for s in SETS],
        maps=maps,
        dats=dats,
        extras={DECIMALS: _DIGITS},
    )


def op2_hdf5(mesh: Mesh) -> Mesh:
    """:func:`op2_grid` with the state and constants that OP2's program reads from HDF5."""
    grid = op2_grid(mesh)
    constants = _constants()
    n = grid.size("cells")
    bound = grid.dat("bound", "bedges")
    points = grid.coordinates
    assert bound is not None
    assert points is not None
    state = {"p_q": np.tile(constants["qinf"], (n, 1)), "p_adt": np.zeros((n, 1))}
    state |= {name: np.zeros((n, 4)) for name in ("p_qold", "p_res")}
    dats = [Dat("p_x", "nodes", points), Dat("p_bound", "bedges", bound.values[:, None])]
    dats += [Dat(name, "cells", values) for name, values in state.items()]
    paths = dict(zip(MAPS, _MAP_NAMES, strict=True))
    notes = Op2Notes(sets={}, maps=paths, dats={}, base=0, rest=_image(constants))
    extras = {NOTES: notes, CONSTANTS: tuple(constants)}
    return Mesh(sets=grid.sets.values(), maps=grid.maps.values(), dats=dats, extras=extras)


def _constants() -> dict[str, np.ndarray]:
    """Of the gas and the free stream, from single precision as in OP2's program."""
    gam, cfl, eps, mach = (float(np.float32(v)) for v in (1.4, 0.9, 0.05, 0.4))
    speed = sqrt(gam) * mach
    constants = {
        "gam": [gam],
        "gm1": [gam - 1.0],
        "cfl": [cfl],
        "eps": [eps],
        "mach": [mach],
        "alpha": [3.0 * (pi / 4) / 45.0],
        "qinf": [1.0, speed, 0.0, 1.0 / (gam - 1.0) + 0.5 * speed * speed],
    }
    return {name: np.array(values) for name, values in constants.items()}


def _image(constants: dict[str, np.ndarray]) -> bytes:
    """An HDF5 file with the constants, as OP2 describes them."""
    import h5py

    from ..op2.write import describe

    with h5py.File("constants", "w", driver="core", backing_store=False) as file:
        for name, values in constants.items():
            item: Any = file.create_dataset(name, data=values)
            describe(item, {"dim": len(values)}, "double")
        file.flush()
        return bytes(file.id.get_file_image())
