"""Random kernels: every form, strategy and number of threads has the bits of a plain loop.

Kernels stand in a module, since forms are chosen by the source. The plain loop calls a kernel for
one element after the other, on the rows themselves, compiled by numba alone. Some kernels take the
tuple of the rows of each argument.
"""

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numba
import numpy as np
from numpy.typing import NDArray

from meshprep import Mesh, prepare
from meshprep_runtime import Access, Arg, LoopPlan, MeshprepError, ParLoop
from meshprep_runtime.cpu import executor, pool, strategies
from meshprep_runtime.cpu.pool import Team
from meshprep_runtime.cpu.source.forms import forms
from meshprep_runtime.cpu.strategies import Schedule
from meshprep_runtime.kernel.analysis import fresh, takes_single
from meshprep_runtime.kernel.bind import slots
from meshprep_runtime.kernel.parameters import kernel_by_row
from meshprep_runtime.kernel.rows import reaches_apart, rows_of
from meshprep_runtime.plan import ranges

Arrays = dict[str, NDArray[Any]]
Kernel = Callable[..., None]

# What every module of kernels begins with.
HEAD = """\
import math
import numpy as np

FACTOR, COUNT, LOW = 0.3, 2, np.float32(0.7)
AGAIN, OTHERS = (0, 0, 1), (1, 0)


def half(v):
    return 0.5 * v


def either(v):
    if v > 0:
        return v
    return 1


def add(to, k, v):
    to[k] += v


def add_both(to, x):
    to[0] += x[0]
    to[-1] -= 0.3 * x[0]

"""
SETS = {"e": 90, "p": 40, "q": 25}
FLOATS, WHOLE = ("f8", "f8", "f8", "f4", "f4"), ("i4", "i8", "i1", "u4", "u8")
# Strategies that promise the bits of a plain loop in their order: two-step sums at points.
STRATEGIES = [name for name, s in strategies.STRATEGIES.items() if not s.sums_later]


@dataclass(frozen=True)
class RandomKernel:
    """A kernel with its loop, the maps that it takes, and values."""

    seed: int
    # ``def kernel...``, and ``def plain...`` with a parameter for each row, which calls it.
    text: str
    args: tuple[Arg, ...]
    tables: Mapping[str, NDArray[np.int32]]
    # NaN and infinity are among the values
    special: bool

    @property
    def name(self) -> str:
        """Of the function."""
        return f"kernel{self.seed}"

    @property
    def plain_name(self) -> str:
        """Of the function that takes each row by itself."""
        return f"plain{self.seed}"


