"""Random chains of integer loops on random maps, and plain Python that runs them."""

from dataclasses import replace

import numpy as np
import rank_programs
from integer_loops import DIMS, LOOPS, SETS, SOA

from meshprep_runtime import Access, LoopPlan, Program, SetMap

KERNELS, start_values = rank_programs.KERNELS, rank_programs.start_values
# What may stand for another: dats of one set and size.
ALIKE = (("q", "res", "qold"), ("a", "most", "flag", "near"))
# Writes that set everything.
FULL = {("update", "q"), ("areas", "a")}


def random_mesh(rng, cells):
    """The random tables of programs on ranks, as maps."""
    sizes, tables = rank_programs.random_mesh(rng, cells)
    return sizes, {m: SetMap(m, *m.split("->"), t) for m, t in tables.items()}


def grid_mesh(side):
    """Cells in a square, so that tiles have neighbours that are not everything."""
    n = side * side
    cell = np.arange(n).reshape(side, side)
    edges = np.concatenate(
        [
            np.stack([cell[:, :-1].ravel(), cell[:, 1:].ravel()], 1),
            np.stack([cell[:-1].ravel(), cell[1:].ravel()], 1),
        ]
    )
    node = np.arange((side + 1) ** 2).reshape(side + 1, side + 1)
    corners = np.stack(
        [node[:-1, :-1].ravel(), node[:-1, 1:].ravel(), node[1:, 1:].ravel()], 1
    )
    tables = {
        "edges->cells": edges,
        "edges->nodes": corners[edges[:, 1]][:, :2],
        "bedges->cells": cell[0][:, None],
        "cells->nodes": corners,
        "cells->cells": np.stack(
            [np.roll(cell, 1, 1).ravel(), np.roll(cell, 1, 0).ravel()], 1
        ),
    }
    sizes = {"cells": n, "edges": len(edges), "bedges": side, "nodes": node.size}
    return sizes, {
        m: SetMap(m, *m.split("->"), t.astype(np.int32)) for m, t in tables.items()
    }


def full(loop):
    """The loop with what it writes fully declared so."""
    args = (replace(a, full=(loop.name, a.name) in FULL) for a in loop.args)
    return replace(loop, args=tuple(args))


def random_loops(rng, names):
    """Loops in a row, each on other dats, some with full writes."""
    made = []
    for n, name in enumerate(names):
        other = {d: d for d in DIMS}
        for alike in ALIKE:
            other |= dict(zip(alike, rng.permutation(alike).tolist(), strict=True))
        loop = LOOPS[KERNELS[name]]
        loop = full(loop) if rng.random() < 0.7 else loop
        args = (
            replace(a, name=f"{a.name}@{n}" if a.is_global else other[a.name])
            for a in loop.args
        )
        made.append(replace(loop, args=tuple(args)))
    return made


def fresh_globals(loops):
    start = {Access.INC: 0, Access.MIN: 10**12, Access.MAX: -(10**12)}
    return {
        a.name: np.full(a.dim, start[a.access])
        for p in loops
        for a in p.args
        if a.is_global
    }


def run_loop(loop, elements, tables, dats, reduced):
    """The kernel on some elements, one after the other."""
    for e in elements:
        rows = []
        for a in loop.args:
            if a.is_global:
                rows.append(reduced[a.name])
            elif a.map is None:
                rows.append(dats[a.name][e])
            else:
                rows += [dats[a.name][tables[a.map][e][c]] for c in a.index]
        KERNELS[loop.name](*rows)


def run_eager(loops, sizes, maps, values):
    dats, reduced = {n: v.copy() for n, v in values.items()}, fresh_globals(loops)
    tables = {m: maps[m].table for m in maps}
    for loop in loops:
        run_loop(loop, range(sizes[loop.over]), tables, dats, reduced)
    return dats, reduced


def same(found, expected):
    """Both the dats and the globals of two runs."""
    return all(
        np.array_equal(a[n], b[n]) for a, b in zip(found, expected, strict=True) for n in b
    )


def owners(chain, rng, n_tiles, sets):
    """Any owners at all; every tile owns something."""
    part = {s: rng.integers(0, n_tiles, chain.sizes[s]).astype(np.int32) for s in sets}
    largest = max(part, key=lambda s: part[s].size)
    part[largest][:n_tiles] = np.arange(n_tiles)[: part[largest].size]
    return part


def slow_tile(loops, maps, set_of, own, written):
    """What one tile runs and copies, by Python sets, one rule after the other."""
    need = {d: set(own[set_of[d]]) if d in written else set() for d in set_of}
    runs = []
    for loop in reversed(loops):
        run = set()
        for a in loop.args:
            if a.is_global:
                run |= set(own[loop.over]) if a.access is not Access.READ else set()
            elif a.access is not Access.READ and a.map is None:
                run |= need[a.name]
            elif a.access is not Access.READ:
                table = maps[a.map].table
                run |= {
                    e
                    for e in range(len(table))
                    for c in a.index
                    if table[e, c] in need[a.name]
                }
        for a in loop.args:
            if a.full:
                need[a.name] -= run
        for a in loop.args:
            if a.access in (Access.READ, Access.RW) and not a.is_global:
                columns = [[e] for e in run]
                if a.map is not None:
                    columns = [maps[a.map].table[e, list(a.index)].tolist() for e in run]
                need[a.name] |= {p for points in columns for p in points}
        runs.insert(0, sorted(run))
    return runs, {d: sorted(n) for d, n in need.items() if n}


def integer_dats(program, start):
    """A dat for each of these values, some of them by component."""
    dats = {}
    for name, values in start.items():
        soa = name in SOA
        dats[name] = program.dat(
            SETS.get(name, "cells"),
            DIMS[name],
            "i8",
            values=values.T.copy() if soa else values,
            layout="soa" if soa else "aos",
        )
    return dats


class Case:
    """A program with all integer loops, dats of random numbers, and reduced globals.

    It is its plan, too, without blocks; ``declared`` says what full writes its loops declare.
    """

    def __init__(self, mesh, rng, declared=lambda loop: loop):
        self.sizes, self.maps = mesh
        self.declared = declared
        self.program = Program(self)
        self.dats = integer_dats(self.program, start_values(rng, self.sizes))
        self.loops, self.globals = loops_and_globals(self.program)

    def __getitem__(self, name):
        loop = self.declared(LOOPS[KERNELS[name]])
        return LoopPlan(loop, self.sizes, {m: self.maps[m] for m in loop.maps}, {}, "")

    def arguments(self, name):
        args = LOOPS[KERNELS[name]].args
        reduced = {a.name: self.globals[name, a.name] for a in args if a.is_global}
        return {a.name: self.dats[a.name] for a in args if not a.is_global} | reduced

    def call(self, name):
        self.loops[name](**self.arguments(name))

    def result(self):
        dats = {n: d.values().tolist() for n, d in self.dats.items()}
        return dats, {n: g.value.tolist() for n, g in self.globals.items()}


def loops_and_globals(program):
    """Every kernel as a loop of a program, and a reduced global for each that it has."""
    reduced = {
        (n, a.name): program.reduced(3, a.dim, "i8")
        for n, k in KERNELS.items()
        for a in LOOPS[k].args
        if a.is_global
    }
    loops = {
        n: program.loop(
            k,
            n,
            strategy="sequential",
            layout={a.name: "soa" for a in LOOPS[k].args if a.name in SOA},
        )
        for n, k in KERNELS.items()
    }
    return loops, reduced
