"""Reports as files: a page, a picture, a mesh for ParaView; all of them or none."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError, Progress
from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.file.atomic import together

from ..io.outputs import check_targets
from ..mesh import Dat, ElementSet, Mesh, SetMap
from ..mesh.cells import shape_of
from ..topology import derive
from ..topology.layout import layout_of
from ..topology.names import ENTITY_DIM, are_between_cells, entity_of, part_names
from .compare import Comparison, compare
from .draw import views_of
from .meshes import (
    BlockValues,
    NamedMesh,
    bare,
    block_values,
    mesh_of,
    read_meshes,
    scene_of,
)

# Width of a picture.
PICTURE_PIXELS = 1600
# Formats of pictures, by their endings.
PICTURES = (".png", ".pdf", ".svg")


@dataclass(frozen=True)
class ReportFiles:
    """The files to write, and the meshes that they show."""

    html: Path | None = None
    picture: Path | None = None
    vtu: Path | None = None
    # Meshes of the plans, as they were read or renumbered; ``picture`` and ``vtu`` need
    # that of the first plan.
    meshes: tuple[Path, ...] = ()
    # The loop of the first plan that ``picture`` and ``vtu`` show; None for its first one.
    loop: str | None = None
    overwrite: bool = False

    @property
    def outputs(self) -> list[Path]:
        return [path for path in (self.html, self.picture, self.vtu) if path]

    def check(self, inputs: Sequence[Path] = (), *, at_hand: int = 0) -> None:
        """Raise MeshprepError for what cannot be written, before any work is done.

        ``at_hand`` is the number of meshes that are not to be read.
        """
        for path, endings in (
            (self.html, (".html", ".htm")),
            (self.picture, PICTURES),
            (self.vtu, (".vtu",)),
        ):
            if path is not None and path.suffix.lower() not in endings:
                names = " or ".join(f"*{ending}" for ending in endings)
                raise MeshprepError(f"{path}: name it {names}, so that programs know it")
        # Pictures and ParaView need places of nodes.
        if (self.picture or self.vtu) and not (self.meshes or at_hand):
            raise MeshprepError("a plan holds no coordinates: name its mesh with --mesh")
        check_targets(
            self.outputs, overwrite=self.overwrite, inputs=[*inputs, *self.meshes]
        )


def write_report(
    target: str | Path,
    plans: Plan | Path | str | Sequence[Plan | Path | str],
    meshes: Mesh | Sequence[Mesh] = (),
    *,
    measure: bool = True,
    overwrite: bool = False,
) -> None:
    """Write the page of one plan or several.

    Parameters
    ----------
    target : str or Path
        ``*.html``; one file that needs no network.
    plans : Plan, path, or a sequence of these
    meshes : Mesh or sequence of Mesh
        Those of the plans, as read or renumbered, for the pictures.
    measure : bool
        Time calls of the loops on this machine.
    overwrite : bool
        Replaces a file that exists.

    Raises
    ------
    MeshprepError
        For another ending, a mesh of no plan, and a file that exists.
    """
    all_meshes = [meshes] if isinstance(meshes, Mesh) else meshes
    named = [NamedMesh(f"mesh {i}", bare(mesh)) for i, mesh in enumerate(all_meshes, 1)]
    files = ReportFiles(html=Path(target), overwrite=overwrite)
    files.check()
    comparison = compare(plans, measure=measure)
    write_files(comparison, files, meshes=_needed(named, comparison.plans))


def write_files(
    comparison: Comparison,
    files: ReportFiles,
    progress: Progress = lambda done, total, name: None,
    *,
    meshes: Sequence[NamedMesh] = (),
    title: str = "",
) -> list[Path]:
    """Write what ``files`` names; all files appear together, or none.

    ``meshes`` are at hand already; those of ``files.meshes`` are read and compared with the
    plans, also where nothing is written. ``title`` is the page's.

    Raises MeshprepError where a mesh cannot be read, is another than the plan's, or cannot
    be drawn; where a file exists and ``overwrite`` is False.
    """
    # Read the meshes, and refuse those of no plan.
    reading = 1 if files.meshes else 0
    total = reading + len(files.outputs)
    if files.meshes:
        progress(0, total, "reading meshes")
    meshes_read = read_meshes(files.meshes, comparison.plans)
    all_meshes = [*meshes, *_needed(meshes_read, comparison.plans)]
    if not files.outputs:
        return []
    # Write all files under other names; they appear together.
    with together(files.outputs, overwrite=files.overwrite) as staged:
        paths = dict(zip(files.outputs, staged, strict=True))
        for done, (target, path) in enumerate(paths.items(), start=reading):
            progress(done, total, f"writing {target.name}")
            if target == files.html:
                from .html import html_report

                page = html_report(comparison, all_meshes, title=title)
                # names of files may not be UTF-8
                path.write_text(page, encoding="utf-8", errors="replace")
            elif target == files.picture:
                plan, loop, named = _shown_in_picture(comparison, files, all_meshes)
                _write_picture(
                    plan=plan,
                    loop=loop,
                    named=named,
                    path=path,
                    ending=target.suffix.lower(),
                )
            else:
                shown = _shown_in_picture(comparison, files, all_meshes)
                write_vtu(*shown, path)
    return files.outputs


def _needed(meshes: Sequence[NamedMesh], plans: Sequence[Plan]) -> Sequence[NamedMesh]:
    """The meshes, each of which must be some plan's."""
    # A mesh may come in the order of the input, or in that of the plan.
    hashes = {plan.source_hash for plan in plans} | {plan.mesh_hash for plan in plans}
    for named in meshes:
        if named.mesh.content_hash() not in hashes:
            which = "the plan" if len(plans) == 1 else "every plan"
            raise MeshprepError(
                f"{which} was made from another mesh than {named.name}: "
                "name its own with --mesh"
            )
    return meshes


