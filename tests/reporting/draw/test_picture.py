"""Files of pictures, opened by others: their size, their colours, their format."""

import io
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from meshprep.io.generate import generate
from meshprep.reporting.draw import place, png, views_of
from meshprep.reporting.draw.colours import LIGHT, by_group, by_number
from meshprep.reporting.draw.picture import png_of_view, save_views

WIDTH = 200
# Colours of a file are few, so that each is near to what was drawn.
NEAR = 12


@pytest.fixture(scope="module")
def painted():
    """The surface of a cube and a cut through it, in blocks of seven cells."""
    mesh = generate("box", nx=4, ny=4, nz=4)
    block = (np.arange(mesh.size("cells")) // 7).astype(np.int32)
    views = views_of(place(mesh, "cells"), WIDTH)
    return [(view, by_group(view, block, int(block.max()) + 1)) for view in views]


def seen(file):
    """Red, green, blue and opacity of each pixel, as numbers that can be subtracted."""
    return np.asarray(Image.open(file).convert("RGBA")).astype(int)


def shows(pixels, colour):
    """Whether more than a few pixels have nearly this colour."""
    distance = np.abs(pixels[..., :3] - colour).max(axis=-1)
    return ((distance < NEAR) & (pixels[..., 3] > 200)).sum() > 20


def test_a_picture_of_a_page_shows_the_colours_and_is_clear_outside(painted):
    view, rgb = painted[0]
    pixels = seen(io.BytesIO(png_of_view(view, rgb, WIDTH)))
    assert pixels.shape == (round(WIDTH * view.height), WIDTH, 4)
    # the cube is a hexagon: its corners are not in those of the picture
    assert (pixels[[0, 0, -1, -1], [0, -1, 0, -1], 3] == 0).all()
    assert 0.6 < (pixels[..., 3] > 0).mean() < 0.9
    colours = np.unique((rgb * 255).round().astype(int), axis=0)
    assert len(colours) >= 6
    assert all(shows(pixels, colour) for colour in colours)


def test_every_colour_is_where_its_cells_are():
    mesh = generate("box", nx=2, ny=2, nz=1, type="quad")
    (view,) = views_of(place(mesh, "cells"), WIDTH)
    middle = mesh.coordinates[mesh.map("cells->nodes").table].mean(axis=1)
    rgb = by_number(view, np.arange(4, dtype=np.int32), 4)
    pixels = seen(io.BytesIO(png_of_view(view, rgb, WIDTH)))
    for cell, (x, y) in enumerate(middle):
        across = int((x - view.x[0]) / (view.x[1] - view.x[0]) * WIDTH)
        down = int((view.y[1] - y) / (view.y[1] - view.y[0]) * len(pixels))
        wanted = [int(LIGHT[cell][i : i + 2], 16) for i in (1, 3, 5)]
        assert np.abs(pixels[down, across, :3] - wanted).max() < NEAR


def test_views_stand_side_by_side_on_white(painted, tmp_path):
    path = tmp_path / "a.png"
    save_views(painted, path, WIDTH, ".png")
    pixels = seen(path)
    tallest = max(view.height for view, _ in painted)
    assert pixels.shape == (round(WIDTH * tallest), 2 * WIDTH, 4)
    assert (pixels[..., 3] == 255).all()
    assert (pixels[0, 0] == 255).all()
    # the cut, a square between its margins, is centred on the taller surface
    is_paper = (pixels[:, WIDTH + WIDTH // 2, :3] > 250).all(axis=-1)
    above, below = np.argmin(is_paper), np.argmin(is_paper[::-1])
    assert abs(above - below) <= 2
    for _, rgb in painted:
        for colour in np.unique((rgb * 255).round().astype(int), axis=0):
            assert shows(pixels, colour)


def test_a_picture_for_the_web_is_svg_that_holds_the_triangles(painted, tmp_path):
    path = tmp_path / "a.svg"
    save_views(painted, path, WIDTH, ".svg")
    root = ET.parse(path).getroot()
    assert root.tag.endswith("}svg")
    width, height = (float(root.attrib[n].removesuffix("pt")) for n in ("width", "height"))
    assert width / height == pytest.approx(2 / max(v.height for v, _ in painted), rel=0.02)
    images = [e for e in root.iter() if e.tag.endswith("}image")]
    assert images
    assert path.stat().st_size > 3000


def test_a_picture_for_a_paper_is_pdf_that_holds_the_triangles(painted, tmp_path):
    path = tmp_path / "a.pdf"
    save_views(painted, path, WIDTH, ".pdf")
    data = path.read_bytes()
    assert data.startswith(b"%PDF-1.")
    assert data.rstrip().endswith(b"%%EOF")
    assert b"/Subtype /Image" in data
    # an empty page is smaller
    save_views([(view, rgb[:0]) for view, rgb in _empty(painted)], path, WIDTH, ".pdf")
    assert len(data) > 2 * path.stat().st_size


def _empty(painted):
    from dataclasses import replace

    nothing = np.arange(0)
    for view, rgb in painted:
        yield replace(view, pieces=view.pieces.chosen(nothing), light=rgb[:0, 0]), rgb[:0]


def test_few_colours_come_back_exactly():
    palette = np.array(
        [[0, 0, 0, 0], [30, 136, 170, 110], [30, 136, 170, 160], [30, 136, 170, 255]],
        np.uint8,
    )
    pixels = palette[np.random.default_rng(2).integers(0, 4, (20, 30))]
    back = seen(io.BytesIO(png(pixels)))
    assert back.shape == pixels.shape
    assert np.abs(back - pixels).max() < NEAR


def test_colours_of_large_areas_stay_as_they_are():
    palette = np.array([[*bytes.fromhex(c[1:]), 255] for c in LIGHT], np.uint8)
    pixels = np.repeat(np.repeat(palette[None], 60, axis=0), 20, axis=1)
    # more colours than a file keeps, on few pixels
    noise = np.random.default_rng(3).integers(0, 256, (10, 10, 4), dtype=np.uint8)
    pixels[:10, :10, :3] = noise[..., :3]
    back = seen(io.BytesIO(png(pixels)))
    assert (back[20:] == pixels[20:]).all()


def test_the_same_picture_is_the_same_file(painted):
    view, rgb = painted[0]
    assert png_of_view(view, rgb, WIDTH) == png_of_view(view, rgb, WIDTH)
