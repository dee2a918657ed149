"""One loop of one plan: five figures beside the mesh before and after, and, folded, the rest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan import LoopPlan, Plan
from meshprep_runtime.plan.metrics import Histogram, Histograms
from meshprep_runtime.types.maps import Int32s, SetMap, UInt8s

from ...topology.names import are_between_cells
from ..columns import Column, facts
from ..draw import Picture, Scene, draw_views, spy
from ..draw.paint import Painted, by_group, by_number, count_shown
from ..meshes import NamedMesh, block_values, mesh_of, scene_of
from ..table import Table
from ..verdict import BETTER, outcome, verdict
from . import charts
from .charts import counted_in, dots_body
from .parts import BEFORE_AFTER, Figure, Section, count, slug
from .svg import place_axis

# Blocks that the picture of a part of a plane mesh is to show, and how many are too many at once.
PART_BLOCKS, CROWDED = 60, 240
PIXELS, SPY_PIXELS = 1000, (270, 360)
# Name in the metrics, words for the title, and for the axis.
HISTOGRAMS = (
    ("reuse", "reuse factor", "reuse factor of a block"),
    ("staged_points", "staged points", "points that a block stages"),
    ("thread_colours", "thread colours", "thread colours of a block"),
)
VIEWS = {
    "mesh": "the mesh",
    "part": "the middle of the mesh",
    "surface": "the surface",
    "cut": "a cut through the mesh",
}


@dataclass(frozen=True, eq=False)
class ShownVariant:
    """A variant of a loop of a plan, and its place on the page.

    ``alone`` where the page is about one plan, which then needs no name.
    """

    plan: Plan
    column: Column
    number: int
    alone: bool = False

    def id(self, what: str) -> str:
        """An id of a figure, unique on the page."""
        return slug(f"plan{self.number}", self.column.loop, self.column.variant, what)

    @property
    def loop(self) -> LoopPlan:
        """The loop with its arrays."""
        return self.plan[self.column.loop]

    @property
    def label(self) -> str:
        """The loop, after the plan's file where there are several."""
        loop = f"{self.column.loop}, {self.column.variant}"
        return loop if self.alone or not self.column.plan else f"{self.column.plan}: {loop}"


def sections(
    shown: ShownVariant, meshes: Sequence[NamedMesh], table: Table, *, pictures: bool = True
) -> Iterator[Section]:
    """Some figures of a loop beside the mesh before and after; then, folded, all there is.

    ``table`` holds every figure. Without ``pictures`` all is folded.
    """
    column, over = shown.column, shown.loop.loop.over
    after, n = column.after, shown.plan.sizes[over]
    size = f"{count(after.blocks, 'block')} of {after.block_size:,} at most"
    parts = [f"{n:,} {over} in {size}, cut by {after.partitioner}"]
    parts += ["blocks list their elements, whose numbers stay"] * bool(after.listed)
    parts += [verdict(column.before, after)] * (outcome(column.before, after) != BETTER)
    intro = "; ".join([*parts, *filter(None, [column.tuned])])
    name = shown.id("section")
    if n == 0:
        yield Section(name, shown.label, f"{intro}.")
        return
    found = [*_meshes(shown, meshes), *_maps(shown)] if pictures else []
    if pictures:
        first = [f for f in found if f.first]
        yield Section(name, shown.label, f"{intro}.", first, [facts(column)])
    more = [*(f for f in found if not f.first), *_histograms(shown)]
    intro, title = "" if pictures else f"{intro}.", f"Every figure of {shown.label}"
    yield Section(shown.id("more"), title, intro, more, [table], folded=True)


def _histograms(shown: ShownVariant) -> Iterator[Figure]:
    before, after = shown.column.before, shown.column.after
    old = before.histograms if before else Histograms()
    for name, what, label in HISTOGRAMS:
        found: Histogram | None = getattr(after.histograms, name)
        if found and found.bins:
            title = f"Blocks by {what}"
            body = charts.histogram(getattr(old, name), found, label, f"{title}: {_spoken(found)}")
            yield Figure(shown.id(name), title, "", body, BEFORE_AFTER)
    if sizes := after.block_colour_sizes:
        title = "Blocks of each block colour"
        alt = f"{title}: {count(len(sizes), 'colour')} of {min(sizes):,} to {max(sizes):,} blocks"
        body = charts.class_sizes(before.block_colour_sizes if before else (), sizes, alt)
        yield Figure(shown.id("block-colours"), title, "", body, BEFORE_AFTER)


def _spoken(found: Histogram) -> str:
    low, high = found.bins[0] * found.width, found.bins[-1] * found.width
    return f"{count(sum(found.blocks), 'block')} from {low:.4g} to {high:.4g}"


