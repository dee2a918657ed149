"""Compiling ahead: small jobs in several processes, with the types that any mesh gives.

Steps that few meshes need are left out: they are compiled when they run.
"""

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from signal import SIG_IGN, SIGINT, signal

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import Delaunay

from meshprep_runtime.cpu.pool import thread_count
from meshprep_runtime.errors import MeshprepError, Progress
from meshprep_runtime.kernel.cache import why_nothing_is_kept

from .. import io
from ..colouring import colour_blocks, colour_threads, thread_bound
from ..colouring.thread_colours import no_colours, search_thread_colours
from ..io.generate import generate
from ..kernels.machine_code import USUAL_MADE, folder
from ..loops.options import Options
from ..loops.request_maps import plan_request_maps
from ..loops.requests import LoopRequest, resolve, simple_request
from ..mesh import Mesh
from ..mesh.incidence import Csr, point_graph
from ..ordering import FOLLOW, METHODS, gps
from ..ordering.by_component import by_component
from ..ordering.grouping import group_points
from ..partitioning import PARTITIONERS, BlockProblem, partition, partition_graph
from ..partitioning.multilevel.balancing.reconnect import reconnect_groups
from ..partitioning.multilevel.refinement.centroids import mean_places
from ..partitioning.multilevel.tuning import PRESETS
from ..partitioning.repair import repair
from ..registry.formats import WRITTEN
from .measure import measure
from .steps import prepare

# The block size of the jobs.
SMALL = 64
# Access and type of the values that :func:`measure` moves.
MOVES = [("read", "f8"), ("inc", "f8"), ("read", "f4"), ("inc", "f4")]
# The tasks of reordering a Gmsh mesh, the longest first.
USUAL = (
    "plan none blocks gpu",
    "plan gps contiguous gpu",
    "files gmsh",
    "files gmsh-ascii",
    "measure",
)
# What other processes compile while a first run reads and orders its mesh, step by step,
# since processes that need the same kernels wait for each other: blocks, by whose end the
# run needs them, then what follows them. The rest is for machines with more cores.
BESIDE = (
    "blocks",
    "grouping",
    "written gmsh",
    "thread-colours",
    "gps",
    "block-colours",
    "measure",
)


def all_tasks() -> list[str]:
    """Every method, partitioner and format."""
    # Plans of each partitioner, and of each order for both targets.
    plans = [f"plan gps {name} gpu" for name in PARTITIONERS]
    methods = [name for name in METHODS if name != "none"]
    for name in methods:
        plans += [f"plan {name} contiguous gpu", f"plan {name} contiguous cpu"]
    formats = [name for name in WRITTEN if io.FORMATS[name].cells]
    files = [f"files {name}" for name in ("gmsh-ascii", *formats)]
    plans.append(USUAL[0])
    others = ["repairs", "split", "split refined", "graphs", "matrices", "measure"]
    return [*plans, *others, *files]


def warm_up(
    tasks: Sequence[str], progress: Progress = lambda done, total, name: None
) -> dict[str, float | str]:
    """Compile the functions that these tasks need.

    Gives the seconds of processor of each task, or its error in words. Raises MeshprepError
    where no machine code is kept.
    """
    kernel_folder = folder()
    if kernel_folder is None:
        raise MeshprepError(
            f"no machine code is kept, since {why_nothing_is_kept()}: name a folder there"
        )
    # Run the tasks in processes of their own, a thread each.
    outcome: dict[str, float | str] = {}
    count = min(len(tasks), thread_count())
    pool = ProcessPoolExecutor(count, get_context("spawn"), initializer=_start_quietly)
    try:
        progress(0, len(tasks), "compiling")
        running = {pool.submit(run_task, task): task for task in tasks}
        for done in as_completed(running):
            task = running[done]
            error = done.exception()
            if error:
                outcome[task] = f"{type(error).__name__}: {error}"
            else:
                outcome[task] = done.result()
            progress(len(outcome) - 1, len(tasks), f"compiled {task}")
    finally:
        pool.shutdown(cancel_futures=True)
    # Note that the usual tasks are compiled, for the first run of a command.
    compiled = {task for task, value in outcome.items() if isinstance(value, float)}
    if set(USUAL) <= compiled:
        with suppress(OSError):
            (kernel_folder / USUAL_MADE).touch()
    return outcome


