"""Check that parts are safe to run: arrays fit each other, and all indices are in range."""

import numpy as np
from numpy.typing import NDArray

from ...errors import MeshprepError, PlanError
from ..checks.structure import check_loop, check_variant
from ..file.schema import RANGES
from .batch import COUNTS, FURTHER, Numbers, PartBatch, begins


def check_batch(batch: PartBatch) -> None:
    """Raise PlanError at the first fault in some parts. O(bytes)."""
    try:
        _check_all(batch)
    except MeshprepError:
        # Check each part alone, so that numbers in the message are those of the part.
        if len(batch.parts) > 1:
            for place in range(len(batch.parts)):
                _check_all(batch.alone(place))
        raise


def _check_all(batch: PartBatch) -> None:
    for name in batch.description["sets"]:
        counts = batch.array(f"sets/{name}/counts", "<i8")
        fits = _all(batch.rows[f"sets/{name}/counts"] == len(COUNTS)) and _all(counts >= 0)
        _require(fits, f"set '{name}': counts")
    for name in batch.description["sets"]:
        _check_set(name, batch)
    # Check maps and loops; they rely on the counts of sets.
    for name in batch.description["maps"]:
        _check_map(name, batch)
    for name in batch.loops:
        _check_loop(name, batch)
    # All parts of a loop are joined, and checked as one plan.
    for plan in batch.joined_loops.values():
        check_loop(plan)
        for variant in plan.variants.values():
            check_variant(plan, variant)
    # Check the messages of loops over few points: owners send, the others receive copies.
    for name in batch.description["partial"]:
        to_set = batch.sets[batch.description["maps"][name][1]]
        where = f"partial exchange of '{name}'"
        _check_messages(
            where=f"{where}, sent",
            path=f"partial/{name}/send",
            batch=batch,
            rows=(0 * to_set.owned, to_set.owned),
        )
        _check_messages(
            where=f"{where}, received",
            path=f"partial/{name}/receive",
            batch=batch,
            rows=(to_set.owned, to_set.size),
        )
    _check_values(batch)
    _check_further_groups(batch)


def _check_map(name: str, batch: PartBatch) -> None:
    """A map has a row for each executed element, and indices of local points."""
    from_set, to_set, arity = batch.description["maps"][name]
    path = f"maps/{name}/table"
    where = f"map '{name}'"
    table = batch.array(path, "<i4", ndim=2)
    count = batch.sets[from_set].executed
    _require(table.shape[1] == arity, f"{where}: number of columns")
    _require(_all(batch.rows[path] == count), f"{where}: number of rows")
    size = batch.sets[to_set].size
    inside = _inside(values=table.reshape(-1), low=0 * size, high=size, count=arity * count)
    _require(inside, f"{where}: an index outside of set '{to_set}'")


def _check_values(batch: PartBatch) -> None:
    """Coordinates, groups and fields have their types, and a row for each local element."""
    sets = batch.description["sets"]
    for path, name in (batch.values | batch.further).items():
        # The path is KIND/SET/NAME; of coordinates it has no name.
        n_slashes = 2 - path.startswith("coordinates/")
        _require(name in sets and path.count("/") == n_slashes, path)
    for path, name in batch.values.items():
        array = batch.arrays[path]
        kind = path.split("/")[0]
        _require(_all(batch.rows[path] == batch.sets[name].size), f"{path}: number of rows")
        fits = array.dtype.kind in "biuf"
        if kind == "coordinates":
            fits = array.dtype.str == "<f8" and array.shape[1:] in ((2,), (3,))
        elif kind == "tags":
            fits = array.dtype.str == "<i8" and array.ndim == 1
        _require(
            fits, f"{path}: the type {array.dtype.str}, or the columns {array.shape[1:]}"
        )


def _check_further_groups(batch: PartBatch) -> None:
    """Further groups, and names of groups, belong to a tag; rows ascend."""
    for path, name in batch.further.items():
        rows = batch.array(path, "<i8", ndim=2)
        size = batch.sets[name].size
        fits = rows.shape[1] == 2 and _inside(
            values=rows[:, 0], low=0 * size, high=size, count=batch.rows[path]
        )
        has_tag = path.replace(FURTHER, "tags", 1) in batch.values
        _require(fits and has_tag, f"{path}: its elements")
        # Rows ascend by element, and by group within one.
        element, group = batch.pairs(path)
        ascend = (np.diff(element) > 0) | ((np.diff(element) == 0) & (np.diff(group) > 0))
        _require(_all(ascend), f"{path}: rows do not ascend")
    for name, tags in batch.description.get("group_names", {}).items():
        have_tags = all(f"tags/{name}/{tag}" in batch.values for tag in tags)
        _require(have_tags, f"set '{name}': names of groups that there are not")


