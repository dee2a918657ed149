"""ParLoop: an elemental kernel, a plan and arrays, brought together [G12 section 2]."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import MeshprepError, check_choice, check_integer
from .kernel.analysis import DeviceFunction, check_parameters
from .kernel.bind import AOS, AUTO, NUMBERS, Binder, Layout, Slot, slots
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


class _LastCall:
    """The arrays of a call, and what runs it again on their memory, with these or other numbers.

    A tenth of the time that it takes to check and bind them.
    """

    __slots__ = ("arrays", "constants", "run", "size", "way")

    def __init__(
        self,
        given: Mapping[str, Any],
        slots: Sequence[Slot],
        views: Sequence[NDArray[Any]],
        way: StrategyAndVariant,
        run: Callable[..., None],
    ) -> None:
        self.way, self.run, self.size = way, run, len(slots)
        self.arrays: list[tuple[Any, ...]] = []
        # where compiled code finds the numbers that may be others
        self.constants: dict[str, Any] = {}
        for slot, view in zip(slots, views, strict=True):
            value = given[slot.name]
            if type(value) in NUMBERS and slot.dtype == np.float64:
                self.constants[slot.name] = view.base
            else:
                form = (getattr(value, "shape", None), getattr(value, "dtype", None))
                self.arrays.append((slot.name, value, view.ctypes.data, *form, slot.written))

    @staticmethod
    def can_keep(given: Mapping[str, Any]) -> bool:
        """False for arrays of others, which may be given other memory, as by torch's `x.data =`."""
        return all(type(v) in _KEPT or isinstance(v, np.generic) for v in given.values())

    def fits(self, given: Mapping[str, Any]) -> bool:
        """True for arrays in the same form and memory, under the same names."""
        if len(given) != self.size:
            return False
        for name, value, address, shape, dtype, written in self.arrays:
            now: Any = given.get(name)
            if now is not value and not (
                type(now) is type(value) is np.ndarray
                and now.flags.c_contiguous
                and now.ctypes.data == address
            ):
                return False
            if shape is not None and (now.shape != shape or now.dtype is not dtype):
                return False
            if written and not now.flags.writeable:
                return False
        return not self.constants or all(type(given.get(n)) in NUMBERS for n in self.constants)

    def again(self, given: Mapping[str, Any]) -> None:
        """Run it with the numbers that are given now."""
        self.run([(place, given[name]) for name, place in self.constants.items()])


_KEPT = frozenset({np.ndarray, float, int})


