"""CUDA C of a chain whose thread blocks are tiles: all loops of a tile in one kernel.

Rows of a tile lie in shared memory, component after component; what does not fit lies in scratch
of the device, or is read where it is. Threads share the elements of a loop, add atomically, and
wait for each other between loops.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...cuda.rows import Lines, indent
from ...cuda.shape import C_TYPES
from ...errors import MeshprepError
from ...loops import Access, Arg, Loop

SHARED, SCRATCH, GLOBAL = "shared", "scratch", "global"
NAME = "meshprep_tiles"


@dataclass(frozen=True)
class GpuDat:
    """A dat in the text: ``d0`` holds its old values, ``n0`` its new ones, ``w0`` a tile's rows."""

    number: int
    set: int  # number of its set
    dim: int
    dtype: str
    place: str  # where a tile's rows lie
    begin: int  # bytes of shared memory before its rows, for the largest tile
    # Rows start from zero: loops add to them or leave some as they were, or the dat is zero.
    cleared: bool
    # Old values are read, of a list of elements; new ones are stored.
    copied: bool
    listed: bool
    stored: bool

    @property
    def c_type(self) -> str:
        """Its type in C."""
        return C_TYPES[np.dtype(self.dtype).str[1:]]

    def row(self, k: int, local: str) -> str:
        """Component ``k`` of a local element."""
        if self.place == GLOBAL:
            return f"d{self.number}[(Index)e[e{self.set} + {local}] * {self.dim} + {k}]"
        base = f"base{self.number} + " if self.place == SCRATCH else ""
        return f"w{self.number}[{base}{k} * many{self.set} + {local}]"


@dataclass(frozen=True)
class GpuChain:
    """What the text depends on: ``column`` says where things stand in a row of the table ``g``."""

    loops: tuple[Loop, ...]
    functions: tuple[str, ...]
    dats: Mapping[str, GpuDat]
    sets: Mapping[str, int]
    maps: Mapping[str, tuple[int, int]]
    column: Mapping[str, int]
    columns: int
    listed: tuple[bool, ...]
    threads: int


def tiles_text(chain: GpuChain, parameters: Sequence[str]) -> str:
    """The kernel; ``parameters`` are written as they stand in the text."""
    calls = [line for k in range(len(chain.loops)) for line in _call(chain, k)]
    body = [*_open(chain), *_clear(chain), *_copy(chain), *calls, *_store(chain), "MP_RETURN;"]
    listed = ",\n    ".join(parameters)
    return "\n".join(
        [f"MP_KERNEL({chain.threads}) {NAME}(\n    {listed}) {{", *indent(body), "}", ""]
    )


def _open(chain: GpuChain) -> Lines:
    lines = [
        "const int tile = (int)first + MP_BLOCK;",
        f"const Index row = (Index)tile * {chain.columns};",
    ]
    for name, s in chain.sets.items():
        c = chain.column[f"set {name}"]
        lines += [
            f"const Index e{s} = g[row + {c}];",
            f"const int many{s} = (int)(g[row + {c + 1}] - e{s});",
            f"const int own{s} = (int)g[row + {chain.column[f'own {name}']}];",
        ]
    for name, (m, _) in chain.maps.items():
        lines.append(f"const Index m{m} = g[row + {chain.column[f'map {name}']}];")
    for dat in chain.dats.values():
        if dat.place == SHARED:
            size = f"{dat.dim} * many{dat.set}"
            lines.append(f"MP_SHARED({dat.c_type}, w{dat.number}, {dat.begin}, {size});")
        elif dat.place == SCRATCH:
            lines.append(f"const Index base{dat.number} = tile * size{dat.number};")
    return lines


def _clear(chain: GpuChain) -> Lines:
    lines: Lines = []
    for dat in chain.dats.values():
        if dat.cleared:
            base = f"base{dat.number} + " if dat.place == SCRATCH else ""
            lines += [
                f"for (int i = MP_THREAD; i < {dat.dim} * many{dat.set}; i += MP_THREADS)",
                f"  w{dat.number}[{base}i] = 0;",
            ]
    return [*lines, "MP_BARRIER();"] if lines else []


def _copy(chain: GpuChain) -> Lines:
    lines: Lines = []
    for name, dat in chain.dats.items():
        if dat.copied and dat.place != GLOBAL:
            inside = [
                f"const Index p = (Index)e[e{dat.set} + i] * {dat.dim};",
                *(f"{dat.row(k, 'i')} = d{dat.number}[p + {k}];" for k in range(dat.dim)),
            ]
            lines += _each(chain, f"copy {name}", dat.listed, inside)
    return [*lines, "MP_BARRIER();"] if lines else []


