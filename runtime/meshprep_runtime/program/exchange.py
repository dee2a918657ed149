"""Messages between parts that bring copies up to date: one a neighbour, for all dats.

Receives are posted before anything is sent. Both sides compute the layout of a message. It
begins with a checksum of the layout, and with the call, its loop and its dats: ranks that
do not run the same calls stop with an error.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DistributedError
from ..plan.parts import Messages, PartPlan
from ..types.maps import Int32s, UInt8s
from .dat import EXEC, ProgramDat
from .ranks import HEAD, RankGroup

if TYPE_CHECKING:
    from .device_rows import DeviceRows

# A dat, and the lists of its copies that a loop reads and that are stale.
Wanted = tuple[ProgramDat, tuple[str, ...]]
# The tag of these messages in MPI.
TAG = 14
# Every segment of a message begins at a multiple of this, in bytes.
ALIGNED = 8


@dataclass(frozen=True, eq=False)
class Segment:
    """Rows of one dat in a message.

    ``dat`` is the number of the dat in the exchange; ``values`` is a view of the buffer of
    the message; ``moved`` holds, by device, the loops that move the rows on a GPU.
    """

    dat: int
    rows: slice | Int32s
    values: NDArray[Any]
    moved: dict[Any, DeviceRows] = field(default_factory=dict)

    def on(self, dat: ProgramDat) -> DeviceRows:
        """These rows on the current GPU."""
        from ..cuda.device import current
        from .device_rows import DeviceRows

        device = current()
        if device not in self.moved:
            if isinstance(self.rows, slice):
                rows = np.arange(self.rows.start, self.rows.stop, dtype=np.int32)
            else:
                rows = self.rows
            self.moved[device] = DeviceRows(dat, rows, dat.current().shape[dat.axis])
        return self.moved[device]


@dataclass(frozen=True, eq=False)
class Parcel:
    """A message to or from the rank of ``part``; its segments are views of the buffer."""

    part: int
    buffer: UInt8s
    segments: tuple[Segment, ...]


@dataclass(frozen=True, eq=False)
class Pattern:
    """The messages of one kind of exchange, with their buffers."""

    sends: tuple[Parcel, ...]
    receives: tuple[Parcel, ...]
    checksum: int

    @property
    def sent_bytes(self) -> int:
        """The bytes of all messages that are sent."""
        return sum(parcel.buffer.nbytes for parcel in self.sends)


class Exchange:
    """Sends and receives rows of dats for one part.

    Messages of ``ranks`` with ``TAG`` are this object's alone.
    """

    def __init__(self, ranks: RankGroup, part: PartPlan) -> None:
        self.ranks = ranks
        self.part = part
        self._patterns: dict[tuple[object, ...], Pattern] = {}
        self._zeros: dict[tuple[object, ...], Segment] = {}

    def start(self, what: str, wanted: Sequence[Wanted], back: bool = False) -> Transfer:
        """Post receives, pack and send.

        With ``back``, copies are sent to their owners, who add them up. ``what`` is the
        name of the loop in errors.
        """
        dats = [dat for dat, _ in wanted]
        return Transfer(
            ranks=self.ranks,
            what=what,
            pattern=self._pattern(wanted, back),
            dats=dats,
            back=back,
        )

    def clear_copies(self, dat: ProgramDat) -> None:
        """Set all copies to zero, before increments are added to them."""
        size = int(dat.current().shape[dat.axis])
        if size == dat.owned:
            return
        if not dat.on_device:
            matrix(dat)[(slice(None),) * dat.axis + (slice(dat.owned, None),)] = 0
            return
        # On a GPU, put rows of zeros, which are made once for all dats of this kind.
        key = dat.set, dat.dim, dat.dtype.str, dat.layout
        if key not in self._zeros:
            zeros = np.zeros(_shape_of_rows(dat, size - dat.owned), dat.dtype)
            self._zeros[key] = Segment(dat=0, rows=slice(dat.owned, size), values=zeros)
        segment = self._zeros[key]
        segment.on(dat).put(dat, segment.values, add=False)

    def _pattern(self, wanted: Sequence[Wanted], back: bool) -> Pattern:
        key = (back, *((d.set, d.dim, d.dtype.str, d.layout, lists) for d, lists in wanted))
        pattern = self._patterns.get(key)
        if pattern is None:
            pattern = Pattern(
                sends=self._parcels(wanted, receive=back),
                receives=self._parcels(wanted, receive=not back),
                checksum=zlib.crc32(repr(key).encode()),
            )
            self._patterns[key] = pattern
        return pattern

    def _parcels(self, wanted: Sequence[Wanted], receive: bool) -> tuple[Parcel, ...]:
        """The messages to or from each neighbour, with empty buffers."""
        # Collect the rows by neighbour: in the order of the dats, then of their lists.
        rows_of_part: dict[int, list[tuple[int, Int32s]]] = {}
        for i, (dat, lists) in enumerate(wanted):
            for name in lists:
                messages = self._messages(dat.set, name, receive)
                for j, part in enumerate(messages.parts.tolist()):
                    rows = messages.rows[messages.offset[j] : messages.offset[j + 1]]
                    if rows.size:
                        rows_of_part.setdefault(part, []).append((i, rows))
        dats = [dat for dat, _ in wanted]
        return tuple(
            _make_parcel(part, rows_of_part[part], dats) for part in sorted(rows_of_part)
        )

    def _messages(self, set_name: str, name: str, receive: bool) -> Messages:
        """The rows of one list of copies that go to or come from each neighbour."""
        if name in self.part.partial:
            partial = self.part.partial[name]
            if receive:
                return partial.receive
            return partial.send
        of_set = self.part.sets[set_name]
        if name == EXEC:
            if receive:
                return of_set.receive_exec
            return of_set.send_exec
        if receive:
            return of_set.receive_halo
        return of_set.send_halo


class Transfer:
    """An exchange under way."""

    def __init__(
        self,
        ranks: RankGroup,
        what: str,
        pattern: Pattern,
        dats: Sequence[ProgramDat],
        back: bool,
    ) -> None:
        comm = ranks.comm
        self._ranks = ranks
        self._what = what
        self._dats = dats
        self._back = back
        self.pattern = pattern
        self._head = ranks.head(what, pattern.checksum)
        self._requests = [comm.Irecv(p.buffer, p.part, TAG) for p in pattern.receives]
        for parcel in pattern.sends:
            parcel.buffer[:HEAD] = self._head.view(np.uint8)
            for segment in parcel.segments:
                _pack(dats[segment.dat], segment)
            self._requests.append(comm.Isend(parcel.buffer, parcel.part, TAG))

    def test(self) -> None:
        """Let MPI go on with the messages: most do nothing while a rank computes."""
        if self._requests:
            self._requests[0].Testall(self._requests)

    def finish(self) -> None:
        """Wait for the messages, and unpack those received.

        Raises DistributedError for a message of another call, and for one that does not
        come within the timeout.
        """
        if not self._requests:
            return
        receives = self.pattern.receives
        try:
            self._ranks.wait(self._requests, self._what, [p.part for p in receives])
        except RuntimeError as error:
            raise DistributedError(
                f"rank {self._ranks.rank}: {self._what} awaits other messages than came: "
                "all ranks must call the same loops, with the same dats, in the same order "
                f"({error})"
            ) from error
        # Check all messages before the first one changes a dat.
        for parcel in receives:
            head = parcel.buffer[:HEAD].view(np.int64)
            self._ranks.check(parcel.part, self._what, self._head, head)
        for parcel in receives:
            for segment in parcel.segments:
                _unpack(self._dats[segment.dat], segment, self._back)


def matrix(dat: ProgramDat) -> Any:
    """The array of a dat with two axes, also where it has one component."""
    array = dat.current()
    if array.ndim == 2:
        return array
    return array.reshape(-1, 1)


def _make_parcel(
    part: int, rows_of_dats: Sequence[tuple[int, Int32s]], dats: Sequence[ProgramDat]
) -> Parcel:
    """A message of the given rows of dats, behind a head, with an empty buffer."""
    # Lay out the segments one after the other.
    n_bytes = []
    starts = []
    end = HEAD
    for i, rows in rows_of_dats:
        n_bytes.append(dats[i].dim * dats[i].dtype.itemsize * rows.size)
        starts.append(end)
        end += round_up(n_bytes[-1], ALIGNED)
    buffer = np.zeros(end, np.uint8)

    # Rows are packed into views of the buffer, one for each dat.
    segments = []
    for (i, rows), start, size in zip(rows_of_dats, starts, n_bytes, strict=True):
        dat = dats[i]
        values = buffer[start : start + size].view(dat.dtype)
        segments.append(
            Segment(
                dat=i,
                rows=_slice_or_rows(rows),
                values=values.reshape(_shape_of_rows(dat, rows.size)),
            )
        )
    return Parcel(part, buffer, tuple(segments))


def round_up(size: int, multiple: int) -> int:
    """The smallest multiple that is not below a size."""
    return -(-size // multiple) * multiple


def _shape_of_rows(dat: ProgramDat, n: int) -> tuple[int, int]:
    if dat.axis:
        return dat.dim, n
    return n, dat.dim


def _slice_or_rows(rows: Int32s) -> slice | Int32s:
    """Consecutive rows as a slice; others as they are."""
    first = int(rows[0])
    run = np.arange(first, first + rows.size, dtype=rows.dtype)
    if np.array_equal(rows, run):
        return slice(first, first + rows.size)
    return rows


def _pack(dat: ProgramDat, segment: Segment) -> None:
    if dat.on_device:
        segment.on(dat).pack(dat, segment.values)
        return
    values = matrix(dat)
    rows = segment.rows
    if isinstance(rows, slice):
        if dat.axis:
            segment.values[...] = values[:, rows]
        else:
            segment.values[...] = values[rows]
    else:
        np.take(values, rows, axis=dat.axis, out=segment.values, mode="clip")


def _unpack(dat: ProgramDat, segment: Segment, add: bool) -> None:
    if dat.on_device:
        segment.on(dat).put(dat, segment.values, add)
        return
    if dat.axis:
        index: tuple[Any, ...] = (slice(None), segment.rows)
    else:
        index = (segment.rows,)
    if add:
        matrix(dat)[index] += segment.values
    else:
        matrix(dat)[index] = segment.values