def _check_set(name: str, batch: PartBatch) -> None:
    """The counts of a set fit its arrays and its messages."""
    where = f"set '{name}'"
    path = f"sets/{name}"
    of_set = batch.sets[name]
    owned = of_set.owned
    _require(_all(of_set.core <= owned), f"{where}: more core than owned elements")
    _require(
        _all(batch.rows[f"{path}/copies"] == of_set.n_copies),
        f"{where}: number of copies",
    )
    _require(
        _all(batch.rows[f"{path}/original"] == owned),
        f"{where}: number of original numbers",
    )
    # Check the messages: owned rows are sent, copies are received.
    for kind, count in (("exec", of_set.exec), ("halo", of_set.halo)):
        _check_messages(
            where=f"{where}, {kind} rows sent",
            path=f"{path}/send_{kind}",
            batch=batch,
            rows=(0 * owned, owned),
        )
        # Received rows are consecutive, and so they are not in the file.
        _check_messages(
            where=f"{where}, {kind} rows received",
            path=f"{path}/receive_{kind}",
            batch=batch,
            rows=count,
        )


def _check_messages(
    where: str, path: str, batch: PartBatch, rows: "Numbers | tuple[Numbers, Numbers]"
) -> None:
    """Messages go to other parts, ascending, and none is empty.

    ``rows`` is the number of rows of each part; or, for rows that are in the file, the
    local number that they begin at and the one that they end before.
    """
    count = batch.rows[f"{path}/parts"]
    entries = batch.rows[f"{path}/offset"]
    if isinstance(rows, tuple):
        total = batch.rows[f"{path}/rows"]
    else:
        total = rows
    _require(_all(entries == count + 1), f"{where}: offset")
    _check_offset(
        where=f"{where}: offset",
        name=f"{path}/offset",
        batch=batch,
        entries=entries,
        totals=total,
    )
    # Each part talks to others alone, once with each of them.
    messages = batch.messages(path)
    other = messages.other
    _require(_all(messages.length > 0), f"{where}: an empty message")
    this_part = messages.part + batch.parts.start
    is_other = (other >= 0) & (other < batch.count) & (other != this_part)
    _require(_all(is_other), f"{where}: parts")
    ascend = (np.diff(other) > 0) | (np.diff(messages.part) > 0)
    _require(_all(ascend), f"{where}: the order of the parts")
    if isinstance(rows, tuple):
        # Rows are packed and put without a further look.
        low, high = rows
        inside = _inside(values=messages.rows(low), low=low, high=high, count=total)
        _require(inside, f"{where}: a row outside of what it has")


def _check_loop(name: str, batch: PartBatch) -> None:
    """The variants and ranges of a loop fit each part."""
    words = batch.description["loops"][name]
    where = f"loop '{name}'"
    increments = words["increments"]
    _require(increments in ("exec", "reverse"), f"{where}: increments '{increments}'")
    for label in words["variants"]:
        _check_variant(
            where=f"{where}, variant '{label}'",
            path=f"loops/{name}/{label}",
            loop=name,
            batch=batch,
        )
    if batch.has_ranges(name):
        _check_ranges(
            where=f"{where}, ranges",
            path=f"loops/{name}/{RANGES}",
            n=batch.loop_rows(name),
            batch=batch,
        )


def _check_ranges(where: str, path: str, n: Numbers, batch: PartBatch) -> None:
    """The ranges of each part hold its elements, and wait for turns of the same part."""
    # Each range has its elements, and the turns that it waits for.
    count = batch.rows[f"{path}/order"]
    n_waits = batch.rows[f"{path}/waits"]
    _check_offset(
        where=f"{where}, offset",
        name=f"{path}/offset",
        batch=batch,
        entries=count + 1,
        totals=n,
    )
    _check_offset(
        where=f"{where}, wait_offset",
        name=f"{path}/wait_offset",
        batch=batch,
        entries=count + 1,
        totals=n_waits,
    )
    # Turns are numbered in each part alone, so waits must stay in it.
    for name, rows in (("order", count), ("waits", n_waits)):
        values = batch.array(f"{path}/{name}", "<i4")
        _require(
            _inside(values=values, low=0 * count, high=count, count=rows),
            f"{where}, {name}: outside of the ranges",
        )


