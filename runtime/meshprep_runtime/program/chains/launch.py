"""What running tiles takes: functions, threads, and globals that tiles reduce."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cpu.cores import thread_count
from ...cpu.executor import Executor
from ...cpu.pool import share
from ...kernel.analysis import takes_single
from ...kernel.compiler import compile_error, import_numba
from ...loops import Access
from .records import Assign, Call, Record, add_place
from .source import LINE, elements_text

Arrays = dict[str, NDArray[Any]]
COMBINE = {Access.INC: np.add, Access.MIN: np.minimum, Access.MAX: np.maximum}


def numbered_functions(
    executors: Sequence[Executor], listed: Sequence[bool]
) -> tuple[list[Any], list[int]]:
    """One function for each loop and way to number its elements, and which of them a call takes."""
    from .build import ElementFunction

    numbers: dict[tuple[int, bool], int] = {}
    functions = []
    for executor, some in zip(executors, listed, strict=True):
        key = (id(executor), some)
        if key not in numbers:
            numbers[key] = len(numbers)
            text = elements_text(executor.loop, executor.slots, some, f"_{numbers[key]}")
            single = takes_single(slot.dtype for slot in executor.slots)
            fast = executor.options.fastmath
            functions.append(ElementFunction(executor.kernel, text, fast, single))
    return functions, [numbers[id(e), some] for e, some in zip(executors, listed, strict=True)]


def compiled(
    functions: Sequence[Any], text: str, arrays: Sequence[NDArray[Any]], one: Executor
) -> Any:
    """The machine code; raises MeshprepError in the name of ``one`` where numba refuses."""
    from .build import build_chain

    try:
        return build_chain(functions, text, arrays)
    except Exception as error:  # numba's own and, for some bytecode, others.
        raise compile_error(one.kernel, one.loop, one.slots, error) from error


def launch(
    call: Any,
    arrays: Sequence[NDArray[Any]],
    n_tiles: int,
    state: NDArray[np.int64],
    records: Sequence[Record],
) -> None:
    """Let threads take tiles; the first exception stops them, and arrives with its place.

    So does an interrupt: nothing writes to the arrays any more when it is raised.
    """
    taken = np.zeros(LINE, np.int64)
    taken[1] = n_tiles
    failed: list[tuple[int, Exception]] = []

    def work(thread: int) -> None:
        try:
            call(thread, taken, *arrays)
        except Exception as error:
            failed.append((thread, error))
            stop()

    def stop() -> None:
        taken[0] = n_tiles

    share(work, min(thread_count(), n_tiles), stop)
    if failed:
        thread, error = failed[0]
        calls = [n for n, r in enumerate(records) if isinstance(r, Call)]
        n = calls[int(state[thread * LINE])]
        # what the program gave to globals before the call stays, as it would without tiles
        for record in records[:n]:
            if isinstance(record, Assign):
                record.run()
        add_place(error, records, n)
        raise error


def arrays_of_globals(
    records: Sequence[Record], executors: Sequence[Executor], n_tiles: int
) -> Arrays:
    """Constants; for what loops reduce a row a tile, and a row a thread that nobody looks at.

    Least and largest start from what the program gave, which a kernel may look at, unless another
    loop of the chain reduces the same global otherwise.
    """
    arrays: Arrays = {}
    threads = import_numba().config.NUMBA_NUM_THREADS
    assigned: dict[int, NDArray[Any]] = {}
    ways: dict[int, set[Access]] = defaultdict(set)
    n = 0
    for record in records:
        if isinstance(record, Assign):
            assigned[id(record.target)] = record.values
            ways[id(record.target)].clear()
            continue
        for i, slot in enumerate(executors[n].slots):
            value = record.given[slot.name]
            if slot.rows is None and not slot.written:
                arrays[f"c{n}_{i}"] = value
            elif slot.rows is None:
                way = ways[id(value)]
                way.add(slot.access)
                start = assigned.get(id(value), value.stored)
                if slot.access is Access.INC or len(way) > 1:
                    start = neutral(slot.access, slot.dtype)
                arrays[f"p{n}_{i}"] = np.full((n_tiles, slot.dim), start, slot.dtype)
                arrays[f"x_p{n}_{i}"] = np.full((threads, slot.dim), start, slot.dtype)
        n += 1
    return arrays


def reduce_into(records: Sequence[Record], executors: Sequence[Executor], arrays: Arrays) -> None:
    """Add what the tiles found to the globals, in the order of the calls."""
    n = 0
    for record in records:
        if isinstance(record, Assign):
            record.run()
            continue
        for i, slot in enumerate(executors[n].slots):
            if slot.rows is None and slot.written:
                how = COMBINE[slot.access]
                total, found = record.given[slot.name].stored, arrays[f"p{n}_{i}"]
                if len(found):
                    how(total, how.reduce(found, axis=0), out=total)
        n += 1


def neutral(access: Access, dtype: np.dtype[Any]) -> Any:
    """What a reduction of nothing gives."""
    if access is Access.INC:
        return 0
    if dtype.kind == "f":
        return np.inf if access is Access.MIN else -np.inf
    limits = np.iinfo(dtype)
    return limits.max if access is Access.MIN else limits.min


def executor_of(call: Call) -> Executor:
    """What compiles and runs the loop of a call alone."""
    raw = {n: getattr(v, "stored", v) for n, v in call.given.items()}
    return call.loop.taking(call.given).on_host(raw).executor
