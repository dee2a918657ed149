"""METIS k-way: of a graph in this process, or of sections of a set in processes of their own.

METIS takes one core, holds the interpreter and needs some 300 bytes an element. A file of parts
has its elements part after part, so that runs of its parts are sections with short borders, which
are cut on their own: on all cores, and with the memory of those that are at work.
"""

import io
import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..mesh.incidence import Csr
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


def sections(
    table: NDArray[np.int32], ends: NDArray[np.int64], shares: NDArray[np.float64]
) -> list[FileSection]:
    """As many sections as have short borders, or a single one.

    Parameters
    ----------
    table : (n, arity) int32
        Rows whose elements should be in one part.
    ends : (m + 1,) int64
        Where the parts of the file begin, and the end; nothing where there is no file.
    shares : (parts,) float64
        They add up to 1.

    Returns
    -------
    list of FileSection
        No part is over its share by more than :data:`UFACTOR` allows in one section. O(parts).
    """
    n, rows = int(ends[-1]) if ends.size else 0, table[:: max(1, len(table) // SAMPLE)]
    # borders grow with the number of parts as they do in space; in a plane more
    growth = (shares.size / max(1, ends.size - 1)) ** (1 / 3)
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


def _sections(
    ends: NDArray[np.int64], shares: NDArray[np.float64], count: int
) -> list[FileSection]:
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


def _crossing(rows: NDArray[np.int32], begins: NDArray[np.int64]) -> int:
    """How many rows have elements on both sides of a border."""
    place = np.searchsorted(begins, rows, side="right")
    return int((place != place[:, :1]).any(axis=1).sum())


def kway_elsewhere(
    graph: Csr, shares: NDArray[np.float64], overfill: int, seed: int
) -> NDArray[np.int32]:
    """:func:`.kway.kway` in a process of its own; raises MeshprepError where that fails."""
    given = io.BytesIO()
    for array in (graph.offset, graph.index, shares, np.array([overfill, seed])):
        np.save(given, array)
    done = subprocess.run(
        # modules beside this one have names of Python's own
        [sys.executable, "-P", kway.__file__],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        input=given.getbuffer(),
        capture_output=True,
        check=False,
    )
    if done.returncode or len(done.stdout) != 4 * (graph.offset.size - 1):
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["nothing"]
        raise MeshprepError(f"METIS ended with code {done.returncode} and said: {said[-1]}")
    return np.frombuffer(done.stdout, np.int32)
