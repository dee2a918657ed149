"""The sections of one loop of a plan: pictures and main figures; folded, all figures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan import LoopPlan, Plan
from meshprep_runtime.plan.metrics import Histogram, Histograms
from meshprep_runtime.types.maps import Float64s, Int32s, SetMap, UInt8s

from ...topology.names import are_between_cells
from ..columns import Column, facts
from ..draw import Scene, View, count_entries, views_of
from ..meshes import NamedMesh, block_values, mesh_of, scene_of
from ..table import Table
from ..verdict import BETTER, outcome, verdict
from . import charts
from .charts import counted_in, dots_body
from .parts import BEFORE_AFTER, Figure, Section, count, slug
from .svg import place_axis

# Blocks beyond which a second picture shows a part of a plane mesh.
CROWDED = 240
# Blocks in the picture of that part.
PART_BLOCKS = 60
# Width of a picture of a mesh.
PIXELS = 1000
# Largest height and width of a picture of a map.
SPY_PIXELS = (270, 360)
# Name in the metrics, words in the title, label of the axis.
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
        if self.alone or not self.column.plan:
            return loop
        return f"{self.column.plan}: {loop}"


def sections(
    shown: ShownVariant,
    meshes: Sequence[NamedMesh],
    table: Table,
    *,
    pictures: bool = True,
) -> Iterator[Section]:
    """The mesh before and after with the main figures; then, folded, everything else.

    ``table`` holds every figure. Without ``pictures`` all is folded.
    """
    column = shown.column
    over = shown.loop.loop.over
    after = column.after
    n = shown.plan.sizes[over]
    size = f"{count(after.blocks, 'block')} of {after.block_size:,} at most"
    # An introduction of one sentence.
    parts = [f"{n:,} {over} in {size}, cut by {after.partitioner}"]
    if after.listed:
        parts.append("blocks list their elements, whose numbers stay")
    if outcome(column.before, after) != BETTER:
        parts.append(verdict(column.before, after))
    if column.tuned:
        parts.append(column.tuned)
    intro = f"{'; '.join(parts)}."
    section_id = shown.id("section")
    if n == 0:
        yield Section(section_id, shown.label, intro)
        return
    # The first figures are open.
    figures: list[Figure] = []
    if pictures:
        figures = [*_meshes(shown, meshes), *_maps(shown)]
        yield Section(
            id=section_id,
            title=shown.label,
            intro=intro,
            figures=[figure for figure in figures if figure.first],
            tables=[facts(column)],
        )
    # Everything else is folded away.
    folded = [figure for figure in figures if not figure.first]
    yield Section(
        id=shown.id("more"),
        title=f"Every figure of {shown.label}",
        intro="" if pictures else intro,
        figures=[*folded, *_histograms(shown)],
        tables=[table],
        folded=True,
    )


def _histograms(shown: ShownVariant) -> Iterator[Figure]:
    """How many blocks have a figure, for each of some; and the blocks of each colour."""
    # An input order that could not be staged has none of them.
    before = shown.column.before
    after = shown.column.after
    old_histograms = before.histograms if before else Histograms()
    old_sizes = before.block_colour_sizes if before else ()
    # Reuse, staged points and thread colours.
    for name, words, label in HISTOGRAMS:
        histogram: Histogram | None = getattr(after.histograms, name)
        if histogram and histogram.bins:
            title = f"Blocks by {words}"
            body = charts.histogram(
                before=getattr(old_histograms, name),
                after=histogram,
                label=label,
                alt=f"{title}: {_spoken(histogram)}",
            )
            yield Figure(
                id=shown.id(name),
                title=title,
                caption="",
                body=body,
                legend=BEFORE_AFTER,
            )
    # Block colours.
    if sizes := after.block_colour_sizes:
        title = "Blocks of each block colour"
        colours = count(len(sizes), "colour")
        alt = f"{title}: {colours} of {min(sizes):,} to {max(sizes):,} blocks"
        body = charts.class_sizes(old_sizes, sizes, alt)
        yield Figure(
            id=shown.id("block-colours"),
            title=title,
            caption="",
            body=body,
            legend=BEFORE_AFTER,
        )


def _spoken(histogram: Histogram) -> str:
    """A histogram in words, for those who do not see it."""
    low = histogram.bins[0] * histogram.width
    high = histogram.bins[-1] * histogram.width
    return f"{count(sum(histogram.blocks), 'block')} from {low:.4g} to {high:.4g}"


def _meshes(shown: ShownVariant, meshes: Sequence[NamedMesh]) -> Iterator[Figure]:
    """Pictures of the mesh, or why there are none."""
    try:
        named = mesh_of(shown.plan, meshes)
        scene = scene_of(shown.plan, shown.column.loop, named)
    except MeshprepError as error:
        missing = f"No picture of the mesh: {error}."
        yield Figure(
            id=shown.id("mesh"),
            title="The mesh by block",
            missing=missing,
            first=True,
        )
    else:
        yield from _pictures(shown, scene)


def _pictures(shown: ShownVariant, scene: Scene) -> Iterator[Figure]:
    """The mesh by block before and after, and by block colour."""
    # Colours come with matplotlib, which is loaded when a mesh is drawn.
    from ..draw.colours import by_group, by_number

    values = block_values(shown.plan, shown.column.loop, shown.column.variant)
    n_blocks = _number(values.block)
    size = shown.column.after.block_size
    part = PART_BLOCKS / n_blocks if n_blocks > CROWDED else 1.0
    views = views_of(scene, PIXELS, part)
    # The blocks of the input order, and those of the plan in every view.
    text = f"Runs of {size:,} in the order of the input"
    colours = by_group(views[0], values.input_block, _number(values.input_block))
    yield _mesh_figure(
        shown=shown,
        view=views[0],
        rgb=colours,
        what="input",
        title="Before",
        caption=text,
        first=True,
    )
    for view in views:
        colours = by_group(view, values.block, n_blocks)
        left_out = _left_out_of_view(shown, view)
        caption = f"Blocks of the plan on {VIEWS[view.name]}. {left_out}"
        yield _mesh_figure(
            shown=shown,
            view=view,
            rgb=colours,
            what="blocks",
            title="After",
            caption=caption,
            first=view is views[0],
        )
    text = f"{count(_number(values.block_colour), 'block colour')}"
    # Block colours; of a plane mesh with many blocks in the part alone: from afar they
    # blur.
    colour_views = views
    if part < 1 and views[0].name == "mesh":
        colour_views = views[1:]
    for view in colour_views:
        colours = by_number(view, values.block_colour, _number(values.block_colour))
        title = f"Block colours on {VIEWS[view.name]}"
        yield _mesh_figure(
            shown=shown,
            view=view,
            rgb=colours,
            what="block-colours",
            title=title,
            caption=text,
        )


def _number(values: Int32s) -> int:
    """How many blocks or colours there are."""
    return int(values.max(initial=-1)) + 1


def _mesh_figure(
    shown: ShownVariant,
    view: View,
    rgb: Float64s,
    what: str,
    title: str,
    caption: str,
    *,
    first: bool = False,
) -> Figure:
    """A picture of a mesh, with axes where it has directions of the mesh."""
    from ..draw.picture import png_of_view

    # The words stand in for the picture where it is not seen.
    alt = f"{title}. {caption}"
    file = png_of_view(view, rgb, PIXELS)
    if view.axes:
        x = place_axis(view.axes[0], *view.x)
        y = place_axis(view.axes[1], *view.y, ticks=5)
        body = charts.picture(file=file, height=view.height, x=x, y=y, alt=alt)
    else:
        size = (PIXELS, round(PIXELS * view.height))
        body = charts.bare_picture(file, size, alt)
    return Figure(
        id=shown.id(f"{view.name}-{what}"),
        title=title,
        caption=caption,
        body=body,
        first=first,
    )


def _left_out_of_view(shown: ShownVariant, view: View) -> str:
    """Which part of the mesh a picture shows, and how many elements are seen."""
    over = shown.loop.loop.over
    inner = over.endswith("faces") and are_between_cells(over, shown.plan.maps)
    shows = ""
    if view.name == "surface" and inner:
        shows = "outer sides show the first inner face of their cell; "
    elif view.name == "part":
        shows = f"a square about the middle, {view.at}; "
    elif view.name == "cut":
        shows = f"cut at {view.at}; "
    n_seen = view.count_elements()
    return f"{shows}{n_seen:,} of {shown.plan.sizes[over]:,} {over} are seen"


def _maps(shown: ShownVariant) -> Iterator[Figure]:
    """The leading map in the order of the input and of the plan."""
    # The leading map shows best what an order does.
    name = shown.loop.loop.leading_map
    if name is None:
        return
    m = shown.loop.maps[name]
    # In the order of the input: points against elements.
    order = shown.plan.ordering
    shape = (shown.plan.sizes[m.to_set], m.size)
    column = np.repeat(np.arange(m.size, dtype=np.int32), m.arity)
    before = count_entries(
        rows=order[m.to_set].new_to_old[m.table].ravel(),
        columns=order[m.from_set].new_to_old[column],
        shape=shape,
        most=SPY_PIXELS,
    )
    reach = f"Which of {shape[0]:,} {m.to_set} each of {m.size:,} {m.from_set} reaches"
    title = f"Map {name} in the input order"
    yield _map_figure(
        shown=shown,
        m=m,
        dots=before,
        what="map-before",
        title=title,
        caption=reach,
    )
    # In the order in which blocks run the elements.
    variant = shown.loop.variant(shown.column.variant)
    after = count_entries(
        rows=variant.by_place(m.table).ravel(),
        columns=column,
        shape=shape,
        most=SPY_PIXELS,
    )
    order_name = "plan" if variant.elements is None else "order of the blocks"
    title = f"Map {name} in the {order_name}"
    yield _map_figure(
        shown=shown,
        m=m,
        dots=after,
        what="map-after",
        title=title,
        caption=counted_in(after),
    )


def _map_figure(
    shown: ShownVariant,
    m: SetMap,
    dots: UInt8s,
    what: str,
    title: str,
    caption: str,
) -> Figure:
    """The picture of a map: its elements across, its points down."""
    across = (m.from_set, m.size)
    down = (m.to_set, shown.plan.sizes[m.to_set])
    body = dots_body(dots=dots, across=across, down=down, alt=f"{title}. {caption}")
    return Figure(id=shown.id(what), title=title, caption=caption, body=body)