class _Writer:
    """Writes statements that use some rows."""

    def __init__(
        self, chance: random.Random, args: Sequence[Arg], by_argument: bool
    ) -> None:
        self.chance = chance
        self.read: list[tuple[str, int]] = []
        self.added: list[tuple[str, int]] = []
        self.set: list[tuple[str, int]] = []
        self.limits: list[tuple[str, str]] = []
        self.sums: list[tuple[str, int]] = []
        self.parameters: list[str] = []
        self.locals: list[str] = []
        # The parameters of the function with one for each row, and what it hands on.
        self.plain_parameters: list[str] = []
        self.handed_on: list[str] = []
        for arg in args:
            rows = [f"{arg.name}{c}" if arg.map else arg.name for c in arg.kernel_columns]
            self.plain_parameters += rows
            if by_argument and len(rows) > 1:
                self.parameters.append(arg.name)
                self.handed_on.append(f"({', '.join(rows)})")
                rows = [f"{arg.name}[{place}]" for place in range(len(rows))]
            else:
                self.parameters += rows
                self.handed_on += rows
            for row in rows:
                self._enter(arg, row)

    def _enter(self, arg: Arg, name: str) -> None:
        if arg.access is Access.READ:
            self.read.append((name, arg.dim))
        elif arg.access is Access.INC and arg.is_global:
            self.sums.append((name, arg.dim))
        elif arg.access is Access.INC:
            self.added.append((name, arg.dim))
        elif arg.is_global:
            self.limits.append((name, str(arg.access)))
        else:
            self.set.append((name, arg.dim))
            self.read.append((name, arg.dim))

    def number(self, depth: int = 0) -> str:
        """An expression; short ones, as numba takes its time for each operation."""
        depth = depth or self.chance.choice((1, 1, 2))
        pick = self.chance.random()
        if pick < 0.25:
            return self._leaf()
        one, two = self._leaf(), self._leaf()
        if depth > 1:
            one = self.number(depth - 1)
        if pick < 0.8:
            return f"({one} {self.chance.choice('++--***/')} {two})"
        if pick < 0.87:
            name = self.chance.choice(("abs", "half", "either", "np.abs", "abs"))
            return f"{name}({one})"
        if pick < 0.93:
            return f"math.sqrt(abs({one}))"
        if pick < 0.97:
            return f"{self.chance.choice(('min', 'max'))}({one}, {two})"
        return f"({one} if {self.truth()} else {two})"

    def _leaf(self) -> str:
        pick = self.chance.random()
        if pick < 0.6 or (self.locals and pick < 0.8):
            if self.locals and self.chance.random() < 0.4:
                return self.chance.choice(self.locals)
            name, dim = self.chance.choice(self.read)
            return f"{name}[{self.chance.randrange(-1, dim)}]"
        return self.chance.choice(("0.5", "1.7", "3", "1", "FACTOR", "COUNT", "LOW", "0.1"))

    def truth(self) -> str:
        """A condition."""
        return f"{self.number(1)} {self.chance.choice('<>')} {self.number(1)}"

    def body(self) -> list[str]:
        """The statements of the kernel."""
        lines: list[str] = []
        for i in range(self.chance.randrange(3)):
            lines.append(f"v{i} = {self.number()}")
            self.locals.append(f"v{i}")
        for name, dim in self.set:
            lines += [f"{name}[{k}] = {self.number()}" for k in range(dim)]
        if self.chance.random() < 0.04:
            lines += [f"if {self.truth()}:", "    return"]
        rows = [*self.added, *self.added[: self.chance.choice((0, 0, 0, 2))]]
        if self.chance.random() < 0.3:
            self.chance.shuffle(rows)
        for name, dim in rows:
            lines += self._additions(name, dim)
        for name, dim in self.sums:
            lines += [f"{name}[{k}] += {self.number()}" for k in range(dim)]
            lines += self._repeated(f"{name}[0] += {self.number(1)}")
        for name, access in self.limits:
            lines.append(f"{name}[0] = {access}({name}[0], {self.number()})")
        return lines

    def _additions(self, name: str, dim: int) -> list[str]:
        """Additions to one row, mostly once to each component, as kernels of solvers are."""
        pick, sign = self.chance.random(), self.chance.choice(("+=", "-="))
        each = [f"{name}[{k}] {sign} {self.number()}" for k in range(dim)]
        if pick < 0.35:
            return each
        if pick < 0.6:
            over = self.chance.choice((f"range({dim})", f"range(len({name}))"))
            return [f"for k in {over}:", f"    {name}[k] {sign} {self.number()}"]
        if pick < 0.7:
            other = [f"{name}[0] -= {self.number()}"]
            return [f"if {self.truth()}:", *_indented(each), "else:", *_indented(other)]
        return self._unusual(name, dim, sign, each)

    def _unusual(self, name: str, dim: int, sign: str, each: list[str]) -> list[str]:
        value = self.number()
        again = "k % " + str(dim)
        choices = [
            ["for k in AGAIN:", f"    {name}[{again}] {sign} {value}"],
            ["for k in (0, 1, 0):", f"    {name}[{again}] {sign} {value}"],
            ["for k in OTHERS:", f"    {name}[{again}] {sign} {value}"],
            [*each, f"{name}[-1] {sign} {value}"],
            [f"add({name}, {self.chance.randrange(dim)}, {value})"],
            [f"add_both({name}, {self.chance.choice(self.read)[0]})"],
            [f"{name}[:] {sign} {value}"],
            [f"other = {name}", f"other[0] {sign} {value}"],
            [f"for k in range(-1, {dim}):", f"    {name}[k] {sign} {value}"],
            ["k = 0", "while k < 3:", f"    {name}[0] {sign} {value}", "    k += 1"],
            [
                f"for k in range({dim}):",
                f"    if {self.truth()}:",
                "        break",
                f"    {name}[k] {sign} {value}",
            ],
        ]
        return self.chance.choice(choices)

    def _repeated(self, line: str) -> list[str]:
        if self.chance.random() < 0.6:
            return []
        return ["for k in range(3):", f"    {line}"]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def random_kernel(seed: int) -> RandomKernel:
    """The kernel of this number: the same in every process."""
    chance = random.Random(seed)
    args = [*_read_args(chance), *_changed_args(chance), *_globals(chance)]
    chance.shuffle(args)
    # A number of its own, so that other kernels stay what they were.
    by_argument = random.Random(f"{seed} by argument").random() < 0.25
    writer = _Writer(chance, args, by_argument)
    body = "\n".join(_indented(writer.body()))
    text = (
        f"def kernel{seed}({', '.join(writer.parameters)}):\n{body}\n\n\n"
        f"def plain{seed}({', '.join(writer.plain_parameters)}):\n"
        f"    kernel{seed}({', '.join(writer.handed_on)})\n"
    )
    rng = np.random.default_rng(seed)
    tables = {
        "e->p": _table(rng, SETS["p"], 2, repeats=chance.random() < 0.25),
        "e->q": _table(rng, SETS["q"], 1, repeats=False),
    }
    return RandomKernel(seed, text, tuple(args), tables, chance.random() < 0.15)


