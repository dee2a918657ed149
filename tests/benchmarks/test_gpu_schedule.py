"""Parts of a benchmark by one clock: here the clock moves when a row says so."""

import json
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


class Hand:
    """The hand of a clock that only rows move."""

    def __init__(self):
        self.at = 1000.0

    def __call__(self):
        return self.at


@pytest.fixture
def schedule(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import gpu_schedule

    return gpu_schedule


@pytest.fixture
def hand():
    return Hand()


def lasting(hand, seconds, log=None, name="", wrong_at=None):
    """Rows that take so many seconds each."""
    for number, each in enumerate(seconds):
        if number == wrong_at:
            raise ArithmeticError(f"row {number} is wrong")
        hand.at += each
        if log is not None:
            log.append(name)
        yield {"row": number}


def nothing(part, tables, state):
    pass


def run(schedule, hand, budget, parts, save=nothing, show=nothing):
    clock = schedule.Clock(budget, hand)
    return schedule.run_parts(parts, clock, save, show)


def part_of(schedule, hand, name, seconds, rows, log=None, **wrong):
    def tables(allotted):
        yield "rows", lasting(hand, rows, log, name, **wrong)

    return schedule.Part(name, seconds, tables)


def test_parts_run_in_their_order_and_all_rows_are_kept(schedule, hand):
    log = []
    parts = [part_of(schedule, hand, name, 10, [2, 2], log) for name in ("first", "second")]
    outcomes = run(schedule, hand, 20, parts)
    assert log == ["first", "first", "second", "second"]
    assert [(o.part, o.state, o.rows) for o in outcomes] == [
        ("first", "complete", 2),
        ("second", "complete", 2),
    ]


def test_a_part_is_cut_when_its_time_is_up(schedule, hand):
    parts = [
        part_of(schedule, hand, "long", 10, [3] * 100),
        part_of(schedule, hand, "short", 10, [1]),
    ]
    long, short = run(schedule, hand, 20, parts)
    # The fourth row begins after nine of ten seconds, a fifth would begin after twelve.
    assert (long.state, long.rows, long.seconds, long.allotted) == ("cut", 4, 12, 10)
    assert long.note == "its time was up in table 'rows'"
    assert (short.state, short.rows, short.allotted) == ("complete", 1, 8)


def test_what_a_part_leaves_goes_to_those_after_it(schedule, hand):
    parts = [
        part_of(schedule, hand, "short", 60, [1]),
        part_of(schedule, hand, "a", 20, [100]),
        part_of(schedule, hand, "b", 40, []),
    ]
    outcomes = run(schedule, hand, 120, parts)
    # 119 seconds are left: a third of them, then the other 19.
    assert [o.allotted for o in outcomes] == [60, pytest.approx(119 / 3), 19]


def test_half_the_budget_is_half_of_every_part(schedule, hand):
    asked = []

    def tables(allotted):
        asked.append(allotted)
        return []

    parts = [schedule.Part("a", 30, tables), schedule.Part("b", 10, tables)]
    run(schedule, hand, 20, parts)
    # The first takes no time: the second has all that is left.
    assert asked == [15, 20]


def test_no_row_begins_that_would_end_too_late(schedule, hand):
    (only,) = run(schedule, hand, 10, [part_of(schedule, hand, "only", 1, [4, 4, 4])])
    # Two seconds are left for a row that takes four.
    assert (only.state, only.rows, hand.at) == ("cut", 2, 1008)


def test_parts_without_time_are_left_out_and_named(schedule, hand):
    log = []
    parts = [
        part_of(schedule, hand, "all of it", 1, [30], log),
        part_of(schedule, hand, "next", 1, [1], log),
    ]
    outcomes = run(schedule, hand, 20, parts)
    assert log == ["all of it"]
    # Nobody knows whether a row would have followed.
    assert [o.state for o in outcomes] == ["cut", "left out"]
    assert outcomes[1].note == "no time was left"


def test_a_part_that_fails_keeps_its_rows_and_does_not_end_the_run(schedule, hand):
    saved = {}
    parts = [
        part_of(schedule, hand, "wrong", 10, [1, 1, 1], wrong_at=2),
        part_of(schedule, hand, "right", 10, [1]),
    ]

    def save(part, tables, state):
        saved[part.name] = state, [len(rows) for rows in tables.values()]

    wrong, right = run(schedule, hand, 20, parts, save)
    assert (wrong.state, wrong.note) == ("failed", "ArithmeticError: row 2 is wrong")
    assert right.state == "complete"
    assert saved == {"wrong": ("failed", [2]), "right": ("complete", [1])}


def test_every_row_is_saved_at_once(schedule, hand):
    """So that a run that is ended from outside has lost nothing."""
    saved = []

    class EndedFromOutside(BaseException):
        pass

    def tables(allotted):
        yield "rates", lasting(hand, [1])
        yield "rows", lasting(hand, [1, 1])
        raise EndedFromOutside

    def save(part, tables, state):
        saved.append((state, {name: len(rows) for name, rows in tables.items()}))

    with pytest.raises(EndedFromOutside):
        run(schedule, hand, 100, [schedule.Part("p", 1, tables)], save)
    assert saved == [
        ("cut", {"rates": 1}),
        ("cut", {"rates": 1, "rows": 1}),
        ("cut", {"rates": 1, "rows": 2}),
    ]


def test_a_table_after_one_that_was_cut_is_not_begun(schedule, hand):
    begun = []

    def tables(allotted):
        for name in ("one", "two"):
            begun.append(name)
            yield name, lasting(hand, [3, 3, 3])

    (only,) = run(schedule, hand, 7, [schedule.Part("p", 1, tables)])
    assert begun == ["one"]
    assert (only.state, only.rows) == ("cut", 2)


class FakeGpu:
    """No part of these tests asks it for anything but its names."""

    name = "Fake GPU"
    arch = "sm_90"


@pytest.fixture
def every(monkeypatch, tmp_path, needs_gxx):
    """The script, whose files go into a folder of the tests."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setenv("MESHPREP_CACHE_DIR", str(tmp_path / "cache"))
    import bench_gpu_all
    import common

    monkeypatch.setattr(common, "RESULTS", tmp_path)
    return bench_gpu_all


def test_files_summary_and_exit_status(every, schedule, monkeypatch, tmp_path, capsys):
    """As on a GPU, with parts of the test: a file each, one of the run, 1 where one failed."""
    hand = Hand()
    parts = [
        part_of(schedule, hand, "good", 10, [1, 1]),
        part_of(schedule, hand, "bad", 10, [1, 1], wrong_at=1),
    ]
    monkeypatch.setattr(every, "parts_of", lambda device, arch, small: parts)
    monkeypatch.setattr(every, "device_or_exit", lambda emulate: FakeGpu())
    monkeypatch.setattr(every, "about_gpu", lambda device: {"device": device.name})
    with pytest.raises(SystemExit) as ended:
        every.main(["--budget", "40"])
    assert ended.value.code == 1
    good = json.loads((tmp_path / "gpu-good-fake-gpu.json").read_text())
    assert (good["state"], len(good["rows"])) == ("complete", 2)
    assert good["gpu"] == {"device": "Fake GPU"}
    bad = json.loads((tmp_path / "gpu-bad-fake-gpu.json").read_text())
    assert (bad["state"], len(bad["rows"])) == ("failed", 1)
    whole = json.loads((tmp_path / "gpu-run-fake-gpu.json").read_text())
    assert [(row["part"], row["state"]) for row in whole["rows"]] == [
        ("good", "complete"),
        ("bad", "failed"),
    ]
    out = capsys.readouterr().out
    assert "ArithmeticError: row 1 is wrong" in out.splitlines()[-1]


def test_unknown_parts_are_refused(every):
    with pytest.raises(SystemExit, match="part 'stresses' is unknown: choose of stress, "):
        every.main(["--emulate", "--only", "stresses"])


RUNTIME = Path(__file__).parents[1] / "runtime"
# Parts of which the stand-in of CuPy runs the first rows.
ON_CUPY = ["stress", "loops", "forms", "stores", "batches", "ranks", "first"]
# The others take as long together as all other tests of benchmarks; test_bench_gpu.py runs their
# texts without CuPy.
IN_CI = ("loops", "ranks", "first")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in IN_CI else pytest.mark.long)
        for name in ON_CUPY
    ],
)
def test_parts_as_on_a_gpu(every, monkeypatch, tmp_path, capsys, name):
    """The first rows of each part, by CuPy's calls: what g++ alone takes may not be there."""
    monkeypatch.syspath_prepend(str(RUNTIME))
    import bench_gpu
    import bench_gpu_loops
    import gpu_timing
    from fake_cupy import FakeCupy

    from meshprep_runtime.cuda import device, gpu

    cupy = FakeCupy()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(device, "_known", {})
    monkeypatch.setattr(gpu, "compiled", cupy.compiled)
    monkeypatch.setattr(gpu_timing, "compiled", cupy.compiled)
    monkeypatch.setattr(gpu_timing, "SAMPLE_SECONDS", 0)
    monkeypatch.setattr(bench_gpu_loops, "BUILD", tmp_path / "loops")
    for module in list(sys.modules.values()):
        if getattr(module, "COPY_BYTES", None) == bench_gpu.COPY_BYTES:
            monkeypatch.setattr(module, "COPY_BYTES", 2**16)
    whole = every.parts_of

    def small_parts(there, arch, small):
        """Tiny, and of each table the first three rows."""
        for part in whole(there, arch, small=True):
            if part.name in ON_CUPY:
                yield replace(
                    part,
                    tables=lambda seconds, of=part.tables: (
                        (table, islice(rows, 3)) for table, rows in of(seconds)
                    ),
                )

    monkeypatch.setattr(
        every, "parts_of", lambda *given, small: list(small_parts(*given, small))
    )
    every.main(["--only", name])
    found = json.loads((tmp_path / f"gpu-{name}-fake-gpu.json").read_text())
    assert found["state"] == "complete"
    assert found["gpu"]["device"] == "Fake GPU"
    assert found["rows"]


@pytest.mark.slow
def test_machine_code_is_made_beforehand(every, tmp_path, capsys, compiled):
    """Of all texts of a part, where a run on a GPU looks for it."""
    import bench_gpu_batches as batches

    every.main(["--prepare", "--only", "batches"])
    assert "complete" in capsys.readouterr().out.splitlines()[-1]
    made = list((tmp_path / "cache" / "cubins").glob("*.cubin"))
    texts = {
        program.cuda
        for degree in (1, 2)
        for _, _, program in batches.programs(50, batches.reference(degree))
    }
    assert len(made) == len(texts)


@pytest.mark.long
def test_every_part_under_gxx(every, monkeypatch, tmp_path, capsys):
    """Each part runs whole on tiny meshes, its sums are right, and no time is shown."""
    import bench_gpu
    import bench_gpu_loops
    import gpu_timing

    monkeypatch.setattr(bench_gpu, "BUILD", tmp_path / "plans")
    monkeypatch.setattr(bench_gpu_loops, "BUILD", tmp_path / "loops")
    monkeypatch.setattr(gpu_timing, "SAMPLE_SECONDS", 0)
    every.main(["--emulate"])
    out = capsys.readouterr().out
    rows = [line.split() for line in out.split("\n\n")[-1].splitlines()[1:]]
    names = ["stress", "loops", "forms", "stores", "batches", "ranks", "first", "kernels"]
    assert [row[:2] for row in rows] == [[name, "complete"] for name in names]
    assert not list(tmp_path.glob("gpu-*.json"))
