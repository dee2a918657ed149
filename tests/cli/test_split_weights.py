"""``meshprep split --weights auto:TIMINGS.json``: parts by the times of a run."""

import json

import pytest

import meshprep


def written(path, seconds, owned=500):
    """The times of a loop on ranks that owned as many elements each."""
    loop = {}
    for rank, core in enumerate(seconds):
        times = {"core": core, "boundary": 0.0, "exec": 0.0, "other": 0.0, "wait": 9.0}
        loop[str(rank)] = {**times, "elements": {"core": owned, "exec": 5}}
    path.write_text(json.dumps({"loops": {"flux": loop}}))
    return f"auto:{path}"


@pytest.mark.parametrize("cut", ["annealed", "rcb"])
def test_the_slower_rank_gets_fewer_cells(shows, mesh_file, tmp_path, cut):
    weights = written(tmp_path / "timings.json", [4.0, 1.0])
    words = ("--parts", 2, "--cut", cut, "--weights", weights, "--json", "-q")
    cells = json.loads(shows("split", mesh_file, *words))["splits"][0]["sets"]["cells"]
    assert cells["most owned"] / cells["owned"] == pytest.approx(0.8, abs=0.02)
    done = meshprep.split(mesh_file, 2, cut=cut, shares=weights, overwrite=True)
    assert done.figures[2]["sets"]["cells"] == cells


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        ("{", "is no JSON text"),
        ('{"loops": [1]}', "holds no times of loops on ranks"),
        ("[]", "holds no times of loops on ranks"),
        ([3.0, 1.0], "has the times of 2 ranks, but there are 3 parts"),
        ([3.0, 0.0, 1.0], "rank 1 ran 500 elements in 0 seconds"),
    ],
)
def test_times_that_do_not_fit_are_refused(fails, mesh_file, tmp_path, content, said):
    path = tmp_path / "timings.json"
    if isinstance(content, str):
        path.write_text(content)
    elif content is not None:
        written(path, content)
    assert said in fails("split", mesh_file, "--parts", 3, "--weights", f"auto:{path}")
