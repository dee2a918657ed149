"""Reports as files: a page, its figures, a picture, a mesh for ParaView; all of them or none."""

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
from .draw import draw_views
from .draw.paint import Painted, by_group
from .meshes import BlockValues, NamedMesh, bare, block_values, mesh_of, read_meshes, scene_of

PICTURE_PIXELS, WHITE = 1600, (255, 255, 255)


@dataclass(frozen=True)
class ReportFiles:
    """What to write beside the tables, and from which meshes."""

    html: Path | None = None
    png: Path | None = None
    vtu: Path | None = None
    # Meshes of the plans, as they were read or renumbered; ``png`` and ``vtu`` need that of the
    # first plan.
    meshes: tuple[Path, ...] = ()
    # The loop of the first plan that ``png`` and ``vtu`` show; None for its first one.
    loop: str | None = None
    overwrite: bool = False

    @property
    def outputs(self) -> list[Path]:
        return [path for path in (self.html, self.png, self.vtu) if path]

    def check(self, inputs: Sequence[Path] = ()) -> None:
        """Raise MeshprepError for what cannot be written, before any work is done."""
        for path, endings in (
            (self.html, (".html", ".htm")),
            (self.png, (".png",)),
            (self.vtu, (".vtu",)),
        ):
            if path is not None and path.suffix.lower() not in endings:
                raise MeshprepError(f"{path}: name it *{endings[0]}, so that programs know it")
        if (self.png or self.vtu) and not self.meshes:
            raise MeshprepError("a plan holds no coordinates: name its mesh with --mesh")
        check_targets(self.outputs, overwrite=self.overwrite, inputs=[*inputs, *self.meshes])


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
    found = [meshes] if isinstance(meshes, Mesh) else meshes
    named = [NamedMesh(f"mesh {i}", bare(mesh)) for i, mesh in enumerate(found, 1)]
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

    ``meshes`` are at hand already; those of ``files.meshes`` are read and compared with the plans,
    also where nothing is written. ``title`` is the page's.

    Raises MeshprepError where a mesh cannot be read, is another than the plan's, or cannot be
    drawn; where a file exists and ``overwrite`` is False.
    """
    read = int(bool(files.meshes))
    total = read + len(files.outputs)
    if read:
        progress(0, total, "reading meshes")
    known = [*meshes, *_needed(read_meshes(files.meshes, comparison.plans), comparison.plans)]
    if not files.outputs:
        return []
    with together(files.outputs, overwrite=files.overwrite) as staged:
        paths = dict(zip(files.outputs, staged, strict=True))
        for done, (target, path) in enumerate(paths.items(), start=read):
            progress(done, total, f"writing {target.name}")
            if target == files.html:
                from .html import html_report

                page = html_report(comparison, known, title=title)
                # names of files may be no UTF-8
                path.write_text(page, encoding="utf-8", errors="replace")
            elif target == files.png:
                path.write_bytes(_picture(*_first(comparison, files, known)))
            else:
                write_vtu(*_first(comparison, files, known), path)
    return files.outputs


def _needed(meshes: Sequence[NamedMesh], plans: Sequence[Plan]) -> Sequence[NamedMesh]:
    """The meshes, each of which must be some plan's."""
    made_from = {content for p in plans for content in (p.source_hash, p.mesh_hash)}
    for named in meshes:
        if named.mesh.content_hash() not in made_from:
            what = "the plan was" if len(plans) == 1 else "every plan was"
            raise MeshprepError(
                f"{what} made from another mesh than {named.name}: name its own with --mesh"
            )
    return meshes


def _first(
    comparison: Comparison, files: ReportFiles, meshes: Sequence[NamedMesh]
) -> tuple[Plan, str, NamedMesh]:
    """The plan, its loop and its mesh that a picture shows."""
    plan = comparison.plans[0]
    loop = files.loop or next(iter(plan.loops))
    # the error names the loops there are
    return plan, plan[loop].loop.name, mesh_of(plan, meshes)


def _picture(plan: Plan, loop: str, named: NamedMesh) -> bytes:
    """The mesh by block on white; of cells in space the surface with a cut beside it."""
    values = block_values(plan, loop)
    n_blocks = int(values.block.max(initial=-1)) + 1
    views = draw_views(scene_of(plan, loop, named), PICTURE_PIXELS)
    painted = [by_group(view, values.block, n_blocks) for view in views]
    return _beside(painted).on(WHITE).png()


