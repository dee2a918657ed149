"""Whether maps are what they were declared as, or taken for: by name, rows and the other maps.

Numbers from 0 fit every set that is large enough, so a wrong declaration reads without an error,
and what runs on the file computes nonsense. What contradicts itself is refused here.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

# Fewer rows prove nothing; more than these are not looked at.
_LEAST_ROWS, _MOST_ROWS = 8, 1000
# Rows that are looked at together where all are.
_ROWS_AT_ONCE = 1 << 20
Sizes = Mapping[str, int]


# A map, or what has its sets, size and arity, and a table that gives rows by a slice or by numbers.
MapRows = Any


def check_fit(maps: Mapping[str, MapRows], sizes: Sizes, declared: Mapping[str, str]) -> None:
    """Raise MeshprepError for a map that cannot be what it is declared as, or was taken for.

    Refused is a map whose name says another set as OP2's names do (``pecell``: from edges to
    cells), one most of whose rows hold an index twice, and one whose rows are no neighbours in its
    set by way of the other maps, while in another set all of them are. O(maps^3) on a sample of
    the rows.
    """
    for path, m in maps.items():
        others = [other for other in maps.values() if other is not m]
        # Where nothing speaks for a set or against it, a declaration is believed, a guess is not.
        known = path in declared
        found = (
            _by_name(path, m, sizes)
            or _by_rows(m, sizes)
            or _by_others(m, others, sizes, unknown=1.0 if known else 0.0)
        )
        if found:
            how = "declared as" if known else "taken for"
            raise MeshprepError(f"map '{path}' is {how} {m.from_set}->{m.to_set}, but {found}")


def _by_name(path: str, m: MapRows, sizes: Sizes) -> str:
    """OP2 names maps by a p, the beginning of the from-set and the to-set in the singular."""
    name = path.rpartition("/")[2]
    if name == f"p{m.from_set.removesuffix('s')}":
        return ""
    for target in sizes:
        one = target.removesuffix("s")
        start = name.removeprefix("p").removesuffix(one)
        full = f"p{start}{one}"
        if name == full and start and m.from_set.startswith(start) and target != m.to_set:
            return (
                f"its name says {m.from_set}->{target}: declare that, "
                "or give the dataset another name"
            )
    return ""


def _by_rows(m: MapRows, sizes: Sizes) -> str:
    """Rows of several indices are of different elements, but for a few that are degenerate."""
    if m.arity < 2 or m.size < _LEAST_ROWS or sizes[m.to_set] < 4 * m.arity**2:
        return ""
    twice = 0
    for rows in _in_turn(m):
        pairs = itertools.combinations(np.ascontiguousarray(rows.T), 2)
        twice += int(np.count_nonzero(reduce(or_, (one == other for one, other in pairs))))
    if 2 * twice <= m.size:
        return ""
    return f"{twice} of its {m.size} rows hold an index twice: declare it as what it is, or as none"


def _in_turn(m: MapRows) -> Iterator[NDArray[np.integer]]:
    for begin in range(0, m.size, _ROWS_AT_ONCE):
        yield m.table[begin : begin + _ROWS_AT_ONCE]


def _by_others(m: MapRows, others: Sequence[MapRows], sizes: Sizes, *, unknown: float) -> str:
    """In the right set the elements of a row are neighbours of what other maps give for it."""
    if m.size < _LEAST_ROWS or min(_shares(m, m.to_set, others, sizes), default=unknown) >= 0.5:
        return ""
    top = max(int(rows.max()) for rows in _in_turn(m))
    for target, size in sizes.items():
        if target != m.to_set and size > top:
            shares = list(_shares(m, target, others, sizes))
            if shares and min(shares) == 1.0:
                return (
                    f"the other maps of '{m.from_set}' say that its rows hold {target}: "
                    f"declare {m.from_set}->{target}"
                )
    return ""


def _shares(m: MapRows, target: str, others: Sequence[MapRows], sizes: Sizes) -> Iterator[float]:
    """The shares of rows that fit, by every pair of maps that says something of the target."""
    rows = np.linspace(0, m.size - 1, min(m.size, _MOST_ROWS)).astype(np.int64)
    own = m.table[rows]
    for known in (other for other in others if other.from_set == m.from_set):
        for other in others:
            near = known.table[rows]
            if (other.from_set, other.to_set) == (known.to_set, target):
                # Nodes of a boundary edge are among the nodes of its cell.
                around = other.table[near].reshape(len(rows), -1)
                if sizes[target] > 2 * around.shape[1]:
                    yield float((own[:, :, None] == around[:, None, :]).any(2).all(1).mean())
            says_something = sizes[known.to_set] > 2 * other.arity * near.shape[1]
            if says_something and (other.from_set, other.to_set) == (target, known.to_set):
                # The cell of a boundary edge has nodes of the edge.
                around = other.table[own]
                met = around[:, :, :, None] == near[:, None, None, :]
                yield float(met.any((2, 3)).all(1).mean())
