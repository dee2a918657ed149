"""The fastest way to run a loop of a plan: searched, and noted in the plan."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Unpack

from numpy.typing import NDArray

from meshprep_runtime.cuda import CudaProgram, DeviceFunction, program
from meshprep_runtime.cuda.build import compiled
from meshprep_runtime.cuda.occupancy import Occupancy, occupancy
from meshprep_runtime.errors import MeshprepError, Progress
from meshprep_runtime.kernel.analysis import name_of
from meshprep_runtime.loop import ParLoop
from meshprep_runtime.plan import LoopPlan, Plan
from meshprep_runtime.plan.checks.verify import refuse_wrong
from meshprep_runtime.plan.tuned import CPU, DeviceProgram, Trial, Tuned
from meshprep_runtime.tuning.lookup import with_entry
from meshprep_runtime.tuning.machines import Backend, this_cpu, this_gpu
from meshprep_runtime.tuning.tune import SearchArguments, TuningSearch, synthetic, tune

from ..staging.matrices import input_maps
from ..staging.recut import with_loop, with_sizes, with_variants

# Block sizes to try, by target.
SIZES = {
    "cpu": (512, 1024, 2048, 4096, 8192, 16384),
    "gpu": (64, 96, 128, 192, 256, 320, 384, 448, 512, 768, 1024),
}
# The devices of this machine, by name.
HERE = {"cpu": this_cpu, "gpu": this_gpu}
Kernel = Callable[..., None] | DeviceFunction
# Elements on which the kernel's accesses are checked.
CHECKED = 200


@dataclass(frozen=True, eq=False)
class Tuning:
    """The result of :func:`tune_plan`."""

    # With the entry, and with the variants that are best in some layout.
    plan: Plan
    loop: str
    tuned: Tuned
    notes: list[str]  # what could not be tried, such as block sizes, and why
    # The input order, element after element, where that was timed: on a CPU.
    before: Trial | None = None
    # Of the fastest way, on a GPU; with its registers where the kernel could be compiled.
    occupancy: Occupancy | None = None
    registers: int | None = None


def tune_plan(
    plan: Plan,
    loop: str,
    kernel: Kernel | None = None,
    *,
    device: str | Backend = "cpu",
    block_sizes: Sequence[int] | None = None,
    values: Mapping[str, NDArray[Any]] | None = None,
    proof: bool = True,
    progress: Progress = lambda done, total, what: None,
    **search: Unpack[SearchArguments],
) -> Tuning:
    """Find the strategy, block size and layout with which a loop runs fastest.

    Raises MeshprepError for unknown names, a kernel that is missing, loops that nothing can
    run, and a kernel that does not do what its accesses say; ProofError when the plan that
    came out is wrong, which is a fault of meshprep.

    ``device`` is a Backend, or ``"cpu"`` or ``"gpu"`` of this machine. ``block_sizes``
    besides those of the plan, None for a range that suits the device, cut the order that
    the plan has, see :func:`~meshprep.staging.recut.recut`; those that are best in no
    layout are left out again. ``values`` by argument are in the plan's numbering; None for
    made-up numbers. ``search`` is as for :func:`meshprep_runtime.tuning.tune.tune`. On a
    CPU the loop is also timed in the input order, unless it adds to matrices.
    """
    backend = backend_of(device)
    loop_plan = plan[loop]
    loop = loop_plan.loop.name

    # Cut the plan's order into blocks of further sizes.
    if block_sizes is None:
        n = loop_plan.sizes[loop_plan.loop.over]
        block_sizes = [size for size in SIZES[backend.machine.kind] if size < n]
    widened, notes = with_sizes(loop_plan, block_sizes, backend.machine.kind)

    # Check the kernel and its arguments.
    if kernel is None:
        raise MeshprepError(
            "running a loop needs its kernel: name one with --kernel FILE.py:function"
        )
    if values is None:
        values = synthetic(loop_plan)
    missing = [arg.name for arg in loop_plan.loop.args if arg.name not in values]
    if missing:
        raise MeshprepError(f"loop '{loop}': no values for argument '{missing[0]}'")
    if not isinstance(kernel, DeviceFunction):
        notes += check_kernel(ParLoop(kernel, loop_plan), values)

    # Time all ways, and on a CPU the input's order as well.
    with named(f"loop '{loop}'"):
        tuned = tune(kernel, widened, values, backend=backend, progress=progress, **search)
    # See how full the fastest way can make a GPU; NVRTC, where it is, tells the registers.
    fits = None
    registers = None
    if backend.arch:
        chosen_program = program_of_trial(kernel, widened, tuned.best)
        with suppress(MeshprepError):
            registers = compiled(chosen_program, backend.arch).registers
        fits = occupancy(
            backend.arch, chosen_program.threads, chosen_program.shared_bytes, registers
        )
        on_device = DeviceProgram(
            arch=backend.arch,
            threads=chosen_program.threads,
            shared_bytes=chosen_program.shared_bytes,
            registers=registers,
        )
        tuned = replace(tuned, occupancy=round(fits.share, 4), program=on_device)
    before = None
    if backend.machine.kind == CPU and not loop_plan.loop.matrices:
        before = _time_input_order(
            plan=plan,
            loop_plan=loop_plan,
            kernel=kernel,
            values=values,
            backend=backend,
            runs=TuningSearch(**search).runs,
        )
    tuned_plan = with_loop(plan, _with_best_variants(loop_plan, widened, tuned))
    if proof:
        refuse_wrong(tuned_plan)
    return Tuning(
        plan=tuned_plan,
        loop=loop,
        tuned=tuned,
        notes=notes,
        before=before,
        occupancy=fits,
        registers=registers,
    )


def program_of_trial(kernel: Kernel, plan: LoopPlan, trial: Trial) -> CudaProgram:
    """The program that a trial on a GPU ran."""
    layout = dict.fromkeys(trial.soa, "soa")
    return program(
        kernel,
        plan,
        trial.strategy,
        variant=trial.variant or None,
        layout=layout,
        commit=trial.commit,
        threads=trial.threads,
    )


def _time_input_order(
    plan: Plan,
    loop_plan: LoopPlan,
    kernel: Kernel,
    values: Mapping[str, NDArray[Any]],
    backend: Backend,
    runs: int,
) -> Trial:
    """The loop in the numbering of the input, element after element on one thread."""
    # The values and the loop as they were before the plan.
    loop = loop_plan.loop
    restored = {}
    for arg in loop.args:
        restored[arg.name] = values[arg.name]
        if not arg.is_global:
            over = loop.over if arg.map is None else loop_plan.maps[arg.map].to_set
            restored[arg.name] = plan.ordering[over].restore(values[arg.name])
    unchanged = LoopPlan(
        loop=loop,
        sizes=loop_plan.sizes,
        maps=input_maps(plan, loop_plan),
        variants={},
        default="",
    )
    search = SearchArguments(strategies=["sequential"], layouts=["aos"], runs=runs)
    return tune(kernel, unchanged, restored, backend=backend, **search).best


def backend_of(device: str | Backend) -> Backend:
    """The machine to time loops on."""
    if isinstance(device, Backend):
        return device
    if device in HERE:
        return HERE[device]()
    raise MeshprepError(
        f"device '{device}' is unknown: use {' or '.join(HERE)} of this machine"
    )


def loop_of(plan: Plan, kernel: Kernel | None, name: str | None) -> str:
    """The loop to tune: the one named, that of the kernel's name, or the only one."""
    if name is not None:
        return plan[name].loop.name
    if kernel is not None and name_of(kernel) in plan.loops:
        return name_of(kernel)
    if len(plan.loops) == 1:
        return next(iter(plan.loops))
    raise MeshprepError(f"the plan has loops {', '.join(plan.loops)}: name one with --loop")


