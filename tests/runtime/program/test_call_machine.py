"""Calls, replays and chains in any order, on arrays that change: each as if it were the first.

What a loop that has never been called makes of the same arrays, a moment before, is what must come
out, to the bit; and of whole numbers what ``np.add.at`` adds.
"""

import copy
import pickle
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from python_loops import INC, READ, WRITE

from meshprep_runtime import Access, Arg, Loop, MeshprepError, ParLoop, Program
from meshprep_runtime.program.replay import LOOKS

MAP = "edges->cells"


def add(x, c, a, b):
    a[0] += c[0] * x[0]
    b[0] += c[0] * x[0]


def count(k, m, a, b):
    a[0] += m[0] * k[0]
    b[0] -= m[0] * k[0]


def scale(y, c, z):
    z[0] = c[0] * y[0]


def total(y, t, largest):
    t[0] += y[0]
    largest[0] = max(largest[0], y[0])


KERNELS = {"add": add, "count": count, "scale": scale, "total": total}
LOOPS = [
    Loop(
        "add",
        "edges",
        (
            Arg("x", READ, 1, "f8"),
            Arg("c", READ, 1, "f8", is_global=True),
            Arg("y", INC, 1, "f8", MAP, (0, 1)),
        ),
    ),
    Loop(
        "count",
        "edges",
        (
            Arg("k", READ, 1, "i8"),
            Arg("m", READ, 1, "i8", is_global=True),
            Arg("s", INC, 1, "i8", MAP, (0, 1)),
        ),
    ),
    Loop(
        "scale",
        "cells",
        (
            Arg("y", READ, 1, "f8"),
            Arg("c", READ, 1, "f8", is_global=True),
            Arg("z", WRITE, 1, "f8"),
        ),
    ),
    Loop(
        "total",
        "cells",
        (
            Arg("y", READ, 1, "f8"),
            Arg("t", INC, 1, "f8", is_global=True),
            Arg("largest", Access.MAX, 1, "f8", is_global=True),
        ),
    ),
]
# From which arrays each argument is drawn: by their set and dtype.
POOLS = {
    "x": "edges f8",
    "k": "edges i8",
    "y": "cells f8",
    "z": "cells f8",
    "s": "cells i8",
    "c": "global f8",
    "t": "global f8",
    "largest": "global f8",
    "m": "global i8",
}
COUNTS = {"edges f8": 2, "edges i8": 2, "cells f8": 4, "cells i8": 2}
COUNTS |= {"global f8": 3, "global i8": 2}
# The first ones are drawn as often as all others together.
FLOATS = [0.5, 2.0, 0.1]
INTEGERS = [3, 1, 1000]
NUMBERS = {
    "c": [*FLOATS, -0.0, 3, 1, True, np.float64(2.0), np.float32(0.5), np.int64(2)],
    "m": [*INTEGERS, True, 2.0, np.int64(5), np.int32(3), np.float64(4.0)],
}
USUAL = {"c": FLOATS, "m": INTEGERS}
# How an array is handed over.
VIEWS = {
    "itself": lambda a: a,
    "view": lambda a: a[:],
    "column": lambda a: a.reshape(-1, 1),
}


def move(array):
    n = array.size
    array.resize(64 * n, refcheck=False)
    array.resize(n, refcheck=False)


def one_more(array):
    array.resize(array.size + 1, refcheck=False)


def one_less(array):
    array.resize(array.size - 1, refcheck=False)


def other_dtype(array):
    array.dtype = "f8" if array.dtype == "i8" else "i8"


def column(array):
    array.shape = (array.size, 1) if array.ndim == 1 else (array.size,)


def lock(array):
    array.flags.writeable = not array.flags.writeable


IN_PLACE = [move, move, lock, lock, column, other_dtype, one_more, one_less]


@dataclass(frozen=True)
class Asked:
    """One call: a loop, and what is drawn for each argument."""

    loop: str
    given: dict[str, Any]


@dataclass
class Outcome:
    """What is left in every array, and what was raised."""

    error: str = ""
    left: list[bytes] = field(default_factory=list)
    dats: list[bytes] = field(default_factory=list)