def _check_variant(where: str, path: str, loop: str, batch: PartBatch) -> None:
    """The arrays of the variant of each part have the lengths and ends of that part."""
    n = batch.loop_rows(loop)
    rows = batch.rows
    n_blocks = rows[f"{path}/block_order"]
    entries = rows[f"{path}/block_colour_offset"]

    # Check the blocks, their order and their colours.
    _check_offset(
        where=f"{where}, block_offset",
        name=f"{path}/block_offset",
        batch=batch,
        entries=n_blocks + 1,
        totals=n,
    )
    _require(_all(entries > 0), f"{where}, block_colour_offset")
    _check_offset(
        where=where,
        name=f"{path}/block_colour_offset",
        batch=batch,
        entries=entries,
        totals=n_blocks,
    )
    order = batch.array(f"{path}/block_order", "<i4")
    _require(
        _inside(values=order, low=0 * n_blocks, high=n_blocks, count=n_blocks),
        f"{where}, block_order: outside of the blocks",
    )
    fits = _all(rows[f"{path}/thread_colour"] == n)
    fits = fits and _all(rows[f"{path}/thread_colours"] == n_blocks)
    _require(fits, f"{where}: number of thread colours")

    # Check the local map and the staging list of each map.
    for name in batch.loops[loop].maps:
        _, to_set, arity = batch.description["maps"][name]
        _require(
            _all(rows[f"{path}/local/{name}"] == arity * n), f"{where}: local map '{name}'"
        )
        staging = f"{path}/staging/{to_set}"
        n_points = rows[f"{staging}/points"]
        _check_offset(
            where=f"{where}, set '{to_set}'",
            name=f"{staging}/point_offset",
            batch=batch,
            entries=n_blocks + 1,
            totals=n_points,
        )
        inside = _inside(
            values=batch.array(f"{staging}/points", "<i4"),
            low=0 * n_points,
            high=batch.sets[to_set].size,
            count=n_points,
        )
        _require(inside, f"{where}, set '{to_set}': a staged point outside of it")
        fits = _all(rows[f"{staging}/exclusive"] == n_points)
        fits = fits and _all(batch.array(f"{staging}/exclusive", "|u1") <= 1)
        _require(fits, f"{where}, set '{to_set}': exclusive")

    # Check the ends of the colours of each class.
    _require(_all(rows[f"{path}/classes"] == 2), f"{where}: colours of the classes")
    core, owned = batch.array(f"{path}/classes", "<i8").reshape(-1, 2).T
    ascend = (core >= 0) & (core <= owned) & (owned < entries)
    _require(_all(ascend), f"{where}: colours of the classes")


def _check_offset(
    where: str, name: str, batch: PartBatch, entries: Numbers, totals: Numbers
) -> None:
    """The offsets of each part go from 0 to its total, and never fall."""
    offset = batch.array(name, "<i8")
    first = begins(entries)
    fits = _all(batch.rows[name] == entries) and _all(offset[first] == 0)
    fits = fits and _all(offset[first + entries - 1] == totals)
    rises = np.diff(offset) >= 0
    # From one part to the next, they may fall.
    rises[first[1:] - 1] = True
    _require(fits and _all(rises), f"{where}: does not rise from 0 to its end")


def _inside(
    values: NDArray[np.integer], low: Numbers, high: Numbers, count: Numbers
) -> bool:
    """True where the values of each part are from its ``low`` to below its ``high``."""
    with_values = np.flatnonzero(count)
    if not with_values.size:
        return True
    if count.size == 1:
        return bool(values.min() >= low[0] and values.max() < high[0])
    first = begins(count)[with_values]
    smallest = np.minimum.reduceat(values, first)
    largest = np.maximum.reduceat(values, first)
    return _all(smallest >= low[with_values]) and _all(largest < high[with_values])


def _all(fits: "NDArray[np.bool_] | np.bool_ | bool") -> bool:
    return bool(np.all(fits))


def _require(fits: bool, what: str) -> None:
    if not fits:
        raise PlanError(f"a part does not fit itself: {what}")
