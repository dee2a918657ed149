"""Parts of a mesh made the slow way, with sets and loops of Python: what a rank must hold.

Shares nothing with ``meshprep split``; see distributed meshes in docs/concepts.md for the words.
"""

from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from meshprep_runtime import Loop, LoopPlan, SetMap, Staging, Variant
from meshprep_runtime.plan.parts import (
    ClassColours,
    LoopPart,
    MapPart,
    Messages,
    PartPlan,
    SetPart,
)
from meshprep_runtime.plan.ranges import ranges_for


@dataclass
class World:
    """A mesh, its loops, and who owns what."""

    sizes: dict[str, int]
    tables: dict[str, np.ndarray]
    loops: list[Loop]
    owner: dict[str, np.ndarray]
    parts: int
    increments: dict[str, str] = field(default_factory=dict)
    partial: tuple[str, ...] = ()
    block_size: int = 3

    def __post_init__(self):
        self.core, self.exec, self.halo = zip(
            *(self._classes(p) for p in range(self.parts)), strict=True
        )
        # New numbers: part after part, core before boundary.
        self.order = {s: [] for s in self.sizes}
        for p in range(self.parts):
            for s in self.sizes:
                own = [e for e in range(self.sizes[s]) if self.owner[s][e] == p]
                self.order[s] += [e for e in own if e in self.core[p][s]]
                self.order[s] += [e for e in own if e not in self.core[p][s]]
        self.number = {s: {e: i for i, e in enumerate(o)} for s, o in self.order.items()}
        self.copies = [
            {s: self._copies(p, s) for s in self.sizes} for p in range(self.parts)
        ]

    def ends(self, name):
        return name.split("->")

    def _classes(self, p):
        written = {
            (m, c)
            for loop in self.loops
            if self.increments.get(loop.name, "exec") == "exec"
            for m, columns in loop.conflict_columns.items()
            for c in columns
        }
        used = {m for loop in self.loops for m in loop.maps}
        executed = {s: set() for s in self.sizes}
        for m, c in written:
            a, b = self.ends(m)
            for e, row in enumerate(self.tables[m]):
                if self.owner[a][e] != p and self.owner[b][row[c]] == p:
                    executed[a].add(e)
        core = {
            s: {e for e in range(n) if self.owner[s][e] == p} for s, n in self.sizes.items()
        }
        reached = {s: set() for s in self.sizes}
        for m in used:
            a, b = self.ends(m)
            for e, row in enumerate(self.tables[m]):
                if self.owner[a][e] == p or e in executed[a]:
                    reached[b] |= set(row.tolist())
                if any(self.owner[b][t] != p for t in row):
                    core[a].discard(e)
        halo = {
            s: {t for t in reached[s] if self.owner[s][t] != p and t not in executed[s]}
            for s in self.sizes
        }
        return core, executed, halo

    def _copies(self, p, s):
        number = self.number[s]
        return [sorted(number[e] for e in of[p][s]) for of in (self.exec, self.halo)]

    def local(self, p, s):
        """New numbers of the local elements, in their order."""
        start = sum(int((self.owner[s] == q).sum()) for q in range(p))
        owned = int((self.owner[s] == p).sum())
        executed, halo = self.copies[p][s]
        return [*range(start, start + owned), *executed, *halo]

    def place(self, p, s):
        return {g: i for i, g in enumerate(self.local(p, s))}

    def owner_of(self, s, g):
        return int(self.owner[s][self.order[s][g]])

    def _receive(self, p, s, which):
        return self._messages(
            p,
            s,
            {
                q: [g for g in self.copies[p][s][which] if self.owner_of(s, g) == q]
                for q in range(self.parts)
            },
        )

    def _send(self, p, s, which):
        return self._messages(
            p,
            s,
            {
                q: [g for g in self.copies[q][s][which] if self.owner_of(s, g) == p]
                for q in range(self.parts)
            },
        )

    def _messages(self, p, s, wanted):
        place = self.place(p, s)
        found = {q: [place[g] for g in rows] for q, rows in wanted.items() if rows}
        offset = np.cumsum([0, *(len(r) for r in found.values())])
        rows = [r for one in found.values() for r in one]
        return Messages(
            np.array(list(found), np.int32),
            offset.astype(np.int64),
            np.array(rows, np.int32),
        )

    def _partial_rows(self, q, m):
        """The copies that rows of boundary and exec elements of part ``q`` reach."""
        a, b = self.ends(m)
        table = self.local_table(q, m)
        core = len(self.core[q][a])
        owned = int((self.owner[b] == q).sum())
        local = self.local(q, b)
        return sorted({local[t] for t in table[core:].ravel() if t >= owned})

    def _map_part(self, p, m):
        b = self.ends(m)[1]
        mine, parts = self._partial_rows(p, m), range(self.parts)
        send = {
            q: [g for g in self._partial_rows(q, m) if self.owner_of(b, g) == p]
            for q in parts
        }
        receive = {q: [g for g in mine if self.owner_of(b, g) == q] for q in parts}
        return MapPart(self._messages(p, b, send), self._messages(p, b, receive))

    def local_table(self, p, m):
        a, b = self.ends(m)
        place = self.place(p, b)
        owned = int((self.owner[a] == p).sum())
        rows = self.local(p, a)[: owned + len(self.copies[p][a][0])]
        table = self.tables[m]
        found = [
            [place[self.number[b][int(t)]] for t in table[self.order[a][g]]] for g in rows
        ]
        return np.array(found, np.int32).reshape(-1, table.shape[1])

    def set_part(self, p, s):
        local = self.local(p, s)
        owned = int((self.owner[s] == p).sum())
        executed, halo = self.copies[p][s]
        return SetPart(
            owned_start=sum(int((self.owner[s] == q).sum()) for q in range(p)),
            core=len(self.core[p][s]),
            owned=owned,
            exec=len(executed),
            halo=len(halo),
            copies=np.array(local[owned:], np.int64),
            original=np.array([self.order[s][g] for g in local[:owned]], np.int64),
            send_exec=self._send(p, s, 0),
            send_halo=self._send(p, s, 1),
            receive_exec=self._receive(p, s, 0),
            receive_halo=self._receive(p, s, 1),
        )

    def part(self, p, slow_variant):
        """What rank ``p`` holds; ``slow_variant`` makes the blocks of one class."""
        sets = {s: self.set_part(p, s) for s in self.sizes}
        maps = {m: SetMap(m, *self.ends(m), self.local_table(p, m)) for m in self.tables}
        loops = {}
        for loop in self.loops:
            how = self.increments.get(loop.name, "exec")
            again = bool(loop.conflict_columns) and how == "exec"
            over = sets[loop.over]
            n = over.executed if again else over.owned
            own = {m: SetMap(m, *self.ends(m), maps[m].table[:n]) for m in loop.maps}
            sizes = {s: of.size for s, of in sets.items()} | {loop.over: n}
            variant, colours = _variant(
                loop, own, (0, over.core, over.owned, n), self.block_size, slow_variant
            )
            rows = {s: of.size for s, of in sets.items()}
            plan = LoopPlan(
                loop, sizes, own, {variant.name: variant}, variant.name, rows=rows
            )
            plan = replace(plan, ranges=ranges_for(plan, (over.core, over.owned)))
            loops[loop.name] = LoopPart(plan, {variant.name: colours}, how)
        partial = {m: self._map_part(p, m) for m in self.partial}
        return PartPlan(p, self.parts, self.sizes, sets, maps, loops, partial)