def _dtype(chance: random.Random) -> str:
    return chance.choice(FLOATS if chance.random() < 0.8 else WHOLE)


def _map(chance: random.Random) -> tuple[str, tuple[int, ...]]:
    return chance.choice(
        (("e->p", (0, 1)), ("e->p", (1, 0)), ("e->p", (0,)), ("e->q", (0,)))
    )


def _read_args(chance: random.Random) -> Iterator[Arg]:
    # dats of one type make constants of that type
    usual = chance.choice(("", "", "f4", "f8"))
    for name in ("x", "y")[: chance.randrange(1, 3)]:
        dim, dtype = chance.randrange(1, 4), usual or _dtype(chance)
        if chance.random() < 0.4:
            yield Arg(name, Access.READ, dim, dtype)
        else:
            yield Arg(name, Access.READ, dim, dtype, *_map(chance))
    if chance.random() < 0.2:
        yield Arg("c", Access.READ, 2, usual or _dtype(chance), is_global=True)


def _changed_args(chance: random.Random) -> Iterator[Arg]:
    usual = chance.choice(("", "f4", "f8"))
    for name in ("a", "b")[: chance.choice((1, 1, 1, 2))]:
        dtype = usual or _dtype(chance)
        yield Arg(name, Access.INC, chance.randrange(1, 4), dtype, *_map(chance))
    if chance.random() < 0.3:
        access = chance.choice((Access.RW, Access.WRITE))
        yield Arg("w", access, chance.randrange(1, 3), usual or _dtype(chance))


def _globals(chance: random.Random) -> Iterator[Arg]:
    if chance.random() < 0.25:
        yield Arg("s", Access.INC, chance.randrange(1, 3), _dtype(chance), is_global=True)
    if chance.random() < 0.1:
        access = chance.choice((Access.MIN, Access.MAX))
        yield Arg("m", access, 1, chance.choice(FLOATS), is_global=True)


