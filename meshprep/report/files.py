"""Reports as files: a page, its figures, a picture, a mesh for ParaView; all of them or none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np

from meshprep_runtime.errors import MeshprepError, Progress
from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.atomic import together

from ..io.outputs import check_targets
from .compare import Comparison
from .draw import draw_views
from .draw.paint import Painted, by_group
from .html import html_report, sections_of, svg_files
from .meshes import NamedMesh, block_values, mesh_of, read_meshes, scene_of
from .vtu import write_vtu

PICTURE_PIXELS, WHITE = 1600, (255, 255, 255)


@dataclass(frozen=True)
class ReportFiles:
    """What to write beside the tables, and from which meshes."""

    html: Path | None = None
    png: Path | None = None
    vtu: Path | None = None
    # A ZIP file of the figures of the page as SVG.
    figures: Path | None = None
    # Meshes of the plans, as they were read or renumbered; ``png`` and ``vtu`` need that of the
    # first plan.
    meshes: tuple[Path, ...] = ()
    # The loop of the first plan that ``png`` and ``vtu`` show; None for its first one.
    loop: str | None = None
    overwrite: bool = False

    @property
    def outputs(self) -> list[Path]:
        return [path for path in (self.html, self.figures, self.png, self.vtu) if path]

    def check(self, inputs: Sequence[Path] = ()) -> None:
        """Raise MeshprepError for what cannot be written, before any work is done."""
        for path, endings in (
            (self.html, (".html", ".htm")),
            (self.figures, (".zip",)),
            (self.png, (".png",)),
            (self.vtu, (".vtu",)),
        ):
            if path is not None and path.suffix.lower() not in endings:
                raise MeshprepError(f"{path}: name it *{endings[0]}, so that programs know it")
        if (self.png or self.vtu) and not self.meshes:
            raise MeshprepError("a plan holds no coordinates: name its mesh with --mesh")
        check_targets(self.outputs, overwrite=self.overwrite, inputs=[*inputs, *self.meshes])


def write_files(
    comparison: Comparison,
    files: ReportFiles,
    progress: Progress = lambda done, total, name: None,
    *,
    meshes: Sequence[NamedMesh] = (),
    title: str = "",
    best: tuple[str, str] | None = None,
) -> list[Path]:
    """Write what ``files`` names; all files appear together, or none.

    ``meshes`` are at hand already; those of ``files.meshes`` are read and compared with the plans,
    also where nothing is written. ``title`` is the page's, ``best`` the name of the best plan and
    what it is best in, where there is one.

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
        sections = sections_of(comparison, known) if files.html or files.figures else None
        for done, (target, path) in enumerate(paths.items(), start=read):
            progress(done, total, f"writing {target.name}")
            if target == files.html:
                page = html_report(comparison, title=title, best=best, sections=sections)
                # names of files may be no UTF-8
                path.write_text(page, encoding="utf-8", errors="replace")
            elif target == files.figures and sections is not None:
                _write_zip(path, svg_files(sections.all()))
            elif target == files.png:
                path.write_bytes(_picture(*_first(comparison, files, known)))
            else:
                write_vtu(*_first(comparison, files, known), path)
    return files.outputs


def _write_zip(path: Path, texts: Mapping[str, str]) -> None:
    """Files of text; the bytes follow from these alone."""
    with ZipFile(path, "w", ZIP_DEFLATED) as packed:
        for name, text in texts.items():
            packed.writestr(ZipInfo(name), text.encode("utf-8", "replace"), ZIP_DEFLATED)


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