def _variant(loop, maps, ends, block_size, slow_variant):
    """Blocks of each class on its own, one class after the other."""
    pieces = []
    for a, b in pairwise(ends):
        rows = {
            m: SetMap(m, own.from_set, own.to_set, own.table[a:b])
            for m, own in maps.items()
        }
        pieces.append(slow_variant(loop, rows, b - a, block_size, "cpu"))
    first = pieces[0]
    blocks = np.cumsum([0, *(v.n_blocks for v in pieces)])
    places = ends
    colours = np.cumsum([v.n_block_colours for v in pieces])
    staging = {s: _staging([v.staging[s] for v in pieces]) for s in first.staging}
    return Variant(
        name=first.name,
        block_size=block_size,
        target="cpu",
        partitioner="contiguous",
        sorted_by_colour=False,
        block_offset=_joined([v.block_offset for v in pieces], places),
        block_colour_offset=_joined([v.block_colour_offset for v in pieces], blocks),
        block_order=np.concatenate(
            [v.block_order + n for v, n in zip(pieces, blocks, strict=False)]
        ).astype(np.int32),
        thread_colour=np.concatenate([v.thread_colour for v in pieces]),
        thread_colours=np.concatenate([v.thread_colours for v in pieces]),
        staging=staging,
        local={
            m: np.concatenate([v.local[m] for v in pieces], axis=1) for m in first.local
        },
    ), ClassColours(int(colours[0]), int(colours[1]))


def _joined(offsets, shifts):
    ends = [o[1:] + s for o, s in zip(offsets, shifts, strict=False)]
    return np.concatenate([[0], *ends]).astype(np.int64)


def _staging(pieces):
    shifts = np.cumsum([0, *(s.points.size for s in pieces)])
    return Staging(
        _joined([s.point_offset for s in pieces], shifts),
        np.concatenate([s.points for s in pieces]),
        np.concatenate([s.exclusive for s in pieces]),
    )