class ParLoop:
    """A loop that can be called with arrays.

    Parameters
    ----------
    kernel : function or DeviceFunction
        A Python function works on one element: one parameter for each argument and index in the
        order of the loop, each a row of ``dim`` values (a global: its ``dim`` values). It reads
        ``read`` rows, sets ``write`` rows, adds to ``inc`` rows (``row[0] += f``), and lowers or
        raises ``min`` and ``max`` globals. It is compiled by numba, with the plain functions it
        calls; for a GPU by numba-cuda. A DeviceFunction (CUDA C) runs on arrays of a GPU only.
    plan : LoopPlan
        ``plan["res_calc"]`` of a loaded plan, or one made in memory.
    strategy : str
        ``"auto"``: what ``meshprep tune`` found for this machine and these layouts, else
        ``"ordered"``: ranges of blocks in the order of the set, each of which waits for those
        before it that write its points. The first calls find out which form of the code is the
        fastest, and on how many threads; the bits of the results do not depend on it.
        For comparison: ``"sequential"``: the set in its order, on one thread; ``"hierarchical"``:
        block colours one after the other, blocks of one colour in parallel [S19];
        ``"block-permute"``: the same, with the elements of a block by thread colour;
        ``"global-colouring"`` and ``"full-permute"``: colours of the whole set, with maps in the
        set's order or in that of the colours [R14]; ``"two-step"``: all elements at once into a
        temporary array, which a second step sums. On a GPU: those of ``cuda.program``; ``"auto"``
        goes by ``cuda.choose``. A name that only one of the two has is refused on arrays of the
        other.
    layout : str or mapping of dat name to str
        ``"aos"``: arrays of shape ``(n, dim)``; ``"soa"``: ``(dim, n)``. A mapping names the dats
        that are not ``"aos"``. One component may also be ``(n,)``.
    variant : str or None
        Which blocks; None takes those that were tuned, those made for a CPU where the plan has
        them, or the default; on a GPU those made for one, of at most 1024 elements.
    maps : mapping of map name to (n, arity) integers, optional
        The solver's own maps, to be sure that the plan drives the same mesh.

    Other Parameters
    ----------------
    fastmath : bool
        Let the compiler reorder sums and assume that no value is inf or nan; on a GPU also
        approximate quotients, roots and functions of ``f4``.
    boundscheck : bool
        Check every index inside the kernel, for finding mistakes in it; slow, one thread, CPU.
    cuda : DeviceFunction or None
        The kernel in CUDA C, for arrays of a GPU, beside one in Python.
    commit : str
        On a GPU, how blocks add to points that others share: ``"colours"``, a launch a block
        colour, the same bits in every run; or ``"atomics"``, one launch.
    threads : int or None
        Threads of a thread block on a GPU; None takes what was tuned, else as many as the plan's
        blocks have elements, and 256 without blocks. With fewer a thread runs several elements.
    graph : bool
        On a GPU, record the launches of a set of arrays as one CUDA graph, and replay it.
    tune : bool
        Calls run every way to run the loop in turn, with the same results, until the fastest is
        known; it stays, and ``tuned`` says what came out. While that lasts, calls wait for the GPU.
        Nothing is tried where the plan has an entry for this machine, kernel and layout.

    Raises
    ------
    MeshprepError
        For an unknown strategy, layout or variant, a kernel with another number of parameters, a
        dat with accesses that conflict, maps that are not the plan's.

    Notes
    -----
    ``loop(x=x, q=q, res=res)`` runs over the whole set and changes the arrays in place. They are
    NumPy arrays in the plan's numbering, or arrays that NumPy can see through DLPack, C-contiguous,
    of exactly the declared dtype, of shape ``(n, dim)``, or ``(n,)`` where dim is 1. Constants
    may be given as numbers. Arrays are checked when their memory is new; that of the last two calls
    is kept.

    With CuPy arrays, or others that have ``__cuda_array_interface__`` or DLPack on a GPU, the loop
    is queued on CuPy's current stream, and the call returns at once; arrays of other libraries
    must be ready there. Dats lie all on the host or all on one GPU. Globals may be NumPy
    arrays beside them; the call waits for those that the loop changes.

    The result does not depend on the number of threads; sums are taken in another order than in
    a plain loop, so it equals that of one to rounding. numba is imported, and the kernel compiled,
    on the first call; compiled code is kept on disk. Globals and closure values that the kernel
    uses are those of the first call.
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
        if not isinstance(plan, LoopPlan):
            raise MeshprepError(
                f"a ParLoop needs the plan of one loop, not a {type(plan).__name__}: "
                "pass plan['NAME']"
            )
        self.loop = plan.loop
        options = CodeOptions(**code)
        # Compiled code makes no bounds checks of its own.
        check_loop(plan)
        _check_maps(plan, maps or {})
        _check_words(plan, options, strategy)
        self._wanted = strategy
        self._slots = slots(plan, layout)
        self._binder = Binder(self.loop, self._slots)
        self._executor: Executor | None = None
        # those of two calls: solvers swap arrays from step to step
        self._last: tuple[_LastCall, ...] = ()
        # The code for a processor is loaded by the first loop on one.
        if isinstance(kernel, DeviceFunction):
            from .cuda.strategies import check_strategy

            check_strategy(plan, strategy, options.commit)
        else:
            from .cpu.executor import CpuOptions, Executor
            from .tuning.lookup import chooser

            check_parameters(kernel, plan)
            soa = tuple(s.name for s in self._slots if s.soa)
            self._way = chooser(plan, strategy, variant, soa, kernel.__name__, options.commit)
            compiled_by = CpuOptions(options.boundscheck, options.fastmath)
            self._executor = Executor(kernel, plan, self._slots, compiled_by)
        self._plan = plan
        self._tunes = options.tune
        self._trials: CallTrials | None = None
        self._given: dict[str, Any] = {"layout": layout, **code}
        self.kernel = kernel
        self._device_kernel = kernel if options.cuda is None else options.cuda
        apart = ("cuda", "tune")
        on_device = {name: value for name, value in asdict(options).items() if name not in apart}
        self._device_options: dict[str, Any] = {
            **{"strategy": strategy, "layout": layout, "variant": variant},
            **on_device,
        }

    @cached_property
    def _gpu(self) -> DeviceExecutor:
        # The code for GPUs is loaded when the first array of one is met.
        from .cuda.executor import DeviceExecutor, DeviceOptions

        options = DeviceOptions(**self._device_options)
        return DeviceExecutor(self._device_kernel, self._plan, self._slots, options)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """What its arrays must be."""
        return self._slots

    @property
    def strategy(self) -> str:
        """The strategy that a call runs.

        On a GPU ``"auto"`` is what ``on_gpu`` says.
        """
        return self._wanted if self._executor is None else self._way()[0]

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
        """Strategy, variant, commit and threads of a call with arrays of the current GPU."""
        return self._gpu.choice()

    @property
    def tuned(self) -> Tuned | None:
        """What the trials of ``tune=True`` found; None before they are settled, or without."""
        return None if self._trials is None else self._trials.tuned

    def _try(self, arrays: Mapping[str, Any]) -> None:
        # arrays that do not fit are no fault of the way whose turn it is
        if any(type(v) is not np.ndarray and on_device(v) for v in arrays.values()):
            self._gpu.bind(arrays)
        else:
            self._binder(arrays)
        if self._trials is None:
            # What tunes is loaded when it is wanted.
            from .tuning.calls import begin

            self._trials = begin(self.kernel, self.slots, self._plan, arrays, self._again)
        self._trials(arrays)

    def _again(self, **changed: Any) -> ParLoop:
        """The same loop, with something else asked for."""
        return ParLoop(self.kernel, self._plan, **{**self._given, "tune": False, **changed})

    def __call__(self, /, **arrays: Any) -> None:
        """Run the loop on these arrays, by the names of its arguments.

        Parameters
        ----------
        **arrays : NumPy or CuPy arrays
            One for each dat and global of the loop, see the notes of the class.

        Raises
        ------
        MeshprepError
            When an array does not fit; the message names the argument. Nothing has run then.
        """
        for last in self._last:
            if last.fits(arrays) and (self._way.always or self._way()) is last.way:
                if last.constants:
                    last.again(arrays)
                else:
                    last.run()
                return
        if self._tunes:
            self._try(arrays)
            return
        for value in arrays.values():
            if type(value) is not np.ndarray and on_device(value):
                self._gpu(arrays)
                return
        given, executor, way = self._binder(arrays), self._on_cpu(), self._way()
        code = executor.compiled(way, given, self._way.form)
        # asked before the call is bound: another thread may settle it meanwhile
        kept = code.form and _LastCall.can_keep(arrays)
        run = code.bound(given)
        if kept:
            self._last = (_LastCall(arrays, self._slots, given, way, run), *self._last[:1])
        run()

    def alone(self, arrays: Mapping[str, Any]) -> list[BoundCode]:
        """The steps of a call that always runs on one thread.

        Parameters
        ----------
        arrays : mapping of name to NumPy array
            As of a call.

        Returns
        -------
        list of BoundCode
            Empty where that is not known, and for arrays that may be given other memory.
        """
        if not _LastCall.can_keep(arrays) or self._tunes or self._way.always is None:
            return []
        given, way = self._binder(arrays), self._way.always
        return self._on_cpu().compiled(way, given, self._way.form).alone(given)

    def __getstate__(self) -> dict[str, Any]:
        """For copies, whose arrays are others."""
        return {**self.__dict__, "_last": ()}

    def check_access(self, most: int = 1000, /, **arrays: Any) -> None:
        """Check that the kernel does with its arguments what their accesses say.

        Parameters
        ----------
        most : int
            Elements to look at, spread evenly over the set; all of them where it has fewer.
        **arrays : NumPy arrays
            As of a call; they are not changed.

        Raises
        ------
        MeshprepError
            Naming the first element, argument and component that is wrong: ``read`` is set,
            ``write`` is not set, or to something that depends on what it was, ``inc`` is not only
            added to, ``min`` and ``max`` do not only lower or raise, a component is not there.

        Notes
        -----
        Runs the kernel in Python three times an element, with other old values in the rows whose
        old values must not matter: some 100 microseconds an element. It sees what the kernel does
        with these values: branches that none of them takes are not checked.
        """
        from .kernel.access import check_access

        check_integer("the number of elements to look at", most, 0)
        if isinstance(self.kernel, DeviceFunction):
            raise self._not_on_cpu()
        views = zip(self._slots, self._binder(arrays), strict=True)
        rows = {s.name: v.reshape(s.shape).T if s.soa else v.reshape(s.shape) for s, v in views}
        check_access(self.kernel, self._plan, rows, most)

    def on_host(self, arrays: Mapping[str, Any]) -> HostCall:
        """The loop on arrays of the host, checked, to be run in parts.

        Parameters
        ----------
        arrays : mapping of name to NumPy array
            As of a call.

        Returns
        -------
        HostCall
        """
        return self._on_cpu().host_call(self._way(), self._binder(arrays))

    def _on_cpu(self) -> Executor:
        if self._executor is None or self._way.for_gpu:
            raise self._not_on_cpu()
        return self._executor

    def _not_on_cpu(self) -> MeshprepError:
        what = f"strategy '{self._wanted}' is for a GPU"
        if self._executor is None:
            what = "its kernel is in CUDA C, for a GPU"
        return MeshprepError(
            f"loop '{self.loop.name}': {what}, but no argument lies on one: pass CuPy arrays, or "
            "make a ParLoop for the CPU"
        )

    def __repr__(self) -> str:
        names = ", ".join(s.name for s in self._slots)
        return f"ParLoop({self.loop.name}({names}) over {self.loop.over}, {self._wanted})"


def show_options(function: Callable[..., Any], options: Any) -> None:
    """Let the signature of a function that takes ``**options`` name each with its default."""
    own = inspect.signature(function)
    kept = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
    for one in fields(options):
        default = one.default if one.default_factory is MISSING else one.default_factory()
        named = inspect.Parameter(
            one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=one.type
        )
        kept.append(named)
    function.__signature__ = own.replace(parameters=kept)  # type: ignore[attr-defined]


show_options(ParLoop.__init__, CodeOptions)


def _check_words(plan: LoopPlan, options: CodeOptions, strategy: str) -> None:
    where, cuda = f"loop '{plan.loop.name}'", options.cuda
    if options.tune and strategy != AUTO:
        raise MeshprepError(
            f"{where}: tune chooses among strategies, but '{strategy}' is asked for: leave "
            "strategy='auto'"
        )
    if cuda is not None and not isinstance(cuda, DeviceFunction):
        raise MeshprepError(
            f"{where}: cuda is a {type(cuda).__name__}, must be a DeviceFunction with CUDA C"
        )
    if options.commit != CodeOptions.commit:
        from .cuda.strategies import COMMITS

        check_choice(f"{where}: commit", options.commit, COMMITS)


def _check_maps(plan: LoopPlan, maps: Mapping[str, ArrayLike]) -> None:
    where = f"loop '{plan.loop.name}'"
    for name, given in maps.items():
        if name not in plan.maps:
            raise MeshprepError(f"{where} has no map '{name}': it has {', '.join(plan.maps)}")
        table, own = np.asarray(given), plan.maps[name].table
        if table.shape != own.shape:
            raise MeshprepError(
                f"{where}: map '{name}' has shape {table.shape}, but the plan's has {own.shape}: "
                "the plan was made for another mesh"
            )
        rows = np.flatnonzero((table != own).any(axis=1))
        if rows.size:
            e = int(rows[0])
            raise MeshprepError(
                f"{where}: map '{name}' differs from the plan's at element {e}: {table[e].tolist()}"
                f", not {own[e].tolist()}: renumber it by the plan's orderings, or make a new plan"
            )
