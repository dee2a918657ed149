"""The page in a real browser: nothing missing, nothing outside the window, no network."""

import base64
import os
import re

import pytest

from meshprep import Options, prepare
from meshprep.io.generate import generate
from meshprep.reporting.compare import Comparison
from meshprep.reporting.html import html_report
from meshprep.reporting.meshes import NamedMesh

from .browser import Browser, find_browser

WIDE, PHONE = 1280, 360
OVERFLOW = """
(() => {
  const limit = document.documentElement.clientWidth;
  const scrolls = e => e && (getComputedStyle(e).overflowX === 'auto' || scrolls(e.parentElement));
  return [document.documentElement.scrollWidth, limit,
    [...document.querySelectorAll('body *')].filter(
      e => e.getBoundingClientRect().right > limit + 1 && !scrolls(e.parentElement)
    ).map(e => e.outerHTML.slice(0, 120))];
})()
"""
FIGURES = """
[...document.querySelectorAll('figure')].map(f => {
  const drawing = f.querySelector(':scope > svg, :scope > img, :scope > .missing');
  const box = drawing ? drawing.getBoundingClientRect() : {width: 0, height: 0};
  const text = [...f.querySelectorAll('text')].map(t => t.getBoundingClientRect());
  const svg = f.querySelector(':scope > svg');
  const frame = svg ? svg.getBoundingClientRect() : null;
  return {
    id: f.id, kind: drawing ? drawing.tagName + '.' + drawing.className : '',
    width: box.width, height: box.height,
    alt: drawing ? drawing.getAttribute('alt') || drawing.getAttribute('aria-label') : null,
    cut: [...f.querySelectorAll('text')].filter(
      t => t.getBoundingClientRect().left < frame.left - 1 ||
        t.getBoundingClientRect().right > frame.right + 1).map(t => t.textContent),
    small: text.filter(t => Math.max(t.height, 0) < 8).length,
  };
})
"""
OPENED = "document.querySelectorAll('details').forEach(d => { d.open = true })"
COLOURS = """
(() => {
  const of = (e, what) => getComputedStyle(document.querySelector(e))[what];
  return [of('body', 'backgroundColor'), of('body', 'color'), of('svg .tick', 'fill')];
})()
"""


@pytest.fixture(scope="module")
def browser():
    program = find_browser()
    if program is None:
        assert not os.environ.get("MESHPREP_REQUIRE_BROWSER"), "Chromium is missing"
        pytest.skip("needs Chromium")
    with Browser(program) as one:
        yield one


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Two plans of a plane mesh and one of tetrahedra, whose mesh is not given for the last."""
    plane, solid = generate("delaunay2d", cells=700), generate("box", nx=6, ny=6, nz=6)
    cut = [
        prepare(plane, ["edges->cells"], Options(partition=p, block_size=64)).plan
        for p in ("blocks", "metis")
    ]
    cut.append(prepare(solid, ["faces->cells"], Options(block_size=64)).plan)
    names = ("ours.plan.h5", "metis.plan.h5", "box-with-a-name-of-some-length.plan.h5")
    comparison = Comparison(names, tuple(cut))
    folder = tmp_path_factory.mktemp("page")
    whole, without = folder / "whole.html", folder / "without.html"
    meshes = [NamedMesh("plane.msh", plane), NamedMesh("box.msh", solid)]
    whole.write_text(html_report(comparison, meshes))
    without.write_text(html_report(comparison))
    return whole, without


def _channels(colour):
    return [int(x) for x in re.findall(r"\d+", colour)[:3]]


@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_the_page_fits_without_errors_or_network(browser, page, width):
    events = browser.open(page[0], width)
    asked = [
        e["params"]["request"]["url"] for e in events if _is(e, "Network.requestWillBeSent")
    ]
    assert [u for u in asked if not u.startswith("data:")] == [page[0].as_uri()]
    wrong = [
        e for e in events if _is(e, "Log.entryAdded") or _is(e, "Runtime.exceptionThrown")
    ]
    assert wrong == []
    for _ in range(2):
        scroll, limit, outside = browser.evaluate(OVERFLOW)
        assert outside == []
        assert scroll <= limit <= width
        browser.evaluate(OPENED)


def _is(event, method):
    return event.get("method") == method


@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_every_figure_is_there_and_readable(browser, page, width):
    browser.open(page[0], width)
    browser.evaluate(OPENED)
    figures = {f["id"]: f for f in browser.evaluate(FIGURES)}
    assert {name for name in figures if name.startswith("loop-")} == {
        "loop-edges-cells-reuse",
        "loop-faces-cells-reuse",
    }
    for number, kind, loop in (
        (1, "mesh", "edges"),
        (2, "mesh", "edges"),
        (3, "surface", "faces"),
    ):
        start = f"plan{number}-{loop}-cells-s64"
        for what in ("blocks", "block-colours", "input"):
            assert f"{start}-{kind}-{what}" in figures
        for what in ("reuse", "staged-points", "thread-colours", "block-colours"):
            assert f"{start}-{what}" in figures
        assert {f"{start}-map-before", f"{start}-map-after"} <= set(figures)
    assert "plan3-faces-cells-s64-cut-blocks" in figures
    for figure in figures.values():
        assert figure["kind"].lower().startswith(("svg", "img")), figure
        assert figure["width"] > 0.6 * min(width, 330), figure
        assert figure["height"] > 100, figure
        assert figure["alt"], figure
        assert figure["cut"] == []
        assert figure["small"] == 0, figure
    pictures = browser.evaluate(
        "[...document.images].map(i => i.complete && i.naturalWidth)"
        ".concat([...document.querySelectorAll('image')].map(i => i.getBBox().width))"
    )
    assert len(pictures) >= 3 * 4
    assert all(pictures)


GLANCE = """
[...document.querySelectorAll('.lead, .beside table, .beside figure')].map(
  e => [e.tagName, e.getBoundingClientRect().bottom])
