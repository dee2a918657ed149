"""A tiled chain as a CUDA program: arrays of the schedule, shared memory, and what it moves."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cuda.function import DeviceFunction
from ...cuda.parameters import Parameter
from ...cuda.programs import CudaProgram, Launch
from ...cuda.shape import C_TYPES
from ...errors import MeshprepError
from ...loops import Access, Arg, Loop
from ...maps import SetMap, distinct
from ...plan.chains.structure import home_of_dats
from ...plan.chains.tiles import TilePlan
from .execute import schedule_arrays, schedule_table
from .gpu_text import GLOBAL, NAME, SCRATCH, SHARED, GpuChain, GpuDat, check_loops, tiles_text
from .launch import neutral

# Shared memory that a thread block gets without asking for more.
SHARED_BYTES = 48 * 1024
SECTOR = 32


def tiled_program(
    tiles: TilePlan,
    functions: Mapping[str, DeviceFunction],
    maps: Mapping[str, SetMap],
    *,
    threads: int = 256,
    shared_bytes: int = SHARED_BYTES,
) -> CudaProgram:
    """Write the CUDA C of a chain, a tile a thread block.

    Raises MeshprepError for loops without a function, and writes through maps that are not added.

    Parameters
    ----------
    tiles : TilePlan
        With local maps.
    functions : mapping of loop name to DeviceFunction
    maps : mapping of map name to SetMap
    threads : int
        Threads of a block.
    shared_bytes : int
        What a block may take. The dats that are touched most a byte go there first.

    Returns
    -------
    CudaProgram
        One launch with a block a tile. Its parameters beside the schedule: ``dI`` and ``nI`` are
        the old and new values of dat ``I``, row by row; ``wI`` scratch; ``cK_N`` constant ``N`` of
        call ``K``; ``startK_N`` what reducing nothing gives, and ``partialK_N`` a value a tile,
        component and thread.
    """
    check_loops(tiles.loops)
    for loop in tiles.loops:
        if loop.name not in functions:
            raise MeshprepError(f"loop '{loop.name}' of the chain has no function in CUDA C")
    dats, taken = _places(tiles, maps, shared_bytes)
    table, chain = _chain(tiles, functions, dats, threads)
    arrays = {"g": table.reshape(-1), **schedule_arrays(tiles)}
    sizes = {
        f"size{d.number}": d.dim * list(tiles.sets.values())[d.set].largest
        for d in dats.values()
        if d.place == SCRATCH
    }
    parameters = _parameters(chain, arrays, sizes)
    texts = dict.fromkeys(functions[loop.name].text for loop in tiles.loops)
    kernel = tiles_text(chain, [p.text for p in parameters])
    return CudaProgram(
        # what error messages name
        loop=Loop("chain", tiles.loops[-1].over, tiles.loops[-1].args),
        name=NAME,
        text="\n\n".join([*texts, kernel]),
        parameters=parameters,
        arrays=arrays,
        sizes=sizes,
        slots=(),
        threads=threads,
        shared_bytes=taken,
        launches=(Launch(tiles.n_tiles, 0, tiles.n_tiles, 0),),
        reduced=(),
    )


def _chain(
    tiles: TilePlan,
    functions: Mapping[str, DeviceFunction],
    dats: Mapping[str, GpuDat],
    threads: int,
) -> tuple[NDArray[np.int64], GpuChain]:
    """The table of the schedule, and what the text depends on."""
    table, column = schedule_table(tiles)
    return table, GpuChain(
        loops=tiles.loops,
        functions=tuple(functions[loop.name].name for loop in tiles.loops),
        dats=dats,
        sets={s: i for i, s in enumerate(tiles.sets)},
        maps={m: (i, x.table.shape[1]) for i, (m, x) in enumerate(tiles.maps.items())},
        column=column,
        columns=table.shape[1],
        listed=tuple(run.items is not None for run in tiles.runs),
        threads=threads,
    )


def buffers(
    program: CudaProgram, tiles: TilePlan, dats: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Arrays for a call: dats and their second copies, scratch, and what is reduced.

    ``dats`` has globals that are only read, too, by their names in the chain's loops.
    """
    numbers = {name: i for i, name in enumerate(_dat_names(tiles.loops))}
    found: dict[str, NDArray[Any]] = {}
    for name, i in numbers.items():
        flat = dats[name].reshape(-1)
        found |= {f"d{i}": flat, f"n{i}": flat.copy()}
        size = program.sizes.get(f"size{i}", 0) * tiles.n_tiles
        found[f"w{i}"] = np.zeros(size, flat.dtype)
    for k, loop in enumerate(tiles.loops):
        for n, arg in enumerate(loop.args):
            if arg.is_global and arg.access is Access.READ:
                found[f"c{k}_{n}"] = dats[arg.name].reshape(-1)
            elif arg.is_global:
                dtype = np.dtype(arg.dtype)
                found[f"start{k}_{n}"] = np.full(arg.dim, neutral(arg.access, dtype), dtype)
                size = arg.dim * tiles.n_tiles * program.threads
                found[f"partial{k}_{n}"] = np.zeros(size, dtype)
    return found


