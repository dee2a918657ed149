"""ParLoop: runs a kernel for the elements of a plan on arrays [G12 section 2]."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import MeshprepError, check_choice, check_integer
from .kernel.analysis import (
    DeviceFunction,
    check_compiled_whole,
    check_parameters,
    name_of,
)
from .kernel.bind import AOS, AUTO, NUMBERS, Layout, Slot, bind, bound, rows_by_name, slots
from .kernel.misuse import check_rows
from .plan import LoopPlan
from .plan.checks.structure import check_loop
from .types.maps import on_device

if TYPE_CHECKING:
    from .cpu.executor import Executor, HostCall, StrategyAndVariant
    from .cpu.pool import BoundCode
    from .cuda.executor import DeviceExecutor
    from .plan.tuned import Tuned
    from .tuning.calls import CallTrials
    from .tuning.choose_gpu import Choice


class CodeArguments(TypedDict, total=False):
    """The :class:`CodeOptions` that a ParLoop takes by name."""

    fastmath: bool
    boundscheck: bool
    cuda: DeviceFunction | None
    commit: str
    threads: int | None
    graph: bool
    tune: bool


@dataclass(frozen=True)
class CodeOptions:
    """How a loop is compiled and launched; :class:`ParLoop` says what each means."""

    fastmath: bool = False
    boundscheck: bool = False
    cuda: DeviceFunction | None = None
    commit: str = "colours"
    threads: int | None = None
    graph: bool = False
    tune: bool = False


# Types of arguments of calls that are kept. Arrays of other libraries may be given other
# memory without notice, as by torch's `x.data = y`.
_KEPT = frozenset({np.ndarray, float, int})


def _can_keep(given: Mapping[str, Any]) -> bool:
    """True for a call whose arguments are all arrays of NumPy or numbers."""
    return all(type(v) in _KEPT or isinstance(v, np.generic) for v in given.values())


class _BoundCall:
    """The arguments of a call, checked and bound.

    A call fits that has the same arrays; numbers for constants of doubles may be others.
    ``numbers`` has the memory, by name, where compiled code that was bound to ``views``
    reads them; no other call shares it.
    """

    __slots__ = ("_arrays", "_kept", "_others", "_size", "numbers", "views")

    def __init__(
        self, given: Mapping[str, Any], slots: Sequence[Slot], views: Sequence[NDArray[Any]]
    ) -> None:
        from .cpu.kept import KeptArrays

        self.views = views
        self.numbers: dict[str, NDArray[Any]] = {}
        self._size = len(slots)
        self._arrays: list[tuple[str, NDArray[Any]]] = []
        self._others: list[tuple[str, Any]] = []
        for slot, view in zip(slots, views, strict=True):
            value = given[slot.name]
            if type(value) is np.ndarray:
                self._arrays.append((slot.name, value))
            elif type(value) in NUMBERS and slot.dtype == np.float64:
                # The array that binding made of the number; the view itself is read-only.
                self.numbers[slot.name] = cast(NDArray[Any], view.base)
            else:
                self._others.append((slot.name, value))
        self._kept = KeptArrays([value for _, value in self._arrays])

    def fits(self, given: Mapping[str, Any]) -> bool:
        """True for arrays in the same memory and form, under the same names."""
        if len(given) != self._size:
            return False
        # Numbers may differ from call to call; arrays must be the same, or like the same.
        same = True
        for name, value in self._arrays:
            now = given.get(name)
            if now is not value:
                if type(now) is not np.ndarray:
                    return False
                same = False
        for name, value in self._others:
            if given.get(name) is not value:
                return False
        for name in self.numbers:
            if type(given.get(name)) not in NUMBERS:
                return False
        if same:
            return self._kept.are_as_before()
        # Other objects may be views of the same memory, made for each call.
        return self._kept.are_in_the_place_of([given[name] for name, _ in self._arrays])


class _LastCall(NamedTuple):
    """A call that can be run again, in a tenth of the time of checking and binding it."""

    bound: _BoundCall
    way: StrategyAndVariant
    run: Callable[..., None]


class ParLoop:
    """A loop that can be called with arrays.

    Parameters
    ----------
    kernel : function or DeviceFunction
        A Python function works on one element: one parameter for each argument and index in
        the order of the loop, each a row of ``dim`` values (a global: its ``dim`` values);
        or one for each argument, which is the tuple of its rows where it has several.
        It reads ``read`` rows, sets ``write`` rows, adds to ``inc`` rows (``row[0] += f``),
        and lowers or raises ``min`` and ``max`` globals. It is compiled by numba, with the
        plain functions it calls; for a GPU by numba-cuda. A DeviceFunction (CUDA C) runs on
        arrays of a GPU only.
    plan : LoopPlan
        ``plan["res_calc"]`` of a loaded plan, or one made in memory.
    strategy : str
        ``"auto"``: what ``meshprep tune`` found for this machine and these layouts, else
        ``"ordered"``: ranges of blocks in the order of the set, each of which waits for
        those before it that write its points. The first calls find out which form of the
        code is the fastest, and on how many threads; the bits of the results do not depend
        on it. For comparison: ``"sequential"``: the set in its order, on one thread;
        ``"hierarchical"``: block colours one after the other, blocks of one colour in
        parallel [S19]; ``"block-permute"``: the same, with the elements of a block by
        thread colour; ``"global-colouring"`` and ``"full-permute"``: colours of the whole
        set, with maps in the set's order or in that of the colours [R14]; ``"two-step"``:
        all elements at once into a temporary array, which a second step sums, but not in
        whole numbers. On a GPU: those of ``cuda.program``; ``"auto"`` goes by
        ``cuda.choose``. A name that only one of the two has is refused on arrays of the
        other.
    layout : str or mapping of dat name to str
        ``"aos"``: arrays of shape ``(n, dim)``; ``"soa"``: ``(dim, n)``. A mapping names
        the dats that are not ``"aos"``. One component may also be ``(n,)``.
    variant : str or None
        Which blocks; None takes those that were tuned, those made for a CPU where the plan
        has them, or the default; on a GPU those made for one, of at most 1024 elements.
    maps : mapping of map name to (n, arity) integers, optional
        The solver's own maps, to be sure that the plan drives the same mesh.

    Other Parameters
    ----------------
    fastmath : bool
        Let the compiler reorder sums and assume that no value is inf or nan; on a GPU also
        approximate quotients, roots and functions of ``f4``.
    boundscheck : bool
        Check every index inside the kernel, for finding mistakes in it; slow, one thread,
        CPU.
    cuda : DeviceFunction or None
        The kernel in CUDA C, for arrays of a GPU, beside one in Python.
    commit : str
        On a GPU, how blocks add to points that others share: ``"colours"``, a launch a
        block colour, the same bits in every run; or ``"atomics"``, one launch.
    threads : int or None
        Threads of a thread block on a GPU; None takes what was tuned, else as many as the
        plan's blocks have elements, and 256 without blocks. With fewer a thread runs
        several elements.
    graph : bool
        On a GPU, record the launches of a set of arrays as one CUDA graph, and replay it.
    tune : bool
        Calls run every way to run the loop in turn, with the same results but for rounding,
        until the fastest is known; it stays, and ``tuned`` says what came out. While that
        lasts, calls wait for the GPU. Nothing is tried where the plan has an entry for this
        machine, kernel and layout.

    Raises
    ------
    MeshprepError
        For an unknown strategy, layout or variant, a kernel with another number of
        parameters, or whose source shows that it reaches past a row or sets it against its
        access, a dat with accesses that conflict, maps that are not the plan's.

    Notes
    -----
    ``loop(x=x, q=q, res=res)`` runs over the whole set and changes the arrays in place.
    They are NumPy arrays in the plan's numbering, or arrays that NumPy can see through
    DLPack, C-contiguous, of exactly the declared dtype, of shape ``(n, dim)``, or ``(n,)``
    where dim is 1. Constants may be given as numbers. Arrays are checked when their memory
    is new; that of the last two calls is kept.

    With CuPy arrays, or others that have ``__cuda_array_interface__`` or DLPack on a GPU,
    the loop is queued on CuPy's current stream, and the call returns at once; arrays of
    other libraries must be ready there. Dats lie all on the host or all on one GPU. Globals
    may be NumPy arrays beside them; the call waits for those that the loop changes.

    The result does not depend on the number of threads; sums are taken in another order
    than in a plain loop, so it equals that of one to rounding. numba is imported, and the
    kernel compiled, on the first call, before which some 50 elements run in Python, on
    copies: an index past a row is refused, and what contradicts an access. Compiled code is
    kept on disk. Globals and closure values that the kernel uses are those of the first
    call.

    The first call takes seconds where its code is not on disk, and O(map entries) for the
    schedule. A call with the arrays of one of the two before it takes microseconds beside
    the loop itself; other arrays are checked first, which takes longer.
    """

    def __init__(
        self,
        kernel: Callable[..., None] | DeviceFunction,
        plan: LoopPlan,
        *,
        strategy: str = AUTO,
        layout: Layout = AOS,
        variant: str | None = None,
        maps: Mapping[str, ArrayLike] | None = None,
        **code: Unpack[CodeArguments],
    ) -> None:
        """Check the plan, the options and the kernel; nothing is compiled yet.

        Parameters, and the errors for what does not fit, are those of the class.

        Raises
        ------
        PlanError
            For a plan made in memory whose maps or blocks do not fit: compiled code checks
            no index.

        Notes
        -----
        O(map entries): every index is looked at once. Reading the kernel's source takes
        milliseconds. The schedule is made, and the kernel compiled, in the first call.
        """
        if not isinstance(plan, LoopPlan):
            raise MeshprepError(
                f"a ParLoop needs the plan of one loop, not a {type(plan).__name__}: "
                "pass plan['NAME']"
            )
        self.loop = plan.loop
        _check_names(code)
        options = CodeOptions(**code)
        # Compiled code makes no bounds checks of its own.
        check_loop(plan)
        _check_maps(plan, maps or {})
        _check_options(plan, options, strategy)
        self._wanted = strategy
        self._slots = slots(plan, layout)
        self._executor: Executor | None = None
        # The last two calls: solvers swap arrays from step to step.
        self._last: tuple[_LastCall, ...] = ()
        # The last call that ran in parts, or was a trial.
        self._last_checked: _BoundCall | None = None
        # The code for a CPU is loaded by the first loop that may run on one.
        if isinstance(kernel, DeviceFunction):
            from .cuda.strategies import check_strategy

            check_strategy(plan, strategy, options.commit)
        else:
            from .cpu.executor import CpuOptions, Executor
            from .tuning.lookup import chooser

            check_parameters(kernel, plan)
            check_compiled_whole(kernel)
            check_rows(kernel, plan)
            soa = tuple(s.name for s in self._slots if s.soa)
            self._way = chooser(
                plan, strategy, variant, soa, kernel.__name__, options.commit
            )
            compiled_by = CpuOptions(options.boundscheck, options.fastmath)
            self._executor = Executor(kernel, plan, self._slots, compiled_by)
        self._plan = plan
        self._tunes = options.tune
        self._trials: CallTrials | None = None
        self._given: dict[str, Any] = {"layout": layout, **code}
        self.kernel = kernel
        if options.cuda is None:
            self._device_kernel = kernel
        else:
            self._device_kernel = options.cuda
        # The options of a GPU: all but the kernel for it, and tuning.
        self._device_options: dict[str, Any] = asdict(options)
        del self._device_options["cuda"]
        del self._device_options["tune"]
        self._device_options["strategy"] = strategy
        self._device_options["layout"] = layout
        self._device_options["variant"] = variant

    @cached_property
    def _gpu(self) -> DeviceExecutor:
        # The code for GPUs is loaded when the first array of one is met.
        from .cuda.executor import DeviceExecutor, DeviceOptions

        options = DeviceOptions(**self._device_options)
        return DeviceExecutor(self._device_kernel, self._plan, self._slots, options)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The forms that its arrays must have."""
        return self._slots

    @property
    def strategy(self) -> str:
        """The strategy that a call runs.

        On a GPU ``"auto"`` is what ``on_gpu`` says.
        """
        if self._executor is None:
            return self._wanted
        return self._way()[0]

    @property
    def form(self) -> str:
        """The form of the code of a call on a CPU, ``"rows"``, ``"local"`` or ``"chunk"``.

        Empty while it is being found out, in the first calls.
        """
        if self._executor is None:
            return ""
        return self._executor.form(self._way())

    @property
    def on_gpu(self) -> Choice:
        """The strategy, variant, commit and threads of a call on the current GPU."""
        return self._gpu.choice()

    @property
    def tuned(self) -> Tuned | None:
        """The result of the trials of ``tune=True``; None before they are settled."""
        if self._trials is None:
            return None
        return self._trials.tuned

    def _checked(self, arrays: Mapping[str, Any]) -> Sequence[NDArray[Any]]:
        """The arrays of a call, checked, as flat views; a number gets memory of its own."""
        last = self._last_checked
        if last is None or not last.fits(arrays):
            views = bind(self.loop, self._slots, arrays)
            if _can_keep(arrays):
                self._last_checked = _BoundCall(arrays, self._slots, views)
            return views
        # The same arrays again: only numbers have to be looked at.
        if not last.numbers:
            return last.views
        return [
            bound(self.loop, slot, arrays[slot.name]) if slot.name in last.numbers else view
            for slot, view in zip(self._slots, last.views, strict=True)
        ]

    def _try(self, arrays: Mapping[str, Any]) -> None:
        """Run a call as a trial of tuning."""
        # Refuse arrays that do not fit here: otherwise the candidate would be dropped.
        if any(type(v) is not np.ndarray and on_device(v) for v in arrays.values()):
            self._gpu.bind(arrays)
        else:
            self._checked(arrays)
        if self._trials is None:
            # The code for tuning is loaded when it is first used.
            from .tuning.calls import begin_trials

            self._trials = begin_trials(
                kernel=self.kernel,
                slots=self.slots,
                plan=self._plan,
                arrays=arrays,
                again=self._again,
            )
        self._trials(arrays)

    def _again(self, **changed: Any) -> ParLoop:
        """The same loop, with some arguments changed."""
        return ParLoop(self.kernel, self._plan, **{**self._given, "tune": False, **changed})

    def __call__(self, /, **arrays: Any) -> None:
        """Run the loop on these arrays, by the names of its arguments.

        Parameters
        ----------
        **arrays : NumPy or CuPy arrays
            An array for each dat and global of the loop, see the notes of the class.

        Raises
        ------
        MeshprepError
            When an array does not fit; the message names the argument. Nothing has run
            then.
        """
        # Repeat one of the last two calls where the arrays are still the same: nothing is
        # checked then.
        for bound_call, way, run in self._last:
            if bound_call.fits(arrays) and (self._way.always or self._way()) is way:
                numbers = bound_call.numbers
                if numbers:
                    run([(place, arrays[name]) for name, place in numbers.items()])
                else:
                    run()
                return
        if self._tunes:
            self._try(arrays)
            return
        # One array on a GPU makes it a run on the GPU.
        for value in arrays.values():
            if type(value) is not np.ndarray and on_device(value):
                self._gpu(arrays)
                return
        arguments = bind(self.loop, self._slots, arrays)
        executor = self._on_cpu()
        way = self._way()
        code = executor.compiled(way, arguments, self._way.form)
        # Look at the form before the call is bound: another thread may settle it meanwhile.
        can_keep = code.form and _can_keep(arrays)
        run = code.bound(arguments)
        if executor.options.boundscheck:
            run = self._naming_what_left_a_row(run)
        if can_keep:
            call = _LastCall(_BoundCall(arrays, self._slots, arguments), way, run)
            self._last = (call, *self._last[:1])
        run()

    def _naming_what_left_a_row(self, run: Callable[..., None]) -> Callable[..., None]:
        """A call whose IndexError, of numba, says which loop and kernel it came from."""

        def named(*numbers: Any) -> None:
            try:
                run(*numbers)
            except IndexError as error:
                raise IndexError(
                    f"loop '{self.loop.name}': the kernel {name_of(self.kernel)} leaves "
                    f"a row or an array ({error}): check_access says which argument"
                ) from error

        return named

    def alone(self, arrays: Mapping[str, Any]) -> list[BoundCode]:
        """The steps of a call, where it always runs on one thread.

        Parameters
        ----------
        arrays : mapping of name to NumPy array
            As of a call.

        Returns
        -------
        list of BoundCode
            Empty where that is not known, and for arrays that may be given other memory.
        """
        # None on a GPU, nor while calls are trials.
        if not _can_keep(arrays) or self._tunes or self._way.always is None:
            return []
        way = self._way.always
        given = bind(self.loop, self._slots, arrays)
        return self._on_cpu().compiled(way, given, self._way.form).alone(given)

    def __getstate__(self) -> dict[str, Any]:
        """The state without calls and trials, for copies and for other processes."""
        state = {**self.__dict__, "_last": (), "_last_checked": None, "_trials": None}
        # A copy makes its own at the first call with arrays of a GPU.
        state.pop("_gpu", None)
        return state

    def check_access(self, most: int = 1000, /, **arrays: Any) -> None:
        """Check that the kernel does with its arguments what their accesses say.

        Parameters
        ----------
        most : int
            Elements to check, spread evenly over the set; all of them where it has fewer.
        **arrays : NumPy arrays
            As of a call; they are not changed.

        Raises
        ------
        MeshprepError
            Naming the first element, argument and component that is wrong: ``read`` is set,
            ``write`` is not set, or to something that depends on what it was, ``inc`` is
            not only added to, ``min`` and ``max`` do not only lower or raise, a component
            is not there.

        Notes
        -----
        Runs the kernel in Python three times on each element, with other old values in the
        rows whose old values must not matter: some 100 microseconds an element. Before that
        its source is followed through all branches, which finds rows that are set or read
        against their access where none of these values leads; ``meshprep lint`` does that
        without arrays.
        """
        from .kernel.access import check_access

        check_integer("the number of elements to look at", most, 0)
        if isinstance(self.kernel, DeviceFunction):
            raise self._not_on_cpu()
        views = bind(self.loop, self._slots, arrays)
        rows = rows_by_name(self._slots, views)
        check_access(self.kernel, self._plan, rows, most)

    def on_host(self, arrays: Mapping[str, Any]) -> HostCall:
        """The loop with arrays of the host, checked, to be run in parts.

        Parameters
        ----------
        arrays : mapping of name to NumPy array
            As of a call.

        Returns
        -------
        HostCall
        """
        return self._on_cpu().host_call(self._way(), self._checked(arrays))

    def _on_cpu(self) -> Executor:
        if self._executor is None or self._way.for_gpu:
            raise self._not_on_cpu()
        return self._executor

    def _not_on_cpu(self) -> MeshprepError:
        reason = f"strategy '{self._wanted}' is for a GPU"
        if self._executor is None:
            reason = "its kernel is in CUDA C, for a GPU"
        return MeshprepError(
            f"loop '{self.loop.name}': {reason}, but no argument lies on one: pass CuPy "
            "arrays, or make a ParLoop for the CPU"
        )

    def __repr__(self) -> str:
        names = ", ".join(s.name for s in self._slots)
        return f"ParLoop({self.loop.name}({names}) over {self.loop.over}, {self._wanted})"


