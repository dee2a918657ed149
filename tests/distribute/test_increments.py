"""What increments across parts cost, against a count element by element."""

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.distribute.halos import increments
from meshprep.distribute.halos.increments import IncrementCost, increment_cost
from meshprep.distribute.subject import SplitSubject
from meshprep.loops.requests import LoopSpec
from meshprep_runtime.types.loops import Access, Arg, Loop
from meshprep_runtime.types.maps import SetMap, read_only

MAPS = {
    "edges->cells": ("cells", 2),
    "edges->far": ("cells", 1),
    "edges->nodes": ("nodes", 3),
}
# By dat: the maps that lead to it, its components and their type.
DATS = {"q": (("edges->cells", "edges->far"), 4, "f8"), "x": (("edges->nodes",), 2, "f4")}
READ, INC, RW, WRITE = Access.READ, Access.INC, Access.RW, Access.WRITE


def random_args(rng):
    args = [
        Arg("w", str(rng.choice([READ, INC, RW])), 3),
        Arg("g", READ, 5, is_global=True),
    ]
    for name in rng.choice([*DATS], rng.integers(1, 6)).tolist():
        maps, dim, dtype = DATS[name]
        through = str(rng.choice(maps))
        arity = MAPS[through][1]
        columns = rng.permutation(arity)[: rng.integers(1, arity + 1)].tolist()
        access = str(rng.choice([READ, READ, INC, INC, INC, RW, WRITE]))
        args.append(Arg(f"{name} {access}", access, dim, dtype, through, tuple(columns)))
    return [args[i] for i in rng.permutation(len(args))]


def slow_cost(loop, maps, owners, parts, way, price):
    """Sets of (part, element) and of (part, dat, point)."""
    own = owners["edges"].tolist()
    indirect = [a for a in loop.args if a.map is not None]
    read = [a for a in loop.args if a.access in (READ, RW) and not a.is_global]

    def reached(arg, element):
        to = maps[arg.map].to_set
        for column in arg.index:
            point = int(maps[arg.map].table[element, column])
            yield point, int(owners[to][point])

    def copied(rows, args):
        found = {
            (part, a.name, point): a.nbytes
            for part, e in rows
            for a in args
            if a.map is not None
            for point, owner in reached(a, e)
            if owner != part
        }
        return sum(found.values())

    written = [a for a in indirect if a.access is not READ]
    executed = {
        (part, e)
        for e, mine in enumerate(own)
        for a in written
        for _, part in reached(a, e)
        if part != mine and part < parts
    }
    local = [(part, e) for e, part in enumerate(own) if part < parts]
    times = {READ: 1, WRITE: 1, RW: 2, INC: 2}
    work = sum(
        a.nbytes * times[a.access] * max(1, len(a.index))
        for a in loop.args
        if not a.is_global
    )
    work += sum(a.nbytes for a in read if a.map is None)
    exec_bytes = len(executed) * work + copied([*local, *executed], read)
    reverse_bytes = copied(local, read) + 2 * copied(local, written)
    back = len(
        {part for part, e in local for a in written for _, o in reached(a, e) if o != part}
    )
    why = "asked for"
    if not written or any(a.access is not INC for a in written):
        way, why = "exec", "no increments of dats"
    elif way == "auto" and exec_bytes > reverse_bytes + price * back:
        way, why = "reverse", "fewer bytes"
    elif way == "auto":
        way, why = (
            "exec",
            "fewer bytes" if exec_bytes <= reverse_bytes else "saves messages",
        )
    return IncrementCost(way, why, len(executed), exec_bytes, reverse_bytes, back)


@settings(max_examples=effort.examples(60))
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 5),
    st.sampled_from(["exec", "auto"]),
    st.sampled_from([0, 30]),
)
def test_both_ways_are_counted_as_by_hand(seed, n_parts, way, price):
    rng = np.random.default_rng(seed)
    sizes = {"edges": int(rng.integers(0, 40)), "cells": 12, "nodes": 9}
    maps = {
        name: SetMap(name, "edges", to, rng.integers(0, sizes[to], (sizes["edges"], arity)))
        for name, (to, arity) in MAPS.items()
    }
    loop = Loop("flux", "edges", tuple(random_args(rng)))
    subject = SplitSubject(sizes, maps, (LoopSpec(loop, {}),))
    owners = {
        s: read_only(rng.integers(0, n_parts, n).astype(np.int32)) for s, n in sizes.items()
    }
    counted = int(rng.integers(1, n_parts + 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(increments, "EXCHANGE", price)
        found = increment_cost(subject, owners, loop, way, counted)
    assert found == slow_cost(loop, maps, owners, counted, way, price)
