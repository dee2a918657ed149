"""The cuts of the leading set of a whole mesh, by name: which part owns each element.

``annealed`` and ``metis`` need the whole mesh; the others are found by ranks together, of
which there may be one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from meshprep_runtime.errors import check_choice
from meshprep_runtime.types.maps import Float64s, SetMap

from ...kernels import Int32s
from ...mesh.incidence import point_graph, transpose
from ...partitioning.metis import kway, require_metis
from ...registry.partitioners import FILE
from ..ranks import ALONE
from ..subject import SplitSubject
from .fill import filled
from .inherit import runs
from .refine import MOST_ROWS
from .search import part_of_element
from .sizes import integer_weights
from .sliced import leading_owners

# Thousandths by which METIS may overfill a part. Twice its 10 passes on each level take a
# quarter more time, for 0.25 % fewer ghosts.
UFACTOR = 30


@dataclass(frozen=True, eq=False)
class CutProblem:
    """A set to cut into parts of about these shares.

    ``weights`` (parts,) add up to 1.
    """

    subject: SplitSubject
    weights: Float64s
    seed: int = 0

    @property
    def parts(self) -> int:
        return int(self.weights.size)

    @property
    def size(self) -> int:
        return self.subject.sizes[self.subject.leading_set]


def owners_of_leading_set(problem: CutProblem, cut: str) -> Int32s:
    """The part of every element of the leading set.

    Parts are empty only where their share is 0, or where there are more of them than
    elements. ``cut`` is a name in :data:`CUTS`. Raises MeshprepError for an unknown name,
    and coordinates that are missing.
    """
    check_cut(cut)
    # Cut among the parts that have a share.
    with_share = np.flatnonzero(problem.weights).astype(np.int32)
    if with_share.size < problem.parts:
        reduced = replace(problem, weights=problem.weights[with_share])
        return with_share[owners_of_leading_set(reduced, cut)]
    if problem.parts == 1:
        return np.zeros(problem.size, np.int32)
    if problem.parts >= problem.size:
        return np.arange(problem.size, dtype=np.int32)
    return filled(CUTS[cut](problem), problem.weights, ALONE)


def _annealed(problem: CutProblem) -> Int32s:
    """The fewest ghosts: 2 to 8 % less to send than METIS, for 4 to 5 times the time."""
    name = problem.subject.leading_set
    subject = problem.subject
    leading = subject.leading_map
    if leading is None or not _joins(leading):
        return runs(problem.size, problem.weights)
    # The graph and the table are not named here: the search lets go of them on the way, and
    # nothing else holds them.
    return part_of_element(
        graph=point_graph(leading.table, problem.size),
        parts=problem.parts,
        table=_points_of_elements(subject, leading),
        coordinates=subject.centroids.get(name),
        weights=subject.weights,
        shares=problem.weights,
        seed=problem.seed,
    )


def _points_of_elements(subject: SplitSubject, leading: SetMap) -> Int32s:
    """The nodes of each element, or else the rows of the leading map that reach it."""
    name = subject.leading_set
    nodes = subject.maps.get(f"{name}->nodes")
    if nodes is not None:
        return nodes.table
    return _rows_at(leading.table, subject.sizes[name])


def _rows_at(table: Int32s, n: int) -> Int32s:
    """The rows that reach each element, the first :data:`MOST_ROWS` at most; else -1."""
    rows = transpose(table, n)
    count = np.minimum(np.diff(rows.offset), MOST_ROWS)
    width = int(count.max(initial=0))
    out = np.full((n, width), -1, np.int32)
    for place, column in enumerate(out.T):
        elements = np.flatnonzero(count > place)
        column[elements] = rows.index[rows.offset[elements] + place]
    return out


def _joins(leading: SetMap) -> bool:
    """True if a row has two elements: else no graph joins elements, and runs are cut."""
    first = leading.table[:, :1]
    return bool((leading.table != first).any())


def _metis(problem: CutProblem) -> Int32s:
    """METIS k-way on the points of the leading map."""
    leading = problem.subject.leading_map
    subject = problem.subject
    if leading is None or not _joins(leading):
        return runs(problem.size, problem.weights)
    graph = point_graph(leading.table, problem.size)
    weights = subject.weights
    if weights is not None:
        weights = integer_weights(weights.astype(np.float64))
    return kway(
        graph=graph,
        shares=problem.weights,
        overfill=UFACTOR,
        seed=problem.seed,
        weights=weights,
    )


def _as_slices(cut: str) -> Callable[[CutProblem], Int32s]:
    """A cut that ranks also find together, each of them with a slice of the mesh."""
    return lambda problem: leading_owners(
        subject=problem.subject,
        weights=problem.weights,
        cut=cut,
        ranks=ALONE,
    )


CUTS: dict[str, Callable[[CutProblem], Int32s]] = {
    "annealed": _annealed,
    "metis": _metis,
    "refined": _as_slices("refined"),
    "rcb": _as_slices("rcb"),
    "curve": _as_slices("curve"),
}

# The cuts that balance what elements weigh, where a graph says so.
BY_WEIGHT = ("annealed", "metis")


def check_cut(cut: str) -> None:
    """Raise MeshprepError for an unknown cut, and where METIS is missing."""
    if not cut.startswith(FILE):
        check_choice("cut", cut, (*CUTS, f"{FILE}PARTS"))
    if cut == "metis":
        require_metis("cut 'metis'", "annealed")
