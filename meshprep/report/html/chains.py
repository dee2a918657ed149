"""The chains of a plan on the page: their figures, and the layers of one tile."""

from collections.abc import Sequence

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan import Plan
from meshprep_runtime.plan.chains.tiles import ChainPlan

from ..chains import chain_tables, layers, owner
from ..draw import Picture, draw_views, place
from ..draw.paint import by_number
from ..meshes import NamedMesh, mesh_of
from . import charts
from .parts import Figure, Section, count, slug

PIXELS = 700
# Tiles that a picture shows, about.
SHOWN_TILES = 9


def sections(
    names: Sequence[str], plans: Sequence[Plan], meshes: Sequence[NamedMesh]
) -> list[Section]:
    """A section with a table of all chains and a picture of each; none without chains."""
    tables = chain_tables(names, plans)
    if not tables:
        return []
    figures = [
        _figure(plan, chain, number, meshes)
        for number, plan in enumerate(plans, start=1)
        for chain in plan.chains.values()
    ]
    intro = (
        "All loops of a chain run on one tile after the other, while it is in cache. Redundancy is "
        "what tiles run by what loops alone would run; bytes are predicted."
    )
    return [Section("chains", "Chains", intro, figures, tables)]


def _figure(plan: Plan, chain: ChainPlan, number: int, meshes: Sequence[NamedMesh]) -> Figure:
    over = chain.tiles.loops[-1].over
    title = f"A tile of chain {chain.name}"
    name = slug(f"plan{number}", "chain", chain.name)
    caption = (
        f"The {over} of one tile and, around them, those that it runs besides, or copies: "
        "the farther out, the fewer of its loops run them. Lines are the borders of tiles."
    )
    try:
        scene = place(mesh_of(plan, meshes).mesh, over, plan.maps)
    except MeshprepError as error:
        missing = f"No picture of the mesh: {error}."
        return Figure(name, title, caption, missing=missing, row="mesh")
    view = draw_views(scene, PIXELS, min(1.0, SHOWN_TILES / chain.tiles.n_tiles))[-1]
    new, n = plan.ordering[over].old_to_new, plan.sizes[over]
    tile = owner(chain, n)[new]
    layer, n_layers = layers(chain, _middle(view, tile), n)
    painted = by_number(view, layer[new], n_layers, tile)
    height, width = view.element.shape
    alt = f"{title}: {count(n_layers - 1, 'layer')}"
    body = charts.bare_picture(painted.png(), (width, height), alt)
    return Figure(name, title, caption, body, row="mesh")


def _middle(view: Picture, tile: np.ndarray) -> int:
    """The tile at the middle of a picture, as near as there is one."""
    y, x = np.nonzero(view.element >= 0)
    if not y.size:
        return 0
    height, width = view.element.shape
    nearest = np.argmin((y - height / 2) ** 2 + (x - width / 2) ** 2)
    return max(int(tile[view.element[y[nearest], x[nearest]]]), 0)