def _shown_in_picture(
    comparison: Comparison, files: ReportFiles, meshes: Sequence[NamedMesh]
) -> tuple[Plan, str, NamedMesh]:
    """The plan, its loop and its mesh that a picture shows."""
    plan = comparison.plans[0]
    loop = files.loop or next(iter(plan.loops))
    # plan[loop] raises for an unknown loop, and names the loops there are
    return plan, plan[loop].loop.name, mesh_of(plan, meshes)


def _write_picture(
    plan: Plan, loop: str, named: NamedMesh, path: Path, ending: str
) -> None:
    """The mesh by block on white; of cells in space the surface with a cut beside it."""
    # Pictures come with matplotlib, which is loaded when one is asked for.
    from .draw.colours import by_group
    from .draw.picture import save_views

    values = block_values(plan, loop)
    n_blocks = int(values.block.max(initial=-1)) + 1
    views = views_of(scene_of(plan, loop, named), PICTURE_PIXELS)
    painted = [(view, by_group(view, values.block, n_blocks)) for view in views]
    save_views(painted=painted, path=path, width=PICTURE_PIXELS, ending=ending)


# Cells of ParaView that stand for edges and faces, by their number of nodes.
_AS_CELLS = {2: "line", 3: "triangle", 4: "quad"}
# Fields of the file, see :func:`paraview_mesh`.
FIELDS = (
    "block",
    "block_colour",
    "thread_colour",
    "input_block",
    "original_id",
    "plan_id",
    "reuse",
)


