"""The proof of a plan, and its comparison with a mesh."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ...errors import MeshprepError, ProofError
from ...types.maps import Int32s, SetMap, chunks
from ...types.ordering import Ordering
from ..model import LoopPlan, PlanContent
from .proof import prove, prove_matrix, prove_ranges
from .structure import check_loop, check_shared, check_variant, check_whole_blocks


def verify(plan: PlanContent) -> list[str]:
    """Prove that a plan is right; returns its faults, one line each.

    The proof shows that permutations are bijective and inverse of each other; that every
    index is in range; that blocks are not empty, and not larger than the block size; that
    staging lists hold exactly the points that a block touches, ascending, with right
    exclusive flags; that local maps agree with the maps; that no two elements of one thread
    colour in a block, and no two blocks of one colour, write one point; that ranges which
    write one point wait for each other; that counts and sizes agree; and that matrices are
    right. A property broken in many places gives one line. It gathers and counts,
    independent of the code that makes plans. O(accesses).
    """
    findings: list[str] = []
    for name, ordering in plan.ordering.items():
        findings += _prove_ordering(name, ordering)
    for loop_plan in plan.loops.values():
        findings += _prove_loop(loop_plan)
    if not findings:
        # Check the rest: sizes, tags, and maps that differ between the plan and its loops.
        findings += _faults_of(check_shared, plan)
    if not findings:
        for matrix in plan.matrices.values():
            findings += prove_matrix(matrix, plan.loops)
    return findings


def _prove_loop(loop_plan: LoopPlan) -> list[str]:
    """Findings about the variants and ranges of a loop, proved only where arrays fit."""
    findings = _faults_of(check_loop, loop_plan)
    if findings:
        return findings
    for variant in loop_plan.variants.values():
        faults = _faults_of(check_variant, loop_plan, variant)
        if not faults:
            faults = prove(loop_plan, variant)
        findings += faults
    if loop_plan.ranges is not None and not findings:
        findings += _faults_of(check_whole_blocks, loop_plan)
        findings += prove_ranges(loop_plan, loop_plan.ranges)
    return findings


def refuse_wrong(plan: PlanContent, maps: Mapping[str, SetMap] | None = None) -> None:
    """Raise ProofError for a plan that :func:`verify` or :func:`compare_maps` finds wrong.

    Its maps are compared where ``maps`` are given. For code that makes plans: a finding is
    an error in that code, not in its input.
    """
    findings = verify(plan)
    if not findings and maps is not None:
        findings = compare_maps(plan, maps)
    if findings:
        raise ProofError(
            f"the plan is wrong in {len(findings)} places: {'; '.join(findings[:3])}"
        )


def compare_maps(plan: PlanContent, maps: Mapping[str, SetMap]) -> list[str]:
    """Where the plan's maps differ from those of its input mesh; empty when nowhere.

    ``maps`` has at least every map of the plan, in the numbering of the input; others are
    ignored. The result has a line for each map that differs. It is meaningful only where
    :func:`verify` finds orderings and indices right. O(map entries).
    """
    findings = []
    for name, map_of_plan in plan.maps.items():
        finding = _difference(
            plan=plan, name=name, map_of_plan=map_of_plan, map_of_mesh=maps.get(name)
        )
        if finding is not None:
            findings.append(finding)
    return findings


def _prove_ordering(name: str, ordering: Ordering) -> Iterator[str]:
    """Both directions are permutations, and inverse of each other."""
    where = f"ordering of '{name}'"
    n = ordering.new_to_old.size
    if _are_inverse(ordering.new_to_old, ordering.old_to_new):
        return
    # Find out which direction is wrong, and where.
    for label in ("new_to_old", "old_to_new"):
        values = getattr(ordering, label)
        inside = (values >= 0) & (values < n)
        count = np.bincount(values[inside], minlength=n)
        if not inside.all():
            i = int(np.argmin(inside))
            yield f"{where}: {label}[{i}] is {values[i]}, outside 0..{n - 1}"
            return
        if (count != 1).any():
            e = int(np.argmax(count != 1))
            yield f"{where}: {label} is no permutation: element {e} stands {count[e]} times"
            return
    # Both are permutations, but not of each other.
    back = ordering.old_to_new[ordering.new_to_old]
    wrong = back != np.arange(n)
    if wrong.any():
        e = int(np.argmax(wrong))
        yield f"{where}: old_to_new is not the inverse of new_to_old at element {e}"


def _are_inverse(forward: Int32s, back: Int32s) -> bool:
    """True for two permutations that are inverse of each other.

    Where ``back`` leads from every image back to its element, no number occurs twice.
    """
    n = forward.size
    if back.size != n or (n and (forward.min() < 0 or forward.max() >= n)):
        return False
    for piece in chunks(n):
        elements = back.take(forward[piece], mode="clip")
        if (elements != np.arange(piece.start, piece.stop)).any():
            return False
    return True


def _faults_of(check: Callable[..., None], *arguments: Any) -> list[str]:
    """The message of a check that raises MeshprepError, or nothing."""
    try:
        check(*arguments)
    except MeshprepError as error:
        return [str(error)]
    return []


def _difference(
    plan: PlanContent, name: str, map_of_plan: SetMap, map_of_mesh: SetMap | None
) -> str | None:
    """How a map of the plan differs from that of the mesh; None where it does not."""
    if map_of_mesh is None:
        return f"map '{name}' of the plan is not in the mesh"
    from_set = map_of_plan.from_set
    to_set = map_of_plan.to_set
    if (from_set, to_set) != (map_of_mesh.from_set, map_of_mesh.to_set):
        return (
            f"map '{name}' goes from '{map_of_mesh.from_set}' to '{map_of_mesh.to_set}' "
            "in the mesh"
        )
    if map_of_plan.table.shape != map_of_mesh.table.shape:
        return (
            f"map '{name}' has {map_of_plan.size} rows of {map_of_plan.arity} in the plan, "
            f"{map_of_mesh.size} of {map_of_mesh.arity} in the mesh"
        )

    # Compare both tables in the numbers of the mesh, piece by piece. Indices are clipped,
    # which is fast; `verify` finds those out of range.
    rows = plan.ordering[from_set]
    points = plan.ordering[to_set]
    for piece in chunks(map_of_plan.size):
        expected = map_of_mesh.table.take(rows.new_to_old[piece], axis=0, mode="clip")
        old_numbers = points.new_to_old.take(map_of_plan.table[piece], mode="clip")
        if not np.array_equal(old_numbers, expected):
            break
    else:
        return None

    # Name the first difference in the numbers of the plan.
    table = map_of_mesh.table.take(rows.new_to_old, axis=0, mode="clip")
    table = points.old_to_new.take(table, mode="clip")
    wrong = map_of_plan.table != table
    row, column = (int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    return (
        f"map '{map_of_plan.name}': element {row}, column {column} is "
        f"{map_of_plan.table[row, column]} in the plan, {table[row, column]} in the mesh "
        f"({np.count_nonzero(wrong)} differ)"
    )
