"""The split of a mesh that ranks hold in slices: the steps of that of a whole mesh."""

from collections.abc import Callable

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import Float64s

from ...loops.options import Options
from ..build.order import order_parts, refuse_lists
from ..build.parts import PartBuilder
from ..halos.ghosts import all_ghosts, executed_ghosts, owned_runs
from ..halos.increments import check_way, increment_cost
from ..owners.inherit import Owners, inherit
from ..owners.sliced import CUTS, leading_owners
from ..ranks import Ranks, agreed
from ..slices.local import local_subject, split_numbers
from ..subject import SplitSubject
from .split import (
    SplitOptions,
    SplitResult,
    increments_of,
    loops_that_write,
    written_columns,
)


def split_slices(
    subject: SplitSubject,
    parts: int,
    how: SplitOptions,
    options: Options,
    progress: Callable[[float], None],
    ranks: Ranks,
) -> SplitResult:
    """Find owners, ghosts and orders; the builder makes the parts of this rank.

    The parts are those of :func:`~.split.split`, whatever the number of ranks, and so are
    the parameters; tables and centroids of ``subject`` are those of the elements at home
    here. Raises MeshprepError for a cut that needs the whole mesh, and as
    :func:`~.split.split`; on every rank. O(n / ranks log n), and as much memory.
    """
    weights = agreed(
        ranks,
        lambda: _checked_shares(subject=subject, parts=parts, how=how, options=options),
    )
    # Find the owners, and bring what this rank's parts need here.
    cut = how.cut_of(subject, slices=True)
    local = local_subject(
        subject=subject,
        owners=slice_owners(subject=subject, weights=weights, cut=cut, ranks=ranks),
        parts=parts,
        ranks=ranks,
    )
    # From here on parts are those of this rank, counted from 0.
    around_parts = local.subject
    parts_here = range(len(local.parts_of_rank))
    # Choose where increments are executed.
    costs = {
        loop.name: increment_cost(
            subject=around_parts,
            owners=local.owners,
            loop=loop,
            way=how.increments,
            parts=len(parts_here),
            ranks=ranks,
        )
        for loop in loops_that_write(around_parts)
    }
    increments = increments_of(around_parts, costs)
    executed = executed_ghosts(
        subject=around_parts,
        owners=local.owners,
        written=written_columns(around_parts, increments),
        parts=len(parts_here),
    )
    # Order owned elements; the run behind those of this rank's parts is of all others.
    runs = owned_runs(around_parts, local.owners, len(parts_here) + 1)
    ordered = order_parts(
        subject=around_parts,
        runs=runs,
        options=options,
        progress=progress,
        ranks=ranks,
        own=parts_here,
    )
    # Number all elements here in the split mesh; ghosts and messages are in these numbers.
    numbers = split_numbers(
        local=local,
        runs=ordered.runs,
        sizes=subject.sizes,
        ranks=ranks,
    )
    ghosts = all_ghosts(
        subject=around_parts,
        runs=ordered.runs,
        executed=executed,
        numbers=numbers,
        ranks=ranks,
    )
    return SplitResult(
        builder=PartBuilder(
            subject=around_parts,
            ordered=ordered,
            ghosts=ghosts,
            numbers=numbers,
            options=options,
            increments=increments,
        ),
        costs=costs,
    )


def check_cut_of_slices(cut: str | None) -> None:
    """Raise MeshprepError for a cut that needs the whole mesh."""
    if cut not in (None, *CUTS):
        raise MeshprepError(
            f"cut '{cut}' needs the whole mesh: with --slices, use --cut refined"
        )


def _checked_shares(
    subject: SplitSubject,
    parts: int,
    how: SplitOptions,
    options: Options,
) -> Float64s:
    """The shares of the parts; raises MeshprepError where slices cannot be split so."""
    check_cut_of_slices(how.cut)
    refuse_lists(subject, options)
    for loop in loops_that_write(subject):
        check_way(loop, how.increments)
    return how.shares(parts)


def slice_owners(
    subject: SplitSubject,
    weights: Float64s,
    cut: str,
    ranks: Ranks,
) -> Owners:
    """The part of every element that is at home here, of every set.

    Tables and centroids of ``subject`` are those of the elements at home here; ``weights``
    are shares that add up to 1, and ``cut`` a name in :data:`.cuts.CUTS`. Raises
    MeshprepError without coordinates, and with infinite ones; on every rank. O(n / ranks
    log n), beside the cut.
    """
    leading = leading_owners(subject=subject, weights=weights, cut=cut, ranks=ranks)
    return inherit(subject=subject, first=leading, weights=weights, ranks=ranks)
