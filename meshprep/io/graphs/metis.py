"""METIS's graph files: a line a vertex with its neighbours, and weights of both.

Every edge stands in the lines of both its vertices; the mesh has it once, in the order in which the
file first names it. A graph is undirected, without edges from a vertex to itself.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...mesh import Dat, Mesh
from ..registry import Format
from .common import (
    EDGES,
    METIS,
    SIZE,
    SYMMETRIC,
    VERTICES,
    WEIGHT,
    graph_mesh,
    other_losses,
    pairs_of,
    symmetry_of,
)
from .metis_read import DIGITS, read


def _write(mesh: Mesh, path: Path) -> None:
    kept = _reduced(mesh)
    n, n_edges = kept.size(VERTICES), kept.size(EDGES)
    sizes, weights = kept.dat(SIZE, VERTICES), kept.dat(WEIGHT, VERTICES)
    edge_weights = kept.dat(WEIGHT, EDGES)
    before = [d.values.reshape(n, -1) for d in (sizes, weights) if d is not None]
    heads = np.hstack([np.empty((n, 0), np.int64), *before])
    first = [n, n_edges]
    lines = [f"%{comment}" for comment in kept.extras[METIS]["comments"]]
    if before or edge_weights is not None:
        form = "".join(str(int(d is not None)) for d in (sizes, weights, edge_weights))
        how_many = [heads.shape[1] - int(sizes is not None)] if weights is not None else []
        lines.append(" ".join(map(str, [*first, form, *how_many])))
    else:
        lines.append(" ".join(map(str, first)))
    lines += [
        " ".join(map(str, [*head, *row.reshape(-1).tolist()]))
        for head, row in zip(heads.tolist(), _rows(kept), strict=True)
    ]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def _rows(mesh: Mesh) -> list[NDArray[np.int64]]:
    """For each vertex its neighbours from 1, in the order of the edges, with weights beside."""
    pairs, weights = pairs_of(mesh).astype(np.int64), mesh.dat(WEIGHT, EDGES)
    columns = [np.concatenate([pairs[:, 1], pairs[:, 0]]) + 1]
    if weights is not None:
        columns.append(np.tile(weights.values, 2))
    owner = np.concatenate([pairs[:, 0], pairs[:, 1]])
    order = np.lexsort((np.tile(np.arange(len(pairs)), 2), owner))
    stop = np.cumsum(np.bincount(owner, minlength=mesh.size(VERTICES)))
    return np.split(np.column_stack(columns)[order], stop[:-1])


def _losses(mesh: Mesh, **_options: object) -> list[str]:
    lost = other_losses(mesh, _refusal)
    pairs = pairs_of(mesh)
    if symmetry_of(mesh) != SYMMETRIC:
        lost.append(f"which way edges lead ({symmetry_of(mesh)} matrix)")
    loops = int((pairs[:, 0] == pairs[:, 1]).sum())
    lost += [f"{loops} edges from a vertex to itself"] if loops else []
    repeated = len(pairs) - loops - len(_kept_edges(pairs, mesh.size(VERTICES)))
    return lost + ([f"{repeated} repeated edges"] if repeated else [])


def _refusal(d: Dat) -> str | None:
    lowest = {(WEIGHT, EDGES): 1, (WEIGHT, VERTICES): 0, (SIZE, VERTICES): 0}.get((d.name, d.set))
    if lowest is None:
        return ""
    if d.index is not None:
        return "not all have one"
    several = d.values.ndim == 2 and d.values.shape[1] > 1
    if d.values.ndim > 2 or (several and (d.name, d.set) != (WEIGHT, VERTICES)):
        return "of several numbers"
    if d.values.dtype.kind not in "iu" or not _between(d.values, lowest):
        return f"METIS takes whole numbers from {lowest}"
    return None


def _between(values: NDArray[np.integer], lowest: int) -> bool:
    return values.size == 0 or (values.min() >= lowest and int(values.max()) < 10**DIGITS)


def _kept_edges(pairs: NDArray[np.int32], n_vertices: int) -> NDArray[np.int64]:
    """The first of equal edges, no edge from a vertex to itself, by their lower ends."""
    low, high = pairs.min(axis=1, initial=n_vertices), pairs.max(axis=1, initial=-1)
    _, first = np.unique(low.astype(np.int64) * n_vertices + high, return_index=True)
    first = np.sort(first[low[first] != high[first]])
    return first[np.argsort(low[first], kind="stable")]


def _reduced(mesh: Mesh) -> Mesh:
    """The mesh as reading gives it: each edge once, by its lower end, which goes first."""
    pairs, n = pairs_of(mesh), mesh.size(VERTICES)
    kept = _kept_edges(pairs, n)
    dats = []
    for d in mesh.dats:
        if _refusal(d) is None:
            values = d.values[kept] if d.set == EDGES else d.values
            one = values.ndim == 2 and values.shape[1] == 1
            dats.append(Dat(d.name, d.set, (values[:, 0] if one else values).astype(np.int64)))
    notes = {"comments": mesh.extras.get(METIS, {}).get("comments", ())}
    return graph_mesh(n, np.sort(pairs[kept], axis=1), dats, {METIS: notes})


FORMAT = Format(METIS, (".graph",), read, _write, _losses, reduce=_reduced, cells=False)
