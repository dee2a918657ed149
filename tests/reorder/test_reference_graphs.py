"""Bandwidth and profile against published graphs and other programs, where they are at hand."""

import csv
from pathlib import Path

import numpy as np
import pytest

from meshprep.reorder import envelope, gps

from .graphs import graph

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "dwt"
TEXT = (FOLDER / "ref.csv").read_text() if FOLDER.is_dir() else ""
ROWS = list(csv.DictReader(TEXT.splitlines()))

pytestmark = pytest.mark.skipif(not ROWS, reason="the reference graphs are not at hand")


def read(path):
    lines = [line for line in path.read_text().splitlines() if not line.startswith("%")]
    n = int(lines[0].split()[0])
    pairs = [[int(i) - 1 for i in line.split()[:2]] for line in lines[1:]]
    return graph(n, [p for p in pairs if p[0] != p[1]])


def measured(row):
    g = read(FOLDER / f"{row['matrix']}.mtx")
    place = np.empty(g.n_rows, np.int32)
    place[gps(g)] = np.arange(g.n_rows, dtype=np.int32)
    return envelope(g), envelope(g, place)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["matrix"])
def test_within_five_per_cent_of_the_reference(row):
    before, after = measured(row)
    assert (before.bandwidth, before.profile) == (int(row["orig_bw"]), int(row["orig_prof"]))
    assert int(row["bw_lower"]) <= after.bandwidth <= 1.05 * int(row["refGPS_bw"])
    best_rcm = min(int(row["scipyRCM_prof"]), int(row["GLRCM_prof"]))
    assert after.profile <= 1.25 * best_rcm


def test_better_than_the_references_on_the_whole():
    found = [(measured(row)[1], row) for row in ROWS]
    narrow = sum(after.bandwidth <= int(row["refGPS_bw"]) for after, row in found)
    bandwidth = [after.bandwidth / int(row["refGPS_bw"]) for after, row in found]
    profile = [
        after.profile / min(int(row["scipyRCM_prof"]), int(row["GLRCM_prof"]))
        for after, row in found
    ]
    assert narrow >= 37
    assert np.exp(np.mean(np.log(bandwidth))) < 0.94
    assert np.exp(np.mean(np.log(profile))) < 0.96
