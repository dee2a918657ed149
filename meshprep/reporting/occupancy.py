"""How many blocks of each loop a GPU's multiprocessor holds [G12 5] [S19 3.1]."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from meshprep_runtime.cuda import DeviceFunction, program
from meshprep_runtime.cuda.build import compiled
from meshprep_runtime.cuda.occupancy import USUAL_ARCH, most_shared_bytes, occupancy
from meshprep_runtime.cuda.strategies import MOST_THREADS, STRATEGIES, WARP
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.kernel.analysis import name_of
from meshprep_runtime.kernel.bind import slots
from meshprep_runtime.plan import LoopPlan, Plan
from meshprep_runtime.plan.tuned import DeviceProgram
from meshprep_runtime.tuning.choose_gpu import Choice, choose, staged_bytes

from .table import Table, table_of

# A card of each generation that still gets compilers.
CARDS = {
    "sm_75": "T4 (sm_75)",
    "sm_80": "A100 (sm_80)",
    "sm_89": "L40 (sm_89)",
    "sm_90": "H100 (sm_90)",
}
Kernel = Callable[..., None] | DeviceFunction


def occupancy_records(
    plan: Plan,
    kernels: Mapping[str, Kernel],
    archs: Sequence[str] = tuple(CARDS),
) -> list[dict[str, Any]]:
    """The occupancy of every loop of a plan, as JSON values.

    Of loops whose kernel is known by the registers of the compiled kernel, of others by
    threads and staged bytes alone; then that of each way that was tuned on a GPU.

    Parameters
    ----------
    plan : Plan
    kernels : mapping
        Kernels by the names of their loops.
    archs : sequence of str
        Of :data:`CARDS`.

    Raises
    ------
    MissingPackageError
        Where there is a kernel and no compiler for it.
    MeshprepError
        For a kernel that does not compile.

    Notes
    -----
    O(map entries), and a second for each kernel, block size and architecture whose machine
    code is not on disk.
    """
    records = []
    for name, loop_plan in plan.loops.items():
        for variant in _variants_for_gpus(loop_plan, name in kernels):
            for arch in archs:
                choice, on_card = program_on_card(
                    loop_plan, variant, arch, kernels.get(name)
                )
                records.append(
                    {
                        "loop": name,
                        "runs as": f"{choice.strategy} {choice.variant or ''}".strip(),
                        "card": CARDS[arch],
                        **_figures(on_card),
                    }
                )
        for tuned in loop_plan.tuned:
            if tuned.program is not None:
                best = tuned.best
                records.append(
                    {
                        "loop": name,
                        "runs as": f"tuned: {best.strategy} {best.variant}".strip(),
                        "card": f"{tuned.machine.name} ({tuned.program.arch})",
                        **_figures(tuned.program),
                    }
                )
    return records


def program_on_card(
    plan: LoopPlan, variant: str | None, arch: str, kernel: Kernel | None = None
) -> tuple[Choice, DeviceProgram]:
    """How ``auto`` runs a loop on a card that nothing was tuned on, and what that takes."""
    loop_slots = slots(plan)
    choice = choose(plan, loop_slots, most_shared_bytes(arch), variant=variant)
    # The compiler tells the registers of the kernel inside its loop.
    if kernel is not None:
        cuda_program = program(kernel, plan, choice.strategy, variant=choice.variant)
        return choice, DeviceProgram(
            arch=arch,
            threads=cuda_program.threads,
            shared_bytes=cuda_program.shared_bytes,
            registers=compiled(cuda_program, arch).registers,
        )
    # The blocks alone tell threads and shared memory.
    blocks = plan.variant(choice.variant)
    threads = -(-max(blocks.block_size, 1) // WARP) * WARP
    stages_reads = STRATEGIES[choice.strategy].stages_reads
    staged = staged_bytes(plan, loop_slots, blocks, stages_reads)
    # Threads leave the parts of reduced globals where points were staged.
    reduced = [s.dtype.itemsize for s in loop_slots if s.rows is None and s.written]
    return choice, DeviceProgram(
        arch=arch,
        threads=threads,
        shared_bytes=max(staged, threads * max(reduced, default=0)),
    )


def _variants_for_gpus(plan: LoopPlan, has_kernel: bool) -> Iterator[str | None]:
    """The blocks that ``auto`` may run on a GPU; None for a loop without blocks there."""
    names = []
    for name, blocks in plan.variants.items():
        # Blocks that tuning made for a CPU have more elements than a thread block takes.
        if blocks.block_size > MOST_THREADS:
            continue
        choice = choose(plan, slots(plan), most_shared_bytes(USUAL_ARCH), variant=name)
        if choice.variant is not None:
            names.append(name)
    yield from names
    # Without blocks only registers can be short.
    if not names and has_kernel:
        yield None


def _figures(on_card: DeviceProgram) -> dict[str, Any]:
    """What a program takes, how many of its blocks fit, and what there is too little of."""
    fits = occupancy(
        arch=on_card.arch,
        threads=on_card.threads,
        shared_bytes=on_card.shared_bytes,
        registers=on_card.registers,
    )
    return {
        "threads": on_card.threads,
        "shared bytes": on_card.shared_bytes,
        "registers": on_card.registers,
        "blocks held": fits.blocks,
        "occupancy": round(fits.share, 4),
        "limited by": ", ".join(fits.limits),
    }


def occupancy_tables(records: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Table]:
    """A table of the records of all plans by their names; none without records."""
    rows: list[Mapping[str, Any]] = []
    for name, of_plan in records.items():
        # several plans need names
        whose = {"plan": name} if len(records) > 1 else {}
        rows += [{**whose, **record} for record in of_plan]
    if not rows:
        return []
    if any(row["registers"] is not None for row in rows):
        return [table_of("occupancy: blocks that a multiprocessor holds", rows)]
    # A column of dashes would tell nothing.
    shown = [{k: v for k, v in row.items() if k != "registers"} for row in rows]
    title = "occupancy: blocks that a multiprocessor holds, by threads and staged bytes"
    return [table_of(title, shown)]


def kernels_by_loop(kernels: Sequence[Kernel], plans: Sequence[Plan]) -> dict[str, Kernel]:
    """Each kernel by the loop of its name, or by the only loop that all plans have.

    Raises MeshprepError for a kernel of no loop.
    """
    loops = list(dict.fromkeys(name for plan in plans for name in plan.loops))
    of_loops: dict[str, Kernel] = {}
    for kernel in kernels:
        name = name_of(kernel)
        if name not in loops and len(loops) == len(kernels) == 1:
            name = loops[0]
        if name not in loops:
            raise MeshprepError(
                f"kernel '{name}' is named as no loop: give it the name of "
                f"{' or '.join(loops)}"
            )
        of_loops[name] = kernel
    return of_loops
