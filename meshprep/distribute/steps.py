"""From a mesh and its loops to parts: the steps in their order, and the cuts to choose from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from meshprep_runtime.errors import MeshprepError, check_choice
from meshprep_runtime.types.loops import Loop
from meshprep_runtime.types.maps import Float64s, SetMap

from ..kernels import Int32s
from ..kernels.parallel import at_once
from ..loops.options import Options
from ..mesh.incidence import point_graph, transpose
from ..partition.metis import has_metis, kway, require_metis
from .assign.inherit import Owners, inherit, runs
from .assign.owners import FILE, owners_from_file, part_of_element
from .borders.refine import MOST_ROWS
from .build import PartBuilder
from .halos import all_copies, executed_copies, numbers_here, owned_runs
from .increments import WAYS, IncrementCost, increment_cost
from .order import order_parts, refuse_lists
from .ranks import ALONE, Ranks, agreed, of_root
from .slices.cuts import leading_owners
from .subject import SplitSubject, written_by

# Thousandths by which METIS may overfill a part. Twice its 10 passes on each level take a quarter
# more time, for 0.25 % fewer ghosts.
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

    Parts may be empty, and there may be more of them than elements. ``cut`` is a name in
    :data:`CUTS`. Raises MeshprepError for an unknown name, and coordinates that are missing.
    """
    check_cut(cut)
    some = np.flatnonzero(problem.weights).astype(np.int32)
    if some.size < problem.parts:
        return some[owners_of_leading_set(replace(problem, weights=problem.weights[some]), cut)]
    if problem.parts == 1:
        return np.zeros(problem.size, np.int32)
    if problem.parts >= problem.size:
        return np.arange(problem.size, dtype=np.int32)
    return CUTS[cut](problem)


def _annealed(problem: CutProblem) -> Int32s:
    """The fewest copies: 2 to 8 % less to send than METIS, for 4 to 5 times the time."""
    subject, name = problem.subject, problem.subject.leading_set
    leading = subject.leading_map
    if leading is None or not _joins(leading):
        return runs(problem.size, problem.weights)
    nodes = subject.maps.get(f"{name}->nodes")
    # held there alone, which lets go of them on the way
    return part_of_element(
        point_graph(leading.table, problem.size),
        problem.parts,
        table=_rows_at(leading.table, problem.size) if nodes is None else nodes.table,
        coordinates=subject.centroids.get(name),
        shares=problem.weights,
        seed=problem.seed,
    )


def _rows_at(table: Int32s, n: int) -> Int32s:
    """The rows that reach each element, of many the first :data:`MOST_ROWS`; -1 for no more."""
    rows = transpose(table, n)
    count = np.minimum(np.diff(rows.offset), MOST_ROWS)
    found = np.full((n, int(count.max(initial=0))), -1, np.int32)
    for place, column in enumerate(found.T):
        there = np.flatnonzero(count > place)
        column[there] = rows.index[rows.offset[there] + place]
    return found


def _joins(leading: SetMap) -> bool:
    """True if a row has two elements."""
    return bool((leading.table != leading.table[:, :1]).any())


def _metis(problem: CutProblem) -> Int32s:
    """METIS k-way on the points of the leading map."""
    leading = problem.subject.leading_map
    if leading is None or not _joins(leading):
        return runs(problem.size, problem.weights)
    graph = point_graph(leading.table, problem.size)
    return kway(graph, problem.weights, UFACTOR, problem.seed)


def _as_slices(cut: str) -> Callable[[CutProblem], Int32s]:
    """A cut that ranks which hold slices of a mesh find, too."""
    return lambda problem: leading_owners(problem.subject, problem.weights, cut, ALONE)


CUTS: dict[str, Callable[[CutProblem], Int32s]] = {
    "annealed": _annealed,
    "metis": _metis,
    **{cut: _as_slices(cut) for cut in ("refined", "rcb", "curve")},
}


def check_cut(cut: str) -> None:
    """Raise MeshprepError for a cut that is no name and no file, or where METIS is missing."""
    if not cut.startswith(FILE):
        check_choice("cut", cut, (*CUTS, f"{FILE}PARTS"))
    if cut == "metis":
        require_metis("cut 'metis'", "annealed")


