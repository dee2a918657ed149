"""``tune``: finds how a loop of a plan runs fastest, and writes it into the plan."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Unpack

from numpy.typing import NDArray

from meshprep_runtime.cuda import DeviceFunction
from meshprep_runtime.errors import MeshprepError, Progress
from meshprep_runtime.kernel.analysis import name_of
from meshprep_runtime.loop import ParLoop
from meshprep_runtime.plan import LoopPlan, Plan
from meshprep_runtime.plan.checks.verify import refuse_wrong
from meshprep_runtime.plan.tuned import CPU, Trial, Tuned
from meshprep_runtime.tuning.lookup import with_entry
from meshprep_runtime.tuning.machines import Backend, this_cpu, this_gpu
from meshprep_runtime.tuning.tune import SearchArguments, TuningSearch, synthetic, tune

from .matrices import input_maps
from .variants import with_loop, with_sizes

# Block sizes to try, by target.
SIZES = {
    "cpu": (512, 1024, 2048, 4096, 8192, 16384),
    "gpu": (64, 96, 128, 192, 256, 320, 384, 448, 512, 768, 1024),
}
# Where loops are timed, on this machine.
HERE = {"cpu": this_cpu, "gpu": this_gpu}
Kernel = Callable[..., None] | DeviceFunction
# Elements on which the kernel's accesses are checked.
CHECKED = 200


@dataclass(frozen=True, eq=False)
class Tuning:
    """What came out."""

    plan: Plan  # the plan with the entry, and with the variants that are best in some layout
    loop: str
    tuned: Tuned
    notes: list[str]  # what could not be tried, such as block sizes, and why
    before: Trial | None = None  # the input order, element after element, where timed on a CPU


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

    Raises MeshprepError for unknown names, a kernel that is missing, loops that nothing can run,
    and a kernel that does not do what its accesses say; ProofError when the plan that came out is
    wrong, which is a fault of meshprep.

    ``device`` is a Backend, or ``"cpu"`` or ``"gpu"`` of this machine. ``block_sizes`` besides
    those of the plan, None for a range that suits the device, cut the order that the plan has, see
    :func:`~meshprep.pipeline.variants.recut`; those that are best in no layout are left out again.
    ``values`` by argument are in the plan's numbering; None for made-up numbers. ``search`` is as
    for :func:`meshprep_runtime.tuning.tune.tune`. On a CPU the loop is also timed in the input
    order, unless it adds to matrices.
    """
    backend, before = _place(device), None
    own = plan[loop]
    loop = own.loop.name
    n = own.sizes[own.loop.over]
    wanted = (
        [s for s in SIZES[backend.machine.kind] if s < n] if block_sizes is None else block_sizes
    )
    widened, notes = with_sizes(own, wanted, backend.machine.kind)
    if kernel is None:
        raise MeshprepError(
            "running a loop needs its kernel: name one with --kernel FILE.py:function"
        )
    given = synthetic(own) if values is None else values
    missing = [a.name for a in own.loop.args if a.name not in given]
    if missing:
        raise MeshprepError(f"loop '{own.loop.name}': no values for argument '{missing[0]}'")
    if not isinstance(kernel, DeviceFunction):
        notes += check_kernel(ParLoop(kernel, own), given)
    with named(f"loop '{loop}'"):
        tuned = tune(kernel, widened, given, backend=backend, progress=progress, **search)
    if backend.machine.kind == CPU and not own.loop.matrices:
        before = _in_input_order(plan, own, kernel, given, backend, TuningSearch(**search).runs)
    made = with_loop(plan, _kept(own, widened, tuned))
    if proof:
        refuse_wrong(made)
    return Tuning(made, loop, tuned, notes, before)


def _in_input_order(
    plan: Plan,
    own: LoopPlan,
    kernel: Kernel,
    values: Mapping[str, NDArray[Any]],
    backend: Backend,
    runs: int,
) -> Trial:
    """The loop in the numbering of the input, element after element on one thread."""
    loop = own.loop
    sets = {a.name: own.maps[a.map].to_set if a.map else loop.over for a in loop.args}
    restored = {
        name: values[name] if a.is_global else plan.ordering[sets[name]].restore(values[name])
        for name, a in ((a.name, a) for a in loop.args)
    }
    unchanged = LoopPlan(loop, own.sizes, input_maps(plan, own), {}, "")
    search = SearchArguments(strategies=["sequential"], layouts=["aos"], runs=runs)
    return tune(kernel, unchanged, restored, backend=backend, **search).best


def _place(device: str | Backend) -> Backend:
    """Where to time loops."""
    if isinstance(device, Backend):
        return device
    if device in HERE:
        return HERE[device]()
    raise MeshprepError(f"device '{device}' is unknown: use {' or '.join(HERE)} of this machine")


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
    """Refuse a kernel that does not do what its accesses say; why it could not be checked."""
    try:
        loop.check_access(CHECKED, **arrays)
    except MeshprepError as error:
        # Compiled it gives nan where Python raises, for a root say.
        if error.__cause__ is None:
            raise
        return [f"the accesses of the kernel: {error}"]
    return []


@contextmanager
def named(what: str) -> Iterator[None]:
    """Give what a kernel raises the name of its loop or chain."""
    try:
        yield
    except MeshprepError:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}".rstrip(": ")
        raise MeshprepError(
            f"running {what} raised {text}: name --values that its kernels can work on"
        ) from error


def _kept(own: LoopPlan, widened: LoopPlan, tuned: Tuned) -> LoopPlan:
    """The loop with the new entry and the variants that some entry or the plan itself names."""
    best = {t.variant for soa in {t.soa for t in tuned.trials} if (t := tuned.best_for(soa))}
    variants = {k: v for k, v in widened.variants.items() if k in own.variants or k in best}
    default = own.default or next(iter(variants), "")
    entries = with_entry(own.tuned, tuned)
    return replace(widened, variants=variants, default=default, tuned=entries)