@contextmanager
def compiling_beside() -> Iterator[None]:
    """Compile for a usual run in other processes, while this one begins with the run.

    There is a process for each further core. This one compiles what it needs first, and
    they what it needs later. Each kernel is compiled once: whoever else needs it meanwhile
    waits for it.
    """
    count = min(thread_count() - 1, len(BESIDE))
    context = get_context("spawn")
    processes = []
    for first in range(count):
        tasks = BESIDE[first::count]
        process = context.Process(target=_compile_quietly, args=(tasks,), daemon=True)
        process.start()
        processes.append(process)
    try:
        yield
    finally:
        # A run that has ended needs nothing of what is left.
        for process in processes:
            process.terminate()
            process.join()
    # All that a usual run needs is there, so that the next one starts no processes.
    kernel_folder = folder()
    if kernel_folder is not None:
        with suppress(OSError):
            (kernel_folder / USUAL_MADE).touch()


def _compile_quietly(tasks: Sequence[str]) -> None:
    """Run tasks beside the process of a run, which is told of faults and of Ctrl-C."""
    signal(SIGINT, SIG_IGN)
    _start_quietly()
    for task in tasks:
        with suppress(Exception):
            run_task(task)


def _start_quietly() -> None:
    """Start a process beside others: one thread, and no warnings, which the caller gave."""
    warnings.simplefilter("ignore")
    numba.set_num_threads(1)


def run_task(task: str) -> float:
    """Run a task, named with its choices as in ``files gmsh``; seconds of processor."""
    stage, *choices = task.split()
    begun = time.process_time()
    _STAGES[stage](*choices)
    return time.process_time() - begun


def _triangles() -> Mesh:
    """A mesh that is small, but not regular."""
    return generate("delaunay2d", cells=2500)


def _warm_plan(method: str, partitioner: str, target: str) -> None:
    """Orders, blocks, colours, figures and proof."""
    options = Options(method=method, partition=partitioner, target=target, block_size=SMALL)
    mesh = _triangles()
    with _as_if_large():
        prepare(mesh, (), options)
    # Blocks of several groups, as in large meshes.
    mean_places(
        place=np.ones((200, 3)),
        weight=np.ones(200, np.int32),
        block=np.zeros(200, np.int32),
        n_blocks=3,
    )
    # A graph of two components whose vertices alternate.
    graph = Csr(
        offset=np.array([0, 1, 2, 3, 4], np.int64),
        index=np.array([2, 3, 0, 1], np.int32),
    )
    by_component(graph, lambda offset, *rest: np.arange(offset.size - 1, dtype=np.uint32))
    # Cells that follow their nodes: rows of more than two points.
    for follow in FOLLOW.values():
        follow(mesh.map("cells->nodes").table.copy())


