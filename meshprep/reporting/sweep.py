"""Many plans of one mesh: every combination of orders, partitioners and block sizes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from meshprep_runtime.errors import MeshprepError, Progress, check_choice
from meshprep_runtime.plan import LoopPlan, Plan

from ..io.source import MeshSource
from ..kernels import clock
from ..loops.options import Options
from ..loops.request_maps import notes_of, plan_request_maps
from ..loops.requests import LoopRequest, Loops, LoopSpec
from ..mesh import Mesh
from ..partitioning import PARTITIONERS
from ..partitioning.options import effective
from ..pipeline.steps import Ordered, cut_and_colour, order
from ..pipeline.workflow import check_default
from .best import best_plan
from .columns import options_text
from .compare import Comparison
from .files import ReportFiles, write_files
from .meshes import NamedMesh, bare

# Plans of a sweep: nobody reads more, and a mistyped range is refused before any work.
MOST = 400
# Options of a loop in loops.toml that a sweep varies.
VARIED = ("block_size", "partition", "effort")


@dataclass(frozen=True)
class SweepPoint:
    """One way to make a plan."""

    method: str  # locality order
    partitioner: str
    block_size: int
    options: Mapping[str, Any] = field(default_factory=dict)  # of the partitioner

    @property
    def name(self) -> str:
        """``gps effort=strong blocks s448``."""
        words = (
            self.method,
            options_text(self.options),
            self.partitioner,
            f"s{self.block_size}",
        )
        return " ".join(filter(None, words))

    def over(self, options: Options) -> Options:
        """These options, with what this point says over them."""
        return replace(
            options,
            method=self.method,
            partition=self.partitioner,
            partition_options=self.options,
            block_size=self.block_size,
        )


@dataclass(frozen=True, eq=False)
class SweepResult:
    """The plans of a sweep, and what did not work."""

    # A plan for each way that worked. All but the best have figures alone, no arrays.
    comparison: Comparison
    failures: tuple[tuple[str, str], ...]  # ways that did not work, and why
    best: SweepPoint  # see :func:`~.best.best_plan`
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON values: the comparison, failures and the best."""
        failed = [{"plan": name, "reason": reason} for name, reason in self.failures]
        return self.comparison.to_dict() | {"failures": failed, "best": self.best.name}


def sweep_points(
    methods: Sequence[str], partitioners: Sequence[str], block_sizes: Sequence[int]
) -> list[SweepPoint]:
    """Every combination, by method, then partitioner, then block size.

    Partitioners are names, with options as in ``blocks:effort=strong:staged_bytes=9000``.
    Raises MeshprepError for unknown names and options, sizes below 1, nothing at all, and
    more than 400 plans.
    """
    cuts = [_partitioner_and_options(text) for text in dict.fromkeys(partitioners)]
    sizes = sorted(set(block_sizes))
    # Options refuse unknown methods.
    for method in methods:
        Options(method=method)
    count = len(set(methods)) * len(cuts) * len(sizes)
    if not 0 < count <= MOST:
        raise MeshprepError(f"a sweep of {count} plans: ask for 1 to {MOST}")
    if sizes[0] < 1:
        raise MeshprepError(f"block size {sizes[0]} must be at least 1")
    combinations = product(dict.fromkeys(methods), cuts, sizes)
    return [
        SweepPoint(method=method, partitioner=name, block_size=size, options=options)
        for method, (name, options), size in combinations
    ]


