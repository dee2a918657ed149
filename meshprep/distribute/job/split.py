"""The split of a whole mesh: owners, ghosts, orders and parts, step by step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from meshprep_runtime.errors import MeshprepError, check_choice
from meshprep_runtime.types.loops import Loop
from meshprep_runtime.types.maps import Float64s

from ...kernels import Int32s
from ...kernels.parallel import at_once
from ...loops.options import Options
from ...partitioning.metis import has_metis
from ...registry.partitioners import FILE
from ..build.order import order_parts, refuse_lists
from ..build.parts import PartBuilder
from ..halos.ghosts import OwnedRuns, all_ghosts, executed_ghosts, numbers_here, owned_runs
from ..halos.increments import WAYS, IncrementCost, increment_cost
from ..owners.cuts import BY_WEIGHT, CutProblem, check_cut, owners_of_leading_set
from ..owners.file import owners_from_file
from ..owners.inherit import Owners, inherit
from ..owners.timed_shares import AUTO, shares_by_times
from ..ranks import ALONE, Ranks, agreed, of_root
from ..subject import SplitSubject, written_by


@dataclass(frozen=True)
class SplitOptions:
    """Options of a split: cut, weights, increments."""

    # The cut of the leading set: ``annealed``, ``metis``, ``refined``, ``rcb`` or
    # ``curve``; or ``file:PARTS``, a file with the owners of that set or another. None
    # takes ``refined`` for slices, ``metis``, the fastest, for files of parts if it is
    # installed, else ``annealed``.
    cut: str | None = None
    # What each part shall own relative to the others; empty for equal parts, and
    # ``auto:TIMINGS`` for the file of times of a run on equal parts.
    weights: tuple[float, ...] | str = ()
    # ``"exec"``: elements that write what a part owns are executed there, too;
    # ``"reverse"``: increments are sent back; ``"auto"``: what costs less, loop by loop.
    increments: str = "auto"

    def __post_init__(self) -> None:
        check_choice("increments", self.increments, WAYS)
        if isinstance(self.weights, str) and not self.weights.startswith(AUTO):
            raise MeshprepError(
                f"weights '{self.weights}' must be numbers, or {AUTO}TIMINGS.json"
            )
        if self.cut is not None:
            check_cut(self.cut)
            if self.cut.startswith(FILE) and self.weights:
                raise MeshprepError(
                    "a file of parts says who owns how much: leave weights out"
                )

    def cut_of(self, subject: SplitSubject, *, slices: bool = False) -> str:
        """The cut asked for, or the default one."""
        if self.cut is not None:
            return self.cut
        if slices:
            return "refined"
        if subject.from_parts and has_metis():
            return "metis"
        return "annealed"

    def notes_on(self, subject: SplitSubject, *, slices: bool = False) -> list[str]:
        """Notes for the user: METIS is missing, or weights of the input are not used."""
        notes = []
        if self.cut is None and subject.from_parts and not slices and not has_metis():
            notes.append(
                "METIS is not installed: cut 'annealed', which takes longer, in its place"
            )
        cut = self.cut_of(subject, slices=slices)
        by_file = cut.startswith(FILE)
        if subject.weights is not None and cut not in BY_WEIGHT and not by_file:
            notes.append(
                f"cut '{cut}' balances how many {subject.leading_set} the parts own, "
                f"not what they weigh: choose {' or '.join(BY_WEIGHT)} for that"
            )
        if subject.unused and not by_file:
            notes.append(f"no cut uses {' and '.join(subject.unused)}")
        return notes

    def shares(self, parts: int) -> Float64s:
        """The share of each part; raises MeshprepError for weights that do not fit."""
        if not self.weights:
            return np.full(parts, 1 / parts)
        given = self.weights
        if isinstance(given, str):
            given = shares_by_times(Path(given.removeprefix(AUTO)), parts)
        weights = np.asarray(given, np.float64)
        if weights.size != parts:
            raise MeshprepError(
                f"there are {weights.size} weights for {parts} parts: give as many"
            )
        are_numbers_from_0 = np.isfinite(weights).all() and weights.min() >= 0
        if not are_numbers_from_0 or weights.sum() <= 0:
            raise MeshprepError("weights must be numbers from 0, and not all 0")
        return weights / weights.sum()


@dataclass(frozen=True, eq=False)
class SplitResult:
    """A mesh that is split: builds its parts one after another."""

    builder: PartBuilder
    # By loop name: of the loops that write through a map.
    costs: Mapping[str, IncrementCost]


def split(
    subject: SplitSubject,
    parts: int,
    how: SplitOptions,
    options: Options,
    progress: Callable[[float], None] = lambda share: None,
    ranks: Ranks = ALONE,
) -> SplitResult:
    """Find owners, ghosts and orders for a number of parts.

    There may be more parts than elements. ``options`` are those of the orders and blocks
    inside the parts, ``progress`` is told the share that is done, and ``ranks`` share the
    work; every rank has the result, which does not depend on their number. Raises
    MeshprepError for weights, cuts and files of parts that do not fit.
    """
    weights = agreed(ranks, lambda: how.shares(parts))
    # Cut one set; the owners of the others follow from it.
    problem = CutProblem(subject, weights, options.seed)
    start, first = of_root(ranks, lambda: _first_owners(problem, how.cut_of(subject)))
    owners = inherit(subject=subject, first=first, weights=weights, start=start)
    return split_by_owners(
        subject=subject,
        owners=owners,
        parts=parts,
        how=how,
        options=options,
        progress=progress,
        ranks=ranks,
    )


def _first_owners(problem: CutProblem, cut: str) -> tuple[str, Int32s]:
    """A set and the parts of its elements, from which those of the other sets follow."""
    if cut.startswith(FILE):
        return owners_from_file(
            problem.subject, problem.parts, Path(cut.removeprefix(FILE))
        )
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

    # Choose where increments are executed, and find core and boundary, at the same time.
    def costs_of_loops() -> dict[str, IncrementCost]:
        return {
            loop.name: increment_cost(
                subject=subject,
                owners=owners,
                loop=loop,
                way=how.increments,
                parts=parts,
            )
            for loop in loops_that_write(subject)
        }

    def runs_of_sets() -> dict[str, OwnedRuns]:
        return owned_runs(subject, owners, parts)

    costs, runs = agreed(ranks, lambda: at_once(costs_of_loops, runs_of_sets))
    # Increments that are not sent back are executed on ghosts.
    increments = increments_of(subject, costs)
    executed = executed_ghosts(
        subject=subject,
        owners=owners,
        written=written_columns(subject, increments),
        parts=parts,
    )
    # Order owned elements; ghosts and messages are in their final numbers.
    ordered = order_parts(
        subject=subject,
        runs=runs,
        options=options,
        progress=progress,
        ranks=ranks,
    )
    numbers = numbers_here(ordered.runs)
    ghosts = all_ghosts(
        subject=subject,
        runs=ordered.runs,
        executed=executed,
        numbers=numbers,
    )
    return SplitResult(
        builder=PartBuilder(
            subject=subject,
            ordered=ordered,
            ghosts=ghosts,
            numbers=numbers,
            options=options,
            increments=increments,
        ),
        costs=costs,
    )


def loops_that_write(subject: SplitSubject) -> list[Loop]:
    """The loops that write through a map."""
    return [spec.loop for spec in subject.specs if spec.loop.conflict_columns]


def increments_of(
    subject: SplitSubject, costs: Mapping[str, IncrementCost]
) -> dict[str, str]:
    """``exec`` or ``reverse`` for the increments of every loop."""
    chosen = {name: cost.increments for name, cost in costs.items()}
    return {spec.loop.name: chosen.get(spec.loop.name, "exec") for spec in subject.specs}


def written_columns(
    subject: SplitSubject, increments: Mapping[str, str]
) -> dict[str, Sequence[int]]:
    """The columns of maps through which loops write that send no increments back."""
    loops = [loop for loop in loops_that_write(subject) if increments[loop.name] == "exec"]
    return written_by(loops)