def _table(
    rng: np.random.Generator, points: int, arity: int, repeats: bool
) -> NDArray[np.int32]:
    """Points near each other, in the order of a mesh; some elements reach one twice."""
    n = SETS["e"]
    near = np.arange(n)[:, None] * points // n + rng.integers(-2, 3, (n, arity))
    table = near % points
    if arity > 1:
        same = table[:, 0] == table[:, 1]
        table[:, 1] = np.where(same, table[:, 1] + 1, table[:, 1]) % points
        if repeats:
            table[::7, 1] = table[::7, 0]
    return table.astype(np.int32)


def plan_of(case: RandomKernel) -> LoopPlan:
    """The plan of its loop, in several ranges."""
    loop = {"over": "e", "args": [a.to_dict() for a in case.args]}
    mesh = Mesh(SETS, case.tables)
    with patch.object(ranges, "LEAST", 16):
        return prepare(mesh, {"loop": loop}, block_size=8).plan["loop"]


def values_of(case: RandomKernel, plan: LoopPlan) -> Arrays:
    """Arrays for a call."""
    rng = np.random.default_rng(case.seed)
    made: Arrays = {}
    for slot in slots(plan):
        if slot.dtype.kind == "f":
            value = (rng.normal(size=slot.shape) * 3).astype(slot.dtype)
            value[rng.random(slot.shape) < 0.05] = -0.0
            if case.special:
                value[rng.random(slot.shape) < 0.03] = np.nan
                value[rng.random(slot.shape) < 0.03] = np.inf
        else:
            value = rng.integers(0, 50, slot.shape).astype(slot.dtype)
        made[slot.name] = value
    return made


def plain_loop(
    kernel: Kernel, plan: LoopPlan, schedule: Schedule, values: Arrays
) -> Arrays:
    """What one element after the other leaves, in the order of a schedule.

    What an element adds to a global is summed first; the sums of the elements are one a turn, or
    eight that elements take in turn, of up to three components and where nothing else is added
    through a map. Without turns for threads the one sum goes on from the value that was given.
    """
    loop, arrays = plan.loop, {name: value.copy() for name, value in values.items()}
    single = takes_single(slot.dtype for slot in slots(plan))
    compiled = fresh(
        kernel, lambda function, _: numba.njit(error_model="numpy")(function), single
    )
    lanes = 1 if any(a.conflicts for a in loop.args) else 8
    for start, stop, *_ in schedule.turns:
        parts: Arrays = {}
        for a in loop.args:
            if a.is_global and a.access is not Access.READ:
                count = lanes if a.access is Access.INC and a.dim <= 3 else 1
                first = np.full((count, a.dim), -0.0).astype(a.dtype)
                if count == 1 and not schedule.parallel:
                    first = arrays[a.name][None].copy()
                parts[a.name] = first if a.access is Access.INC else arrays[a.name][None]
        for place in range(start, stop):
            element = place if schedule.order is None else int(schedule.order[place])
            _one_element(compiled, plan, arrays, parts, element, place - start)
        for name, part in parts.items():
            if part.base is None:
                total = np.add.accumulate(part, dtype=part.dtype)[-1]
                if len(part) > 1 or schedule.parallel:
                    total = (arrays[name] + total).astype(part.dtype)
                arrays[name] = total
    return arrays


def _one_element(
    kernel: Kernel, plan: LoopPlan, arrays: Arrays, parts: Arrays, element: int, at: int
) -> None:
    given: list[NDArray[Any]] = []
    sums: list[tuple[NDArray[Any], NDArray[Any]]] = []
    for a in plan.loop.args:
        if a.name in parts and a.access is Access.INC:
            own = np.full(a.dim, -0.0).astype(a.dtype)
            sums.append((parts[a.name][at % len(parts[a.name])], own))
            given.append(own)
        elif a.is_global:
            given.append(arrays[a.name])
        elif a.map is None:
            given.append(arrays[a.name][element])
        else:
            points = plan.maps[a.map].table[element]
            given += [arrays[a.name][points[column]] for column in a.index]
    kernel(*given)
    for total, own in sums:
        total += own


