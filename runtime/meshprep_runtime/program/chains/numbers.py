"""A chain as arrays of numbers, for compiled code that serves every chain."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np

from ...errors import MeshprepError
from ...types.loops import Access, Loop
from ...types.maps import Bools, Int32s, Int64s, SetMap, UInt64s, offsets_of

MOST = 64
READS = (Access.READ, Access.RW)


class ChainArrays(NamedTuple):
    """The loops: accesses ``first[k]`` to ``first[k + 1] - 1`` are those of loop ``k``.

    An access is a map (-1: none) and a column, and has a bit for each dat that it reads, writes,
    and writes fully. Elements of all sets are numbered in one sequence; ``set_start`` cuts it.
    """

    set_start: Int64s
    over: Int64s
    reduces: Bools
    first: Int64s
    map: Int64s
    column: Int64s
    read: UInt64s
    write: UInt64s
    full: UInt64s


class MapArrays(NamedTuple):
    """The maps one after the other: tables, and who names each point through a column.

    Access ``a`` that writes through a map has ``up_start[a]``, else -1: elements
    ``up[up_offset[i]:up_offset[i + 1]]``, numbered inside their set, name point ``p`` of its map,
    where ``i = up_start[a] + p``.
    """

    arity: Int64s
    from_start: Int64s
    to_set: Int64s
    table_start: Int64s
    table: Int32s
    up_start: Int64s
    up_offset: Int64s
    up: Int32s


@dataclass(frozen=True, eq=False)
class ChainNumbers:
    """The names behind the numbers."""

    loops: tuple[Loop, ...]
    # By set name: the sets that the chain touches, in the order of their numbers.
    sizes: Mapping[str, int]
    maps: Mapping[str, SetMap]  # by map name
    dats: Mapping[str, str]  # by dat name: bit ``i`` stands for the ``i``-th

    @property
    def written(self) -> frozenset[str]:
        """Dats that some loop changes."""
        return frozenset(name for loop in self.loops for name in loop.written)

    def bit(self, dat: str) -> int:
        """The bit of a dat."""
        return 1 << list(self.dats).index(dat)

    def owned_sets(self) -> list[str]:
        """Sets whose elements need an owner: dats on them change, or loops over them reduce."""
        wanted = {self.dats[d] for d in self.written}
        wanted |= {loop.over for loop in self.loops if loop.reduces}
        return [s for s in self.sizes if s in wanted]


D = TypeVar("D", bound=Hashable)


def with_common_names(
    loops: Sequence[Loop], given: Sequence[Mapping[str, D]]
) -> tuple[tuple[Loop, ...], dict[str, D]]:
    """Loops in a row with one name for each dat, and the dats by these names.

    ``given`` says for each loop which dat stands for an argument. The name of a dat is that of the
    argument that met it first. Globals get a name for each loop, since each has values of its own.
    """
    names: dict[D, str] = {}
    dats: dict[str, D] = {}
    made = []
    for n, (loop, own) in enumerate(zip(loops, given, strict=True)):
        args = []
        for arg in loop.args:
            if arg.name not in own:
                args.append(replace(arg, name=f"{arg.name}@{n}"))
                continue
            dat = own[arg.name]
            if dat not in names:
                free, i = arg.name, len(dats)
                while free in dats:
                    free, i = f"{arg.name}_{i}", i + 1
                names[dat], dats[free] = free, dat
            args.append(replace(arg, name=names[dat]))
        made.append(replace(loop, args=tuple(args)))
    return tuple(made), dats


def number(
    loops: Sequence[Loop], sizes: Mapping[str, int], maps: Mapping[str, SetMap]
) -> ChainNumbers:
    """Collect the sets, maps and dats that a chain touches.

    Raises MeshprepError for a chain of more than 64 loops or dats, and a dat on two sets. A matrix
    counts as a dat on the set of its rows: who adds to one nonzero reaches one row.
    """
    # maps to the columns of matrices lead to no data
    used = {a.map: maps[a.map] for loop in loops for a in loop.args if a.map is not None}
    dats: dict[str, str] = {}
    for loop in loops:
        for arg in loop.args:
            if arg.is_global:
                continue
            on = loop.over if arg.map is None else used[arg.map].to_set
            if dats.setdefault(arg.name, on) != on:
                raise MeshprepError(
                    f"dat '{arg.name}' is on '{on}' in loop '{loop.name}', and on "
                    f"'{dats[arg.name]}' elsewhere in the chain: give one of them another name"
                )
    if len(loops) > MOST or len(dats) > MOST:
        raise MeshprepError(
            f"a chain of {len(loops)} loops and {len(dats)} dats is too long to cut into tiles: "
            f"at most {MOST} of each"
        )
    names = dict.fromkeys([*(loop.over for loop in loops), *dats.values()])
    return ChainNumbers(tuple(loops), {s: sizes[s] for s in names}, used, dats)


def chain_arrays(chain: ChainNumbers) -> ChainArrays:
    """The loops in numbers."""
    map_number = {None: -1} | {m: i for i, m in enumerate(chain.maps)}
    set_number = {s: i for i, s in enumerate(chain.sizes)}
    first = [0]
    accesses: list[tuple[tuple[int, int], list[int]]] = []
    for loop in chain.loops:
        merged: dict[tuple[int, int], list[int]] = {}
        for arg in loop.args:
            if not arg.is_global:
                for column in arg.index or (0,):
                    masks = merged.setdefault((map_number[arg.map], column), [0, 0, 0])
                    bit = chain.bit(arg.name)
                    masks[0] |= bit * (arg.access in READS)
                    masks[1] |= bit * (arg.access is not Access.READ)
                    masks[2] |= bit * (arg.full and arg.map is None)
        accesses += merged.items()
        first.append(len(accesses))
    bits = np.array([masks for _, masks in accesses], np.uint64).reshape(-1, 3)
    where = np.array([place for place, _ in accesses], np.int64).reshape(-1, 2)
    return ChainArrays(
        offsets_of([*chain.sizes.values()]),
        np.array([set_number[loop.over] for loop in chain.loops], np.int64),
        np.array([loop.reduces for loop in chain.loops], np.bool_),
        np.array(first, np.int64),
        *(where[:, 0].copy(), where[:, 1].copy()),
        *(bits[:, 0].copy(), bits[:, 1].copy(), bits[:, 2].copy()),
    )
