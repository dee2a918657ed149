"""``meshprep split --weights auto:TIMINGS.json``: shares from the times of a run."""

import json

import pytest


def timings(seconds, owned):
    """What a program wrote of one loop on ranks."""
    times = {"calls": 5, "boundary": 0.0, "exec": 0.0, "wait": 1.0, "other": 0.0, "messages": 2}
    ranks = zip(seconds, owned, strict=True)
    loop = {str(r): times | {"core": s, "elements": {"core": n}} for r, (s, n) in enumerate(ranks)}
    return json.dumps({"loops": {"flux": loop}})


@pytest.mark.parametrize("cut", ["annealed", "metis"])
def test_the_faster_rank_gets_more(shows, mesh_file, tmp_path, cut):
    path = tmp_path / "timings.json"
    # as long for the same number: 1 to 3
    path.write_text(timings([3.0, 1.0], [500, 500]))
    words = ("--parts", 2, "--loop", "edges:cells", "--cut", cut, "--weights", f"auto:{path}")
    out = shows("split", mesh_file, *words, "--json", "-q")
    cells = json.loads(out)["splits"][0]["sets"]["cells"]
    share = cells["most owned"] / cells["owned"]
    assert share == pytest.approx(0.75, abs=0.02)


def test_timings_of_another_number_of_ranks_are_refused(fails, mesh_file, tmp_path):
    path = tmp_path / "timings.json"
    path.write_text(timings([3.0, 1.0], [500, 500]))
    err = fails("split", mesh_file, "--parts", 3, "--weights", f"auto:{path}")
    assert "has the times of 2 ranks, but there are 3 parts" in err
    err = fails("split", mesh_file, "--parts", 3, "--weights", "auto:none.json")
    assert "cannot read timings none.json" in err