@dataclass(frozen=True)
class SplitOptions:
    """Options of a split: cut, weights, increments."""

    # Who owns the leading set: ``annealed``, ``metis``, ``refined``, ``rcb``, ``curve``; or
    # ``file:PARTS``, of that set or another. None takes ``refined`` for slices, ``metis`` for
    # files of parts, which is the fastest, and ``annealed`` otherwise and where it is missing.
    cut: str | None = None
    # What each part shall own relative to the others; empty for equal parts.
    weights: tuple[float, ...] = ()
    # ``"exec"``: elements that write what a part owns are executed there, too; ``"reverse"``:
    # increments are sent back; ``"auto"``: what costs less, loop by loop.
    increments: str = "auto"

    def __post_init__(self) -> None:
        check_choice("increments", self.increments, WAYS)
        if self.cut is not None:
            check_cut(self.cut)
            if self.cut.startswith(FILE) and self.weights:
                raise MeshprepError("a file of parts says who owns how much: leave weights out")

    def cut_of(self, subject: SplitSubject, *, slices: bool = False) -> str:
        """The cut, or what takes its place."""
        if self.cut is not None:
            return self.cut
        if slices:
            return "refined"
        return "metis" if subject.from_parts and has_metis() else "annealed"

    def notes_on(self, subject: SplitSubject, *, slices: bool = False) -> list[str]:
        """A note on the cut that replaces METIS because it is missing."""
        if self.cut is None and subject.from_parts and not slices and not has_metis():
            return ["METIS is not installed: cut 'annealed', which takes longer, in its place"]
        return []

    def shares(self, parts: int) -> Float64s:
        """The share of each part; raises MeshprepError for weights that do not fit."""
        if not self.weights:
            return np.full(parts, 1 / parts)
        found = np.asarray(self.weights, np.float64)
        if found.size != parts:
            raise MeshprepError(f"there are {found.size} weights for {parts} parts: give as many")
        if not np.isfinite(found).all() or found.min() < 0 or found.sum() <= 0:
            raise MeshprepError("weights must be numbers from 0, and not all 0")
        return found / found.sum()


@dataclass(frozen=True, eq=False)
class SplitResult:
    """A mesh that is split: builds its parts one after another."""

    builder: PartBuilder
    costs: Mapping[str, IncrementCost]  # by loop name: of the loops that write through a map


def split(
    subject: SplitSubject,
    parts: int,
    how: SplitOptions,
    options: Options,
    progress: Callable[[float], None] = lambda share: None,
    ranks: Ranks = ALONE,
) -> SplitResult:
    """Find owners, halos and orders for a number of parts.

    There may be more parts than elements. ``options`` are those of the orders and blocks inside the
    parts, ``progress`` is told the share that is done, and ``ranks`` share the work; every rank has
    the result, which does not depend on their number. Raises MeshprepError for weights, cuts and
    files of parts that do not fit.
    """
    weights = agreed(ranks, lambda: how.shares(parts))
    problem = CutProblem(subject, weights, options.seed)
    start, first = of_root(ranks, lambda: _first_owners(problem, how.cut_of(subject)))
    owners = inherit(subject, first, weights, start=start)
    return split_by_owners(subject, owners, parts, how, options, progress, ranks)


def _first_owners(problem: CutProblem, cut: str) -> tuple[str, Int32s]:
    """A set and the parts of its elements, from which those of the other sets follow."""
    if cut.startswith(FILE):
        return owners_from_file(problem.subject, problem.parts, Path(cut.removeprefix(FILE)))
    return problem.subject.leading_set, owners_of_leading_set(problem, cut)


def split_by_owners(
    subject: SplitSubject,
    owners: Owners,
    parts: int,
    how: SplitOptions,
    options: Options,
    progress: Callable[[float], None] = lambda share: None,
    ranks: Ranks = ALONE,
) -> SplitResult:
    """:func:`split` where the owner of every element is known."""
    agreed(ranks, lambda: refuse_lists(subject, options))
    costs, runs = agreed(
        ranks,
        lambda: at_once(
            lambda: {
                loop.name: increment_cost(subject, owners, loop, how.increments, parts)
                for loop in loops_that_write(subject)
            },
            lambda: owned_runs(subject, owners, parts),
        ),
    )
    increments = increments_of(subject, costs)
    executed = executed_copies(subject, owners, written_columns(subject, increments), parts)
    ordered = order_parts(subject, runs, options, progress, ranks)
    numbers = numbers_here(ordered.runs)
    copies = all_copies(subject, ordered.runs, executed, numbers)
    return SplitResult(PartBuilder(subject, ordered, copies, numbers, options, increments), costs)


def loops_that_write(subject: SplitSubject) -> list[Loop]:
    return [spec.loop for spec in subject.specs if spec.loop.conflict_columns]


def increments_of(subject: SplitSubject, costs: Mapping[str, IncrementCost]) -> dict[str, str]:
    """``exec`` or ``reverse`` for the increments of every loop."""
    chosen = {name: cost.increments for name, cost in costs.items()}
    return {spec.loop.name: chosen.get(spec.loop.name, "exec") for spec in subject.specs}


def written_columns(
    subject: SplitSubject, increments: Mapping[str, str]
) -> dict[str, Sequence[int]]:
    """The columns of maps that loops write through whose increments are not sent back."""
    return written_by(one for one in loops_that_write(subject) if increments[one.name] == "exec")
