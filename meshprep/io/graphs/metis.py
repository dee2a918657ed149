"""METIS's graph files: a line a vertex with its neighbours, and weights of both.

Every edge stands in the lines of both its vertices; the mesh has it once, in the order in
which the file first names it. A graph is undirected, without edges from a vertex to itself.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...mesh import Dat, Mesh
from ..format import Format
from ..text.words import numbers, words_of_lines
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

# Whole numbers below it fit eight bytes.
LIMIT = 10**18


@dataclass(frozen=True)
class _Header:
    """The first line: what follows for each vertex and edge."""

    n_vertices: int
    n_edges: int
    sizes: int = 0
    vertex_weights: int = 0
    edge_weights: int = 0

    @property
    def head(self) -> int:
        """Numbers of a line before the neighbours."""
        return self.sizes + self.vertex_weights


def read(path: Path) -> Mesh:
    comments, text = _strip_comments(path.read_bytes())
    found, counts = _numbers_of_lines(text)
    header = _parse_header(found[: counts[0]].tolist())
    counts = _checked_lines(counts[1:], header, len(text))
    body = found[found.size - counts.sum() :]
    # A line is the size of its vertex, the weights of the vertex, and each neighbour with
    # the weight of the edge, so far as the first line says that they are there.
    n = header.n_vertices
    places = (np.cumsum(counts) - counts)[:, None] + np.arange(header.head)
    heads = body[places]
    width = 1 + header.edge_weights
    entries = np.delete(body, places.reshape(-1)).reshape(-1, width)
    owner = np.repeat(np.arange(n), (counts - header.head) // width)
    pairs = np.column_stack([owner, entries[:, 0] - 1])
    _check_edges_twice(pairs, entries[:, -1] if header.edge_weights else None, header)
    # Keep the edge of the lower vertex's line.
    once = pairs[:, 0] < pairs[:, 1]
    dats = []
    if header.sizes:
        dats.append(Dat(SIZE, VERTICES, heads[:, 0]))
    if header.vertex_weights:
        weights = heads[:, header.sizes :]
        dats.append(
            Dat(WEIGHT, VERTICES, weights if weights.shape[1] > 1 else weights[:, 0])
        )
    if header.edge_weights:
        dats.append(Dat(WEIGHT, EDGES, entries[once, 1]))
    return graph_mesh(
        n_vertices=n, pairs=pairs[once], dats=dats, extras={METIS: {"comments": comments}}
    )


def _strip_comments(data: bytes) -> tuple[tuple[str, ...], bytes]:
    """The comments before the first line of numbers, and the file without any."""
    if b"%" not in data:
        return (), data
    comments: list[str] = []
    lines_left: list[bytes] = []
    for line in data.splitlines(keepends=True):
        if not line.lstrip().startswith(b"%"):
            lines_left.append(line)
        elif not lines_left:
            comments.append(line.strip()[1:].decode("utf-8", errors="replace"))
    return tuple(comments), b"".join(lines_left)


def _numbers_of_lines(text: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every number of the file, and how many each line has."""
    strange = text.translate(None, b"0123456789 \t\r\n")
    if strange:
        at = text.index(strange[:1])
        line = text.count(b"\n", 0, at) + 1
        what = strange[:1].decode("latin-1")
        raise MeshprepError(
            f"line {line}, comments left out, holds {what!r}: no whole number"
        )
    try:
        found = numbers(text, np.int64)
    except ValueError:
        raise MeshprepError("holds a number past 2^63: the file is damaged") from None
    return found, words_of_lines(text if text.endswith(b"\n") else text + b"\n")[:-1]


