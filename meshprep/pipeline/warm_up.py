"""Compiling ahead: small jobs in several processes, with the types that any mesh gives.

What is left over, such as steps that few meshes need, is compiled when it runs.
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

import numba
import numpy as np

from meshprep_runtime.cpu.pool import thread_count
from meshprep_runtime.errors import MeshprepError, Progress

from .. import io
from ..io.generate import generate
from ..kernels.machine_code import USUAL_MADE, folder
from ..loops.options import Options
from ..loops.requests import LoopRequest, resolve, simple_request
from ..mesh import Mesh
from ..mesh.incidence import Csr
from ..partition import PARTITIONERS
from ..partition.blocks.anneal.centroids import middles
from ..partition.blocks.mend.reconnect import reconnect_groups
from ..partition.blocks.tuning import PRESETS
from ..partition.repair import repair
from ..reorder import FOLLOW, METHODS
from ..reorder.by_component import by_component
from .measure import measure
from .steps import plan_request_maps, prepare

SMALL = 64
MOVES = [("read", "f8"), ("inc", "f8"), ("read", "f4"), ("inc", "f4")]
# What reordering a Gmsh mesh needs, the longest first.
USUAL = (
    *("plan none blocks gpu", "plan gps contiguous gpu", "files gmsh", "files gmsh-ascii"),
    "measure",
)


def all_tasks() -> list[str]:
    """Every method, partitioner and format."""
    plans = [f"plan gps {name} gpu" for name in PARTITIONERS]
    methods = [name for name in METHODS if name != "none"]
    plans += [f"plan {name} contiguous {target}" for name in methods for target in ("gpu", "cpu")]
    formats = [name for name, f in io.FORMATS.items() if f.write is not None and f.cells]
    files = [f"files {name}" for name in ("gmsh-ascii", *formats)]
    plans.append(USUAL[0])
    return [*plans, "repairs", "split", "split refined", "matrices", "measure", *files]


def warm_up(
    tasks: Sequence[str], progress: Progress = lambda done, total, name: None
) -> dict[str, float | str]:
    """Compile what these tasks need: seconds of processor of each, or what went wrong.

    Raises MeshprepError where no machine code is kept.
    """
    if (place := folder()) is None:
        raise MeshprepError(
            "no machine code is kept, since MESHPREP_CACHE_DIR is empty: name a folder there"
        )
    found: dict[str, float | str] = {}
    count = min(len(tasks), thread_count())
    pool = ProcessPoolExecutor(count, get_context("spawn"), initializer=_alone)
    try:
        progress(0, len(tasks), "compiling")
        running = {pool.submit(run_task, task): task for task in tasks}
        for done in as_completed(running):
            task, error = running[done], done.exception()
            found[task] = f"{type(error).__name__}: {error}" if error else done.result()
            progress(len(found) - 1, len(tasks), f"compiled {task}")
    finally:
        pool.shutdown(cancel_futures=True)
    if set(USUAL) <= {task for task, value in found.items() if isinstance(value, float)}:
        with suppress(OSError):
            (place / USUAL_MADE).touch()
    return found


def _alone() -> None:
    """A process beside others, whose caller has warned of what there is."""
    warnings.simplefilter("ignore")
    numba.set_num_threads(1)


def run_task(task: str) -> float:
    """Run a task, named with its choices as in ``files gmsh``; seconds of processor."""
    stage, *choices = task.split()
    begun = time.process_time()
    _STAGES[stage](*choices)
    return time.process_time() - begun


def _triangles() -> Mesh:
    return generate("delaunay2d", cells=2500)


def _plan(method: str, partitioner: str, target: str) -> None:
    """Orders, blocks, colours, figures and proof."""
    options = Options(method=method, partition=partitioner, target=target, block_size=SMALL)
    mesh = _triangles()
    with _as_if_large():
        prepare(mesh, (), options)
    # of several groups, and in two components whose vertices alternate, as in large meshes
    middles(np.ones((200, 3)), np.ones(200, np.int32), np.zeros(200, np.int32), 3)
    graph = Csr(np.arange(5, dtype=np.int64), np.array([2, 3, 0, 1], np.int32))
    by_component(graph, lambda offset, *rest: np.arange(offset.size - 1, dtype=np.uint32))
    # cells follow their nodes: rows of more than two points
    for follow in FOLLOW.values():
        follow(mesh.map("cells->nodes").table.copy())


@contextmanager
def _as_if_large() -> Iterator[None]:
    """Cut as meshes of many elements are: those of few nearly always need repairs, too."""
    before = dict(PRESETS)
    for name, tuning in before.items():
        PRESETS[name] = replace(tuning, lone_group=0, lone_group_of_many=0)
    try:
        yield
    finally:
        PRESETS.update(before)


def _repairs() -> None:
    """Mending blocks in pieces, and over the cap: few large meshes need it."""
    row = np.arange(200, dtype=np.int32)
    table, block = np.column_stack([row, row + 1]), row % 3
    groups, weight = np.zeros(3, np.int32), np.ones(201, np.int32)
    everywhere = np.ones(3, np.bool_)
    reconnect_groups(table, weight, block, groups, 100, everywhere, everywhere)
    repair(table, 201, np.zeros(200, np.int32), 4, 50)


def _split(cut: str = "annealed") -> None:
    """Owners, halos, orders and parts; what these take of orders and blocks has its own tasks."""
    from ..distribute.steps import SplitOptions, split
    from ..distribute.subject import subject_of_mesh

    loops = ["edges->cells", "cells->nodes"]
    mesh, _ = plan_request_maps(_triangles(), loops)
    specs = resolve(map(simple_request, loops), mesh)
    options = Options(partition="contiguous", block_size=SMALL)
    made = split(subject_of_mesh(mesh, mesh, specs), 3, SplitOptions(cut), options)
    for part in range(3):
        made.builder.build(part)


def _files(format: str) -> None:
    """Write a mesh and read it back, and derive what loops need of it."""
    text = format == "gmsh-ascii"
    name = "gmsh" if text else format
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / f"mesh{io.FORMATS[name].extensions[0]}"
        # one long block of cells is read in another way than many short ones
        boxes = (generate("box", nx=n, ny=n, nz=0, type="triangle") for n in (12, 55))
        for mesh in (_triangles(), *boxes):
            options = {"binary": False} if text else {}
            io.write(mesh, path, format=name, drop=True, overwrite=True, **options)
            found = io.read(path, format=name)
    if found.cell_sets:
        plan_request_maps(found, ())


def _matrices() -> None:
    """Dofs, constraints, and the pattern and places of a matrix."""
    matrix = {"mat": "K", "rows": "cells->dofs2", "columns": "cells->dofs2", "access": "inc"}
    values = {"over": "cells", "args": [matrix | {"fixed": "boundary"}]}
    prepare(_triangles(), {"matrix": values}, Options(partition="contiguous", block_size=SMALL))


def _measure() -> None:
    """The moves of floats and doubles."""
    args = [{"dat": a + t, "map": "edges->cells", "access": a, "dtype": t} for a, t in MOVES]
    options = Options(method="none", partition="contiguous", block_size=SMALL)
    loops = [LoopRequest("moves", {"over": "edges", "args": args})]
    measure(prepare(_triangles(), loops, options).plan)


# By the first word of a task.
_STAGES: dict[str, Callable[..., None]] = {
    one.__name__[1:]: one for one in (_plan, _repairs, _split, _files, _matrices, _measure)
}
