"""The proof of a plan, and its comparison with a mesh."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from .errors import PlanError
from .maps import SetMap
from .ordering import Ordering
from .plan import LoopPlan, Plan
from .proof import prove
from .structure import check_loop, check_plan, check_variant


def verify(plan: Plan) -> list[str]:
    """Prove that a plan is right; returns what is not, one line each.

    Checked: permutations are bijective and inverse of each other; every index is in range; blocks
    are not empty and at most the block size; staging lists hold exactly the points that a block
    touches, ascending; exclusive flags; local maps reproduce the maps; no two elements of one
    thread colour in a block, and no two blocks of one colour, write one point; counts and sizes
    agree.

    Returns
    -------
    list of str
        Empty when the plan is right. A property broken in many places gives one line, with the
        first place and the number of the others.

    Notes
    -----
    By sorting and counting, independent of the code that makes plans. O(a log a) for ``a``
    accesses.
    """
    findings = [line for name, o in plan.ordering.items() for line in _ordering(name, o)]
    for loop_plan in plan.loops.values():
        findings += _loop(loop_plan)
    if not findings:
        # What is left: sizes, tags, and maps that differ between the plan and its loops.
        findings += _raised(lambda: check_plan(plan))
    return findings


def compare_maps(plan: Plan, maps: Mapping[str, SetMap]) -> list[str]:
    """Where the plan's maps differ from these, in the plan's numbering; empty when nowhere.

    Parameters
    ----------
    plan : Plan
    maps : mapping of map name to SetMap
        At least every map of the plan; others are not looked at.

    Returns
    -------
    list of str
        One line a map. O(map entries).
    """
    findings = []
    for name, own in plan.maps.items():
        line = _unlike(name, own, maps.get(name)) or _first_difference(own, maps[name])
        if line:
            findings.append(line)
    return findings


def compare_rows(plan: Plan, maps: Mapping[str, SetMap]) -> list[str]:
    """As :func:`compare_maps`, for sets that may be numbered otherwise on either side.

    Elements of a from-set correspond when all its maps give the same points, in any order; sets
    that no map starts from must be numbered alike. The maps of one set are compared together, so
    that an edge must have its nodes and its cells at once.

    Returns
    -------
    list of str
        One line a set or map. O(n log n) by sorting rows.
    """
    findings = [
        line for name, own in plan.maps.items() if (line := _unlike(name, own, maps.get(name)))
    ]
    if findings:
        return findings
    # The number in the plan of every element of a set that was numbered afresh.
    renamed: dict[str, NDArray[np.int64]] = {}
    for from_set in _inside_out(plan):
        names = [n for n, m in plan.maps.items() if m.from_set == from_set]
        if any(
            plan.maps[n].to_set in renamed or _first_difference(plan.maps[n], maps[n])
            for n in names
        ):
            findings += _match(plan, maps, from_set, names, renamed)
    return findings


def _ordering(name: str, ordering: Ordering) -> Iterator[str]:
    where, n = f"ordering of '{name}'", ordering.new_to_old.size
    for label in ("new_to_old", "old_to_new"):
        values = getattr(ordering, label)
        inside = (values >= 0) & (values < n)
        count = np.bincount(values[inside], minlength=n)
        if not inside.all():
            at = int(np.argmin(inside))
            yield f"{where}: {label}[{at}] is {values[at]}, outside 0..{n - 1}"
            return
        if values.size != n or (count != 1).any():
            at = int(np.argmax(count != 1))
            yield f"{where}: {label} is no permutation: element {at} stands {count[at]} times"
            return
    back = ordering.old_to_new[ordering.new_to_old]
    wrong = back != np.arange(n)
    if wrong.any():
        at = int(np.argmax(wrong))
        yield f"{where}: old_to_new is not the inverse of new_to_old at element {at}"


def _loop(loop_plan: LoopPlan) -> list[str]:
    findings = _raised(lambda: check_loop(loop_plan))
    if findings:
        return findings
    for variant in loop_plan.variants.values():
        findings += _raised(lambda v=variant: check_variant(loop_plan, v)) or prove(
            loop_plan, variant
        )
    return findings


def _raised(check: object) -> list[str]:
    try:
        check()  # type: ignore[operator]
    except PlanError as error:
        return [str(error)]
    return []


def _unlike(name: str, own: SetMap, other: SetMap | None) -> str | None:
    if other is None:
        return f"map '{name}' of the plan is not in the mesh"
    if (own.from_set, own.to_set) != (other.from_set, other.to_set):
        return f"map '{name}' goes from '{other.from_set}' to '{other.to_set}' in the mesh"
    if own.table.shape != other.table.shape:
        return (
            f"map '{name}' has {own.size} rows of {own.arity} in the plan, "
            f"{other.size} of {other.arity} in the mesh"
        )
    return None


def _first_difference(own: SetMap, other: SetMap) -> str | None:
    wrong = own.table != other.table
    if not wrong.any():
        return None
    row, column = (int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    return (
        f"map '{own.name}': element {row}, column {column} is {own.table[row, column]} in the "
        f"plan, {other.table[row, column]} in the mesh ({np.count_nonzero(wrong)} differ)"
    )


def _inside_out(plan: Plan) -> list[str]:
    """From-sets, each after the sets that its maps reach, as far as there is no cycle."""
    order: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        for m in plan.maps.values():
            if m.from_set == name and m.to_set not in path:
                visit(m.to_set, (*path, name))
        if name not in order:
            order.append(name)

    for m in plan.maps.values():
        visit(m.from_set, ())
    return order


def _match(
    plan: Plan,
    maps: Mapping[str, SetMap],
    from_set: str,
    names: list[str],
    renamed: dict[str, NDArray[np.int64]],
) -> Iterator[str]:
    """Pair the elements of a set by their sorted rows; note the pairing, or what has no partner."""
    own = np.hstack([np.sort(plan.maps[n].table, axis=1) for n in names])
    others = []
    for n in names:
        table, new = maps[n].table, renamed.get(maps[n].to_set)
        others.append(np.sort(table if new is None else new[table], axis=1))
    other = np.hstack(others)
    order, other_order = np.lexsort(own.T[::-1]), np.lexsort(other.T[::-1])
    wrong = (own[order] != other[other_order]).any(axis=1)
    if wrong.any():
        at = int(order[int(np.argmax(wrong))])
        what = ", ".join(f"{n} {plan.maps[n].table[at].tolist()}" for n in names)
        yield f"set '{from_set}' is not the mesh's: first at element {at} of the plan ({what})"
        return
    pairing = np.empty(order.size, dtype=np.int64)
    pairing[other_order] = order
    renamed[from_set] = pairing
