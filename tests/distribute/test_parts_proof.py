"""What is wrong with parts is found: each property broken alone, by one process or by several."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from parts_arrays import proved
from parts_files import all_parts

from meshprep_runtime.errors import PlanError
from meshprep_runtime.plan.model import Ranges
from meshprep_runtime.plan.parts import parts_table
from meshprep_runtime.plan.parts.proof import PartsProof
from meshprep_runtime.plan.parts.store import read_batch
from meshprep_runtime.plan.parts.structure import check_batch
from meshprep_runtime.types.loops import Access


def changed_set(part, name, **values):
    return replace(part, sets={**part.sets, name: replace(part.sets[name], **values)})


def table_of(part, name, change):
    m = part.maps[name]
    table = m.table.copy()
    change(table, part.sets[m.from_set])
    return replace(part, maps={**part.maps, name: replace(m, table=table)})


def wrong_parts():
    """How a part is made wrong, and what the proof says of it."""

    def without_exec(part):
        one = part.sets["edges"]
        copies = np.concatenate(
            [one.copies[1 : one.exec], one.copies[:1], one.copies[one.exec :]]
        )
        return changed_set(part, "edges", copies=copies)

    def other_copy(part, at, number):
        copies = part.sets["nodes"].copies.copy()
        copies[at] = number
        return changed_set(part, "nodes", copies=copies)

    def own_copy(part):
        return other_copy(part, 0, part.sets["nodes"].owned_start)

    def outside(part):
        return other_copy(part, -1, 217)

    def negative(part):
        return other_copy(part, 0, -1)

    def original_outside(part):
        return changed_set(part, "nodes", original=part.sets["nodes"].original + 217)

    def send_reversed(part):
        one = part.sets["cells"].send_exec
        return changed_set(
            part, "cells", send_exec=replace(one, rows=one.rows[::-1].copy())
        )

    def one_original(part):
        original = part.sets["cells"].original.copy()
        original[0] = original[1]
        return changed_set(part, "cells", original=original)

    def other_row(part):
        rows = part.sets["edges"]

        def change(table, _):
            table[rows.owned, 0] = table[rows.owned, 1]

        # the staging lists of the loop would show it already
        return replace(table_of(part, "edges->cells", change), loops={})

    def core_at_border(part):
        cells = part.sets["cells"]

        def change(table, _):
            table[0, 0] = cells.owned

        return table_of(part, "edges->cells", change)

    def shifted(part):
        return changed_set(part, "cells", owned_start=part.sets["cells"].owned_start + 1)

    def lower_class(part):
        loop = part.loops["edges->cells"]
        (name,) = loop.colours
        colours = {name: replace(loop.colours[name], core=loop.colours[name].core - 1)}
        loops = {**part.loops, "edges->cells": replace(loop, colours=colours)}
        return replace(part, loops=loops)

    def across(part, change):
        """The core ends inside a block: of the core, or of the boundary."""
        edges = part.sets["edges"]
        return replace(
            part, sets={**part.sets, "edges": replace(edges, core=edges.core + change)}
        )

    def other_ranges(part, change):
        loop = part.loops["edges->cells"]
        plan = replace(loop.plan, ranges=change(loop.plan.ranges))
        loops = {**part.loops, "edges->cells": replace(loop, plan=plan)}
        return replace(part, loops=loops)

    def without_waits(ranges):
        none = np.zeros(0, np.int32)
        return replace(ranges, wait_offset=np.zeros_like(ranges.wait_offset), waits=none)

    def turned(ranges):
        """The last range first, and each waits for the one before it."""
        n = ranges.order.size
        wait_offset = np.append(0, np.arange(n))
        every = np.arange(n - 1, dtype=np.int32)
        return Ranges(ranges.offset, ranges.order[::-1].copy(), wait_offset, every)

    def joined(ranges):
        """One range of all elements."""
        one = np.zeros(1, np.int32)
        return Ranges(ranges.offset[[0, -1]], one, np.zeros(2, np.int64), one[:0])

    def sent_back(part):
        loop = part.loops["edges->cells"]
        args = tuple(replace(a, access=Access.RW) for a in loop.plan.loop.args)
        plan = replace(loop.plan, loop=replace(loop.plan.loop, args=args))
        loops = {
            **part.loops,
            "edges->cells": replace(loop, plan=plan, increments="reverse"),
        }
        return replace(part, loops=loops)

    return [
        (without_exec, "do not ascend"),
        (own_copy, "copies an element that it owns"),
        (outside, "part 1, set 'nodes': a copy of an element outside 0..216"),
        (negative, "part 1, set 'nodes': a copy of an element outside 0..216"),
        (original_outside, "part 1, set 'nodes': original numbers outside 0..216"),
        (send_reversed, "exec rows of 'cells': what parts send is not what others receive"),
        (one_original, "no permutation"),
        (other_row, "a copied row differs from its owner's"),
        (core_at_border, "a core element reaches a copy"),
        (shifted, "owns from"),
        (lower_class, "a block has a colour of another class"),
        (partial(across, change=1), "a block crosses from one class to another"),
        (partial(across, change=-1), "a block crosses from one class to another"),
        (sent_back, "no increment"),
        (partial(other_ranges, change=without_waits), "and neither waits for the other"),
        (partial(other_ranges, change=turned), "a range runs before one of a lower class"),
        (partial(other_ranges, change=joined), "a range crosses from one class to another"),
    ]


@pytest.mark.parametrize(("change", "message"), wrong_parts(), ids=lambda v: str(v)[:20])
def test_the_proof_finds_what_is_wrong(made, change, message):
    parts, sizes = all_parts(made, 3)
    assert findings_of(parts, sizes) == []
    parts[1] = change(parts[1])
    assert any(message in line for line in findings_of(parts, sizes))
    # what several processes find, each for some parts
    assert any(message in line for line in findings_of(parts, sizes, range(1), range(1, 3)))


def test_copies_that_are_executed_and_read_besides_are_found(made):
    parts, sizes = all_parts(made, 3)
    at, one = next(
        (k, part.sets["cells"])
        for k, part in enumerate(parts)
        if 0 < part.sets["cells"].halo <= part.sets["cells"].exec
    )
    copies = one.copies.copy()
    copies[one.exec :] = copies[one.exec - one.halo : one.exec]
    parts[at] = changed_set(parts[at], "cells", copies=copies)
    message = f"part {at}, set 'cells': copies do not ascend, or stand twice"
    assert any(message in line for line in findings_of(parts, sizes))


def with_partial(part, **changes):
    one = part.partial["edges->cells"]
    return replace(part, partial={**part.partial, "edges->cells": replace(one, **changes)})


def test_the_proof_finds_what_partial_exchanges_do_wrong(partly):
    parts, sizes = all_parts(partly, 3)
    assert findings_of(parts, sizes) == []
    right, one = parts[1], parts[1].partial["edges->cells"]
    reverse = replace(one.send, rows=one.send.rows[::-1].copy())
    parts[1] = with_partial(right, send=reverse)
    said = "3 parts: partial edges->cells: what parts send is not what others receive"
    assert findings_of(parts, sizes) == [said]
    # each copy in turn is left out
    for at in range(one.receive.rows.size):
        offset = one.receive.offset - (one.receive.offset > at)
        less = replace(one.receive, rows=np.delete(one.receive.rows, at), offset=offset)
        parts[1] = with_partial(right, receive=less)
        first, *_ = findings_of(parts, sizes)
        assert (
            first
            == "3 parts: part 1: the partial exchange of 'edges->cells' leaves a copy out"
        )
    assert at > 5


def findings_of(parts, sizes, *shares):
    found = [proved(iter(parts), sizes, 3, own).findings for own in shares or (None,)]
    return [line for lines in found for line in lines]


def part_map(part):
    m = part.maps["edges->cells"]
    return replace(m, table=m.table[: part.sets["edges"].executed])


def test_the_proof_misses_no_element_that_must_be_executed(made):
    parts, sizes = all_parts(made, 3)
    one = parts[2].sets["edges"]
    # the last exec element becomes one that is only read
    less = changed_set(parts[2], "edges", exec=one.exec - 1, halo=one.halo + 1)
    m = part_map(less)
    parts[2] = replace(less, maps={**less.maps, m.name: m}, loops={})
    for shares in ((), (range(2), range(2, 3)), (range(1), range(1, 1), range(1, 3))):
        findings = findings_of(parts, sizes, *shares)
        assert any("is not executed there (1 missing)" in line for line in findings)


def refused(batches, sizes):
    """What is said of parts that are looked at in these batches."""
    proof = PartsProof(sizes, 3)
    try:
        for batch in batches:
            check_batch(batch)
            proof.add(batch)
        return proof.finish()
    except PlanError as error:
        return [str(error)]


@pytest.mark.slow
@pytest.mark.parametrize("change", [1, -1, 50])
def test_parts_together_are_refused_where_one_alone_is(made, change):
    """Each array in turn, with one number changed: verdicts agree, and nearly all are refused."""
    table, rng, count = parts_table(made, 3), np.random.default_rng(0), 0
    whole, sizes = read_batch(made, table, range(3)), table.description["sets"]
    assert refused([whole], sizes) == []
    for name, array in whole.arrays.items():
        if not array.size:
            continue
        wrong = array.copy()
        wrong.reshape(-1)[rng.integers(wrong.size)] += np.array(change).astype(wrong.dtype)
        batch = replace(whole, arrays={**whole.arrays, name: wrong})
        alone = [batch.alone(place) for place in range(3)]
        said = refused([batch], sizes), refused(alone, sizes)
        assert bool(said[0]) == bool(said[1]), (name, change, said)
        count += bool(said[0])
    assert count > 2 / 3 * len(whole.arrays)
