"""Compiling what a job needs before it begins: several processes at once, into one folder.

A task runs one stage on a small mesh, with the types of arguments that any mesh gives. A process
takes one task after the other, as numba's own parts are then compiled once; what is left over,
such as steps that few meshes need, is compiled when it runs.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite.binding import get_host_cpu_name
from numba import get_num_threads
from numba.core import config
from scipy.spatial import Delaunay

from meshprep_runtime.errors import Progress
from meshprep_runtime.kernel.cache import versions

from ..kernels import folder

if TYPE_CHECKING:
    from ..loops import LoopSpec
    from ..loops.options import Options
    from ..mesh import Mesh

SMALL = 64
# Seconds after which a caller that wants to stop is asked again.
TICK = 0.2


def job_tasks(options: Options, formats: Sequence[str]) -> list[str]:
    """The tasks of a job that reads and writes these formats, the longest first."""
    wanted = _orders() if options.method == "auto" else {options.method} & set(_orders())
    orders = [f"order {name} {options.target}" for name in wanted]
    files = [f"files {name}" for name in dict.fromkeys(formats) if name in _formats()]
    return [f"blocks {options.partitioner} {options.target}", "colours", *orders, *files]


def all_tasks() -> list[str]:
    """Every method, partitioner and format."""
    from ..partition import PARTITIONERS

    missing = set() if find_spec("mtkahypar") else {"kahypar"}
    cuts = [f"blocks {name} gpu" for name in PARTITIONERS if name not in missing]
    orders = [f"order {name} {target}" for name in _orders() for target in ("gpu", "cpu")]
    files = [f"files {name}" for name in ("gmsh-ascii", *_formats())]
    return [*cuts, "colours", *orders, *files]


@dataclass(frozen=True)
class Warmed:
    """Seconds of processor of each task that ran, and what went wrong with the others."""

    seconds: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


def warm_up(tasks: Sequence[str], progress: Progress = lambda done, total, name: None) -> Warmed:
    """Compile what these tasks need, unless that was done before.

    Parameters
    ----------
    tasks : sequence of str
        As of :func:`job_tasks` and :func:`all_tasks`.
    progress : callable
        ``progress(done, total, name)`` is called when a task begins or ends, and now and then.

    Returns
    -------
    Warmed
        Empty where all was done before, and where machine code is not kept.
    """
    place = _writable_folder()
    left = [] if place is None else [t for t in tasks if not (place / _mark(t)).is_file()]
    if place is None or not left:
        return Warmed()
    waiting: SimpleQueue[str] = SimpleQueue()
    news: SimpleQueue[tuple[str, float | str | None]] = SimpleQueue()
    for task in left:
        waiting.put(task)
    count = min(len(left), get_num_threads())
    with _processes(count) as processes, ThreadPoolExecutor(count) as pool:
        for process in processes:
            pool.submit(_feed, process, waiting, news)
        warmed = _gather(len(left), news, progress)
    for task in warmed.seconds:
        (place / _mark(task)).touch()
    return warmed


def _gather(
    total: int, news: SimpleQueue[tuple[str, float | str | None]], progress: Progress
) -> Warmed:
    """Tell what is going on until all tasks have ended."""
    warmed, told = Warmed(), ""
    running: list[str] = []
    while (done := len(warmed.seconds) + len(warmed.failures)) < total:
        names = " and ".join(dict.fromkeys(task.split()[0] for task in running))
        if running and names != told:
            progress(done, total, f"compiling {names}")
            told = names
        with suppress(Empty):
            task, found = news.get(timeout=TICK)
            if found is None:
                running.append(task)
                continue
            running.remove(task)
            if isinstance(found, str):
                warmed.failures[task] = found
            else:
                warmed.seconds[task] = found
    return warmed


def _feed(
    process: subprocess.Popen[str],
    waiting: SimpleQueue[str],
    news: SimpleQueue[tuple[str, float | str | None]],
) -> None:
    """Hand tasks to a process as long as there are any."""
    given, answers = process.stdin, process.stdout
    assert given is not None
    assert answers is not None
    while True:
        try:
            task = waiting.get_nowait()
        except Empty:
            return
        news.put((task, None))
        try:
            given.write(task + "\n")
            given.flush()
            found = json.loads(answers.readline())
        except (OSError, ValueError):
            found = "the process ended"
        news.put((task, found))


@contextmanager
def _processes(count: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that run tasks; they end with the context."""
    environment = {**os.environ, "NUMBA_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", "from meshprep.pipeline.warm_up import serve; serve()"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen(command, env=environment, **pipes) for _ in range(count)]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def serve() -> None:
    """Run the tasks that stdin names, a line each; answer with seconds, or what went wrong."""
    for line in sys.stdin:
        begun = time.process_time()
        try:
            run(line.strip())
            answer: float | str = time.process_time() - begun
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def run(task: str) -> None:
    """Run one task in this process."""
    stage, *words = task.split()
    stages: dict[str, Callable[..., None]] = {
        "order": _order,
        "blocks": _blocks,
        "colours": _colours,
        "files": _files,
    }
    stages[stage](*words)