def check_kernel(loop: ParLoop, arrays: Mapping[str, Any]) -> list[str]:
    """Refuse a kernel that does not do what its accesses say.

    Gives the reason where it could not be checked.
    """
    try:
        loop.check_access(CHECKED, **arrays)
    except MeshprepError as error:
        # Compiled, a kernel may give nan where Python raises, as for a root.
        if error.__cause__ is None:
            raise
        return [f"the accesses of the kernel: {error}"]
    return []


@contextmanager
def named(what: str) -> Iterator[None]:
    """Name the loop or chain in the errors that its kernel raises."""
    try:
        yield
    except MeshprepError:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}".rstrip(": ")
        raise MeshprepError(
            f"running {what} raised {text}: name --values that its kernels can work on"
        ) from error


def _with_best_variants(own: LoopPlan, widened: LoopPlan, tuned: Tuned) -> LoopPlan:
    """The loop with the new entry, its own variants, and those best in some layout."""
    # The best variant for each layout, as arrays of structures and the other way round.
    best = set[str | None]()
    for soa in {trial.soa for trial in tuned.trials}:
        trial = tuned.best_for(soa)
        if trial is not None:
            best.add(trial.variant)
    keeping = best.union(own.variants)
    variants = {k: v for k, v in widened.variants.items() if k in keeping}
    default = own.default or next(iter(variants), "")
    entries = with_entry(own.tuned, tuned)
    return replace(with_variants(widened, variants, default), tuned=entries)
