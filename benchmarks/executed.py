"""Instructions that a program executes for an element, by kind: PTX times the checked run.

The compiler says which line of the text each instruction of PTX comes from, the checked run how
often each part of the text (what stands in one pair of braces) is run. Both are counted, nothing is
simulated. PTX is not yet machine code: it loads parameters, which machine code finds in place.
"""

import ctypes
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_cuda_check.checked import TALLY, library_of, run_checked
from meshprep_runtime.cuda.build import assembly
from meshprep_runtime.cuda.programs import CudaProgram
from meshprep_runtime.cuda.strategies import WARP

KINDS = {
    "global load": r"ld\.global",
    "global store": r"st\.global",
    "global atomic": r"(atom|red)\.global",
    "shared load": r"ld\.shared",
    "shared store": r"st\.shared",
    "shared atomic": r"(atom|red)\.shared",
    "parameter": r"ld\.param|cvta",
    "barrier": r"bar(rier)?\.",
    "branch": r"bra|ret|setp",
    "floating": r"\S*\.f(32|64)",
}
OTHER = "integer"


@dataclass(frozen=True)
class Executed:
    """What a call executes for an element, its mean over all elements."""

    # By kind: instructions of the element's thread; kinds are those of ``KINDS``, and ``"integer"``
    # for the rest, which is addresses above all.
    threads: Mapping[str, float]
    # Instructions that warps issue, times 32: a warp runs what any of its threads runs.
    warps: float

    @property
    def total(self) -> float:
        """All instructions of a thread."""
        return sum(self.threads.values())


@dataclass(frozen=True)
class _Part:
    """What stands in one pair of braces: the part around it, and the loops that it lies in."""

    around: int
    loops: int


def executed(program: CudaProgram, arch: str = "sm_90", /, **arrays: Any) -> Executed:
    """Count what a call on these arrays executes.

    Loops of the text must not be unrolled (``MP_LOOP``), and loops that stay in the user's function
    count once. Statements with a condition on one line count whether it holds or not. Raises
    CheckError and MeshprepError as the checked run and the compilers do.

    Parameters
    ----------
    arch : str
        Whose PTX is counted.
    **arrays
        As in a call of a ParLoop; they are changed.
    """
    steps = (program, *program.then)
    counted = [replace(one, text=_with_tallies(one.text), then=()) for one in steps]
    run_checked(replace(counted[0], then=tuple(counted[1:])), **arrays)
    threads: Counter[str] = Counter()
    warps = 0.0
    for one, tallied in zip(steps, counted, strict=True):
        times = _tallies(tallied)
        for block in _blocks(assembly(one, arch), one):
            for kind, count in block.kinds.items():
                threads[kind] += count * int(times[0, block.part])
                warps += count * float(WARP * times[1, block.part])
    n = max(program.sizes["size"], 1)
    each = {kind: threads[kind] / n for kind in (*KINDS, OTHER) if threads[kind]}
    return Executed(each, warps / n)


def _tallies(program: CudaProgram) -> NDArray[np.int64]:
    """How often each part ran, by threads and by warps."""
    parts = program.text.count(TALLY)
    values = (ctypes.c_longlong * (2 * parts)).in_dll(library_of(program), "mp_tally")
    found = np.array(values, np.int64).reshape(2, parts)
    ctypes.memset(values, 0, ctypes.sizeof(values))
    return found


