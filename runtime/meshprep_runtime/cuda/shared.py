"""Where a block keeps what it stages: all values of a point lie together in shared memory."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..kernel.bind import Slot

# Values that CUDA moves at once.
WIDTHS, MOST_BYTES = (2, 4, 8, 16), 16


@dataclass(frozen=True)
class SharedRow:
    """The values of one point."""

    stride: int  # bytes from one point to the next
    unit: int  # bytes that rows begin at multiples of
    offset: Mapping[int, int]  # by slot number: bytes from the begin of a row to each dat


def values_at_once(dim: int, itemsize: int) -> int:
    """How many values of a row can be moved at once: up to 16 bytes that lie together."""
    return max((w for w in WIDTHS if dim % w == 0 and w * itemsize <= MOST_BYTES), default=1)


def shared_row(slots: Mapping[int, Slot]) -> SharedRow:
    """The row of a set whose staged dats are these, by slot number.

    Dats that are moved in larger pieces come first, so that all lie at multiples of their pieces.
    """
    piece = {
        i: s.dtype.itemsize * values_at_once(s.dim, s.dtype.itemsize) for i, s in slots.items()
    }
    offset: dict[int, int] = {}
    end = 0
    for i in sorted(slots, key=lambda i: -piece[i]):
        offset[i] = end
        end += slots[i].dim * slots[i].dtype.itemsize
    unit = max(piece.values())
    # An odd number of units puts the same component of neighbouring points into different banks.
    units = -(-end // unit) | 1
    return SharedRow(units * unit, unit, offset)
