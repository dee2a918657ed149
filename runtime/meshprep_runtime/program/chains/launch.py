"""Compile and launch tiles: the text of a chain, its threads, and its reductions."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._numba.installed import thread_limit
from ...cpu.executor import Executor, HostCall
from ...cpu.pool import share, thread_count
from ...cpu.source.element import ElementCode
from ...cpu.source.forms import forms
from ...kernel.analysis import takes_single
from ...kernel.compiler import compile_error
from ...kernel.rows import reaches_apart, rows_of
from ...types.loops import Access
from ..mpi import COMBINE
from .records import Assign, Call, Record, add_place

# The arguments of the compiled function, by their names in its text.
Arrays = dict[str, NDArray[Any]]


def numbered_functions(
    executors: Sequence[Executor], listed: Sequence[bool]
) -> tuple[dict[str, Any], list[int]]:
    """The functions that run elements of a tile, and the number of that of each call.

    There is one for each loop, and another one where the elements are listed.
    """
    from ...cpu.build import Inlined

    numbers: dict[tuple[int, bool], int] = {}
    number_of_call = []
    functions = {}
    for executor, is_listed in zip(executors, listed, strict=True):
        # A loop that occurs twice is compiled once, listed and not.
        key = (id(executor), is_listed)
        if key not in numbers:
            numbers[key] = len(numbers)
            suffix = f"_{numbers[key]}"
            text = elements_text(executor, is_listed, suffix)
            single = takes_single(slot.dtype for slot in executor.slots)
            fast = executor.options.fastmath
            functions[text] = Inlined(executor.compiled_kernel, fast, single, suffix)
        number_of_call.append(numbers[key])
    return functions, number_of_call


def compiled(
    functions: Mapping[str, Any], text: str, arrays: Sequence[NDArray[Any]], one: Executor
) -> Any:
    """Compile ``run(thread, taken, *arrays)``.

    Errors of the compiler are raised as MeshprepError that names the kernel of ``one``.
    """
    from ...cpu.build import Request, build

    request = Request("\n\n".join([*functions, text]), tuple(functions.values()))
    try:
        return build(request, [np.zeros(LINE, np.int64), *arrays])
    except Exception as error:
        # Errors of numba, and for some bytecode also others.
        raise compile_error(
            kernel=one.compiled_kernel, loop=one.loop, slots=one.slots, error=error
        ) from error


def launch(
    call: Any,
    arrays: Sequence[NDArray[Any]],
    n_tiles: int,
    state: NDArray[np.int64],
    records: Sequence[Record],
) -> None:
    """Let threads take tiles from a counter.

    The first exception, or an interrupt, stops all threads and is then raised.
    """
    # The next tile, and the number of tiles.
    counters = np.zeros(LINE, np.int64)
    counters[1] = n_tiles
    failed: list[tuple[int, Exception]] = []

    # A thread that fails, or is interrupted, leaves no tile to the others.
    def work(thread: int) -> None:
        try:
            call(thread, counters, *arrays)
        except Exception as error:
            failed.append((thread, error))
            stop()

    def stop() -> None:
        counters[0] = n_tiles

    share(work, min(thread_count(), n_tiles), stop)
    if failed:
        thread, error = failed[0]
        calls = [n for n, r in enumerate(records) if isinstance(r, Call)]
        n = calls[int(state[thread * LINE])]
        # Globals keep the values assigned before the call, as without tiles.
        for record in records[:n]:
            if isinstance(record, Assign):
                record.run()
        add_place(error, records, n)
        raise error


def arrays_of_globals(
    records: Sequence[Record], executors: Sequence[Executor], n_tiles: int
) -> Arrays:
    """Constants, and arrays for the globals that loops reduce.

    A global has a row for each tile, and a row for each thread that elements owned by other
    tiles reduce into and that is ignored. Minima and maxima start from the value that the
    program has given, as a kernel may read it; from the neutral value where another loop of
    the chain reduces the same global by another access.
    """
    arrays: Arrays = {}
    n_threads = thread_limit()
    assigned: dict[int, NDArray[Any]] = {}
    accesses_of_global: dict[int, set[Access]] = defaultdict(set)
    n = 0
    for record in records:
        # An assignment begins a new reduction.
        if isinstance(record, Assign):
            assigned[id(record.target)] = record.values
            accesses_of_global[id(record.target)].clear()
            continue
        # Constants are read as they are; what is reduced has a row for each tile.
        for i, slot in enumerate(executors[n].slots):
            value = record.given[slot.name]
            if slot.rows is None and not slot.written:
                arrays[f"c{n}_{i}"] = value
            elif slot.rows is None:
                accesses = accesses_of_global[id(value)]
                accesses.add(slot.access)
                start = assigned.get(id(value), value.stored)
                if slot.access is Access.INC or len(accesses) > 1:
                    start = neutral(slot.access, slot.dtype)
                arrays[f"p{n}_{i}"] = np.full((n_tiles, slot.dim), start, slot.dtype)
                arrays[f"x_p{n}_{i}"] = np.full((n_threads, slot.dim), start, slot.dtype)
        n += 1
    return arrays


def reduce_into(
    records: Sequence[Record], executors: Sequence[Executor], arrays: Arrays
) -> None:
    """Combine the rows of the tiles into the globals, in the order of the calls."""
    n = 0
    for record in records:
        if isinstance(record, Assign):
            record.run()
            continue
        for i, slot in enumerate(executors[n].slots):
            if slot.rows is None and slot.written:
                combine = COMBINE[slot.access]
                total = record.given[slot.name].stored
                rows_of_tiles = arrays[f"p{n}_{i}"]
                if len(rows_of_tiles):
                    combine(total, combine.reduce(rows_of_tiles, axis=0), out=total)
        n += 1


def neutral(access: Access, dtype: np.dtype[Any]) -> Any:
    """The neutral value of a reduction: its result for no values."""
    if access is Access.INC:
        return 0
    if dtype.kind == "f":
        if access is Access.MIN:
            return np.inf
        return -np.inf
    limits = np.iinfo(dtype)
    if access is Access.MIN:
        return limits.max
    return limits.min


def executor_of(call: Call) -> Executor:
    """The executor that runs the loop of a call without tiles."""
    return _bind_alone(call).executor


def _bind_alone(call: Call) -> HostCall:
    arrays = {n: getattr(v, "stored", v) for n, v in call.given.items()}
    return call.loop.taking(call.given).on_host(arrays)


def check_samples(calls: Sequence[Call]) -> None:
    """Raise MeshprepError for a kernel that acts against its accesses on some rows."""
    written: set[int] = set()
    for call in calls:
        # A dat that an earlier loop writes does not have yet what this loop reads.
        if written.isdisjoint(map(id, call.given.values())):
            host_call = _bind_alone(call)
            host_call.executor.check_sample(host_call.arrays)
        written.update(id(call.given[name]) for name in call.loop.loop.written)


# The text of a chain. Counts and offsets of the schedule are in one table ``g``, with a row
# for each tile; ``e``, ``m`` and ``l`` hold the elements of all tiles, the rows of their
# maps, and their lists. Each thread has scratch rows of its own for the dats of one tile,
# which stay in its cache.
TAKE = """\
def run(thread, taken, {params}):
    stop = taken[1]
    t = fetch_add(taken, 0)
    while t < stop:
{body}
        t = fetch_add(taken, 0)
