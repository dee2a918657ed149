"""The steps of a split where ranks hold slices: owners, halos, orders, parts."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ...loops.options import Options
from ..build import PartBuilder
from ..copies import all_copies
from ..halos import executed_copies, owned_runs
from ..increments import check_way, increment_cost
from ..order import order_parts, refuse_lists
from ..ranks import Ranks, agreed
from ..steps import SplitOptions, SplitResult, increments_of, loops_that_write, written_columns
from ..subject import SplitSubject
from .cuts import CUTS
from .local import local_subject, split_numbers
from .owners import slice_owners


def split_slices(
    subject: SplitSubject,
    parts: int,
    how: SplitOptions,
    options: Options,
    progress: Callable[[float], None],
    ranks: Ranks,
) -> SplitResult:
    """Find owners, halos and orders; the builder makes the parts of this rank.

    The parts are those of :func:`..steps.split`, whatever the number of ranks, and so are the
    parameters; tables and centroids of ``subject`` are those of the elements at home here. Raises
    MeshprepError for a cut that needs the whole mesh, and as :func:`..steps.split`; on every rank.
    O(n / ranks log n), and as much memory.
    """
    weights = agreed(ranks, lambda: _checked(subject, parts, how, options))
    cut = how.cut_of(subject, slices=True)
    local = local_subject(subject, slice_owners(subject, weights, cut, ranks), parts, ranks)
    here, held = local.subject, range(len(local.held))
    costs = {
        loop.name: increment_cost(here, local.owners, loop, how.increments, len(held), ranks)
        for loop in loops_that_write(here)
    }
    increments = increments_of(here, costs)
    executed = executed_copies(here, local.owners, written_columns(here, increments), len(held))
    runs = owned_runs(here, local.owners, len(held) + 1)
    ordered = order_parts(here, runs, options, progress, ranks, held)
    numbers = split_numbers(local, ordered.runs, subject.sizes, ranks)
    copies = all_copies(here, ordered.runs, executed, numbers, ranks)
    return SplitResult(PartBuilder(here, ordered, copies, numbers, options, increments), costs)


def check_cut(cut: str | None) -> None:
    """Raise MeshprepError for a cut that needs the whole mesh."""
    if cut not in (None, *CUTS):
        raise MeshprepError(f"cut '{cut}' needs the whole mesh: with --slices, use --cut refined")


def _checked(
    subject: SplitSubject, parts: int, how: SplitOptions, options: Options
) -> NDArray[np.float64]:
    """The shares of the parts, where all that is asked for can be done."""
    check_cut(how.cut)
    refuse_lists(subject, options)
    for loop in loops_that_write(subject):
        check_way(loop, how.increments)
    return how.shares(parts)
