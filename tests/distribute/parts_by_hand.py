"""Parts by sets and loops in Python, from the terms alone [R14 7.1.1]: the oracle of the tests."""

from collections import Counter

from meshprep.distribute.subject import subject_of_mesh
from meshprep.io.generate import generate
from meshprep.loops.request_maps import plan_request_maps
from meshprep.loops.requests import simple_request


def slow_part(sizes, maps, written, owners, part):
    """Core, boundary, exec and halo of every set, as sets of input numbers."""
    exec_ = {s: set() for s in sizes}
    for name, columns in written.items():
        m = maps[name]
        for e, row in enumerate(m.table.tolist()):
            if owners[m.from_set][e] != part and any(
                owners[m.to_set][row[c]] == part for c in columns
            ):
                exec_[m.from_set].add(e)
    owned = {s: {e for e in range(n) if owners[s][e] == part} for s, n in sizes.items()}
    boundary = {s: set() for s in sizes}
    halo = {s: set() for s in sizes}
    for m in maps.values():
        for e, row in enumerate(m.table.tolist()):
            foreign = {t for t in row if owners[m.to_set][t] != part}
            if e in owned[m.from_set] and foreign:
                boundary[m.from_set].add(e)
            if e in owned[m.from_set] or e in exec_[m.from_set]:
                halo[m.to_set] |= foreign
    return {
        s: {
            "core": owned[s] - boundary[s],
            "boundary": boundary[s],
            "exec": exec_[s],
            "halo": halo[s] - exec_[s],
        }
        for s in sizes
    }


def slow_partial(maps, name, found, owners, part):
    """What the executed rows of a map reach outside, and how many entries lead there."""
    m = maps[name]
    rows = set().union(*(found[m.from_set][run] for run in ("core", "boundary", "exec")))
    entries = [t for e in rows for t in m.table[e].tolist() if owners[m.to_set][t] != part]
    return set(entries), len(entries)


def most(values, *, first):
    """The most frequent value: the first of equals in the row, or the lowest."""
    count = Counter(values)
    best = max(count.values())
    among = [v for v in values if count[v] == best]
    return among[0] if first else min(among)


def mesh_subject(kind, loops, **values):
    """A generated mesh, to be split for loops."""
    mesh = generate(kind, seed=0, **values)
    return subject_of_mesh(
        mesh, *plan_request_maps(mesh, [simple_request(one) for one in loops])
    )