def _lines_of_kernel(text: str) -> Iterator[tuple[int, str, bool]]:
    """Number, line and whether it opens a part, for all lines of the kernel."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("MP_KERNEL("))
    for i in range(first, len(lines)):
        yield i, lines[i], lines[i].endswith("{")


def _with_tallies(text: str) -> str:
    lines, parts = text.splitlines(), 0
    for i, _, opens in list(_lines_of_kernel(text)):
        if opens:
            lines[i] += f" {TALLY}{parts});"
            parts += 1
    return "\n".join(lines)


def _parts(text: str) -> tuple[list[_Part], dict[int, int]]:
    """The parts of a text in their order, and the part of each line."""
    parts: list[_Part] = []
    within: list[int] = []
    of_line: dict[int, int] = {}
    for i, line, opens in _lines_of_kernel(text):
        if line.lstrip().startswith("}") and within:
            within.pop()
        # A loop's own line runs with the part around it, its test apart.
        of_line[i] = within[-1] if within else 0
        if opens:
            around = within[-1] if within else 0
            loops = parts[around].loops if parts else 0
            parts.append(
                _Part(around, loops + line.lstrip().startswith(("for", "MP_LOOP")))
            )
            within.append(len(parts) - 1)
            if parts[-1].loops > loops:
                of_line[i] = len(parts) - 1
    return parts, of_line


@dataclass(frozen=True)
class _Block:
    """Instructions without a branch between them, by kind, and the part that they are of."""

    kinds: Counter[str]
    part: int


def _blocks(ptx: str, program: CudaProgram) -> Iterator[_Block]:
    parts, of_line = _parts(program.text)
    before = program.cuda[: program.cuda.index(program.text)].count("\n") + 1
    known = {before + line: part for line, part in of_line.items()}
    blocks, loops = _flow(_kernel(ptx, program.name))
    for instructions, depth in zip(blocks, loops, strict=True):
        kinds = Counter(_kind(opcode) for opcode, _ in instructions)
        lines = Counter(known[line] for _, line in instructions if line in known)
        yield _Block(kinds, _part_at(parts, lines, depth))


def _part_at(parts: Sequence[_Part], lines: Counter[int], depth: int) -> int:
    """The part of most lines, among those in as many loops: code may have been moved out of one."""
    fitting = {p: n for p, n in lines.items() if parts[p].loops == depth} or lines or {0: 1}
    found = max(fitting, key=lambda p: fitting[p])
    while parts[found].loops > depth:
        found = parts[found].around
    return found


def _kind(opcode: str) -> str:
    return next((k for k, form in KINDS.items() if re.match(form, opcode)), OTHER)


def _kernel(ptx: str, name: str) -> list[str]:
    """The lines of one kernel's body."""
    body = ptx[re.search(rf"\.entry {name}\(", ptx).end() :]  # type: ignore[union-attr]
    return body[body.index("\n{") + 2 : body.index("\n}")].splitlines()


def _flow(lines: Sequence[str]) -> tuple[list[list[tuple[str, int]]], list[int]]:
    """Blocks of (opcode, line of the text), and in how many loops each lies."""
    blocks: list[list[tuple[str, int]]] = [[]]
    labels: dict[str, int] = {}
    back: list[tuple[int, int]] = []
    at, called = 0, dict[int, int]()
    for line in map(str.strip, lines):
        if found := re.match(r"\.loc\s+\d+ (\d+) \d+(?:.*inlined_at \d+ (\d+) )?", line):
            at = int(found[1])
            if found[2]:
                called[at] = int(found[2])
            while at in called:
                at = called[at]
        elif found := re.match(r"(\$\S+):", line):
            blocks.append([])
            labels[found[1]] = len(blocks) - 1
        elif found := re.match(r"(?:@\S+\s+)?([a-z][a-z0-9_.:]*)\s*(.*);", line):
            blocks[-1].append((found[1], at))
            if found[1].startswith(("bra", "ret")):
                target = labels.get(found[2])
                back += [] if target is None else [(target, len(blocks) - 1)]
                blocks.append([])
    # What lies between a label and the last branch back to it is one loop.
    last = {first: max(b for a, b in back if a == first) for first, _ in back}
    change = np.zeros(len(blocks) + 1, int)
    for first, end in last.items():
        change[first] += 1
        change[end + 1] -= 1
    return blocks, list(accumulate(change[:-1].tolist()))