def block_sizes(text: str) -> list[int]:
    """Block sizes from text: ``64:1024`` doubles, ``128:512:64`` steps, ``256,448`` lists.

    Raises MeshprepError for anything else.
    """
    sizes: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(
            r"(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?", part.strip(), re.ASCII
        )
        # HIGH and STEP that are not written are LOW; 0 is refused
        numbers = match.groups() if match else ("0", None, None)
        low, high, step = (int(number or numbers[0]) for number in numbers)
        if low < 1 or high < low or step < 1:
            raise MeshprepError(
                f"block sizes '{part}' must read LOW:HIGH (doubling), "
                "LOW:HIGH:STEP, or a number, from 1 and LOW first"
            )
        # Two numbers double from LOW on; three go in steps.
        has_step = numbers[2] is not None
        if has_step:
            sizes += range(low, high + 1, step)
        else:
            n_doublings = (high // low).bit_length()
            sizes += [low << i for i in range(n_doublings)]
        if len(sizes) > MOST:
            raise MeshprepError(
                f"block sizes '{text}' are more than {MOST}: take a larger step"
            )
    return sizes


def sweep(
    mesh: Mesh,
    loops: Loops,
    chosen: Sequence[SweepPoint],
    options: Options | None = None,
    *,
    progress: Progress = lambda done, total, name: None,
) -> SweepResult:
    """Make a plan in every way and compare them.

    Topology is derived once and every order found once; that order is judged at the middle
    block size. Block sizes and partitioners that the loops themselves ask for give way to
    the sweep's.

    ``chosen`` are from :func:`sweep_points`, ``options`` has all options that these do not
    set; ``progress`` is told before the topology and each plan. Raises MeshprepError for
    loops that do not fit the mesh, and where no point works, with the first one's message.
    """
    # Derive the topology once.
    options = options or Options()
    total = 1 + len(chosen)
    progress(0, total, "topology")
    start = clock()
    full, specs = plan_request_maps(mesh, loops)
    derived = full, [_without_varied_options(spec) for spec in specs]
    topology_seconds = round(clock() - start, 4)

    # Go through the points, which are sorted by method.
    plans: dict[str, Plan] = {}
    failures: list[tuple[str, str]] = []
    # The best plan so far keeps its arrays.
    best_so_far: tuple[SweepPoint, Plan] | None = None
    sizes = sorted({point.block_size for point in chosen})
    middle_size = sizes[len(sizes) // 2]
    ordered: Ordered | None = None
    for number, point in enumerate(chosen):
        progress(1 + number, total, point.name)
        # Find an order where the method changes.
        if ordered is None or point.method != chosen[number - 1].method:
            first = replace(point.over(options), block_size=middle_size)
            ordered = order(mesh=mesh, loops=(), options=first, derived=derived)
            # every plan bears the whole cost, as if it were made alone
            seconds = dict(ordered.seconds) | {"topology": topology_seconds}
            ordered = replace(ordered, seconds=seconds)
        # Make the plan of this point.
        within = _within(progress=progress, number=1 + number, total=total, name=point.name)
        try:
            plan = cut_and_colour(ordered, point.over(options), within)
        except MeshprepError as error:
            failures.append((point.name, str(error)))
            continue
        plans[point.name] = _figures_only(plan)
        best = best_plan(plans)
        if best_so_far is None or (best and best.name == point.name):
            best_so_far = point, plan

    # The best plan is given with its arrays, all others with figures alone.
    if best_so_far is None:
        name, reason = failures[0]
        raise MeshprepError(f"no plan could be made; {name}: {reason}")
    best_point, plan_with_arrays = best_so_far
    plans[best_point.name] = plan_with_arrays
    return SweepResult(
        comparison=Comparison(tuple(plans), tuple(plans.values())),
        failures=tuple(failures),
        best=best_point,
        notes=tuple(notes_of(specs)),
    )


def _without_varied_options(spec: LoopSpec) -> LoopSpec:
    """The loop without the options of its own that the sweep varies."""
    options = {name: v for name, v in spec.options.items() if name not in VARIED}
    return replace(spec, options=options)


def _within(progress: Progress, number: int, total: int, name: str) -> Progress:
    """Tells the progress of one plan as a fraction of it."""
    return lambda done, stages, stage: progress(
        number + min(0.99, done / stages), total, name
    )


def _figures_only(plan: Plan) -> Plan:
    """The plan without arrays; matrices are reported of the best plan alone."""
    # Loops keep what is reported of them: their sizes and default variant.
    loops = {}
    for name, loop_plan in plan.loops.items():
        loops[name] = LoopPlan(
            loop=loop_plan.loop,
            sizes=loop_plan.sizes,
            maps={},
            variants={},
            default=loop_plan.default,
        )
    groups: dict[str, Any] = {"tags": {}, "group_names": {}, "further_groups": {}}
    return replace(
        plan,
        ordering={},
        maps={},
        loops=loops,
        matrices={},
        **groups,
    )


def _partitioner_and_options(text: str) -> tuple[str, dict[str, Any]]:
    """A partitioner and its options from ``NAME:OPTION=VALUE:...``."""
    name, *pairs = text.strip().split(":")
    check_choice("partitioner", name, PARTITIONERS)
    options = {}
    for pair in pairs:
        option, equals, value = pair.partition("=")
        if not (option and equals):
            raise MeshprepError(f"partitioner '{text}' must read NAME:OPTION=VALUE:...")
        options[option] = value
    # raises for options and values that the partitioner does not have
    effective(PARTITIONERS[name].options, options, f"partitioner '{name}'")
    return name, options


def run_sweep(
    source: MeshSource,
    chosen: Sequence[SweepPoint],
    requests: Sequence[LoopRequest],
    options: Options,
    files: ReportFiles,
    *,
    measure: bool,
    progress: Progress = lambda done, total, name: None,
) -> SweepResult:
    """Read once, make every plan, compare them, and write the page if it is asked for.

    ``measure`` times calls of the best plan's loops. Raises MeshprepError on bad input,
    outputs that exist, and where no plan could be made.
    """
    source.find_format()
    files.check([source.path])
    # Steps: reading, topology, the plans, the files.
    before_files = 2 + len(chosen)
    total = before_files + len(files.outputs)
    progress(0, total, "reading")
    mesh = source.read()

    def later(by: int) -> Progress:
        """Progress of steps that follow ``by`` others."""
        return lambda done, _, name: progress(by + done, total, name)

    result = sweep(
        mesh=mesh,
        loops=requests,
        chosen=chosen,
        options=options,
        progress=later(1),
    )
    # Times are measured after all plans are made, so that nothing runs beside them.
    if measure:
        result = replace(result, comparison=result.comparison.timed())
    first = result.comparison.plans[0]
    check_default(requests, first.loops.values(), first.sizes)
    # Write the page about all plans of the mesh.
    title = f"meshprep sweep: {len(result.comparison.plans)} plans of {source.path.name}"
    meshes = [NamedMesh(str(source.path), bare(mesh))]
    write_files(
        comparison=result.comparison,
        files=files,
        progress=later(before_files),
        meshes=meshes,
        title=title,
    )
    return result
