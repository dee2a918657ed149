"""The commands in Python, by their names: what ``meshprep NAME`` does, on objects or files.

A mesh is a file's name, a :class:`~meshprep.Mesh`, or a mesh of meshio, scikit-fem or
PyVista. Nothing is written unless a file is named for it, but for :func:`split`, whose
result is a file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meshprep_runtime.errors import MeshprepError, Progress
from meshprep_runtime.loop import show_options
from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.checks.result import CheckResult
from meshprep_runtime.plan.file.seal import is_parts, is_plan

from .io.source import MeshSource
from .loops.options import Options
from .loops.requests import LoopRequest, Loops, given_requests, read_requests
from .pipeline.steps import Prepared, prepare

if TYPE_CHECKING:
    from .distribute.job.run import SplitJobResult
    from .mesh import Mesh
    from .pipeline.tune import Tuning
    from .reporting.compare import Comparison
    from .reporting.describe import Description
    from .reporting.sweep import SweepResult


def _tell_nobody(done: float, total: float, name: str) -> None:
    """The progress that is shown to nobody."""


def read(path: str | Path, **how: Any) -> Any:
    """Read a mesh or a plan.

    Parameters
    ----------
    path : str or path
        A mesh file, the folder of an OpenFOAM case, or a plan.
    **how
        Of a mesh: ``format``, where its name does not tell; ``dimension``, which accepts
        loose cells of a lower dimension; ``sets``, what the datasets of a file are that
        does not say it.

    Returns
    -------
    Mesh or Plan

    Raises
    ------
    MeshprepError
        For files that are missing, damaged, or of an unknown format.

    Examples
    --------
    >>> import meshprep
    >>> mesh = meshprep.read("wing.msh")  # doctest: +SKIP
    >>> plan = meshprep.read("wing.plan.h5")  # doctest: +SKIP
    """
    from .io.front import read as read_mesh

    # Options are those of meshes; without any the content tells what the file is.
    if not how and is_plan(Path(path)):
        return Plan.load(path)
    if not how and is_parts(Path(path)):
        raise MeshprepError(
            f"{path} is a file of parts: ranks load it by "
            "meshprep_runtime.DistributedPlan.load"
        )
    return read_mesh(path, **how)


def reorder(
    mesh: Any,
    loops: Loops | str | Path = (),
    options: Options | None = None,
    *,
    output: str | Path | None = None,
    plan: str | Path | None = None,
    overwrite: bool = False,
    drop: bool = False,
    progress: Progress = _tell_nobody,
    **chosen: Any,
) -> Prepared:
    """Renumber a mesh and plan its loops, as ``meshprep reorder`` does.

    Parameters
    ----------
    mesh : str, path or mesh
        It is not changed.
    loops : sequence of LoopRequest or str, mapping, or file
        ``"faces->cells"`` stands for one increment, ``"loops.toml"`` for the loops of a
        file, ``{NAME: {"over": SET, "args": [...]}}`` for what such a file holds; none at
        all for the default loop.
    options : Options, optional
    output : str or path, optional
        Where to write the mesh in its new order; its ending tells the format.
    plan : str or path, optional
        Where to write the plan, ``*.plan.h5``.
    overwrite : bool
        Replaces files that exist.
    drop : bool
        Writes the mesh without what its format does not hold.
    progress : callable
        ``progress(done, total, name)`` is called before each stage.
    **chosen
        Options by name, such as ``target="cpu"``; they go before those of ``options``.

    Returns
    -------
    Prepared
        The mesh in its new order, ``mesh``, and the ``plan``.

    Raises
    ------
    MeshprepError
        On bad input, unknown names, files that exist, and losses without ``drop``.

    Notes
    -----
    The plan is proved before it is given out, and files appear together or not at all.
    About linear in the entries of the maps; the first call on a machine compiles for about
    half a minute.
    """
    from .io.objects import as_mesh

    options = (options or Options()).for_names(chosen)
    # Without files all stays in memory.
    if output is None and plan is None:
        return prepare(as_mesh(mesh), _as_loops(loops), options, progress=progress)
    from .pipeline.workflow import Job, run

    job = Job(
        source=_source_of(mesh),
        output=None if output is None else Path(output),
        plan=None if plan is None else Path(plan),
        planned=True,
        requests=_as_requests(loops),
        options=options,
        overwrite=overwrite,
        drop=drop,
        # Without a file for the mesh it still gets its new order.
        renumbers=True,
    )
    done = run(job, progress)
    assert done.plan is not None
    assert done.mesh is not None
    return Prepared(done.mesh, done.plan)


def plan(
    mesh: Any,
    loops: Loops | str | Path = (),
    options: Options | None = None,
    *,
    output: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress = _tell_nobody,
    **chosen: Any,
) -> Plan:
    """Plan the loops of a mesh that keeps its order, as ``meshprep plan`` does.

    Parameters
    ----------
    mesh, loops, options, progress, **chosen
        As of :func:`reorder`.
    output : str or path, optional
        Where to write the plan, ``*.plan.h5``.
    overwrite : bool
        Replaces a file that exists.

    Returns
    -------
    Plan
        Its nodes and cells have the numbers of the mesh.

    Raises
    ------
    MeshprepError
        On bad input, unknown names, and files that exist.
    """
    from .io.objects import as_mesh

    # The order of the mesh is kept: no method may choose another.
    options = replace((options or Options()).for_names(chosen), method="none")
    # Without a file the plan stays in memory.
    if output is None:
        done = prepare(
            as_mesh(mesh), _as_loops(loops), options, keep_order=True, progress=progress
        )
        return done.plan
    from .pipeline.workflow import Job, run

    job = Job(
        source=_source_of(mesh),
        output=None,
        plan=Path(output),
        requests=_as_requests(loops),
        options=options,
        overwrite=overwrite,
    )
    made = run(job, progress).plan
    assert made is not None
    return made


def split(
    mesh: Any,
    parts: int | Sequence[int],
    loops: Loops | str | Path = (),
    options: Options | None = None,
    *,
    output: str | Path | None = None,
    cut: str | None = None,
    shares: Sequence[float] | str = (),
    increments: str = "auto",
    fields: bool = False,
    overwrite: bool = False,
    progress: Progress = _tell_nobody,
    **chosen: Any,
) -> "SplitJobResult":
    """Split a mesh into parts for distributed runs, as ``meshprep split`` does.

    For the owners alone, without a file, see :func:`meshprep.partition`.

    Parameters
    ----------
    mesh : str, path or mesh
        Also a plan's file, whose loops are taken, or a file of parts, to which further
        numbers of parts are added.
    parts : int or sequence of int
        Number of parts, or several.
    loops, options, progress, **chosen
        As of :func:`reorder`.
    output : str or path, optional
        The file to write; ``wing.msh`` gives ``wing.parts.h5`` beside it. A mesh in memory
        needs a name.
    cut : str, optional
        Who owns what: ``annealed``, ``metis``, ``refined``, ``rcb``, ``curve``, or
        ``file:PARTS`` with the part of each element.
    shares : sequence of float or str
        What each part owns relative to the others; without it the same.
        ``"auto:timings.json"`` takes the elements that each rank ran in a second, of a file
        with ``program.timings().to_json()`` of a run on equal parts.
    increments : str
        ``"exec"``: elements at borders are executed by both parts; ``"reverse"``:
        increments are sent back; ``"auto"``: what costs less, loop by loop.
    fields : bool
        Keeps the mesh's values in the parts, too.
    overwrite : bool
        Replaces a file that exists.

    Returns
    -------
    SplitJobResult
        The files ``written``, the ``figures`` by number of parts, and ``notes``.

    Raises
    ------
    MeshprepError
        On bad input, unknown names, files that exist, and numbers of parts that are there.
    """
    from .distribute.job.run import SplitJob, run
    from .distribute.job.split import SplitOptions

    numbers = (parts,) if isinstance(parts, int) else tuple(parts)
    # A split of a file is written beside it; that of a mesh in memory has no such place.
    in_memory = not isinstance(mesh, str | Path)
    if output is None:
        if in_memory:
            raise MeshprepError(
                "a split is a file: name it by output='NAME.parts.h5', or take "
                "meshprep.partition for the owners alone"
            )
        output = _beside(Path(mesh), ".parts.h5")
    job = SplitJob(
        source=_source_of(mesh).path,
        output=Path(output),
        parts=numbers,
        requests=_as_requests(loops),
        how=SplitOptions(
            cut=cut,
            weights=shares if isinstance(shares, str) else tuple(shares),
            increments=increments,
        ),
        options=(options or Options()).for_names(chosen),
        overwrite=overwrite,
        fields=fields,
        mesh=_source_of(mesh).read() if in_memory else None,
    )
    return run(job, progress)


def check(
    plan: str | Path | Plan,
    mesh: str | Path | None = None,
    *,
    parts: int | None = None,
    progress: Progress = _tell_nobody,
) -> CheckResult:
    """Prove a plan or a file of parts, as ``meshprep check`` does.

    Parameters
    ----------
    plan : str, path or Plan
        A plan, its file, or a file of parts.
    mesh : str or path, optional
        The mesh that it was made from, or the reordered one: its maps are compared, too.
    parts : int, optional
        Of a file of parts: prove only this split.
    progress : callable

    Returns
    -------
    CheckResult
        ``findings``, empty for a right plan, and the ``verdict`` in words.

    Raises
    ------
    PlanError
        Where a file is damaged, or belongs to another mesh.
    """
    from .pipeline.check_file import check as check_file
    from .pipeline.check_file import wrong_figures

    # A plan in memory is proved by itself.
    if isinstance(plan, Plan):
        if mesh is not None or parts is not None:
            raise MeshprepError(
                "a mesh is compared with a plan's file: save the plan first"
            )
        findings = plan.verify() or wrong_figures(plan)
        verdict = f"the plan is wrong: {len(findings)} findings"
        return CheckResult(findings, verdict if findings else "the plan is right")
    # What the file holds decides which proof it gets.
    path = Path(plan)
    against = None if mesh is None else MeshSource(Path(mesh))
    if is_parts(path):
        from .distribute.job.check import check_parts

        return check_parts(path, parts, against, progress=progress)
    if parts is not None:
        raise MeshprepError(f"{path} is no file of parts: leave parts out")
    return check_file(path, against, progress=progress)


def info(file: Any, *, order: bool = False) -> "Description":
    """What a mesh, a plan or a file of parts holds, as ``meshprep info`` shows it.

    Parameters
    ----------
    file : str, path, mesh or Plan
    order : bool
        Finds a better order of a mesh, too, and compares it with its own.

    Returns
    -------
    Description
        ``to_dict()``, and ``tables()`` to be shown; notebooks show it.

    Raises
    ------
    MeshprepError
        For files that are missing, damaged, or of an unknown format, and for the order of
        what is no mesh.
    """
    from .io.objects import as_mesh
    from .reporting.describe import describe, describe_object

    if isinstance(file, str | Path):
        return describe(MeshSource(Path(file)), order=order)
    if isinstance(file, Plan):
        return describe_object(file, order=order)
    return describe_object(as_mesh(file), order=order)


def report(
    plans: Plan | str | Path | Sequence[Plan | str | Path],
    *,
    html: str | Path | None = None,
    picture: str | Path | None = None,
    vtu: str | Path | None = None,
    mesh: Any = (),
    loop: str | None = None,
    given: Mapping[str, tuple[float, float]] | None = None,
    measure: bool = False,
    kernels: Sequence[Any] = (),
    overwrite: bool = False,
    progress: Progress = _tell_nobody,
) -> "Comparison":
    """Compare plans, or one plan with the input order, as ``meshprep report`` does.

    Parameters
    ----------
    plans : Plan, file, or a sequence of these
    html, picture, vtu : str or path, optional
        Files to write: a page; a picture (.png, .pdf or .svg), or a grid for ParaView, of
        the first plan's blocks.
    mesh : mesh, file, or a sequence of these
        Those of the plans, as read or renumbered, for the pictures.
    loop : str, optional
        The loop that ``picture`` and ``vtu`` show.
    given : mapping, optional
        By loop: milliseconds of a call, before and after, that were measured elsewhere.
    measure : bool
        Times calls of the loops on this machine.
    kernels : sequence of callable
        Kernels of loops, named as these, whose registers limit the occupancy on a GPU.
    overwrite : bool
        Replaces files that exist.
    progress : callable

    Returns
    -------
    Comparison
        Notebooks show it as tables; ``brief()``, ``figures()`` and ``best()``.

    Raises
    ------
    MeshprepError
        For files of other endings or that exist, a mesh of no plan, and damaged plans.
    """
    from .io.objects import as_mesh
    from .reporting.compare import compare
    from .reporting.files import ReportFiles, write_files
    from .reporting.meshes import NamedMesh, bare

    # Meshes are files, which are read as their plans say, or at hand.
    several = isinstance(mesh, Sequence) and not isinstance(mesh, str)
    meshes = list(mesh) if several else [mesh]
    paths = [Path(m) for m in meshes if isinstance(m, str | Path)]
    at_hand = [as_mesh(m) for m in meshes if not isinstance(m, str | Path)]
    named = [NamedMesh(f"mesh {i}", bare(m)) for i, m in enumerate(at_hand, start=1)]
    files = ReportFiles(
        html=None if html is None else Path(html),
        picture=None if picture is None else Path(picture),
        vtu=None if vtu is None else Path(vtu),
        meshes=tuple(paths),
        loop=loop,
        overwrite=overwrite,
    )
    files.check(at_hand=len(named))
    comparison = compare(plans, given, measure=measure, kernels=kernels)
    write_files(comparison, files, progress, meshes=named)
    return comparison


def tune(
    plan: Plan | str | Path,
    kernel: Any,
    loop: str | None = None,
    *,
    device: Any = "cpu",
    block_sizes: Sequence[int] | None = None,
    values: Mapping[str, Any] | None = None,
    progress: Progress = _tell_nobody,
    **search: Any,
) -> "Tuning":
    """Find the fastest way to run a loop, as ``meshprep tune`` does.

    Parameters
    ----------
    plan : Plan or file
    kernel : callable
        The loop's kernel.
    loop : str, optional
        Its loop; without it the loop of the kernel's name, or the only one.
    device : str
        ``"cpu"`` or ``"gpu"`` of this machine.
    block_sizes : sequence of int, optional
        Block sizes to try beside the plan's.
    values : mapping, optional
        By argument, arrays in the plan's numbering; without it made-up numbers.
    progress : callable
    **search
        ``strategies`` and ``layouts`` to try, by name, and ``runs`` of each.

    Returns
    -------
    Tuning
        Its ``plan`` holds what was found; ``plan.save(FILE, overwrite=True)`` keeps it.

    Raises
    ------
    MeshprepError
        For unknown names, and a kernel that does not do what its accesses say.
    """
    from .pipeline.tune import loop_of, tune_plan

    # Results are written into the plan, which may be a file.
    loaded = plan if isinstance(plan, Plan) else Plan.load(plan)
    return tune_plan(
        loaded,
        loop_of(loaded, kernel, loop),
        kernel,
        device=device,
        block_sizes=block_sizes,
        values=values,
        progress=progress,
        **search,
    )


def sweep(
    mesh: Any,
    loops: Loops | str | Path = (),
    options: Options | None = None,
    *,
    block_sizes: Sequence[int] | str | None = None,
    partitioners: Sequence[str] = ("blocks", "metis", "contiguous"),
    orders: Sequence[str] = ("gps",),
    html: str | Path | None = None,
    measure: bool = False,
    overwrite: bool = False,
    progress: Progress = _tell_nobody,
    **chosen: Any,
) -> "SweepResult":
    """Make and compare many plans of a mesh, as ``meshprep sweep`` does.

    Parameters
    ----------
    mesh, loops, options, progress, **chosen
        As of :func:`reorder`.
    block_sizes : sequence of int, or str
        ``"64:1024"`` doubles (without it, for a GPU), ``"128:512:64"`` steps by 64.
    partitioners : sequence of str
        Names, with options as in ``"blocks:effort=strong"``.
    orders : sequence of str
        Locality orders.
    html : str or path, optional
        A page to write.
    measure : bool
        Times calls of the best plan's loops on this machine.
    overwrite : bool
        Replaces a file that exists.

    Returns
    -------
    SweepResult
        The ``comparison``, the ``best``, and the ``failures``.

    Raises
    ------
    MeshprepError
        On bad input, unknown names, a file that exists, and where no plan can be made.
    """
    from .reporting.files import ReportFiles
    from .reporting.sweep import block_sizes as sizes_of
    from .reporting.sweep import run_sweep, sweep_points

    options = (options or Options()).for_names(chosen)
    # Blocks of a GPU fit a thread block, blocks of a CPU fit a cache.
    if block_sizes is None:
        block_sizes = {"gpu": "64:1024", "cpu": "512:8192"}[options.target]
    if isinstance(block_sizes, str):
        block_sizes = sizes_of(block_sizes)
    files = ReportFiles(html=None if html is None else Path(html), overwrite=overwrite)
    return run_sweep(
        _source_of(mesh),
        sweep_points(list(orders), list(partitioners), list(block_sizes)),
        _as_requests(loops),
        options,
        files,
        measure=measure,
        progress=progress,
    )


for _command in (reorder, plan, split, sweep):
    show_options(_command, Options)


@dataclass(frozen=True)
class MeshInMemory(MeshSource):
    """A mesh that is there already, in the place of a file."""

    mesh: "Mesh | None" = None

    def find_format(self) -> Any:
        """The format of the mesh: none that is read."""
        from .io.registry import Format

        return Format(
            name="memory", extensions=(), read=_no_file, write=None, losses=_no_losses
        )

    def read(self) -> "Mesh":
        """The mesh."""
        assert self.mesh is not None
        return self.mesh


def _no_file(path: Path) -> "Mesh":
    raise MeshprepError(f"{path} is no file")


def _no_losses(mesh: "Mesh", **options: Any) -> list[str]:
    return []


def _source_of(mesh: Any) -> MeshSource:
    """A file to read, or a mesh in its place."""
    if isinstance(mesh, str | Path):
        return MeshSource(Path(mesh))
    from .io.objects import as_mesh

    return MeshInMemory(Path("mesh in memory"), mesh=as_mesh(mesh))


def _as_loops(loops: Any) -> Loops:
    """The loops of a file where its name is given, and one increment for a text."""
    if isinstance(loops, Path) or (isinstance(loops, str) and loops.endswith(".toml")):
        return read_requests(Path(loops))
    if isinstance(loops, str):
        return [loops]
    return loops


def _as_requests(loops: Any) -> tuple[LoopRequest, ...]:
    """Loops as requests, without a mesh to find the default one."""
    return tuple(given_requests(_as_loops(loops)))


def _beside(path: Path, ending: str) -> Path:
    """``wing.msh`` and ``wing.plan.h5`` -> ``wing`` and the ending, beside it."""
    stem = path.name.removesuffix(path.suffix) or path.name
    return path.parent / f"{stem.removesuffix('.plan')}{ending}"