"""
# Integers of 8 bytes in two lines of a cache: threads that write at this distance from each
# other do not disturb each other.
LINE = 16


@dataclass(frozen=True)
class DatCode:
    """A dat of the chain, which the text calls ``name``.

    ``copied``: tiles copy it from the array ``d_NAME`` to the scratch rows ``w_NAME``, with
    ``listed`` only on some elements; ``stored``: they store it to ``n_NAME``; ``zero``: it
    is zero at the begin, and must be so at the end.
    """

    dat: str
    name: str
    set: str
    dim: int
    soa: bool
    copied: bool
    listed: bool
    stored: bool
    zero: bool


@dataclass(frozen=True)
class CallCode:
    """A call of the chain in the text.

    ``function`` is the number of the function that runs it, ``given`` the names of its
    arguments by slot; ``listed`` says that its elements are a list, and not the first ones;
    ``reduced`` are the slots of globals that it reduces.
    """

    function: int
    given: Sequence[str]
    maps: Sequence[str]
    over: str
    listed: bool
    reduced: Sequence[int]


def elements_text(executor: Executor, listed: bool, suffix: str) -> str:
    """The text of ``def elements_0(start, stop, order, ...)`` on scratch rows of a tile."""
    loop = executor.loop
    slots = executor.slots
    # Scratch rows are in AoS, whatever the layout of the dats.
    rows = tuple(replace(row, soa=False) for row in rows_of(loop, slots))
    maps = [f"m{i}" for i in range(len(loop.maps))]
    arguments = [f"s{i}" for i in range(len(slots))]
    form = forms(executor.kernel, rows, reaches_apart(rows, executor.plan.tables))[0]
    code = ElementCode(
        rows=rows,
        params=(*maps, *arguments),
        permuted=listed,
        form=form,
        suffix=suffix,
        rows_of_parameters=executor.rows_of_parameters,
    )
    return code.text()


def tile_text(
    params: Sequence[str],
    column: Mapping[str, int],
    sets: Sequence[str],
    maps: Mapping[str, int],
    dats: Sequence[DatCode],
    calls: Sequence[CallCode],
) -> str:
    """The text of ``def run(thread, taken, ...)``, which takes tiles off a counter."""
    set_number = {s: i for i, s in enumerate(sets)}
    # Cut the elements and maps of the tile out of the schedule.
    lines = []
    for s, i in set_number.items():
        lines.append(f"e{i} = e[{_range_text(column, f'set {s}')}]")
    for m, arity in maps.items():
        rows = f"m[{_range_text(column, f'map {m}')}]"
        lines.append(f"{map_name(maps, m)} = {rows}.reshape((-1, {arity}))")
    # Copy dats to scratch rows, run the calls, and store the dats of owned elements.
    lines += [f"w_{d.name} = r_{d.name}[thread]" for d in dats]
    for d in dats:
        lines += _copy_text(d, column, set_number[d.set])
    for n, call in enumerate(calls):
        lines.append(f"state[thread * {LINE}] = {n}")
        lines += _call_text(n=n, call=call, column=column, maps=maps)
    for d in dats:
        lines += _store_text(d, column, set_number[d.set])
    return TAKE.format(
        params=", ".join(params), body="\n".join(f"        {line}" for line in lines)
    )


def map_name(maps: Mapping[str, int], name: str) -> str:
    """The name in the text of the rows of a map."""
    return f"m{list(maps).index(name)}"


def _range_text(column: Mapping[str, int], range_name: str) -> str:
    """The range of tile ``t``, from the column of its begin to that of its end."""
    begin = column[range_name]
    return f"g[t, {begin}]:g[t, {begin + 1}]"


def _copy_text(d: DatCode, column: Mapping[str, int], s: int) -> list[str]:
    """Copy a dat to the scratch rows of a tile, or set them to zero."""
    if d.zero:
        return [f"w_{d.name}[:e{s}.size * {d.dim}] = 0"]
    if not d.copied:
        return []
    # Copy the listed rows, or the first ones of the tile.
    if d.listed:
        lines = [
            f"i{d.name} = l[{_range_text(column, f'list copy {d.dat}')}]",
            f"for j in range(i{d.name}.size):",
            f"    i = i{d.name}[j]",
        ]
    else:
        lines = [f"for i in range(g[t, {column[f'copy {d.dat}']}]):"]
    lines.append(f"    p = U(e{s}[i])")
    # Scratch rows lie one after the other, whatever the layout of the dat.
    row = f"U(i) * U({d.dim})"
    if d.soa:
        for k in range(d.dim):
            source = f"d_{d.name}[{_soa_index_text('d', d, k)}]"
            lines.append(f"    w_{d.name}[{row} + U({k})] = {source}")
    else:
        source = f"d_{d.name}, p * U({d.dim})"
        lines.append(f"    copy_row(w_{d.name}, {row}, {source}, {d.dim})")
    return lines


def _soa_index_text(array: str, d: DatCode, k: int) -> str:
    """The index of component ``k`` of element ``p`` in a SoA dat."""
    return f"U({k}) * U({array}_{d.name}.size // {d.dim}) + p"


def _call_text(
    n: int, call: CallCode, column: Mapping[str, int], maps: Mapping[str, int]
) -> list[str]:
    """Call the function of a loop on the elements of a tile."""
    lines = []
    order = "l"
    if call.listed:
        lines.append(f"o = l[{_range_text(column, f'list run {n}')}]")
        order = "o"
    map_arguments = [map_name(maps, m) for m in call.maps]
    # All numbers as U(...), one type, so that the function is compiled once.
    count = f"U(g[t, {column[f'run {n}']}])"
    function = f"elements_{call.function}"
    if not call.reduced:
        arguments = ", ".join([*map_arguments, *call.given])
        lines.append(f"{function}(U(0), {count}, {order}, {arguments})")
        return lines

    # Owned elements reduce into the row of the tile, others into a row that is ignored.
    n_owned = f"U(g[t, {column[f'own {call.over}']}])"
    of_owned = list(call.given)
    of_others = list(call.given)
    for i in call.reduced:
        of_owned[i] = f"{call.given[i]}[t]"
        of_others[i] = f"x_{call.given[i]}[thread]"
    arguments = ", ".join([*map_arguments, *of_owned])
    lines.append(f"{function}(U(0), {n_owned}, {order}, {arguments})")
    arguments = ", ".join([*map_arguments, *of_others])
    lines.append(f"{function}({n_owned}, {count}, {order}, {arguments})")
    return lines


def _store_text(d: DatCode, column: Mapping[str, int], s: int) -> list[str]:
    """Store a dat of the owned elements, or note that it is not zero as it must be."""
    n_owned = f"g[t, {column[f'own {d.set}']}]"
    # A dat that is declared zero is only checked.
    if d.zero:
        return [
            "wrong = False",
            f"for i in range({n_owned} * {d.dim}):",
            f"    wrong |= w_{d.name}[i] != 0",
            "if wrong:",
            f"    state[thread * {LINE} + 1] = 1",
        ]
    if not d.stored:
        return []
    # Store the rows that the tile owns; others belong to its neighbours.
    lines = [f"for i in range({n_owned}):", f"    p = U(e{s}[i])"]
    row = f"U(i) * U({d.dim})"
    if d.soa:
        for k in range(d.dim):
            target = f"n_{d.name}[{_soa_index_text('n', d, k)}]"
            lines.append(f"    {target} = w_{d.name}[{row} + U({k})]")
    else:
        target = f"n_{d.name}, p * U({d.dim})"
        lines.append(f"    copy_row({target}, w_{d.name}, {row}, {d.dim})")
    return lines
