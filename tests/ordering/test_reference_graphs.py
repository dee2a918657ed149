"""Bandwidth and profile against published graphs and other programs, where they are at hand."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest

from meshprep import io
from meshprep.ordering import METHODS, LocalityProblem, figures, gps
from meshprep_runtime import Ordering

from .graphs import envelope, graph

BESIDE = Path(__file__).parents[3] / "shared" / "data" / "dwt"
FOLDER = Path(os.environ.get("MESHPREP_REFERENCE_GRAPHS", BESIDE))
TEXT = (FOLDER / "ref.csv").read_text() if FOLDER.is_dir() else ""
ROWS = list(csv.DictReader(TEXT.splitlines()))

pytestmark = pytest.mark.skipif(not ROWS, reason="the reference graphs are not at hand")


def read(path):
    found = io.read(path)
    pairs = found.map("edges->vertices").table
    return graph(found.size("vertices"), pairs[pairs[:, 0] != pairs[:, 1]])


def problem_of(row):
    g = read(FOLDER / f"{row['matrix']}.mtx")
    pairs = np.stack([np.repeat(np.arange(g.n_rows), np.diff(g.offset)), g.index], 1)
    return g, LocalityProblem(pairs.astype(np.int32), g.n_rows)


def measured(row):
    g = read(FOLDER / f"{row['matrix']}.mtx")
    place = np.empty(g.n_rows, np.int32)
    place[gps(g)] = np.arange(g.n_rows, dtype=np.int32)
    return envelope(g), envelope(g, place)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["matrix"])
def test_within_five_per_cent_of_the_reference(row):
    before, after = measured(row)
    assert (before.bandwidth, before.profile) == (
        int(row["orig_bw"]),
        int(row["orig_prof"]),
    )
    assert int(row["bw_lower"]) <= after.bandwidth <= 1.05 * int(row["refGPS_bw"])
    best_rcm = min(int(row["scipyRCM_prof"]), int(row["GLRCM_prof"]))
    assert after.profile <= 1.25 * best_rcm


def test_better_than_the_references_on_the_whole():
    found = [(measured(row)[1], row) for row in ROWS]
    best_rcm = [min(int(row["scipyRCM_prof"]), int(row["GLRCM_prof"])) for _, row in found]
    low = sum(
        after.profile <= best for (after, _), best in zip(found, best_rcm, strict=True)
    )
    narrow = sum(after.bandwidth <= int(row["refGPS_bw"]) for after, row in found)
    bandwidth = [after.bandwidth / int(row["refGPS_bw"]) for after, row in found]
    profile = [
        after.profile / best for (after, _), best in zip(found, best_rcm, strict=True)
    ]
    assert narrow >= 37
    assert low >= 34
    assert np.exp(np.mean(np.log(bandwidth))) < 0.94
    assert np.exp(np.mean(np.log(profile))) < 0.89


@pytest.mark.parametrize(
    ("method", "bandwidth", "profile"), [("rcm", 0.97, 0.99), ("sloan", 2.2, 0.75)]
)
def test_the_other_orders_against_rcm_from_a_george_liu_node(method, bandwidth, profile):
    ratios = []
    for row in ROWS:
        g, problem = problem_of(row)
        place = Ordering.from_new_to_old(METHODS[method].function(problem)).old_to_new
        after = envelope(g, place)
        ratios.append(
            (after.bandwidth / int(row["GLRCM_bw"]), after.profile / int(row["GLRCM_prof"]))
        )
    assert (np.exp(np.mean(np.log(ratios), axis=0)) < (bandwidth, profile)).all()


def test_the_wavefront_is_that_of_the_references():
    for row in ROWS:
        found = figures(problem_of(row)[1])
        assert found.rms_wavefront == pytest.approx(float(row["orig_rmsw"]), abs=0.0051)
