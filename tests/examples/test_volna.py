"""Volna: lakes at rest, dam breaks with known solutions, and what must hold for any water."""

import sys

import numpy as np
import pytest

import meshprep
import volna
from kernels import volna as kernels
from meshprep import MeshprepError
from meshprep.io.generate import generate
from meshprep.pipeline import workflow
from meshprep_runtime.cpu import STRATEGIES
from meshprep_runtime.cuda import program
from volna import Case, Volna, read_case

# Loops of many numbers, which take long to compile.
pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.slow]
HALF = {"box": [0.0, 0.0, 0.5, 1.0], "level": 1.0}
EPS = float(np.finfo("f4").eps)


def dam(right=0.25):
    """Deep water on the left half."""
    return Case(end=1.0, level=right, water=(HALF,))


@pytest.fixture(scope="module")
def flow_of(jiggled):
    def make(n, case, **options):
        usual = {"strategy": "hierarchical", "block_size": 128}
        return Volna(jiggled(n), case, **(usual | options))

    return make


@pytest.fixture(scope="module")
def moved(flow_of):
    """A broken dam after some steps, over a hill."""
    flow = flow_of(16, dam())
    hill = {"raise": 0.4, "centre": [0.7, 0.5], "radius": 0.2}
    flow._happen(hill)
    flow.advance(0.08)
    return flow


def volume(flow):
    return flow.dats["volume"].array.astype("f8") @ flow.dats["state"].array[:, 0]


def test_water_is_neither_made_nor_lost(moved, flow_of):
    before = flow_of(16, dam())
    assert moved.steps > 20
    assert np.abs(moved.state[:, 1:3]).max() > 0.5
    # each of the steps rounds the depth of a cell some times
    assert volume(moved) == pytest.approx(volume(before), rel=EPS * moved.steps)


def island(flow, grain):
    """A hill that rises out of a lake of level 1; heights are multiples of ``grain``."""
    away = ((flow.centre - 0.5) ** 2).sum(axis=1)
    bottom = np.round(1.5 * np.exp(-10 * away) / grain) * grain
    state = np.zeros((len(bottom), 4), "f4")
    state[:, 0], state[:, 3] = np.maximum(1.0 - bottom, 0.0), bottom
    assert 0 < (state[:, 0] == 0).sum() < len(bottom) / 2
    flow.dats["state"].array[:] = flow.order["cells"].apply(state)
    return state


def test_a_lake_at_rest_stays_at_rest(flow_of):
    """To the bit where depth + bottom is exact; else it moves as much as that is rounded."""
    flow = flow_of(16, Case(end=1.0))
    before = island(flow, 1 / 1024)
    flow.advance(0.1)
    assert flow.steps > 20
    assert np.array_equal(flow.state, before)
    before = island(flow, 1e-9)
    flow.advance(0.2)
    np.testing.assert_allclose(flow.state, before, atol=100 * EPS)


def depth_behind_dam(x, left, right):
    """Depth by x over time, of a dam that broke at 0: Ritter's on dry land, else Stoker's."""
    c = np.sqrt(kernels.G * left)
    fan = (2 * c - x) ** 2 / (9 * kernels.G)
    if right == 0.0:
        return np.where(x < -c, left, np.where(x < 2 * c, fan, 0.0))
    low, high = right, left
    for _ in range(60):
        middle = 0.5 * (low + high)
        behind = 2 * (c - np.sqrt(kernels.G * middle))
        before = (middle - right) * np.sqrt(0.5 * kernels.G * (1 / middle + 1 / right))
        low, high = (middle, high) if behind > before else (low, middle)
    shock = middle * behind / (middle - right)
    water = np.where(x < behind - np.sqrt(kernels.G * middle), fan, middle)
    return np.where(x < -c, left, np.where(x < shock, water, right))


def mean_error(flow, right=0.0, started=0.0):
    """Of the depth, 0.06 after the dam has broken; the flow begins so long after that."""
    time = 0.06
    flow.advance(time - started)
    expected = depth_behind_dam((flow.centre[:, 0] - 0.5) / time, 1.0, right)
    size = flow.order["cells"].restore(flow.dats["volume"].array)
    return float(size @ np.abs(flow.state[:, 0] - expected))


@pytest.mark.parametrize("right", [0.0, 0.1])
def test_a_broken_dam_comes_closer_to_the_known_solution(right, flow_of):
    """A rarefaction out of a jump: h log h, which is 1.4 to 1.5 a halving at these sizes."""
    errors = [mean_error(flow_of(n, dam(right)), right) for n in (16, 32, 64)]
    assert errors[2] < 0.015
    assert errors[0] / errors[1] > 1.4
    assert errors[1] / errors[2] > 1.4


def test_a_fan_that_is_there_already_is_of_first_order(flow_of):
    """Without the jump of the start there is no logarithm: the order comes close to 1."""
    started, errors = 0.02, []
    for n in (32, 64):
        flow = flow_of(n, dam(0.0))
        x, c = (flow.centre[:, 0] - 0.5) / started, np.sqrt(kernels.G)
        state = flow.state
        state[:, 0] = depth_behind_dam(x, 1.0, 0.0)
        state[:, 1] = state[:, 0] * np.where(abs(x - c / 2) < 1.5 * c, 2 / 3 * (c + x), 0.0)
        flow.state = state
        errors.append(mean_error(flow, started=started))
    assert errors[0] / errors[1] > 1.6