def _each(chain: GpuChain, what: str, listed: bool, inside: Lines) -> Lines:
    """Threads share the elements of a selection; ``i`` is the local number of one."""
    item = f"l[g[row + {chain.column[f'list {what}']}] + j]" if listed else "j"
    return [
        f"for (int j = MP_THREAD; j < (int)g[row + {chain.column[what]}]; j += MP_THREADS) {{",
        f"  const int i = {item};",
        *indent(inside),
        "}",
    ]


def _call(chain: GpuChain, k: int) -> Lines:
    """A loop on the elements that a tile runs, and what it reduces, a value a thread."""
    loop = chain.loops[k]
    reduced = [(n, a) for n, a in enumerate(loop.args) if a.is_global and _writes(a)]
    before = [
        line for n, arg in reduced for line in _filled(arg, f"sum{n}", f"start{k}_{n}[{{c}}]")
    ]
    after = [
        f"partial{k}_{n}[((Index)tile * {a.dim} + {c}) * MP_THREADS + MP_THREAD] = sum{n}[{c}];"
        for n, a in reduced
        for c in range(a.dim)
    ]
    each = _each(chain, f"run {k}", chain.listed[k], _element(chain, k))
    return ["{", *indent([f"// {k}: {loop.name}", *before, *each, *after]), "}", "MP_BARRIER();"]


def _element(chain: GpuChain, k: int) -> Lines:
    """Load, call, store."""
    loop, lines, given, stores = chain.loops[k], [], [], []
    places = {(a.map, c) for a in loop.args if a.map is not None for c in a.index}
    for name, c in sorted(places):
        m, arity = chain.maps[str(name)]
        lines.append(f"const int p{m}_{c} = m[m{m} + (Index)i * {arity} + {c}];")
    own = f"own{chain.sets[loop.over]}"
    for n, arg in enumerate(loop.args):
        for c in arg.index or (0,):
            row = f"r{n}_{c}"
            given.append(row)
            if arg.is_global:
                source = f"sum{n}" if _writes(arg) else f"c{k}_{n}"
                lines += _filled(arg, row, f"{source}[{{c}}]")
                if _writes(arg):
                    stores.append(f"if (i < {own}) {{")
                    stores += [f"  sum{n}[{x}] = {row}[{x}];" for x in range(arg.dim)]
                    stores.append("}")
                continue
            local = "i" if arg.map is None else f"p{chain.maps[arg.map][0]}_{c}"
            loaded, stored = _moved(chain.dats[arg.name], arg, row, local)
            lines += loaded
            stores += stored
    return [*lines, f"::{chain.functions[k]}({', '.join(given)});", *stores]


def _moved(dat: GpuDat, arg: Arg, row: str, local: str) -> tuple[Lines, Lines]:
    """A row of an element before and after the call; what is added through maps starts from 0."""
    adds = arg.access is Access.INC and arg.map is not None
    if adds:
        loaded = [f"{dat.c_type} {row}[{arg.dim}] = {{}};"]
        ats = [dat.row(x, local) for x in range(arg.dim)]
        places = [(at[: at.index("[")], at[at.index("[") + 1 : -1]) for at in ats]
        return loaded, [f"MP_ADD({w}, {at}, {row}[{x}]);" for x, (w, at) in enumerate(places)]
    loaded = [f"{dat.c_type} {row}[{arg.dim}];"]
    # values that a kernel sets fully are not there before
    if not arg.full:
        loaded += [f"{row}[{x}] = {dat.row(x, local)};" for x in range(arg.dim)]
    if not _writes(arg):
        return loaded, []
    return loaded, [f"{dat.row(x, local)} = {row}[{x}];" for x in range(arg.dim)]


def _filled(arg: Arg, name: str, value: str) -> Lines:
    c_type = C_TYPES[np.dtype(arg.dtype).str[1:]]
    return [
        f"{c_type} {name}[{arg.dim}];",
        *(f"{name}[{c}] = {value.format(c=c)};" for c in range(arg.dim)),
    ]


def _store(chain: GpuChain) -> Lines:
    lines: Lines = []
    for dat in chain.dats.values():
        if dat.stored:
            lines += [
                f"for (int i = MP_THREAD; i < own{dat.set}; i += MP_THREADS) {{",
                f"  const Index p = (Index)e[e{dat.set} + i] * {dat.dim};",
                *(f"  n{dat.number}[p + {k}] = {dat.row(k, 'i')};" for k in range(dat.dim)),
                "}",
            ]
    return lines


def check_loops(loops: Sequence[Loop]) -> None:
    """Raise MeshprepError for loops that threads of a tile cannot share."""
    for loop in loops:
        for arg in loop.args:
            if arg.conflicts and arg.access is not Access.INC:
                raise MeshprepError(
                    f"loop '{loop.name}': argument '{arg.name}' is written through a map without "
                    "being added to, so that threads of a tile would race: run it by itself"
                )


def _writes(arg: Arg) -> bool:
    return arg.access is not Access.READ