def _order(method: str, target: str) -> None:
    from ..reorder import FOLLOW, propagate
    from .numbering import Numbering
    from .order import locality_metrics, order_for_locality

    mesh, spec, options = _small(method=method, target=target)
    numbering = Numbering(mesh)
    leads = order_for_locality(numbering, [(spec.loop, options)])
    propagate(mesh, numbering.settled(), FOLLOW[target])
    locality_metrics(numbering, leads)


def _blocks(partitioner: str, target: str) -> None:
    from .blocks import cut
    from .numbering import Numbering

    mesh, spec, options = _small(partition=partitioner, target=target)
    if partitioner == "structured":
        mesh, spec = _grid()
    cut(Numbering(mesh), spec, options)
    if partitioner == "blocks":
        _repairs()


def _repairs() -> None:
    """What mends blocks in pieces and over the cap, which a small mesh hardly has."""
    from ..partition.blocks.groups import reconnect_groups
    from ..partition.repair import repair

    row = np.arange(200, dtype=np.int32)
    table, block = np.column_stack([row, row + 1]), row % 3
    groups, weight = np.zeros(3, np.int32), np.ones(201, np.int32)
    reconnect_groups(table, weight, block, groups, 100, np.ones(3, np.bool_))
    repair(table, 201, np.zeros(200, np.int32), 4, 50)


def _colours() -> None:
    from ..metrics.measures import variant_metrics
    from .blocks import colour, cut
    from .numbering import Numbering

    mesh, spec, options = _small(partition="contiguous")
    numbering = Numbering(mesh)
    blocks = cut(numbering, spec, options)
    numbering.finish({})
    variant = colour(numbering, spec.loop, blocks, options)
    sizes = {s.name: s.size for s in mesh.sets.values()}
    maps = {name: numbering.map(name) for name in spec.loop.maps}
    variant_metrics(spec.loop, maps, sizes, variant)


def _files(format: str) -> None:
    """Write a mesh and read it back, and derive what loops need of it."""
    from .. import io
    from ..io.generate import generate
    from ..loops import default_request
    from .steps import plan_request_maps

    text = format == "gmsh-ascii"
    name = "gmsh" if text else format
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / f"mesh{io.FORMATS[name].extensions[0]}"
        # few and many cells are read in different ways
        for cells in (300, 6000):
            mesh = generate("delaunay2d", cells=cells)
            options = {"binary": False} if text else {}
            io.write(mesh, path, format=name, drop=True, overwrite=True, **options)
            found = io.read(path, format=name)
    if found.cell_sets:
        plan_request_maps(found, [default_request(found)])


def _small(**options: Any) -> tuple[Mesh, LoopSpec, Options]:
    """A square of triangles with its edges, a loop over these, and options."""
    from ..loops import resolve, simple_request
    from ..loops.options import Options
    from ..mesh import Dat, ElementSet, Mesh, SetMap

    where = np.random.default_rng(0).random((800, 2))
    cells = Delaunay(where).simplices
    ends = np.sort(cells[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2))
    edges, own, count = np.unique(ends, axis=0, return_inverse=True, return_counts=True)
    cell = np.argsort(own.ravel(), kind="stable") // 3
    first = (np.cumsum(count) - count)[count == 2]
    sets = ElementSet("nodes", 800), ElementSet("cells", len(cells), "triangle")
    maps = (
        SetMap("cells->nodes", "cells", "nodes", cells),
        SetMap("edges->cells", "edges", "cells", np.stack([cell[first], cell[first + 1]], axis=1)),
        SetMap("edges->nodes", "edges", "nodes", edges[count == 2]),
    )
    places = [Dat("coordinates", "nodes", where)]
    mesh = Mesh([*sets, ElementSet("edges", len(first))], maps, places)
    (spec,) = resolve([simple_request("edges->cells")], mesh)
    return mesh, spec, Options(block_size=SMALL, **options)


def _grid() -> tuple[Mesh, LoopSpec]:
    from ..io.generate import generate
    from ..loops import default_request
    from .steps import plan_request_maps

    mesh = generate("box", nx=12, ny=12, nz=0, type="quad")
    full, (spec,) = plan_request_maps(mesh, [default_request(mesh)])
    return full, spec


def _orders() -> tuple[str, ...]:
    from ..reorder import METHODS

    return tuple(name for name in METHODS if name != "none")


def _formats() -> tuple[str, ...]:
    """Those that a mesh of cells can be written to and read from."""
    from ..io import FORMATS

    return tuple(name for name, f in FORMATS.items() if f.write is not None and f.cells)


def _writable_folder() -> Path | None:
    place = folder()
    if place is None or getattr(config, "DISABLE_JIT", False):
        return None
    with suppress(OSError):
        place.mkdir(parents=True, exist_ok=True)
    return place if os.access(place, os.W_OK) else None


def _mark(task: str) -> str:
    return f"{task.replace(' ', '-')}-{_state()}.done"


@cache
def _state() -> str:
    """A digest of the modules with kernels, the versions and the processor."""
    processor = getattr(config, "CPU_NAME", None) or get_host_cpu_name()
    found = hashlib.sha256(repr((versions(), processor)).encode())
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        content = path.read_bytes()
        if b"kernels" in content:
            found.update(content)
    return found.hexdigest()[:32]
