"""What `blocks` is held against: the partitioners of others, as their users would take them.

All start from the same locality order. What a partitioner computes counts in its seconds, its graph
included; what only its Python interface costs (a graph by way of a file, lists of nets) does not.
No blocks of peers are repaired: those over the cap are counted in the table.
"""

import math
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pymetis
from meshlets import MOST_VERTICES, meshlets, spatial_clusters
from numba import config, njit, set_num_threads
from numpy.typing import NDArray
from partition_cases import Case, Start

from meshprep.mesh.incidence import Csr, point_graph, transpose
from meshprep.partitioning import BlockProblem, Blocks, blocks_of, partition
from meshprep.partitioning.connectivity import distinct_rows
from meshprep.partitioning.neighbourhood import facet_graph

# Packages of the extra ``bench``; where one is not installed its rows are left out.
PACKAGES = ("almeshopt", "kaminpar", "mtkahypar")
THREADS = tuple(t for t in (1, 2) if t <= config.NUMBA_NUM_THREADS)
# Parts more than n/S that METIS is asked for; the others keep a cap and get the fewest.
SPARE = (1.01, 1.03)
# [S19] eq. 1-2, then a repair.
STRICT = {"graph": "conflict", "tolerance": 1.001, "improve": False}

Cut = tuple[Blocks, float]
Clock = Callable[[], float]


@dataclass(frozen=True)
class Peer:
    """A row to be: who cuts, on how many threads, and a function that gives blocks and seconds."""

    label: str
    threads: int
    cut: Callable[[], Cut]


def cut_by(
    problem: BlockProblem, name: str, options: dict[str, object], threads: int = 1
) -> Callable[[], Cut]:
    """A function that runs a partitioner of meshprep on this many threads."""

    def cut() -> Cut:
        set_num_threads(threads)
        begin = time.perf_counter()
        blocks = partition(problem, name, options)
        return blocks, time.perf_counter() - begin

    return cut


def peers(case: Case, start: Start) -> Iterator[Peer]:
    """The rows of all others that are installed."""
    problem, facets = start.problem, case.kind == "facets"
    yield Peer("METIS conflict graph, strict", 1, cut_by(problem, "metis", STRICT))
    graph = {threads: timed_graph(problem, threads) for threads in THREADS}
    for spare in SPARE:
        name = f"METIS {'facets' if facets else 'dual'} {100 * spare - 100:.0f} %"
        yield Peer(name, 1, partial(_metis_on_elements, problem, spare, *graph[1]))
        if facets:
            name = f"METIS cells {100 * spare - 100:.0f} %"
            yield Peer(name, 1, partial(_metis_on_cells, problem, spare))
    if find_spec("kaminpar"):
        for preset in ("largek", "strong") if case.slow else ("largek",):
            for threads in THREADS:
                cut = partial(kaminpar_blocks, problem, preset, threads, *graph[threads])
                yield Peer(f"KaMinPar {preset}", threads, cut)
    if find_spec("mtkahypar") and case.slow:
        for objective, threads in (("km1", 1), ("km1", THREADS[-1]), ("cut", THREADS[-1])):
            cut = partial(kahypar_blocks, problem, objective, threads)
            yield Peer(f"Mt-KaHyPar {objective}", threads, cut)
    if find_spec("almeshopt"):
        yield Peer("meshoptimizer points", 1, partial(spatial_clusters, problem))
        if case.kind == "triangles":
            name = f"meshoptimizer meshlets, <= {MOST_VERTICES} vertices"
            yield Peer(name, 1, partial(meshlets, problem, start.points))


def timed_graph(
    problem: BlockProblem, threads: int, clock: Clock = time.perf_counter
) -> tuple[Csr, float]:
    """The graph of elements that share a facet or a cell; the better of two runs."""
    set_num_threads(threads)
    seconds = []
    for _ in range(2):
        begin = clock()
        graph = facet_graph(distinct_rows(problem.table), problem.n_points)
        seconds.append(clock() - begin)
    return graph, min(seconds)


def asked(problem: BlockProblem, spare: float) -> int:
    return math.ceil(spare * problem.n / problem.block_size)


def metis_parts(
    graph: Csr, n_parts: int, largest: float, weight: NDArray[np.int64] | None = None
) -> NDArray[np.int32]:
    """METIS k-way, with the imbalance that leads to parts of ``largest`` times the mean."""
    adjacency = pymetis.CSRAdjacency(graph.offset, graph.index.astype(np.int64))
    options = pymetis.Options(ufactor=max(1, int(1000 * (largest - 1))), seed=0)
    _, part = pymetis.part_graph(
        n_parts, adjacency, vweights=weight, recursive=False, options=options
    )
    return np.asarray(part).astype(np.int32)