def _meshes(shown: ShownVariant, meshes: Sequence[NamedMesh]) -> Iterator[Figure]:
    """Pictures of the mesh, or why there are none."""
    try:
        named = mesh_of(shown.plan, meshes)
        scene = scene_of(shown.plan, shown.column.loop, named)
    except MeshprepError as error:
        missing = f"No picture of the mesh: {error}."
        yield Figure(shown.id("mesh"), "The mesh by block", missing=missing, first=True)
    else:
        yield from _pictures(shown, scene)


def _pictures(shown: ShownVariant, scene: Scene) -> Iterator[Figure]:
    """The mesh by block before and after, and by block colour."""
    values = block_values(shown.plan, shown.column.loop, shown.column.variant)
    n_blocks, size = _number(values.block), shown.column.after.block_size
    part = PART_BLOCKS / n_blocks if n_blocks > CROWDED else 1.0
    views = draw_views(scene, PIXELS, part)
    text = f"Runs of {size:,} in the order of the input"
    painted = by_group(views[0], values.input_block, _number(values.input_block))
    yield _mesh_figure(shown, views[0], painted, "input", "Before", text, first=True)
    for view in views:
        painted = by_group(view, values.block, n_blocks)
        about = f"Blocks of the plan on {VIEWS[view.name]}. {_about(shown, view)}"
        yield _mesh_figure(shown, view, painted, "blocks", "After", about, first=view is views[0])
    text = f"{count(_number(values.block_colour), 'block colour')}"
    # of a plane mesh with many blocks the part alone: from afar colours are a blur
    for view in views[1:] if part < 1 and views[0].name == "mesh" else views:
        painted = by_number(view, values.block_colour, _number(values.block_colour), values.block)
        title = f"Block colours on {VIEWS[view.name]}"
        yield _mesh_figure(shown, view, painted, "block-colours", title, text)


def _number(values: Int32s) -> int:
    """How many blocks or colours there are."""
    return int(values.max(initial=-1)) + 1


def _mesh_figure(
    shown: ShownVariant,
    view: Picture,
    painted: Painted,
    what: str,
    title: str,
    caption: str,
    *,
    first: bool = False,
) -> Figure:
    height, width = view.element.shape
    alt, png = f"{title}. {caption}", painted.png()
    if view.axes:
        x, y = place_axis(view.axes[0], *view.x), place_axis(view.axes[1], *view.y, ticks=5)
        body = charts.picture(png, (width, height), x, y, alt)
    else:
        body = charts.bare_picture(png, (width, height), alt)
    return Figure(shown.id(f"{view.name}-{what}"), title, caption, body, first=first)


def _about(shown: ShownVariant, view: Picture) -> str:
    """What was left out of a picture, in words."""
    seen, over = count_shown(view.element), shown.loop.loop.over
    n = shown.plan.sizes[over]
    inner = over.endswith("faces") and are_between_cells(over, shown.plan.maps)
    kind = {
        "surface": "outer sides show the first inner face of their cell; " if inner else "",
        "part": f"a square about the middle, {view.at}; ",
        "cut": f"cut at {view.at}; ",
    }.get(view.name, "")
    return f"{kind}{seen:,} of {n:,} {over} are seen"


def _maps(shown: ShownVariant) -> Iterator[Figure]:
    """The leading map in the order of the input and of the plan."""
    name = shown.loop.loop.leading_map
    if name is None:
        return
    m, order = shown.loop.maps[name], shown.plan.ordering
    shape, most = (shown.plan.sizes[m.to_set], m.size), SPY_PIXELS
    column = np.repeat(np.arange(m.size, dtype=np.int32), m.arity)
    before = order[m.to_set].new_to_old[m.table].ravel(), order[m.from_set].new_to_old[column]
    reach = f"Which of {shape[0]:,} {m.to_set} each of {m.size:,} {m.from_set} reaches"
    title = f"Map {name} in the input order"
    yield _map_figure(shown, m, spy(*before, shape, most), "map-before", title, reach)
    variant = shown.loop.variant(shown.column.variant)
    after = spy(variant.by_place(m.table).ravel(), column, shape, most)
    where = "plan" if variant.elements is None else "order of the blocks"
    title = f"Map {name} in the {where}"
    yield _map_figure(shown, m, after, "map-after", title, counted_in(after))


def _map_figure(
    shown: ShownVariant, m: SetMap, dots: UInt8s, what: str, title: str, caption: str
) -> Figure:
    across, down = (m.from_set, m.size), (m.to_set, shown.plan.sizes[m.to_set])
    body = dots_body(dots, across, down, f"{title}. {caption}")
    return Figure(shown.id(what), title, caption, body)