def _beside(pictures: Sequence[Painted]) -> Painted:
    """Pictures of one palette side by side, on the middle of the tallest."""
    tall = max(p.pixels.shape[0] for p in pictures)
    columns = []
    for one in pictures:
        above = (tall - one.pixels.shape[0]) // 2
        below = tall - one.pixels.shape[0] - above
        columns.append(np.pad(one.pixels, ((above, below), (0, 0))))
    return Painted(np.concatenate(columns, axis=1), pictures[0].palette)


# Cells of ParaView for the elements of a loop, by their number of nodes.
_AS_CELLS = {2: "line", 3: "triangle", 4: "quad"}
IDS = ("original_id", "plan_id")
FIELDS = ("block", "block_colour", "thread_colour", "input_block", *IDS, "reuse")


def paraview_mesh(plan: Plan, loop: str, named: NamedMesh) -> Mesh:
    """The mesh in the order of its file's making, with fields that tell the plan of a loop.

    Where the loop runs over cells or nodes, these carry the fields. Where it runs over edges or
    faces, these stand in the file as cells of their own, so that every element can be coloured, cut
    and selected; the cells they lie between are left out, since a picture of both would hide one
    behind the other. Raises MeshprepError where the mesh has no coordinates, or its elements no
    nodes.

    ``named`` is what :func:`~meshprep.report.meshes.mesh_of` gives. The fields are ``block``,
    ``block_colour`` and ``thread_colour`` (from 0), ``input_block`` (the element's block when the
    input order is cut into runs), ``original_id`` and ``plan_id`` (places in the input and in the
    plan, from 0) and ``reuse`` (of the element's block).
    """
    mesh, over = named.mesh, plan[loop].loop.over
    if mesh.coordinates is None:
        raise MeshprepError(f"{named.name} has no coordinates: ParaView needs them")
    fields = _fields(block_values(plan, loop), plan.ordering[over].old_to_new)
    pieces = _pieces(mesh, plan, over)
    if not pieces:
        raise MeshprepError(f"there are no elements of '{over}': nothing is left for ParaView")
    # one type of cells alone is the set itself
    names = [name for name, _, _ in pieces] if len(pieces) > 1 else ["cells"]
    sets, maps, start = [mesh.sets["nodes"]], [], 0
    dats = [d for d in mesh.dats if (d.name, d.set) == ("coordinates", "nodes")]
    if over == "nodes":
        dats += [Dat(field, over, values) for field, values in fields.items()]
    for name, (_, cell_type, table) in zip(names, pieces, strict=True):
        sets.append(ElementSet(name, len(table), cell_type))
        maps.append(SetMap(f"{name}->nodes", name, "nodes", table))
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


def _pieces(mesh: Mesh, plan: Plan, over: str) -> list[tuple[str, str | None, NDArray[np.int32]]]:
    """Name, type and nodes of the cells that stand for the elements, type by type.

    For nodes these are all cells of the mesh; elements of other sets have their corners.
    """
    cells = mesh.sets.get("cells")
    parts = () if cells is None else cells.parts or ("cells",)
    if over in ("nodes", "cells", *parts):
        chosen = (over,) if over in parts else parts
        return [(name, mesh.sets[name].cell_type, mesh.cell_map(name).table) for name in chosen]
    if over in mesh.sets:
        table, cell_type = mesh.map(f"{over}->nodes").table, mesh.sets[over].cell_type
        tables = [table if cell_type is None else table[:, : shape_of(cell_type).n_corners]]
    else:
        entity = over.removeprefix("boundary_")
        prefix = over.removesuffix(entity)
        faces = part_names(layout_of(mesh), entity, prefix) if entity in ENTITY_DIM else ()
        names = [f"{name}->nodes" for name in faces or (over,)]
        # derived with its map to cells the set holds the same elements as the plan's
        inner = are_between_cells(over, plan.maps)
        full = derive(mesh, [*[f"{entity_of(over)}->cells"] * inner, *names])
        tables = [full.map(name).table for name in names]
    if not all(table.shape[1] in _AS_CELLS for table in tables):
        raise MeshprepError(f"the elements of '{over}' have not 2, 3 or 4 nodes: not for ParaView")
    # a mesh file has no types without cells
    kinds = [(_AS_CELLS[table.shape[1]], table) for table in tables if len(table)]
    return [(kind, kind, table) for kind, table in kinds]