"""
TEXTS = """
[...document.querySelectorAll('p, figcaption, h3, summary, caption, dd')].map(e => e.textContent)
"""


def test_a_page_of_one_loop_is_seen_at_a_glance(browser, tmp_path):
    """Verdict, picture and figures in the first 900 pixels, and no sentence twice."""
    mesh = generate("airfoil", cells=3000, shuffle=True)
    found = Comparison(("a.plan.h5",), (prepare(mesh, ["edges->cells"]).plan,))
    path = tmp_path / "one.html"
    path.write_text(html_report(found.timed(), [NamedMesh("a.msh", mesh)]))
    browser.open(path, WIDE)
    kinds, bottoms = zip(*browser.evaluate(GLANCE), strict=True)
    assert kinds == ("P", "TABLE", "FIGURE", "FIGURE")
    assert max(bottoms) <= 900
    texts = [re.sub(r"\s+", " ", text).strip() for text in browser.evaluate(TEXTS)]
    sentences = [s for text in texts for s in re.split(r"(?<=[.;:]) ", text) if s]
    assert sorted(sentences) == sorted(set(sentences))


def test_light_and_dark_differ_and_both_can_be_read(browser, page):
    shown = {}
    for dark in (False, True):
        browser.open(page[0], WIDE, dark=dark)
        paper, ink, ticks = (sum(_channels(c)) / 3 for c in browser.evaluate(COLOURS))
        assert abs(paper - ink) > 150
        assert abs(paper - ticks) > 90
        shown[dark] = paper
    assert shown[False] > 200 > 60 > shown[True]


def test_it_prints_on_paper(browser, page):
    browser.open(page[0], WIDE, dark=True)
    found = browser.send("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
    document = base64.b64decode(found["data"])
    assert document.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", document)) <= 30


def test_without_meshes_the_page_says_what_is_missing(browser, page):
    browser.open(page[1], PHONE)
    figures = {f["id"]: f for f in browser.evaluate(FIGURES)}
    missing = [f for f in figures.values() if "missing" in f["kind"]]
    assert len(missing) == 3
    said = browser.evaluate("document.querySelector('.missing').innerText")
    assert "--mesh" in said
    assert browser.evaluate(OVERFLOW)[2] == []