class CallMachine(RuleBasedStateMachine):
    plan: Any = None

    def __init__(self):
        super().__init__()
        self.threads = numba.get_num_threads()
        sizes = {**self.plan.sizes, "global": 1}
        self.pools: dict[str, list[np.ndarray]] = {}
        for pool, n in COUNTS.items():
            name, dtype = pool.split()
            made = [np.arange(sizes[name]).astype(dtype) % 7 + i for i in range(n)]
            self.pools[pool] = made
        self.sizes = {pool: made[0].size for pool, made in self.pools.items()}
        self.strategy = "sequential"
        self.loops = {
            name: [
                ParLoop(kernel, self.plan[name], strategy="sequential") for _ in range(2)
            ]
            for name, kernel in KERNELS.items()
        }
        self.program = Program(self.plan)
        self.in_program = {
            name: self.program.loop(kernel, name, strategy="sequential")
            for name, kernel in KERNELS.items()
        }
        self.dats = {
            pool: [self.program.dat(*self._form(pool), values=a) for a in made[:2]]
            for pool, made in self.pools.items()
            if not pool.startswith("global")
        }
        self.replays: list[tuple[Any, list[Asked]]] = []
        self.earlier: dict[bool, list[Asked]] = {False: [], True: []}
        # tiles give dats other arrays than those that were made for them
        self.known = {id(a): a for made in self.pools.values() for a in made}

    def _form(self, pool):
        name, dtype = pool.split()
        return name, 1, dtype

    def teardown(self):
        numba.set_num_threads(self.threads)

    # --- what is drawn ---

    def draw_call(self, data, *, dats: bool) -> Asked:
        """``dats``: with dats of the program among the arrays."""
        earlier = self.earlier[dats]
        # often an earlier call, with something else in one place
        if earlier and data.draw(st.integers(0, 3), label="as before, 1 to 3"):
            before = data.draw(st.sampled_from(earlier[-4:]), label="before")
            args = self.plan[before.loop].loop.args
            other = data.draw(st.sampled_from(args), label="but")
            changed = {other.name: self._draw_value(data, other, dats)}
            asked = Asked(before.loop, before.given | changed)
        else:
            name = data.draw(st.sampled_from(sorted(KERNELS)), label="loop")
            given = {}
            for arg in self.plan[name].loop.args:
                given[arg.name] = self._draw_value(data, arg, dats)
            asked = Asked(name, given)
        self.earlier[dats].append(asked)
        return asked

    def _draw_value(self, data, arg, dats):
        pool = POOLS[arg.name]
        kind = data.draw(st.integers(0, 3), label="kind of number")
        if arg.name in NUMBERS and kind < 3:
            numbers = USUAL[arg.name] if kind < 2 else NUMBERS[arg.name]
            return data.draw(st.sampled_from(numbers), label=arg.name)
        i = data.draw(st.integers(0, COUNTS[pool] - 1), label=f"{arg.name}: {pool}")
        if pool in self.dats and dats and i < 2:
            return self.dats[pool][i]
        return self.pools[pool][i]

    def in_other_views(self, data, asked: Asked) -> Asked:
        """The same call, with arrays that are made for it."""
        given = dict(asked.given)
        for name, value in given.items():
            how = data.draw(st.sampled_from(sorted(VIEWS)), label=f"{name} as")
            if isinstance(value, np.ndarray):
                given[name] = VIEWS[how](value)
        return Asked(asked.loop, given)

    # --- what must come out ---

    def arrays(self) -> list[np.ndarray]:
        for dats in self.dats.values():
            self.known |= {id(d.stored): d.stored for d in dats}
        return list(self.known.values())

    def left(self) -> list[bytes]:
        return [a.tobytes() for a in self.arrays()]

    def as_if_first(self, asked: Sequence[Asked], strategy: str = "sequential") -> Outcome:
        """What loops that nobody has called make of the arrays, which are put back."""
        before = [(a, a.copy()) for a in self.arrays()]
        found = Outcome()
        for one in asked:
            loop = ParLoop(KERNELS[one.loop], self.plan[one.loop], strategy=strategy)
            given = {n: getattr(v, "stored", v) for n, v in one.given.items()}
            sums = self._added(given) if one.loop == "count" else None
            try:
                loop(**given)
            except MeshprepError as error:
                found.error = str(error)
                break
            if sums is not None:
                np.testing.assert_array_equal(np.ravel(given["s"]), sums)
        found.left = self.left()
        dats = [dat for made in self.dats.values() for dat in made]
        found.dats = [dat.stored.tobytes() for dat in dats]
        for array, values in before:
            if array.flags.writeable:
                array[...] = values
        return found

    def _added(self, given) -> np.ndarray | None:
        """What ``count`` must make of its sums, where its arrays fit."""
        k, s = np.ravel(given["k"]), np.ravel(given["s"])
        fits = k.dtype == s.dtype == np.int64 and k.size == self.sizes["edges i8"]
        m = np.ravel(given["m"])
        if (
            not m.size
            or not fits
            or s.size != self.sizes["cells i8"]
            or m.dtype.kind not in "ibf"
        ):
            return None
        sums, (left, right) = s.copy(), self.plan["count"].maps[MAP].table.T
        with np.errstate(all="ignore"):
            added = k * m.astype(np.int64)[0]
            np.add.at(sums, left, added)
            np.subtract.at(sums, right, added)
        return sums

    def compare(self, expected: Outcome, run, *, same_error: bool = True) -> None:
        error = ""
        try:
            run()
        except MeshprepError as raised:
            error = str(raised)
        # of several that do not fit, a chain finds constants first
        same = (
            error == expected.error if same_error else bool(error) == bool(expected.error)
        )
        self.judge(same, f"raised '{error}', not '{expected.error}'")
        self.judge(self.left() == expected.left, "other values")
        self._keep_small()

    def judge(self, right: bool, what: str) -> None:
        assert right, what

    def _keep_small(self):
        """Sums stay finite, so that all bits are determined."""
        for pool, made in self.pools.items():
            for i, array in enumerate(made):
                large = pool.endswith("f8") and array.dtype.kind == "f"
                if large and not (np.abs(array) < 1e50).all() and array.flags.writeable:
                    array[...] = i

    # --- what happens ---

    @initialize(strategy=st.sampled_from(["sequential", "ordered"]))
    def another_strategy(self, strategy):
        self.strategy = strategy
        for name, kernel in KERNELS.items():
            self.loops[name][1] = ParLoop(kernel, self.plan[name], strategy=strategy)

    @rule(data=st.data(), which=st.integers(0, 1), n=st.integers(1, 12))
    def call(self, data, which, n):
        for _ in range(n):
            asked = self.draw_call(data, dats=False)
            if data.draw(st.integers(0, 7), label="views") == 7:
                asked = self.in_other_views(data, asked)
            times = data.draw(st.sampled_from([1, 1, 1, 1, 10]), label="times")
            strategy = self.strategy if which else "sequential"
            self._call(self.loops[asked.loop][which], asked, times, strategy)

    @rule(data=st.data(), n=st.integers(1, 12))
    def call_in_program(self, data, n):
        for _ in range(n):
            asked = self.draw_call(data, dats=True)
            self._call(self.in_program[asked.loop], asked, 1, "sequential")

    def _call(self, loop, asked, times, strategy):
        def run():
            for _ in range(times):
                loop(**asked.given)

        self.compare(self.as_if_first([asked] * times, strategy), run)

    @precondition(lambda self: len(self.replays) < 3)
    @rule(data=st.data(), n=st.integers(1, 3))
    def note(self, data, n):
        asked = [self.draw_call(data, dats=True) for _ in range(n)]
        again = self.program.replay(lambda: self._call_in_program(asked))
        self.replays.append((again, asked))

    def _call_in_program(self, asked):
        for one in asked:
            self.in_program[one.loop](**one.given)

    @precondition(lambda self: self.replays)
    @rule(data=st.data(), times=st.sampled_from([1, 1, 1, LOOKS[0] + 1]))
    def replay(self, data, times):
        i = data.draw(st.integers(0, len(self.replays) - 1), label="replay")
        again, asked = self.replays[i]

        def run():
            for _ in range(times):
                again()

        self.compare(self.as_if_first(asked * times), run)

    @rule(data=st.data(), n=st.integers(1, 4), change=st.booleans())
    def chain(self, data, n, change):
        """A constant that changes before the loops of a chain run is that of the call."""
        asked = [self.draw_call(data, dats=True) for _ in range(n)]
        constants = self.pools["global f8"]
        before = [c.copy() for c in constants]
        free = all(one.loop != "total" for one in asked)
        change = change and free and all(c.flags.writeable for c in constants)

        def run():
            try:
                with self.program.chain():
                    self._call_in_program(asked)
                    if change:
                        for c in constants:
                            c += 1
            finally:
                if change:
                    for c, values in zip(constants, before, strict=True):
                        c[...] = values

        self.compare(self.as_if_first(asked), run, same_error=False)

    @rule(
        c=st.sampled_from(NUMBERS["c"]),
        other=st.sampled_from(NUMBERS["c"]),
        m=st.sampled_from(NUMBERS["m"]),
    )
    def tiles(self, c, other, m):
        """One sequence of loops, since each is compiled."""
        y, z = self.dats["cells f8"]
        asked = [
            Asked("add", {"x": self.dats["edges f8"][0], "c": c, "y": y}),
            Asked("scale", {"y": y, "c": other, "z": z}),
            Asked(
                "count",
                {"k": self.dats["edges i8"][0], "m": m, "s": self.dats["cells i8"][0]},
            ),
        ]
        dats = [dat for made in self.dats.values() for dat in made]
        memory = [d.stored for d in dats]
        if any(np.may_share_memory(a, b) for a, b in combinations(memory, 2)):
            return
        expected = self.as_if_first(asked)

        def run():
            with self.program.chain(len(asked), tile_size=3):
                self._call_in_program(asked)

        if expected.error:
            with pytest.raises(MeshprepError):
                run()
            return
        run()
        self.judge([d.array.tobytes() for d in dats] == expected.dats, "in tiles")

    @rule(data=st.data(), number=st.sampled_from([0.5, 2.0, 3.0]))
    def threads_with_numbers_of_their_own(self, data, number):
        x = self.pools["edges f8"][data.draw(st.integers(0, 1), label="x")]
        asked = [
            Asked("add", {"x": x, "c": number + i, "y": self.pools["cells f8"][i]})
            for i in range(2)
        ]
        loop = self.loops["add"][0]
        expected = self.as_if_first(asked)
        if expected.error:
            return

        def run():
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda one: loop(**one.given), asked))

        self.compare(expected, run)

    @rule(data=st.data(), change=st.sampled_from(IN_PLACE))
    def change_in_place(self, data, change):
        pool = data.draw(st.sampled_from(sorted(COUNTS)), label="pool")
        array = self.pools[pool][data.draw(st.integers(0, COUNTS[pool] - 1), label="array")]
        if change in (move, one_more, one_less):
            if not array.flags.owndata or not array.flags.writeable:
                return
            # a growing one would grow without end
            if change is one_more and array.size > self.sizes[pool]:
                return
            if change is one_less and array.size < self.sizes[pool]:
                return
        with warnings.catch_warnings():
            # NumPy wants views in place of these
            warnings.simplefilter("ignore", DeprecationWarning)
            change(array)

    @rule()
    def mend(self):
        """All arrays fit again, so that what comes is not only refused."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            for pool, made in self.pools.items():
                for array in made:
                    array.flags.writeable = True
                    array.dtype = pool.split()[1]
                    if array.size != self.sizes[pool]:
                        array.resize(self.sizes[pool], refcheck=False)

    @rule(data=st.data(), value=st.integers(-3, 3))
    def set_values(self, data, value):
        pool = data.draw(st.sampled_from(sorted(COUNTS)), label="pool")
        array = self.pools[pool][data.draw(st.integers(0, COUNTS[pool] - 1), label="array")]
        if array.flags.writeable and array.size:
            array.reshape(-1)[0] = value

    @rule(data=st.data())
    def swap(self, data):
        """Two dats take each other's arrays, as after a time step."""
        one, two = self.dats[data.draw(st.sampled_from(sorted(self.dats)), label="pool")]
        # they may not fit, and one of the two may have been taken
        with suppress(MeshprepError):
            one.array, two.array = two.array, one.array

    @rule(data=st.data(), how=st.sampled_from(["copy", "deepcopy", "pickle"]))
    def take_a_copy(self, data, how):
        name = data.draw(st.sampled_from(sorted(KERNELS)), label="loop")
        which = data.draw(st.integers(0, 1))
        loop = self.loops[name][which]
        if how == "copy":
            self.loops[name][which] = copy.copy(loop)
        elif how == "deepcopy":
            self.loops[name][which] = copy.deepcopy(loop)
        else:
            self.loops[name][which] = pickle.loads(pickle.dumps(loop))

    @rule(threads=st.integers(1, 2))
    def set_threads(self, threads):
        numba.set_num_threads(min(threads, self.threads))


EXAMPLES = pytest.mark.parametrize(
    ("examples", "steps"),
    [
        (8, 20),
        pytest.param(80, 40, marks=pytest.mark.slow),
        pytest.param(400, 40, marks=pytest.mark.long),
    ],
)


@EXAMPLES
def test_calls_in_any_order_are_as_the_first(slow, examples, steps):
    grid = slow.quads(5, 4)
    CallMachine.plan = slow.plan(grid.sizes, grid.tables, LOOPS, (4,))
    run_state_machine_as_test(
        CallMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
