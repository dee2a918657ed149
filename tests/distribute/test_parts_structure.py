"""A part that a compiled loop could not survive is refused, alone and among others."""

from dataclasses import replace

import numpy as np
import pytest

from meshprep_runtime.errors import PlanError
from meshprep_runtime.plan.parts import parts_table
from meshprep_runtime.plan.parts.store import read_batch
from meshprep_runtime.plan.parts.structure import check_batch

CELLS, LOOP, RANGES = "sets/cells", "loops/edges->cells/s64", "loops/edges->cells/ranges"
SENT, PARTLY = f"{CELLS}/send_exec", "partial/edges->cells"


@pytest.fixture(scope="module")
def batch(partly):
    return read_batch(partly, parts_table(partly, 3), range(3))


def changed(batch, name, change, place=1):
    """The array of one part with other numbers, as many."""
    first = int(batch.rows[name][:place].sum())
    array = batch.arrays[name].copy()
    own = array[first : first + int(batch.rows[name][place])]
    own[...] = change(own.copy())
    return replace(batch, arrays={**batch.arrays, name: array})


def moved(batch, name):
    """The last row of the second part is the first of the third."""
    return replace(
        batch, rows={**batch.rows, name: batch.rows[name] + np.array([0, -1, 1])}
    )


def put(index, value):
    def change(values):
        values[index] = value
        return values

    return change


def swap(values):
    values[:2] = values[1::-1]
    return values


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        (f"{CELLS}/counts", put(3, -1), "set 'cells': counts"),
        (f"{CELLS}/counts", put(1, 135), "more core than owned elements"),
        (f"{CELLS}/counts", put(4, 4), "set 'cells': number of copies"),
        (f"{CELLS}/original", None, "set 'cells': number of original numbers"),
        (f"{CELLS}/copies", None, "set 'cells': number of copies"),
        ("maps/edges->cells/table", None, "map 'edges->cells': number of rows"),
        (
            "maps/edges->cells/table",
            put(0, -1),
            "map 'edges->cells': an index outside of set 'cel",
        ),
        (
            "maps/edges->cells/table",
            put(0, 156),
            "map 'edges->cells': an index outside of set 'ce",
        ),
        (f"{SENT}/offset", None, "set 'cells', exec rows sent: offset"),
        (f"{SENT}/parts", None, "set 'cells', exec rows sent: offset"),
        (
            f"{SENT}/offset",
            put(0, 1),
            "exec rows sent: offset: does not rise from 0 to its end",
        ),
        (
            f"{SENT}/offset",
            put(-1, 7),
            "exec rows sent: offset: does not rise from 0 to its end",
        ),
        (f"{SENT}/offset", put(1, 0), "set 'cells', exec rows sent: an empty message"),
        (f"{SENT}/parts", put(0, -1), "set 'cells', exec rows sent: parts"),
        (f"{SENT}/parts", put(1, 3), "set 'cells', exec rows sent: parts"),
        (f"{SENT}/parts", put(0, 1), "set 'cells', exec rows sent: parts"),
        (f"{SENT}/parts", swap, "set 'cells', exec rows sent: the order of the parts"),
        (f"{SENT}/parts", put(1, 0), "set 'cells', exec rows sent: the order of the parts"),
        (
            f"{SENT}/rows",
            put(0, -1),
            "set 'cells', exec rows sent: a row outside of what it has",
        ),
        (
            f"{SENT}/rows",
            put(0, 134),
            "set 'cells', exec rows sent: a row outside of what it has",
        ),
        (f"{CELLS}/receive_halo/parts", swap, "halo rows received: the order of the parts"),
        (
            f"{PARTLY}/send/rows",
            put(0, 134),
            "partial exchange of 'edges->cells', sent: a row",
        ),
        (
            f"{PARTLY}/receive/rows",
            put(0, 133),
            "exchange of 'edges->cells', received: a row",
        ),
        (
            f"{PARTLY}/receive/rows",
            put(0, 156),
            "exchange of 'edges->cells', received: a row",
        ),
        (
            f"{LOOP}/block_offset",
            put(-1, 0),
            "block_offset: does not rise from 0 to its end",
        ),
        (
            f"{LOOP}/block_offset",
            put(1, 150),
            "block_offset: does not rise from 0 to its end",
        ),
        (
            f"{LOOP}/block_colour_offset",
            put(-1, 0),
            "'s64': does not rise from 0 to its end",
        ),
        (f"{LOOP}/block_order", put(0, 6), "block_order: outside of the blocks"),
        (f"{LOOP}/block_order", put(0, -1), "block_order: outside of the blocks"),
        (f"{LOOP}/thread_colour", None, "variant 's64': number of thread colours"),
        (f"{LOOP}/thread_colours", None, "variant 's64': number of thread colours"),
        (f"{LOOP}/local/edges->cells", None, "variant 's64': local map 'edges->cells'"),
        (
            f"{LOOP}/staging/cells/point_offset",
            put(-1, 0),
            "'cells': does not rise from 0 to its",
        ),
        (
            f"{LOOP}/staging/cells/point_offset",
            put(1, 99),
            "'cells': does not rise from 0 to its",
        ),
        (
            f"{LOOP}/staging/cells/points",
            put(0, 156),
            "'cells': a staged point outside of it",
        ),
        (
            f"{LOOP}/staging/cells/points",
            put(0, -1),
            "'cells': a staged point outside of it",
        ),
        (f"{LOOP}/staging/cells/exclusive", None, "variant 's64', set 'cells': exclusive"),
        (
            f"{LOOP}/staging/cells/exclusive",
            put(0, 2),
            "variant 's64', set 'cells': exclusive",
        ),
        (f"{LOOP}/classes", put(0, -1), "variant 's64': colours of the classes"),
        (f"{LOOP}/classes", put(0, 5), "variant 's64': colours of the classes"),
        (f"{LOOP}/classes", put(1, 6), "variant 's64': colours of the classes"),
        (f"{LOOP}/classes", None, "variant 's64': colours of the classes"),
        (f"{RANGES}/offset", put(-1, 0), "ranges, offset: does not rise from 0 to its end"),
        (f"{RANGES}/offset", None, "ranges, offset: does not rise from 0 to its end"),
        (f"{RANGES}/order", put(0, 3), "ranges, order: outside of the ranges"),
        (f"{RANGES}/order", put(0, -1), "ranges, order: outside of the ranges"),
        (
            f"{RANGES}/wait_offset",
            put(1, 9),
            "ranges, wait_offset: does not rise from 0 to its",
        ),
        (f"{RANGES}/waits", put(0, -1), "ranges, waits: outside of the ranges"),
        (f"{RANGES}/waits", put(0, 3), "ranges, waits: outside of the ranges"),
    ],
)
def test_parts_that_do_not_fit_themselves_are_refused(batch, name, change, said):
    check_batch(batch)
    wrong = moved(batch, name) if change is None else changed(batch, name, change)
    for one in (wrong, wrong.alone(1)):
        with pytest.raises(PlanError) as error:
            check_batch(one)
        assert str(error.value).startswith("a part does not fit itself: ")
        assert said in str(error.value)
    check_batch(wrong.alone(0))