def _edges_of_triangles() -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The edges of an irregular triangulation, (n, 2), and their middles, (n, 2).

    What a run compiles to find edges is not compiled here.
    """
    points = np.random.default_rng(1).random((1250, 2))
    corners = Delaunay(points).simplices
    sides = corners[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    edges = np.unique(np.sort(sides, axis=1), axis=0).astype(np.int32)
    return edges, points[edges].mean(axis=1)


def _warm_blocks() -> None:
    """Blocks that share few points, without what finds and orders the elements."""
    edges, middle = _edges_of_triangles()
    n_points = int(edges.max()) + 1
    problem = BlockProblem(
        table=edges,
        n_points=n_points,
        block_size=SMALL,
        point_bytes=np.ones(n_points, np.int32),
        coordinates=middle,
    )
    with _as_if_large():
        partition(problem, "blocks")


def _warm_gps() -> None:
    """The order of a graph."""
    edges, _ = _edges_of_triangles()
    gps(point_graph(edges, n_to=int(edges.max()) + 1))


def _warm_thread_colours() -> None:
    """Colours of the elements of blocks, and their bounds.

    It begins with the last step, since a run that needs it now has begun with the first.
    """
    edges, _ = _edges_of_triangles()
    n_points = int(edges.max()) + 1
    block_offset = _runs_of(edges)
    search_thread_colours(np.empty(0, np.int64), no_colours(edges, block_offset))
    colour_threads(edges, n_points=n_points, block_offset=block_offset)
    thread_bound(edges, n_points=n_points, block_offset=block_offset)


def _warm_grouping() -> None:
    """Points in the order of the blocks that use them."""
    edges, _ = _edges_of_triangles()
    group_points(edges, n_to=int(edges.max()) + 1, block_offset=_runs_of(edges))


def _warm_block_colours() -> None:
    """Colours of blocks."""
    edges, _ = _edges_of_triangles()
    colour_blocks(edges, n_points=int(edges.max()) + 1, block_offset=_runs_of(edges))


def _runs_of(elements: NDArray[np.int32]) -> NDArray[np.int64]:
    """Offsets of blocks of consecutive elements."""
    return np.append(np.arange(0, len(elements), SMALL), len(elements)).astype(np.int64)


@contextmanager
def _as_if_large() -> Iterator[None]:
    """Cut as large meshes are; small ones nearly always need repairs as well."""
    before = dict(PRESETS)
    for name, tuning in before.items():
        PRESETS[name] = replace(tuning, lone_group=0, lone_group_of_many=0)
    try:
        yield
    finally:
        PRESETS.update(before)


def _warm_repairs() -> None:
    """Mend blocks that are in pieces, or over the cap: few large meshes need it."""
    # A chain of edges, dealt out to three blocks in turn.
    row = np.arange(200, dtype=np.int32)
    table = np.column_stack([row, row + 1])
    block = row % 3
    groups = np.zeros(3, np.int32)
    weight = np.ones(201, np.int32)
    everywhere = np.ones(3, np.bool_)
    reconnect_groups(
        table=table,
        weight=weight,
        block=block,
        group_of_block=groups,
        cap=100,
        fragmented=everywhere,
        near=everywhere,
    )
    # One block of all edges, four times as many as it may hold.
    repair(
        table=table,
        n_points=201,
        block_of_element=np.zeros(200, np.int32),
        n_asked=4,
        block_size=50,
    )


def _warm_split(cut: str = "annealed") -> None:
    """Owners, halos, orders and parts, with orders and blocks that have their own tasks."""
    from ..distribute.job.split import SplitOptions, split
    from ..distribute.subject import subject_of_mesh

    loops = ["edges->cells", "cells->nodes"]
    mesh, _ = plan_request_maps(_triangles(), loops)
    specs = resolve(map(simple_request, loops), mesh)
    options = Options(partition="contiguous", block_size=SMALL)
    made = split(subject_of_mesh(mesh, mesh, specs), 3, SplitOptions(cut), options)
    for part in range(3):
        made.builder.build(part)


def _warm_graphs() -> None:
    """Parts of a graph."""
    mesh = _triangles()
    graph = point_graph(mesh.map("cells->nodes").table, mesh.sets["nodes"].size)
    partition_graph(graph.offset, graph.index, parts=8)


def _warm_files(format: str) -> None:
    """Write a mesh and read it back, and derive what loops need of it."""
    name = format
    options = {}
    if format == "gmsh-ascii":
        name = "gmsh"
        options["binary"] = False
    # One long block of cells is read in another way than many short ones.
    meshes = [_triangles()]
    meshes += [
        generate(
            "box",
            nx=n,
            ny=n,
            nz=0,
            type="triangle",
        )
        for n in (12, 55)
    ]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"mesh{io.FORMATS[name].extensions[0]}"
        for mesh in meshes:
            io.write(mesh, path, format=name, drop=True, overwrite=True, **options)
            read_back = io.read(path, format=name)
    if read_back.cell_sets:
        plan_request_maps(read_back, ())


def _warm_written(format: str) -> None:
    """Write a mesh."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"mesh{io.FORMATS[format].extensions[0]}"
        io.write(_triangles(), path, format=format)


def _warm_matrices() -> None:
    """Dofs, constraints, and the pattern and places of a matrix."""
    matrix = {
        "mat": "K",
        "rows": "cells->dofs2",
        "columns": "cells->dofs2",
        "access": "inc",
    }
    values = {"over": "cells", "args": [matrix | {"fixed": "boundary"}]}
    prepare(
        _triangles(), {"matrix": values}, Options(partition="contiguous", block_size=SMALL)
    )


def _warm_measure() -> None:
    """The moves of floats and doubles."""
    args = [
        {"dat": a + t, "map": "edges->cells", "access": a, "dtype": t} for a, t in MOVES
    ]
    options = Options(method="none", partition="contiguous", block_size=SMALL)
    loops = [LoopRequest("moves", {"over": "edges", "args": args})]
    measure(prepare(_triangles(), loops, options).plan)


# By the first word of a task.
_STAGES: dict[str, Callable[..., None]] = {
    "plan": _warm_plan,
    "blocks": _warm_blocks,
    "gps": _warm_gps,
    "grouping": _warm_grouping,
    "thread-colours": _warm_thread_colours,
    "block-colours": _warm_block_colours,
    "repairs": _warm_repairs,
    "split": _warm_split,
    "graphs": _warm_graphs,
    "files": _warm_files,
    "written": _warm_written,
    "matrices": _warm_matrices,
    "measure": _warm_measure,
}
