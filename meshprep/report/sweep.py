"""Many plans of one mesh: every order, partitioner and block size asked for, side by side."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from meshprep_runtime.errors import MeshprepError, Progress, check_choice
from meshprep_runtime.plan import LoopPlan, Plan

from ..io.source import MeshSource
from ..kernels import clock
from ..loops.options import Options
from ..loops.requests import LoopRequest, Loops
from ..mesh import Mesh
from ..partition import PARTITIONERS
from ..partition.options import effective
from ..pipeline.steps import Ordered, cut_and_colour, order, plan_request_maps
from ..pipeline.workflow import check_default
from .best import best_plan
from .columns import options_text
from .compare import Comparison
from .files import ReportFiles, write_files
from .meshes import NamedMesh, bare

# More plans than anybody reads; a mistyped range is refused before any work.
MOST = 400
# What a loop of loops.toml may ask for that a sweep varies.
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
        words = (self.method, options_text(self.options), self.partitioner, f"s{self.block_size}")
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
    """What a sweep found."""

    # A plan for each way that worked. All but the best have figures alone, no arrays.
    comparison: Comparison
    failures: tuple[tuple[str, str], ...]  # ways that did not work, and why
    best: SweepPoint  # see :func:`~.best.best_plan`

    def to_dict(self) -> dict[str, Any]:
        """JSON values: the comparison, failures and the best."""
        failed = [{"plan": name, "reason": reason} for name, reason in self.failures]
        return self.comparison.to_dict() | {"failures": failed, "best": self.best.name}


def sweep_points(
    methods: Sequence[str], partitioners: Sequence[str], block_sizes: Sequence[int]
) -> list[SweepPoint]:
    """Every combination, by method, then partitioner, then block size.

    Partitioners are names, with options as in ``blocks:effort=strong:staged_bytes=9000``. Raises
    MeshprepError for unknown names and options, sizes below 1, nothing at all, and more than 400
    plans.
    """
    cuts = [_cut(text) for text in dict.fromkeys(partitioners)]
    sizes = sorted(set(block_sizes))
    for method in methods:
        Options(method=method)
    count = len(set(methods)) * len(cuts) * len(sizes)
    if not 0 < count <= MOST:
        raise MeshprepError(f"a sweep of {count} plans: ask for 1 to {MOST}")
    if sizes[0] < 1:
        raise MeshprepError(f"block size {sizes[0]} must be at least 1")
    return [
        SweepPoint(method, name, size, options)
        for method in dict.fromkeys(methods)
        for name, options in cuts
        for size in sizes
    ]


def block_sizes(text: str) -> list[int]:
    """Block sizes from text: ``64:1024`` doubles, ``128:512:64`` steps, ``256,448`` lists.

    Raises MeshprepError for anything else.
    """
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?", part.strip(), re.ASCII)
        texts = match.groups() if match else ("0", None, None)
        low, high, step = (int(text or texts[0]) for text in texts)
        if low < 1 or high < low or step < 1:
            raise MeshprepError(
                f"block sizes '{part}' must read LOW:HIGH (doubling), LOW:HIGH:STEP, or a number, "
                "from 1 and LOW first"
            )
        doubled = (low << i for i in range((high // low).bit_length()))
        found += range(low, high + 1, step) if texts[2] else doubled
        if len(found) > MOST:
            raise MeshprepError(f"block sizes '{text}' are more than {MOST}: take a larger step")
    return found


def sweep(
    mesh: Mesh,
    loops: Loops,
    chosen: Sequence[SweepPoint],
    options: Options | None = None,
    *,
    progress: Progress = lambda done, total, name: None,
) -> SweepResult:
    """Make a plan in every way and compare them.

    Topology is derived once and every order found once; that order is judged at the middle block
    size. Block sizes and partitioners that the loops themselves ask for give way to the sweep's.

    ``chosen`` are from :func:`sweep_points`, ``options`` are whatever else there is to choose;
    ``progress`` is told before the topology and each plan. Raises MeshprepError on loops that do
    not fit the mesh, and where no way works; the message is the first's.
    """
    plans: dict[str, Plan] = {}
    failures: list[tuple[str, str]] = []
    kept: tuple[SweepPoint, Plan] | None = None
    options, total = options or Options(), 1 + len(chosen)
    progress(0, total, "topology")
    start = clock()
    full, specs = plan_request_maps(mesh, loops)
    # the loops have no wishes of their own for what the sweep varies
    free = [{k: v for k, v in spec.options.items() if k not in VARIED} for spec in specs]
    derived = full, [replace(s, options=o) for s, o in zip(specs, free, strict=True)]
    topology = {"topology": round(clock() - start, 4)}
    sizes = sorted({point.block_size for point in chosen})
    ordered: Ordered | None = None
    for number, point in enumerate(chosen):
        progress(1 + number, total, point.name)
        if ordered is None or point.method != chosen[number - 1].method:
            first = replace(point.over(options), block_size=sizes[len(sizes) // 2])
            ordered = order(mesh, (), first, derived=derived)
            # every plan bears the whole cost, as if it were made alone
            ordered = replace(ordered, seconds={**ordered.seconds, **topology})
        within = _within(progress, 1 + number, total, point.name)
        try:
            made = cut_and_colour(ordered, point.over(options), within)
        except MeshprepError as error:
            failures.append((point.name, str(error)))
            continue
        plans[point.name] = _figures_only(made)
        best = best_plan(plans)
        if kept is None or (best and best.name == point.name):
            kept = point, made
    if kept is None:
        raise MeshprepError("no plan could be made; {}: {}".format(*failures[0]))
    plans[kept[0].name] = kept[1]
    comparison = Comparison(tuple(plans), tuple(plans.values()))
    return SweepResult(comparison, tuple(failures), kept[0])


def _within(progress: Progress, number: int, total: int, name: str) -> Progress:
    """Tells the progress of one plan as a fraction of it."""
    return lambda done, stages, stage: progress(number + min(0.99, done / stages), total, name)


def _figures_only(plan: Plan) -> Plan:
    """The plan without arrays; its matrices are told of where it is the best."""
    loops = {name: LoopPlan(p.loop, p.sizes, {}, {}, p.default) for name, p in plan.loops.items()}
    groups: dict[str, Any] = {"tags": {}, "group_names": {}, "further_groups": {}}
    return replace(plan, ordering={}, maps={}, loops=loops, matrices={}, **groups)


def _cut(text: str) -> tuple[str, dict[str, Any]]:
    """A partitioner and its options from ``NAME:OPTION=VALUE:...``."""
    name, *pairs = text.strip().split(":")
    check_choice("partitioner", name, PARTITIONERS)
    given = {}
    for pair in pairs:
        option, equals, value = pair.partition("=")
        if not (option and equals):
            raise MeshprepError(f"partitioner '{text}' must read NAME:OPTION=VALUE:...")
        given[option] = value
    effective(PARTITIONERS[name].options, given, f"partitioner '{name}'")
    return name, given


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

    ``measure`` times calls of the best plan's loops. Raises MeshprepError on bad input, outputs
    that exist, and where no plan could be made.
    """
    source.find_format()
    files.check([source.path])
    # reading and topology come first
    made = 2 + len(chosen)
    total = made + len(files.outputs)
    progress(0, total, "reading")
    mesh = source.read()

    def later(by: int) -> Progress:
        return lambda done, _, name: progress(by + done, total, name)

    result = sweep(mesh, requests, chosen, options, progress=later(1))
    if measure:
        result = replace(result, comparison=result.comparison.timed())
    first = result.comparison.plans[0]
    check_default(requests, first.loops.values(), first.sizes)
    title = f"meshprep sweep: {len(result.comparison.plans)} plans of {source.path.name}"
    meshes = [NamedMesh(str(source.path), bare(mesh))]
    write_files(result.comparison, files, later(made), meshes=meshes, title=title)
    return result