def _metis_on_elements(
    problem: BlockProblem, spare: float, graph: Csr, graph_seconds: float
) -> Cut:
    begin = time.perf_counter()
    n_parts = asked(problem, spare)
    part = metis_parts(graph, n_parts, n_parts * problem.block_size / problem.n)
    blocks = blocks_of(part, n_parts)
    return blocks, graph_seconds + time.perf_counter() - begin


def _metis_on_cells(problem: BlockProblem, spare: float) -> Cut:
    """The cells in parts, by weight of their facets; facets between two parts are dealt out."""
    set_num_threads(1)
    begin = time.perf_counter()
    n_parts = asked(problem, spare)
    graph = point_graph(problem.table, problem.n_points)
    weight = np.bincount(problem.table.reshape(-1), minlength=problem.n_points)
    part = metis_parts(graph, n_parts, n_parts * problem.block_size / problem.n, weight)
    blocks = blocks_of(_deal(problem.table, part, n_parts), n_parts)
    return blocks, time.perf_counter() - begin


@njit(cache=True)
def _deal(
    table: NDArray[np.int32], part: NDArray[np.int32], n_parts: int
) -> NDArray[np.int32]:
    """Facets to the part of their cells; where these differ, to the one that will be smaller.

    A part will have its inner facets, those dealt to it and half of those still to be dealt.
    """
    twice = np.zeros(n_parts, np.int64)
    for i in range(table.shape[0]):
        twice[part[table[i, 0]]] += 1
        twice[part[table[i, 1]]] += 1
    block = np.empty(table.shape[0], np.int32)
    for i in range(table.shape[0]):
        a, b = part[table[i, 0]], part[table[i, 1]]
        if twice[b] < twice[a]:
            a, b = b, a
        block[i] = a
        if a != b:
            twice[a] += 1
            twice[b] -= 1
    return block


def kaminpar_blocks(
    problem: BlockProblem,
    preset: str,
    threads: int,
    graph: Csr,
    graph_seconds: float,
    *,
    spare: float = SPARE[0],
    clock: Clock = time.perf_counter,
) -> Cut:
    """KaMinPar with S as the weight that no block may pass; its wheel reads graphs from files."""
    import kaminpar

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.parhip"
        _write_parhip(graph, path)
        known = kaminpar.load_graph(str(path), kaminpar.GraphFileFormat.PARHIP)
    n_parts = asked(problem, spare)
    kaminpar.reseed(0)
    partitioner = kaminpar.KaMinPar(threads, kaminpar.context_by_name(preset))
    begin = clock()
    part = partitioner.compute_partition(known, [problem.block_size] * n_parts)
    seconds = clock() - begin
    return blocks_of(np.asarray(part, np.int32), n_parts), graph_seconds + seconds


def _write_parhip(graph: Csr, path: Path) -> None:
    """Without weights: a header, where each vertex's neighbours begin in bytes, the neighbours."""
    head = np.array([3, graph.n_rows, graph.index.size], np.uint64)
    begin = 8 * (head.size + graph.offset.size + graph.offset)
    with path.open("wb") as file:
        for values in (head, begin, graph.index):
            values.astype(np.uint64).tofile(file)


def kahypar_blocks(
    problem: BlockProblem,
    objective: str,
    threads: int,
    *,
    preset: str = "DEFAULT",
    spare: float = SPARE[0],
    clock: Clock = time.perf_counter,
) -> Cut:
    """Mt-KaHyPar in a process of its own, as its threads are counted once in a process."""
    mesh = problem.table, problem.n_points, problem.block_size
    given = *mesh, objective, threads, preset, spare, clock
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        part, n_parts, seconds = pool.submit(kahypar_parts, *given).result()
    return blocks_of(part, n_parts), seconds


def kahypar_parts(
    table: NDArray[np.int32],
    n_points: int,
    block_size: int,
    objective: str,
    threads: int,
    preset: str,
    spare: float,
    clock: Clock,
) -> tuple[NDArray[np.int32], int, float]:
    """Elements as vertices and points as nets; the part of each, how many, and seconds."""
    import mtkahypar

    n = len(table)
    touching = transpose(table, n_points)
    ends, member = touching.offset.tolist(), touching.index.tolist()
    nets = [member[a:b] for a, b in pairwise(ends) if b > a + 1]
    start = mtkahypar.initialize(threads, False)
    context = start.context_from_preset(getattr(mtkahypar.PresetType, preset))
    context.logging = False
    n_parts = math.ceil(spare * n / block_size)
    # The largest part allowed is (1 + epsilon) times the mean, rounded up.
    epsilon = (block_size + 0.1) / math.ceil(n / n_parts) - 1
    wanted = getattr(mtkahypar.Objective, objective.upper())
    context.set_partitioning_parameters(n_parts, epsilon, wanted)
    mtkahypar.set_seed(0)
    begin = clock()
    graph = start.create_hypergraph(context, n, len(nets), nets)
    part = graph.partition(context).get_partition()
    return np.asarray(part, np.int32), n_parts, clock() - begin
