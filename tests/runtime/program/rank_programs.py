"""Programs of integer loops on random meshes, on one rank and on several, all copies poisoned."""

from functools import partial

import numpy as np
from integer_loops import DIMS, LOOPS, SETS, SOA

from meshprep_runtime import (
    Access,
    DistributedError,
    DistributedPlan,
    LoopPlan,
    Program,
    SetMap,
    run_ranks,
)
from meshprep_runtime.kernel.bind import Slot
from meshprep_runtime.program.part_loop import Reductions
from meshprep_runtime.program.ranks import RankGroup

KERNELS = {loop.name: kernel for kernel, loop in LOOPS.items()}
PROGRAM = [*KERNELS, "flux", "update", "flux", "mark", "areas", "spread"]
POISON = -(10**9)


def random_mesh(rng, cells):
    """Maps that reach anything: no geometry."""
    sizes = {"cells": cells, "edges": 2 * cells, "bedges": cells // 3, "nodes": cells + 2}
    ends = {"edges->cells": 2, "edges->nodes": 2, "bedges->cells": 1, "cells->nodes": 3}
    ends |= {"cells->cells": 2}
    tables = {
        m: np.array(
            [
                rng.permutation(sizes[m.split("->")[1]])[:k]
                for _ in range(sizes[m.split("->")[0]])
            ],
            np.int32,
        ).reshape(-1, k)
        for m, k in ends.items()
    }
    return sizes, tables


def start_values(rng, sizes):
    return {
        name: rng.integers(0, 50, (sizes[SETS.get(name, "cells")], dim))
        for name, dim in DIMS.items()
    }


def call(loops, dats, name, kernel_globals):
    loop = LOOPS[KERNELS[name]]
    given = {a.name: dats[a.name] for a in loop.args if not a.is_global}
    reduced = {
        a.name: np.arange(1, a.dim + 1) * kernel_globals for a in loop.args if a.is_global
    }
    loops[name](**given, **reduced)
    return {n: v.tolist() for n, v in reduced.items()}


def layout_of(name):
    return "soa" if name in SOA else "aos"


def make_loops(program, names, strategy, soa=SOA):
    return {
        n: program.loop(
            KERNELS[n],
            n,
            # one loop is enough: parallel code takes long to compile
            strategy=strategy if n == "flux" or strategy == "auto" else "sequential",
            layout={a.name: "soa" for a in LOOPS[KERNELS[n]].args if a.name in soa},
        )
        for n in set(names)
    }


def on_one_rank(sizes, tables, values, names):
    maps = {m: SetMap(m, *m.split("->"), t) for m, t in tables.items()}
    loops = {
        loop.name: LoopPlan(loop, sizes, {m: maps[m] for m in loop.maps}, {}, "")
        for loop in LOOPS.values()
    }
    program = Program(
        type("Serial", (), {"sizes": sizes, "__getitem__": lambda s, n: loops[n]})()
    )
    dats = {
        n: program.dat(
            SETS.get(n, "cells"),
            DIMS[n],
            "i8",
            values=(v.T if layout_of(n) == "soa" else v).copy("C"),
            layout=layout_of(n),
        )
        for n, v in values.items()
    }
    made = make_loops(program, names, "sequential")
    reduced = [call(made, dats, n, 7) for n in names]
    return {
        n: (d.array.T if layout_of(n) == "soa" else d.array).tolist()
        for n, d in dats.items()
    }, reduced


def poison(plan, dat):
    """Spoil every copy that is stale."""
    own = plan.part.sets[dat.set]
    stale = np.zeros(own.size, bool)
    stale[own.owned :] = True
    if "exec" in dat.fresh:
        stale[own.owned : own.executed] = False
    if "halo" in dat.fresh:
        stale[own.executed :] = False
    for m in dat.fresh & set(plan.part.partial):
        stale[plan.part.partial[m].receive.rows] = False
    array = dat.array.get() if dat.on_device else dat.array
    if dat.axis:
        array[:, stale] = POISON
    else:
        array[stale] = POISON
    if dat.on_device:
        dat.array.set(array)


def on_ranks(parts, values, names, strategy, seed=0, device=None):
    main = partial(run_part, parts, values, names, strategy, device=device)
    found = run_ranks(len(parts), main, seed=seed)
    fetched, timings = found[0][0], found[0][2]
    return {n: v.tolist() for n, v in fetched.items()}, [f[1] for f in found], timings


def run_part(parts, values, names, strategy, comm, device=None):
    """A program on one rank; what it fetches, reduces and counts.

    With a device, the dats of ranks 0, 2, ... lie there.
    """
    plan = DistributedPlan(parts[comm.rank], comm)
    soa = SOA if device is None else ()
    program = Program(plan)
    dats = {}
    for name, v in values.items():
        of = SETS.get(name, "cells")
        own = v[plan.numbers(of)]
        own = np.ascontiguousarray(own.T) if name in soa else own
        layout = "soa" if name in soa else "aos"
        dats[name] = program.dat(of, DIMS[name], "i8", values=own, layout=layout)
        if device is not None:
            # on all ranks, since the copies of another array are stale
            array = dats[name].array
            dats[name].array = device.array(array) if comm.rank % 2 == 0 else array.copy()
    loops = make_loops(program, names, strategy, soa)
    reduced = []
    for name in names:
        reduced.append(call(loops, dats, name, 7))
        for dat in dats.values():
            poison(plan, dat)
    return {n: plan.fetch(d) for n, d in dats.items()}, reduced, program.timings()


def refused(comm, call):
    """What a call on ranks says is wrong."""
    try:
        call(comm)
    except DistributedError as error:
        return str(error)
    return "fine"


def extremes_on(comm):
    """True where least and largest floats of all ranks are NumPy's, NaN and all."""
    rng = np.random.default_rng(3)
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0, -0.0, 1e-40, -1e-40, 3.5, -2])
    numbers = ((Access.MIN, np.minimum), (Access.MAX, np.maximum))
    same = []
    for dtype in ("f4", "f8"):
        for access, expected in numbers:
            for least in (0, 2, 6):
                values = rng.choice(special[least:], (comm.size, 40)).astype(dtype)
                slots = [Slot("g", access, np.dtype(dtype), (40,), None)]
                reductions = Reductions(RankGroup(comm, None, "test"), "extremes", slots)
                found = values[comm.rank].copy()
                reductions.begin([found])
                reductions.start()
                reductions.finish([found])
                same.append(np.array_equal(found, expected.reduce(values), equal_nan=True))
    return all(same)
