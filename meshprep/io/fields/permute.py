"""Permuting fields: the set that an array belongs to, and its rows in the new numbering."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan import Plan
from meshprep_runtime.types.ordering import Ordering

from ..declared import ANY, BASE, COORDINATES, NO_SET, rows_of, values_of


@dataclass(frozen=True)
class PermutedField:
    """An array that was moved: name, its set (``FROM->TO`` for indices), and its rows."""

    name: str
    place: str
    rows: int


class Permuter:
    """One direction through a plan.

    ``inverse`` goes from the plan's numbering to that of the mesh file.

    ``known`` is what was declared, or found out, when the plan was made. With ``drop`` mesh
    files go without what cannot be written, which ``dropped`` lists.
    """

    def __init__(
        self, plan: Plan, inverse: bool, declared: Mapping[str, str], drop: bool = False
    ) -> None:
        self.plan = plan
        self.inverse = inverse
        self.declared = dict(declared)
        self.drop = drop
        self.dropped: list[str] = []
        self.sizes = _distinct(plan)
        found = plan.options.get("sets", {})
        self.known: dict[str, str] = dict(found) if isinstance(found, dict) else {}
        for name, place in self.declared.items():
            for part in place.split("->") if name not in (BASE, COORDINATES) else ():
                if part.strip() not in (*self.plan.sizes, NO_SET):
                    raise MeshprepError(
                        f"{_called(name)} is declared as {place}, but the plan has no set "
                        f"'{part.strip()}': choose {', '.join(self.plan.sizes)}"
                    )

    def place(self, name: str, rows: int) -> str | None:
        """Where an array of this name and length belongs; None where to no set of the plan.

        Raises MeshprepError where several sets have that size and none is declared.
        """
        # What is declared goes before what is known of the mesh, and this before the
        # number of rows.
        declaration = self.declared.get(name, self.declared.get(ANY, ""))
        if declaration == NO_SET:
            return None
        if declaration:
            size = self.plan.sizes[rows_of(declaration)]
            if size != rows:
                raise MeshprepError(
                    f"{_called(name)} has {rows} rows, but set '{rows_of(declaration)}' "
                    f"that it is declared on has {size} elements"
                )
            return declaration
        known = self.known.get(name, "")
        if self.plan.sizes.get(rows_of(known)) == rows:
            return known
        fitting = [s for s, size in self.sizes.items() if size == rows]
        if len(fitting) > 1 and rows > 1:
            if name == ANY:
                word = fitting[0]
            else:
                word = f"{name}={fitting[0]}"
            raise MeshprepError(
                f"{_called(name)} has {rows} rows, as have the sets "
                f"{' and '.join(fitting)}: say which with --sets {word}"
            )
        if fitting:
            return fitting[0]
        return None

    def move(self, name: str, values: NDArray, place: str) -> NDArray:
        """The rows of an array in the other order; indices are renumbered. O(size)."""
        rows = self._order(rows_of(place))
        out: NDArray = rows.restore(values) if self.inverse else rows.apply(values)
        target = values_of(place)
        if target is not None:
            out = self._renumbered(
                name=name, values=out, order=self._order(target), target=target
            )
        if values.flags.f_contiguous and not values.flags.c_contiguous:
            return np.asfortranarray(out)
        return out

    def _order(self, name: str) -> Ordering:
        if name in self.plan.ordering:
            return self.plan.ordering[name]
        return Ordering.identity(self.plan.sizes[name])

    def _renumbered(
        self, name: str, values: NDArray, order: Ordering, target: str
    ) -> NDArray:
        # Values of a map are numbers of another set, from 0 or 1: renumber these, too.
        base = int(self.declared.get(BASE, "0"))
        if values.dtype.kind not in "iu":
            raise MeshprepError(
                f"'{name}' holds {values.dtype}, but indices are whole numbers"
            )
        if values.size and (
            int(values.min()) < base or int(values.max()) >= order.size + base
        ):
            raise MeshprepError(
                f"'{name}' has indices outside the {order.size} of set '{target}'"
            )
        if self.inverse:
            new = order.new_to_old
        else:
            new = order.old_to_new
        out = new[values.astype(np.int64) - base] + np.int64(base)
        if out.size and int(out.max()) > np.iinfo(values.dtype).max:
            raise MeshprepError(
                f"'{name}' holds {values.dtype}, which has no room for its new index "
                f"{out.max()}: store it as int32"
            )
        return out.astype(values.dtype)


@dataclass(frozen=True, eq=False)
class PlacedArray:
    """An array and what it belongs to: ``SET``, or ``FROM->TO`` where it holds indices."""

    values: NDArray
    place: str


@dataclass(frozen=True)
class FieldFormat:
    """A kind of file."""

    # ``read(path, permuter) -> {name: PlacedArray}``: what of the file belongs to sets of
    # the plan.
    read: Callable[[Path, Permuter], dict[str, PlacedArray]]
    # ``write(source, target, arrays, permuter)``: a copy of the source with these arrays in
    # it.
    write: Callable[[Path, Path, Mapping[str, NDArray], Permuter], None]


def _called(name: str) -> str:
    if name == ANY:
        return "the array"
    return f"'{name}'"


def _distinct(plan: Plan) -> dict[str, int]:
    """The sets without those in the same order as another, which need not be told apart."""
    distinct_sizes: dict[str, int] = {}
    for name, size in plan.sizes.items():
        same = (n for n, s in distinct_sizes.items() if s == size)
        if not any(
            _same_ordering(plan.ordering.get(name), plan.ordering.get(n)) for n in same
        ):
            distinct_sizes[name] = size
    return distinct_sizes


def _same_ordering(a: Ordering | None, b: Ordering | None) -> bool:
    first, second = (o is None or o.is_identity for o in (a, b))
    if a is None or b is None or first or second:
        return first and second
    return bool(np.array_equal(a.new_to_old, b.new_to_old))
