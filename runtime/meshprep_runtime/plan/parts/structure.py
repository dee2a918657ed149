"""Is a part safe to run: do its arrays fit each other and does every index stay inside?"""

import numpy as np
from numpy.typing import NDArray

from ...errors import MeshprepError, PlanError
from ..checks.structure import check_loop, check_variant
from ..file.schema import RANGES
from .batch import COUNTS, FURTHER, Numbers, PartBatch, begins


def check_batch(batch: PartBatch) -> None:
    """Raise PlanError at the first thing in some parts that does not fit. O(bytes)."""
    try:
        _check(batch)
    except MeshprepError:
        # numbers in the message are those of the part
        if len(batch.parts) > 1:
            for place in range(len(batch.parts)):
                _check(batch.alone(place))
        raise


def _check(batch: PartBatch) -> None:
    for name in batch.description["sets"]:
        counts = batch.array(f"sets/{name}/counts", "<i8")
        fits = _all(batch.rows[f"sets/{name}/counts"] == len(COUNTS)) and _all(counts >= 0)
        _require(fits, f"set '{name}': counts")
    for name in batch.description["sets"]:
        _check_set(name, batch)
    for name, (start, to, arity) in batch.description["maps"].items():
        at, where = f"maps/{name}/table", f"map '{name}'"
        table, count = batch.array(at, "<i4", ndim=2), batch.sets[start].executed
        _require(table.shape[1] == arity, f"{where}: number of columns")
        _require(_all(batch.rows[at] == count), f"{where}: number of rows")
        size = batch.sets[to].size
        inside = _inside(table.reshape(-1), 0 * size, size, arity * count)
        _require(inside, f"{where}: an index outside of set '{to}'")
    for name in batch.loops:
        _check_loop(name, batch)
    for plan in batch.joined_loops.values():
        check_loop(plan)
        for variant in plan.variants.values():
            check_variant(plan, variant)
    for name in batch.description["partial"]:
        to = batch.sets[batch.description["maps"][name][1]]
        at, where = f"partial/{name}", f"partial exchange of '{name}'"
        _check_messages(f"{where}, sent", f"{at}/send", batch, (0 * to.owned, to.owned))
        _check_messages(f"{where}, received", f"{at}/receive", batch, (to.owned, to.size))
    _check_values(batch)


def _check_values(batch: PartBatch) -> None:
    """Coordinates, groups and fields have their types, and a row for each local element."""
    known = batch.description["sets"]
    for at, name in (batch.values | batch.further).items():
        _require(name in known and at.count("/") == 2 - at.startswith("coordinates/"), at)
    for at, name in batch.values.items():
        array, kind = batch.arrays[at], at.split("/")[0]
        _require(_all(batch.rows[at] == batch.sets[name].size), f"{at}: number of rows")
        fits = array.dtype.kind in "biuf"
        if kind == "coordinates":
            fits = array.dtype.str == "<f8" and array.shape[1:] in ((2,), (3,))
        elif kind == "tags":
            fits = array.dtype.str == "<i8" and array.ndim == 1
        _require(fits, f"{at}: the type {array.dtype.str}, or the columns {array.shape[1:]}")
    for at, name in batch.further.items():
        rows, size = batch.array(at, "<i8", ndim=2), batch.sets[name].size
        fits = rows.shape[1] == 2 and _inside(rows[:, 0], 0 * size, size, batch.rows[at])
        _require(fits and at.replace(FURTHER, "tags", 1) in batch.values, f"{at}: its elements")
        element, group = batch.pairs(at)
        ascend = (np.diff(element) > 0) | ((np.diff(element) == 0) & (np.diff(group) > 0))
        _require(_all(ascend), f"{at}: rows do not ascend")
    for name, tags in batch.description.get("group_names", {}).items():
        there = all(f"tags/{name}/{tag}" in batch.values for tag in tags)
        _require(there, f"set '{name}': names of groups that there are not")


def _check_set(name: str, batch: PartBatch) -> None:
    where, at, one = f"set '{name}'", f"sets/{name}", batch.sets[name]
    _require(_all(one.core <= one.owned), f"{where}: more core than owned elements")
    _require(_all(batch.rows[f"{at}/copies"] == one.n_copies), f"{where}: number of copies")
    _require(
        _all(batch.rows[f"{at}/original"] == one.owned), f"{where}: number of original numbers"
    )
    for kind, count in (("exec", one.exec), ("halo", one.halo)):
        sent = f"{where}, {kind} rows sent"
        _check_messages(sent, f"{at}/send_{kind}", batch, (0 * one.owned, one.owned))
        # their rows follow each other
        _check_messages(f"{where}, {kind} rows received", f"{at}/receive_{kind}", batch, count)


