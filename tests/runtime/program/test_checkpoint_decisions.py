"""How many values a checkpoint at each call would hold [R14 figure 6.1], and the cheapest call."""

from meshprep_runtime.program.checkpoints.checkpoints import (
    calls_to_wait,
    decide,
    period,
    saved_dats,
)

DIMS = {"bounds": 1, "x": 2, "q": 4, "q_old": 4, "adt": 1, "res": 4}
# The access lists of Fig. 6.1 [R14]; W: all of it is written.
FIGURE = {
    "save_soln": {"q": "R", "q_old": "W"},
    "adt_calc": {"x": "R", "q": "R", "adt": "W"},
    "res_calc": {"x": "R", "q": "R", "adt": "R", "res": "I"},
    "bres_calc": {"bounds": "R", "x": "R", "q": "R", "adt": "R", "res": "I"},
    "update": {"q": "W", "q_old": "R", "res": "RW"},
}
REAL = FIGURE | {"update": {**FIGURE["update"], "adt": "R"}}
ORDER = ["save_soln", *["adt_calc", "res_calc", "bres_calc", "update"] * 2] * 3
COLUMN = [8, 12, 13, 13, 8, 12, 13, 13, 8, 8, 12, 13, 13, 8, 12, 13, 13, 8]


def values_saved(accesses, entry):
    written = {d for args in accesses.values() for d, a in args.items() if a != "R"}
    full = [{d: a == "W" for d, a in accesses[loop].items()} for loop in ORDER[entry:]]
    return sum(DIMS[dat] for dat in saved_dats(full, written))


def test_what_is_met_is_decided_once():
    flagged = {"q", "res", "old"}
    assert decide(flagged, {"x": False, "q": False, "old": True}) == ["q"]
    assert decide(flagged, {"q": False, "old": False}) == []
    assert flagged == {"res"}


def test_the_column_of_figure_6_1():
    assert [values_saved(FIGURE, i) for i in range(18)] == COLUMN
    # update really reads adt, so that only save_soln is a best place
    real = [values_saved(REAL, i) for i in range(18)]
    assert [n for n, loop in zip(real, ORDER, strict=False) if loop == "save_soln"] == [
        8,
        8,
    ]
    assert [n for n, loop in zip(real, ORDER, strict=False) if loop == "update"] == [9] * 4


def test_the_period_of_the_loops_and_its_cheapest_call():
    assert [period(ORDER[:n]) for n in (9, 17, 18, 27)] == [None, None, 9, 9]
    assert period(["update"] * 2) == 1
    written = {d for args in REAL.values() for d, a in args.items() if a != "R"}
    full = [{d: a == "W" for d, a in REAL[loop].items()} for loop in ORDER]
    # save_soln, wherever the period begins
    assert [calls_to_wait(full[i : i + 9], written, DIMS) for i in range(9)] == [
        0,
        *range(8, 0, -1),
    ]
