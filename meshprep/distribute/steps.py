"""From a mesh and its loops to parts: the steps in their order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError, check_choice
from meshprep_runtime.loops import Loop

from ..kernels.parallel import at_once
from ..loops.options import Options
from ..partition.metis import has_metis
from .build import PartBuilder
from .copies import all_copies
from .cuts import CutProblem, check_cut, owners_of_leading_set
from .given import FILE, owners_from_file
from .halos import executed_copies, owned_runs
from .increments import WAYS, IncrementCost, increment_cost
from .inherit import Owners, inherit
from .numbers import numbers_here
from .order import order_parts, refuse_lists
from .ranks import ALONE, Ranks, agreed, of_root
from .subject import SplitSubject, written_by


@dataclass(frozen=True)
class SplitOptions:
    """How a mesh is split."""

    # Who owns the leading set: ``annealed``, ``metis``, ``refined``, ``rcb``, ``curve``; or
    # ``file:PARTS``, of that set or another. None takes ``refined`` for slices, ``metis`` for
    # files of parts, which is the fastest, and ``annealed`` otherwise and where it is missing.
    cut: str | None = None
    # What each part shall own relative to the others; empty for equal parts.
    weights: tuple[float, ...] = ()
    # ``"exec"``: elements that write what a part owns are executed there, too; ``"reverse"``:
    # increments are sent back; ``"auto"``: what moves fewer bytes, loop by loop.
    increments: str = "exec"

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
        return "metis" if subject.leading_runs.size and has_metis() else "annealed"

    def notes_on(self, subject: SplitSubject, *, slices: bool = False) -> list[str]:
        """What is done in another way since METIS, which files of parts are cut by, is missing."""
        if has_metis() or not subject.leading_runs.size:
            return []
        if self.cut_of(subject, slices=slices) == "refined":
            return ["METIS is not installed: cut 'refined' starts from runs of the file's parts"]
        if self.cut is None:
            return ["METIS is not installed: cut 'annealed', which takes longer, in its place"]
        return []

    def shares(self, parts: int) -> NDArray[np.float64]:
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


def _first_owners(problem: CutProblem, cut: str) -> tuple[str, NDArray[np.int32]]:
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
    """What is done with the increments of every loop."""
    chosen = {name: cost.increments for name, cost in costs.items()}
    return {spec.loop.name: chosen.get(spec.loop.name, "exec") for spec in subject.specs}


def written_columns(
    subject: SplitSubject, increments: Mapping[str, str]
) -> dict[str, Sequence[int]]:
    """The columns of maps that loops write through whose increments are not sent back."""
    return written_by(one for one in loops_that_write(subject) if increments[one.name] == "exec")
