"""What `blocks` is to reach against METIS in the same run, and whether it does."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

Row = dict[str, Any]

# By kind of loop: how much more reuse than METIS's the default effort is to have, and the strong.
DEFAULT_AHEAD = {"tetrahedra": 1.025, "triangles": 1.008, "hexahedra": 1.03, "facets": 1.01}
STRONG_AHEAD = {"tetrahedra": 1.05, "triangles": 1.013}
# Seconds over METIS's: effort, threads, the most.
TIMES = (("default", 2, 0.75), ("default", 1, 1.2), ("fast", 2, 1 / 3), ("strong", 2, 4.0))
MOST_BLOCKS = 1.0
# What the bars compare with: the first of them that a case has.
METIS = ("METIS facets 3 %", "METIS dual 3 %")


def ratios(rows: Sequence[Row]) -> list[Row]:
    """Reuse and seconds of every row over those of METIS with 3 % more parts, in the same case."""
    return [
        {
            "case": row["case"],
            "partitioner": row["partitioner"],
            "threads": row["threads"],
            "reuse / METIS": round(row["reuse"] / metis["reuse"], 4),
            "seconds / METIS": round(row["seconds"] / metis["seconds"], 3),
        }
        for known, metis in _by_case(rows)
        for row in known.values()
    ]


def bars(rows: Sequence[Row]) -> list[Row]:
    """Every bar of every case: the figure, what it must be at least or at most, and whether."""
    return [bar for known, metis in _by_case(rows) for bar in _bars(known, metis)]


def _by_case(rows: Sequence[Row]) -> Iterator[tuple[dict[tuple[str, int], Row], Row]]:
    """The rows of each case by partitioner and threads, and the row of METIS."""
    for _, group in groupby(rows, lambda row: row["case"]):
        known = {(row["partitioner"], row["threads"]): row for row in group}
        yield known, next(known[name, 1] for name in METIS if (name, 1) in known)


def _bars(known: dict[tuple[str, int], Row], metis: Row) -> Iterator[Row]:
    case, kind = metis["case"], metis["kind"]
    # Reuse hardly depends on the threads.
    most = max(threads for name, threads in known if name == "blocks default")
    aheads = (
        ("fast", 1.0),
        ("default", DEFAULT_AHEAD.get(kind)),
        ("strong", STRONG_AHEAD.get(kind)),
    )
    for effort, ahead in aheads:
        row = known[f"blocks {effort}", most]
        if ahead is not None:
            what = f"reuse / METIS, {effort}"
            yield _bar(case, what, row["reuse"] / metis["reuse"], ahead, True)
        yield _bar(case, f"more blocks %, {effort}", row["more %"], MOST_BLOCKS, False)
        yield _bar(case, f"blocks over the cap, {effort}", row["over the cap"], 0, False)
    for effort, threads, bound in TIMES:
        row = known.get((f"blocks {effort}", threads))
        if row is not None:
            what = f"seconds / METIS, {effort}, {threads} threads"
            yield _bar(case, what, row["seconds"] / metis["seconds"], bound, False)


def _bar(case: str, what: str, value: float, bound: float, least: bool) -> Row:
    met = value >= bound if least else value <= bound
    return {
        "case": case,
        "bar": what,
        "value": round(value, 4),
        "must be": f"{'>=' if least else '<='} {bound:.4g}",
        "met": "met" if met else "MISSED",
    }
