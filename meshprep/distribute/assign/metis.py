"""METIS k-way: of a graph in this process, or of sections of a set in processes of their own.

METIS takes one core, holds the interpreter and needs some 300 bytes an element. A file of parts
has its elements part after part, so that runs of its parts are sections with short borders, which
are cut on their own: on all cores, and with the memory of those that are at work.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import Float64s, Int32s, Int64s

from ...kernels.arithmetic import power
from ...mesh.incidence import Csr
from . import kway

# Thousandths by which METIS may overfill a part. Twice its 10 passes on each level take a quarter
# more time, for 0.25 % fewer ghosts.
UFACTOR = 30
# Numbers of sections that are tried. Each has so many elements at least, and leaves METIS so many
# thousandths; their borders are at most such a share of those of the parts to be made.
SECTIONS, LEAST_ELEMENTS, LEAST_OVERFILL, BORDERS = (8, 4, 2), 100_000, 15, 0.12
# Rows that tell how long borders are.
SAMPLE = 1 << 18


class FileSection(NamedTuple):
    """Elements that are cut on their own, the parts that they get, and by what these overfill."""

    elements: range
    parts: range
    overfill: int


def sections(table: Int32s, ends: Int64s, shares: Float64s) -> list[FileSection]:
    """As many sections as have short borders, or a single one.

    The elements of a row of ``table`` should be in one part. ``ends`` are where the parts of the
    file begin, and the end; nothing where there is no file. ``shares`` add up to 1: no part is over
    its share by more than :data:`UFACTOR` allows in one section. O(parts).
    """
    n, rows = int(ends[-1]) if ends.size else 0, table[:: max(1, len(table) // SAMPLE)]
    # borders grow with the number of parts as they do in space; in a plane more
    growth = power(shares.size / max(1, ends.size - 1), 1 / 3)
    for count in SECTIONS if n else ():
        found = _sections(ends, shares, count)
        allowed = BORDERS * growth * _crossing(rows, ends)
        starts = np.array([one.elements.start for one in found])
        if (
            min(len(one.elements) for one in found) >= LEAST_ELEMENTS
            and min(one.overfill for one in found) >= LEAST_OVERFILL
            and _crossing(rows, starts) <= allowed
        ):
            return found
    return [FileSection(range(n), range(shares.size), UFACTOR)]


def _sections(ends: Int64s, shares: Float64s, count: int) -> list[FileSection]:
    """Runs of the parts of the file of about equal size."""
    n, before = int(ends[-1]), np.append(0, np.cumsum(shares))
    middles = np.arange(1, count) / count
    parts = [0, *np.abs(before - middles[:, None]).argmin(axis=1).tolist(), shares.size]
    near = [int(ends[np.abs(ends - n * before[p]).argmin()]) for p in parts]
    found = []
    for i in range(count):
        elements, own = range(near[i], near[i + 1]), range(parts[i], parts[i + 1])
        share = before[own.stop] - before[own.start]
        room = (1 + UFACTOR / 1000) * share * n / max(1, len(elements))
        found.append(FileSection(elements, own, int(1000 * (room - 1))))
    return found


def _crossing(rows: Int32s, begins: Int64s) -> int:
    """Number of rows with elements on both sides of a border."""
    place = np.searchsorted(begins, rows, side="right")
    return int((place != place[:, :1]).any(axis=1).sum())


class KwayProcesses:
    """Processes that cut graphs, as many as are asked at once; they end with the context."""

    def __init__(self) -> None:
        self._idle: list[_KwayProcess] = []
        self._all = ExitStack()

    def __enter__(self) -> "KwayProcesses":
        return self

    def __exit__(self, *ended: object) -> None:
        self._all.close()

    def kway(self, graph: Csr, shares: Float64s, overfill: int, seed: int) -> Int32s:
        """:func:`.kway.kway` elsewhere; raises MeshprepError where that fails."""
        try:
            one = self._idle.pop()
        except IndexError:
            one = self._all.enter_context(_start_process())
        vertices = graph.offset.size - 1
        header = np.array([vertices, graph.index.size, shares.size, overfill, seed])
        # one that has ended says why
        with suppress(OSError):
            for array in (header, graph.offset, graph.index, shares):
                one.given.write(array.data)
            one.given.flush()
        found = one.answers.read(4 * vertices)
        if len(found) < 4 * vertices:
            one.said.seek(0)
            said = one.said.read().decode(errors="replace").strip().splitlines() or ["nothing"]
            raise MeshprepError(f"METIS ended with code {one.process.wait()} and said: {said[-1]}")
        self._idle.append(one)
        return np.frombuffer(found, np.int32)


class _KwayProcess(NamedTuple):
    process: "subprocess.Popen[bytes]"
    given: IO[bytes]
    answers: IO[bytes]
    said: IO[bytes]


@contextmanager
def _start_process() -> Iterator[_KwayProcess]:
    """A process, without what the environment adds to the start of every other one."""
    # modules beside this one have names of Python's own
    command = [sys.executable, "-P", "-S", kway.__file__]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with TemporaryFile() as said:
        process = subprocess.Popen(command, env=environment, stderr=said, **pipes)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield _KwayProcess(process, process.stdin, process.stdout, said)
        finally:
            process.kill()
            process.communicate()
