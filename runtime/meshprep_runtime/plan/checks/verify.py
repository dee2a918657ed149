"""The proof of a plan, and its comparison with a mesh."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ...errors import MeshprepError, ProofError
from ...types.maps import Int32s, SetMap, chunks
from ...types.ordering import Ordering
from ..model import PlanContent
from .proof import prove, prove_matrix, prove_ranges
from .structure import check_loop, check_shared, check_variant


def verify(plan: PlanContent) -> list[str]:
    """Prove that a plan is right; returns what is not, one line each.

    Checked: permutations are bijective and inverse of each other; every index is in range; blocks
    are not empty and at most the block size; staging lists hold exactly the points that a block
    touches, ascending; exclusive flags; local maps reproduce the maps; no two elements of one
    thread colour in a block, and no two blocks of one colour, write one point; ranges that write
    one wait for each other; counts and sizes agree; then matrices. A property broken in many
    places gives one line. By gathers and counting, independent of what makes plans. O(accesses).
    """
    findings: list[str] = []
    for name, ordering in plan.ordering.items():
        findings += _ordering(name, ordering)
    for loop_plan in plan.loops.values():
        wrong = _raised(check_loop, loop_plan)
        for variant in () if wrong else loop_plan.variants.values():
            wrong += _raised(check_variant, loop_plan, variant) or prove(loop_plan, variant)
        if loop_plan.ranges is not None and not wrong:
            wrong += prove_ranges(loop_plan, loop_plan.ranges)
        findings += wrong
    if not findings:
        # What is left: sizes, tags, and maps that differ between the plan and its loops.
        findings += _raised(check_shared, plan)
    if not findings:
        for matrix in plan.matrices.values():
            findings += prove_matrix(matrix, plan.loops)
    return findings


def refuse_wrong(plan: PlanContent, maps: Mapping[str, SetMap] | None = None) -> None:
    """Raise ProofError with the findings of :func:`verify` and, given maps, :func:`compare_maps`.

    For those who make plans: a finding is their fault, not their user's.
    """
    findings = verify(plan) or ([] if maps is None else compare_maps(plan, maps))
    if findings:
        raise ProofError(f"the plan is wrong in {len(findings)} places: {'; '.join(findings[:3])}")


def compare_maps(plan: PlanContent, maps: Mapping[str, SetMap]) -> list[str]:
    """Where the plan's maps differ from these of its input mesh; empty when nowhere.

    ``maps`` has at least every map of the plan, in the numbering of the input; others are not
    looked at. Where :func:`verify` finds that orderings are no permutations, or indices out of
    range, what this finds says nothing. A line for each map. O(map entries).
    """
    findings = []
    for name, own in plan.maps.items():
        if line := _difference(plan, name, own, maps.get(name)):
            findings.append(line)
    return findings


def _ordering(name: str, ordering: Ordering) -> Iterator[str]:
    where, n = f"ordering of '{name}'", ordering.new_to_old.size
    if _are_inverse(ordering.new_to_old, ordering.old_to_new):
        return
    for label in ("new_to_old", "old_to_new"):
        values = getattr(ordering, label)
        inside = (values >= 0) & (values < n)
        count = np.bincount(values[inside], minlength=n)
        if not inside.all():
            at = int(np.argmin(inside))
            yield f"{where}: {label}[{at}] is {values[at]}, outside 0..{n - 1}"
            return
        if (count != 1).any():
            at = int(np.argmax(count != 1))
            yield f"{where}: {label} is no permutation: element {at} stands {count[at]} times"
            return
    back = ordering.old_to_new[ordering.new_to_old]
    wrong = back != np.arange(n)
    if wrong.any():
        at = int(np.argmax(wrong))
        yield f"{where}: old_to_new is not the inverse of new_to_old at element {at}"


def _are_inverse(forward: Int32s, back: Int32s) -> bool:
    """True for two permutations that undo each other: then neither has a number twice."""
    n = forward.size
    if back.size != n or (n and (forward.min() < 0 or forward.max() >= n)):
        return False
    for some in chunks(n):
        there = back.take(forward[some], mode="clip")
        if (there != np.arange(some.start, some.stop)).any():
            return False
    return True


def _raised(check: Callable[..., None], *of: Any) -> list[str]:
    try:
        check(*of)
    except MeshprepError as error:
        return [str(error)]
    return []


def _difference(plan: PlanContent, name: str, own: SetMap, other: SetMap | None) -> str | None:
    if other is None:
        return f"map '{name}' of the plan is not in the mesh"
    if (own.from_set, own.to_set) != (other.from_set, other.to_set):
        return f"map '{name}' goes from '{other.from_set}' to '{other.to_set}' in the mesh"
    if own.table.shape != other.table.shape:
        return (
            f"map '{name}' has {own.size} rows of {own.arity} in the plan, "
            f"{other.size} of {other.arity} in the mesh"
        )
    rows, points = plan.ordering[own.from_set], plan.ordering[own.to_set]
    for some in chunks(own.size):
        # clipped, which is fast: indices out of range are for verify to find
        here = points.new_to_old.take(own.table[some], mode="clip")
        if not np.array_equal(here, other.table.take(rows.new_to_old[some], axis=0, mode="clip")):
            break
    else:
        return None
    table = other.table.take(rows.new_to_old, axis=0, mode="clip")
    table = points.old_to_new.take(table, mode="clip")
    wrong = own.table != table
    row, column = (int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    return (
        f"map '{own.name}': element {row}, column {column} is {own.table[row, column]} in the "
        f"plan, {table[row, column]} in the mesh ({np.count_nonzero(wrong)} differ)"
    )