def _check_messages(
    where: str, at: str, batch: PartBatch, rows: "Numbers | tuple[Numbers, Numbers]"
) -> None:
    """Messages of so many rows, or of rows in the file, from one number to below the other."""
    count, entries = batch.rows[f"{at}/parts"], batch.rows[f"{at}/offset"]
    total = batch.rows[f"{at}/rows"] if isinstance(rows, tuple) else rows
    _require(_all(entries == count + 1), f"{where}: offset")
    _check_offset(f"{where}: offset", f"{at}/offset", batch, entries, total)
    found = batch.messages(at)
    _require(_all(found.length > 0), f"{where}: an empty message")
    own = found.part + batch.parts.start
    others = (found.other >= 0) & (found.other < batch.count) & (found.other != own)
    _require(_all(others), f"{where}: parts")
    ascend = (np.diff(found.other) > 0) | (np.diff(found.part) > 0)
    _require(_all(ascend), f"{where}: the order of the parts")
    if isinstance(rows, tuple):
        inside = _inside(found.rows(rows[0]), *rows, total)
        _require(inside, f"{where}: a row outside of what it has")


def _check_loop(name: str, batch: PartBatch) -> None:
    words, where = batch.description["loops"][name], f"loop '{name}'"
    increments = words["increments"]
    _require(increments in ("exec", "reverse"), f"{where}: increments '{increments}'")
    for label in words["variants"]:
        _check_variant(f"{where}, variant '{label}'", f"loops/{name}/{label}", name, batch)
    if batch.has_ranges(name):
        _check_ranges(f"{where}, ranges", f"loops/{name}/{RANGES}", batch.loop_rows(name), batch)


def _check_ranges(where: str, at: str, n: Numbers, batch: PartBatch) -> None:
    """That those of each part have the lengths and ends of their own, and wait for their own."""
    count, waits = batch.rows[f"{at}/order"], batch.rows[f"{at}/waits"]
    _check_offset(f"{where}, offset", f"{at}/offset", batch, count + 1, n)
    _check_offset(f"{where}, wait_offset", f"{at}/wait_offset", batch, count + 1, waits)
    for name, rows in (("order", count), ("waits", waits)):
        values = batch.array(f"{at}/{name}", "<i4")
        _require(_inside(values, 0 * count, count, rows), f"{where}, {name}: outside of the ranges")


def _check_variant(where: str, at: str, loop: str, batch: PartBatch) -> None:
    """That the arrays of each part have the lengths and ends of their own."""
    n, rows = batch.loop_rows(loop), batch.rows
    blocks, entries = rows[f"{at}/block_order"], rows[f"{at}/block_colour_offset"]
    _check_offset(f"{where}, block_offset", f"{at}/block_offset", batch, blocks + 1, n)
    _require(_all(entries > 0), f"{where}, block_colour_offset")
    _check_offset(where, f"{at}/block_colour_offset", batch, entries, blocks)
    order = batch.array(f"{at}/block_order", "<i4")
    _require(
        _inside(order, 0 * blocks, blocks, blocks), f"{where}, block_order: outside of the blocks"
    )
    lengths = _all(rows[f"{at}/thread_colour"] == n) and _all(
        rows[f"{at}/thread_colours"] == blocks
    )
    _require(lengths, f"{where}: number of thread colours")
    for name in batch.loops[loop].maps:
        _, to, arity = batch.description["maps"][name]
        _require(_all(rows[f"{at}/local/{name}"] == arity * n), f"{where}: local map '{name}'")
        place, points = f"{at}/staging/{to}", rows[f"{at}/staging/{to}/points"]
        _check_offset(f"{where}, set '{to}'", f"{place}/point_offset", batch, blocks + 1, points)
        staged = batch.array(f"{place}/points", "<i4")
        inside = _inside(staged, 0 * points, batch.sets[to].size, points)
        _require(inside, f"{where}, set '{to}': a staged point outside of it")
        marks = _all(rows[f"{place}/exclusive"] == points)
        marks = marks and _all(batch.array(f"{place}/exclusive", "|u1") <= 1)
        _require(marks, f"{where}, set '{to}': exclusive")
    _require(_all(rows[f"{at}/classes"] == 2), f"{where}: colours of the classes")
    core, owned = batch.array(f"{at}/classes", "<i8").reshape(-1, 2).T
    fits = (core >= 0) & (core <= owned) & (owned < entries)
    _require(_all(fits), f"{where}: colours of the classes")


def _check_offset(
    where: str, name: str, batch: PartBatch, entries: Numbers, totals: Numbers
) -> None:
    """Offsets that go from 0 to a total in each part, and never fall."""
    offset, first = batch.array(name, "<i8"), begins(entries)
    fits = _all(batch.rows[name] == entries) and _all(offset[first] == 0)
    fits = fits and _all(offset[first + entries - 1] == totals)
    rises = np.diff(offset) >= 0
    rises[first[1:] - 1] = True
    _require(fits and _all(rises), f"{where}: does not rise from 0 to its end")


def _inside(values: NDArray[np.integer], low: Numbers, high: Numbers, count: Numbers) -> bool:
    """Whether the values of each part are from its ``low`` to below its ``high``."""
    some = np.flatnonzero(count)
    if not some.size:
        return True
    if count.size == 1:
        return bool(values.min() >= low[0] and values.max() < high[0])
    first = begins(count)[some]
    above = np.minimum.reduceat(values, first) >= low[some]
    return _all(above) and _all(np.maximum.reduceat(values, first) < high[some])


def _all(fits: "NDArray[np.bool_] | np.bool_ | bool") -> bool:
    return bool(np.all(fits))


def _require(fits: bool, what: str) -> None:
    if not fits:
        raise PlanError(f"a part does not fit itself: {what}")
