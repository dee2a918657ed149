"""A chain as arrays of numbers, which compiled code takes that serves all chains."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np

from ...errors import MeshprepError
from ...types.loops import Access, Arg, Loop
from ...types.maps import Bools, Int32s, Int64s, SetMap, UInt64s, offsets_of

# The most loops, and the most dats, of a chain: each has one bit of 64.
MOST = 64
# Accesses that use the values from before the loop.
READS = (Access.READ, Access.RW)


class ChainArrays(NamedTuple):
    """The loops of a chain and their accesses.

    Loop ``k`` has the accesses ``first[k]`` to ``first[k + 1] - 1``. An access is a map (-1
    for none) and a column of it, and has a bit for each dat that it reads, writes, and
    writes fully. Elements of all sets are numbered in one sequence; those of set ``s``
    begin at ``set_start[s]``.
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
    """The tables of the maps one after the other, and the transposes of written columns.

    Access ``a`` that writes through a map has ``up_start[a]``; others have -1. With ``i =
    up_start[a] + p``, the elements that name point ``p`` in its column are
    ``up[up_offset[i]:up_offset[i + 1]]``, numbered inside their set.
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
    """The names of the sets, maps and dats of a chain, in the order of their numbers.

    ``sizes`` are the sizes of its sets, by name; ``maps`` its maps, by name; ``dats`` the
    set of each dat, by the name of the dat, of which the ``i``-th has bit ``i``.
    """

    loops: tuple[Loop, ...]
    sizes: Mapping[str, int]
    maps: Mapping[str, SetMap]
    dats: Mapping[str, str]

    @property
    def written(self) -> frozenset[str]:
        """The dats that some loop changes."""
        return frozenset(name for loop in self.loops for name in loop.written)

    def bit(self, dat: str) -> int:
        """The bit of a dat."""
        return 1 << list(self.dats).index(dat)

    def owned_sets(self) -> list[str]:
        """The sets whose elements need a tile as owner.

        These are the sets of dats that change, and those of loops that reduce.
        """
        owned = {self.dats[d] for d in self.written}
        owned |= {loop.over for loop in self.loops if loop.reduces}
        return [s for s in self.sizes if s in owned]


D = TypeVar("D", bound=Hashable)


def with_common_names(
    loops: Sequence[Loop], given: Sequence[Mapping[str, D]]
) -> tuple[tuple[Loop, ...], dict[str, D]]:
    """The loops of a chain with one name for each dat, and the dats by these names.

    ``given`` has the dat of each argument, for each loop. A dat is named after the first
    argument that it stands for. Globals get another name in each loop, as each call has
    values of its own.
    """
    name_of_dat: dict[D, str] = {}
    dats: dict[str, D] = {}
    renamed = []
    for n, (loop, dats_of_loop) in enumerate(zip(loops, given, strict=True)):
        args = []
        for arg in loop.args:
            # A global is no dat: it gets a name of its own in each loop.
            if arg.name not in dats_of_loop:
                args.append(replace(arg, name=f"{arg.name}@{n}"))
                continue
            dat = dats_of_loop[arg.name]
            if dat not in name_of_dat:
                # Append a number where another dat has the name.
                free_name = arg.name
                i = len(dats)
                while free_name in dats:
                    free_name = f"{arg.name}_{i}"
                    i += 1
                name_of_dat[dat] = free_name
                dats[free_name] = dat
            args.append(replace(arg, name=name_of_dat[dat]))
        renamed.append(replace(loop, args=tuple(args)))
    return tuple(renamed), dats


def number(
    loops: Sequence[Loop], sizes: Mapping[str, int], maps: Mapping[str, SetMap]
) -> ChainNumbers:
    """Collect the sets, maps and dats that a chain touches.

    Raises MeshprepError for a chain of more than 64 loops or dats, and a dat on two sets. A
    matrix counts as a dat on the set of its rows: an element that adds to a nonzero reaches
    its row.
    """
    # Leave out the maps to the columns of matrices: no data are reached through them.
    maps_used: dict[str, SetMap] = {}
    for loop in loops:
        for arg in loop.args:
            if arg.map is not None:
                maps_used[arg.map] = maps[arg.map]
    # A dat lies on one set, so that a tile knows which of its points are needed.
    dats: dict[str, str] = {}
    for loop in loops:
        for arg in loop.args:
            if arg.is_global:
                continue
            if arg.map is None:
                set_name = loop.over
            else:
                set_name = maps_used[arg.map].to_set
            if dats.setdefault(arg.name, set_name) != set_name:
                raise MeshprepError(
                    f"dat '{arg.name}' is on '{set_name}' in loop '{loop.name}', and on "
                    f"'{dats[arg.name]}' elsewhere in the chain: "
                    "give one of them another name"
                )
    # Sets of loops and of dats are bits of one word.
    if len(loops) > MOST or len(dats) > MOST:
        raise MeshprepError(
            f"a chain of {len(loops)} loops and {len(dats)} dats is too long to cut into "
            f"tiles: at most {MOST} of each"
        )
    names = dict.fromkeys([*(loop.over for loop in loops), *dats.values()])
    sizes_used = {name: sizes[name] for name in names}
    return ChainNumbers(loops=tuple(loops), sizes=sizes_used, maps=maps_used, dats=dats)


def chain_arrays(chain: ChainNumbers) -> ChainArrays:
    """The loops in numbers."""
    # A direct access counts as one through map -1.
    map_number = {None: -1} | {m: i for i, m in enumerate(chain.maps)}
    set_number = {s: i for i, s in enumerate(chain.sizes)}
    first = [0]
    accesses: list[AccessBits] = []
    for loop in chain.loops:
        # Join the arguments of a loop that go through one column of a map.
        joined: dict[tuple[int, int], AccessBits] = {}
        for arg in loop.args:
            if arg.is_global:
                continue
            for column in arg.index or (0,):
                key = (map_number[arg.map], column)
                access = joined.setdefault(key, AccessBits(*key))
                access.add(arg, chain.bit(arg.name))
        accesses += joined.values()
        first.append(len(accesses))
    return ChainArrays(
        set_start=offsets_of([*chain.sizes.values()]),
        over=np.array([set_number[loop.over] for loop in chain.loops], np.int64),
        reduces=np.array([loop.reduces for loop in chain.loops], np.bool_),
        first=np.array(first, np.int64),
        map=np.array([access.map for access in accesses], np.int64),
        column=np.array([access.column for access in accesses], np.int64),
        read=np.array([access.read for access in accesses], np.uint64),
        write=np.array([access.write for access in accesses], np.uint64),
        full=np.array([access.full for access in accesses], np.uint64),
    )


@dataclass
class AccessBits:
    """An access of a loop: bits of the dats that it reads, writes and writes fully."""

    map: int
    column: int
    read: int = 0
    write: int = 0
    full: int = 0

    def add(self, arg: Arg, bit: int) -> None:
        """Add the bit of a dat, for an argument with this map and column."""
        if arg.access in READS:
            self.read |= bit
        if arg.access is not Access.READ:
            self.write |= bit
        if arg.full and arg.map is None:
            self.full |= bit