def _parse_header(words: list[int]) -> _Header:
    if len(words) in (2, 3, 4):
        kind, weights = [*words, 0, 0][2:4]
    else:
        kind = -1
        weights = 0
    # The format has a digit each for sizes, weights of vertices and weights of edges;
    # without a fourth number a vertex has one weight.
    digits = (kind // 100, kind // 10 % 10, kind % 10)
    if max(digits) > 1 or kind < 0 or (weights and not digits[1]):
        raise MeshprepError(
            "the first line must read: vertices, edges, and for weights a format of three "
            "digits 0 or 1 (sizes, weights of vertices, of edges) and how many weights a "
            "vertex has"
        )
    if not words[0]:
        raise MeshprepError("the graph has no vertices")
    return _Header(
        n_vertices=words[0],
        n_edges=words[1],
        sizes=digits[0],
        vertex_weights=digits[1] * max(1, weights),
        edge_weights=digits[2],
    )


def _checked_lines(
    counts: NDArray[np.int64], header: _Header, n_bytes: int
) -> NDArray[np.int64]:
    """How many numbers the line of each vertex has; those missing at the end have none.

    Editors strip them. No more are added than the file has bytes.
    """
    n = header.n_vertices
    n_lines = int(np.flatnonzero(counts).max(initial=-1)) + 1
    if n_lines > n or (n_lines < n and header.head) or n > n_bytes:
        raise MeshprepError(
            f"there are lines for {n_lines} vertices, but the first one says {n}"
        )
    counts = np.append(counts[:n_lines], np.zeros(n - n_lines, np.int64))
    left = counts - header.head
    if (left < 0).any() or (header.edge_weights and (left % 2).any()):
        bad = int(np.argmax((left < 0) | ((left % 2 == 1) & (header.edge_weights == 1))))
        raise MeshprepError(
            f"the line of vertex {bad + 1} has {counts[bad]} numbers: too few"
        )
    return counts


def _check_edges_twice(
    pairs: NDArray[np.int64], weights: NDArray[np.int64] | None, header: _Header
) -> None:
    """Raise MeshprepError unless every edge stands in both lines, once, with one weight."""
    n = header.n_vertices
    outside = (pairs[:, 1] < 0) | (pairs[:, 1] >= n) | (pairs[:, 0] == pairs[:, 1])
    _refuse_edge(pairs, outside, f"is no other vertex of 1..{n}")
    if len(pairs) != 2 * header.n_edges:
        raise MeshprepError(
            f"the lines hold {len(pairs)} neighbours, but the first one says "
            f"{header.n_edges} edges"
        )
    # Give each direction of an edge a number, and sort both: equal places must be the
    # same edge.
    key = pairs @ np.array([n, 1])
    mirrored = pairs @ np.array([1, n])
    order = np.argsort(key, kind="stable")
    other = np.argsort(mirrored, kind="stable")
    repeated = np.diff(key[order], prepend=-1) == 0
    _refuse_edge(pairs[order], repeated, "stands there more than once")
    if (key[order] != mirrored[other]).any():
        _refuse_edge(pairs, ~np.isin(key, mirrored), "is not so the other way round")
    if weights is not None:
        unequal = weights[order] != weights[other]
        _refuse_edge(pairs[order], unequal, "has another weight the other way round")


def _refuse_edge(pairs: NDArray[np.int64], wrong: NDArray[np.bool_], what: str) -> None:
    if wrong.any():
        vertex, neighbour = pairs[int(np.argmax(wrong))] + 1
        raise MeshprepError(f"vertex {vertex} has the neighbour {neighbour}, which {what}")


def _write_metis(mesh: Mesh, path: Path) -> None:
    writable = _reduce_to_graph(mesh)
    n = writable.size(VERTICES)
    n_edges = writable.size(EDGES)
    sizes = writable.dat(SIZE, VERTICES)
    weights = writable.dat(WEIGHT, VERTICES)
    edge_weights = writable.dat(WEIGHT, EDGES)
    before = [d.values.reshape(n, -1) for d in (sizes, weights) if d is not None]
    heads = np.hstack([np.empty((n, 0), np.int64), *before])
    first = [n, n_edges]
    lines = [f"%{comment}" for comment in writable.extras[METIS]["comments"]]
    if before or edge_weights is not None:
        # State in the first line what stands in the others.
        form = "".join(str(int(d is not None)) for d in (sizes, weights, edge_weights))
        if weights is not None:
            how_many = [heads.shape[1] - int(sizes is not None)]
        else:
            how_many = []
        lines.append(" ".join(map(str, [*first, form, *how_many])))
    else:
        lines.append(" ".join(map(str, first)))
    lines += [
        " ".join(map(str, [*head, *row.reshape(-1).tolist()]))
        for head, row in zip(heads.tolist(), _neighbours_of_vertices(writable), strict=True)
    ]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def _neighbours_of_vertices(mesh: Mesh) -> list[NDArray[np.int64]]:
    """The neighbours of each vertex, from 1, by the order of edges, with weights."""
    pairs = pairs_of(mesh).astype(np.int64)
    weights = mesh.dat(WEIGHT, EDGES)
    columns = [np.concatenate([pairs[:, 1], pairs[:, 0]]) + 1]
    if weights is not None:
        columns.append(np.tile(weights.values, 2))
    owner = np.concatenate([pairs[:, 0], pairs[:, 1]])
    order = np.lexsort((np.tile(np.arange(len(pairs)), 2), owner))
    stop = np.cumsum(np.bincount(owner, minlength=mesh.size(VERTICES)))
    return np.split(np.column_stack(columns)[order], stop[:-1])


def _losses_of_graph(mesh: Mesh, **_options: object) -> list[str]:
    lost = other_losses(mesh, _why_weights_are_lost)
    pairs = pairs_of(mesh)
    if symmetry_of(mesh) != SYMMETRIC:
        lost.append(f"which way edges lead ({symmetry_of(mesh)} matrix)")
    loops = int((pairs[:, 0] == pairs[:, 1]).sum())
    lost += [f"{loops} edges from a vertex to itself"] if loops else []
    repeated = len(pairs) - loops - len(_kept_edges(pairs, mesh.size(VERTICES)))
    return lost + ([f"{repeated} repeated edges"] if repeated else [])


def _why_weights_are_lost(d: Dat) -> str | None:
    lowest = {(WEIGHT, EDGES): 1, (WEIGHT, VERTICES): 0, (SIZE, VERTICES): 0}.get(
        (d.name, d.set)
    )
    if lowest is None:
        return ""
    if d.index is not None:
        return "not all have one"
    several = d.values.ndim == 2 and d.values.shape[1] > 1
    if d.values.ndim > 2 or (several and (d.name, d.set) != (WEIGHT, VERTICES)):
        return "of several numbers"
    v = d.values
    if v.dtype.kind not in "iu" or (
        v.size and not lowest <= v.min() <= int(v.max()) < LIMIT
    ):
        return f"METIS takes whole numbers from {lowest}"
    return None


def _kept_edges(pairs: NDArray[np.int32], n_vertices: int) -> NDArray[np.int64]:
    """The first of equal edges, no edge from a vertex to itself, by their lower ends."""
    low = pairs.min(axis=1, initial=n_vertices)
    high = pairs.max(axis=1, initial=-1)
    _, first = np.unique(low.astype(np.int64) * n_vertices + high, return_index=True)
    first = np.sort(first[low[first] != high[first]])
    return first[np.argsort(low[first], kind="stable")]


def _reduce_to_graph(mesh: Mesh) -> Mesh:
    """The mesh as reading gives it: each edge once, by its lower end, which goes first."""
    pairs = pairs_of(mesh)
    n = mesh.size(VERTICES)
    kept_rows = _kept_edges(pairs, n)
    dats = []
    for d in mesh.dats:
        if _why_weights_are_lost(d) is None:
            if d.set == EDGES:
                values = d.values[kept_rows]
            else:
                values = d.values
            # A column of single weights is read as a list of numbers.
            one = values.ndim == 2 and values.shape[1] == 1
            dats.append(
                Dat(d.name, d.set, (values[:, 0] if one else values).astype(np.int64))
            )
    notes = {"comments": mesh.extras.get(METIS, {}).get("comments", ())}
    return graph_mesh(
        n_vertices=n,
        pairs=np.sort(pairs[kept_rows], axis=1),
        dats=dats,
        extras={METIS: notes},
    )


FORMAT = Format(
    read=read,
    write=_write_metis,
    losses=_losses_of_graph,
    reduce=_reduce_to_graph,
    cells=False,
)