def paraview_mesh(plan: Plan, loop: str, named: NamedMesh) -> Mesh:
    """The mesh in the order of the input, with the plan of a loop as fields.

    Where the loop runs over cells or nodes, these carry the fields. Where it runs over
    edges or faces, these stand in the file as cells of their own, so that every element can
    be coloured, cut and selected; the cells they lie between are left out, since a picture
    of both would hide one behind the other. Raises MeshprepError where the mesh has no
    coordinates, or its elements no nodes.

    ``named`` is what :func:`~meshprep.reporting.meshes.mesh_of` gives. The fields are
    ``block``, ``block_colour`` and ``thread_colour`` (from 0), ``input_block`` (the
    element's block when the input order is cut into runs), ``original_id`` and ``plan_id``
    (places in the input and in the plan, from 0) and ``reuse`` (of the element's block).
    """
    mesh = named.mesh
    over = plan[loop].loop.over
    if mesh.coordinates is None:
        raise MeshprepError(f"{named.name} has no coordinates: ParaView needs them")
    fields = _fields(block_values(plan, loop), plan.ordering[over].old_to_new)
    pieces = _cells_by_type(mesh, plan, over)
    if not pieces:
        raise MeshprepError(
            f"there are no elements of '{over}': nothing is left for ParaView"
        )
    # The nodes, with their coordinates; where the loop runs over them, with the fields.
    sets = [mesh.sets["nodes"]]
    maps = []
    dats = [d for d in mesh.dats if (d.name, d.set) == ("coordinates", "nodes")]
    if over == "nodes":
        dats += [Dat(field, over, values) for field, values in fields.items()]
    # The cells of each type, with their rows of the fields. A single type of cells is the
    # set ``cells`` itself.
    names = ["cells"]
    if len(pieces) > 1:
        names = [name for name, _, _ in pieces]
    start = 0
    for name, (_, cell_type, table) in zip(names, pieces, strict=True):
        sets.append(ElementSet(name, len(table), cell_type))
        maps.append(
            SetMap(name=f"{name}->nodes", from_set=name, to_set="nodes", table=table)
        )
        rows = slice(start, start + len(table))
        if over != "nodes":
            dats += [Dat(field, name, values[rows]) for field, values in fields.items()]
        start += len(table)
    if len(names) > 1:
        sets.append(ElementSet("cells", start, parts=tuple(names)))
    return Mesh(sets, maps, dats)


def write_vtu(plan: Plan, loop: str, named: NamedMesh, path: Path) -> None:
    """Write :func:`paraview_mesh`; checked by reading it back."""
    from .. import io

    io.write(paraview_mesh(plan, loop, named), path, format="vtu", overwrite=True)


def _fields(values: BlockValues, plan_id: NDArray[np.int32]) -> dict[str, NDArray]:
    """The values of :data:`FIELDS`, by the input's numbers."""
    columns = (
        values.block,
        values.block_colour,
        values.thread_colour,
        values.input_block,
        np.arange(plan_id.size, dtype=np.int32),
        plan_id,
        values.reuse,
    )
    return dict(zip(FIELDS, columns, strict=True))


def _cells_by_type(
    mesh: Mesh, plan: Plan, over: str
) -> list[tuple[str, str | None, NDArray[np.int32]]]:
    """Name, type and nodes of the cells that stand for the elements, type by type.

    For nodes these are all cells of the mesh; elements of other sets have their corners.
    """
    # Cells and nodes: the cells of the mesh.
    cells = mesh.sets.get("cells")
    parts: tuple[str, ...] = ()
    if cells is not None:
        parts = cells.parts or ("cells",)
    if over in ("nodes", "cells", *parts):
        chosen = (over,) if over in parts else parts
        return [
            (name, mesh.sets[name].cell_type, mesh.cell_map(name).table) for name in chosen
        ]
    # Edges and faces: of the mesh, or derived.
    if over in mesh.sets:
        table = mesh.map(f"{over}->nodes").table
        cell_type = mesh.sets[over].cell_type
        if cell_type is not None:
            table = table[:, : shape_of(cell_type).n_corners]
        tables = [table]
    else:
        tables = _derived_tables(mesh, plan, over)
    if not all(table.shape[1] in _AS_CELLS for table in tables):
        raise MeshprepError(
            f"the elements of '{over}' have not 2, 3 or 4 nodes: not for ParaView"
        )
    # A mesh file has no types without cells.
    pieces: list[tuple[str, str | None, NDArray[np.int32]]] = []
    for table in tables:
        if len(table):
            cell_type = _AS_CELLS[table.shape[1]]
            pieces.append((cell_type, cell_type, table))
    return pieces


def _derived_tables(mesh: Mesh, plan: Plan, over: str) -> list[NDArray[np.int32]]:
    """The nodes of the elements of a derived set, for each number of corners."""
    entity = over.removeprefix("boundary_")
    prefix = over.removesuffix(entity)
    sets: Sequence[str] = (over,)
    if entity in ENTITY_DIM:
        sets = part_names(layout_of(mesh), entity, prefix) or (over,)
    maps = [f"{name}->nodes" for name in sets]
    asked = list(maps)
    # Asked for with its map to cells, a set holds inner facets alone, as in the plan.
    if are_between_cells(over, plan.maps):
        asked.insert(0, f"{entity_of(over)}->cells")
    full = derive(mesh, asked)
    return [full.map(name).table for name in maps]
