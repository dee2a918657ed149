"""Tiles only where they are faster."""

import pytest
from test_tile_options import Flow

from meshprep_runtime.program.chains import tiling
from meshprep_runtime.program.chains.tiling import LOOPS, TIMED, MeasuredRun


class Clock:
    """A clock that runs take forward."""

    def __init__(self):
        self.now = 0.0
        self.made, self.ran = [], []

    def way(self, name, seconds):
        """A way to run that takes so long, and three times as long when it compiles."""

        def make():
            self.made.append(name)

            def run(records):
                self.now += seconds * (1 if name in self.ran else 100)
                self.ran.append(name)

            return run

        return make


@pytest.mark.parametrize(("tiles", "chosen"), [(0.9, "tiles"), (0.98, LOOPS), (1.2, LOOPS)])
def test_the_fastest_way_is_taken(monkeypatch, tiles, chosen):
    clock = Clock()
    monkeypatch.setattr(tiling.time, "perf_counter", lambda: clock.now)
    run = MeasuredRun({LOOPS: clock.way(LOOPS, 1.0), "tiles": clock.way("tiles", tiles)})
    for _ in range(2 * (1 + TIMED)):
        assert run.chosen is None
        run([])
    assert run.chosen == chosen
    assert run.seconds == {LOOPS: pytest.approx(1.0), "tiles": pytest.approx(tiles)}
    run([])
    assert clock.ran[-1] == chosen


def test_a_run_that_raises_is_made_again(monkeypatch):
    calls = []

    def run(records):
        calls.append(1)
        if len(calls) == 2:
            raise ValueError("too large")

    made = MeasuredRun({LOOPS: lambda: run})
    made([])
    with pytest.raises(ValueError, match="too large"):
        made([])
    for _ in range(TIMED):
        assert made.chosen is None
        made([])
    assert made.chosen == LOOPS


@pytest.mark.long
def test_a_chain_that_measures_gives_what_loops_give(slow, monkeypatch):
    # the mesh fits into cache: the one size to try would be its own
    monkeypatch.setattr(tiling, "sizes_to_try", lambda chain: [6, 10, 15])
    eager, flow = Flow(slow), Flow(slow)
    chain = flow.program.chain(4, tile_size="auto")
    # loops, and tiles of three sizes
    for _ in range(2 * 4 * (1 + TIMED) + 2):
        eager.step()
    flow.run(chain, 4 * (1 + TIMED) + 1)
    assert flow.result(flow.res, flow.old) == eager.result(eager.res, eager.old)
    (run,) = chain.tiled.values()
    assert run.chosen in run.seconds
    assert len(run.seconds) == 4
