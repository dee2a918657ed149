"""Compiling what a job needs before it begins: several processes at once, into one folder.

A task runs one stage on a small mesh (:mod:`small_runs`). A process takes one task after the other,
as numba's own parts are then compiled once; what is left over, such as steps that few meshes need,
is compiled when it runs.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from numba.core import config

from meshprep_runtime.cpu.pool import thread_count
from meshprep_runtime.errors import Progress
from meshprep_runtime.program import chains

from ..kernels.machine_code import folder, why_not_shipped

if TYPE_CHECKING:
    from ..io.source import MeshSource
    from ..loops.options import Options

# Seconds between two looks at what has ended.
TICK = 0.2


def job_tasks(options: Options, formats: Sequence[str]) -> list[str]:
    """The tasks of a job that reads and writes these formats, the longest first."""
    # a mesh that keeps its order, and is cut in a temporary one
    kept = options.method == "none" and options.partition not in (None, "contiguous")
    method = "gps" if kept else options.method
    wanted = _orders() if method == "auto" else {method} & set(_orders())
    orders = [f"order {name} {options.target}" for name in wanted]
    # triangles on the boundary follow their nodes
    orders += ["rows"] * bool(orders)
    blocks = f"blocks {options.partitioner} {options.target}"
    colours = "colours lists" if kept or options.own_blocks else "colours"
    return [blocks, colours, *orders, *_file_tasks(formats)]


def sweep_tasks(jobs: Iterable[Options], source: MeshSource) -> list[str]:
    """The tasks of several jobs that read one mesh, each once."""
    tasks = [task for options in jobs for task in job_tasks(options, ())]
    return [*dict.fromkeys(tasks), *read_tasks([source])]


def read_tasks(sources: Iterable[MeshSource]) -> list[str]:
    """What reading these files needs; raises MeshprepError for one that is not there."""
    return _file_tasks([one.find_format().name for one in sources])


def all_tasks() -> list[str]:
    """Every method, partitioner and format."""
    from ..partition import PARTITIONERS

    cuts = [f"blocks {name} gpu" for name in PARTITIONERS]
    orders = [f"order {name} {target}" for name in _orders() for target in ("gpu", "cpu")]
    files = [f"files {name}" for name in ("gmsh-ascii", *_formats())]
    splits = ["split", "split refined"]
    others = ["repairs", "colours lists", "rows", *splits, "matrices", "chains", "measure"]
    return [*cuts, *others, *orders, *files, "pictures"]


@dataclass(frozen=True)
class Warmed:
    """Seconds of processor of each task that ran, and what went wrong with the others."""

    seconds: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def notes(self) -> list[str]:
        """What a person should know: failures, and that what came with the package does not fit."""
        unused = why_not_shipped() if self.seconds else None
        failed = [f"compiling '{t}' ahead failed: {why}" for t, why in self.failures.items()]
        return failed if unused is None else [unused, *failed]


def warm_up(tasks: Sequence[str], progress: Progress = lambda done, total, name: None) -> Warmed:
    """Compile what these tasks need, unless that was done before.

    ``progress(done, total, name)`` is called when a task begins or ends, and now and then. The
    result is empty where all was done before or came with the package, and where nothing can be
    kept.
    """
    place = _writable_folder()
    left = [] if place is None else [t for t in tasks if not (place / _mark(t)).is_file()]
    if place is None or not left:
        return Warmed()
    count = min(len(left), thread_count())
    # the processes end first, so that no thread waits for one that still compiles
    with ThreadPoolExecutor(count) as pool, _processes(count) as free:
        answers = {task: pool.submit(_ask, free, task) for task in left}
        _tell(answers, progress)
    found = {task: answer.result() for task, answer in answers.items()}
    seconds = {task: s for task, s in found.items() if isinstance(s, float)}
    for task in seconds:
        (place / _mark(task)).touch()
    return Warmed(seconds, {task: why for task, why in found.items() if isinstance(why, str)})


def _tell(answers: Mapping[str, Future[float | str]], progress: Progress) -> None:
    """Tell what is compiled, whenever that changes, until all tasks have ended."""
    told = ""
    while left := sum(not answer.done() for answer in answers.values()):
        running = [task.split()[0] for task, answer in answers.items() if answer.running()]
        names = " and ".join(dict.fromkeys(running))
        if running and names != told:
            progress(len(answers) - left, len(answers), f"compiling {names}")
            told = names
        wait(answers.values(), TICK)


def _ask(free: SimpleQueue[subprocess.Popen[str]], task: str) -> float | str:
    """What a process that is free answers to a task."""
    process = free.get()
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(task + "\n")
        process.stdin.flush()
        found: float | str = json.loads(process.stdout.readline())
        return found
    except (OSError, ValueError):
        return "the process ended"
    finally:
        free.put(process)


@contextmanager
def _processes(count: int) -> Iterator[SimpleQueue[subprocess.Popen[str]]]:
    """Processes that run tasks; they end with the context."""
    own = {"NUMBA_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    # this process has warned of what there is
    environment = {**os.environ, **own, "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", "from meshprep.pipeline.warm_up import serve; serve()"]
    pipe = subprocess.PIPE
    pipes: dict[str, Any] = {"stdin": pipe, "stdout": pipe, "encoding": "utf-8"}
    started = [subprocess.Popen(command, env=environment, **pipes) for _ in range(count)]
    free: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
    for process in started:
        free.put(process)
    try:
        yield free
    finally:
        for process in started:
            process.kill()
            process.communicate()


def serve() -> None:
    """Run the tasks that stdin names, a line each; answer with seconds, or what went wrong."""
    from .small_runs import run_task

    gc.disable()
    for line in sys.stdin:
        begun = time.process_time()
        try:
            run_task(line.strip())
            answer: float | str = time.process_time() - begun
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _file_tasks(formats: Iterable[str]) -> list[str]:
    return [f"files {name}" for name in dict.fromkeys(formats) if name in _formats()]


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
    """A digest of the modules with kernels, and of those of the runtime that cut chains."""
    found = hashlib.sha256()
    modules = [*Path(__file__).parents[1].rglob("*.py"), *Path(chains.__path__[0]).glob("*.py")]
    for path in sorted(modules):
        content = path.read_bytes()
        if b"kernels" in content or b"numba" in content:
            found.update(content)
    return found.hexdigest()[:32]