def sectors(tiles: TilePlan, maps: Mapping[str, SetMap]) -> int:
    """32-byte sectors that thread blocks move: copies, stores and the schedule; all rows staged.

    Each tile moves a sector of a dat once, however many of its values it takes.
    """
    home = home_of_dats(tiles.loops, maps)
    nbytes = {a.name: a.nbytes for loop in tiles.loops for a in loop.args if not a.is_global}
    total = 0
    for t in range(tiles.n_tiles):
        for d, s in home.items():
            of_set = tiles.sets[s]
            held = of_set.elements[of_set.offset[t] : of_set.offset[t + 1]]
            if d in tiles.copies:
                total += _distinct(held[tiles.copies[d].of_tile(t)], nbytes[d])
            if d in tiles.written - tiles.kept.all:
                total += _distinct(held[: of_set.own[t]], nbytes[d])
    tables = sum(m.table.nbytes for m in tiles.maps.values())
    lists = sum(4 * int(s.offset[-1]) for s in tiles.sets.values())
    return total + (tables + lists) // SECTOR


def _distinct(elements: NDArray[np.int32], nbytes: int) -> int:
    first = elements.astype(np.int64) * nbytes
    touched = [(first + k) // SECTOR for k in range(0, nbytes, SECTOR)]
    touched.append((first + nbytes - 1) // SECTOR)
    return distinct(np.concatenate(touched)).size


def _dat_names(loops: Sequence[Loop]) -> list[str]:
    return list(dict.fromkeys(a.name for loop in loops for a in loop.args if not a.is_global))


def _places(
    tiles: TilePlan, maps: Mapping[str, SetMap], most: int
) -> tuple[dict[str, GpuDat], int]:
    """Where the rows of every dat lie, and the shared memory of the largest tile."""
    home, kept = home_of_dats(tiles.loops, maps), tiles.kept
    args: dict[str, list[Arg]] = {d: [] for d in _dat_names(tiles.loops)}
    for loop in tiles.loops:
        for arg in loop.args:
            if not arg.is_global:
                args[arg.name].append(arg)
    sets = list(tiles.sets)
    taken, begins = 0, {}
    # wide types first, so that each begins at a multiple of its size
    for d in sorted(args, key=lambda d: (-np.dtype(args[d][0].dtype).itemsize, -_touches(args[d]))):
        need = args[d][0].nbytes * tiles.sets[home[d]].largest
        if taken + need <= most:
            begins[d], taken = taken, taken + need
    made = {}
    for i, d in enumerate(args):
        written = d in tiles.written
        elsewhere = SCRATCH if written else GLOBAL
        copy = tiles.copies.get(d)
        partial = (Access.INC, Access.WRITE)
        left = any(a.access in partial and not a.full for a in args[d])
        made[d] = GpuDat(
            number=i,
            set=sets.index(home[d]),
            dim=args[d][0].dim,
            dtype=args[d][0].dtype,
            place=SHARED if d in begins else elsewhere,
            begin=begins.get(d, 0),
            cleared=left or d in kept.zero,
            copied=copy is not None,
            listed=copy is not None and copy.items is not None,
            stored=written and d not in kept.all,
        )
    return made, taken


def _touches(args: Sequence[Arg]) -> int:
    return sum(len(a.index or (0,)) for a in args)


def _parameters(
    chain: GpuChain, arrays: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]
) -> tuple[Parameter, ...]:
    found = [Parameter(n, "in", C_TYPES[a.dtype.str[1:]]) for n, a in arrays.items()]
    for d in chain.dats.values():
        if d.copied or d.place == GLOBAL:
            found.append(Parameter(f"d{d.number}", "in", d.c_type))
        if d.stored:
            found.append(Parameter(f"n{d.number}", "out", d.c_type))
        if d.place == SCRATCH:
            found.append(Parameter(f"w{d.number}", "out", d.c_type))
    for k, loop in enumerate(chain.loops):
        for n, arg in enumerate(loop.args):
            c_type = C_TYPES[np.dtype(arg.dtype).str[1:]]
            if arg.is_global and arg.access is Access.READ:
                found.append(Parameter(f"c{k}_{n}", "in", c_type))
            elif arg.is_global:
                found.append(Parameter(f"start{k}_{n}", "in", c_type))
                found.append(Parameter(f"partial{k}_{n}", "out", c_type))
    return (*found, *(Parameter(n, "size") for n in (*sizes, "first")))