def written(
    seeds: Sequence[int], folder: Path
) -> list[tuple[RandomKernel, Kernel, Kernel]]:
    """Random kernels in one module, each with its function of single rows."""
    cases = [random_kernel(seed) for seed in seeds]
    text = "\n\n".join([HEAD, *(case.text for case in cases)])
    path = folder / f"kernels{seeds[0]}.py"
    path.write_text(text, encoding="utf-8")
    scope: dict[str, Any] = {"__name__": f"kernels{seeds[0]}"}
    exec(compile(text, str(path), "exec"), scope)
    return [(case, scope[case.name], scope[case.plain_name]) for case in cases]


@contextmanager
def threads(count: int) -> Iterator[None]:
    """So many threads for each call, however small it is."""

    def always(team: Team) -> bool:
        team._took[0].append(1.0)
        return count > 1

    with ExitStack() as stack:
        stack.enter_context(patch.object(Team, "_takes_several", always))
        stack.enter_context(patch.object(pool, "thread_count", lambda: count))
        yield


def wrong_ways(
    case: RandomKernel,
    kernel: Kernel,
    plain: Kernel,
    every: bool = False,
    calls: int = 3,
) -> list[str]:
    """The ways to run a kernel whose bits are not those of the plain loop.

    In some strategies, or in ``every`` one; the plain loop calls ``plain``.
    """
    plan = plan_of(case)
    values = values_of(case, plan)
    chance = random.Random(case.seed)
    given = rows_of(plan.loop, slots(plan))
    by_row = kernel_by_row(kernel, plan.loop)
    found = forms(by_row, given, reaches_apart(given, plan.tables))
    wrong: list[str] = []
    with np.errstate(all="ignore"):
        for strategy in STRATEGIES if every else _some_strategies(chance):
            schedule = strategies.STRATEGIES[strategy].schedule(plan, plan.variant())
            expected = plain_loop(plain, plan, schedule, values)
            ways = [(form,) for form in found]
            # each alone, and all of them as calls try them
            ways = [*ways, found] if strategy == "ordered" else ways[:1]
            for way in ways:
                with patch.object(executor, "forms", lambda *_, way=way, **named: way):
                    loop = ParLoop(kernel, plan, strategy=strategy)
                    if _differs(loop, values, expected, calls, chance):
                        wrong.append(f"{strategy}, {' or '.join(way)}")
    return wrong


def _some_strategies(chance: random.Random) -> list[str]:
    """The usual one, and sometimes another: code for each takes a second to compile."""
    return ["ordered", *([chance.choice(STRATEGIES)] if chance.random() < 0.25 else [])]


def _differs(
    loop: ParLoop, values: Arrays, expected: Arrays, calls: int, chance: random.Random
) -> bool:
    """Whether any of some calls, on any number of threads, leaves other bits."""
    for _ in range(calls):
        arrays = {name: value.copy() for name, value in values.items()}
        with threads(chance.randrange(1, 9)):
            loop(**arrays)
        for name, array in arrays.items():
            # which of several NaN comes out, no compiler promises
            same = array.tobytes() == expected[name].tobytes()
            if not same and not _same_but_for_nan(array, expected[name]):
                return True
    return False


def _same_but_for_nan(one: NDArray[Any], other: NDArray[Any]) -> bool:
    nan = np.isnan(one)
    rest = one[~nan].tobytes() == other[~nan].tobytes()
    return bool(np.array_equal(nan, np.isnan(other))) and rest


def outcomes_of_kernels(seeds: Sequence[int], every: bool) -> Iterator[tuple[int, str]]:
    """For each seed ``right``, ``refused``, or what is wrong; in some strategies or ``every``."""
    with tempfile.TemporaryDirectory() as folder:
        for case, kernel, plain in written(seeds, Path(folder)):
            try:
                wrong = wrong_ways(case, kernel, plain, every)
            except MeshprepError:
                yield case.seed, "refused"
                continue
            yield case.seed, f"other bits: {'; '.join(wrong)}" if wrong else "right"