@pytest.mark.parametrize(
    "other",
    [
        *(pytest.param({"strategy": s}, marks=pytest.mark.long) for s in [*STRATEGIES][1:]),
        {"strategy": "sequential"},
        {"keep_order": True},
    ],
)
def test_the_same_water_in_every_strategy_and_order(other, flow_of):
    ours, theirs = flow_of(16, dam()), flow_of(16, dam(), **other)
    ours.advance(0.05)
    theirs.advance(0.05)
    assert ours.steps == theirs.steps > 15
    assert theirs.order["cells"].is_identity == ("keep_order" in other)
    np.testing.assert_allclose(theirs.state, ours.state, atol=50 * EPS)


def test_the_kernels_do_what_they_say(moved):
    for name, loop in moved.loops.items():
        given = moved.arguments(name)
        arrays = {n: getattr(v, "array", v) for n, v in given.items()}
        loop.par_loop.check_access(**arrays)


@pytest.mark.slow
def test_whole_on_a_device(flow_of, device):
    """Two steps over a hill that rises, beside those of the CPU."""
    ours, theirs = flow_of(6, dam(), block_size=64, device=device), flow_of(6, dam())
    hill = {"raise": 0.25, "centre": [0.5, 0.5], "radius": 0.2}
    for flow in (ours, theirs):
        flow._happen(hill)
        flow.advance(0.02)
    assert ours.steps == theirs.steps > 1
    assert np.abs(ours.state[:, 1:3]).max() > 0.1
    np.testing.assert_allclose(ours.state, theirs.state, atol=50 * EPS)
    chosen = {name: loop.par_loop.on_gpu.strategy for name, loop in ours.loops.items()}
    assert chosen.pop("space_discretization") == "hierarchical"
    assert set(chosen.values()) == {"global-atomics"}


@pytest.mark.parametrize("name", ["compute_flux", "time_step"])
def test_machine_code_without_spills(name, moved, compiled):
    made = program(getattr(kernels, name), moved.prepared.plan[name], "global-atomics")
    found = compiled(made)
    assert found.spilled == 0
    assert found.registers <= 64


CASE = """
end = 0.04
level = 0.5
[[water]]
box = [0, 0, 0.5, 1]
level = 1.0
[[event]]
every = 0.02
write = "wave-{step:04}.vtu"
[[event]]
at = [0.01, 0.03]
gauge = [0.25, 0.5]
file = "gauge.csv"
[[event]]
at = [0.02]
raise = 0.25
centre = [0.5, 0.5]
radius = 0.1
"""


def test_a_case_from_its_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shape = {"type": "triangle", "nx": "12", "ny": "12"}
    (tmp_path / "gauge.csv").write_text("of another run\n")
    workflow.generate("box", tmp_path / "basin.msh", values=shape)
    (tmp_path / "case.toml").write_text(CASE)
    monkeypatch.setattr(sys, "argv", ["volna.py", "basin.msh", "case.toml"])
    volna.main()
    lines = [s.strip() for s in capsys.readouterr().out.splitlines()]
    assert [s.partition(" s, ")[0] for s in lines[:6]] == [
        *("0.0000", "0.0100", "0.0200", "0.0200", "0.0300", "0.0400")
    ]
    assert "space_discretization" in "".join(lines[6:])
    first, *_, last = written = sorted(tmp_path.glob("*.vtu"))
    assert first.name == "wave-0000.vtu"
    told = [s.split(": write ")[1] for s in lines if ": write " in s]
    assert told == [p.name for p in written]
    fields = {d.name: d.values for d in meshprep.read(first).dats}
    assert sorted(np.unique(fields["depth"])) == [0.5, 1.0]
    assert not fields["momentum"].any()
    fields = {d.name: d.values for d in meshprep.read(last).dats}
    rise = fields["surface"] - fields["depth"]
    assert 0.15 < rise.max() <= 0.25
    gauge = np.loadtxt("gauge.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(gauge, [[0.01, 1, 1], [0.03, 1, 1]], atol=0.02)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("level = 1", "no 'end'"),
        ("end = 1\nend = 2", "cannot be read"),
        ("end = 1\nlevels = 2", "unknown key 'levels'"),
        (
            'end = 1\n[[event]]\nat = [1]\nwrite = "{stop}"',
            "'{stop}': KeyError.*: use {step} or",
        ),
        ("end = 1\n[[event]]\nat = [1]", "event 0: needs one of write, gauge, raise"),
        ("end = 1\n[[event]]\nwrite = 'a'", "and one of at and every"),
        ("end = 1\n[[event]]\nat = [1]\ngauge = [0, 0]", "event 0: gauge needs 'file'"),
    ],
)
def test_what_is_wrong_with_a_case_is_said(tmp_path, text, message):
    (tmp_path / "case.toml").write_text(text)
    with pytest.raises(MeshprepError, match=message):
        read_case(tmp_path / "case.toml")


def test_cells_must_be_triangles():
    with pytest.raises(MeshprepError, match="not all of triangles"):
        Volna(generate("box", nx=2, ny=2, type="quad"), dam())
