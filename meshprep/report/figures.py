"""The figures of a loop's variant that reports show, and which of several is the best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..metrics.cost import Assumptions, occupancy_share, predicted_ms

Values = Mapping[str, Any]


@dataclass(frozen=True)
class ReportRow:
    """A row of a report.

    Parameters
    ----------
    label : str
    find : callable
        Finds the figure in what ``metrics.variant_metrics`` gives; None where it has none, as in
        plans of older versions.
    better : {1, 0, -1}
        Whether large is good, nothing is, or small is.
    short : str
        Heads the figure's column where a plan is a line; empty for figures that are left out there.
    """

    label: str
    find: Callable[[Values], float | int | None]
    better: int = 0
    short: str = ""
    brief: bool = False


def _inside(*keys: str) -> Callable[[Values], Any]:
    def find(values: Values) -> Any:
        found: Any = values
        for key in keys:
            found = None if found is None else found.get(key)
        return found

    return find


def _megabytes(values: Values) -> float | None:
    found = values.get("useful_bytes")
    return None if found is None else found / 1e6


def _useful(values: Values, milliseconds: float | None) -> float | None:
    """sum(w_d S_d) / T [S19]."""
    moved = values.get("useful_bytes")
    return moved / milliseconds / 1e6 if milliseconds and moved is not None else None


def _moved(values: Values) -> int | None:
    """Sectors read and written."""
    moved = _inside("traffic", "aos")(values)
    return None if moved is None else moved["read"] + moved["written"]


FIGURES = (
    ReportRow("reuse factor", _inside("reuse"), +1, "reuse", brief=True),
    ReportRow("accesses", _inside("accesses")),
    ReportRow("loads", _inside("loads"), -1, "loads", brief=True),
    ReportRow("exclusive share of loads", _inside("exclusive_share"), +1),
    ReportRow("blocks", _inside("blocks"), brief=True),
    ReportRow("blocks in several pieces", _inside("partition", "scattered")),
    ReportRow("elements a block, largest", _inside("block_elements", "max")),
    ReportRow("staged bytes a block, mean", _inside("staged_bytes", "mean")),
    ReportRow(
        "staged bytes a block, largest",
        _inside("staged_bytes", "max"),
        -1,
        "staged bytes",
        brief=True,
    ),
    ReportRow("128-byte lines a block (AoS)", _inside("aos", "lines", "mean"), brief=True),
    ReportRow("128-byte lines a block (SoA)", _inside("soa", "lines", "mean")),
    ReportRow("32-byte sectors a block (AoS)", _inside("aos", "sectors", "mean")),
    ReportRow("32-byte sectors a block (SoA)", _inside("soa", "sectors", "mean")),
    ReportRow("sectors moved a call (AoS)", _moved, -1, brief=True),
    ReportRow("sectors read a call (AoS)", _inside("traffic", "aos", "read"), -1),
    ReportRow("sectors written a call (AoS)", _inside("traffic", "aos", "written"), -1),
    ReportRow("sectors read a call (SoA)", _inside("traffic", "soa", "read"), -1),
    ReportRow("sectors written a call (SoA)", _inside("traffic", "soa", "written"), -1),
    ReportRow("thread colours, mean", _inside("thread_colours", "mean"), -1, "thread colours"),
    ReportRow("thread colours, bound", _inside("thread_colours", "bound_mean")),
    ReportRow("thread colours, largest", _inside("thread_colours", "max"), -1, brief=True),
    ReportRow("block colours", _inside("block_colours"), -1, "block colours", brief=True),
    ReportRow("blocks in the smallest colour", _inside("block_colour_blocks", "min"), +1),
    ReportRow("blocks in the largest colour", _inside("block_colour_blocks", "max")),
    ReportRow("warp efficiency, computing", _inside("warp_efficiency", "computing"), +1),
    ReportRow("warp efficiency, increments", _inside("warp_efficiency", "increments"), +1),
    ReportRow("useful MB a call", _megabytes),
    ReportRow(
        "seconds to cut the blocks", _inside("partition", "seconds"), -1, "s to cut", brief=True
    ),
)


def device_figures(assumptions: Assumptions) -> tuple[ReportRow, ...]:
    """The rows that rest on a device: occupancy, time a call, useful bandwidth, repayment.

    Times that were measured have rows of their own.
    """
    on = f"on {assumptions.device}"
    timed = (
        ReportRow("measured ms a call", _inside("measured_ms"), -1, "measured ms", brief=True),
        ReportRow("measured useful GB/s", lambda v: _useful(v, v.get("measured_ms")), +1),
    )
    return (
        ReportRow(
            f"occupancy {on}, {assumptions.registers} registers",
            lambda values: occupancy_share(values, assumptions),
            +1,
            "occupancy",
        ),
        ReportRow(
            f"predicted ms a call {on}",
            lambda values: predicted_ms(values, assumptions),
            -1,
            "predicted ms",
            brief=not assumptions.measured,
        ),
        ReportRow(
            f"predicted useful GB/s {on}",
            lambda values: _useful(values, predicted_ms(values, assumptions)),
            +1,
        ),
        *(timed if assumptions.measured else ()),
        ReportRow("calls that repay the preparation", _inside("cost", "calls"), -1, brief=True),
    )


def best_of(values: Sequence[float | int | None], better: int) -> list[int]:
    """Places of the best of several figures; none where all are alike or nothing is good."""
    known = [v for v in values if v is not None]
    if not better or len(set(known)) < 2:
        return []
    best = max(known) if better > 0 else min(known)
    return [i for i, v in enumerate(values) if v == best]