def show_options(function: Callable[..., Any], options: Any) -> None:
    """Show each option with its default in the signature of a function of ``**options``."""
    # Editors and help then name each option as a keyword of its own.
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    for option in fields(options):
        if option.default_factory is MISSING:
            default = option.default
        else:
            default = option.default_factory()
        parameter = inspect.Parameter(
            name=option.name,
            kind=inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=option.type,
        )
        parameters.append(parameter)
    signature = signature.replace(parameters=parameters)
    function.__signature__ = signature  # type: ignore[attr-defined]


show_options(ParLoop.__init__, CodeOptions)


def _check_names(code: Mapping[str, Any]) -> None:
    """Raise TypeError for an option that a ParLoop does not have, with those alike."""
    known = [f.name for f in fields(CodeOptions)]
    known += ["strategy", "layout", "variant", "maps"]
    for name in code:
        if name not in known:
            near = get_close_matches(name, known, n=1) or sorted(known)
            raise TypeError(f"ParLoop has no option {name!r}: choose {', '.join(near)}")


def _check_options(plan: LoopPlan, options: CodeOptions, strategy: str) -> None:
    """Raise MeshprepError for options that contradict each other or are unknown."""
    where = f"loop '{plan.loop.name}'"
    cuda = options.cuda
    if options.tune and strategy != AUTO:
        raise MeshprepError(
            f"{where}: tune chooses among strategies, but '{strategy}' is asked for: leave "
            "strategy='auto'"
        )
    if cuda is not None and not isinstance(cuda, DeviceFunction):
        raise MeshprepError(
            f"{where}: cuda is a {type(cuda).__name__}, must be a DeviceFunction with CUDA "
            "C"
        )
    if options.commit != CodeOptions.commit:
        from .cuda.strategies import COMMITS

        check_choice(f"{where}: commit", options.commit, COMMITS)


def _check_maps(plan: LoopPlan, maps: Mapping[str, ArrayLike]) -> None:
    """Raise MeshprepError for a map of the solver that is not the plan's."""
    where = f"loop '{plan.loop.name}'"
    for name, solver_map in maps.items():
        if name not in plan.maps:
            raise MeshprepError(
                f"{where} has no map '{name}': it has {', '.join(plan.maps)}"
            )
        # Compare each table with the plan's, and name the first element that differs.
        plan_table = plan.maps[name].table
        table = np.asarray(solver_map)
        if table.shape != plan_table.shape:
            raise MeshprepError(
                f"{where}: map '{name}' has shape {table.shape}, but the plan's has "
                f"{plan_table.shape}: the plan was made for another mesh"
            )
        rows = np.flatnonzero((table != plan_table).any(axis=1))
        if rows.size:
            e = int(rows[0])
            raise MeshprepError(
                f"{where}: map '{name}' differs from the plan's at element {e}: "
                f"{table[e].tolist()}, not {plan_table[e].tolist()}: renumber it by the "
                "plan's orderings, or make a new plan"
            )
