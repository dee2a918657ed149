"""The figures of a loop's variant that reports show, and which of several is the best."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from meshprep_runtime.plan.metrics import VariantMetrics

from ..metrics.cost import Assumptions, Cost, occupancy_share
from .table import two_digits


@dataclass(frozen=True, kw_only=True)
class ShownMetrics(VariantMetrics):
    """The figures of one side of a variant, and those that rest on assumptions."""

    measured_ms: float | None = None  # of a call, where it was measured
    cost: Cost | None = None  # of the plan; None for the input order


@dataclass(frozen=True)
class ReportRow:
    """A row of a report."""

    label: str
    # Finds the figure; None where there is none, as in plans of older versions.
    find: Callable[[ShownMetrics], float | int | None]
    better: int = 0  # {1, 0, -1}: whether large is good, nothing is, or small is
    # Heads the figure's column where a plan is a line; empty for figures that are left out there.
    short: str = ""
    brief: bool = False  # whether a user acts on it, so that it is always shown


def _traffic(layout: str, what: str) -> Callable[[ShownMetrics], int | None]:
    """Sectors of a call in one layout: ``read``, ``written`` or ``total``."""
    return lambda v: getattr(v.traffic[layout], what) if layout in v.traffic else None


def _useful(of: VariantMetrics, milliseconds: float | None) -> float | None:
    """sum(w_d S_d) / T [S19]."""
    if not milliseconds or of.useful_bytes is None:
        return None
    return of.useful_bytes / milliseconds / 1e6


FIGURES = (
    ReportRow("reuse factor", lambda v: v.reuse, +1, "reuse", brief=True),
    ReportRow("accesses", lambda v: v.accesses),
    ReportRow("loads", lambda v: v.loads, -1, "loads", brief=True),
    ReportRow("exclusive share of loads", lambda v: v.exclusive_share, +1),
    ReportRow("blocks", lambda v: v.blocks, brief=True),
    ReportRow("blocks in several pieces", lambda v: v.partition.scattered if v.partition else None),
    ReportRow("elements a block, largest", lambda v: v.block_elements.max),
    ReportRow("staged bytes a block, mean", lambda v: v.staged_bytes.mean),
    ReportRow(
        "staged bytes a block, largest", lambda v: v.staged_bytes.max, -1, "staged bytes", True
    ),
    ReportRow("128-byte lines a block (AoS)", lambda v: v.aos.lines.mean, brief=True),
    ReportRow("128-byte lines a block (SoA)", lambda v: v.soa.lines.mean),
    ReportRow("32-byte sectors a block (AoS)", lambda v: v.aos.sectors.mean),
    ReportRow("32-byte sectors a block (SoA)", lambda v: v.soa.sectors.mean),
    ReportRow("sectors moved a call (AoS)", _traffic("aos", "total"), -1, brief=True),
    ReportRow("sectors read a call (AoS)", _traffic("aos", "read"), -1),
    ReportRow("sectors written a call (AoS)", _traffic("aos", "written"), -1),
    ReportRow("sectors read a call (SoA)", _traffic("soa", "read"), -1),
    ReportRow("sectors written a call (SoA)", _traffic("soa", "written"), -1),
    ReportRow("thread colours, mean", lambda v: v.thread_colours.mean, -1, "thread colours", True),
    ReportRow("thread colours, bound", lambda v: v.thread_colours.bound_mean),
    ReportRow("thread colours, largest", lambda v: v.thread_colours.max, -1),
    ReportRow("block colours", lambda v: v.block_colours, -1, "block colours", brief=True),
    ReportRow("blocks in the smallest colour", lambda v: v.block_colour_blocks.min, +1),
    ReportRow("blocks in the largest colour", lambda v: v.block_colour_blocks.max),
    ReportRow("warp efficiency, computing", lambda v: v.warp_efficiency.computing, +1),
    ReportRow("warp efficiency, increments", lambda v: v.warp_efficiency.increments, +1),
    ReportRow("useful MB a call", lambda v: _useful(v, 1.0)),
    ReportRow(
        "seconds to cut the blocks",
        lambda v: v.partition.seconds if v.partition else None,
        -1,
        "s to cut",
        brief=True,
    ),
)


def device_figures(assumptions: Assumptions) -> tuple[ReportRow, ...]:
    """Occupancy, and where times were measured these, the useful bandwidth, and repayment."""
    on = f"on {assumptions.device}"
    timed = (
        ReportRow("measured ms a call", lambda v: v.measured_ms, -1, "measured ms", brief=True),
        ReportRow("measured useful GB/s", lambda v: _useful(v, v.measured_ms), +1),
        ReportRow(
            "calls that repay the preparation",
            lambda v: two_digits(v.cost.calls) if v.cost else None,
            -1,
            brief=True,
        ),
    )
    return (
        ReportRow(
            f"occupancy {on}, {assumptions.registers} registers",
            lambda v: occupancy_share(v, assumptions),
            +1,
            "occupancy",
        ),
        *(timed if assumptions.measured else ()),
    )


def best_of(values: Sequence[float | int | None], better: int) -> list[int]:
    """Places of the best of several figures; none where all are alike or nothing is good."""
    known = [v for v in values if v is not None]
    if not better or len(set(known)) < 2:
        return []
    best = max(known) if better > 0 else min(known)
    return [i for i, v in enumerate(values) if v == best]
